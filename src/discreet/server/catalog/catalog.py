"""pg_catalog and information_schema, for clients of Postgres: what they look up, answered from the
policy alone.

Statements run in a locked in-memory database that holds what the policy says and nothing else. They
are written anew in a closed vocabulary first: nothing that an analyst sends is run as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from discreet.arrow import array
from discreet.errors import EngineFailure
from discreet.server.catalog import types
from discreet.server.catalog.calls import SETTINGS_NOW
from discreet.server.catalog.failure import CatalogError
from discreet.server.catalog.functions import macros
from discreet.server.catalog.outputs import name_outputs
from discreet.server.catalog.parse import parse
from discreet.server.catalog.session import CatalogSession
from discreet.server.catalog.tables import contents, fixed
from discreet.server.catalog.tables.builtin import rows
from discreet.server.catalog.tables.views import fill_views
from discreet.server.catalog.translate import PER_SESSION, Translation, cancel_backends, translate

if TYPE_CHECKING:
    from discreet.curator import Curator

SECONDS = 10.0  # that one statement may take


class CatalogDatabase(Protocol):
    """The locked database that the curator gives: it runs what is written anew here, and nothing
    else.
    """

    def columns(self, sql: str, beside: Mapping[str, pa.Table]) -> pa.Schema: ...

    def run(self, sql: str, beside: Mapping[str, pa.Table], *, seconds: float) -> pa.Table: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementDescription:
    """The columns that a statement returns, with their types in the metadata, and the types of its
    parameters.
    """

    parameters: tuple[int, ...]
    schema: pa.Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class _SnapshotDatabase:
    """The database of one snapshot's public columns, and the names of the objects in it."""

    public: Mapping[str, pa.Schema]
    reference: CatalogDatabase
    numbers: Mapping[str, Mapping[str, int]]  # of regclass, regtype, ...: by name
    names: Mapping[str, Mapping[int, str]]


class Catalog:
    """Answers what clients look up. Threads may share one."""

    def __init__(self, curator: Curator) -> None:
        self._curator = curator
        self._database = curator.policy.path.stem
        self._lock = Lock()
        self._filled: _SnapshotDatabase | None = None

    def answer(
        self,
        statement: str,
        session: CatalogSession,
        parameters: Sequence[object] = (),
        kinds: Sequence[int] = (),
    ) -> pa.Table | None:
        """Return the rows of a statement; None if it is not about the catalog. `kinds` are
        parameters' types.
        """
        found = self._read(statement, session, parameters, kinds)
        if found is None:
            return None
        made, filled = found
        try:
            table = filled.reference.run(made.sql, _beside(made, session), seconds=SECONDS)
        except EngineFailure as error:
            raise _why(error) from None
        return _finish(table, made, filled.names)

    def describe(
        self, statement: str, session: CatalogSession, kinds: Sequence[int] = ()
    ) -> StatementDescription | None:
        """Return types of parameters and columns without running anything; None if not about the
        catalog.
        """
        found = self._read(statement, session, None, kinds)
        if found is None:
            return None
        made, filled = found
        try:
            schema = filled.reference.columns(made.sql, _beside(made, session))
        except EngineFailure as error:
            raise _why(error) from None
        empty = _finish(schema.empty_table(), made, filled.names)
        return StatementDescription(
            parameters=tuple(types.oid(kind) for kind in made.parameters), schema=empty.schema
        )

    def _read(
        self,
        statement: str,
        session: CatalogSession,
        parameters: Sequence[object] | None,
        kinds: Sequence[int],
    ) -> tuple[Translation, _SnapshotDatabase] | None:
        tree = parse(statement, database=self._database)
        if tree is None:
            return None
        filled = self._current()
        name_outputs(tree)
        if parameters is not None:
            cancel_backends(tree, session.cancel, parameters)
        try:
            made = translate(
                tree,
                database=self._database,
                session=session.literals(),
                objects=filled.numbers,
                parameters=parameters,
                given=kinds,
            )
        except RecursionError:
            raise CatalogError(
                "54001", "The statement is nested too deeply.", hint="Split it."
            ) from None
        return made, filled

    def _current(self) -> _SnapshotDatabase:
        """Return the database; make it anew after a snapshot in which public tables have other
        columns.
        """
        public = self._curator.public_columns()
        with self._lock:
            if self._filled is None or self._filled.public != public:
                self._filled = self._fill(public)
            return self._filled

    def _fill(self, public: dict[str, pa.Schema]) -> _SnapshotDatabase:
        tables = contents.describe(self._curator.policy, public)
        stored = contents.fill(tables, database=self._database)
        stored["texts_of_keys"] = contents.texts_of_keys(tables)
        stored["written_types"] = _type_names(stored["pg_type"])
        stored["keywords"] = _keywords()
        script = [*macros(), *fill_views(self._database)]
        return _SnapshotDatabase(
            public=public,
            reference=self._curator.reference(stored, script),
            numbers=_numbers(stored),
            names=_names(stored),
        )


def _beside(made: Translation, session: CatalogSession) -> dict[str, pa.Table]:
    return {
        name: session.relation(name) for name in (*PER_SESSION, SETTINGS_NOW) if name in made.reads
    }


def _why(error: EngineFailure) -> CatalogError:
    """Tell what went wrong in words of Postgres; nothing private is there, so the engine may say
    what it found.
    """
    cause = type(error.__cause__).__name__
    said = str(error.__cause__).split("\n")[0][:200]
    if cause == "InterruptException":
        return CatalogError(
            "57014", f"The catalog answers within {SECONDS:g} seconds, or not at all."
        )
    if cause == "BinderException" and "not found" in said:
        return CatalogError("42703", f"The catalog has no such column: {said}")
    if cause in ("OutOfMemoryException", "NoneType") or "too long" in said or "Memory" in said:
        return CatalogError("53200", "The answer of the catalog is too large.")
    return CatalogError("42000", f"The catalog cannot answer this statement: {said}")


# --- what comes out -------------------------------------------------------------------------------


def _finish(table: pa.Table, made: Translation, names: Mapping[str, Mapping[int, str]]) -> pa.Table:
    """Return the result with Postgres's types, by number in the metadata of each column."""
    columns, fields = [], []
    positional = len(made.kinds) == table.num_columns
    for place, field in enumerate(table.schema):
        kind = made.kinds[place] if positional else made.by_name.get(field.name.lower())
        column, kind = _set_type(table.column(place), kind, names)
        columns.append(column)
        metadata = {"oid": str(types.oid(kind)), "typmod": "-1"}
        fields.append(pa.field(field.name, column.type, metadata=metadata))
    return pa.table(columns, schema=pa.schema(fields))


def _set_type(
    column: pa.ChunkedArray, kind: str | None, names: Mapping[str, Mapping[int, str]]
) -> tuple[pa.ChunkedArray, str]:
    """Return a column as its Postgres type has it; what does not fit is told as what it is."""
    if kind in types.REFERENCES and pa.types.is_integer(column.type):
        known = names.get(kind or "", {})
        said = ["-" if value == 0 else _name(known, value) for value in column.to_pylist()]
        return pa.chunked_array([array(said, pa.string())]), kind or "text"
    if kind in (None, "unknown", "record") or _family(types.arrow(kind or "text")) != _family(
        column.type
    ):
        kind = "text" if pa.types.is_null(column.type) else types.name_of(column.type)
    if kind == "numeric":
        return _numeric(column), kind
    try:
        return column.cast(types.arrow(kind)), kind
    except pa.ArrowException:
        return column.cast(pa.string()), "text"


def _name(known: Mapping[int, str], value: int | None) -> str | None:
    return None if value is None else known.get(value, str(value))


def _numeric(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals with no more digits than some value needs."""
    if not pa.types.is_decimal(column.type):
        column = column.cast(
            pa.decimal128(38, 0) if pa.types.is_integer(column.type) else pa.decimal128(38, 10)
        )
    values = [value for value in column.to_pylist() if isinstance(value, Decimal)]
    exponents = [value.normalize().as_tuple().exponent for value in values if value]
    digits = max((-place for place in exponents if isinstance(place, int)), default=0)
    return pc.cast(column, pa.decimal128(38, max(digits, 0)), safe=False)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {_family(kind.value_type)}"
    if pa.types.is_integer(kind):
        return "number"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "fraction"
    if pa.types.is_string(kind):
        return "text"
    if pa.types.is_timestamp(kind):
        return "moment"
    return str(kind)


# --- objects by name ------------------------------------------------------------------------------


def _type_names(known: pa.Table) -> pa.Table:
    """Return types as format_type writes them, as pg_type names them, and as people write them."""
    also = {
        name: words for words, name in types.SYNONYMS.items() if words not in types.WRITTEN.values()
    }
    by_oid: dict[int, str] = {row["oid"]: row["typname"] for row in known.to_pylist()}
    found = []
    for row in known.to_pylist():
        name = row["typname"]
        element = by_oid.get(row["typelem"])
        base = element if name.startswith("_") and element else name
        ends = "" if base is name else "[]"
        plain = base if row["oid"] < contents.DATABASE_OID else contents.quote_name(base)
        said = types.WRITTEN.get(base, plain) + ends
        found.append(
            {"oid": row["oid"], "typname": name, "said": said, "also": also.get(base, base) + ends}
        )
    return _table(found)


def _keywords() -> pa.Table:
    said = {"U": "unreserved", "C": "unreserved (cannot be function or type name)"}
    said |= {"T": "reserved (can be function or type name)", "R": "reserved"}
    found = [
        {"word": row["word"], "catcode": row["catcode"], "barelabel": row["barelabel"] == "t"}
        | {"catdesc": said[row["catcode"]], "baredesc": "can be bare label"}
        for row in rows("keyword")
    ]
    return _table(found)


def _table(found: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: array([row[name] for row in found]) for name in found[0]})


def _numbers(stored: Mapping[str, pa.Table]) -> dict[str, dict[str, int]]:
    """Return the numbers of objects, by each way of writing their names that clients use."""
    schemas = {row["oid"]: row["nspname"] for row in stored["pg_namespace"].to_pylist()}
    classes: dict[str, int] = {}
    for row in stored["pg_class"].to_pylist():
        schema = schemas[row["relnamespace"]]
        classes[f"{schema}.{row['relname']}"] = row["oid"]
        if schema != "information_schema":
            classes.setdefault(row["relname"], row["oid"])
            classes.setdefault(contents.quote_name(row["relname"]), row["oid"])
    procedures = {row["proname"]: row["oid"] for row in reversed(stored["pg_proc"].to_pylist())}
    procedures |= {f"pg_catalog.{name}": number for name, number in procedures.items()}
    kinds = {row["said"]: row["oid"] for row in stored["written_types"].to_pylist()}
    return {
        "regclass": classes,
        "regtype": kinds,
        "regproc": procedures,
        "regprocedure": procedures,
        "regnamespace": {name: number for number, name in schemas.items()},
        "regrole": {"curator": fixed.CURATOR_OID},
        "regcollation": {row["collname"]: row["oid"] for row in stored["pg_collation"].to_pylist()},
    }


def _names(stored: Mapping[str, pa.Table]) -> dict[str, dict[int, str]]:
    """Return the names of objects as Postgres shows them: with the schema if they need it to be
    found.
    """
    hidden = contents.NAMESPACES["information_schema"]
    classes = {
        row["oid"]: ("information_schema." if row["relnamespace"] == hidden else "")
        + contents.quote_name(row["relname"])
        for row in stored["pg_class"].to_pylist()
    }
    return {
        "regclass": classes,
        "regtype": {row["oid"]: row["said"] for row in stored["written_types"].to_pylist()},
        "regproc": {row["oid"]: row["proname"] for row in stored["pg_proc"].to_pylist()},
        "regprocedure": {row["oid"]: row["proname"] for row in stored["pg_proc"].to_pylist()},
        "regnamespace": {number: name for name, number in contents.NAMESPACES.items()},
        "regrole": {fixed.CURATOR_OID: "curator"},
    }
