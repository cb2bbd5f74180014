"""Axes: from where to where a chart goes, which round numbers or days are written on it, and in
what unit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

MOST_TICKS = 5
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
Moment = date | datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """The scale along one side of a chart. `title` says what is counted, with its unit."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value lies, from 0 to 1; what is beyond an end lies on it."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, share))


def numbers(low: float, high: float, *, title: str = "", percent: bool = False) -> Axis:
    """Return an axis of plain numbers with ticks at round ones."""
    if not high > low:
        low, high = (low - 1.0, high + 1.0) if low else (0.0, 1.0)
    step = _step((high - low) / (MOST_TICKS - 1))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    values = [step * place for place in places]
    ticks = tuple(
        (value, _percent(value, step) if percent else write_tick(value, step)) for value in values
    )
    return Axis(low=low, high=high, ticks=ticks, title=title)


def _step(rough: float) -> float:
    unit = 10.0 ** math.floor(math.log10(rough))
    return next(
        unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * (1 - 1e-9)
    )


def write_tick(value: float, step: float) -> str:
    """Write a tick in as many digits as the step needs: 0.25, 1,500, 2e9."""
    if max(abs(value), step) >= 1e9:
        return re.sub(r"e\+0*", "e", f"{value:.3g}").replace("-", "−")
    places = max(0, -math.floor(math.log10(step) + 1e-9))
    places += round(step * 10**places, 9) != int(round(step * 10**places, 9))
    return f"{value:,.{places}f}".replace("-", "−") if round(value, 12) else "0"


def _percent(value: float, step: float) -> str:
    return f"{write_tick(100 * value, 100 * step)} %"


def logarithmic(values: Sequence[float], *, title: str = "") -> Axis:
    """Return an axis on which equal factors are equally far apart, with a tick at each of the
    values.
    """
    low = min(values)
    high = max(values)
    ticks = tuple((value, f"{value:g}") for value in sorted(set(values)))
    return Axis(low=low, high=high if high > low else 2 * low, ticks=ticks, title=title, log=True)


def place_of(moment: Moment) -> float:
    """Return a day, or a moment of one, as a number on an axis of days."""
    begin = (
        moment if isinstance(moment, datetime) else datetime(moment.year, moment.month, moment.day)
    )
    return (begin.replace(tzinfo=None) - datetime(1970, 1, 1)) / timedelta(days=1)


def days(first: Moment, last: Moment, *, title: str = "") -> Axis:
    """Return an axis of time, with ticks where hours, days, months or years begin."""
    low = place_of(first)
    high = place_of(last)
    ticks = next((found for found in _calendars(first, last) if 2 <= len(found) <= MOST_TICKS), ())
    if not ticks:
        ticks = tuple(dict.fromkeys((place_of(each), _day(each)) for each in (first, last)))
    return Axis(low=low, high=high if high > low else low + 1.0, ticks=tuple(ticks), title=title)


def _calendars(first: Moment, last: Moment) -> Iterator[tuple[tuple[float, str], ...]]:
    """Yield ticks from fine to coarse."""
    low = place_of(first)
    high = place_of(last)
    for hours in (1, 3, 6, 12):
        if (high - low) * 24 / hours > 2 * MOST_TICKS or not isinstance(first, datetime):
            continue
        places = range(math.ceil(low * 24 / hours), math.floor(high * 24 / hours) + 1)
        yield tuple((place * hours / 24, _hour(place * hours)) for place in places)
    for step in (1, 2, 7, 14):
        places = range(math.ceil(low / step), math.floor(high / step) + 1)
        if len(places) <= MOST_TICKS:
            yield tuple((float(place * step), _day(_date(place * step))) for place in places)
    firsts = [
        date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13)
    ]
    for months in (1, 2, 3, 6):
        begins = [each for each in firsts if (each.month - 1) % months == 0]
        yield tuple(
            (place_of(d), f"{_MONTHS[d.month - 1]} {d.year}")
            for d in begins
            if low <= place_of(d) <= high
        )
    for years in (1, 2, 5, 10, 20, 50, 100):
        starts = [
            date(year, 1, 1) for year in range(first.year, last.year + 1) if year % years == 0
        ]
        yield tuple(
            (place_of(each), str(each.year)) for each in starts if low <= place_of(each) <= high
        )


def _date(place: int) -> date:
    return date(1970, 1, 1) + timedelta(days=place)


def _day(moment: Moment) -> str:
    if isinstance(moment, datetime):
        return moment.isoformat(sep=" ", timespec="minutes")
    return moment.isoformat()


def _hour(hours: int) -> str:
    moment = datetime(1970, 1, 1) + timedelta(hours=hours)
    return moment.date().isoformat() if moment.hour == 0 else f"{moment.hour:02}:00"
