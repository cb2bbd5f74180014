"""The code that runs on a cluster's workers: each prepares a part of the rows, with the same code
as the embedded engine.

A worker needs this package and DuckDB. It either gets files to read and writes Parquet files of
their rows, or it gets all rows of some people and returns rows. If a task is tried again, it
returns the same rows, because they depend on its input alone.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import pyarrow as pa

from discreet.engines.duckdb.preparing.encode import NOTHING
from discreet.engines.duckdb.preparing.order import ROW, first_rows, row_owner
from discreet.engines.duckdb.preparing.parts import SourcePart, part_of
from discreet.engines.duckdb.preparing.reading import KEY, SourceReading, list_values
from discreet.engines.layout import OWNER
from discreet.engines.quoting import literal, name
from discreet.engines.source import Folder, columns_of, loading
from discreet.errors import EngineFailure
from discreet.noise.bits import SYSTEM
from discreet.policy.domain import Domain
from discreet.policy.owners import EachRow, Through
from discreet.policy.policy import Table

_BATCH = 100_000  # rows
# The types in which Spark stores those of DuckDB. It has no unsigned whole numbers, and for 128
# bits only decimals.
_KINDS = {
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INTEGER",
    "UINTEGER": "BIGINT",
    "UBIGINT": "DECIMAL(38,0)",
    "HUGEINT": "DECIMAL(38,0)",
    "UUID": "VARCHAR",
    NOTHING: "VARCHAR",
}
_COPY = name("#copy")


def for_spark(kinds: Mapping[str, str]) -> str:
    """Return the SELECT list of columns of these types, cast to types that Spark has."""
    listed = []
    for column, kind in kinds.items():
        if kind in _KINDS:
            listed.append(f"CAST({name(column)} AS {_KINDS[kind]}) AS {name(column)}")
        else:
            listed.append(name(column))
    return ", ".join(listed)


Batches = Iterator[pa.RecordBatch]


def silent(work: Callable[[Any, Batches], Batches]) -> Callable[[Any, Batches], Batches]:
    """Return the same work, but with errors that contain no value: Spark writes errors into its
    logs and shows them on its pages.
    """

    @wraps(work)
    def run(self: Any, batches: Batches) -> Batches:
        try:
            yield from work(self, batches)
        except Exception as error:
            raise WorkerFailure(type(error).__name__) from None

    return run


class WorkerFailure(Exception):
    """A worker failed. The message is the type of its error, without what the error says."""


def kind_of(error: BaseException) -> str:
    """Return the type of an error, and of the worker's error behind it; without any value."""
    here = type(error).__name__
    there = re.search(rf"\b{WorkerFailure.__name__}: (\w+)", str(error))
    return here if there is None else f"{here}, on a worker {there[1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Files in one folder, with some columns of a table's rows; `columns` has DuckDB's types."""

    folder: Path
    columns: Mapping[str, str]
    where: str = "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Reads a part of a table's source and writes its rows as Parquet files, encoded by
    `SourceReading.rows`. It returns the files' name and the counts.

    Privacy: S23. Each attempt of a task chooses a new name for its files, and the cluster returns
    only the names of finished attempts. So a second attempt, which may read a changed source,
    changes no file that was counted and verified.
    """

    reading: SourceReading
    table: Table
    kinds: Mapping[str, str]  # the DuckDB types that the rows of all parts must have
    outputs: tuple[Output, ...]
    counts: tuple[str, ...]
    memory: int

    def opened(self, file: Path) -> Any:
        connection = loading(file, memory=self.memory, threads=1)
        list_values(connection, self.table)
        return connection

    def rows(self, part: SourcePart) -> str:
        return rows_of(self.reading, self.table, [part])

    def written(self, connection: Any) -> pa.RecordBatch:
        """Write the rows of the table #read to files; return their name and counts."""
        if columns_of(connection, _READ) != self.kinds:
            raise EngineFailure
        counted = connection.execute(f"SELECT {', '.join(self.counts)} FROM {_READ}").fetchall()
        file = f"{SYSTEM.bits(128):032x}.parquet"
        for each in self.outputs:
            rows = f"SELECT {for_spark(each.columns)} FROM {_READ} WHERE {each.where}"
            target = literal(str(each.folder / file))
            connection.execute(f"COPY ({rows}) TO {target} (FORMAT parquet)")
        return pa.RecordBatch.from_pylist([{"file": file, "counts": list(counted[0])}], WRITTEN)


# The schema of what a writer returns, for Arrow and for Spark.
WRITTEN = pa.schema({"file": pa.string(), "counts": pa.list_(pa.int64())})
WRITTEN_IN_SPARK = "file STRING, counts ARRAY<BIGINT>"


def rows_of(reading: SourceReading, table: Table, parts: Iterable[SourcePart]) -> str:
    """Return the SQL of the rows of these parts, with their owner if a column of theirs names
    it.
    """
    rows = reading.rows(table, parts)
    if isinstance(table.owner, EachRow | Through):
        return rows
    return f"SELECT {KEY} AS {name(OWNER)}, * EXCLUDE ({KEY}) FROM ({rows})"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFiles:
    """Takes the paths of a table's files, and writes the rows of each to files of its own."""

    writer: Writer
    source: Folder | None  # None: each file holds a piece of a table that was passed from Python

    @silent
    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for file in batch.column(0).to_pylist():
                yield self._read(Path(file))

    def _read(self, file: Path) -> pa.RecordBatch:
        import duckdb

        # If a text is no UTF-8, read the file again carefully. Both ways read valid texts alike
        # (parts.py).
        encoding = self.writer.table.read.encoding
        attempts = (True,) if encoding is not None else (False, True)
        for careful in attempts:
            with tempfile.TemporaryDirectory() as folder:
                connection = self.writer.opened(Path(folder) / "rows.duckdb")
                try:
                    part = self._part(connection, file, Path(folder) if careful else None)
                    connection.execute(f"CREATE TEMP TABLE {_READ} AS {self.writer.rows(part)}")
                    return self.writer.written(connection)
                except duckdb.Error:
                    if self.source is None or careful:
                        break
                finally:
                    connection.close()
        raise EngineFailure

    def _part(self, connection: Any, file: Path, scratch: Path | None) -> SourcePart:
        if self.source is not None:
            encoding = self.writer.table.read.encoding
            return part_of(connection, self.source, file, scratch, encoding)
        whole = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        connection.register(f"#{self.writer.table.name}", whole)
        (part,) = self.writer.reading.parts[self.writer.table.name]
        return part


_READ = name("#read")
_ROWS = name("#rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRows:
    """Takes rows that the cluster has read, and writes the rows of each task to files."""

    writer: Writer

    @silent
    def __call__(self, batches: Batches) -> Batches:
        table = self.writer.table.name
        (part,) = self.writer.reading.parts[table]
        given = f"#{table}"
        with tempfile.TemporaryDirectory() as folder:
            connection = self.writer.opened(Path(folder) / "rows.duckdb")
            try:
                into = f"CREATE TEMP TABLE {_READ} AS"
                for batch in batches:
                    connection.register(given, pa.Table.from_batches([batch]))
                    connection.execute(f"{into} {self.writer.rows(part)}")
                    connection.unregister(given)
                    into = f"INSERT INTO {_READ}"
                if not into.startswith("CREATE"):
                    yield self.writer.written(connection)
            finally:
                connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class OfPartition:
    """Takes all rows of some people as the table #rows, and yields the rows of a statement on
    it.
    """

    statement: str
    memory: int

    @silent
    def __call__(self, batches: Batches) -> Batches:
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


def more_than(most: int) -> str:
    """Return the statement that finds the owners of more than `most` rows."""
    return f"SELECT {name(OWNER)} FROM {_ROWS} GROUP BY 1 HAVING count(*) > {most}"


def first_rows_of(columns: Mapping[str, Domain], key: int, most: int) -> str:
    """Return the statement that keeps at most `most` rows of each owner, in the order of
    order.py.
    """
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
    """Applies a function of tables to every batch on its worker. So noise is added on the workers
    (vault/exact.py).
    """

    work: Callable[[pa.Table], pa.Table]
    schema: pa.Schema

    @silent
    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            yield from self.work(pa.Table.from_batches([batch])).cast(self.schema).to_batches()
