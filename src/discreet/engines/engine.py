"""The protocols of a database: `Store` keeps prepared snapshots, and `Engine` answers questions on
one that is open.

To add a database, write the two classes and a spelling, and name the store in stores.py. An engine
sees private rows and nothing else of the system. It gets trees and returns exact numbers, which
only the vault opens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol

from discreet.algebra import Numbers
from discreet.engines.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.vault.exact import Exact

Progress = Callable[[str, float], None]  # of a table's name, and the part that is done, 0 to 1


class Engine(Protocol):
    """One snapshot, opened for reading. Several threads may use it; a forked process must open it
    again.

    Every failure is EngineFailure with one fixed sentence and without a cause, because messages of
    a database can print values. If a query takes too much time or memory, it is Overrun. If an
    expression fails on a row, its value there is NULL.
    """

    # True if people of unknown keys must be counted in several passes, to save the engine's memory
    in_passes: ClassVar[bool]

    def columns(self, table: str) -> dict[str, str]:
        """Return a table's columns and their stored types, without the hidden owner."""

    def check(self, query: Numbers) -> None:
        """Raise EngineFailure if a query cannot run. This must not depend on the rows."""

    def sql(self, query: Numbers) -> str:
        """Return the SQL of a query as it will run, to show it."""

    def fetch(self, query: Numbers, seconds: float) -> Exact:
        """Return the exact numbers of one aggregation: keys, then readings, one row for each group.

        Counts and sums are whole numbers of at most 128 bits, in int64 or decimal128(38, 0).
        """

    def fetch_parts(self, query: Numbers, seconds: float, rows: int) -> Exact:
        """Return the result of `fetch` in parts of so many rows: at least one, which may be empty.

        The parts are read when the result is opened.
        """

    def public_table(self, name: str) -> pa.Table:
        """Return all of a public table, in an order that depends on its content alone (S19)."""

    def close(self) -> None:
        """Close the snapshot."""


class Store(Protocol):
    """The snapshots of one policy, by their numbers. A snapshot that has a number is complete and
    never changes.
    """

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, ascending."""

    def snapshot(self, number: int) -> Snapshot:
        """Return the notes about one snapshot; raise UsageError if it does not exist."""

    def build(
        self,
        number: int,
        source: object,
        progress: Progress | None = None,
        *,
        threads: int | None = None,
    ) -> Snapshot:
        """Prepare a source as snapshot `number`, by the rules of layout.py: the same rows on every
        engine (S4, S23).
        """

    def open(self, number: int, *, threads: int | None = None) -> Engine:
        """Return an engine on a snapshot; raise UsageError if it was made for other tables."""

    def remove(self, number: int) -> None:
        """Delete a snapshot for good. Charges that were to be resumed on it are lost (S8)."""
