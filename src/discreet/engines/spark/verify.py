"""Verify finished Parquet files (S23): the same rules as duckdb/preparing/verify.py, by Spark and
in SQL of its own.

It reads the files as questions do. A violation is a mistake of ours, of Spark or of a disk; then
there is no snapshot. That nobody has more rows than the policy allows is checked in prepare.py,
which removes surplus rows and checks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from discreet.algebra import Column, Constant, Expression, call
from discreet.engines.layout import OWNER, snapshot_columns
from discreet.engines.spark.spelling import SparkSpelling
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
from discreet.policy.policy import Table

_WHOLE = ("tinyint", "smallint", "int", "bigint")


def verify(session: Any, rows: Any, table: Table) -> int:
    """Return the number of rows of a private table; raise UsageError if one breaks the policy. The
    message names the table and the rule, and no value.
    """
    kinds = {each.name: each.dataType.simpleString() for each in rows.schema.fields}
    if list(kinds) != snapshot_columns(table):
        raise _wrong(table.name, "its columns are not those of the policy")
    rules = [
        ("a row has no owner", _stored(OWNER).is_null),
        *_letters("an owner", OWNER, kinds[OWNER], LETTERS),
    ]
    for column in table.columns.values():
        if kinds[column.name] not in _kinds(column.domain):
            raise _wrong(table.name, f"{column.name} has the type {kinds[column.name]}")
        outside = _outside(column.domain, _stored(column.name))
        if outside is not None:
            rules.append((f"{column.name} has values outside its domain", outside))
        if isinstance(column.domain, Texts | Identifier):
            letters = column.domain.letters if isinstance(column.domain, Texts) else LETTERS
            rules += _letters(column.name, column.name, kinds[column.name], letters)
    rows.createOrReplaceTempView(_VIEW)
    spelled = (SparkSpelling().expression(rule) for _, rule in rules)
    counts = ["count(*) AS n"]
    for place, rule in enumerate(spelled):
        counts.append(f"count(*) FILTER (WHERE {rule}) AS c{place}")
    (found,) = session.sql(f"SELECT {', '.join(counts)} FROM {_VIEW}").toArrow().to_pylist()
    number, *violations = found.values()
    for (what, _), count in zip(rules, violations, strict=True):
        if count:
            raise _wrong(table.name, what)
    return int(number)


def too_many(table: Table) -> UsageError:
    return _wrong(table.name, f"somebody has more than max_rows = {table.max_rows} rows")


_VIEW = "finished"


def _stored(column: str) -> Column:
    return Column(_VIEW, column)


def _kinds(domain: Domain) -> tuple[str, ...]:
    """Return the types of Spark in which a domain may be stored."""
    match domain:
        case Integers() | Decimals():
            return _WHOLE
        case Categories():
            return _WHOLE[1:]
        case Booleans():
            return ("boolean",)
        case Dates():
            return ("date",)
        case Timestamps():
            return ("timestamp_ntz",)
        case Texts():
            return ("string",)
        case Identifier():
            return ("bigint", "decimal(38,0)", "string")


def _letters(what: str, column: str, kind: str, letters: int) -> Iterator[tuple[str, Expression]]:
    if kind == "string":
        yield f"{what} has more than {letters} letters", call("length", _stored(column)) > letters


def _outside(domain: Domain, column: Column) -> Expression | None:
    """Return the condition that a stored value is outside its domain; None if the domain has every
    value of the column's type.
    """
    match domain:
        case Integers() | Decimals():
            return call("OR", column < domain.first, column > domain.last)
        case Categories():
            return call("OR", column < 0, column >= domain.size)
        case Dates():
            return call("OR", column < domain.lo, column > domain.hi)
        case Timestamps():
            first = (domain.lo - datetime(1970, 1, 1)) // timedelta(microseconds=1)
            beside = (call("epoch_us", column) - Constant(first)) % domain.step_microseconds
            return call("OR", column < domain.lo, column > domain.hi, call("<>", beside, 0))
        case Booleans() | Texts() | Identifier():
            return None


def _wrong(table: str, what: str) -> UsageError:
    return UsageError(
        f"The snapshot was not made: in the finished files, {what} (table {table}). This must not happen, whatever the "
        "source holds; please report it. Questions are answered from earlier snapshots as before."
    )
