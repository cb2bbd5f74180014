"""A locked in-memory DuckDB with public tables, in which SQL can look things up. It never holds
private data.

The server keeps its catalog in one, so what clients ask of pg_catalog is answered from the policy
alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from discreet.engines.duckdb.locked import connect, lock
from discreet.engines.duckdb.workbench import read_within
from discreet.engines.limits.watch import interrupt_after
from discreet.errors import EngineFailure

_MEMORY = 500_000_000
_BATCH = 10_000  # rows
_MOST_BYTES = 50_000_000  # of a result


class Reference:
    """Public tables, and our own SQL on them. Threads may share one."""

    def __init__(self, tables: Mapping[str, pa.Table], script: Sequence[str]) -> None:
        self._connection = connect(memory=_MEMORY, threads=1)
        for name, table in tables.items():
            self._connection.register("arriving", table)
            quoted = '"' + name.replace('"', '""') + '"'
            self._connection.execute(f"CREATE TABLE {quoted} AS SELECT * FROM arriving")
            self._connection.unregister("arriving")
        for statement in script:
            self._connection.execute(statement)
        lock(self._connection)

    def columns(self, sql: str, beside: Mapping[str, pa.Table]) -> pa.Schema:
        """Return the columns of a statement's result, without running it."""
        with self._cursor(beside) as cursor:
            found = cursor.sql(sql)
            kinds = found.limit(0).to_arrow_table().schema.types
            return pa.schema(list(zip(found.columns, kinds, strict=True)))

    def run(self, sql: str, beside: Mapping[str, pa.Table], *, seconds: float) -> pa.Table:
        """Return a statement's rows. `beside` has more tables for this statement alone.

        If it fails, raise EngineFailure with its cause: there is no private value in it.
        """
        with (
            self._cursor(beside) as cursor,
            interrupt_after(seconds, cursor.interrupt),
            cursor.sql(sql).to_arrow_reader(_BATCH) as reader,
        ):
            return read_within(reader, _MOST_BYTES)

    @contextmanager
    def _cursor(self, beside: Mapping[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
        cursor = self._connection.cursor()
        try:
            for name, table in beside.items():
                cursor.register(name, table)
            yield cursor
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise EngineFailure from error
        finally:
            for name in beside:
                cursor.unregister(name)
            cursor.close()
