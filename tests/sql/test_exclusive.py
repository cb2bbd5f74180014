"""Conditions that are said to exclude each other are satisfied together by no value: all small
ones, tried on all.
"""

from __future__ import annotations

import itertools
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pytest

from discreet.algebra import Call, Careful, Column, Constant, Expression, call
from discreet.sql.check.exclusive import exclusive

X, Y = Column("t1", "x"), Column("t1", "y")


def truth(node: Expression, row: dict[str, Any]) -> bool:
    """Whether a row satisfies a condition, by definition."""
    match node:
        case Careful(value=value):
            return truth(value, row)
        case Call(name="AND", arguments=arguments):
            return all(truth(each, row) for each in arguments)
        case Call(name="OR", arguments=arguments):
            return any(truth(each, row) for each in arguments)
        case Call(name=name, arguments=(Column(name=column), *constants)):
            value, listed = (
                row[column],
                [each.value for each in constants if isinstance(each, Constant)],
            )
            if name in ("=", "in"):
                return value in listed
            (end,) = listed
            return bool(
                {"<": value < end, "<=": value <= end, ">": value > end, ">=": value >= end}[name]
            )
    raise AssertionError(node)


def conditions(values: list[Any]) -> list[Expression]:
    ends = [
        call(name, column, end)
        for column in (X, Y)
        for name in ("=", "<", "<=", ">", ">=")
        for end in values
    ]
    some = [call("in", X, *pair) for pair in itertools.combinations(values, 2)]
    either = [
        call("OR", X.equals(one), Careful(call("in", X, other)))
        for one, other in itertools.combinations(values, 2)
    ]
    mixed = [
        call("OR", X.equals(values[0]), Y.equals(values[1])),
        call("OR", values[0] > X, X.equals(values[1])),
    ]
    both = [
        call("AND", one, Careful(other))
        for one, other in itertools.combinations(ends[:: len(values) - 1], 2)
    ]
    return [*ends, *some, *either, *mixed, *both]


DAYS = [date(2024, 1, 1) + timedelta(days) for days in range(5)]
HOURS = [datetime(2024, 1, 1, hour) for hour in range(5)]


@pytest.mark.parametrize("every", [list(range(5)), DAYS, HOURS], ids=["numbers", "days", "hours"])
def test_no_value_satisfies_both(every: list[Any]) -> None:
    """Constants are the middle ones of five values: there are values below, among and above
    them.
    """
    values = [every[1], every[2], every[3]]
    tried = [{"x": x, "y": y} for x in every for y in every]
    tested = conditions(values)
    held = {
        index: {place for place, row in enumerate(tried) if truth(each, row)}
        for index, each in enumerate(tested)
    }
    found = 0
    for (i, one), (j, other) in itertools.combinations(enumerate(tested), 2):
        if exclusive(one, other):
            found += 1
            assert not held[i] & held[j], (one, other)
        assert exclusive(one, other) == exclusive(other, one)
    assert found > 100  # most of those that are


def test_types_are_not_mixed() -> None:
    """A day and the midnight it begins with differ in Python, and are equal to the engine."""
    day, midnight = X.equals(date(2024, 1, 1)), X.equals(datetime(2024, 1, 1))
    assert not exclusive(day, midnight)
    assert not exclusive(X.equals(1), X.equals(True))
    assert not exclusive(X.equals(1), X.equals(2.0))
    assert not exclusive(X.equals("a"), X < 1)
    assert exclusive(X.equals("a"), X.equals("b"))
    assert not exclusive(X.equals(1), Y.equals(2))


TEXTS = [
    *(
        "1",
        "01",
        "1.0",
        " 1",
        "1e0",
        "0x1",
        "+1",
        "2",
        "12",
        "true",
        "T",
        "t",
        "yes",
        "false",
        "F",
        "M",
        "Hill",
        "hill",
    ),
    *(
        "2024-01-01",
        "2024-1-1",
        "20240101",
        "epoch",
        "1970-01-01",
        "nan",
        "NaN",
        "inf",
        "Infinity",
        "a ",
        "a",
        "é",
    ),
]
COLUMNS = {
    "BIGINT": "(0), (1), (2), (12), (20240101)",
    "DOUBLE": "(0), (1), (2), ('nan'::DOUBLE), ('inf'::DOUBLE), (9007199254740992)",
    "VARCHAR": ", ".join(f"('{text}')" for text in TEXTS),
    "DATE": "('2024-01-01'), ('1970-01-01')",
    "TIMESTAMP": "('2024-01-01'), ('1970-01-01')",
    "BOOLEAN": "(true), (false)",
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_engine_agrees_whatever_the_type_of_the_value(kind: str) -> None:
    """The engine casts constants to the type of what they are compared with, and '1' and '01' are
    one number.
    """
    big = 1 << 53
    constants: list[Any] = [*TEXTS, 0, 1, 2, big - 1, big, big + 1, -big, -big - 1]
    said = [
        (one, other)
        for one, other in itertools.combinations(constants, 2)
        if exclusive(X.equals(one), X.equals(other))
    ]
    assert ("1", "2") in said
    assert ("M", "Hill") in said
    assert (1, 2) in said
    database = duckdb.connect()
    database.execute(
        f"CREATE TABLE v AS SELECT x::{kind} AS x FROM (VALUES {COLUMNS[kind]}) AS t(x)"
    )
    for one, other in said:
        pair = " AND ".join(f"TRY(x = {each!r})" for each in (one, other))
        try:
            assert database.execute(f"SELECT COUNT(*) FROM v WHERE {pair}").fetchall() == [(0,)], (
                one,
                other,
            )
        except duckdb.Error:
            continue  # a constant that the type cannot hold: the question is refused
