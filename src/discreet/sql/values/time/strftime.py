"""STRFTIME: a category of the texts that the format can show, or a text if they are too many."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date

from sqlglot import exp

from discreet.algebra import call
from discreet.sql.text.parse import reject, show
from discreet.sql.values.arguments import Read
from discreet.sql.values.categories import relabel
from discreet.sql.values.time.days import as_day, as_moment
from discreet.sql.values.value import (
    Category,
    Day,
    Grain,
    Moment,
    Text,
    Value,
    grain_start,
)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


# Of each field of a format: the coarsest grain whose starts show all its texts, and the text.
_FIELDS: dict[str, tuple[Grain, Callable[[date], str]]] = {
    "%Y": ("year", lambda day: f"{day.year:04d}"),
    "%y": ("year", lambda day: f"{day.year % 100:02d}"),
    "%m": ("month", lambda day: f"{day.month:02d}"),
    "%-m": ("month", lambda day: str(day.month)),
    "%b": ("month", lambda day: _MONTHS[day.month - 1][:3]),
    "%B": ("month", lambda day: _MONTHS[day.month - 1]),
    "%d": ("day", lambda day: f"{day.day:02d}"),
    "%-d": ("day", lambda day: str(day.day)),
    "%j": ("day", lambda day: f"{day.timetuple().tm_yday:03d}"),
    "%a": ("day", lambda day: _WEEKDAYS[day.weekday()][:3]),
    "%A": ("day", lambda day: _WEEKDAYS[day.weekday()]),
    "%w": ("day", lambda day: str(day.isoweekday() % 7)),
    "%u": ("day", lambda day: str(day.isoweekday())),
    "%%": ("year", lambda day: "%"),
}


_CLOCK_FIELDS = ("%H", "%-H", "%I", "%-I", "%M", "%-M", "%S", "%-S", "%p")


_FIELD = re.compile("%-?.")


MOST_LABELS = 10_000


def format_date(node: exp.Expression, read: Read) -> Value:
    """Return the value of STRFTIME."""
    value = read(node.this)
    literal = node.args.get("format")
    if not isinstance(literal, exp.Literal) or not literal.is_string or len(literal.this) > 100:
        raise reject(node, "STRFTIME needs a format written out.", "Write STRFTIME(day, '%Y-%m').")
    template = literal.this
    fields = set(_FIELD.findall(template))
    rest = _FIELD.sub("", template)
    if "%" in rest or not fields <= {*_FIELDS, *_CLOCK_FIELDS}:
        raise reject(
            node,
            f"{show(node)} has a field that is not answered.",
            "Use %Y, %m, %d, %B, %A, %H, %M or %S.",
        )
    if isinstance(value.domain, Category) and value.constant:
        value = as_moment(value, node)
    if fields & {*_CLOCK_FIELDS}:
        few = _in_parts(node, value, template)
        return _as_text(as_moment(value, node), template) if few is None else read(few)
    day = as_day(value, node)
    domain = _starts(day, _finest_grain(fields))
    grain = domain.grain
    if domain.size > MOST_LABELS:
        return _as_text(day, template)

    def label(moment: date) -> str:
        return _FIELD.sub(lambda field: _FIELDS[field[0]][1](moment), template)

    codes = Value(
        expression=call("date_diff", grain, domain.lo, day.expression),
        domain=Category(values=tuple(range(domain.size))),
        nullable=day.nullable,
    )
    return relabel(codes, [label(domain.at(index)) for index in range(domain.size)])


def _starts(day: Value, grain: Grain) -> Day:
    assert isinstance(day.domain, Day)
    lo = grain_start(day.domain.lo, grain)
    hi = grain_start(day.domain.hi, grain)
    return Day(lo=lo, hi=hi, grain=grain)


_CLOCK_PARTS = {"%H": ("HOUR", 24), "%-H": ("HOUR", 24), "%M": ("MINUTE", 60)}


def _in_parts(node: exp.Expression, value: Value, template: str) -> exp.Expression | None:
    """Return the text as one of the day, the hour and the minute put together, each with listed
    values; None where they make too many.
    """
    if not isinstance(value.domain, Moment):
        return None
    pieces = re.findall("%-?.|[^%]+", template)
    listed = [field for field in pieces if field in _FIELDS]
    clock = [field for field in pieces if field in _CLOCK_FIELDS]
    if not {*clock} <= {*_CLOCK_PARTS}:
        return None
    size = math.prod(_CLOCK_PARTS[field][1] for field in clock)
    runs = [""]
    for piece in pieces:
        if piece in _CLOCK_PARTS:
            runs.append("")
        else:
            runs[-1] += piece
    for run in runs:
        if {*_FIELD.findall(run)} & {*listed}:
            size *= _starts(as_day(value, node), _finest_grain({*_FIELD.findall(run)})).size
    if size > MOST_LABELS:
        return None
    parts = list[exp.Expression]()
    for place, run in enumerate(runs):
        if place:
            parts.append(_clock_text(node.this, clock[place - 1]))
        if run:
            day = exp.cast(node.this.copy(), "DATE")
            parts.append(exp.TimeToStr(this=day, format=exp.Literal.string(run)))
    found = parts[0]
    for part in parts[1:]:
        found = exp.DPipe(this=found, expression=part, safe=True)
    return found


def _clock_text(moment: exp.Expression, field: str) -> exp.Expression:
    """Return the hour or the minute as text."""
    number = exp.Extract(this=exp.var(_CLOCK_PARTS[field][0]), expression=moment.copy())
    text = exp.cast(number, "VARCHAR")
    if field == "%-H":
        return text
    two, zero = exp.Literal.number(2), exp.Literal.string("0")
    return exp.Pad(this=text, expression=two, fill_pattern=zero, is_left=True)


def _finest_grain(fields: set[str]) -> Grain:
    """Return the finest grain that one of the fields needs."""
    grains: tuple[Grain, ...] = ("year", "month", "day")
    needs = [grains.index(_FIELDS[field][0]) for field in fields]
    return grains[max(needs, default=0)]


def _as_text(value: Value, template: str) -> Value:
    # A field has at least two characters and shows at most nine letters, as %B in September.
    letters = 10 * len(template)
    text = call("strftime", value.expression, template)
    return Value(expression=text, domain=Text(letters=letters), nullable=value.nullable)
