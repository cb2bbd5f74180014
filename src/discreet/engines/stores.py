"""Choose the store of a policy's snapshots. Only this module knows which engines there are."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.engine import Progress, Store
from discreet.engines.snapshot import Snapshot
from discreet.engines.source import find_changes, source_at
from discreet.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class DuckDBStore:
    """Snapshots as DuckDB files in the policy's folder."""

    policy: Policy

    def numbers(self) -> list[int]:
        return SnapshotFolder(self.policy.store).numbers()

    def snapshot(self, number: int) -> Snapshot:
        return SnapshotFolder(self.policy.store).snapshot(number)

    def build(
        self,
        number: int,
        source: object,
        progress: Progress | None = None,
        *,
        threads: int | None = None,
    ) -> Snapshot:
        return prepare(self.policy, source, self.policy.store, number, progress, threads=threads)

    def open(self, number: int, *, threads: int | None = None) -> DuckDB:
        return DuckDB.open(self.policy, number, threads=threads)

    def remove(self, number: int) -> None:
        SnapshotFolder(self.policy.store).remove(number)


def store_of(policy: Policy) -> Store:
    """Return the store of the engine that a policy names."""
    if policy.engine.name == "duckdb":
        return DuckDBStore(policy)
    if policy.engine.name == "postgres":
        from discreet.engines.postgres.store import PostgresStore

        return PostgresStore(policy)
    from discreet.engines.spark.store import SparkStore

    return SparkStore(policy)


def changes_since_snapshot(policy: Policy) -> tuple[str, ...]:
    """Return the source files that have changed since the newest snapshot. Show it to the curator
    alone: it tells about single people (S9).
    """
    store = store_of(policy)
    numbers = store.numbers()
    if not numbers:
        return ()
    newest = store.snapshot(numbers[-1])
    if newest.source is None or policy.source is None:
        return ()
    return find_changes(newest.source, source_at(policy.source, policy), policy.tables)
