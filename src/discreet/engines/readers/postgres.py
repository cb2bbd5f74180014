"""PostgreSQL databases, by psycopg."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.engines.readers.copied import copied
from discreet.engines.readers.reader import Declared
from discreet.errors import UsageError
from discreet.extras import missing

if TYPE_CHECKING:
    import pyarrow as pa

_ARROW = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "int64"),
    **dict.fromkeys(("float4", "float8"), "float64"),
    "bool": "bool_",
    "date": "date32",
}
_COLUMNS = """
SELECT a.attname, t.typname, t.typtype, a.attnum,
       ARRAY(SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = """
SELECT c.contype, c.conkey, c.confkey, f.relname, pg_get_constraintdef(c.oid), c.confrelid::bigint
FROM pg_constraint c LEFT JOIN pg_class f ON f.oid = c.confrelid WHERE c.conrelid = %s::regclass
"""
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The tables of the first schema on the search path, as of one moment, by a role that needs
    SELECT alone.
    """

    address: str
    file: None = None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError:
            raise missing("psycopg", what="A PostgreSQL source") from None
        try:
            connection = psycopg.connect(self.address, connect_timeout=10)
        except psycopg.Error:
            raise UsageError(
                "The PostgreSQL source cannot be reached with this address and role."
            ) from None
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute("SET LOCAL DateStyle = 'ISO, YMD'")
            yield connection
        except psycopg.Error:  # its messages can print values
            raise UsageError(
                "The PostgreSQL source could not be read: the role may lack SELECT on a table."
            ) from None
        finally:
            connection.close()

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection:
            return tuple(row[0] for row in connection.execute(_TABLES).fetchall())

    def declared(self, table: str) -> Declared:
        with self._opened() as connection:
            return self._declared(connection, table)

    def _declared(self, connection: Any, table: str) -> Declared:
        named = _quoted(table)
        columns = connection.execute(_COLUMNS, [named]).fetchall()
        names = {number: name for name, _, _, number, _ in columns}
        primary: tuple[str, ...] = ()
        foreign: dict[str, tuple[str, str]] = {}
        checks = []
        for kind, ours, theirs, other, definition, relation in connection.execute(
            _CONSTRAINTS, [named]
        ).fetchall():
            kind = kind.decode() if isinstance(kind, bytes) else kind
            if kind == "p":
                primary = tuple(names[number] for number in ours)
            elif kind == "f" and len(ours) == 1:
                key = connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::oid AND attnum = %s",
                    [relation, theirs[0]],
                ).fetchone()[0]
                foreign[names[ours[0]]] = (other, key)
            elif kind == "c":
                checks.append(definition)
        return Declared(
            types={name: kind if form != "e" else "enum" for name, kind, form, _, _ in columns},
            primary=primary,
            foreign=foreign,
            checks=tuple(checks),
            values={name: tuple(labels) for name, _, form, _, labels in columns if form == "e"},
        )

    def read(self, rows: Iterable[str]) -> dict[str, pa.Table]:
        # One transaction of REPEATABLE READ: all tables are read as of the moment of its first
        # statement.
        wanted, found = set(rows), {}
        with self._opened() as connection:
            for (table,) in connection.execute(_TABLES).fetchall():
                found[table] = self._read(connection, table, rows=table.lower() in wanted)
        return found

    def _read(self, connection: Any, table: str, *, rows: bool) -> pa.Table:
        import pyarrow as pa

        declared = self._declared(connection, table)
        schema = pa.schema([(name, _arrow_type(kind)) for name, kind in declared.types.items()])
        if not rows:
            return schema.empty_table()
        select = (
            f"SELECT {', '.join(map(_expression, declared.types.items()))} FROM {_quoted(table)}"
        )
        return pa.Table.from_batches(copied(connection, select, schema), schema=schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _arrow_type(kind: str) -> Any:
    """The type in which values come; what Arrow has no exact type for comes as text."""
    import pyarrow as pa

    return getattr(pa, _ARROW[kind])() if kind in _ARROW else pa.string()


def _expression(column: tuple[str, str]) -> str:
    """A column as it is read. Dates beyond those of Python, and what has no type of ours, as text
    or NULL.
    """
    name, kind = column
    if kind == "date":
        return f"CASE WHEN {_quoted(name)} BETWEEN '0001-01-01' AND '9999-12-31' THEN {_quoted(name)} END"
    return _quoted(name) if kind in _ARROW else f"{_quoted(name)}::text"
