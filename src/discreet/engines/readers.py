"""Databases and workbooks that are read whole, table by table, by somebody else's reader: SQLite, Excel, PostgreSQL.

A SQLite column and a sheet have no types: each value becomes text by itself (S23), as in a CSV file, and the policy's
domain reads that text. PostgreSQL's columns have types, which its catalog declares. `schema` never reads a value.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.engines.frames import first_twice, text_of
from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

SQLITE = (".sqlite", ".sqlite3", ".db3")
EXCEL = (".xlsx", ".xlsm")
_SQLITE_MARK = b"SQLite format 3\x00"
POSTGRES = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What a database declares about a table: never what its rows hold."""

    types: dict[str, str]
    primary: tuple[str, ...] = ()
    foreign: dict[str, tuple[str, str]] = field(default_factory=dict)  # column: the table and column that it names
    checks: tuple[str, ...] = ()  # SQL of its CHECK constraints
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of its ENUM columns


class Reader(Protocol):
    """One database or workbook."""

    @property
    def file(self) -> Path | None:
        """The file that holds it, if one does."""

    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""

    def declared(self, table: str) -> Declared:
        """Return what the database declares about a table."""

    def read(self, table: str, *, rows: bool) -> pa.Table:
        """A table's columns, with its rows or without any."""


def reader_at(location: str | Path) -> Reader | None:
    """The reader of what is there; None where it is none of ours."""
    text = str(location)
    if text.startswith(POSTGRES):
        return Postgres(address=text)
    path = Path(text)
    if path.is_file() and (path.suffix.lower() in SQLITE or _begins(path, _SQLITE_MARK)):
        return SQLite(file=path)
    if path.suffix.lower() in EXCEL and path.is_file():
        return Excel(file=path)
    return None


def _begins(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as content:
            return content.read(len(mark)) == mark
    except OSError:
        return False


def _texts(names: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array([text_of(value) for value in column], pa.string()) for column in columns]
    return pa.table(arrays, names=names)


# --- SQLite: by Python's own reader -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SQLite:
    """One SQLite file."""

    file: Path

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(f"{self.file.absolute().as_uri()}?mode=ro", uri=True)
            connection.text_factory = _utf8_or_nothing
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error:
            why = "it is no SQLite file, or another program is writing to it"
            raise UsageError(f"The source {self.file} cannot be read: {why}.") from None

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            return tuple(row[0] for row in connection.execute(named))

    def declared(self, table: str) -> Declared:
        with self._opened() as connection:
            columns = connection.execute("SELECT name, type, pk FROM pragma_table_info(?)", [table]).fetchall()
            keys = connection.execute('SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [table])
            foreign = {column: (other, key or column) for column, other, key in keys.fetchall()}
            made = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()
        return Declared(
            types={name: (kind or "").upper() for name, kind, _ in columns},
            primary=tuple(name for name, _, place in sorted(columns, key=lambda row: row[2]) if place),
            foreign=foreign,
            checks=tuple(_checks(made[0] if made and made[0] else "")),
        )

    def read(self, table: str, *, rows: bool) -> pa.Table:
        names = list(self.declared(table).types)
        if not rows:
            return _texts(names, [])
        with self._opened() as connection:
            quoted = table.replace('"', '""')
            return _texts(names, connection.execute(f'SELECT * FROM "{quoted}"').fetchall())


def _utf8_or_nothing(data: bytes) -> str | None:
    """Texts whose bytes are not UTF-8 are NULL, wherever they come from."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _checks(sql: str) -> Iterator[str]:
    """The conditions of CHECK ( ... ) in a CREATE TABLE."""
    upper, start = sql.upper(), 0
    while (found := upper.find("CHECK", start)) >= 0:
        begin = sql.find("(", found)
        depth, end = 0, begin
        for end in range(begin, len(sql)):
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            if depth == 0:
                break
        if begin >= 0:
            yield sql[begin + 1 : end]
        start = max(end, found + 5)


# --- Excel: by openpyxl -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Excel:
    """One workbook: a sheet is a table, its first row names the columns."""

    file: Path

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            from openpyxl import load_workbook  # type: ignore[import-untyped]
        except ImportError:
            raise UsageError("Excel files need openpyxl: pip install 'discreet[excel]'.") from None
        try:
            book = load_workbook(self.file, read_only=True, data_only=True)
        except Exception:  # whatever a broken file makes of it
            raise UsageError(f"The source {self.file} cannot be read as a workbook (.xlsx).") from None
        try:
            yield book
        finally:
            book.close()

    def tables(self) -> tuple[str, ...]:
        with self._opened() as book:
            return tuple(sorted(book.sheetnames))

    def declared(self, table: str) -> Declared:
        with self._opened() as book:
            return Declared(types=dict.fromkeys(self._header(book, table), ""))

    def read(self, table: str, *, rows: bool) -> pa.Table:
        with self._opened() as book:
            names = self._header(book, table)
            if not rows:
                return _texts(names, [])
            found = book[table].iter_rows(min_row=2, max_col=len(names), values_only=True)
            full = [row + (None,) * (len(names) - len(row)) for row in found if any(cell is not None for cell in row)]
            return _texts(names, full)

    def _header(self, book: Any, table: str) -> list[str]:
        first = next(book[table].iter_rows(max_row=1, values_only=True), ())
        names = [str(cell).strip() if cell is not None else "" for cell in first]
        while names and not names[-1]:
            names.pop()
        if not names or not all(names):
            raise UsageError(f"The sheet {table} of {self.file.name} has no header: name its columns in the first row.")
        twice = first_twice(names)
        if twice is not None:
            raise UsageError(f"The sheet {table} of {self.file.name} has two columns {twice}. Rename one.")
        return names


# --- PostgreSQL: by psycopg -------------------------------------------------------------------------------------------

_ARROW = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "int64"),
    **dict.fromkeys(("float4", "float8"), "float64"),
    "bool": "bool_",
    "date": "date32",
}
_BATCH = 50_000  # rows that come at a time
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
    """The tables of the first schema on the search path, each as of one moment, by a role that needs SELECT alone."""

    address: str
    file: None = None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            import psycopg
        except ImportError:
            raise UsageError("A PostgreSQL source needs psycopg: pip install 'discreet[postgres]'.") from None
        try:
            connection = psycopg.connect(self.address, connect_timeout=10)
        except psycopg.Error:
            raise UsageError("The PostgreSQL source cannot be reached with this address and role.") from None
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield connection
        except psycopg.Error:  # its messages can print values
            raise UsageError("The PostgreSQL source could not be read: the role may lack SELECT on a table.") from None
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
        for kind, ours, theirs, other, definition, relation in connection.execute(_CONSTRAINTS, [named]).fetchall():
            kind = kind.decode() if isinstance(kind, bytes) else kind
            if kind == "p":
                primary = tuple(names[number] for number in ours)
            elif kind == "f" and len(ours) == 1:
                key = connection.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = %s::oid AND attnum = %s", [relation, theirs[0]]
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

    def read(self, table: str, *, rows: bool) -> pa.Table:
        import pyarrow as pa

        with self._opened() as connection:
            declared = self._declared(connection, table)
            schema = pa.schema([(name, _arrow_type(kind)) for name, kind in declared.types.items()])
            if not rows:
                return schema.empty_table()
            parts = []
            with connection.cursor(name="discreet") as cursor:
                cursor.execute(f"SELECT {', '.join(map(_expression, declared.types.items()))} FROM {_quoted(table)}")
                while batch := cursor.fetchmany(_BATCH):
                    columns = zip(*batch, strict=True)
                    arrays = [pa.array(list(column), each.type) for column, each in zip(columns, schema, strict=True)]
                    parts.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
            return pa.Table.from_batches(parts, schema=schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _arrow_type(kind: str) -> Any:
    """The type in which values come; what Arrow has no exact type for comes as text."""
    import pyarrow as pa

    return getattr(pa, _ARROW[kind])() if kind in _ARROW else pa.string()


def _expression(column: tuple[str, str]) -> str:
    """A column as it is read. Dates beyond those of Python, and what has no type of ours, as text or NULL."""
    name, kind = column
    if kind == "date":
        return f"CASE WHEN {_quoted(name)} BETWEEN '0001-01-01' AND '9999-12-31' THEN {_quoted(name)} END"
    return _quoted(name) if kind in _ARROW else f"{_quoted(name)}::text"
