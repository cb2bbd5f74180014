"""The target of a snapshot's rows: its own DuckDB file, or another place that an engine chooses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from discreet.engines.duckdb.preparing.verify import verify
from discreet.engines.layout import private
from discreet.policy.policy import Policy, Table


class Target(Protocol):
    """A place for a snapshot's private tables. Nobody sees them before they are verified."""

    def begin(self) -> None:
        """Discard all rows, because the source is now read from its beginning, perhaps again."""

    def keep(self, connection: Any, table: Table, rows: str) -> int:
        """Store the rows of a DuckDB query as a table; return how many there are."""

    def verify(self) -> None:
        """Raise UsageError unless the stored tables are as the policy says (S23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile:
    """The DuckDB file in which a snapshot is prepared."""

    path: Path
    policy: Policy
    threads: int | None

    def begin(self) -> None:
        pass  # a second beginning has a new file

    def keep(self, connection: Any, table: Table, rows: str) -> int:
        place = private(table.name)
        connection.execute(f"CREATE TABLE {place} AS {rows}")
        # fetch all: with a row left to fetch, the connection would block
        return int(connection.execute(f"SELECT count(*) FROM {place}").fetchall()[0][0])

    def verify(self) -> None:
        verify(self.path, self.policy, threads=self.threads)
