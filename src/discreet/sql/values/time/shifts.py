"""Dates and timestamps that are moved: by days, by an interval, and by each other."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from sqlglot import exp

from discreet.algebra import Cast, Expression, Interval, call
from discreet.sql.text.parse import reject, show
from discreet.sql.values.time.days import (
    as_day,
    as_moment,
    midnight,
    parse_day,
    read_constants,
)
from discreet.sql.values.value import (
    Category,
    Day,
    Grain,
    Moment,
    Number,
    Value,
    widen,
)

Translate = Callable[[exp.Expression, Any], Value]


_DAYS = re.compile("-?[0-9]{1,6}")


def add(left: Value, right: Value, sign: int, node: exp.Expression) -> Value:
    """date + days, date - days, date - date."""
    if sign < 0 and not isinstance(right.domain, Number):
        left, right = read_constants(left, right, node)
        return _difference(left, right, node)
    if isinstance(right.domain, Day) and sign > 0:
        left, right = right, left
    if (
        not isinstance(left.domain, Day)
        or not isinstance(right.domain, Number)
        or right.domain.step.denominator != 1
    ):
        raise reject(
            node,
            f"{show(node)} is not answered.",
            "A date may be moved by a whole number of days: day + 7.",
        )
    if not right.constant:
        return _move_by(left, right, sign, node)
    days = sign * int(right.domain.at(right.domain.lo))
    return _move(left, timedelta(days=_check_days(days, node)), left.expression + days, node)


def _move_by(left: Value, right: Value, sign: int, node: exp.Expression) -> Value:
    """date + days, where the days are a column: DATE '2020-03-01' + pan_day."""
    day, gap = left.domain, right.domain
    assert isinstance(day, Day)
    assert isinstance(gap, Number)
    ends = sorted(sign * _check_days(int(gap.at(end)), node) for end in (gap.lo, gap.hi))
    try:
        bounds = Day(lo=day.lo + timedelta(days=ends[0]), hi=day.hi + timedelta(days=ends[1]))
    except OverflowError:
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    factor = sign * int(gap.step)
    moved = widen(right.expression, 100_000) * factor
    first = call("date_diff", "day", date(1970, 1, 1), left.expression)
    passed = (Cast(first, "BIGINT") + Cast(moved, "BIGINT")) * 86_400_000_000
    return Value(
        expression=Cast(call("make_timestamp", passed), "DATE"),
        domain=bounds,
        nullable=left.nullable or right.nullable,
    )


def _check_days(days: int, node: exp.Expression) -> int:
    if abs(days) > 100_000:
        raise reject(node, f"{show(node)} moves the date too far.", "Move it by less.")
    return days


def _move(value: Value, gap: timedelta, found: Expression, node: exp.Expression) -> Value:
    domain = value.domain
    assert isinstance(domain, Day)
    try:
        bounds = Day(lo=domain.lo + gap, hi=domain.hi + gap)
    except OverflowError:
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    if domain.grain == "week":  # still one day of each week
        bounds = replace(bounds, grain="week")
    return Value(expression=found, domain=bounds, nullable=value.nullable)


def _difference(left: Value, right: Value, node: exp.Expression) -> Value:
    """date - date in days; timestamp - timestamp is refused in favor of date_diff, which names its
    unit.
    """
    if isinstance(left.domain, Day) and isinstance(right.domain, Day):
        lo, hi = (left.domain.lo - right.domain.hi).days, (left.domain.hi - right.domain.lo).days
        found, domain = span("day", right, left), Number(step=Fraction(1), lo=lo, hi=hi)
        return Value(expression=found, domain=domain, nullable=left.nullable or right.nullable)
    raise reject(
        node, f"{show(node)} has no stated unit.", "Write DATE_DIFF('hour', earlier, later)."
    )


def span(unit: str, earlier: Value, later: Value) -> Expression:
    return call("date_diff", unit, earlier.expression, later.expression)


def shift_by_interval(node: exp.Expression, scope: Any, sign: int, translate: Translate) -> Value:
    """date ± INTERVAL n UNIT, timestamp ± INTERVAL n UNIT; a month from January 31 is the last day
    of February.
    """
    moved, interval = (
        (node.this, node.expression)
        if isinstance(node.expression, exp.Interval)
        else (node.expression, node.this)
    )
    value = translate(moved, scope)
    if isinstance(value.domain, Category) and value.constant:
        value = (
            as_day(value, node)
            if parse_day(str(value.domain.values[0]))
            else as_moment(value, node)
        )
    unit = str(interval.args.get("unit") or "").lower().removesuffix("s")
    inner = interval.this.unnest() if interval.this is not None else None
    if inner is not None and unit == "day" and inner.find(exp.Column):
        return add(as_day(value, node), translate(inner, scope), sign, node)
    negative = isinstance(inner, exp.Neg)
    amount = (inner.this if negative else inner).name if inner is not None else ""
    if unit in UNITS and re.fullmatch("-?[0-9]{7,}", amount):
        raise reject(node, f"{show(node)} moves the date too far.", "Move it by less.")
    if (
        not isinstance(value.domain, Day | Moment)
        or unit not in UNITS
        or not _DAYS.fullmatch(amount)
    ):
        raise reject(
            node,
            f"{show(node)} is not answered.",
            f"A date may be moved by a constant: day + INTERVAL 7 DAY. Units are: {', '.join(UNITS)}.",
        )
    months, seconds = UNITS[unit]
    count = (-sign if negative else sign) * int(amount)
    _check_days(count * (31 * months + seconds // 86_400 + 1), node)
    if isinstance(value.domain, Day) and seconds % 86_400:
        value = as_moment(value, node)
    return _shift(value, count * months, count * seconds, node)


UNITS = {  # months, seconds
    "year": (12, 0),
    "quarter": (3, 0),
    "month": (1, 0),
    "week": (0, 7 * 86_400),
    "day": (0, 86_400),
    "hour": (0, 3_600),
    "minute": (0, 60),
    "second": (0, 1),
}


def _shift(value: Value, months: int, seconds: int, node: exp.Expression) -> Value:
    domain = value.domain
    assert isinstance(domain, Day | Moment)
    gap = timedelta(seconds=seconds)
    moved = value.expression + (
        Interval(months, "month") if months else Interval(seconds, "second")
    )
    try:
        if isinstance(domain, Day):
            lo, hi = (_months_later(end, months) + gap for end in (domain.lo, domain.hi))
            grain: Grain = "week" if domain.grain == "week" and not months else "day"
            found = Day(lo=lo, hi=hi, grain=grain)
            return Value(expression=Cast(moved, "DATE"), domain=found, nullable=value.nullable)
        first, last = domain.lo + gap, domain.hi + gap
        if months:  # moves of days keep their order; of times within the last days of a month, not
            first = midnight(_months_later(first.date(), months))
            last = midnight(_months_later(last.date(), months)) + timedelta(days=1, microseconds=-1)
    except (OverflowError, ValueError):
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    # Months keep the time of day, which counted from midnight is on the grid only if the range
    # begins at midnight.
    even = not months or (86_400 % domain.step == 0 and domain.lo == midnight(domain.lo.date()))
    bounds = Moment(lo=first, hi=last, step=domain.step if even else Fraction(1, 1_000_000))
    return Value(expression=moved, domain=bounds, nullable=value.nullable)


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
