"""Copy the tables of a snapshot from DuckDB into a Postgres schema, in types that hold every value
exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.engines.layout import public
from discreet.engines.postgres.binary import Field, day, encode, moment, number, numeric, send, text
from discreet.engines.postgres.kinds import Tables
from discreet.engines.postgres.server import MANIFEST, PUBLIC_TABLES, schema_of, twin_of
from discreet.engines.quoting import name
from discreet.engines.source import engine_errors
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link

_ROWS = 20_000  # rows that are copied at a time
_NAME = 63  # bytes of a name that Postgres keeps
_TAKEN = ("cmax", "cmin", "ctid", "tableoid", "xmax", "xmin")  # columns that every table has
_MOST_PUBLIC = 900_000_000  # bytes of one public table; a value in Postgres has at most 1 GB


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How a type of DuckDB is stored in Postgres."""

    type: str  # Postgres's type
    field: Field  # how a value is sent
    select: str = "{}"  # the SQL by which DuckDB gives the value


_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_HUGE = ("HUGEINT", "UBIGINT", "UHUGEINT")
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS")
_TEXT = "CAST({} AS VARCHAR)"
_FORMS = {
    **dict.fromkeys(_WHOLE, _Form(type="bigint", field=number(">i8"))),
    **dict.fromkeys(_HUGE, _Form(type="numeric", field=numeric(0), select=_TEXT)),
    **dict.fromkeys(
        _MOMENTS, _Form(type="timestamp", field=moment, select="CAST({} AS TIMESTAMP)")
    ),
    "VARCHAR": _Form(type='text COLLATE "C"', field=text),
    "BOOLEAN": _Form(type="boolean", field=number("u1")),
    "DATE": _Form(type="date", field=day),
    "DOUBLE": _Form(type="double precision", field=number(">f8")),
    "FLOAT": _Form(type="real", field=number(">f4")),
    "TIME": _Form(type="time", field=number(">i8")),
    "TIMESTAMP WITH TIME ZONE": _Form(type="timestamptz", field=moment),
    "UUID": _Form(type="uuid", field=text, select="unhex(replace(CAST({} AS VARCHAR), '-', ''))"),
}
_AS_TEXT = _Form(type='text COLLATE "C"', field=text, select=_TEXT)


def _form(kind: str) -> _Form:
    """Return the form of a type. If Postgres has no such type, store the text that DuckDB
    writes.
    """
    if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        digits, scale = map(int, decimal.groups())
        return _Form(type=f"numeric({digits},{scale})", field=numeric(scale), select=_TEXT)
    return _FORMS.get(kind, _AS_TEXT)


def require_names(names: Iterable[str]) -> None:
    """Raise UsageError if Postgres would take two names for one."""
    seen: dict[str, str] = {}
    for each in names:
        other = seen.setdefault(each.encode()[:_NAME].decode(errors="ignore"), each)
        if other != each:
            raise UsageError(
                f"Postgres keeps {_NAME} bytes of a name, and {other} and {each} begin alike. Rename one."
            )


def create_table(connection: Link, number: int, table: str, columns: Mapping[str, str]) -> None:
    """Create a table without rows in the schema of a snapshot and in its empty twin."""
    require_names(columns)
    for taken in columns.keys() & set(_TAKEN):
        raise UsageError(
            f"{table}.{taken}: Postgres keeps this name of a column for itself. Rename it, or leave it out."
        )
    listed = ", ".join(f"{name(column)} {_form(kind).type}" for column, kind in columns.items())
    for schema in (schema_of(number), twin_of(number)):
        connection.execute(f"CREATE TABLE {schema}.{name(table)} ({listed})".encode())


def copy_rows(
    duckdb: Any, rows: str, connection: Link, number: int, table: str, columns: Mapping[str, str]
) -> int:
    """Copy the rows of a DuckDB query into a table of these columns; return how many arrived."""
    from psycopg.errors import CharacterNotInRepertoire

    forms = [_form(kind) for kind in columns.values()]
    selected = [
        f"{form.select.format(name(column))} AS {name(column)}"
        for column, form in zip(columns, forms, strict=True)
    ]
    query = f"SELECT {', '.join(selected)} FROM ({rows})"
    sent = 0

    def encoded() -> Iterator[memoryview]:
        nonlocal sent
        with engine_errors("Copying a snapshot"):
            for batch in duckdb.sql(query).to_arrow_reader(_ROWS):
                sent += batch.num_rows
                yield encode(batch, [form.field for form in forms])

    place = f"{schema_of(number)}.{name(table)}"
    try:
        arrived = send(connection, f"COPY {place} FROM STDIN (FORMAT binary, FREEZE)", encoded())
    except CharacterNotInRepertoire:
        raise UsageError(
            f"The table {table} has a text with the letter NUL, which Postgres cannot hold. "
            "Remove it from the source, or leave the column out of the policy."
        ) from None
    if arrived != sent:
        raise UsageError(
            f"The snapshot was not made: {arrived} of {sent} rows of {table} arrived in Postgres."
        )
    return arrived


def keep_public(duckdb: Any, connection: Link, number: int, table: str) -> None:
    """Store a public table once more as Arrow bytes, with DuckDB's types and order, so that all
    engines return the same table.
    """
    import pyarrow as pa

    with engine_errors("Copying a snapshot"):
        content = duckdb.sql(f"SELECT * FROM {public(table)} ORDER BY ALL").to_arrow_table()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, content.schema) as writer:
        writer.write_table(content)
    data = sink.getvalue().to_pybytes()
    if len(data) > _MOST_PUBLIC:
        raise UsageError(
            f"The public table {table} is too large for the engine postgres: at most 900 MB."
        )
    kept = f"{schema_of(number)}.{name(PUBLIC_TABLES)}"
    connection.execute(f"INSERT INTO {kept} VALUES (%s, %s)".encode(), [table, data])


def keep_manifest(connection: Link, number: int, notes: str, tables: Tables) -> None:
    """Store the manifest, the last part of a snapshot: its notes, and the types of its columns."""
    kept = f"{schema_of(number)}.{name(MANIFEST)}"
    connection.execute(f"CREATE TABLE {kept} (notes text, tables text)".encode())
    connection.execute(f"INSERT INTO {kept} VALUES (%s, %s)".encode(), [notes, json.dumps(tables)])
