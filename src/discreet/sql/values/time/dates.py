"""Dates and timestamps: truncation, parts, differences and shifts, with the bounds that the
policy's range implies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, get_args

from sqlglot import exp

from discreet.algebra import Cast, Expression, call, case
from discreet.sql.text.parse import reject, show
from discreet.sql.values.arguments import Read
from discreet.sql.values.numbers import common_step
from discreet.sql.values.time.days import (
    as_day,
    as_moment,
    midnight,
    moment_constant,
    read_constants,
)
from discreet.sql.values.time.shifts import UNITS, Translate, span
from discreet.sql.values.time.strftime import format_date
from discreet.sql.values.value import (
    Category,
    Day,
    Grain,
    Moment,
    Number,
    Value,
    grain_start,
    seconds_between,
)

GRAINS = get_args(Grain)
_CLOCK = {"second": 1, "minute": 60, "hour": 3600}

# Parts that do not depend on the range of the date: name -> (engine's name, smallest, largest)
PARTS: dict[str, tuple[str, int, int]] = {
    "quarter": ("quarter", 1, 4),
    "month": ("month", 1, 12),
    "week": ("week", 1, 53),
    "weekofyear": ("week", 1, 53),
    "day": ("day", 1, 31),
    "dayofmonth": ("day", 1, 31),
    "dow": ("dow", 0, 6),
    "dayofweek": ("dow", 0, 6),
    "weekday": ("dow", 0, 6),
    "isodow": ("isodow", 1, 7),
    "doy": ("doy", 1, 366),
    "dayofyear": ("doy", 1, 366),
    "hour": ("hour", 0, 23),
    "minute": ("minute", 0, 59),
    "second": ("second", 0, 59),
    "year": ("year", 0, 0),
    "decade": ("decade", 0, 0),
    "century": ("century", 0, 0),
    "isoyear": ("isoyear", 0, 0),
}


_LONG: dict[str, Callable[[date], int]] = {  # each grows with the date
    "year": lambda day: day.year,
    "decade": lambda day: day.year // 10,
    "century": lambda day: (day.year - 1) // 100 + 1,
    "isoyear": lambda day: day.isocalendar().year,
}


# --- arithmetic -----------------------------------------------------------------------------------


# --- functions ------------------------------------------------------------------------------------


def function(node: exp.Expression, scope: Any, translate: Translate) -> Value:
    return FUNCTIONS[type(node)](node, lambda part: translate(part, scope))


def part(value: Value, name: str, node: exp.Expression) -> Value:
    """EXTRACT(name FROM value) and the functions named after the parts."""
    if isinstance(value.domain, Category) and value.constant:
        value = as_day(value, node)
    if not isinstance(value.domain, Day | Moment):
        raise reject(
            node,
            f"{show(node)} needs a date.",
            "Use a column that the policy declares as date or timestamp.",
        )
    engine_name, lo, hi = PARTS[name]
    if name in _LONG:
        lo, hi = (_LONG[name](end) for end in (value.domain.lo, value.domain.hi))
    found: Expression = call("date_part", engine_name, value.expression)
    if name in _CLOCK and isinstance(value.domain, Day):
        found = case((value.expression.is_known, 0))
    return Value(
        expression=found, domain=Number(step=Fraction(1), lo=lo, hi=hi), nullable=value.nullable
    )


def _extract(node: exp.Expression, read: Read) -> Value:
    name = node.this.name.lower()
    if name == "epoch":
        return _seconds(node, node.expression, read)
    if name not in PARTS:
        raise reject(
            node, f"{show(node)} is not answered.", f"Parts are: {', '.join(sorted(PARTS))}."
        )
    return part(read(node.expression), name, node)


def _seconds(node: exp.Expression, gap: exp.Expression, read: Read) -> Value:
    """EXTRACT(EPOCH FROM later - earlier): how many seconds have passed; of one timestamp, since
    1970.
    """
    inner = gap.unnest()
    if isinstance(inner, exp.Sub):
        later, earlier = read_constants(read(inner.this), read(inner.expression), node)
        if any(isinstance(each.domain, Moment) for each in (later, earlier)):
            return _apart(as_moment(earlier, node), as_moment(later, node))
    value = read(gap)
    if isinstance(value.domain, Day | Moment):
        return _apart(moment_constant(datetime(1970, 1, 1)), as_moment(value, node))
    raise reject(
        node,
        f"{show(node)} is answered for dates, timestamps and the time between two timestamps.",
        "Write EXTRACT(EPOCH FROM later - earlier), or EXTRACT(EPOCH FROM seen).",
    )


def _from_seconds(node: exp.Expression, read: Read) -> Value:
    """TO_TIMESTAMP(seconds): the moment so many seconds after 1970."""
    value = read(node.this)
    if not isinstance(value.domain, Number) or (value.domain.step * 1_000_000).denominator != 1:
        raise reject(
            node,
            f"{show(node)} needs whole seconds.",
            "Write TO_TIMESTAMP(FLOOR(EXTRACT(EPOCH FROM seen) / 60) * 60).",
        )
    step = value.domain.step
    try:
        lo, hi = (
            datetime(1970, 1, 1) + timedelta(microseconds=int(step * units * 1_000_000))
            for units in (value.domain.lo, value.domain.hi)
        )
    except OverflowError:
        raise reject(
            node, f"{show(node)} leaves the calendar.", "Count seconds since 1970."
        ) from None
    microseconds = Cast(value.expression, "BIGINT") * int(step * 1_000_000)
    return Value(
        expression=call("make_timestamp", microseconds),
        domain=Moment(lo=lo, hi=hi, step=step),
        nullable=value.nullable,
    )


_STRIDE = re.compile(r"\s*([0-9]{1,6})\s*(second|minute|hour|day|week)s?\s*", re.IGNORECASE)


def _bin(node: exp.Expression, read: Read) -> Value:
    """DATE_BIN('15 minutes', seen, TIMESTAMP '2001-01-01'): the start of the stretch, counted from
    the origin.
    """
    stride, value = node.this, as_moment(read(node.expression), node)
    start = node.args.get("unit") or node.args.get("origin")
    origin = (
        as_moment(read(start), node) if start is not None else moment_constant(datetime(2000, 1, 3))
    )
    written = (
        stride.this.name + " " + str(stride.args.get("unit") or "")
        if isinstance(stride, exp.Interval)
        else ""
    )
    found = _STRIDE.fullmatch(written or (stride.name if isinstance(stride, exp.Literal) else ""))
    seconds = int(found[1]) * UNITS[found[2].lower()][1] if found is not None else 0
    if not seconds or not origin.constant:
        raise reject(
            node,
            f"{show(node)} needs a stride of seconds, minutes, hours, days or weeks, and an origin, written out.",
            "Write DATE_BIN('15 minutes', seen, TIMESTAMP '2001-01-01').",
        )
    assert isinstance(value.domain, Moment)
    assert isinstance(origin.domain, Moment)
    gap = timedelta(seconds=seconds)
    # no later than any value
    first = origin.domain.lo + (value.domain.lo - origin.domain.lo) // gap * gap
    passed = call("date_diff", "microsecond", first, value.expression) // (seconds * 1_000_000)
    began = int(seconds_between(datetime(1970, 1, 1), first) * 1_000_000)
    return Value(
        expression=call("make_timestamp", passed * (seconds * 1_000_000) + began),
        domain=Moment(lo=first, hi=value.domain.hi, step=Fraction(seconds)),
        nullable=value.nullable,
    )


def _apart(earlier: Value, later: Value) -> Value:
    """Return the seconds between two timestamps, on the grid that both have."""
    a, b = earlier.domain, later.domain
    assert isinstance(a, Moment)
    assert isinstance(b, Moment)
    # a single moment needs no grid of its own
    steps = [each.step for each in (a, b) if each.lo < each.hi]
    step = common_step(*steps, seconds_between(a.lo, b.lo)) or Fraction(1)
    lo, hi = (math.floor(seconds_between(*ends) / step) for ends in ((a.hi, b.lo), (a.lo, b.hi)))
    return Value(
        expression=span("microsecond", earlier, later) // int(step * 1_000_000),
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=earlier.nullable or later.nullable,
    )


def units_between(unit: str, start: Value, end: Value, node: exp.Expression) -> Value:
    """TIMESTAMPDIFF(unit, start, end): how many whole units have passed; 11 months are no year."""
    start, end = read_constants(start, end, node)
    a, b = as_moment(start, node), as_moment(end, node)
    assert isinstance(a.domain, Moment)
    assert isinstance(b.domain, Moment)
    lo, hi = (
        _whole(unit, *ends) for ends in ((a.domain.hi, b.domain.lo), (a.domain.lo, b.domain.hi))
    )
    months, seconds = UNITS[unit]
    if months:
        # A month has passed when its day and time have come: those are counted as if every month
        # had 31 days.
        first, second = (
            call(
                "date_diff", "microsecond", call("date_trunc", "month", x.expression), x.expression
            )
            for x in (a, b)
        )
        ahead = span("month", a, b)
        late = case((call("AND", ahead > 0, second < first), 1), otherwise=0)
        early = case((call("AND", ahead < 0, second > first), 1), otherwise=0)
        found: Expression = (ahead - late + early) // months
    else:
        found = span("microsecond", a, b) // (seconds * 1_000_000)
    nullable = start.nullable or end.nullable
    return Value(expression=found, domain=Number(step=Fraction(1), lo=lo, hi=hi), nullable=nullable)


def _whole(unit: str, start: datetime, end: datetime) -> int:
    """Whole units from start to end: monotone in both, so the ends of the ranges bound it."""
    if end < start:
        return -_whole(unit, end, start)
    months, seconds = UNITS[unit]
    if not months:
        return int(seconds_between(start, end) // seconds)
    late = seconds_between(midnight(end.date().replace(day=1)), end) < seconds_between(
        midnight(start.date().replace(day=1)), start
    )
    return (_count("month", start, end) - late) // months


def _part_of_name(name: str) -> Callable[[Any, Read], Value]:
    return lambda node, read: part(read(node.this), name, node)


def _truncate(node: exp.Expression, read: Read) -> Value:
    """date_trunc: a date at the start of its grain; a clock unit keeps a timestamp."""
    grain: Any = node.args["unit"].name.lower() if node.args.get("unit") is not None else "day"
    value = read(node.this)
    if isinstance(value.domain, Moment) and grain in _CLOCK:
        step = Fraction(_CLOCK[grain])
        lo = value.domain.lo - timedelta(
            seconds=float(seconds_between(datetime(1970, 1, 1), value.domain.lo) % step)
        )
        return Value(
            expression=call("date_trunc", grain, value.expression),
            domain=Moment(lo=lo, hi=value.domain.hi, step=step),
            nullable=value.nullable,
        )
    if grain not in GRAINS:
        raise reject(
            node,
            f"DATE_TRUNC('{grain}') is not answered.",
            "Truncate to day, week, month, quarter or year (timestamps also to hour, minute, second);"
            " decades are YEAR(x) // 10 * 10.",
        )
    day = as_day(value, node)
    assert isinstance(day.domain, Day)
    domain = Day(
        lo=grain_start(day.domain.lo, grain),
        hi=grain_start(day.domain.hi, grain),
        grain=grain,
        stamp=True,
    )
    found = Cast(call("date_trunc", grain, day.expression), "DATE")
    return Value(expression=found, domain=domain, nullable=value.nullable)


def _date_diff(node: exp.Expression, read: Read) -> Value:
    """DATE_DIFF(unit, start, end): boundaries of the unit between two dates; of weeks, how many
    have passed.
    """
    unit = node.args["unit"].name.lower() if node.args.get("unit") is not None else "day"
    end, start = read(node.this), read(node.expression)
    start, end = read_constants(start, end, node)
    units = {
        "day": 1,
        "week": 7,
        "month": 28,
        "quarter": 89,
        "year": 365,
        "hour": 0,
        "minute": 0,
        "second": 0,
    }
    if unit not in units:
        raise reject(
            node, f"DATE_DIFF('{unit}') is not answered.", f"Units are: {', '.join(units)}."
        )
    a, b = as_moment(start, node), as_moment(end, node)
    assert isinstance(a.domain, Moment)
    assert isinstance(b.domain, Moment)
    lo, hi = (
        _count(unit, earlier, later)
        for earlier, later in ((a.domain.hi, b.domain.lo), (a.domain.lo, b.domain.hi))
    )
    # Of weeks DuckDB counts whole stretches of seven days, and not Mondays passed.
    found = span("day", a, b) // 7 if unit == "week" else span(unit, a, b)
    return Value(
        expression=found,
        domain=Number(step=Fraction(1), lo=lo, hi=hi),
        nullable=start.nullable or end.nullable,
    )


def _count(unit: str, start: datetime, end: datetime) -> int:
    """Boundaries crossed from start to end: monotone in both, so the ends of the ranges bound
    it.
    """
    if unit in _CLOCK:
        epoch = datetime(1970, 1, 1)
        return int(
            seconds_between(epoch, end) // _CLOCK[unit]
            - seconds_between(epoch, start) // _CLOCK[unit]
        )
    match unit:
        case "day":
            return (end.date() - start.date()).days
        case "week":
            return int(Fraction((end.date() - start.date()).days, 7))
        case "month":
            return (end.year - start.year) * 12 + end.month - start.month
        case "quarter":
            return (end.year - start.year) * 4 + (end.month - 1) // 3 - (start.month - 1) // 3
    return end.year - start.year


FUNCTIONS: dict[type[exp.Expression], Callable[[Any, Read], Value]] = {
    exp.Extract: _extract,
    exp.Year: _part_of_name("year"),
    exp.Quarter: _part_of_name("quarter"),
    exp.Month: _part_of_name("month"),
    exp.Week: _part_of_name("week"),
    exp.WeekOfYear: _part_of_name("week"),
    exp.Day: _part_of_name("day"),
    exp.DayOfMonth: _part_of_name("day"),
    exp.DayOfWeek: _part_of_name("dow"),
    exp.DayOfYear: _part_of_name("doy"),
    exp.Hour: _part_of_name("hour"),
    exp.Minute: _part_of_name("minute"),
    exp.Second: _part_of_name("second"),
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
    exp.DateDiff: _date_diff,
    exp.DayOfWeekIso: _part_of_name("isodow"),
    exp.TimeToStr: format_date,
    exp.UnixToTime: _from_seconds,
    exp.DateBin: _bin,
    exp.TimeToUnix: lambda node, read: _seconds(node, node.this, read),
}
