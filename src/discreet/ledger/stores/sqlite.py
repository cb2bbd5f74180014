"""The ledger's file: SQLite with a write-ahead log and one writer at a time; a commit is fsynced.

The only module that knows SQLite. It keeps bytes and does not interpret them. Every failure of the
file is one `LedgerUnavailable` that says what to do.

Beside the ledger `x` lie `x.key` (see `chain`), `x.head` (the last row, so that a lost log or an
older copy is noticed) and, while it is in use, SQLite's own `x-wal` and `x-shm`.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from discreet.errors import LedgerUnavailable
from discreet.ledger.chain import sync_folder, write_new
from discreet.ledger.head import write_head
from discreet.ledger.stores.store import Kind, Records, RowText

FORMAT = 1
_ROW = (int, str, bytes)
_APPLICATION = 0x64736372  # "dscr"
_SCHEMA = {  # (kind, name, table): definition
    (
        "table",
        "rows",
        "rows",
    ): "CREATE TABLE rows (number INTEGER PRIMARY KEY, body TEXT NOT NULL, mac BLOB NOT NULL)",
    (
        "table",
        "keys",
        "keys",
    ): "CREATE TABLE keys (charge INTEGER PRIMARY KEY, sealed BLOB NOT NULL)",
    ("table", "answers", "answers"): "CREATE TABLE answers "
    "(charge INTEGER PRIMARY KEY, post INTEGER NOT NULL, question BLOB NOT NULL, answer BLOB NOT NULL)",
    (
        "table",
        "contents",
        "contents",
    ): "CREATE TABLE contents (row INTEGER PRIMARY KEY, content BLOB NOT NULL)",
    ("index", "questions", "answers"): "CREATE INDEX questions ON answers (question)",
    ("trigger", "rows_are_kept", "rows"): "CREATE TRIGGER rows_are_kept BEFORE DELETE ON rows "
    "BEGIN SELECT RAISE(ABORT, 'rows are kept'); END",
    (
        "trigger",
        "rows_never_change",
        "rows",
    ): "CREATE TRIGGER rows_never_change BEFORE UPDATE ON rows "
    "BEGIN SELECT RAISE(ABORT, 'rows never change'); END",
}
_SETTINGS = (
    "PRAGMA synchronous=FULL",
    "PRAGMA fullfsync=ON",
    "PRAGMA checkpoint_fullfsync=ON",
    "PRAGMA secure_delete=ON",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
)


def companions(ledger: Path) -> tuple[Path, Path]:
    return ledger.with_name(ledger.name + "-wal"), ledger.with_name(ledger.name + "-shm")


def build(path: Path, records: Records) -> None:
    """Write a new file; it gets its name only when it is complete and on disk."""
    new = path.with_name(path.name + ".new")
    write_new(new, b"")
    try:
        connection = sqlite3.connect(new, isolation_level=None)
        try:
            marks = (f"PRAGMA application_id={_APPLICATION}", f"PRAGMA user_version={FORMAT}")
            for statement in ("BEGIN", *marks, *_SCHEMA.values()):
                connection.execute(statement)
            connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", records.rows)
            connection.executemany("INSERT INTO keys VALUES (?, ?)", records.keys)
            connection.executemany("INSERT INTO answers VALUES (?, ?, ?, ?)", records.answers)
            connection.executemany("INSERT INTO contents VALUES (?, ?)", records.contents)
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode=WAL")
        finally:
            connection.close()
        new.rename(path)
        sync_folder(path.parent)
    except BaseException as error:
        for leftover in (new, *companions(new)):
            leftover.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise LedgerUnavailable(f"{path.name} cannot be made here: {error}.") from error
        raise


class File:
    """An open ledger file. Each process has one connection, used by one thread at a time.

    Forking: SQLite's locks belong to a process. A child that inherited an open connection would
    assume locks that it does not hold. So every connection is closed before a fork, and opened
    again at the next use, in parent and child.
    """

    kind: Kind = "file"

    def __init__(self, path: Path, *, timeout: float) -> None:
        self.path = path
        self._log, shared = companions(path)
        self._paths = tuple(map(str, (path, self._log, shared)))
        self._timeout = timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = os.getpid()
        self._identity: tuple[tuple[int, int], ...] = ()
        self._schema_version = -1
        self._new_head = ""
        # the last row of this transaction; the last row that this process committed
        self.appended = self.written = (0, b"")
        self.undone = 0
        _FILES.add(self)

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Run the block as one transaction; after a write returns, it is on disk."""
        acquired = False
        try:
            acquired = self._lock.acquire(timeout=self._timeout)
            if not acquired:
                raise self._busy()
            with self._translate():
                connection = self._connected()
                try:
                    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    self._require_same_files(connection)
                    self._require_schema(connection)
                    self._new_head = ""
                    yield
                    connection.execute("COMMIT")
                    if self._new_head:
                        self.written = self.appended
                        self._require_same_files(connection)
                        write_head(self.path, self._new_head)
                finally:
                    if self._connection is connection and connection.in_transaction:
                        connection.execute("ROLLBACK")
        finally:
            if acquired:
                self._lock.release()

    @contextmanager
    def _translate(self) -> Iterator[None]:
        """Turn every failure of the file into one sentence, and drop the connection."""
        try:
            yield
        except LedgerUnavailable:
            self._disconnect()
            raise
        except sqlite3.Error as error:
            self._disconnect()
            raise self._unavailable(error) from error
        except UnicodeError as error:  # SQLite's message about a damaged table may be no valid text
            self._disconnect()
            raise LedgerUnavailable(
                f"{self.path.name} {_DAMAGED}. Nothing was answered."
            ) from error
        except OSError as error:
            self._disconnect()
            raise LedgerUnavailable(
                f"{self.path.name}: {error.strerror}. Nothing was answered."
            ) from error

    def require_present(self) -> None:
        if not self.path.is_file():
            raise LedgerUnavailable(
                f"There is no ledger {self.path.name}. Restore it with its .key and .head, or make a new one with "
                "discreet ledger POLICY --create; opening never makes one."
            )

    def rows(self, start: int) -> Iterator[RowText]:
        return self._read(
            _ROW, "SELECT number, body, mac FROM rows WHERE number >= ? ORDER BY number", start
        )

    def rows_between(self, first: int, last: int) -> Iterator[RowText]:
        where = "number BETWEEN ? AND ? ORDER BY number"
        return self._read(_ROW, f"SELECT number, body, mac FROM rows WHERE {where}", first, last)

    def count(self) -> int:
        counted: int = next(self._read((int,), "SELECT count(*) FROM rows"))[0]
        return counted

    def append(self, number: int, body: str, mac: bytes, *, head: str) -> None:
        self._write("INSERT INTO rows VALUES (?, ?, ?)", number, body, mac)
        self.appended, self._new_head = (number, mac), head  # in one line: see Balance.add

    def keep_key(self, charge: int, sealed: bytes) -> None:
        self._write("INSERT OR REPLACE INTO keys VALUES (?, ?)", charge, sealed)

    def erase_key(self, charge: int) -> None:
        self._write("DELETE FROM keys WHERE charge = ?", charge)

    def key(self, charge: int) -> bytes | None:
        found = next(self._read((bytes,), "SELECT sealed FROM keys WHERE charge = ?", charge), None)
        return None if found is None else found[0]

    def sealed_keys(self) -> Iterator[tuple[int, bytes]]:
        return self._read((int, bytes), "SELECT charge, sealed FROM keys ORDER BY charge")

    def keep_answer(self, charge: int, post: int, question: bytes, answer: bytes) -> None:
        self._write("INSERT INTO answers VALUES (?, ?, ?, ?)", charge, post, question, answer)

    def post_of(self, charge: int) -> int | None:
        """Return the number of the row that posted this charge's answer, or None."""
        found = next(self._read((int,), "SELECT post FROM answers WHERE charge = ?", charge), None)
        return None if found is None else found[0]

    def answer(self, charge: int) -> bytes:
        found: bytes = next(
            self._read((bytes,), "SELECT answer FROM answers WHERE charge = ?", charge)
        )[0]
        return found

    def answers_to(self, question: bytes) -> list[tuple[int, int]]:
        """Return the charges that answered this question, each with the row that posted it."""
        where = "question = ? ORDER BY charge"
        return list(
            self._read((int, int), f"SELECT charge, post FROM answers WHERE {where}", question)
        )

    def answers(self) -> Iterator[tuple[int, int, bytes, bytes]]:
        types = (int, int, bytes, bytes)
        return self._read(
            types, "SELECT charge, post, question, answer FROM answers ORDER BY charge"
        )

    def keep_content(self, row: int, content: bytes) -> None:
        """Keep the content of a stream's row, which is too long for the row itself."""
        self._write("INSERT INTO contents VALUES (?, ?)", row, content)

    def content(self, row: int) -> bytes:
        found = next(self._read((bytes,), "SELECT content FROM contents WHERE row = ?", row), None)
        return b"" if found is None else found[0]

    def contents(self) -> Iterator[tuple[int, bytes]]:
        return self._read((int, bytes), "SELECT row, content FROM contents ORDER BY row")

    def damage(self) -> str | None:
        """Return what SQLite finds wrong with its pages and indexes, in its words, or None."""
        found: str = next(self._read((str,), "PRAGMA integrity_check(1)"))[0]
        return None if found == "ok" else found

    def sync_log(self) -> None:
        """Fsync the log: a process that was killed between write and fsync may have left rows that
        are not on disk.
        """
        # Never open the ledger itself: closing it would drop SQLite's locks.
        descriptor = os.open(self._log, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def __del__(self) -> None:
        """Close now: a connection refers to itself, so it would wait for the garbage collector."""
        if self._process == os.getpid():
            self._disconnect()

    def _read(self, types: tuple[type, ...], statement: str, *values: object) -> Iterator[Any]:
        for found in self._run(statement, *values):
            if tuple(map(type, found)) != types:
                raise LedgerUnavailable(f"{self.path.name} {_DAMAGED}. Nothing was answered.")
            yield found

    def _write(self, statement: str, *values: object) -> None:
        self._run(statement, *values)

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        if self._connection is None or not self._connection.in_transaction:
            raise RuntimeError("a ledger's file is used inside a transaction only")
        return self._connection.execute(statement, values)

    def _connected(self) -> sqlite3.Connection:
        if self._process != os.getpid() and self._connection is not None:
            _abandon(self._connection)
            raise LedgerUnavailable(
                f"This process was forked in C with {self.path.name} open: open it after forking."
            )
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self.require_present()
        address = f"file:{quote(str(self.path))}?mode=rw"
        connection = sqlite3.connect(
            address, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        try:
            marks = [
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("application_id", "user_version")
            ]
            if marks != [_APPLICATION, FORMAT]:
                raise LedgerUnavailable(
                    f"{self.path.name} is not a ledger of this version of discreet: check the path in the policy."
                )
            if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                raise LedgerUnavailable(
                    f"{self.path.name} must be on a local disk, where SQLite can keep its log."
                )
            for setting in _SETTINGS:
                connection.execute(setting)
            self._schema_version = -1
            # this creates the log
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._identity = self._files()
        except BaseException:
            connection.close()
            raise
        self._process = os.getpid()
        return connection

    def _disconnect(self) -> None:
        connection = self._connection
        self._connection = None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _files(self) -> tuple[tuple[int, int], ...]:
        stats = [os.stat(path) for path in self._paths]
        return tuple((found.st_dev, found.st_ino) for found in stats)

    def _require_same_files(self, connection: sqlite3.Connection) -> None:
        """Refuse to use a file or log that was renamed or removed: nobody else would see it."""
        with suppress(FileNotFoundError):
            if self._files() == self._identity:
                return
        self._connection = None
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        _abandon(connection)
        raise LedgerUnavailable(
            f"{self.path.name} or its log was removed or replaced while in use: put the newest copy back, then ask."
        )

    def _require_schema(self, connection: sqlite3.Connection) -> None:
        """Refuse other tables, indexes or triggers than a ledger's: a trigger could drop rows."""
        version = connection.execute("PRAGMA schema_version").fetchone()[0]
        if version == self._schema_version:
            return
        found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
        if len(found) != len(_SCHEMA) or {tuple(names): sql for *names, sql in found} != _SCHEMA:
            raise LedgerUnavailable(
                f"{self.path.name} has other tables than a ledger has: restore it from a backup. Nothing is answered."
            )
        self._schema_version = version

    def _busy(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path.name} has been locked by another process for {self._timeout:g} seconds: let it finish or "
            "stop it, then ask again. Nothing was answered."
        )

    def _unavailable(self, error: sqlite3.Error) -> LedgerUnavailable:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return self._busy()
        for start, remedy in _REMEDIES:
            if name.startswith(start):
                return LedgerUnavailable(f"{self.path.name} {remedy}. Nothing was answered.")
        return LedgerUnavailable(
            f"{self.path.name} cannot be used ({error}): see docs/ledger.md. Nothing was answered."
        )


_DAMAGED = "is damaged: restore it from a backup (docs/ledger.md, Restore)"
_REMEDIES = (
    ("SQLITE_FULL", "cannot grow, the disk is full: free some space, then ask again"),
    (
        "SQLITE_IOERR",
        "could not be brought to the disk: check the disk and the free space, then ask again",
    ),
    ("SQLITE_READONLY", "cannot be written: make it and its folder writable for this user"),
    (
        "SQLITE_CANTOPEN",
        "cannot be opened: make it and its folder readable and writable for this user",
    ),
    ("SQLITE_PERM", "cannot be opened: make it and its folder readable and writable for this user"),
    ("SQLITE_CORRUPT", _DAMAGED),
    (
        "SQLITE_NOTADB",
        "is damaged or not a ledger: restore it from a backup (docs/ledger.md, Restore)",
    ),
)

_FILES: weakref.WeakSet[File] = weakref.WeakSet()
_FORKING = threading.Lock()
_HELD: list[File] = []


def _abandon(connection: sqlite3.Connection) -> None:
    """Keep this connection open for ever: closing it would remove, by name, a log that is no longer
    its own.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _close_all() -> None:
    """Close all files at exit: the last to close merges the log into the ledger, which leaves one
    file.
    """
    for file in list(_FILES):
        if file._process == os.getpid() and file._lock.acquire(blocking=False):
            file._disconnect()
            file._lock.release()


def _before_fork() -> None:
    _FORKING.acquire()
    for file in sorted(_FILES, key=id):
        file._lock.acquire()
        file._disconnect()
        _HELD.append(file)


def _after_fork_in_parent() -> None:
    while _HELD:
        _HELD.pop()._lock.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    while _HELD:
        _HELD.pop()._lock = threading.RLock()
    _FORKING.release()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
atexit.register(_close_all)
