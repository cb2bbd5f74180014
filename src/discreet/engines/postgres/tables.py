"""A prepared snapshot, copied from its DuckDB file into a schema: the same rows, in types that hold
them exactly.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from discreet.engines.layout import OWNER, PUBLIC, SCHEMAS
from discreet.engines.layout import private as private_place
from discreet.engines.layout import public as public_place
from discreet.engines.postgres.kinds import Tables
from discreet.engines.postgres.server import MANIFEST, PUBLIC_TABLES, schema_of, twin_of
from discreet.engines.quoting import literal, name
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link

_ROWS = 100_000  # that are copied at a time
_MOST_PUBLIC = 900_000_000  # bytes of one public table: Postgres holds no value of more than 1 GB
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_TYPES = {
    **dict.fromkeys(_NUMBERS, "bigint"),
    **dict.fromkeys(("HUGEINT", "UBIGINT", "UHUGEINT"), "numeric"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), "timestamp"),
    "VARCHAR": 'text COLLATE "C"',
    "BOOLEAN": "boolean",
    "DATE": "date",
    "DOUBLE": "double precision",
    "FLOAT": "real",
    "TIME": "time",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "UUID": "uuid",
}
# Arrow writes them as Postgres reads
_AS_THEY_ARE = frozenset((*_NUMBERS, "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP"))


def type_of(kind: str) -> str:
    """Return the type of Postgres for one of DuckDB's; what has none is text, as DuckDB
    writes it.
    """
    if kind.startswith("DECIMAL"):
        return kind.replace("DECIMAL", "numeric")
    return _TYPES.get(kind, 'text COLLATE "C"')


def stored_tables(snapshot: Any) -> dict[str, dict[str, str]]:
    """Return the tables of an open DuckDB snapshot: their columns and types."""
    listed = snapshot.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        f"WHERE schema_name IN ({', '.join(map(literal, SCHEMAS))}) AND NOT internal ORDER BY table_name, column_index"
    )
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in listed.fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def create_tables(connection: Link, number: int, tables: Tables) -> None:
    """Create the schema of a snapshot and its empty twin, with all tables and no rows."""
    for schema in (schema_of(number), twin_of(number)):
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        for table, columns in tables.items():
            listed = ", ".join(
                f"{name(column)} {type_of(kind)}" for column, kind in columns.items()
            )
            connection.execute(f"CREATE TABLE {schema}.{name(table)} ({listed})".encode())


def copy_rows(
    snapshot: Any, connection: Link, number: int, table: str, columns: dict[str, str]
) -> int:
    """Copy a table; returns how many rows there are now."""
    place = private_place(table) if OWNER in columns else public_place(table)
    listed = ", ".join(
        name(column)
        if kind in _AS_THEY_ARE
        else f"CAST({name(column)} AS VARCHAR) AS {name(column)}"
        for column, kind in columns.items()
    )
    reader = snapshot.sql(f"SELECT {listed} FROM {place}").to_arrow_reader(_ROWS)
    cursor = connection.cursor()
    with cursor.copy(
        f"COPY {schema_of(number)}.{name(table)} FROM STDIN (FORMAT csv, FREEZE)".encode()
    ) as copy:
        for text in _as_csv(reader):
            if b"\x00" in text:
                raise UsageError(
                    f"The table {table} has a text with the letter NUL, which Postgres cannot hold. "
                    "Remove it from the source, or leave the column out of the policy."
                )
            copy.write(text)
    return cursor.rowcount


def _as_csv(batches: Any) -> Iterator[bytes]:
    from pyarrow import csv

    # texts stand in quotes, also those that are empty: what is empty without them is NULL
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    for batch in batches:
        text = io.BytesIO()
        csv.write_csv(batch, text, options)
        yield text.getvalue()


def keep_public(snapshot: Any, connection: Link, number: int, tables: Tables) -> None:
    """Keep the public tables once more as Arrow, as every engine gives them: types and order are
    DuckDB's.
    """
    import pyarrow as pa

    kept = f"{schema_of(number)}.{name(PUBLIC_TABLES)}"
    connection.execute(f"CREATE TABLE {kept} (name text, content bytea)".encode())
    for table, columns in tables.items():
        if OWNER in columns:
            continue
        content = snapshot.sql(
            f"SELECT * FROM {PUBLIC}.{name(table)} ORDER BY ALL"
        ).to_arrow_table()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, content.schema) as writer:
            writer.write_table(content)
        data = sink.getvalue().to_pybytes()
        if len(data) > _MOST_PUBLIC:
            raise UsageError(
                f"The public table {table} is too large for the engine postgres: at most 900 MB."
            )
        connection.execute(f"INSERT INTO {kept} VALUES (%s, %s)".encode(), [table, data])


def keep_manifest(connection: Link, number: int, notes: str, tables: Tables) -> None:
    """Write the last part of a snapshot: the notes about it, and the types of its columns."""
    kept = f"{schema_of(number)}.{name(MANIFEST)}"
    connection.execute(f"CREATE TABLE {kept} (notes text, tables text)".encode())
    connection.execute(f"INSERT INTO {kept} VALUES (%s, %s)".encode(), [notes, json.dumps(tables)])
