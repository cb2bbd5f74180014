"""A source into a snapshot of Parquet files, by Spark: no row comes to the server.

The workers run the code that prepares DuckDB's snapshots, so the rows are the same (S4): files are
read and their values moved row by row; where owners are found through another table, Spark joins
their keys; the rows of whoever has too many are brought together by owner, and the same keyed order
decides which are kept. What was read is written once and never read from the source again (S23).
The finished files are checked (verify.py) before the manifest is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engines.duckdb.preparing.reading import (
    CLAMPED,
    MISSING,
    NULLED,
    ROUNDED,
    Reading,
    list_values,
)
from discreet.engines.duckdb.preparing.schema import keys_of, schemas
from discreet.engines.engine import Progress
from discreet.engines.frames import arrow
from discreet.engines.layout import OWNER
from discreet.engines.snapshot import ColumnReport, TableReport
from discreet.engines.source import (
    Database,
    Folder,
    Foreign,
    Given,
    Source,
    attach,
    columns_of,
    files_of,
    loading,
)
from discreet.engines.spark.layout import arrow_file, kinds_file, public_file, table_folder
from discreet.engines.spark.spelling import MOMENT, WHOLE, identifier
from discreet.engines.spark.workers import (
    OfPartition,
    ReadFiles,
    ReadRows,
    each_owned,
    first_rows_of,
    for_spark,
)
from discreet.errors import PolicyError, UsageError
from discreet.policy.owners import EachRow, Through
from discreet.policy.policy import Policy, Table

_OWNER, _KEY = identifier(OWNER), "#key"
_PIECE = 1_000_000  # rows of a table from Python that a worker reads at a time
# bytes of memory that DuckDB may use on a worker; what does not fit goes to its disk
_WORKER = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One snapshot in the making: a session, the folder that is filled, and a folder for what is
    needed meanwhile.
    """

    session: Any
    policy: Policy
    source: Source
    key: int
    folder: Path
    scratch: Path
    progress: Progress | None
    frames: Mapping[str, Any]  # of tables that the cluster reads itself: `source` has their types
    # of the tables' columns, as they are found
    kinds: dict[str, dict[str, str]] = field(default_factory=dict)
    schemas: dict[str, str] = field(default_factory=dict)  # of private tables, as Spark has them

    def tables(self) -> tuple[TableReport, ...]:
        """Prepare every table, those first that others go through; return their reports in the
        policy's order.
        """
        if isinstance(self.source, Database):
            raise UsageError(
                "engine: spark reads folders of Parquet or CSV files: name such a folder as the source."
            )
        connection = loading(None, memory=self.policy.limits.memory)
        try:
            attach(connection, self.source, rows=self.policy.tables)
            parts, problems = schemas(connection, self.policy, self.source)
            if problems:
                raise PolicyError(*problems)
            reading, found = Reading(self.policy, parts), dict[str, TableReport]()
            for table in self.policy.tables.values():
                chain = [table]
                while isinstance(chain[-1].owner, Through):
                    chain.append(self.policy.tables[chain[-1].owner.table])
                for each in reversed(chain):
                    if each.name not in found:
                        self._tell(each, 0.0)
                        make = self._public if each.public else self._private
                        found[each.name] = make(connection, reading, each)
                        self._tell(each, 1.0)
        finally:
            connection.close()
        noted = {"kinds": self.kinds, "schemas": self.schemas}
        kinds_file(self.folder).write_text(json.dumps(noted), encoding="utf-8")
        return tuple(found[table] for table in self.policy.tables)

    def _tell(self, table: Table, done: float) -> None:
        if self.progress is not None:
            self.progress(table.name, done)

    def _public(self, connection: Any, reading: Reading, table: Table) -> TableReport:
        """Copy a public table: as it is, and in types that Spark has."""
        (part,) = reading.parts[table.name]
        ordered = f"(SELECT * FROM {part.relation} ORDER BY ALL)"
        self.kinds[table.name] = columns_of(connection, ordered)
        whole = connection.sql(f"SELECT * FROM {ordered}").to_arrow_table()
        _write(arrow_file(self.folder, table.name), whole)
        kinds = {
            column: kind for column, kind in self.kinds[table.name].items() if _spark_kind(kind)
        }
        listed = for_spark(kinds) or "NULL::BOOLEAN AS nothing"
        shown = connection.sql(f"SELECT {listed} FROM {ordered}").to_arrow_table()
        place = public_file(self.folder, table.name)
        pq.write_table(shown, place, coerce_timestamps="us", allow_truncated_timestamps=True)
        rows = whole.num_rows
        return TableReport(
            name=table.name, rows=rows, kept=rows, ownerless=0, truncated=0, columns=()
        )

    def _private(self, connection: Any, reading: Reading, table: Table) -> TableReport:
        domains = {column.name: column.domain for column in table.columns.values()}
        read = self._kept_once(f"keys of {table.name}", self._files(connection, reading, table))
        if isinstance(table.owner, EachRow):
            together = (
                read.repartition(*[self._column(each) for each in domains])
                if domains
                else read.repartition(1)
            )
            owned = _rows(together, each_owned(domains, self.key), owner=True)
            read = self._kept_once(f"rows of {table.name}", owned)
        elif isinstance(table.owner, Through):
            read = self._kept_once(f"rows of {table.name}", self._through(read, table))
        else:
            read = read.withColumnRenamed(_KEY, OWNER)
        read.createOrReplaceTempView(_view(table))
        rows, owned_rows, columns = self._count(table)
        self._sql(f"SELECT * FROM ({self._heavy(table)})").createOrReplaceTempView("heavy")
        kept = (
            self._fair(table)
            if self._sql("SELECT 1 FROM heavy LIMIT 1").toArrow().num_rows
            else self._all(table)
        )
        place = table_folder(self.folder, table.name)
        self.schemas[table.name] = _schema(kept)
        kept.write.parquet(place.as_uri())
        finished = self.session.read.schema(self.schemas[table.name]).parquet(place.as_uri())
        (count,) = finished.selectExpr("count(*)").toArrow().to_pylist()[0].values()
        return TableReport(
            name=table.name,
            rows=rows,
            kept=count,
            ownerless=rows - owned_rows,
            truncated=owned_rows - count,
            columns=columns,
        )

    # reading

    def _files(self, connection: Any, reading: Reading, table: Table) -> Any:
        """Return the rows of all files, each read by a worker; here only their types are."""
        list_values(connection, table)
        kinds = columns_of(connection, f"({reading.rows(table, reading.parts[table.name])})")
        self.kinds[table.name] = {column: kinds[column] for column in table.columns}
        schema = _declared(
            (column, _spark_kind(kind) or "STRING") for column, kind in kinds.items()
        )
        if table.name in self.frames:
            return self._cluster(reading, table, schema)
        folder = self.source if isinstance(self.source, Folder) else None
        files = list(files_of(folder, table.name)) if folder is not None else self._pieces(table)
        read = ReadFiles(reading=reading, table=table, source=folder, memory=_WORKER)
        listed = self.session.createDataFrame(pa.table({"file": [str(file) for file in files]}))
        return listed.repartition(len(files)).mapInArrow(read, schema)

    def _cluster(self, reading: Reading, table: Table, schema: str) -> Any:
        """Return the rows of a table that the cluster reads by itself, no column more than is
        needed.
        """
        frame = self.frames[table.name]
        used = {column.lower() for column in keys_of(self.policy, table) | set(table.columns)}
        listed = [self._column(each) for each in frame.columns if each.lower() in used]
        read = ReadRows(reading=reading, table=table, memory=_WORKER)
        return frame.select(*listed).mapInArrow(read, schema)

    def _pieces(self, table: Table) -> list[Path]:
        """Return a table from Python, in files for workers to read; at least one, maybe
        of no rows.
        """
        if isinstance(self.source, Foreign):
            content: Any = self.source.reader.read([table.name.lower()])[table.name.lower()]
        else:
            assert isinstance(self.source, Given)
            content = arrow(table.name, self.source.tables[table.name])
        whole = content.to_table() if hasattr(content, "to_table") else pa.table(content)
        files = []
        for first in range(0, max(1, whole.num_rows), _PIECE):
            files.append(self.scratch / f"{len(list(self.scratch.iterdir()))}.arrow")
            _write(files[-1], whole.slice(first, _PIECE))
        return files

    def _kept_once(self, what: str, rows: Any) -> Any:
        """Write rows to the scratch folder, and return them as read from there from now
        on (S23).
        """
        place = self.scratch / what.encode().hex()
        rows.write.parquet(place.as_uri())
        return self.session.read.schema(_schema(rows)).parquet(place.as_uri())

    # whose rows

    def _through(self, read: Any, table: Table) -> Any:
        """Return rows with the one owner of their key, NULL where it has none or several."""
        assert isinstance(table.owner, Through)
        via = self.policy.tables[table.owner.table]
        key = identifier(f"#key of {table.name}")
        read.createOrReplaceTempView("keyed")
        owners = (
            f"SELECT {key} AS k, min({_OWNER}) AS o FROM {_view(via)} WHERE {key} IS NOT NULL AND {_OWNER} IS NOT NULL "
            f"GROUP BY 1 HAVING min({_OWNER}) = max({_OWNER})"
        )
        own = identifier(_KEY)
        joined = f"SELECT w.o AS {_OWNER}, e.* FROM keyed AS e LEFT JOIN ({owners}) AS w ON e.{own} = w.k"
        return self._sql(joined).drop(_KEY)

    # which rows

    def _heavy(self, table: Table) -> str:
        owned = f"SELECT {_OWNER} FROM {_view(table)} WHERE {_OWNER} IS NOT NULL GROUP BY 1"
        return f"{owned} HAVING count(*) > {table.max_rows}"

    def _all(self, table: Table) -> Any:
        return self._sql(f"SELECT {_stored(table)} FROM {_view(table)} WHERE {_OWNER} IS NOT NULL")

    def _fair(self, table: Table) -> Any:
        """Return the rows of whoever has few enough, and a fair sample of each other person's."""
        domains = {column.name: column.domain for column in table.columns.values()}
        listed, rows = _stored(table), _view(table)
        light = f"SELECT {listed} FROM {rows} LEFT ANTI JOIN heavy USING ({_OWNER}) WHERE {_OWNER} IS NOT NULL"
        heavy = self._sql(f"SELECT {listed} FROM {rows} LEFT SEMI JOIN heavy USING ({_OWNER})")
        statement = first_rows_of(domains, self.key, table.max_rows)
        chosen = _rows(heavy.repartition(self._column(OWNER)), statement)
        return self._sql(light).unionAll(chosen)

    def _count(self, table: Table) -> tuple[int, int, tuple[ColumnReport, ...]]:
        counts = ["count(*)", f"count({_OWNER})"]
        for place in range(len(table.columns)):
            state = identifier(f"#state {place}")
            counts += [
                f"count(*) FILTER (WHERE {state} = {each} AND {_OWNER} IS NOT NULL)"
                for each in (MISSING, NULLED, CLAMPED, ROUNDED)
            ]
        named = ", ".join(f"{count} AS c{place}" for place, count in enumerate(counts))
        (row,) = self._sql(f"SELECT {named} FROM {_view(table)}").toArrow().to_pylist()
        rows, owned, *found = row.values()
        reports = tuple(
            ColumnReport(
                name=column, missing=missing, nulled=nulled, clamped=clamped, rounded=rounded
            )
            for column, missing, nulled, clamped, rounded in zip(
                table.columns, *(found[start::4] for start in range(4)), strict=True
            )
        )
        return rows, owned, reports

    # running

    def _sql(self, sql: str) -> Any:
        return self.session.sql(sql)

    def _column(self, column: str) -> Any:
        from pyspark.sql.connect.functions import builtin

        return builtin.col(identifier(column))


def _write(file: Path, table: pa.Table) -> None:
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)


def _view(table: Table) -> str:
    return f"read_{table.name.encode().hex()}"


def _stored(table: Table) -> str:
    return ", ".join(map(identifier, (OWNER, *table.columns)))


def _rows(together: Any, statement: str, *, owner: bool = False) -> Any:
    """Return what a statement of ours makes of each partition; `owner` where it changes the key
    into an owner, a text.
    """
    fields = [(each.name, each.dataType.simpleString()) for each in together.schema.fields]
    if owner:
        fields = [(OWNER, "string"), *(each for each in fields if each[0] != _KEY)]
    return together.mapInArrow(OfPartition(statement=statement, memory=_WORKER), _declared(fields))


def _schema(rows: Any) -> str:
    """Return the columns of rows and their types. A folder without a row has no file that tells
    them.
    """
    return _declared((each.name, each.dataType.simpleString()) for each in rows.schema.fields)


def _declared(fields: Iterable[tuple[str, str]]) -> str:
    """Return columns and their types, as Spark's schemas are written."""
    return ", ".join(f"{identifier(column)} {kind}" for column, kind in fields)


# How Spark reads what a worker writes, by DuckDB's types.
_SPARK = {
    **{
        kind: kind
        for kind in ("TINYINT", "SMALLINT", "BIGINT", "BOOLEAN", "DATE", "DOUBLE", "FLOAT")
    },
    "INTEGER": "INT",
    "VARCHAR": "STRING",
    "TIMESTAMP": MOMENT,
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINTEGER": "BIGINT",
    "UUID": "STRING",
    "UBIGINT": WHOLE,
    "HUGEINT": WHOLE,
}


def _spark_kind(kind: str) -> str | None:
    """Return the type of Spark in which a type of DuckDB arrives; None where there is none."""
    if kind.startswith("DECIMAL("):
        return kind
    return "STRING" if kind.startswith("ENUM(") else _SPARK.get(kind)
