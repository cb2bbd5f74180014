"""The default engine: it answers questions on a prepared snapshot, in an embedded DuckDB that is
locked down.

The first defence is that only SQL from our own trees runs here. The locked configuration is the
second. DuckDB does not claim to protect data from those who may write SQL: with everything turned
off, it still tells exact sizes and statistics of tables.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from discreet import arrow
from discreet.algebra import Aggregate, Numbers
from discreet.engines.duckdb.locked import COMMON_PARTS, STATISTICS, connect, lock
from discreet.engines.duckdb.shape import shape
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.duckdb.twin import empty_twin
from discreet.engines.layout import OWNER, SCHEMAS, public
from discreet.engines.limits.overrun import Overrun
from discreet.engines.limits.watch import interrupt_after
from discreet.engines.quoting import literal
from discreet.engines.spelling import Spelling
from discreet.errors import EngineFailure, UsageError
from discreet.policy.policy import Policy
from discreet.vault.exact import Exact

if TYPE_CHECKING:
    import pyarrow as pa

_log = logging.getLogger("discreet.engine")
_ATTACHED = "snapshot"
_CTRL_C = "Query interrupted"  # what DuckDB makes of a KeyboardInterrupt while it runs a statement
PLAIN = Spelling()
CAREFUL = Spelling(careful=True)
MOST_BINDING = 256  # statements that are remembered to bind; then all are forgotten


@contextmanager
def _one_sentence(sql: str) -> Iterator[None]:
    """Replace errors of DuckDB: by Overrun if it took too much time or memory, else by
    EngineFailure.
    """
    import duckdb

    try:
        yield
    except (duckdb.InterruptException, duckdb.OutOfMemoryException) as error:
        _log.error("%s in: %s", type(error).__name__, sql)
        raise Overrun from None
    except Exception as error:
        if type(error) is RuntimeError and str(error) == _CTRL_C:
            # no failure of the engine: the charge can be resumed (S8)
            raise KeyboardInterrupt from None
        _log.error("%s in: %s", type(error).__name__, sql)
        raise EngineFailure from None


def _statement(cursor: Any, sql: str, begin: str) -> Any:
    """Parse one SELECT."""
    import duckdb

    if begin:
        cursor.execute(begin)
    statements = cursor.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise duckdb.InvalidInputException("not one SELECT")
    return statements[0]


def _one_row(cursor: Any, statement: Any) -> pa.Table:
    """Return the whole numbers of a statement that has one row: sooner there than by way of Arrow,
    which plans it twice.
    """
    import pyarrow as pa

    [row] = cursor.execute(statement).fetchall()
    kinds = (
        pa.int64() if each is None or -(2**63) <= each < 2**63 else pa.decimal128(38, 0)
        for each in row
    )
    columns = [arrow.array([each], kind) for each, kind in zip(row, kinds, strict=True)]
    return pa.table(columns, names=[column[0] for column in cursor.description])


class DuckDB:
    """One snapshot, opened read-only. Safe to use from several threads; open it again after a
    fork.
    """

    in_passes: ClassVar[bool] = True

    def __init__(self, path: str | Path, *, memory: int, threads: int | None = None) -> None:
        import duckdb

        self._path = path
        self._memory = memory
        self._threads = threads
        self._process = os.getpid()
        self._lock = Lock()
        self._empty: Any = None
        self._second: Any = None
        self._binding: set[object] = set()  # shapes of statements that bind, to be checked once
        try:
            self._connection = connect(
                path,
                read_only=True,
                memory=memory,
                threads=threads,
                keep_order=False,
                without=(STATISTICS,),
            )
            lock(self._connection)
        except duckdb.Error as error:
            _log.error("The snapshot %s cannot be opened: %s.", path, type(error).__name__)
            raise EngineFailure from None

    @classmethod
    def open(cls, policy: Policy, number: int, *, threads: int | None = None) -> DuckDB:
        """Open snapshot `number` of a policy's store; raise UsageError if it was made for other
        tables.
        """
        store = SnapshotFolder(policy.store)
        if store.snapshot(number).digest != policy.digest:
            raise UsageError(
                f"Snapshot {number} was made before the policy's tables, unit or neighbors changed. "
                "Take a new one: discreet snapshot."
            )
        return cls(store.file(number), memory=policy.limits.engine_memory, threads=threads)

    def fetch(self, query: Numbers, seconds: float) -> Exact:
        """Return the exact numbers of one aggregation. Sums arrive as decimal128(38, 0), which
        holds a HUGEINT without loss.

        If an expression fails on a row, its value there is NULL (`total`). Every other failure is
        one fixed sentence. The log gets our SQL and the type of the error, never the engine's
        message, which can print a value.
        """
        began = time.monotonic()
        sql = PLAIN.numbers(query)
        try:
            return Exact(
                self.read(sql, seconds, one_row=isinstance(query, Aggregate) and not query.keys)
            )
        except Overrun:
            raise
        except EngineFailure:
            total = CAREFUL.numbers(query)
            if total == sql:
                raise
        with self._cursor(self._careful(), seconds - (time.monotonic() - began)) as cursor:
            return Exact(self._select(cursor, total, begin=f"USE {_ATTACHED}"))

    def fetch_parts(self, query: Numbers, seconds: float, rows: int) -> Exact:
        """Return the result of `fetch` in parts of so many rows: at least one, which may be empty.
        They are read when the result is opened.
        """
        return Exact(self._fetch(query, seconds, rows))

    def _fetch(self, query: Numbers, seconds: float, rows: int) -> Iterator[pa.Table]:
        began = time.monotonic()
        begun = False
        sql = PLAIN.numbers(query)
        try:
            with self._cursor(self._connection, seconds) as cursor:
                for part in self._parts(cursor, sql, rows):
                    begun = True
                    yield part
                return
        except Overrun:
            raise
        except EngineFailure:
            total = CAREFUL.numbers(query)
            # what groups rows has looked at all of them before the first part
            if begun or total == sql:
                raise
        with self._cursor(self._careful(), seconds - (time.monotonic() - began)) as cursor:
            yield from self._parts(cursor, total, rows, begin=f"USE {_ATTACHED}")

    def read(self, sql: str, seconds: float, *, one_row: bool = False) -> pa.Table:
        """Return the result of one SELECT; `one_row` where it is one row of whole numbers."""
        with self._cursor(self._connection, seconds) as cursor:
            return self._select(cursor, sql, one_row=one_row)

    def _select(self, cursor: Any, sql: str, *, begin: str = "", one_row: bool = False) -> pa.Table:
        with _one_sentence(sql):
            statement = _statement(cursor, sql, begin)
            if one_row:
                return _one_row(cursor, statement)
            return cursor.sql(statement).to_arrow_table()

    def _parts(self, cursor: Any, sql: str, rows: int, *, begin: str = "") -> Iterator[pa.Table]:
        import pyarrow as pa

        with _one_sentence(sql):
            reader = cursor.sql(_statement(cursor, sql, begin)).to_arrow_reader(rows)
            batches = list(itertools.islice(reader, 1))
        yield pa.Table.from_batches(batches, reader.schema)
        while batches:
            with _one_sentence(sql):
                batches = list(itertools.islice(reader, 1))
            if batches:
                yield pa.Table.from_batches(batches)

    def sql(self, query: Numbers) -> str:
        """Return a query as it will run."""
        return PLAIN.numbers(query)

    def check(self, query: Numbers) -> None:
        """Raise EngineFailure if a query does not bind to the empty twin: the same tables without
        rows.
        """
        import duckdb

        self._check_process()
        known = shape(query)
        if known in self._binding:  # the empty twin never changes
            return
        sql = PLAIN.numbers(query)
        with self._lock:
            if self._empty is None:
                self._empty = empty_twin(self._connection)
            cursor = self._empty.cursor()
        try:
            cursor.execute(f"PREPARE checked AS {sql}")  # planned and optimized, not run
        except duckdb.Error as error:
            _log.error("%s in: %s", type(error).__name__, sql)
            raise EngineFailure from None
        finally:
            cursor.close()
        if len(self._binding) >= MOST_BINDING:
            self._binding.clear()
        self._binding.add(known)

    def _careful(self) -> Any:
        """Open the same snapshot once more, for statements that failed on a row."""
        import duckdb

        self._check_process()
        with self._lock:
            if self._second is None:
                try:
                    second = connect(
                        files=True,  # until the snapshot is there
                        memory=self._memory,
                        threads=self._threads,
                        keep_order=False,
                        without=(STATISTICS, COMMON_PARTS),
                        spill=f"{self._path}.second.tmp",
                    )
                    second.execute(f"ATTACH {literal(str(self._path))} AS {_ATTACHED} (READ_ONLY)")
                    lock(second, files=False)
                except duckdb.Error as error:
                    _log.error(
                        "The snapshot %s cannot be opened again: %s.",
                        self._path,
                        type(error).__name__,
                    )
                    raise EngineFailure from None
                self._second = second
            return self._second

    def columns(self, table: str) -> dict[str, str]:
        """Return a table's columns and their stored types, the hidden owner left out."""
        sql = (
            "SELECT column_name, data_type FROM duckdb_columns() "
            f"WHERE table_name = {literal(table)} AND schema_name IN ({', '.join(map(literal, SCHEMAS))}) "
            "ORDER BY column_index"
        )
        rows = self.read(sql, 60).to_pylist()
        return {row["column_name"]: row["data_type"] for row in rows if row["column_name"] != OWNER}

    def public_table(self, name: str) -> pa.Table:
        """Return all of a public table, in an order that depends on its content alone (S19)."""
        return self.read(f"SELECT * FROM {public(name)} ORDER BY ALL", 60)

    def close(self) -> None:
        if self._process == os.getpid():
            for connection in (self._connection, self._empty, self._second):
                if connection is not None:
                    connection.close()

    @contextmanager
    def _cursor(self, connection: Any, seconds: float) -> Iterator[Any]:
        self._check_process()
        with self._lock:
            cursor = connection.cursor()
        try:
            with interrupt_after(seconds, cursor.interrupt):
                yield cursor
        finally:
            cursor.close()

    def _check_process(self) -> None:
        # the engine's threads did not survive the fork: it would wait for ever
        if self._process != os.getpid():
            _log.error(
                "The snapshot was opened before a fork. Open the policy again in the new process."
            )
            raise EngineFailure
