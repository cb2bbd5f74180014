"""Addition and subtraction of dates and timestamps: plus days, plus an interval, date - date."""

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
    """Return date + days, date - days or date - date."""
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
    """Return date + days for a column of days: DATE '2020-03-01' + pan_day."""
    day = left.domain
    gap = right.domain
    assert isinstance(day, Day)
    assert isinstance(gap, Number)
    first = _check_days(int(gap.at(gap.lo)), node)
    last = _check_days(int(gap.at(gap.hi)), node)
    least, most = sorted((sign * first, sign * last))
    try:
        bounds = Day(lo=day.lo + timedelta(days=least), hi=day.hi + timedelta(days=most))
    except OverflowError:
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    factor = sign * int(gap.step)
    days = widen(right.expression, 100_000) * factor
    since_1970 = call("date_diff", "day", date(1970, 1, 1), left.expression)
    microseconds = (Cast(since_1970, "BIGINT") + Cast(days, "BIGINT")) * 86_400_000_000
    return Value(
        expression=Cast(call("make_timestamp", microseconds), "DATE"),
        domain=bounds,
        nullable=left.nullable or right.nullable,
    )


def _check_days(days: int, node: exp.Expression) -> int:
    if abs(days) > 100_000:
        raise reject(node, f"{show(node)} moves the date too far.", "Move it by less.")
    return days


def _move(value: Value, gap: timedelta, expression: Expression, node: exp.Expression) -> Value:
    """Return the date `expression`, which is `value` moved by a constant gap."""
    domain = value.domain
    assert isinstance(domain, Day)
    try:
        bounds = Day(lo=domain.lo + gap, hi=domain.hi + gap)
    except OverflowError:
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    if domain.grain == "week":  # still the same day of each week
        bounds = replace(bounds, grain="week")
    return Value(expression=expression, domain=bounds, nullable=value.nullable)


def _difference(left: Value, right: Value, node: exp.Expression) -> Value:
    """Return date - date in days; refuse timestamp - timestamp, because DATE_DIFF names a unit."""
    if isinstance(left.domain, Day) and isinstance(right.domain, Day):
        lo = (left.domain.lo - right.domain.hi).days
        hi = (left.domain.hi - right.domain.lo).days
        found = span("day", right, left)
        domain = Number(step=Fraction(1), lo=lo, hi=hi)
        return Value(expression=found, domain=domain, nullable=left.nullable or right.nullable)
    raise reject(
        node, f"{show(node)} has no stated unit.", "Write DATE_DIFF('hour', earlier, later)."
    )


def span(unit: str, earlier: Value, later: Value) -> Expression:
    return call("date_diff", unit, earlier.expression, later.expression)


def shift_by_interval(node: exp.Expression, scope: Any, sign: int, translate: Translate) -> Value:
    """Return date ± INTERVAL n UNIT or timestamp ± INTERVAL n UNIT.

    January 31 plus a month is the last day of February.
    """
    start = node.this
    interval = node.expression
    if not isinstance(interval, exp.Interval):
        start = node.expression
        interval = node.this
    value = translate(start, scope)
    if isinstance(value.domain, Category) and value.constant:
        is_day = parse_day(str(value.domain.values[0]))
        value = as_day(value, node) if is_day else as_moment(value, node)
    unit = str(interval.args.get("unit") or "").lower().removesuffix("s")
    inner = interval.this.unnest() if interval.this is not None else None
    if inner is not None and unit == "day" and inner.find(exp.Column):
        return add(as_day(value, node), translate(inner, scope), sign, node)
    negative = isinstance(inner, exp.Neg)
    amount = ""
    if inner is not None:
        amount = (inner.this if negative else inner).name
    if unit in UNITS and re.fullmatch("-?[0-9]{7,}", amount):
        raise reject(node, f"{show(node)} moves the date too far.", "Move it by less.")
    movable = isinstance(value.domain, Day | Moment)
    if not movable or unit not in UNITS or not _DAYS.fullmatch(amount):
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
    interval = Interval(months, "month") if months else Interval(seconds, "second")
    later = value.expression + interval
    try:
        if isinstance(domain, Day):
            lo = _months_later(domain.lo, months) + gap
            hi = _months_later(domain.hi, months) + gap
            grain: Grain = "week" if domain.grain == "week" and not months else "day"
            days = Day(lo=lo, hi=hi, grain=grain)
            return Value(expression=Cast(later, "DATE"), domain=days, nullable=value.nullable)
        first = domain.lo + gap
        last = domain.hi + gap
        if months:
            # January 30, 23:00 and January 31, 1:00 change their order when moved by a month: so
            # take whole days.
            first = midnight(_months_later(first.date(), months))
            last = midnight(_months_later(last.date(), months)) + timedelta(days=1, microseconds=-1)
    except (OverflowError, ValueError):
        raise reject(node, f"{show(node)} leaves the calendar.", "Move it by less.") from None
    # A move by months keeps the time of day. The grid counts from the range's begin, so the new
    # times are on it only if the range begins at midnight and the step divides a day.
    on_grid = 86_400 % domain.step == 0 and domain.lo == midnight(domain.lo.date())
    step = domain.step if not months or on_grid else Fraction(1, 1_000_000)
    bounds = Moment(lo=first, hi=last, step=step)
    return Value(expression=later, domain=bounds, nullable=value.nullable)


def _months_later(day: date, months: int) -> date:
    """Return the same day some months later, or the last day of that month if it is shorter."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    _, last = monthrange(year, month + 1)
    return date(year, month + 1, min(day.day, last))
