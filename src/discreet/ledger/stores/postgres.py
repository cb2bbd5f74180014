"""The ledger's tables in PostgreSQL: one budget for several servers, one writer at a time.

The only module that knows PostgreSQL. A transaction that writes first locks the one row of `book`:
so transactions that write run in the order of the chain, and each sees all rows before its own. A
commit returns when the server has it on disk. Each server keeps key and head files on its own disk.

No message has the address, or the database's own message, which may quote it.
"""

from __future__ import annotations

import ctypes
import logging
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.errors import LedgerUnavailable, UsageError
from discreet.extras import missing
from discreet.ledger.head import write_head
from discreet.ledger.place import Place
from discreet.ledger.stores.rights import FORMAT, quote, require_few_rights, require_tables
from discreet.ledger.stores.store import Kind, Records, RowText
from discreet.ledger.turns import Turns

if TYPE_CHECKING:
    import psycopg

_ROW = (int, str, bytes)
_PAGE = 1000  # rows that come at a time
_ALIVE: dict[str, Any] = {  # notice within half a minute that the server is gone
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_QUIET = logging.NullHandler()
_HELD = 30_000  # most milliseconds that a hanging server may hold the lock
_DURABLE = ("on", "remote_apply")
_BUSY = ("55P03", "57014")  # waited too long for a lock or a statement


def driver() -> Any:
    """Return psycopg, or say how to install it."""
    try:
        import psycopg
    except ImportError:
        raise missing("psycopg", what="A ledger in PostgreSQL") from None
    # silence its warnings: they name host and role
    logging.getLogger("psycopg").addHandler(_QUIET)
    return psycopg


def role_in(address: str | None) -> str:
    """Return the role that an address names."""
    parse = driver().conninfo.conninfo_to_dict
    with suppress(driver().Error):
        role = parse(address or "").get("user")
        if role:
            return str(role)
    raise UsageError(
        "Name the ledger as postgresql://role@host/database, with a role: in the policy, or with --move-to."
    )


def build(place: Place, records: Records) -> None:
    """Fill the empty tables of a new ledger, in one transaction."""
    tables = LedgerTables(place, timeout=10)
    try:
        with tables.transaction(write=True):
            if tables.count():
                raise _takeover(place)
            tables.fill(records)
    finally:
        tables.close()


def require_room(place: Place) -> None:
    """Refuse tables that hold a ledger already."""
    if is_there(place):
        raise _takeover(place)


def is_there(place: Place) -> bool:
    """Return True if the tables hold a ledger."""
    tables = LedgerTables(place, timeout=10)
    try:
        with tables.transaction(write=False):
            return bool(tables.count())
    finally:
        tables.close()


def _takeover(place: Place) -> LedgerUnavailable:
    return LedgerUnavailable(
        f"The PostgreSQL of {place.path.name} holds a ledger already, and a ledger is never overwritten: open it, or "
        "name another schema."
    )


class LedgerTables:
    """The open tables of a ledger. Each process has one connection, used by one thread at a time
    (`Turns`).

    A turn sends its statements at its end, so a turn that fails has written nothing.

    Forking: a child must neither use its parent's connection nor close it with a message to the
    server. It closes its own copy of the socket, and opens a connection when it needs one.
    """

    kind: Kind = "postgresql"

    def __init__(self, place: Place, *, timeout: float) -> None:
        assert place.address is not None
        self.path = place.path
        self._address = place.address
        self._timeout = timeout
        self._connection: psycopg.Connection[Any] | None = None
        self._process = os.getpid()
        self._schema = ""
        self._pending: list[tuple[str, tuple[object, ...]]] = []
        # the last row sent in this transaction: number, MAC, text of the head
        self._last: tuple[int, bytes, str] | None = None
        self._unsent: tuple[int, bytes, str] | None = None
        self.appended = self.written = (0, b"")
        self.undone = 0
        self._turns = self._fresh_turns()
        _TABLES.add(self)

    def _fresh_turns(self) -> Turns:
        return Turns(
            begin=self._begin,
            commit=self._commit,
            abandon=self._disconnect,
            broken=self._away,
            busy=self._busy,
        )

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[None]:
        """Run the block as one transaction; after a write returns, it is on the server's disk."""
        if self._process != os.getpid() and self._connection is not None:
            raise LedgerUnavailable(
                f"This process was forked in C with {self.path.name} open: open it after forking."
            )
        with self._turns.turn(write=write, timeout=self._timeout):
            self._pending, self._unsent = [], None
            yield
            self._send()

    def require_present(self) -> None:
        with self.transaction(write=False):
            present = self.count()
        if not present:
            raise LedgerUnavailable(
                f"There is no ledger {self.path.name} in its PostgreSQL. Restore it, or make a new one with discreet "
                "ledger POLICY --create; opening never makes one."
            )

    # --- reading ----------------------------------------------------------------------------------

    def rows(self, start: int) -> Iterator[RowText]:
        return self._pages(_ROW, "SELECT number, body, mac FROM {rows}", "number", start)

    def rows_between(self, first: int, last: int) -> Iterator[RowText]:
        where = "number BETWEEN %s AND %s ORDER BY number"
        return self._read(
            _ROW, f"SELECT number, body, mac FROM {{rows}} WHERE {where}", first, last
        )

    def count(self) -> int:
        counted: int = next(self._read((int,), "SELECT count(*) FROM {rows}"))[0]
        return counted

    def key(self, charge: int) -> bytes | None:
        found = next(
            self._read((bytes,), "SELECT sealed FROM {keys} WHERE charge = %s", charge), None
        )
        return None if found is None else found[0]

    def sealed_keys(self) -> Iterator[tuple[int, bytes]]:
        return self._pages((int, bytes), "SELECT charge, sealed FROM {keys}", "charge", 0)

    def post_of(self, charge: int) -> int | None:
        found = next(
            self._read((int,), "SELECT post FROM {answers} WHERE charge = %s", charge), None
        )
        return None if found is None else found[0]

    def answer(self, charge: int) -> bytes:
        found: bytes = next(
            self._read((bytes,), "SELECT answer FROM {answers} WHERE charge = %s", charge)
        )[0]
        return found

    def answers_to(self, question: bytes) -> list[tuple[int, int]]:
        where = "question = %s ORDER BY charge"
        return list(
            self._read((int, int), f"SELECT charge, post FROM {{answers}} WHERE {where}", question)
        )

    def answers(self) -> Iterator[tuple[int, int, bytes, bytes]]:
        columns = "charge, post, question, answer"
        return self._pages(
            (int, int, bytes, bytes), f"SELECT {columns} FROM {{answers}}", "charge", 0
        )

    def content(self, row: int) -> bytes:
        found = next(
            self._read((bytes,), "SELECT content FROM {contents} WHERE number = %s", row), None
        )
        return b"" if found is None else found[0]

    def contents(self) -> Iterator[tuple[int, bytes]]:
        return self._pages((int, bytes), "SELECT number, content FROM {contents}", "number", 0)

    def damage(self) -> str | None:
        """Check the tables and the role's rights again; the server checks its own pages."""
        with self._translate():
            self._require_sound(self._open())
        return None

    def sync_log(self) -> None:
        """Do nothing: what another transaction can see is on the server's disk."""

    # --- writing ----------------------------------------------------------------------------------

    def append(self, number: int, body: str, mac: bytes, *, head: str) -> None:
        self._write("INSERT INTO {rows} VALUES (%s, %s, %s)", number, body, mac)
        self.appended, self._unsent = (number, mac), (number, mac, head)

    def keep_key(self, charge: int, sealed: bytes) -> None:
        again = "ON CONFLICT (charge) DO UPDATE SET sealed = excluded.sealed"
        self._write(f"INSERT INTO {{keys}} VALUES (%s, %s) {again}", charge, sealed)

    def erase_key(self, charge: int) -> None:
        self._write("DELETE FROM {keys} WHERE charge = %s", charge)

    def keep_answer(self, charge: int, post: int, question: bytes, answer: bytes) -> None:
        self._write("INSERT INTO {answers} VALUES (%s, %s, %s, %s)", charge, post, question, answer)

    def keep_content(self, row: int, content: bytes) -> None:
        self._write("INSERT INTO {contents} VALUES (%s, %s)", row, content)

    def fill(self, records: Records) -> None:
        """Write all records of a ledger into empty tables."""
        parts = {
            "rows": records.rows,
            "keys": records.keys,
            "answers": records.answers,
            "contents": records.contents,
        }
        try:
            with self._translate(), self._open().cursor() as cursor:
                for table, found in parts.items():
                    with cursor.copy(self._named(f"COPY {{{table}}} FROM STDIN")) as copy:
                        for values in found:
                            copy.write_row(values)
        except BaseException:
            self._turns.fail_current(self._away())  # all or nothing
            raise

    def _write(self, statement: str, *values: object) -> None:
        self._pending.append((statement, values))

    def _send(self) -> None:
        """Send this turn's statements; require that each wrote one row."""
        if not self._pending:
            return
        with self._translate():
            connection = self._open()
            with connection.pipeline():
                sent = [
                    connection.execute(self._named(statement), values)
                    for statement, values in self._pending
                ]
        if any(cursor.rowcount != 1 for cursor in sent):
            swallowed = LedgerUnavailable(
                f"The PostgreSQL of {self.path.name} did not keep a row: see its triggers."
            )
            self._turns.fail_current(swallowed)
            raise swallowed
        self._last = self._unsent or self._last

    # --- the connection ---------------------------------------------------------------------------

    def close(self) -> None:
        self._disconnect()

    def _begin(self, write: bool) -> None:
        """Begin a transaction; connect again if the connection was lost while idle."""
        with self._translate():
            if self._connection is not None:
                try:
                    self._start(self._connection, write=write)
                    return
                except driver().OperationalError as error:
                    if not _is_lost(self._connection, error):
                        raise
                self._disconnect()
            self._connection = self._connect()
            self._start(self._connection, write=write)

    def _start(self, connection: psycopg.Connection[Any], *, write: bool) -> None:
        # READ COMMITTED: a writer has no database snapshot from before the lock, so each of its
        # statements sees all rows written before.
        if not write:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return
        with connection.pipeline():
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
            locked = connection.execute(self._named("SELECT format FROM {book} FOR UPDATE"))
        if locked.fetchall() != [(FORMAT,)]:
            raise LedgerUnavailable(
                f"{self.path.name} is not a ledger of this version of discreet: upgrade it."
            )

    def _commit(self) -> None:
        with self._translate():
            if self._open().execute("COMMIT").statusmessage != "COMMIT":
                raise self._away()
            if self._last is not None:
                number, mac, head = self._last
                self.written, self._last = (number, mac), None
                write_head(self.path, head)

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        connection: psycopg.Connection[Any] = psycopg.connect(
            self._address,
            autocommit=True,
            client_encoding="utf8",
            application_name="discreet ledger",
            connect_timeout=max(2, round(self._timeout)),
            **_ALIVE,
        )
        try:
            asked = "current_schema(), current_setting('synchronous_commit')"
            schema, durable = connection.execute(f"SELECT {asked}").fetchone() or (None, "")
            self._schema = schema or ""  # NULL if no schema of the role's search_path exists
            settings = {
                "search_path": "''",
                "lock_timeout": max(1, round(self._timeout * 1000)),
                "statement_timeout": max(_HELD, round(self._timeout * 2000)),
                "idle_in_transaction_session_timeout": _HELD,
                "synchronous_commit": durable if durable in _DURABLE else "on",
            }
            with connection.pipeline():
                for name, value in settings.items():
                    connection.execute(f"SET {name} = {value}")
            self._require_sound(connection)
        except BaseException:
            connection.close()
            raise
        self._process = os.getpid()
        return connection

    def _require_sound(self, connection: psycopg.Connection[Any]) -> None:
        """Refuse a server without fsync, a standby, tables that are not a ledger's, and a role with
        too many rights.
        """
        name = self.path.name
        asked = "current_setting('fsync'), pg_is_in_recovery()"
        synced, standby = connection.execute(f"SELECT {asked}").fetchone() or ("off", True)
        if synced != "on":
            raise LedgerUnavailable(
                f"The PostgreSQL of {name} runs with fsync = off: a crash would forget what was charged. Set it to on."
            )
        if standby:
            raise self._standby()
        require_tables(connection, self._schema, name=name)
        require_few_rights(connection, self._schema, name=name)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._pending, self._last = [], None
        self.undone += 1
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            raise self._away()
        return self._connection

    def _named(self, statement: str) -> Any:
        home = quote(self._schema)
        tables = ("book", "rows", "keys", "answers", "contents")
        return statement.format(**{table: f"{home}.{table}" for table in tables})

    def _read(self, types: tuple[type, ...], statement: str, *values: object) -> Iterator[Any]:
        with self._translate():
            found = self._open().execute(self._named(statement), values, binary=True).fetchall()
        for row in found:
            if tuple(map(type, row)) != types:
                raise LedgerUnavailable(f"{self.path.name} {_DAMAGED}. Nothing was answered.")
            yield row

    def _pages(
        self, types: tuple[type, ...], statement: str, key: str, start: int
    ) -> Iterator[Any]:
        """Read a table in the order of its key, some rows at a time."""
        page = f"{statement} WHERE {key} >= %s ORDER BY {key} LIMIT {_PAGE}"
        while True:
            found = 0
            for row in self._read(types, page, start):
                found, start = found + 1, row[0] + 1
                yield row
            if found < _PAGE:
                return

    @contextmanager
    def _translate(self) -> Iterator[None]:
        """Turn every failure of the server into one sentence, and abandon the transaction."""
        try:
            yield
        except driver().Error as error:
            sentence = self._unavailable(getattr(error, "sqlstate", None) or "")
            self._turns.fail_current(sentence)
            raise sentence from None  # the database's own message may quote its address

    def _away(self) -> LedgerUnavailable:
        return self._unavailable("")

    def _busy(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path.name} has been locked by another process for {self._timeout:g} seconds: let it finish or "
            "stop it, then ask again. Nothing was answered."
        )

    def _standby(self) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"The PostgreSQL of {self.path.name} {_READS}. Nothing was answered."
        )

    def _unavailable(self, state: str) -> LedgerUnavailable:
        if state in _BUSY:
            return self._busy()
        remedy = next(remedy for start, remedy in _REMEDIES if state.startswith(start))
        return LedgerUnavailable(
            f"The PostgreSQL of {self.path.name} {remedy}. Nothing was answered."
        )


_DAMAGED = "is damaged: restore it from a backup (docs/ledger.md, Restore)"
_READS = "can only be read, it is a standby: name the primary in the policy"
_REMEDIES = (  # the start of an SQLSTATE, and what to do
    ("53100", "cannot grow, its disk is full: free some space, then ask again"),
    ("53", "has no connection or memory left: free some, then ask again"),
    ("25006", _READS),
    ("42501", "denies a right to the role: run what discreet ledger POLICY --setup prints"),
    ("42P01", "has lost a table: restore the ledger from a backup (docs/ledger.md, Restore)"),
    (
        "23505",
        "has a row that was not there a moment ago: something other than discreet wrote to it",
    ),
    ("58", "could not be brought to its disk: check the disk, then ask again"),
    ("XX", _DAMAGED),
    ("", "cannot be reached, or not with this address and role: ask again when it is back"),
)


def _is_lost(connection: psycopg.Connection[Any], error: psycopg.Error) -> bool:
    """Return True if a connection ended while it was idle; then nothing was done on it."""
    return connection.closed or (error.sqlstate or "57P").startswith(("57P", "08"))


_TABLES: weakref.WeakSet[LedgerTables] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for tables in list(_TABLES):
        connection, tables._connection = tables._connection, None
        if connection is not None:
            with suppress(Exception):
                os.close(connection.pgconn.socket)
            # Never close it: the server would end the parent's session.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        tables._disconnect()
        tables._turns = tables._fresh_turns()
        tables._process = os.getpid()


os.register_at_fork(after_in_child=_after_fork_in_child)
