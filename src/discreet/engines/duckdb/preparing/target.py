"""Where the kept rows of a snapshot go: its own DuckDB file, or wherever an engine puts them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from discreet.engines.duckdb.preparing.verify import verify
from discreet.engines.layout import private
from discreet.policy.policy import Policy, Table


class Target(Protocol):
    """A place for a snapshot's private tables; nobody sees them before they are checked."""

    def begin(self) -> None:
        """Forget what was kept: the source is read from its beginning, maybe not for the first
        time.
        """

    def keep(self, connection: Any, table: Table, rows: str) -> int:
        """Keep the rows of a DuckDB query as a table; return how many there are."""

    def verify(self) -> None:
        """Raise UsageError unless what was kept is what the policy says (S23)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFile:
    """The file in which a snapshot is prepared."""

    path: Path
    policy: Policy
    threads: int | None

    def begin(self) -> None:
        pass  # whoever begins again has a new file

    def keep(self, connection: Any, table: Table, rows: str) -> int:
        place = private(table.name)
        connection.execute(f"CREATE TABLE {place} AS {rows}")
        # half-fetched, the connection would block
        return int(connection.execute(f"SELECT count(*) FROM {place}").fetchall()[0][0])

    def verify(self) -> None:
        verify(self.path, self.policy, threads=self.threads)
