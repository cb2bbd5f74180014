"""STRFTIME: the texts that a format can show, as a category where they are few."""

from __future__ import annotations

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
    Text,
    Value,
    grain_start,
)

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]


_FIELDS: dict[
    str, tuple[Grain, Callable[[date], str]]
] = {  # what a format's field shows, and the grain that fixes it
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
    """STRFTIME: a category of the texts that the range can show, or text where there are too
    many.
    """
    value, written = read(node.this), node.args.get("format")
    if not isinstance(written, exp.Literal) or not written.is_string or len(written.this) > 100:
        raise reject(node, "STRFTIME needs a format written out.", "Write STRFTIME(day, '%Y-%m').")
    fields = set(_FIELD.findall(written.this))
    if _FIELD.sub("", written.this).count("%") or not fields <= {*_FIELDS, *_CLOCK_FIELDS}:
        raise reject(
            node,
            f"{show(node)} has a field that is not answered.",
            "Use %Y, %m, %d, %B, %A, %H, %M or %S.",
        )
    if isinstance(value.domain, Category) and value.constant:
        value = as_moment(value, node)
    if fields & {*_CLOCK_FIELDS}:
        return _as_text(as_moment(value, node), written.this)
    day = as_day(value, node)
    assert isinstance(day.domain, Day)
    grains: tuple[Grain, ...] = ("year", "month", "day")
    grain = grains[max((grains.index(_FIELDS[each][0]) for each in fields), default=0)]
    domain = Day(
        lo=grain_start(day.domain.lo, grain), hi=grain_start(day.domain.hi, grain), grain=grain
    )
    if domain.size > MOST_LABELS:
        return _as_text(day, written.this)

    def label(moment: date) -> str:
        return _FIELD.sub(lambda found: _FIELDS[found[0]][1](moment), written.this)

    code = call("date_diff", grain, domain.lo, day.expression)
    codes = Value(
        expression=code, domain=Category(values=tuple(range(domain.size))), nullable=day.nullable
    )
    return relabel(codes, [label(domain.at(index)) for index in range(domain.size)])


def _as_text(value: Value, written: str) -> Value:
    # no field has two characters and more than nine letters, as %B in September
    letters = 10 * len(written)
    found = call("strftime", value.expression, written)
    return Value(expression=found, domain=Text(letters=letters), nullable=value.nullable)
