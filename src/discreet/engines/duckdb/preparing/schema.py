"""Check that a source has what a policy declares: its tables, the columns that lead to owners, and
columns of fitting types.

It reads names and types, of each file by itself (S23), and never a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from discreet.engines.duckdb.preparing import encode
from discreet.engines.duckdb.preparing.parts import SourcePart, parts_of
from discreet.engines.quoting import literal
from discreet.engines.readers.reader import Wanted
from discreet.engines.source import Source, columns_of, engine_errors, is_csv, scan, tables_in
from discreet.errors import Problem, UsageError
from discreet.policy.domain import Column
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Table

Parts = dict[str, tuple[SourcePart, ...]]
_MOST = 20  # tables of a source that a message names


def schemas(
    connection: Any, policy: Policy, source: Source, *, scratch: Path | None = None
) -> tuple[Parts, list[Problem]]:
    """Return the parts of every declared table, and the problems: what the policy declares and the
    source lacks.
    """
    found: Parts = {}
    problems: list[Problem] = []
    there = tables_in(connection, source)
    for table in policy.tables.values():
        try:
            _require_one(table.name, there)
            with engine_errors(f"Reading {table.name}"):
                found[table.name] = _parts(connection, policy, source, table, scratch)
        except UsageError as error:
            problems.append(policy.problem("tables", table.name, message=str(error)))
            continue
        if not table.public:
            problems += _mismatches(policy, table, found[table.name])
            problems += _unreadable(connection, policy, table, source)
    return found, problems


def _require_one(name: str, there: Sequence[str]) -> None:
    """Raise UsageError unless exactly one table has this name, in upper or lower case: of two the
    engine would read only one.
    """
    found = sorted(table for table in there if table.lower() == name.lower())
    if not found:
        listed = sorted({table.lower() for table in there})
        shown = [*listed[:_MOST], f"{len(listed) - _MOST} more"] if listed[_MOST:] else listed
        raise UsageError(f"The source has no table {name}. It has {', '.join(shown) or 'none'}.")
    if len(found) > 1:
        raise UsageError(f"The source has the tables {' and '.join(found)}. Rename one.")


def _parts(
    connection: Any, policy: Policy, source: Source, table: Table, scratch: Path | None
) -> tuple[SourcePart, ...]:
    if not table.public:
        return parts_of(
            connection,
            source,
            table.name,
            used=_used(policy, table),
            scratch=scratch,
            encoding=table.read.encoding,
        )
    relation = scan(source, table.name, as_text=False)  # its values are public: guess the types
    return (
        SourcePart(where="the source", relation=relation, columns=columns_of(connection, relation)),
    )


def _unreadable(connection: Any, policy: Policy, table: Table, source: Source) -> Iterator[Problem]:
    """Yield a problem for each way of reading that the policy declares and this source does not
    allow.
    """
    zone = table.read.timezone
    known = f"SELECT 1 FROM pg_timezone_names() WHERE name = {literal(zone or '')} LIMIT 1"
    if zone is not None and not connection.execute(known).fetchall():
        message = f"{table.name}.read.timezone: there is no zone {zone}. Write one such as Europe/Berlin or UTC."
        yield policy.problem("tables", table.name, "read", "timezone", message=message)
    if table.read.encoding is not None and not is_csv(source, table.name):
        message = (
            f"{table.name}.read.encoding is for CSV files, and {table.name} is none. Remove it."
        )
        yield policy.problem("tables", table.name, "read", "encoding", message=message)


def _mismatches(policy: Policy, table: Table, parts: tuple[SourcePart, ...]) -> Iterator[Problem]:
    for key in sorted(keys_of(policy, table)):
        what = f"{table.name}.{key}"
        stored = {part.where: kind_of(part, key) for part in parts}
        known = {where: kind for where, kind in stored.items() if kind is not None}
        if not known or encode.OTHER in map(encode.family, known.values()):
            message = (
                f"{what} leads to the owner, and the source has no such column of a simple type."
            )
            yield policy.problem("tables", table.name, "owner", message=message)
            continue
        kinds = {where: encode.key_kind(kind) for where, kind in known.items()}
        different = _different(what, kinds)
        if different is not None:
            yield policy.problem("tables", table.name, "owner", message=different)
    for column in table.columns.values():
        mismatch = _mismatch(f"{table.name}.{column.name}", column, parts)
        if mismatch is not None:
            yield policy.problem("tables", table.name, "columns", column.name, message=mismatch)


def _mismatch(what: str, column: Column, parts: tuple[SourcePart, ...]) -> str | None:
    if not any(_has(part, column.name) for part in parts):
        return f"{what}: the source has no such column."
    stored = {}
    for part in parts:
        unheld = _of(part.unheld, column.name)
        if unheld is not None:
            return (
                f"{what} is declared {column.domain.yaml}, and the source has {unheld} there, which no domain can "
                f"hold. Leave the column out, or read a view that makes a number or a text of it."
            )
        kind = kind_of(part, column.name)
        if kind is not None and column.format is not None and encode.family(kind) != encode.TEXT:
            return f"{what} has a format, which is for texts, and {part.where} has {kind} there. Remove format."
        if kind is not None and encode.family(kind) not in encode.acceptable_kinds(column.domain):
            return f"{what} is declared {column.domain.yaml}, and {part.where} has {kind} there."
        if kind is not None:
            stored[part.where] = encode.form_of(column.domain, "x", kind).type
    return _different(what, stored)


def _different(what: str, kinds: Mapping[str, str]) -> str | None:
    """Return a message if a column has different types in a table's files, else None.

    Privacy: if files decided a type together, one person's file could change how others are read.
    """
    if not kinds:
        return None
    (first, kind), *others = kinds.items()
    for where, other in others:
        if other != kind:
            return f"{what} is {kind} in {first} and {other} in {where}. Write all files alike."
    return None


def _has(part: SourcePart, column: str) -> bool:
    return any(each.lower() == column.lower() for each in part.columns)


def _of(columns: Mapping[str, str], name: str) -> str | None:
    return next((kind for each, kind in columns.items() if each.lower() == name.lower()), None)


def kind_of(part: SourcePart, column: str) -> str | None:
    """Return the type of a part's column; None if it has no such column, or only NULLs in it."""
    for name, kind in part.columns.items():
        if name.lower() == column.lower() and kind != encode.NOTHING:
            return kind
    return None


def keys_of(policy: Policy, table: Table) -> set[str]:
    """Return the columns of a table that lead to the owner of its rows, or to the owner of another
    table's rows through it.
    """
    through = [owner.on for owner in _throughs(policy) if owner.table == table.name]
    return {*table.owner_columns, *through}


def used_columns(policy: Policy) -> Wanted:
    """Return the columns of each table that a snapshot reads, in lower case; None stands for all
    columns, which are read of public tables.
    """
    wanted: dict[str, frozenset[str] | None] = {}
    for table in policy.tables.values():
        used = None if table.public else frozenset(map(str.lower, _used(policy, table)))
        wanted[table.name.lower()] = used
    return wanted


def _used(policy: Policy, table: Table) -> set[str]:
    return keys_of(policy, table) | set(table.columns)


def _throughs(policy: Policy) -> Iterator[Through]:
    return (table.owner for table in policy.tables.values() if isinstance(table.owner, Through))
