"""Questions on a snapshot in Postgres: read-only, with a limit of time, as a role that can do
nothing else.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, ClassVar

from discreet.algebra import Numbers
from discreet.engines.layout import OWNER
from discreet.engines.limits.overrun import Overrun
from discreet.engines.postgres.kinds import Tables
from discreet.engines.postgres.rights import require_few_rights
from discreet.engines.postgres.server import (
    PUBLIC_TABLES,
    RowFailure,
    connect,
    cut_off,
    one_sentence,
    schema_of,
    twin_of,
)
from discreet.engines.postgres.spelling import PostgresSpelling
from discreet.engines.quoting import name
from discreet.engines.readers.copied import copy_rows
from discreet.errors import EngineFailure, UsageError
from discreet.vault.exact import Exact

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.engines.postgres.server import Link

_log = logging.getLogger("discreet.engine")
_MOST_SHAPES = 256  # statements of which the columns are remembered; then all are forgotten
_SPARE = 8  # connections that are kept for the next question
_CHECK = 60  # seconds for a question without rows
_ANSWERS = 5.0  # seconds in which a connection that is kept answers
_GRACE = 5.0  # seconds beyond the limit in which the server stops a question by itself


class PostgresEngine:
    """One snapshot. Several threads may ask: each question has a connection of its own while it
    runs.
    """

    in_passes: ClassVar[bool] = False  # Postgres goes to its disk where groups are many

    def __init__(self, address: str, number: int, tables: Tables, *, memory: int) -> None:
        self._address = address
        self._number = number
        self._tables = tables
        self._memory = memory
        self._process = os.getpid()
        self._lock = Lock()
        self._idle: list[Link] = []
        self._schemas: dict[str, pa.Schema] = {}
        import psycopg

        connection = self._connected()
        try:
            require_few_rights(connection)
        except (psycopg.Error, UsageError) as error:
            connection.close()
            if isinstance(error, UsageError):
                raise
            raise UsageError(
                "The rights of the reader's role could not be read from Postgres."
            ) from None
        self._idle.append(connection)

    # --- asking -----------------------------------------------------------------------------------

    def fetch(self, query: Numbers, seconds: float) -> Exact:
        import pyarrow as pa

        return Exact(pa.concat_tables(list(self._fetched(query, seconds, None))))

    def fetch_parts(self, query: Numbers, seconds: float, rows: int) -> Exact:
        return Exact(self._fetched(query, seconds, rows))

    def _fetched(self, query: Numbers, seconds: float, rows: int | None) -> Iterator[pa.Table]:
        """Return the result in tables of so many rows; if the engine fails on a value, that of the
        careful form.
        """
        began = time.monotonic()
        begun = False
        sql = self.sql(query)
        try:
            for part in self._read(sql, seconds, rows):
                begun = True
                yield part
            return
        except RowFailure:
            total = PostgresSpelling.of(query, self._tables, careful=True).numbers(query)
            # what groups rows has looked at all of them before the first part
            if begun or total == sql:
                raise EngineFailure from None
        yield from self._read(total, seconds - (time.monotonic() - began), rows)

    def _read(self, sql: str, seconds: float, rows: int | None) -> Iterator[pa.Table]:
        import pyarrow as pa

        schema = self._schema(sql)
        with (
            self._linked(seconds) as connection,
            one_sentence(sql),
            _reading(connection, seconds, schema_of(self._number)),
        ):
            try:
                for batch in copy_rows(connection, sql, schema):
                    table = pa.Table.from_batches([batch], schema)
                    for start in range(0, table.num_rows, rows or table.num_rows):
                        yield table.slice(start, rows)
            except pa.ArrowInvalid as error:
                _log.error("%s in the result of: %s", type(error).__name__, sql)
                raise EngineFailure from None
        yield schema.empty_table()

    def _schema(self, sql: str) -> pa.Schema:
        """Return the columns of a result and their types: from the same question to tables without
        rows.
        """
        found = self._schemas.get(sql)
        if found is None:
            with (
                self._linked(_CHECK) as connection,
                one_sentence(sql),
                _reading(connection, _CHECK, twin_of(self._number)),
            ):
                described = connection.execute(sql.encode()).description or []
                found = _schema([(column.name, column.type_code) for column in described])
            if len(self._schemas) >= _MOST_SHAPES:
                self._schemas.clear()
            self._schemas[sql] = found
        return found

    # --- before asking ----------------------------------------------------------------------------

    def sql(self, query: Numbers) -> str:
        return PostgresSpelling.of(query, self._tables).numbers(query)

    def check(self, query: Numbers) -> None:
        """Ask the tables without rows: what fails there does not depend on data."""
        self._schema(self.sql(query))

    def columns(self, table: str) -> dict[str, str]:
        return {
            column: kind for column, kind in self._tables.get(table, {}).items() if column != OWNER
        }

    def public_table(self, name_: str) -> pa.Table:
        import pyarrow as pa

        sql = f"SELECT content FROM {schema_of(self._number)}.{name(PUBLIC_TABLES)} WHERE name = %s"
        with self._linked(_CHECK) as connection, one_sentence(sql):
            rows = connection.execute(sql.encode(), [name_]).fetchall()
        if not rows or not isinstance(rows[0][0], bytes):
            raise EngineFailure
        return pa.ipc.open_stream(rows[0][0]).read_all()

    # --- connections ------------------------------------------------------------------------------

    def close(self) -> None:
        if self._process == os.getpid():
            with self._lock:
                idle = self._idle
                self._idle = []
            for connection in idle:
                connection.close()

    @contextmanager
    def _linked(self, seconds: float) -> Iterator[Link]:
        """Hold a connection that nobody else uses meanwhile, hardly longer than so many seconds;
        throw it away where anything went wrong.
        """
        if self._process != os.getpid():  # the parent speaks on the same socket
            _log.error(
                "The snapshot was opened before a fork. Open the policy again in the new process."
            )
            raise EngineFailure
        connection = self._spare()
        if connection is None:
            try:
                connection = self._connected()
            except UsageError:  # which is for who opens a policy, and is in the log
                raise EngineFailure from None
        try:
            with cut_off(connection, seconds + _GRACE):
                yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle) < _SPARE and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def _spare(self) -> Link | None:
        """Take a connection of an earlier question that still answers: the server may have been
        started anew since, or ended it, and the question is paid for by now.
        """
        import psycopg

        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            try:
                with cut_off(connection, _ANSWERS):
                    connection.execute("SELECT 1")
                return connection
            except (psycopg.Error, Overrun):
                connection.close()

    def _connected(self) -> Link:
        import psycopg

        connection = connect(self._address, what="the reader (engine.reader)")
        settings = {
            "default_transaction_read_only": "on",
            # a question sorts or hashes in about eight places
            "work_mem": f"{max(4_096, self._memory // 8_000)}kB",
            "idle_in_transaction_session_timeout": "10min",
        }
        try:
            for setting, value in settings.items():
                connection.execute("SELECT set_config(%s, %s, false)", [setting, value])
        except psycopg.Error:
            connection.close()
            raise EngineFailure from None
        return connection


@contextmanager
def _reading(connection: Link, seconds: float, schema: str) -> Iterator[None]:
    """Open one transaction that reads a schema and ends in time."""
    if seconds <= 0:
        raise Overrun
    connection.execute("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    # Ours come first: a table may have the name of one of the catalog's.
    connection.execute(f"SET LOCAL search_path = {schema}, pg_catalog".encode())
    connection.execute(f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}".encode())
    yield
    connection.execute("ROLLBACK")


def _schema(columns: list[tuple[str, int]]) -> pa.Schema:
    """Return Arrow's types for those of a result."""
    import pyarrow as pa

    kinds = {
        **dict.fromkeys((20, 21, 23), pa.int64()),  # int8, int2, int4
        16: pa.bool_(),
        **dict.fromkeys((700, 701), pa.float64()),
        1082: pa.date32(),
        1114: pa.timestamp("us"),
        1700: pa.decimal128(38, 0),  # numeric: sums of whole numbers
    }
    return pa.schema([(column, kinds.get(kind, pa.string())) for column, kind in columns])
