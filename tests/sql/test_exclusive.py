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
from discreet.algebra.exclusive import exclusive

X, Y = Column("t1", "x"), Column("t1", "y")


def truth(node: Expression, row: dict[str, Any]) -> bool | None:
    """Whether a row satisfies a condition, by definition; None where that is not known."""
    match node:
        case Careful(value=value):
            return truth(value, row)
        case Call(name="AND" | "OR" as name, arguments=arguments):
            parts = [truth(each, row) for each in arguments]
            last = name == "OR"
            return last if last in parts else None if None in parts else not last
        case Call(name="NOT", arguments=(part,)):
            known = truth(part, row)
            return None if known is None else not known
        case Call(name="is null" | "is not null" as name, arguments=(Column(name=column),)):
            return (row[column] is None) == (name == "is null")
        case Call(name="is true" | "is false" as name, arguments=(part,)):
            return truth(part, row) is (name == "is true")
        case Call(name=name, arguments=(Column(name=column), *constants)):
            value, listed = (
                row[column],
                [each.value for each in constants if isinstance(each, Constant)],
            )
            if value is None:
                return None
            if name in ("=", "in"):
                return value in listed
            (end,) = listed
            if name == "<>":
                return bool(value != end)
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
    opposites = [
        *(call("NOT", each) for each in (*ends[::7], *some[1:], *either[1:], *mixed, *both[::7])),
        call("NOT", Careful(call("NOT", some[0]))),
        *(call("<>", column, end) for column in (X, Y) for end in values[:2]),
        *(call("AND", call("<>", X, values[0]), values[2] > X), call("NOT", X.is_null)),
        *(X.is_null, X.is_known, call("OR", X.is_null, X.equals(values[0]))),
        *(call(name, each) for name in ("is true", "is false") for each in (ends[0], some[0])),
    ]
    return [*ends, *some, *either, *mixed, *both, *opposites]


DAYS = [date(2024, 1, 1) + timedelta(days) for days in range(5)]
HOURS = [datetime(2024, 1, 1, hour) for hour in range(5)]


@pytest.mark.parametrize("every", [list(range(5)), DAYS, HOURS], ids=["numbers", "days", "hours"])
def test_no_value_satisfies_both(every: list[Any]) -> None:
    """Constants are the middle ones of five values: there are values below, among and above
    them.
    """
    values = [every[1], every[2], every[3]]
    tried = [{"x": x, "y": y} for x in (None, *every) for y in (None, *every)]
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


def test_a_condition_and_its_opposite() -> None:
    flag, p = Column("t1", "smoker"), call("like", X, "a%")
    for one, other in [
        (flag, call("NOT", flag)),
        (flag, call("is false", flag)),
        (call("NOT", flag), call("is true", flag)),
        (call("is true", flag), call("NOT", call("is true", flag))),
        (flag, flag.is_null),
        (flag.equals(True), flag.equals(False)),
        (p, call("NOT", p)),
        (call("AND", p, Y > 1), call("NOT", p)),
        (call("AND", p, Y > 1), call("NOT", call("AND", p, Y > 1))),
        (X.equals("a"), call("<>", X, "a")),
        (call("in", X, "a", "b"), call("NOT", call("in", X, "a", "b", "c"))),
        (X.is_null, X.is_known),
        (X.is_null, call("<>", X, "a")),
        (X.is_null, X.equals("a")),
    ]:
        assert exclusive(one, other)
    for one, other in [
        (flag, flag),
        (call("in", X, "a", "c"), call("NOT", call("in", X, "a", "b"))),
        (call("NOT", call("AND", p, Y > 1)), p),
        (call("OR", flag, p), call("NOT", p)),
        (call("<>", X, "a"), call("<>", X, "b")),
        (call("OR", X.is_null, X.equals("a")), X.equals("a")),
        (call("NOT", X.equals(1)), X.equals(True)),
        (flag, flag.equals(False)),  # a number x holds if it is not 0, and 2 <> TRUE
        (flag, call("<>", flag, True)),
    ]:
        assert not exclusive(one, other)


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


def in_sql(node: Expression) -> str:
    """Write a condition on x as SQL."""
    match node:
        case Column(name=name):
            return name
        case Constant(value=value):
            return f"DATE '{value}'" if isinstance(value, date) else repr(value)
        case Call(name="NOT", arguments=(part,)):
            return f"(NOT {in_sql(part)})"
        case Call(name="in", arguments=(value, *constants)):
            return f"({in_sql(value)} IN ({', '.join(map(in_sql, constants))}))"
        case Call(name=name, arguments=(value,)):
            return f"({in_sql(value)} {name})"
        case Call(name=name, arguments=(value, constant)):
            return f"({in_sql(value)} {name} {in_sql(constant)})"
    raise AssertionError(node)


@pytest.mark.parametrize("kind", COLUMNS)
def test_the_engine_agrees_about_opposites(kind: str) -> None:
    """A value may stand as a condition, whatever its type; no row satisfies what excludes."""
    days = [date(2024, 1, 1), date(1970, 1, 1)]
    constants: list[Any] = ["1", "2", "true", "M", 0, 1, 2, True, False, *days]
    compared = [call(sign, X, each) for sign in ("=", "<>", "<", ">=") for each in constants]
    listed = [call("in", X, *each) for each in ((0, 1), (1, 2), ("1", "2"), ("M", "Hill"))]
    flags = [X, call("is true", X), call("is false", X), X.is_null, X.is_known]
    single = [*compared, *listed, *flags]
    tried = [*single, *(call("NOT", each) for each in single)]
    database = duckdb.connect()
    database.execute(
        f"CREATE TABLE v AS SELECT x::{kind} AS x FROM (VALUES {COLUMNS[kind]}, (NULL)) AS t(x)"
    )
    for value in ("3", "0.5"):
        if kind in ("BIGINT", "DOUBLE"):
            database.execute(f"INSERT INTO v VALUES ({value})")
    held = list[set[int]]()
    for each in tried:
        try:
            rows = database.execute(f"SELECT TRY({in_sql(each)}) IS TRUE FROM v").fetchall()
        except duckdb.Error:
            rows = []  # not of that type: the question is refused
        held.append({place for place, (true,) in enumerate(rows) if true})
    pairs = 0
    for (one, ours), (other, theirs) in itertools.combinations(zip(tried, held, strict=True), 2):
        if exclusive(one, other):
            pairs += bool(ours and theirs)
            assert not ours & theirs, (one, other)
    assert pairs > 20
