"""Lying bars and dots, each with its name, its error bar and its number; names wrap, and none is
cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from discreet.pages.axis import Axis
from discreet.pages.blocks import legend

WIDE, ROW = 1000, 10
"""The size of a drawing in its own units, whatever size it has on the page."""
LONG = 8
GAP = 2
DENSE = 44  # letters and gaps that a phone has room for


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One bar in each row. `ranges` are the ends of error bars, `texts` what is written to the
    right of the bars.

    `pale` marks bars that say little, such as counts below their margin.
    """

    values: Sequence[float]
    ranges: Sequence[tuple[float, float] | None] = ()
    texts: Sequence[str] = ()
    name: str = ""
    color: int = 0
    pale: Sequence[bool] = ()


def bars(
    names: Sequence[str],
    series: Sequence[Series],
    *,
    axis: Axis,
    mark: Literal["bar", "spot"] = "bar",
    label: str = "",
) -> str:
    """Draw a row for each name, with the bars of all series below each other, above one axis."""
    rows = []
    for place, name in enumerate(names):
        drawn = "".join(
            _bar(each, place, top=ROW * index, axis=axis, mark=mark)
            for index, each in enumerate(series)
        )
        told = [each.texts[place] for each in series if each.texts]
        spoken = escape(f"{name}: {', '.join(told)}" if told else name)
        tall = ROW * len(series)
        rows.append(
            f'<div class="name">{escape(name)}</div><div class="row" style="min-height: {1.45 * len(series):.2f}em">'
            f'<svg class="track" viewBox="0 0 {WIDE} {tall}" preserveAspectRatio="none" role="img" '
            f'aria-label="{spoken}"><title>{spoken}</title>{_rules(axis, tall)}{drawn}</svg></div>'
            f'<div class="value">{"".join(f"<div>{escape(text)}</div>" for text in told)}</div>'
        )
    key = legend([(each.name, each.color, "fill") for each in series]) if len(series) > 1 else ""
    title = f'<div class="title">{escape(axis.title)}</div>' if axis.title else ""
    spoken = escape(label or axis.title)
    return (
        f'{key}<div class="bars" role="group" aria-label="{spoken}">{"".join(rows)}'
        f"<div></div>{ticks_below(axis)}<div></div>{title}</div>"
    )


def _bar(series: Series, place: int, *, top: int, axis: Axis, mark: str) -> str:
    at, zero = WIDE * axis.at(series.values[place]), WIDE * axis.at(0.0)
    left = min(at, zero)
    right = max(at, zero)
    middle = top + ROW / 2
    bar = f'<rect class="fill" x="{left:.1f}" y="{top + 1.5}" width="{right - left:.1f}" height="{ROW - 3}"/>'
    spot = f'<path class="spot" d="M{at:.1f} {middle}h.01"/>'
    ends = series.ranges[place] if series.ranges else None
    reach = (
        "" if ends is None else error_bar(WIDE * axis.at(ends[0]), WIDE * axis.at(ends[1]), middle)
    )
    color = 9 if series.pale and series.pale[place] else series.color
    return f'<g class="c{color}">{reach + spot if mark == "spot" else bar + reach}</g>'


def error_bar(low: float, high: float, middle: float) -> str:
    """Draw an error bar from end to end, with a cap on each."""
    caps = "".join(f"M{end:.1f} {middle - 2}v4" for end in (low, high))
    return f'<path class="error" d="M{low:.1f} {middle}H{high:.1f}{caps}"/>'


def _rules(axis: Axis, tall: int) -> str:
    lines = "".join(f"M{WIDE * axis.at(value):.1f} 0V{tall}" for value, _ in axis.ticks)
    zero = (
        f'<path class="zero" d="M{WIDE * axis.at(0.0):.1f} 0V{tall}"/>'
        if axis.low <= 0 <= axis.high
        else ""
    )
    return f'<path class="rule" d="{lines}"/>{zero}'


def ticks_below(axis: Axis, *, at_edge: bool = False) -> str:
    """Write the words of an axis that lies; without room, leave out every second, or all inner
    ones.

    Long words at the ends begin or end there, and so does the last one where the page ends.
    """
    shown = []
    for place, (value, text) in enumerate(axis.ticks):
        share = axis.at(value)
        long = len(text) > LONG
        if share < 0.02 and long:
            side = "first"
        elif share > 0.95 and (long or at_edge):
            side = "last"
        else:
            side = ""
        inner = 0 < place < len(axis.ticks) - 1
        if not inner:
            spare = ""
        elif place % 2:
            spare = "spare"
        else:
            spare = "half"
        kind = " ".join(filter(None, (side, spare)))
        shown.append(f'<span class="{kind}" style="left: {100 * share:.2f}%">{escape(text)}</span>')
    letters = sum(len(text) + GAP for _, text in axis.ticks)
    room = "ticks dense" if letters > DENSE else "ticks"
    return f'<div class="{room}">{"".join(shown)}</div>'


def stack(shares: Sequence[tuple[str, float, int, float]], *, label: str) -> str:
    """Draw one bar in parts that add up to 1: (name, share, color, strength of the color)."""
    left, parts = 0.0, []
    for name, share, color, strength in shares:
        parts.append(
            f'<rect class="fill c{color}" fill-opacity="{strength:.2f}" x="{WIDE * left:.1f}" '
            f'width="{WIDE * share:.1f}" height="{ROW}"><title>{escape(name)}: {100 * share:.1f} %</title></rect>'
        )
        left += share
    return (
        f'<div class="stack"><svg class="track" viewBox="0 0 {WIDE} {ROW}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></div>'
    )
