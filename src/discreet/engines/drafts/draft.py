"""A policy to begin with: from names, types, constraints and a codebook, and never from values
(S1).

Columns of which nothing can be said are left out, as comments with what could be written; so the
draft is a policy as soon as it says whose the rows are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.engines.drafts.codebook import Codebook
from discreet.engines.drafts.suggest import (
    FROM_THE_NAME,
    HINTS,
    UNKNOWN,
    Suggestion,
    of_checks,
    of_labels,
    of_name,
    of_type,
    of_values,
    owner_among,
)
from discreet.engines.duckdb.constraints import read_declarations as declared_in_duckdb
from discreet.engines.duckdb.preparing import encode
from discreet.engines.duckdb.preparing.parts import parts_of
from discreet.engines.quoting import name as quoted
from discreet.engines.readers.reader import Declarations
from discreet.engines.source import (
    ATTACHED,
    DATABASES,
    Database,
    Folder,
    Foreign,
    Source,
    attach,
    columns_of,
    engine_errors,
    is_csv,
    loading,
    scan,
    source_at,
    tables_in,
)
from discreet.errors import UsageError
from discreet.policy.addresses import hide_passwords, without_password
from discreet.policy.document import PLACEHOLDER

_HEAD = """\
# A policy to begin with, from names and types alone: no value of the data was looked at. Check every line against what
# everybody may know; what is commented out cannot be asked about until you say what it may contain (docs/policy.md).
source: {source}
unit: person  # check: whom you protect (person, patient, household)
neighbors: add_remove
tables:
"""
_TAIL = """\
budget:
  epsilon: 1  # check: for all questions of all analysts together, ever; around 1 or smaller protects well
  delta: 1e-9
analysts:
  alice: {epsilon: 0.5}  # check: who may ask, and how much of the budget each may spend
"""
_MOST = 1000  # values of a public key that are listed
_CHECKABLE = "# or about nobody and known to all? Then write only {public: true}"
_KINDS = (  # of the type names that databases declare
    (r"BOOL", encode.BOOLEAN),
    (r"(?<!PO)INT(?!ERVAL|\d?(MULTI)?RANGE)|SERIAL|\bOID\b", encode.WHOLE),
    (r"TIMESTAMP|DATETIME", encode.TIMESTAMP),
    (r"DATE(?!(MULTI)?RANGE)", encode.DATE),
    (r"REAL|FLOA|DOUB", encode.FLOAT),
    (r"NUMERIC|DECIMAL|MONEY", encode.DECIMAL),
    (r"UUID", encode.UUID),
    (r"CHAR|TEXT|CLOB|ENUM|CITEXT|NAME", encode.TEXT),
)


# of a public table: a column that others refer to, and its values
Keys = dict[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnDraft:
    """A column: the type that the source declares, its kind, and what may be said about it."""

    name: str
    type: str
    family: str
    suggestion: Suggestion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDraft:
    """A table: whose its rows are (YAML), why we think so, and its columns."""

    name: str
    owner: str
    why: str
    columns: tuple[ColumnDraft, ...]
    max_rows: int = 1
    public: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A policy for some data to begin with."""

    source: str | None
    tables: tuple[TableDraft, ...]

    def text(self) -> str:
        """Return the policy file."""
        head = _HEAD.format(source=yaml_name(self.source or "data"))
        if self.source is None:
            head = head.replace("source: data\n", "")  # tables are passed from Python
        return head + "".join(map(_table_text, self.tables)) + _TAIL


def draft(
    data: object,
    *,
    beside: str | Path | None = None,
    codebook: Codebook | None = None,
    public: Iterable[str] = (),
) -> Draft:
    """Draft a policy for data at a path or address, or for tables from Python.

    `beside` is the folder in which the policy will stand, so that its source can be written from
    there. `public` names tables that the curator says everybody may know: the keys of these alone
    are read, for columns that refer to them.
    """
    location = (
        data
        if isinstance(data, Mapping) or (isinstance(data, str) and "://" in data)
        else _place(str(data))
    )
    source = source_at(location)
    tables, keys = _schemas(source, [table.lower() for table in public])
    if not tables:
        place = hide_passwords(str(data))
        raise UsageError(f"There are no Parquet or CSV files and no tables in {place}.")
    # A password does not belong in a policy: PGPASSWORD or ~/.pgpass holds it.
    written = None if isinstance(location, Mapping) else without_password(str(location))
    if isinstance(location, Path) and beside is not None:
        written = os.path.relpath(location, beside)
    drafts = [
        TableDraft(name=name, owner="", why="", columns=(), public=True)
        if name in keys
        else _draft(name, declared, codebook, tables, keys)
        for name, declared in tables.items()
    ]
    return Draft(source=written, tables=tuple(drafts))


def _place(data: str) -> Path:
    path = Path(data)
    whole = isinstance(_quietly(path), Foreign) or path.suffix in DATABASES
    # a data file stands for the folder it lies in
    return path.parent if path.is_file() and not whole else path


def _quietly(path: Path) -> Source | None:
    try:
        return source_at(path)
    except UsageError:
        return None


def _schemas(
    source: Source, public: Collection[str]
) -> tuple[dict[str, Declarations], dict[str, Keys]]:
    """Return the column types of every table, '' where nothing declares one, and what its database
    declares.

    For public tables also return the values of those columns that others refer to.
    """
    connection = loading(None)
    wanted = dict.fromkeys(map(str.lower, public))
    try:
        with engine_errors("Reading the schema"), attach(connection, source, rows=wanted):
            found = {
                name: _declaration(connection, source, name)
                for name in tables_in(connection, source)
            }
            unknown = [table for table in public if table not in {name.lower() for name in found}]
            if unknown:
                raise UsageError(
                    f"There is no table {unknown[0]} to be public. There are {', '.join(found)}."
                )
            referred = {pair for declared in found.values() for pair in declared.foreign.values()}
            keys: dict[str, Keys] = {name: {} for name in found if name.lower() in public}
            for table, column in referred:
                if table in keys:
                    keys[table][column] = _values_of(connection, source, table, column)
            return found, keys
    finally:
        connection.close()


def _declaration(connection: Any, source: Source, table: str) -> Declarations:
    if isinstance(source, Foreign):
        return source.reader.declared(table)
    if isinstance(source, Folder):  # names the file that cannot be read
        parts_of(connection, source, table, used=set(), scratch=None)
    types = columns_of(connection, scan(source, table, as_text=True))
    if isinstance(source, Database):
        return declared_in_duckdb(connection, ATTACHED, table, types)
    csv = isinstance(source, Folder) and is_csv(source, table)
    return Declarations(types=dict.fromkeys(types, "") if csv else types)


def _values_of(connection: Any, source: Source, table: str, column: str) -> tuple[str, ...] | None:
    """Return the values of a public table's key, None where they are too many to list."""
    found = (
        f"SELECT DISTINCT {quoted(column)}::VARCHAR AS key FROM {scan(source, table, as_text=True)}"
    )
    rows = connection.execute(
        f"SELECT key FROM ({found}) WHERE key IS NOT NULL ORDER BY key LIMIT {_MOST + 1}"
    )
    values = tuple(row[0] for row in rows.fetchall())
    return values if 0 < len(values) <= _MOST else None


def _family(kind: str) -> str:
    """Return the kind of values of a type, as DuckDB or another database writes it."""
    if not kind:
        return UNKNOWN
    if encode.family(kind) != encode.OTHER or kind.endswith("]"):
        return encode.family(kind)
    return next(
        (family for pattern, family in _KINDS if re.search(pattern, kind.upper())), encode.OTHER
    )


def _draft(
    name: str,
    declared: Declarations,
    codebook: Codebook | None,
    tables: Mapping[str, Declarations],
    keys: Mapping[str, Keys],
) -> TableDraft:
    families = {column: _family(kind) for column, kind in declared.types.items()}
    checks = of_checks(declared.checks, families)
    columns = []
    for column, family in families.items():
        found = (
            (codebook.get(name, column) if codebook is not None else None)
            or (
                of_values(declared.values[column], "from ENUM")
                if column in declared.values
                else None
            )
            or (of_labels(declared.labels[column]) if column in declared.labels else None)
            or checks.get(column)
            or _referring(declared.foreign.get(column), column, tables, keys)
            or (_key() if column in declared.foreign or declared.primary == (column,) else None)
            or of_name(column, family)
            or of_type(family)
        )
        columns.append(
            ColumnDraft(name=column, type=declared.types[column], family=family, suggestion=found)
        )
    owner, why = _owner(name, declared, tables)
    return TableDraft(name=name, owner=owner, why=why, columns=tuple(columns))


def _referring(
    target: tuple[str, str] | None,
    column: str,
    tables: Mapping[str, Declarations],
    keys: Mapping[str, Keys],
) -> Suggestion | None:
    """Return what a column may hold that refers to a table of codes; None where it refers to
    people, or to their rows.
    """
    if target is None:
        return None
    table, key = target
    if table in keys:
        values = keys[table].get(key)
        return None if values is None else of_values(values, f"from the public table {table}")
    there = tables.get(table)
    if (
        there is None
        or there.foreign
        or owner_among([column])
        or owner_among(there.types) not in (None, key)
    ):
        return None
    remedy = f"if everybody may know that table, begin with --public {table}"
    return Suggestion(declaration=None, why=f"it refers to {table}; {remedy}")


def _key() -> Suggestion:
    return Suggestion(declaration="{identifier: true}", why="from the keys")


def _owner(
    name: str, declared: Declarations, tables: Mapping[str, Declarations]
) -> tuple[str, str]:
    """Return the owner of a table's rows: a column whose name says it, the keys of the database, or
    a question to the curator.
    """
    by_name = owner_among(declared.types)
    if by_name is not None and by_name.lower() != "id":
        return yaml_name(by_name), "from the name: check that it tells people apart"
    for column, (other, key) in declared.foreign.items():
        there = tables.get(other)
        if there is not None and column == key and owner_among(there.types) not in (None, "id"):
            return (
                f"{{through: {yaml_name(other)}, on: {yaml_name(column)}}}",
                "from the keys: check",
            )
    if by_name is not None:
        return yaml_name(by_name), "from the name: check that one id is one person"
    if declared.primary and not declared.foreign:
        keys = [yaml_name(column) for column in declared.primary]
        return keys[0] if len(
            keys
        ) == 1 else f"[{', '.join(keys)}]", "from the primary key: check that it is a person"
    return (
        PLACEHOLDER,
        "a column, [a, b], {through: table, on: column}, or row where each row is one person",
    )


# --- as text --------------------------------------------------------------------------------------


def _table_text(table: TableDraft) -> str:
    if table.public:
        return f"  {yaml_name(table.name)}: {{public: true}}  # you said so\n"
    lines = [
        f"  {yaml_name(table.name)}:  {_CHECKABLE}",
        f"    owner: {table.owner}  # {table.why}",
        f"    max_rows: {table.max_rows}  # check: how many rows each may have at most; the excess is dropped",
    ]
    declared = [
        each
        for each in table.columns
        if each.suggestion is not None and each.suggestion.declaration
    ]
    if any(map(_is_loose, declared)):
        lines.append(
            "    read: {trim: true, fold: case}  # blanks around texts, and their case, do not matter"
        )
    if declared:
        lines.append("    columns:")
    else:
        lines.append("    # columns:")
    lines += [_column_text(column) for column in table.columns]
    return "\n".join(lines) + "\n"


def _is_loose(column: ColumnDraft) -> bool:
    """Return True for a list of values of which only the words are guessed, not how they are
    written.
    """
    found = column.suggestion
    listed = found is not None and (found.declaration or "").startswith("{values:")
    return listed and found is not None and found.why == FROM_THE_NAME


def _column_text(column: ColumnDraft) -> str:
    # an ENUM type lists its values
    name = yaml_name(column.name)
    shown = column.type.split("(")[0] or "CSV"
    found = column.suggestion
    if found is not None and found.declaration is not None:
        return f"      {name}: {found.declaration}  # {found.why}"
    if found is not None:
        return f"      # {name}: left out: {found.why}"
    hint = HINTS.get(column.family)
    return (
        f"      # {name}: {hint}  # {shown}"
        if hint
        else f"      # {name}: {shown} cannot be asked about"
    )


def yaml_name(name: str) -> str:
    """Return a name as YAML writes it."""
    plain = re.fullmatch(r"[A-Za-z_./][A-Za-z0-9_./-]*", name) and name.lower() not in (
        "true",
        "false",
        "null",
    )
    if not name.isprintable():
        # YAML reads JSON's escapes, and no character breaks the line or its comment
        return json.dumps(name)
    return name if plain else "'" + name.replace("'", "''") + "'"
