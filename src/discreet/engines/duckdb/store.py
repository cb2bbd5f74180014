"""The folder of prepared snapshots. It has private data, so only the curator's account may read it
(folder 0700, files 0600).

layout.py has the names of its files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from discreet.engines.layout import (
    BUILDING,
    KEY,
    LOCK,
    RULES,
    building_file,
    notes_file,
    numbers_in,
    snapshot_file,
)
from discreet.engines.snapshot import Snapshot, TableReport, read_notes, write_notes
from discreet.engines.source import Fingerprint
from discreet.errors import UsageError
from discreet.noise.bits import SYSTEM


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """A snapshot that is being built: the file to fill, and the key that orders rows."""

    store: SnapshotFolder
    number: int
    path: Path
    key: int

    def renewed(self) -> Path:
        """Begin again with an empty file; return a new folder for temporary files."""
        self.store.clear()
        scratch = building_file(self.store.path, ".scratch")
        scratch.mkdir(mode=0o700)
        return scratch

    def notes(
        self, *, digest: str, source: Fingerprint | None, tables: tuple[TableReport, ...]
    ) -> Snapshot:
        """Return the notes about the finished file."""
        taken = datetime.now(UTC).isoformat(timespec="seconds")
        return Snapshot(
            number=self.number,
            digest=digest,
            taken=taken,
            source=source,
            tables=tables,
            rules=RULES,
        )

    def finish(self, snapshot: Snapshot) -> None:
        """Give the finished file its number. Before this nobody sees it; after this it is
        durable.
        """
        notes = building_file(self.store.path, ".json")
        notes.write_text(write_notes(snapshot), encoding="utf-8")
        final_names = {
            notes: self.store.notes(self.number),
            self.path: self.store.file(self.number),
        }
        for file, final in final_names.items():
            file.chmod(0o600)
            _sync(file)
            file.rename(final)
        _sync(self.store.path)


@dataclass(frozen=True, slots=True)
class SnapshotFolder:
    """The folder with all snapshots of a policy."""

    path: Path

    def file(self, number: int) -> Path:
        return snapshot_file(self.path, number)

    def notes(self, number: int) -> Path:
        return notes_file(self.path, number)

    def numbers(self) -> list[int]:
        """Return the numbers of the snapshots, ascending, without reading their notes, which may be
        damaged.
        """
        return numbers_in(self.path)

    def snapshots(self) -> tuple[Snapshot, ...]:
        """Return the snapshots, oldest first."""
        return tuple(self.snapshot(number) for number in self.numbers())

    def snapshot(self, number: int) -> Snapshot:
        """Return one snapshot's notes; raise UsageError if there is no such snapshot."""
        if not self.file(number).exists():
            raise UsageError(
                f"There is no snapshot {number} in {self.path.name}. Take a new one: discreet snapshot."
            )
        try:
            return read_notes(self.notes(number).read_text(encoding="utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            raise UsageError(
                f"The notes of snapshot {number} are missing or damaged. Take a new one: discreet snapshot."
            ) from None

    def remove(self, number: int) -> None:
        """Delete a snapshot for good. Charges that were to be resumed on it are lost (S8)."""
        self.file(number).unlink(missing_ok=True)
        self.notes(number).unlink(missing_ok=True)
        _sync(self.path)

    @contextmanager
    def build(self, number: int) -> Iterator[Building]:
        """Yield a place to build snapshot `number`, and remove what is left of it in any case.

        Only one process builds at a time.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)
        with self._lock():
            if number < 1 or self.file(number).exists():
                raise UsageError(
                    f"The snapshot {number} is there already, or is no number. Take the next one."
                )
            self.clear()
            try:
                yield Building(
                    store=self, number=number, path=building_file(self.path), key=self._key()
                )
            finally:
                self.clear()

    @contextmanager
    def _lock(self) -> Iterator[None]:
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise UsageError(
                "Another snapshot is being taken in this store. Wait until it is done."
            ) from None
        finally:
            os.close(lock)

    def clear(self) -> None:
        """Remove the files of unfinished snapshots. Call it only with the lock held."""
        for left in self.path.glob(f"{BUILDING}*"):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()

    def _key(self) -> int:
        file = self.path / KEY
        if not file.exists():
            fresh = building_file(self.path, ".key")
            fresh.touch(mode=0o600)
            fresh.write_text(f"{SYSTEM.bits(64):016x}\n", encoding="ascii")
            _sync(fresh)
            fresh.rename(file)
        return int(file.read_text(encoding="ascii"), 16)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
