"""A source into a snapshot of Parquet files, by Spark: no row comes to the server.

The workers run the code that prepares DuckDB's snapshots, so the rows are the same (S4): they read
files, move values row by row, and write what they made as Parquet themselves, so that it does not
pass through Spark. Where rows say whose they are, and nobody has too many, those files are the
snapshot. Where owners are found through another table, Spark joins their keys; the rows of whoever
has too many are brought together by owner, and the same keyed order decides which are kept. What
was read is never read from the source again (S23). The finished files are checked (verify.py)
before the manifest is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.engines.duckdb.preparing.reading import (
    SourceReading,
    counts_of,
    list_values,
    reports_of,
)
from discreet.engines.duckdb.preparing.schema import schemas, used_columns
from discreet.engines.engine import Progress
from discreet.engines.frames import arrow
from discreet.engines.layout import OWNER
from discreet.engines.quoting import name
from discreet.engines.snapshot import TableReport
from discreet.engines.source import (
    Database,
    Folder,
    Foreign,
    PythonTables,
    Source,
    attach,
    columns_of,
    files_of,
    loading,
)
from discreet.engines.spark.layout import address, arrow_file, kinds_file, public_file, table_folder
from discreet.engines.spark.spelling import MOMENT, WHOLE, identifier
from discreet.engines.spark.verify import too_many, verify
from discreet.engines.spark.workers import (
    WRITTEN_IN_SPARK,
    OfPartition,
    Output,
    WriteFiles,
    Writer,
    WriteRows,
    each_owned,
    first_rows_of,
    for_spark,
    more_than,
    rows_of,
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
            with attach(connection, self.source, rows=used_columns(self.policy)):
                parts, problems = schemas(connection, self.policy, self.source)
                if problems:
                    raise PolicyError(*problems)
                reading = SourceReading(self.policy, parts)
                found = dict[str, TableReport]()
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

    def _public(self, connection: Any, reading: SourceReading, table: Table) -> TableReport:
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

    def _private(self, connection: Any, reading: SourceReading, table: Table) -> TableReport:
        if isinstance(table.owner, EachRow | Through):
            read = self._owned(table, self._all_written(connection, reading, table))
            read.createOrReplaceTempView(_view(table))
            rows, owned, columns = reports_of(table, self._counted(table))
            stored = self._sql(
                f"SELECT {_stored(table)} FROM {_view(table)} WHERE {_OWNER} IS NOT NULL"
            )
            self.schemas[table.name] = _schema(stored)
            stored.write.parquet(address(self._place(table)))
        else:
            counts = self._stored_written(connection, reading, table)
            rows, owned, columns = reports_of(table, counts)
        kept = self._checked(table)
        return TableReport(
            name=table.name,
            rows=rows,
            kept=kept,
            ownerless=rows - owned,
            truncated=owned - kept,
            columns=columns,
        )

    def _place(self, table: Table) -> Path:
        return table_folder(self.folder, table.name)

    def _finished(self, table: Table) -> Any:
        """Return the rows of a table as questions will read them."""
        reader = self.session.read.schema(self.schemas[table.name])
        return reader.parquet(address(self._place(table)))

    def _checked(self, table: Table) -> int:
        """Return how many rows are kept, when the finished files are what the policy says.

        Who has too many rows is looked for in the files that were written: where nobody has, that
        was the check, and they stay. Where somebody has, other files are written and checked anew.
        """
        heavy = self._kept_once("heavy", table, self._over_limit(table))
        if _any(heavy):
            self._cut(table, heavy)
            if _any(self._over_limit(table)):
                raise too_many(table)
        return verify(self.session, self._finished(table), table)

    def _over_limit(self, table: Table) -> Any:
        """Return whoever has more rows in the finished files than the policy allows. The workers
        count them: Spark needs three times as long where there are as many groups as people.
        """
        owners = self._finished(table).select(self._column(OWNER))
        return _rows(owners.repartition(self._column(OWNER)), more_than(table.max_rows))

    # reading

    def _all_written(self, connection: Any, reading: SourceReading, table: Table) -> Any:
        """Let all rows of a table be written once, and return them: not yet with their owners."""
        kinds = self._kinds_of(connection, reading, table)
        place = self._scratch("rows", table)
        outputs = {place: Output(folder=self._folder("written rows", table), columns=kinds)}
        self._write(reading, table, kinds, outputs, ("count(*)",))
        return self._read_back(place, kinds)

    def _stored_written(self, connection: Any, reading: SourceReading, table: Table) -> list[int]:
        """Write the rows that have owners as they will be stored, and beside them the keys of
        tables that go through this one; return what was counted.
        """
        kinds = self._kinds_of(connection, reading, table)
        counts = counts_of(table, name(OWNER))
        owned = f"{name(OWNER)} IS NOT NULL"
        stored = {column: kinds[column] for column in (OWNER, *table.columns)}
        folder = self._folder("written stored", table)
        outputs = {self._place(table): Output(folder=folder, columns=stored, where=owned)}
        going = [f"#key of {each.name}" for each in reading.going_through(table)]
        keys = {column: kinds[column] for column in (OWNER, *going)}
        place = self._scratch("keys", table)
        if going:
            folder = self._folder("written keys", table)
            outputs[place] = Output(folder=folder, columns=keys, where=owned)
        counted = self._write(reading, table, kinds, outputs, counts)
        self.schemas[table.name] = _declared(_in_spark(stored))
        if going:
            self._read_back(place, keys).createOrReplaceTempView(_view(table))
        return counted

    def _kinds_of(self, connection: Any, reading: SourceReading, table: Table) -> dict[str, str]:
        """Return the types of a table's rows, from those of the whole source: no row is read."""
        list_values(connection, table)
        rows = rows_of(reading, table, reading.parts[table.name])
        kinds = columns_of(connection, f"({rows})")
        self.kinds[table.name] = {column: kinds[column] for column in table.columns}
        return kinds

    def _write(
        self,
        reading: SourceReading,
        table: Table,
        kinds: Mapping[str, str],
        outputs: Mapping[Path, Output],
        counts: tuple[str, ...],
    ) -> list[int]:
        """Let the workers write all rows of a table; put the files that they tell where they
        belong, by their place, and return what was counted in all.
        """
        writer = Writer(
            reading=reading,
            table=table,
            kinds=kinds,
            outputs=tuple(outputs.values()),
            counts=counts,
            memory=_WORKER,
        )
        told = self._written_by(writer, table).toArrow()
        for place, output in outputs.items():
            place.mkdir(mode=0o700)
            for number, file in enumerate(told.column("file").to_pylist()):
                (output.folder / file).rename(place / f"part-{number:05}.parquet")
        counted = told.column("counts").to_pylist()
        return [sum(each) for each in zip(*counted, strict=True)] or [0] * len(counts)

    def _written_by(self, writer: Writer, table: Table) -> Any:
        """Return what the workers tell who write a table's rows: from its files, or from what the
        cluster reads by itself, no column more than is needed.
        """
        if table.name in self.frames:
            frame = self.frames[table.name]
            used = used_columns(self.policy)[table.name.lower()] or ()
            rows = frame.select(
                *[self._column(each) for each in frame.columns if each.lower() in used]
            )
            return rows.mapInArrow(WriteRows(writer=writer), WRITTEN_IN_SPARK)
        folder = self.source if isinstance(self.source, Folder) else None
        files = list(files_of(folder, table.name)) if folder is not None else self._pieces(table)
        listed = self.session.createDataFrame(pa.table({"file": [str(file) for file in files]}))
        spread = listed.coalesce(1).repartition(len(files))
        return spread.mapInArrow(WriteFiles(writer=writer, source=folder), WRITTEN_IN_SPARK)

    def _folder(self, what: str, table: Table) -> Path:
        """Make a folder for files that the workers write."""
        place = self._scratch(what, table)
        place.mkdir(mode=0o700)
        return place

    def _scratch(self, what: str, table: Table) -> Path:
        return self.scratch / f"{what} of {table.name}".encode().hex()

    def _read_back(self, place: Path, kinds: Mapping[str, str]) -> Any:
        schema = _declared(_in_spark(kinds))
        return self.session.read.schema(schema).parquet(address(place))

    def _pieces(self, table: Table) -> list[Path]:
        """Return a table from Python, in files for workers to read; at least one, maybe
        of no rows.
        """
        if isinstance(self.source, Foreign):
            wanted = table.name.lower()
            with self.source.reader.read({wanted: used_columns(self.policy)[wanted]}) as tables:
                whole = next(pa.table(tables[each]) for each in tables if each.lower() == wanted)
        else:
            assert isinstance(self.source, PythonTables)
            content: Any = arrow(table.name, self.source.tables[table.name])
            whole = content.to_table() if hasattr(content, "to_table") else pa.table(content)
        files = []
        for first in range(0, max(1, whole.num_rows), _PIECE):
            files.append(self.scratch / f"{len(list(self.scratch.iterdir()))}.arrow")
            _write(files[-1], whole.slice(first, _PIECE))
        return files

    def _kept_once(self, what: str, table: Table, rows: Any) -> Any:
        """Write rows to the scratch folder; return them as they are read from there (S23)."""
        place = self._scratch(what, table)
        rows.write.parquet(address(place))
        return self.session.read.schema(_schema(rows)).parquet(address(place))

    # whose rows

    def _owned(self, table: Table, read: Any) -> Any:
        """Return rows with their owners, which they do not say themselves; written once."""
        if isinstance(table.owner, Through):
            return self._kept_once("owned", table, self._through(read, table))
        domains = {column.name: column.domain for column in table.columns.values()}
        alike = [self._column(each) for each in domains]
        together = read.repartition(*alike) if alike else read.repartition(1)
        rows = _rows(together, each_owned(domains, self.key), owner=True)
        return self._kept_once("owned", table, rows)

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

    def _cut(self, table: Table, heavy: Any) -> None:
        """Write a table's files anew: the rows of whoever has few enough, and a fair sample of each
        other person's.
        """
        domains = {column.name: column.domain for column in table.columns.values()}
        heavy.createOrReplaceTempView("heavy")
        whole = self._place(table).rename(self._scratch("whole", table))
        rows = self.session.read.schema(self.schemas[table.name]).parquet(address(whole))
        rows.createOrReplaceTempView("whole")
        listed = _stored(table)
        light = self._sql(f"SELECT {listed} FROM whole LEFT ANTI JOIN heavy USING ({_OWNER})")
        many = self._sql(f"SELECT {listed} FROM whole LEFT SEMI JOIN heavy USING ({_OWNER})")
        statement = first_rows_of(domains, self.key, table.max_rows)
        chosen = _rows(many.repartition(self._column(OWNER)), statement)
        light.unionAll(chosen).write.parquet(address(self._place(table)))

    def _counted(self, table: Table) -> list[int]:
        counts = counts_of(table, _OWNER, quote=identifier)
        named = ", ".join(f"{count} AS c{place}" for place, count in enumerate(counts))
        (row,) = self._sql(f"SELECT {named} FROM {_view(table)}").toArrow().to_pylist()
        return list(row.values())

    # running

    def _sql(self, sql: str) -> Any:
        return self.session.sql(sql)

    def _column(self, column: str) -> Any:
        from pyspark.sql.connect.functions import builtin

        return builtin.col(identifier(column))


def _any(rows: Any) -> bool:
    """Return whether there is a row; nothing of it comes here."""
    return bool(rows.selectExpr("1 AS one").limit(1).toArrow().num_rows)


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


def _in_spark(kinds: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield columns of DuckDB's types with the types in which Spark reads them."""
    for column, kind in kinds.items():
        yield column, _spark_kind(kind) or "STRING"


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
