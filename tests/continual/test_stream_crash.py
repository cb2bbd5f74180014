"""kill -9 at every write: a published step stays as it is, none is skipped, and no noise is drawn
anew.

All trials start from copies of one started release, so they have one key: whatever happens on the
way, the bytes that are published must be those of a run that nothing interrupts.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_release import Visit, after, opened, tables

from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger import streams as streams_module
from discreet.ledger.stores import sqlite

VISITS: list[Visit] = [(person, (person * 7) % 4, "Hill", 5.0) for person in range(30)]
SETTINGS = {"periods": "4", "epsilon": "1", "accountant": "zcdp", "publish": "[daily, cumulative]"}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("started")
    curator = opened(folder, tables(VISITS), **SETTINGS)
    curator.release("daily_visits").start()
    curator._ledger.close()
    return folder


def published(folder: Path, live: dict[str, Any], until: int) -> list[bytes]:
    curator = opened(folder, live, **SETTINGS)
    release = curator.release("daily_visits")
    release.run(after(until))
    curator._ledger.verify()
    found = curator._ledger.streams.published(release._require_start())
    curator._ledger.close()
    return found


def killed(work: Callable[[], object], writes: int) -> bool:
    """Run in a child that is killed before its n-th write into the ledger's file; whether it
    was.
    """
    child = os.fork()
    if child == 0:
        left = [writes]
        commit = sqlite.File._write

        def counted(self: sqlite.File, statement: str, *values: object) -> None:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            commit(self, statement, *values)

        sqlite.File._write = counted  # type: ignore[method-assign]
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_killed_at_every_write(started: Path, tmp_path: Path) -> None:
    shutil.copytree(started, tmp_path / "whole")
    wanted = published(tmp_path / "whole", tables(VISITS), 4)
    assert len(wanted) == 5
    late = tables([*VISITS, (99, 0, "Harbor", 1.0)])
    for writes in range(30):
        folder = tmp_path / str(writes)
        shutil.copytree(started, folder)
        dead = killed(lambda folder=folder: published(folder, tables(VISITS), 2), writes)
        # Meanwhile a row arrives. What was frozen before the crash does not see it.
        curator = opened(folder, late, **SETTINGS)
        stream = curator._ledger.streams.find(curator.release("daily_visits").identity)
        assert stream is not None
        before = curator._ledger.streams.published(stream)
        curator._ledger.close()
        assert before == wanted[: len(before)]
        finished = published(folder, late, 4)
        # the copy of rows that a dead run left is gone
        assert not list((folder / "clinic.store").glob(".live*"))
        assert len(finished) == 5
        assert finished[: stream.frozen] == wanted[: stream.frozen]
        if stream.frozen < 4:
            assert finished != wanted  # the late row was counted in a period after the crash
        if not dead:
            break
    assert not dead
    assert writes >= 8  # two rows and two contents a step


def test_two_runs_at_once_publish_one_series(started: Path, tmp_path: Path) -> None:
    """Both read their own source; whoever freezes a step first decides what it is, for both."""
    shutil.copytree(started, tmp_path / "a")
    folder = tmp_path / "a"
    children = []
    for extra in range(3):
        child = os.fork()
        if child == 0:
            try:
                live = tables(
                    [*VISITS, *[(200 + extra, day, "Harbor", 1.0) for day in range(extra)]]
                )
                published(folder, live, 4)
            except (UsageError, LedgerUnavailable):
                os._exit(1)  # met the other in the middle of a step: to be run again
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    assert len(published(folder, tables(VISITS), 4)) == 5


def test_what_is_stored_is_sealed_and_cannot_be_swapped(started: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    shutil.copytree(started, folder)
    curator = opened(folder, tables(VISITS), **SETTINGS)
    release = curator.release("daily_visits")
    release.run(after(2))
    stream = release._require_start()
    frozen = curator._ledger.streams.frozen(stream)
    assert b"owner" in frozen[1]
    raw = b"".join(path.read_bytes() for path in folder.glob("clinic.ledger*"))
    assert frozen[1][200:260] not in raw
    assert b"copies" not in raw
    other = replace(stream, key=bytes(32))
    with pytest.raises(LedgerUnavailable, match="is not what it holds now"):
        curator._ledger.streams.frozen(other)
    curator._ledger.close()
    with sqlite3.connect(folder / "clinic.ledger") as connection:
        rows = [row for (row,) in connection.execute("SELECT row FROM contents ORDER BY row")]
        contents = dict(connection.execute("SELECT row, content FROM contents"))
        connection.execute(
            "UPDATE contents SET content = ? WHERE row = ?", (contents[rows[4]], rows[2])
        )
    changed = opened(folder, tables(VISITS), **SETTINGS)
    with pytest.raises(LedgerUnavailable):
        changed._ledger.verify()
    with pytest.raises(LedgerUnavailable):
        changed.release("daily_visits").run(after(3))


def test_steps_in_turn_and_once(started: Path, tmp_path: Path) -> None:
    folder = tmp_path / "turn"
    shutil.copytree(started, folder)
    curator = opened(folder, tables(VISITS), **SETTINGS)
    streams: streams_module.Streams = curator._ledger.streams
    stream = streams.find(curator.release("daily_visits").identity)
    assert stream is not None
    with pytest.raises(UsageError):
        streams.freeze(stream, 2, b"too early")
    with pytest.raises(UsageError):
        streams.publish(stream, 1, b"not frozen")
    assert streams.freeze(stream, 1, b"first") == b"first"
    assert streams.freeze(stream, 1, b"second") == b"first"
    assert streams.publish(stream, 1, b"noisy") == b"noisy"
    assert streams.publish(stream, 1, b"noisy") == b"noisy"
    with pytest.raises(LedgerUnavailable, match="must not be released"):
        streams.publish(stream, 1, b"others")
    curator._ledger.verify()
    with pytest.raises(UsageError, match="has come to its end"):
        streams.frozen(replace(stream, key=None))
    curator._ledger.close()
    with sqlite3.connect(folder / "clinic.ledger") as connection:
        connection.execute("DELETE FROM contents WHERE row = (SELECT MAX(row) FROM contents)")
    connection.close()
    with pytest.raises(LedgerUnavailable, match="has lost what was stored with it"):
        opened(folder, tables(VISITS), **SETTINGS)._ledger.verify()
