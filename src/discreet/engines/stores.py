"""Which store a policy's snapshots are in: the one place that knows which engines there are."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.prepare import prepare
from discreet.engines.duckdb.store import Snapshot, SnapshotFolder
from discreet.engines.engine import Progress, Store
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
        self, number: int, source: object, progress: Progress | None = None, *, threads: int | None = None
    ) -> Snapshot:
        return prepare(self.policy, source, self.policy.store, number, progress, threads=threads)

    def open(self, number: int, *, threads: int | None = None) -> DuckDB:
        return DuckDB.open(self.policy, number, threads=threads)

    def remove(self, number: int) -> None:
        SnapshotFolder(self.policy.store).remove(number)


def store_of(policy: Policy) -> Store:
    return DuckDBStore(policy)
