"""Functions of dates and timestamps: parts, truncation and differences, with the bounds that follow
from the policy's range.
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
_EPOCH = datetime(1970, 1, 1)

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


# Parts that grow with the date, so that the ends of the range bound them.
_LONG: dict[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "decade": lambda day: day.year // 10,
    "century": lambda day: (day.year - 1) // 100 + 1,
    "isoyear": lambda day: day.isocalendar().year,
}


def function(node: exp.Expression, scope: Any, translate: Translate) -> Value:
    """Return the value of a function of dates."""
    return FUNCTIONS[type(node)](node, lambda part: translate(part, scope))


def part(value: Value, name: str, node: exp.Expression) -> Value:
    """Return EXTRACT(name FROM value), or the value of a function named after a part."""
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
        lo = _LONG[name](value.domain.lo)
        hi = _LONG[name](value.domain.hi)
    expression: Expression = call("date_part", engine_name, value.expression)
    if name in _CLOCK and isinstance(value.domain, Day):
        expression = case((value.expression.is_known, 0))
    return Value(
        expression=expression,
        domain=Number(step=Fraction(1), lo=lo, hi=hi),
        nullable=value.nullable,
    )


def _extract(node: exp.Expression, read: Read) -> Value:
    name = node.this.name.lower()
    if name == "epoch":
        return _seconds(node, node.expression, read)
    if name in ("day", "days") and _is_gap(node.expression, read):
        seconds = exp.Extract(this=exp.var("EPOCH"), expression=node.expression.copy())
        return read(exp.IntDiv(this=seconds, expression=exp.Literal.number(86_400)))
    if name not in PARTS:
        raise reject(
            node, f"{show(node)} is not answered.", f"Parts are: {', '.join(sorted(PARTS))}."
        )
    return part(read(node.expression), name, node)


def _is_gap(node: exp.Expression, read: Read) -> bool:
    """Return True for the time between two timestamps, of which EXTRACT(DAY) is whole days."""
    inner = node.unnest()
    if not isinstance(inner, exp.Sub) or isinstance(inner.expression.unnest(), exp.Interval):
        return False
    sides = [read(part).domain for part in (inner.this, inner.expression)]
    return any(isinstance(side, Moment) for side in sides) and all(
        isinstance(side, Moment | Day) for side in sides
    )


def _seconds(node: exp.Expression, gap: exp.Expression, read: Read) -> Value:
    """Return EXTRACT(EPOCH FROM later - earlier), the seconds between two timestamps, or
    EXTRACT(EPOCH FROM seen), the seconds since 1970.
    """
    inner = gap.unnest()
    if isinstance(inner, exp.Sub):
        later, earlier = read_constants(read(inner.this), read(inner.expression), node)
        if isinstance(later.domain, Moment) or isinstance(earlier.domain, Moment):
            return _seconds_apart(as_moment(earlier, node), as_moment(later, node))
    value = read(gap)
    if isinstance(value.domain, Day | Moment):
        return _seconds_apart(moment_constant(_EPOCH), as_moment(value, node))
    raise reject(
        node,
        f"{show(node)} is answered for dates, timestamps and the time between two timestamps.",
        "Write EXTRACT(EPOCH FROM later - earlier), or EXTRACT(EPOCH FROM seen).",
    )


def _from_seconds(node: exp.Expression, read: Read) -> Value:
    """Return TO_TIMESTAMP(seconds), the moment that many seconds after the begin of 1970."""
    value = read(node.this)
    if not isinstance(value.domain, Number) or (value.domain.step * 1_000_000).denominator != 1:
        raise reject(
            node,
            f"{show(node)} needs whole seconds.",
            "Write TO_TIMESTAMP(FLOOR(EXTRACT(EPOCH FROM seen) / 60) * 60).",
        )
    step = value.domain.step
    try:
        lo = _EPOCH + timedelta(microseconds=int(step * value.domain.lo * 1_000_000))
        hi = _EPOCH + timedelta(microseconds=int(step * value.domain.hi * 1_000_000))
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
    """Return DATE_BIN('15 minutes', seen, TIMESTAMP '2001-01-01'): the start of the stretch of 15
    minutes that holds the timestamp; the first stretch starts at the origin.
    """
    stride = node.this
    value = as_moment(read(node.expression), node)
    start = node.args.get("unit") or node.args.get("origin")
    origin = moment_constant(datetime(2000, 1, 3))
    if start is not None:
        origin = as_moment(read(start), node)
    seconds = _seconds_of(stride)
    if not seconds or not origin.constant:
        raise reject(
            node,
            f"{show(node)} needs a stride of seconds, minutes, hours, days or weeks, and an origin, written out.",
            "Write DATE_BIN('15 minutes', seen, TIMESTAMP '2001-01-01').",
        )
    assert isinstance(value.domain, Moment)
    assert isinstance(origin.domain, Moment)
    gap = timedelta(seconds=seconds)
    # the start of the earliest stretch that holds a value
    first = origin.domain.lo + (value.domain.lo - origin.domain.lo) // gap * gap
    width = seconds * 1_000_000
    stretches = call("date_diff", "microsecond", first, value.expression) // width
    begin = int(seconds_between(_EPOCH, first) * 1_000_000)
    return Value(
        expression=call("make_timestamp", stretches * width + begin),
        domain=Moment(lo=first, hi=value.domain.hi, step=Fraction(seconds)),
        nullable=value.nullable,
    )


def _seconds_of(stride: exp.Expression) -> int:
    """Return the seconds of '15 minutes' or INTERVAL 15 MINUTE; 0 if it is no constant stride."""
    text = stride.name if isinstance(stride, exp.Literal) else ""
    if isinstance(stride, exp.Interval):
        text = stride.this.name + " " + str(stride.args.get("unit") or "")
    match = _STRIDE.fullmatch(text)
    if match is None:
        return 0
    _, seconds = UNITS[match[2].lower()]
    return int(match[1]) * seconds


def _seconds_apart(earlier: Value, later: Value) -> Value:
    """Return the seconds between two timestamps, on the common grid of both."""
    a = earlier.domain
    b = later.domain
    assert isinstance(a, Moment)
    assert isinstance(b, Moment)
    # a domain of one moment has no grid
    steps = [domain.step for domain in (a, b) if domain.lo < domain.hi]
    step = common_step(*steps, seconds_between(a.lo, b.lo)) or Fraction(1)
    lo = math.floor(seconds_between(a.hi, b.lo) / step)
    hi = math.floor(seconds_between(a.lo, b.hi) / step)
    return Value(
        expression=span("microsecond", earlier, later) // int(step * 1_000_000),
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=earlier.nullable or later.nullable,
    )


def units_between(unit: str, start: Value, end: Value, node: exp.Expression) -> Value:
    """Return TIMESTAMPDIFF(unit, start, end), the number of whole units that have passed.

    11 months are no year.
    """
    start, end = read_constants(start, end, node)
    a = as_moment(start, node)
    b = as_moment(end, node)
    assert isinstance(a.domain, Moment)
    assert isinstance(b.domain, Moment)
    lo = _whole_units(unit, a.domain.hi, b.domain.lo)
    hi = _whole_units(unit, a.domain.lo, b.domain.hi)
    months, seconds = UNITS[unit]
    if months:
        # The last month has passed only if the end is as far in its month as the start in its own.
        first = _since_month_start(a.expression)
        second = _since_month_start(b.expression)
        boundaries = span("month", a, b)
        late = case((call("AND", boundaries > 0, second < first), 1), otherwise=0)
        early = case((call("AND", boundaries < 0, second > first), 1), otherwise=0)
        units: Expression = (boundaries - late + early) // months
    else:
        units = span("microsecond", a, b) // (seconds * 1_000_000)
    return Value(
        expression=units,
        domain=Number(step=Fraction(1), lo=lo, hi=hi),
        nullable=start.nullable or end.nullable,
    )


def _since_month_start(moment: Expression) -> Expression:
    """Return the microseconds since the begin of a timestamp's month."""
    return call("date_diff", "microsecond", call("date_trunc", "month", moment), moment)


def _whole_units(unit: str, start: datetime, end: datetime) -> int:
    """Return the number of whole units from start to end.

    It is monotone in both, so the ends of the ranges bound it.
    """
    if end < start:
        return -_whole_units(unit, end, start)
    months, seconds = UNITS[unit]
    if not months:
        return int(seconds_between(start, end) // seconds)
    first = seconds_between(midnight(start.date().replace(day=1)), start)
    second = seconds_between(midnight(end.date().replace(day=1)), end)
    late = second < first
    return (_count_boundaries("month", start, end) - late) // months


def _part_of_name(name: str) -> Callable[[Any, Read], Value]:
    return lambda node, read: part(read(node.this), name, node)


def _truncate(node: exp.Expression, read: Read) -> Value:
    """Return DATE_TRUNC: the date at which the day, month, ... starts; for hours, minutes and
    seconds a timestamp.
    """
    grain: Any = _unit(node)
    value = read(node.this)
    if isinstance(value.domain, Moment) and grain in _CLOCK:
        step = Fraction(_CLOCK[grain])
        excess = seconds_between(_EPOCH, value.domain.lo) % step
        lo = value.domain.lo - timedelta(seconds=float(excess))
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
            " decades are FLOOR(EXTRACT(YEAR FROM x) / 10) * 10.",
        )
    day = as_day(value, node)
    assert isinstance(day.domain, Day)
    domain = Day(
        lo=grain_start(day.domain.lo, grain),
        hi=grain_start(day.domain.hi, grain),
        grain=grain,
        stamp=True,
    )
    return Value(
        expression=Cast(call("date_trunc", grain, day.expression), "DATE"),
        domain=domain,
        nullable=value.nullable,
    )


def _unit(node: exp.Expression) -> str:
    """Return the unit that a function names, in lower case; a day if it names none."""
    unit = node.args.get("unit")
    return "day" if unit is None else str(unit.name.lower())


def _date_diff(node: exp.Expression, read: Read) -> Value:
    """Return DATE_DIFF(unit, start, end), the number of the unit's boundaries between two dates.

    For weeks it is the number of stretches of seven days, as in DuckDB, not of Mondays.
    """
    unit = _unit(node)
    end = read(node.this)
    start = read(node.expression)
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
    a = as_moment(start, node)
    b = as_moment(end, node)
    assert isinstance(a.domain, Moment)
    assert isinstance(b.domain, Moment)
    return Value(
        expression=span("day", a, b) // 7 if unit == "week" else span(unit, a, b),
        domain=Number(
            step=Fraction(1),
            lo=_count_boundaries(unit, a.domain.hi, b.domain.lo),
            hi=_count_boundaries(unit, a.domain.lo, b.domain.hi),
        ),
        nullable=start.nullable or end.nullable,
    )


def _count_boundaries(unit: str, start: datetime, end: datetime) -> int:
    """Return the number of boundaries of a unit from start to end.

    It is monotone in both, so the ends of the ranges bound it.
    """
    if unit in _CLOCK:
        first = seconds_between(_EPOCH, start) // _CLOCK[unit]
        last = seconds_between(_EPOCH, end) // _CLOCK[unit]
        return int(last - first)
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
