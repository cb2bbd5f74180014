"""Whatever is wrong with the file, disk or key: one sentence that says what to do, and nothing is
answered.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from small_ledger import ask, charge, noisy, recalled, released, some_terms

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
from discreet.ledger.place import Place
from discreet.ledger.stores import sqlite
from small_disk import small_disk


@pytest.fixture
def place(path: Path) -> Place:
    """All here is about files."""
    return Place(path=path)


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def refused(path: Path) -> str:
    with pytest.raises(LedgerUnavailable) as error:
        Ledger.open(path)
    assert (error.value.kind, error.value.exit_code) == ("ledger", 5)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_missing(filled: Callable[[int], Path]) -> None:
    path = filled(1)
    for suffix, said in [
        (".head", "is missing or unreadable"),
        (".key", "put hospital.ledger.key back"),
        ("", "There is no ledger"),
    ]:
        beside(path, suffix).unlink()
        assert said in refused(path)


def test_the_key_must_be_the_owner_s_alone(filled: Callable[[int], Path]) -> None:
    path = filled(1)
    beside(path, ".key").chmod(0o640)
    assert "run chmod 600" in refused(path)
    beside(path, ".key").chmod(0o600)
    beside(path, ".key").write_bytes(b"short")
    assert "is damaged (5 bytes, not 32)" in refused(path)


def test_a_damaged_head(filled: Callable[[int], Path]) -> None:
    path = filled(1)
    for content in (b"", b"[]", b"{", b"\xff"):
        beside(path, ".head").write_bytes(content)
        assert "the newest exported head there" in refused(path)


def test_what_is_not_a_ledger(filled: Callable[[int], Path]) -> None:
    path = filled(1)
    shutil.copy(beside(path, ".key"), beside(path, ".other.key"))
    shutil.copy(beside(path, ".head"), beside(path, ".other.head"))
    other = beside(path, ".other")
    other.write_bytes(b"")
    assert "is not a ledger" in refused(other)
    other.write_bytes(b"once upon a time " * 400)
    assert "damaged or not a ledger" in refused(other)
    other.unlink()
    sqlite3.connect(other).execute("CREATE TABLE t (x)")
    assert "is not a ledger" in refused(other)
    other.unlink()
    other.mkdir()
    assert "There is no ledger" in refused(other)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="cannot be made here: No such file"):
        Ledger.create(tmp_path / "nowhere" / "hospital.ledger", some_terms())


def test_locked_for_too_long(path: Path) -> None:
    Ledger.create(path, some_terms()).close()
    ledger, other = Ledger.open(path, timeout=0.05), sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        LedgerUnavailable,
        match=r"locked by another process for 0\.05 seconds: let it finish or stop it",
    ):
        ask(ledger)
    assert ledger.spent() == charge("0")  # reading still works
    other.execute("ROLLBACK")
    ask(ledger)
    other.close()


def test_a_thread_that_holds_the_ledger_for_too_long(path: Path) -> None:
    Ledger.create(path, some_terms()).close()
    ledger, held, go = Ledger.open(path, timeout=0.05), threading.Event(), threading.Event()

    def hold() -> None:
        with ledger._journal.session(write=False):
            held.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with pytest.raises(LedgerUnavailable, match="locked"):
        ask(ledger)
    go.set()
    thread.join()
    ask(ledger)


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("replaced", [True, False])
def test_files_removed_or_replaced_while_in_use(
    ledger: Ledger, path: Path, suffix: str, replaced: bool
) -> None:
    """Going on would spend where nobody else sees it."""
    ask(ledger)
    content = beside(path, suffix).read_bytes()
    beside(path, suffix).unlink()
    if replaced:
        beside(path, suffix).write_bytes(content)
    with pytest.raises(LedgerUnavailable, match="removed or replaced while in use"):
        ask(ledger, "other")


def test_an_older_copy_put_in_place_while_in_use(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    ledger.close()
    shutil.copytree(path.parent, tmp_path / "older")
    ask(ledger, "lost")
    ledger.close()
    ask(ledger, "in the log")
    path.unlink()
    shutil.copy(tmp_path / "older" / path.name, path)
    with pytest.raises(LedgerUnavailable, match="replaced while in use"):
        ask(ledger, "other")
    beside(path, "-wal").unlink()
    with pytest.raises(LedgerUnavailable, match="once had row 3"):
        ask(ledger, "other")


@contextmanager
def file_size(limit: int) -> Iterator[None]:
    """No file may grow beyond this: what a full disk looks like to one process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def spend_until_refused(ledger: Ledger) -> tuple[int, str]:
    for i in range(5000):
        try:
            ask(ledger, f"q{i}", analyst="bob", cost=charge("1/10000"))
        except LedgerUnavailable as error:
            return i, str(error)
    raise AssertionError("the disk never filled")


def test_files_that_cannot_grow(ledger: Ledger, path: Path) -> None:
    before = ask(ledger, "before")
    with file_size(100_000):
        admitted, said = spend_until_refused(ledger)
        assert "free space" in said or "disk is full" in said
        with pytest.raises(LedgerUnavailable):
            ledger.post(before, noisy(before) * 10_000)
    assert admitted > 0
    assert ledger.spent() == charge("1/10") + charge(f"{admitted}/10000")
    assert released(ledger, "before") == noisy(before)
    ledger.verify()


@pytest.mark.parametrize("limit", [100, 9_000])
def test_a_disk_too_full_for_a_new_ledger(path: Path, limit: int) -> None:
    """Nothing is left of it, so that it can be made when there is room."""
    with (
        file_size(limit),
        pytest.raises(LedgerUnavailable, match=r"hospital\.ledger cannot be made here"),
    ):
        Ledger.create(path, some_terms())
    assert list(path.parent.iterdir()) == []
    Ledger.create(path, some_terms()).close()


def test_a_disk_that_loses_a_write(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its sync a charge is not resumed; without its head it is refused, and stays paid
    for.
    """
    ask(ledger, "waiting")

    def broken(*given: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", broken)
        with pytest.raises(LedgerUnavailable, match=r"Input/output error\. Nothing was answered"):
            ask(ledger, "waiting")
        disk.setattr(os, "pwrite", broken)
        with pytest.raises(
            LedgerUnavailable, match=r"head cannot be written \(Input/output error\)"
        ):
            ask(ledger, "new")
    assert ledger.spent() == charge("2/10")
    assert ask(ledger, "new").resumed
    assert ask(ledger, "waiting").resumed
    assert ledger.spent() == charge("2/10")
    ledger.verify()


def test_a_disk_without_a_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's log needs memory that processes share; a network disk has none."""
    Ledger.create(path, some_terms()).close()
    connect = sqlite3.connect

    class Networked(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(
                "SELECT 'delete'" if sql == "PRAGMA journal_mode=WAL" else sql, *values
            )

    monkeypatch.setattr(
        sqlite3, "connect", lambda *given, **named: connect(*given, factory=Networked, **named)
    )
    assert "must be on a local disk" in refused(path)


def test_a_table_whose_name_is_no_text(filled: Callable[[int], Path]) -> None:
    path = filled(1)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute(
        "UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = 'CREATE' WHERE name = 'answers'"
    )
    connection.commit()
    connection.close()
    assert "Nothing was answered" in refused(path)


def test_forked_behind_python_s_back(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a library in C: the child has an open connection, and believes in locks that it does not
    hold.
    """
    ask(ledger)
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerUnavailable, match="open it after forking"):
            ask(ledger, "other")
    with Ledger.open(path) as parent:  # whose log is still there
        assert parent.spent() == charge("1/10")
        ask(parent, "other")
        parent.verify()


def test_what_a_child_does_after_a_fork(ledger: Ledger) -> None:
    """It gets locks of its own and opens its files anew (seen here without a child, whose lines
    nobody counts).
    """
    ask(ledger)
    sqlite._before_fork()
    sqlite._after_fork_in_child()
    assert ask(ledger, "other").id
    assert ledger.spent() == charge("2/10")
    ledger.verify()


def test_a_full_disk(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        path = disk / "hospital.ledger"
        with Ledger.create(path, some_terms(limit="1000")) as ledger:
            before = ask(ledger, "before")
            (disk / "ballast").write_bytes(bytes(400_000))
            admitted, said = spend_until_refused(ledger)
            assert "disk is full: free some space, then ask again" in said
            with pytest.raises(LedgerUnavailable):
                ledger.post(before, noisy(before) * 10_000)
            assert recalled(ledger, "before") == []
            (disk / "ballast").unlink()
            assert admitted > 0
            assert ledger.spent() == charge("1/10") + charge(f"{admitted}/10000")
            assert released(ledger, "before") == noisy(before)
            ledger.verify()
        (disk / "more").write_bytes(bytes(shutil.disk_usage(disk).free))
        with pytest.raises(LedgerUnavailable, match="cannot be made here"):
            Ledger.create(disk / "second.ledger", some_terms())
        assert not list(disk.glob("second*"))


def test_a_disk_that_cannot_be_written(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "4m") as disk:
        Ledger.create(disk / "hospital.ledger", some_terms()).close()
        with Ledger.open(disk / "hospital.ledger") as ledger:
            ask(ledger)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(LedgerUnavailable, match="make it and its folder"):
            ask(Ledger.open(disk / "hospital.ledger"), "other")


CALLS = {"x86_64": (74, 75), "aarch64": (82, 83)}  # fsync, fdatasync


def fail_every_sync() -> None:
    """From here on fsync and fdatasync fail with EIO in this process (a seccomp filter)."""
    fsync, fdatasync = CALLS[platform.machine()]
    program = [
        (0x20, 0, 0, 0),  # the call's number
        (0x15, 1, 0, fsync),
        (0x15, 0, 1, fdatasync),
        (0x06, 0, 0, 0x00050005),  # EIO
        (0x06, 0, 0, 0x7FFF0000),  # let it pass
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    whole = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, whole, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


@pytest.mark.skipif(
    platform.machine() not in CALLS or sys.platform != "linux",
    reason="makes syncs fail by a seccomp filter, which Linux has, with the numbers of these machines' calls",
)
@pytest.mark.parametrize("step", ["reserve", "resume", "post", "amend", "new_snapshot"])
def test_nothing_is_answered_when_the_disk_does_not_sync(path: Path, step: str) -> None:
    with Ledger.create(path, some_terms()) as ledger:
        waiting = ask(ledger, "waiting")
    steps = {
        "reserve": lambda ledger: ask(ledger),
        "resume": lambda ledger: ask(ledger, "waiting"),
        "post": lambda ledger: ledger.post(waiting, b"answer"),
        "amend": lambda ledger: ledger.amend(limit=charge("9"), analysts={}),
        "new_snapshot": lambda ledger: ledger.new_snapshot(),
    }
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            ledger = Ledger.open(path)
            # a new log is synced once even if commits are not
            ask(ledger, "first", cost=charge("1/10"))
            fail_every_sync()
            steps[step](ledger)
            os.write(writing, b"answered")
        except LedgerUnavailable as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading) as told:
        said = told.read()
    assert "could not be brought to the disk" in said or "Input/output error" in said
    with Ledger.open(
        path
    ) as again:  # what was written may be there or not; nobody was told that it is
        again.verify()
        assert again.spent().amount <= charge("3/10").amount
        if step in ("reserve", "resume"):
            assert released(again, "waiting") == noisy(waiting)
