"""The code that runs on a cluster's workers: our own preparing code, on a part of the rows at a
time.

A worker has this package and DuckDB. It is handed files to read, or all rows of some people, and
gives back rows; a task that is tried again gives the same ones, for nothing here depends on
anything else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.engines.duckdb.preparing.order import ROW, first_rows, row_owner
from discreet.engines.duckdb.preparing.parts import part_of
from discreet.engines.duckdb.preparing.reading import KEY, Reading, list_values
from discreet.engines.layout import OWNER
from discreet.engines.quoting import name
from discreet.engines.source import Folder, columns_of, loading
from discreet.errors import EngineFailure
from discreet.policy.domain import Domain
from discreet.policy.policy import Table

_BATCH = 100_000  # rows
# How Spark keeps what DuckDB stores: it has no unsigned whole numbers, and none of 128 bits but
# decimals.
_KINDS = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(38,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "UUID": "VARCHAR",
}
_COPY = name("#copy")


def for_spark(kinds: Mapping[str, str]) -> str:
    """Return the SELECT list of columns of these types, in types that Spark has."""
    return ", ".join(
        f"CAST({name(column)} AS {_KINDS[kind]}) AS {name(column)}"
        if kind in _KINDS
        else name(column)
        for column, kind in kinds.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """Files of one table in, by their paths; its rows out, as `Reading.rows` gives them."""

    reading: Reading
    table: Table
    source: Folder | None  # None: each file holds a piece of a table that was passed from Python
    memory: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                yield from self._read(Path(file))

    def _read(self, file: Path) -> Iterator[pa.RecordBatch]:
        import duckdb

        with tempfile.TemporaryDirectory() as folder:
            # Carefully, where a text is no UTF-8: what a valid text is read as is the same either
            # way (parts.py).
            careful = (True,) if self.table.read.encoding is not None else (False, True)
            for scratch in (Path(folder) if each else None for each in careful):
                begun = False
                connection = loading(
                    Path(folder) / f"{scratch is None}.duckdb", memory=self.memory, threads=1
                )
                try:
                    for batch in self._rows(connection, file, scratch):
                        begun = True
                        yield batch
                    return
                except duckdb.Error:
                    if begun or scratch is not None or self.source is None:
                        raise EngineFailure from None
                finally:
                    connection.close()

    def _rows(self, connection: Any, file: Path, scratch: Path | None) -> Iterator[pa.RecordBatch]:
        list_values(connection, self.table)
        if self.source is None:
            connection.register(
                f"#{self.table.name}", pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            )
            (part,) = self.reading.parts[self.table.name]
        else:
            part = part_of(connection, self.source, file, scratch, self.table.read.encoding)
        rows = self.reading.rows(self.table, [part])
        # All of it, before the first row leaves: a file that cannot be read must not be read in
        # part.
        connection.execute(f"CREATE TEMP TABLE {_READ} AS {rows}")
        kinds = columns_of(connection, _READ)
        yield from connection.sql(f"SELECT {for_spark(kinds)} FROM {_READ}").to_arrow_reader(_BATCH)


_READ, _ROWS = name("#read"), name("#rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Rows of a table that the cluster reads in; the same out, as `Reading.rows` gives them."""

    reading: Reading
    table: Table
    memory: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (part,), given = self.reading.parts[self.table.name], f"#{self.table.name}"
        rows = self.reading.rows(self.table, [part])
        with tempfile.TemporaryDirectory() as folder:
            connection = loading(Path(folder) / "rows.duckdb", memory=self.memory, threads=1)
            try:
                list_values(connection, self.table)
                for batch in batches:
                    connection.register(given, pa.Table.from_batches([batch]))
                    kinds = columns_of(connection, f"({rows})")
                    read = f"SELECT {for_spark(kinds)} FROM ({rows})"
                    yield from connection.sql(read).to_arrow_reader(_BATCH)
                    connection.unregister(given)
            finally:
                connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPartition:
    """All rows of some people in; out is what a statement over the table #rows makes of them."""

    statement: str
    memory: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with tempfile.TemporaryDirectory() as folder:
            connection = loading(Path(folder) / "rows.duckdb", memory=self.memory, threads=1)
            try:
                there = False
                for batch in batches:
                    connection.register("#batch", pa.Table.from_batches([batch]))
                    into = "INSERT INTO" if there else "CREATE TABLE"
                    connection.execute(
                        f"{into} {_ROWS} {'' if there else 'AS'} FROM {name('#batch')}"
                    )
                    connection.unregister("#batch")
                    there = True
                if there:
                    yield from connection.sql(self.statement).to_arrow_reader(_BATCH)
            finally:
                connection.close()


def first_rows_of(columns: Mapping[str, Domain], key: int, most: int) -> str:
    """Return the statement that keeps so many rows of each owner, by the order of order.py."""
    listed = ", ".join(map(name, (OWNER, *columns)))
    numbered = f"SELECT rowid AS {ROW}, {listed} FROM {_ROWS}"
    chosen = first_rows(numbered, columns, key, most)
    return f"SELECT {listed} FROM {_ROWS} AS r SEMI JOIN ({chosen}) AS c ON r.rowid = c.{ROW}"


def each_owned(columns: Mapping[str, Domain], key: int) -> str:
    """Return the statement that gives each row an owner of its own."""
    equal = f"PARTITION BY {', '.join(map(name, columns))}" if columns else ""
    copies = f"SELECT *, row_number() OVER ({equal}) AS {_COPY} FROM {_ROWS}"
    owner = f"CAST({row_owner(columns, key, copy=_COPY)} AS VARCHAR)"
    return f"SELECT {owner} AS {name(OWNER)}, * EXCLUDE ({KEY}, {_COPY}) FROM ({copies})"


@dataclass(frozen=True, slots=True, kw_only=True)
class EachTable:
    """A function of tables, applied to every batch where it is: noise is added on the workers
    (vault/exact.py).
    """

    work: Callable[[pa.Table], pa.Table]
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self.work(pa.Table.from_batches([batch])).cast(self.schema).to_batches()
