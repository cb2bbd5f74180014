"""The protocol of a database: a store of prepared snapshots, and an engine on each that is open.

To add one, write the two classes and a spelling, and name the store in stores.py. An engine is
trusted with private rows and with nothing else: it is handed trees and gives exact numbers, which
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

Progress = Callable[[str, float], None]  # a table's name and how much of it is done, from 0 to 1


class Engine(Protocol):
    """One snapshot, read-only. Several threads may use it; a process that was forked opens it
    again.

    Whatever goes wrong is EngineFailure, of one fixed sentence, without a cause: messages of a
    database can print values. What takes too much time or memory is Overrun. What fails on a row is
    NULL there.
    """

    # whether people are counted for a part of the unknown keys at a time, to save its memory
    in_passes: ClassVar[bool]

    def columns(self, table: str) -> dict[str, str]:
        """Return a table's columns and their stored types, the hidden owner left out."""

    def check(self, query: Numbers) -> None:
        """Raise EngineFailure where a query cannot run, which must not depend on the rows."""

    def sql(self, query: Numbers) -> str:
        """Return a query as it will run, for whoever asks what happens."""

    def fetch(self, query: Numbers, seconds: float) -> Exact:
        """Return the exact numbers of one aggregation: keys, then readings, one row for each group.

        Counts and sums are whole numbers of at most 128 bits, in int64 or decimal128(38, 0).
        """

    def fetch_parts(self, query: Numbers, seconds: float, rows: int) -> Exact:
        """Return the result of `fetch` in parts of so many rows, read when it is opened; at least
        one table, which may be empty.
        """

    def public_table(self, name: str) -> pa.Table:
        """Return all of a public table, in an order that depends on its content alone (S19)."""

    def close(self) -> None:
        """Let go of the snapshot."""


class Store(Protocol):
    """The snapshots of one policy, by their numbers. A snapshot is whole when it is there, and
    never changes.
    """

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, ascending."""

    def snapshot(self, number: int) -> Snapshot:
        """Return what is noted about one snapshot, or raise UsageError when there is none."""

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
        """Return an engine on a snapshot; raise UsageError when it was made for other tables."""

    def remove(self, number: int) -> None:
        """Delete a snapshot for good. Charges that were to be resumed on it are lost (S8)."""
