"""PostgreSQL databases, by psycopg."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.engines.frames import first_twice
from discreet.engines.postgres.server import ALIVE
from discreet.engines.readers.copied import copy_rows
from discreet.engines.readers.reader import ArrowRows, Declarations, Wanted
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
# Types whose values a domain can hold; those of other databases, such as citext, by their category.
_HELD = frozenset(
    (
        *(*_ARROW, "numeric", "money", "timestamp", "timestamptz"),
        *("text", "varchar", "bpchar", "name", "char", "uuid"),
    )
)
_ENUM, _STRINGS = "e", "S"
# A domain is what it is over. A type of somebody else's may have the name of one of Postgres's own.
_COLUMNS = """
SELECT a.attname, a.attnum, format_type(t.oid, t.mod), t.typtype, t.typcategory,
       CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname ELSE '' END, t.mod,
       ARRAY(SELECT e.enumlabel FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder)
FROM pg_attribute a CROSS JOIN LATERAL (
  WITH RECURSIVE under AS (
    SELECT d.oid, d.typname, d.typnamespace, d.typtype, d.typcategory, d.typbasetype,
      a.atttypmod AS mod, d.typtypmod
    FROM pg_type d WHERE d.oid = a.atttypid
    UNION ALL
    SELECT d.oid, d.typname, d.typnamespace, d.typtype, d.typcategory, d.typbasetype,
      under.typtypmod, d.typtypmod
    FROM under JOIN pg_type d ON d.oid = under.typbasetype
  ) SELECT * FROM under WHERE typtype <> 'd'
) AS t
WHERE a.attrelid = %s::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_CONSTRAINTS = """
SELECT c.contype, c.conkey, c.confkey, f.relname, pg_get_constraintdef(c.oid), c.confrelid::bigint
FROM pg_constraint c LEFT JOIN pg_class f ON f.oid = c.confrelid WHERE c.conrelid = %s::oid
"""
# Tables, views and what stands for tables elsewhere; a partition is a part of its table. Whatever
# the search path says, those of the catalog are nobody's source.
_TABLES = """
SELECT c.relname, c.oid::bigint, format('%I.%I', n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = (
  SELECT name FROM unnest(current_schemas(false)) WITH ORDINALITY AS path(name, place)
  WHERE name NOT IN ('pg_catalog', 'information_schema') ORDER BY place LIMIT 1
) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)
ORDER BY 1
"""
# How values are written, whatever the role or the database says; and a table of which rows are
# hidden from the role is an error, not a smaller table.
_SETTINGS = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "row_security": "off",
    # the largest table takes as long as it takes, and others wait for it
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_MOST_DIGITS = 38  # of Arrow's decimals
_FIRST, _LAST = "0001-01-01", "9999-12-31"  # of Python's dates


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """The tables of the first schema on the search path, as of one moment, by a role that needs
    SELECT alone.
    """

    address: str = field(repr=False)  # it may hold a password
    file: None = None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """A transaction of REPEATABLE READ: all is read as of the moment of its first statement."""
        try:
            import psycopg
        except ImportError:
            raise missing("psycopg", what="A PostgreSQL source") from None
        try:
            connection = psycopg.connect(self.address, connect_timeout=10, **ALIVE)
        except psycopg.Error:
            raise UsageError(
                "The PostgreSQL source cannot be reached with this address and role."
            ) from None
        try:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            with _one_sentence():
                for setting, value in _SETTINGS.items():
                    connection.execute("SELECT set_config(%s, %s, true)", [setting, value])
            yield connection
        finally:
            connection.close()

    def tables(self) -> tuple[str, ...]:
        with self._opened() as connection, _one_sentence():
            return tuple(table.name for table in _tables(connection))

    def declared(self, table: str) -> Declarations:
        with self._opened() as connection, _one_sentence():
            return self._declared(connection, _named(connection, table))

    def _declared(self, connection: Any, table: _Table) -> Declarations:
        columns = self._columns(connection, table)
        names = {column.number: column.name for column in columns}
        primary: tuple[str, ...] = ()
        foreign: dict[str, tuple[str, str]] = {}
        checks = []
        for kind, ours, theirs, other, definition, relation in connection.execute(
            _CONSTRAINTS, [table.oid]
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
        return Declarations(
            types={column.name: column.told for column in columns},
            primary=primary,
            foreign=foreign,
            checks=tuple(checks),
            values={column.name: column.labels for column in columns if column.labels},
        )

    def _columns(self, connection: Any, table: _Table) -> list[_Column]:
        rows = connection.execute(_COLUMNS, [table.oid]).fetchall()
        return [
            _Column(
                name=name,
                number=number,
                told="enum" if _text(form) == _ENUM else written,
                kind=kind,
                held=kind in _HELD or _text(form) == _ENUM or _text(category) == _STRINGS,
                mod=mod,
                labels=tuple(labels),
            )
            for name, number, written, form, category, kind, mod, labels in rows
        ]

    def unheld(self, table: str) -> dict[str, str]:
        with self._opened() as connection, _one_sentence():
            columns = self._columns(connection, _named(connection, table))
        _require_different(table, [column.name for column in columns])
        return {column.name: column.told for column in columns if not column.held}

    @contextmanager
    def read(self, rows: Wanted) -> Iterator[dict[str, ArrowRows]]:
        found: dict[str, ArrowRows] = {}
        errors: list[Exception] = []
        with self._opened() as connection:
            with _one_sentence():
                for table in _tables(connection):
                    asked = table.name.lower() in rows
                    wanted = rows.get(table.name.lower())
                    stream = self._stream(connection, table, wanted, errors)
                    if asked and wanted is None:  # public; for the others `unheld` does it
                        _require_different(table.name, stream.schema.names)
                    found[table.name] = stream if asked else stream.schema.empty_table()
            try:
                yield found
            except Exception:
                if not errors:
                    raise
                # whoever read the stream knows only that it ended
                with _one_sentence():
                    raise errors[0] from None

    def _stream(
        self,
        connection: Any,
        table: _Table,
        wanted: frozenset[str] | None,
        errors: list[Exception],
    ) -> _Stream:
        """Return the rows of a table, with the columns that are wanted: others are not sent."""
        import pyarrow as pa

        columns = self._columns(connection, table)
        if wanted is not None:
            asked = [column for column in columns if column.name.lower() in wanted]
            columns = asked or columns[:1]  # a row without columns cannot be counted
        schema = pa.schema([(column.name, column.arrow) for column in columns])
        listed = ", ".join(column.expression for column in columns)
        select = f"SELECT {listed} FROM {table.place}"
        return _Stream(schema, lambda: copy_rows(connection, select, schema), errors)


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Make one sentence of what goes wrong while the source is read: messages print values."""
    import psycopg
    import pyarrow as pa

    try:
        yield
    except psycopg.errors.InsufficientPrivilege:
        raise UsageError(
            "The PostgreSQL source could not be read: its role lacks SELECT on a table, or row-level security "
            "hides rows of one from it (then give it BYPASSRLS, or a view of the rows that are meant)."
        ) from None
    except (psycopg.DataError, pa.ArrowInvalid):
        raise UsageError(
            "The PostgreSQL source could not be read: a view fails on one of its rows, or a text is not UTF-8."
        ) from None
    except psycopg.Error as error:
        raise UsageError(
            f"The PostgreSQL source could not be read: the server failed or went away ({type(error).__name__})."
        ) from None


@dataclass(frozen=True, slots=True)
class _Stream:
    """The rows of a table, some in memory at a time, each time it is read; `errors` gets what goes
    wrong.
    """

    schema: pa.Schema
    begin: Callable[[], Iterator[pa.RecordBatch]]
    errors: list[Exception]

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(
            requested_schema
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.begin()
        except Exception as error:
            self.errors.append(error)
            raise


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the source: its name, its number in the catalog, and what to write after FROM."""

    name: str
    oid: int
    place: str


def _tables(connection: Any) -> list[_Table]:
    return [_Table(*row) for row in connection.execute(_TABLES).fetchall()]


def _named(connection: Any, name: str) -> _Table:
    """Return the table of a name, in upper or lower case: `schemas` has seen that there is one."""
    found = [table for table in _tables(connection) if table.name.lower() == name.lower()]
    exact = [table for table in found if table.name == name]
    return (exact or found)[0]


def _require_different(table: str, columns: Iterable[str]) -> None:
    twice = first_twice(columns)
    if twice is not None:
        raise UsageError(
            f"The table {table} has two columns {twice}, in upper and lower case. "
            "Rename one, or read a view with other names."
        )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str | bytes) -> str:
    """Return a value of the type "char", which comes as either."""
    return value.decode() if isinstance(value, bytes) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column of a table: its type as people write it, and the one of Postgres's own below it."""

    name: str
    number: int
    told: str
    kind: str  # the name of a type of pg_catalog, or ""
    held: bool  # whether there are domains for its values
    mod: int  # of a numeric, how many digits it has
    labels: tuple[str, ...]

    @property
    def digits(self) -> tuple[int, int] | None:
        """Return how many digits a numeric may have, and how many of them behind the point."""
        if self.kind != "numeric" or self.mod < 4:
            return None
        precision = (self.mod - 4) >> 16
        scale = (self.mod - 4) & 0x7FF
        return (precision, scale) if scale <= precision <= _MOST_DIGITS else None

    @property
    def arrow(self) -> pa.DataType:
        """The type in which values come; what Arrow has no exact type for comes as text."""
        import pyarrow as pa

        if self.digits is not None:
            return pa.decimal128(*self.digits)
        if self.kind in ("timestamp", "timestamptz"):
            return pa.timestamp("us")
        return getattr(pa, _ARROW[self.kind])() if self.kind in _ARROW else pa.string()

    @property
    def expression(self) -> str:
        """The column as it is read: what is beyond Python's dates at their ends; a number in one
        form, whatever zeros stand behind its point.
        """
        named = _quoted(self.name)
        match self.kind:
            case "date":
                inside = f"greatest(least({named}, DATE '{_LAST}'), DATE '{_FIRST}')"
                return f"CASE WHEN {named} IS NOT NULL THEN {inside} END"
            case "timestamp" | "timestamptz":
                moment = f"{named} AT TIME ZONE 'UTC'" if self.kind == "timestamptz" else named
                last = f"TIMESTAMP '{_LAST} 23:59:59.999999'"
                inside = f"greatest(least({moment}, {last}), TIMESTAMP '{_FIRST}')"
                return f"CASE WHEN {named} IS NOT NULL THEN {inside} END"
            case "numeric" if self.digits is not None:
                return f"CASE WHEN {named} <> 'NaN' THEN {named} END"
            case "numeric":
                # Privacy: 1 and 1.00 are one owner.
                return f"trim_scale({named})::text"
            case "money":
                return f"{named}::numeric::text"
        return named if self.kind in _ARROW else f"{named}::text"
