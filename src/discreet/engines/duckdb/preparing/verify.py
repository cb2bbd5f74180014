"""Verify a finished snapshot before it gets its number (S23): everything on which the sensitivity
of answers rests.

It checks that no person has too many rows, that every row has an owner, and the type, range, grid,
codes and letters of every column. It reads the file as questions do, and shares no SQL with the
code that made it. A violation is a mistake of ours, of the engine or of the disk; then there is no
snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from discreet.engines.layout import OWNER, private, snapshot_columns, types_of
from discreet.engines.quoting import name
from discreet.engines.source import columns_of, loading
from discreet.errors import UsageError
from discreet.policy.domain import (
    LETTERS,
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)
from discreet.policy.policy import Policy, Table


def verify(path: Path, policy: Policy, *, threads: int | None = None) -> None:
    """Raise UsageError unless a snapshot's file is as the policy says. The message names the table
    and the rule, and no value.
    """
    connection = loading(path, memory=policy.limits.memory, threads=threads, read_only=True)
    try:
        for table in policy.tables.values():
            if not table.public:
                _verify(connection, table)
    finally:
        connection.close()


def _verify(connection: Any, table: Table) -> None:
    place = private(table.name)
    rules = rules_of(table, columns_of(connection, place))
    found = connection.execute(f"SELECT {count_violations(rules)} FROM {place}").fetchall()[0]
    require_none(table, rules, found)
    if connection.execute(most_rows(table, place)).fetchall():
        raise too_many(table)


Rule = tuple[str, str]  # what is wrong, and the SQL condition of a row that is wrong


def rules_of(
    table: Table, kinds: Mapping[str, str], *, micros: Callable[[str], str] = "epoch_us({})".format
) -> list[Rule]:
    """Return the rules that no row of a table may break, if its columns have these types. `micros`
    writes the SQL of microseconds since 1970.
    """
    if list(kinds) != snapshot_columns(table):
        raise _wrong(table.name, "its columns are not those of the policy")
    rules = [
        ("a row has no owner", f"{name(OWNER)} IS NULL"),
        *_letters("an owner", OWNER, kinds[OWNER], LETTERS),
    ]
    for column in table.columns.values():
        if kinds[column.name] not in types_of(column.domain):
            raise _wrong(table.name, f"{column.name} has the type {kinds[column.name]}")
        outside = _outside(column.domain, name(column.name), micros)
        if outside is not None:
            rules.append((f"{column.name} has values outside its domain", outside))
        if isinstance(column.domain, Texts | Identifier):
            letters = column.domain.letters if isinstance(column.domain, Texts) else LETTERS
            rules += _letters(column.name, column.name, kinds[column.name], letters)
    return rules


def count_violations(rules: Sequence[Rule]) -> str:
    """Return the SELECT list that counts, for each rule, the rows that break it."""
    return ", ".join(f"count(*) FILTER (WHERE {rule})" for _, rule in rules)


def require_none(table: Table, rules: Sequence[Rule], counts: Sequence[object]) -> None:
    """Raise UsageError for the first rule that a row breaks."""
    for (what, _), count in zip(rules, counts, strict=True):
        if count:
            raise _wrong(table.name, what)


def most_rows(table: Table, place: str) -> str:
    """Return the SQL that finds a person with more rows than the policy allows."""
    return (
        f"SELECT 1 FROM {place} GROUP BY {name(OWNER)} HAVING count(*) > {table.max_rows} LIMIT 1"
    )


def too_many(table: Table) -> UsageError:
    return _wrong(table.name, f"somebody has more than max_rows = {table.max_rows} rows")


def _letters(what: str, column: str, kind: str, letters: int) -> Iterator[tuple[str, str]]:
    """Yield the rule for the length of texts. DuckDB itself checks that they are UTF-8."""
    if kind == "VARCHAR":
        yield f"{what} has more than {letters} letters", f"length({name(column)}) > {letters}"


def _outside(domain: Domain, column: str, micros: Callable[[str], str]) -> str | None:
    """Return the SQL condition that a stored value is outside its domain; None if the domain has
    every value of the column's type.
    """
    match domain:
        case Integers() | Decimals():
            return f"{column} < {domain.first} OR {column} > {domain.last}"
        case Categories():
            # an engine without unsigned numbers has room for codes below the first
            return f"{column} < 0 OR {column} >= {domain.size}"
        case Dates():
            return f"{column} < DATE '{domain.lo}' OR {column} > DATE '{domain.hi}'"
        case Timestamps():
            first = (domain.lo - datetime(1970, 1, 1)) // timedelta(microseconds=1)
            outside = f"{column} < TIMESTAMP '{domain.lo}' OR {column} > TIMESTAMP '{domain.hi}'"
            return f"{outside} OR ({micros(column)} - {first}) % {domain.step_microseconds} <> 0"
        case Booleans() | Texts() | Identifier():
            return None


def _wrong(table: str, what: str) -> UsageError:
    return UsageError(
        f"The snapshot was not made: in the finished file, {what} (table {table}). This must not happen, whatever the "
        "source holds; please report it. Questions are answered from earlier snapshots as before."
    )
