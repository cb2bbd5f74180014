"""Snapshots that Spark prepares, in the policy's store (layout.py); a lock and an order's key as
DuckDB's have.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.engine import Progress
from discreet.engines.layout import RULES, building_file
from discreet.engines.readers.lake import Lake
from discreet.engines.snapshot import Snapshot, TableReport, read_notes, write_notes
from discreet.engines.source import (
    Foreign,
    PythonTables,
    Source,
    engine_errors,
    find_changes,
    fingerprint,
    remedy_for,
    source_at,
    told_to_curator,
)
from discreet.engines.spark.engine import Spark
from discreet.engines.spark.layout import address, manifest_file, numbers_in, snapshot_folder
from discreet.engines.spark.prepare import Work
from discreet.engines.spark.session import connect
from discreet.engines.spark.workers import kind_of
from discreet.errors import DiscreetError, SnapshotFailure, UsageError
from discreet.policy.policy import Policy

_log = logging.getLogger("discreet.engine")


@dataclass(frozen=True, slots=True)
class SparkStore:
    """Snapshots as Parquet files, which the cluster at the policy's `engine.at` makes and reads."""

    policy: Policy

    def numbers(self) -> list[int]:
        return numbers_in(self.policy.store)

    def snapshot(self, number: int) -> Snapshot:
        store = self.policy.store
        if not manifest_file(store, number).exists():
            raise UsageError(
                f"There is no snapshot {number} in {store.name}. Take a new one: discreet snapshot."
            )
        try:
            return read_notes(manifest_file(store, number).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"The notes of snapshot {number} are missing or damaged. Take a new one: discreet snapshot."
            ) from None

    def build(
        self,
        number: int,
        source: object,
        progress: Progress | None = None,
        *,
        threads: int | None = None,
    ) -> Snapshot:
        """Prepare a source on the cluster, which says by how many workers; nothing is seen until it
        is whole.
        """
        found = source_at(source, self.policy)
        store = self.policy.store
        address(store.resolve())
        with SnapshotFolder(store).build(number) as building:
            if manifest_file(store, number).exists():
                raise UsageError(f"The snapshot {number} is there already. Take the next one.")
            before = fingerprint(found, self.policy.tables)
            session = connect(self.policy.engine.at)
            try:
                folder, reports = self._filled(session, found, building.key, progress)
            finally:
                session.stop()
            if before is not None and find_changes(before, found, self.policy.tables):
                raise UsageError(
                    "The source changed while it was read. Take the snapshot again when it is at rest."
                )
            taken = datetime.now(UTC).isoformat(timespec="seconds")
            made = Snapshot(
                number=number,
                digest=self.policy.digest,
                taken=taken,
                source=before,
                tables=reports,
                rules=RULES,
            )
            self._appear(made, folder)
            return made

    def _filled(
        self, session: Any, source: Source, key: int, progress: Progress | None
    ) -> tuple[Path, tuple[TableReport, ...]]:
        """Fill a folder and check what is in it; Spark's messages can print values, so none
        leaves.
        """
        folder, scratch = (
            building_file(self.policy.store.resolve(), each) for each in (".spark", ".scratch")
        )
        try:
            for each in (folder, scratch):
                each.mkdir(mode=0o700)
            frames, given = self._frames(session, source)
            work = Work(
                session=session,
                policy=self.policy,
                source=given,
                frames=frames,
                key=key,
                folder=folder,
                scratch=scratch,
                progress=progress,
            )
            with told_to_curator(), engine_errors("Preparing a snapshot"):
                reports = work.tables()
            return folder, reports
        except (DiscreetError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            _log.error("Preparing a snapshot failed in Spark: %s.", kind_of(error))
            remedy = remedy_for(kind_of(error))
            raise SnapshotFailure("preparing it on the cluster", remedy) from None

    def _frames(self, session: Any, source: Source) -> tuple[Mapping[str, Any], Source]:
        """Return tables that the cluster reads by itself, if the source is such; and what is to be
        known of the source here: their types, and the rows of public ones.
        """
        if not isinstance(source, Foreign) or not isinstance(source.reader, Lake):
            return {}, source
        frames = source.reader.frames(session)
        public = [name.lower() for name, table in self.policy.tables.items() if table.public]
        return frames, PythonTables(tables=source.reader.arrow(frames, public))

    def _appear(self, snapshot: Snapshot, folder: Path) -> None:
        """Put the folder under its number, durably, then the manifest: with it the snapshot is
        there.
        """
        store, final = self.policy.store, snapshot_folder(self.policy.store, snapshot.number)
        if final.exists():  # a crash left it without a manifest
            shutil.rmtree(final)
        for place in (*folder.rglob("*"), folder):
            place.chmod(0o700 if place.is_dir() else 0o600)
            _sync(place)
        folder.rename(final)
        notes = building_file(store, ".json")
        notes.touch(mode=0o600)
        notes.write_text(write_notes(snapshot), encoding="utf-8")
        _sync(notes)
        _sync(store)
        notes.rename(manifest_file(store, snapshot.number))
        _sync(store)

    def open(self, number: int, *, threads: int | None = None) -> Spark:
        if self.snapshot(number).digest != self.policy.digest:
            raise UsageError(
                f"Snapshot {number} was made before the policy's tables, unit or neighbors changed. "
                "Take a new one: discreet snapshot."
            )
        session: Any = connect(self.policy.engine.at)
        return Spark(session, self.policy, snapshot_folder(self.policy.store.resolve(), number))

    def remove(self, number: int) -> None:
        """Delete a snapshot for good: first the manifest, with which it is gone, then its files."""
        store = self.policy.store
        manifest_file(store, number).unlink(missing_ok=True)
        _sync(store)
        shutil.rmtree(snapshot_folder(store, number), ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
