"""Dates and timestamps as values: constants that are read, casts between the two, common
domains.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Cast, Constant
from discreet.sql.text.parse import reject, show
from discreet.sql.values.numbers import common_step
from discreet.sql.values.value import (
    Category,
    Day,
    Grain,
    Missing,
    Moment,
    Value,
    grain_start,
    seconds_between,
)

_DATE = re.compile(r"\s*([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})\s*(?:[+-]00(?::?00)?|Z)?\s*")


_MOMENT = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})((?:[ T].+)?)")


def parse_day(text: str) -> date | None:
    found = _DATE.fullmatch(text)
    try:
        return date(*map(int, found.groups())) if found is not None else None
    except ValueError:
        return None


def parse_moment(text: str) -> datetime | None:
    written = _MOMENT.fullmatch(text.strip())
    try:
        year, month, day, clock = written.groups() if written is not None else ("", "", "", "")
        clock = re.sub(r"\s+(?=[+-][0-9]{2}|Z$)", "", clock)  # 10:00:00.000 +00:00
        found = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{clock}")
        return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return None


def day_constant(day: date) -> Value:
    return Value(expression=Constant(day), domain=Day(lo=day, hi=day), constant=True)


def moment_constant(moment: datetime) -> Value:
    domain = Moment(lo=moment, hi=moment, step=Fraction(1, 1_000_000))
    return Value(expression=Constant(moment), domain=domain, constant=True)


def read_constants(left: Value, right: Value, node: exp.Expression) -> tuple[Value, Value]:
    """Read a text constant beside a date as a date."""

    def read(value: Value, other: Value) -> Value:
        if (
            isinstance(value.domain, Category)
            and value.constant
            and isinstance(other.domain, Day | Moment)
        ):
            text = str(value.domain.values[0])
            dated = parse_day(text) or (isinstance(other.domain, Day) and not parse_moment(text))
            return as_day(value, node) if dated else as_moment(value, node)
        return value

    return read(left, right), read(right, left)


def as_day(value: Value, node: exp.Expression) -> Value:
    match value.domain:
        case Day() as domain:
            return Value(
                expression=value.expression,
                domain=Day(lo=domain.lo, hi=domain.hi, grain=domain.grain),
                nullable=value.nullable,
                constant=value.constant,
            )
        case Moment() as domain:
            return Value(
                expression=Cast(value.expression, "DATE"),
                domain=Day(lo=domain.lo.date(), hi=domain.hi.date()),
                nullable=value.nullable,
            )
        case Category(values=(only,)) if value.constant:
            day = parse_day(str(only))
            if day is not None:
                return day_constant(day)
    raise reject(
        node,
        f"{show(node)} is not a date.",
        "Write dates as '2024-12-31', and use columns that the policy declares as dates.",
    )


def as_moment(value: Value, node: exp.Expression) -> Value:
    match value.domain:
        case Moment():
            return value
        case Day() as domain:
            bounds = Moment(lo=midnight(domain.lo), hi=midnight(domain.hi), step=Fraction(86_400))
            found = Cast(value.expression, "TIMESTAMP")
            return Value(
                expression=found, domain=bounds, nullable=value.nullable, constant=value.constant
            )
        case Category(values=(only,)) if value.constant:
            moment = parse_moment(str(only))
            if moment is not None:
                return moment_constant(moment)
    raise reject(
        node, f"{show(node)} is not a timestamp.", "Write timestamps as '2024-12-31 23:59:59'."
    )


def midnight(day: date) -> datetime:
    """Return the first moment of a day."""
    return datetime(day.year, day.month, day.day)


def unify(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """All as dates, or, where a timestamp is among them, all as timestamps."""
    read = [
        value
        if isinstance(value.domain, Missing)
        else (
            as_day(value, node)
            if isinstance(value.domain, Category) and parse_day(str(value.domain.values[0]))
            else value
        )
        for value in values
    ]
    convert = as_moment if any(isinstance(value.domain, Moment) for value in read) else as_day
    return [value if isinstance(value.domain, Missing) else convert(value, node) for value in read]


def join_days(domains: Sequence[Day]) -> Day:
    grains = {domain.grain for domain in domains}
    grain: Grain = grains.pop() if len(grains) == 1 else "day"
    lo, hi = min(domain.lo for domain in domains), max(domain.hi for domain in domains)
    return Day(lo=lo, hi=hi, grain=grain if grain_start(lo, grain) == lo else "day")


def join_moments(domains: Sequence[Moment]) -> Moment:
    lo, hi = min(domain.lo for domain in domains), max(domain.hi for domain in domains)
    # a single moment needs no grid of its own
    steps = [domain.step for domain in domains if domain.lo < domain.hi]
    apart = [seconds_between(lo, domain.lo) for domain in domains]
    return Moment(lo=lo, hi=hi, step=common_step(*steps, *apart) or Fraction(1, 1_000_000))
