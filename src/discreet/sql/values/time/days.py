"""Dates and timestamps as values: how we read constants, cast one to the other, and join domains."""

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
    """Return the date that a text writes, or None."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = match.groups()
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None


def parse_moment(text: str) -> datetime | None:
    """Return the timestamp that a text writes, in UTC, or None."""
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, clock = match.groups()
    clock = re.sub(r"\s+(?=[+-][0-9]{2}|Z$)", "", clock)  # 10:00:00.000 +00:00
    try:
        moment = datetime.fromisoformat(f"{year}-{month:0>2}-{day:0>2}{clock}")
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except (OverflowError, ValueError):
        return None


def day_constant(day: date) -> Value:
    return Value(expression=Constant(day), domain=Day(lo=day, hi=day), constant=True)


def moment_constant(moment: datetime) -> Value:
    domain = Moment(lo=moment, hi=moment, step=Fraction(1, 1_000_000))
    return Value(expression=Constant(moment), domain=domain, constant=True)


def read_constants(left: Value, right: Value, node: exp.Expression) -> tuple[Value, Value]:
    """Read a text constant as a date or a timestamp if the other side is one."""

    def read(value: Value, other: Value) -> Value:
        is_text = value.constant and isinstance(value.domain, Category)
        if is_text and isinstance(other.domain, Day | Moment):
            text = _first_label(value)
            is_day = parse_day(text) or (isinstance(other.domain, Day) and not parse_moment(text))
            return as_day(value, node) if is_day else as_moment(value, node)
        return value

    return read(left, right), read(right, left)


def _first_label(value: Value) -> str:
    assert isinstance(value.domain, Category)
    return str(value.domain.values[0])


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
            return Value(
                expression=Cast(value.expression, "TIMESTAMP"),
                domain=bounds,
                nullable=value.nullable,
                constant=value.constant,
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
    """Return all values as dates, or if one is a timestamp, all as timestamps."""
    readings = []
    for value in values:
        is_text = isinstance(value.domain, Category)
        is_day = is_text and parse_day(_first_label(value))
        readings.append(as_day(value, node) if is_day else value)
    moments = any(isinstance(value.domain, Moment) for value in readings)
    convert = as_moment if moments else as_day
    return [
        value if isinstance(value.domain, Missing) else convert(value, node) for value in readings
    ]


def join_days(domains: Sequence[Day]) -> Day:
    """Return the smallest domain that holds several domains of dates."""
    grains = {domain.grain for domain in domains}
    grain: Grain = grains.pop() if len(grains) == 1 else "day"
    lo = min(domain.lo for domain in domains)
    hi = max(domain.hi for domain in domains)
    return Day(lo=lo, hi=hi, grain=grain if grain_start(lo, grain) == lo else "day")


def join_moments(domains: Sequence[Moment]) -> Moment:
    """Return the smallest domain that holds several domains of timestamps."""
    lo = min(domain.lo for domain in domains)
    hi = max(domain.hi for domain in domains)
    # a domain of one moment has no grid
    steps = [domain.step for domain in domains if domain.lo < domain.hi]
    apart = [seconds_between(lo, domain.lo) for domain in domains]
    return Moment(lo=lo, hi=hi, step=common_step(*steps, *apart) or Fraction(1, 1_000_000))
