"""Keep the answers that were given over HTTP on disk, so that a retry gets the same bytes, and a
link opens its answer again.

The file is beside the ledger (`town.ledger.answers`, mode 0600). It spends nothing, and the ledger
remains the only record: if the file is lost, a repeated question gets the same numbers from the
ledger, for free.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from discreet.server.fresh import fresh_text

MOST = 5_000  # answers that are kept for one user; the oldest are deleted first
MOST_BYTES = 1 << 30  # bytes of one user's answers
OFTEN = 50  # after so many new answers, delete those beyond MOST_BYTES


class Unkept(Exception):
    """The file cannot be used: full, damaged or not ours."""


_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    number INTEGER PRIMARY KEY, link TEXT NOT NULL UNIQUE, user TEXT NOT NULL, key TEXT, digest BLOB NOT NULL,
    moment REAL NOT NULL, question TEXT NOT NULL, epsilon TEXT, margin TEXT, cost TEXT NOT NULL, rows INTEGER NOT NULL,
    content BLOB NOT NULL, UNIQUE (user, key)
);
CREATE TABLE IF NOT EXISTS descriptions (
    number INTEGER PRIMARY KEY, link TEXT NOT NULL UNIQUE, user TEXT NOT NULL, moment REAL NOT NULL,
    name TEXT NOT NULL, content BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_of_a_user ON answers (user, number);
"""
_HEAD = "link, user, key, digest, moment, question, epsilon, margin, cost, rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """One answer: who asked what, and its content as an Arrow stream. `cost` is JSON."""

    link: str
    user: str
    key: str | None
    digest: bytes = field(repr=False)
    moment: float
    question: str
    epsilon: str | None
    margin: str | None
    cost: str
    rows: int
    content: bytes = field(repr=False, default=b"")


class Answers:
    """The file of kept answers of one policy. Any thread may use it."""

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(f"{ledger.name}.answers")
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._kept = 0

    def keep(self, answer: KeptAnswer) -> None:
        """Store an answer, and delete the user's oldest answers if there are too many."""
        fields = f"{_HEAD}, content".split(", ")
        values = [getattr(answer, name) for name in fields]
        marks = ", ".join("?" for _ in fields)
        with self._open() as connection:
            connection.execute(
                f"INSERT INTO answers ({', '.join(fields)}) VALUES ({marks})", values
            )
            connection.execute(
                "DELETE FROM answers WHERE user = ?1 AND number <= "
                "(SELECT number FROM answers WHERE user = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                (answer.user, MOST),
            )
            self._kept += 1
            if self._kept % OFTEN == 0:
                connection.execute(
                    "DELETE FROM answers WHERE number IN (SELECT number FROM (SELECT number, SUM(length(content)) "
                    "OVER (ORDER BY number DESC) AS size FROM answers WHERE user = ?) WHERE size > ?)",
                    (answer.user, MOST_BYTES),
                )

    def by_key(self, user: str, key: str) -> KeptAnswer | None:
        """Return the answer to a user's earlier request with this key."""
        return self._one("user = ? AND key = ?", (user, key))

    def by_link(self, link: str) -> KeptAnswer | None:
        """Return the answer with this link. Nobody can guess a link."""
        return self._one("link = ?", (link,))

    def of(self, user: str, *, most: int) -> list[KeptAnswer]:
        """Return a user's answers without their contents, newest first."""
        with self._open() as connection:
            found = connection.execute(
                f"SELECT {_HEAD} FROM answers WHERE user = ? ORDER BY number DESC LIMIT ?",
                (user, most),
            ).fetchall()
        return [_kept(row) for row in found]

    def keep_description(self, user: str, table: str, content: bytes) -> str:
        """Store a description of a table; return its link."""
        link = new_link()
        with self._open() as connection:
            connection.execute(
                "INSERT INTO descriptions (link, user, moment, name, content) VALUES (?, ?, ?, ?, ?)",
                (link, user, now(), table, content),
            )
        return link

    def description(self, link: str) -> bytes | None:
        """Return the description with this link."""
        with self._open() as connection:
            row = connection.execute(
                "SELECT content FROM descriptions WHERE link = ?", (link,)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def descriptions(self) -> list[tuple[str, str, float]]:
        """Return link, table and moment of every description, newest first."""
        with self._open() as connection:
            found = connection.execute(
                "SELECT link, name, moment FROM descriptions ORDER BY number DESC LIMIT 1000"
            )
            return [
                (str(link), str(name), float(moment)) for link, name, moment in found.fetchall()
            ]

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _one(self, where: str, values: Sequence[str]) -> KeptAnswer | None:
        with self._open() as connection:
            row = connection.execute(
                f"SELECT {_HEAD}, content FROM answers WHERE {where}", values
            ).fetchone()
        return None if row is None else _kept(row)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open a transaction. The first one creates the file."""
        with self._lock:
            try:
                if self._connection is None:
                    os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
                    connection = sqlite3.connect(self._path, check_same_thread=False, timeout=10)
                    connection.execute("PRAGMA journal_mode = WAL")
                    # a crash may lose the last answers: the ledger still has their numbers
                    connection.execute("PRAGMA synchronous = NORMAL")
                    connection.executescript(_SCHEMA)
                    self._connection = connection
                with self._connection as transaction:
                    yield transaction
            except (sqlite3.Error, OSError):
                raise Unkept from None


def _kept(row: Sequence[object]) -> KeptAnswer:
    names = [*_HEAD.split(", "), "content"]
    return KeptAnswer(**dict(zip(names, row, strict=False)))  # type: ignore[arg-type]


def new_link() -> str:
    """Return a link that nobody can guess."""
    return fresh_text(18)


def now() -> float:
    return time.time()
