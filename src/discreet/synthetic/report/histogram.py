"""A column of a description, drawn so that an area is a number of rows: cells of numbers, days and
moments have different widths, so their bars stand over a true axis and show rows per unit. Values
without width (categories, NULL, single values that many rows have) are lying bars.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.pages.axis import Axis as Scale
from discreet.pages.axis import days, numbers, place_of, write_tick
from discreet.pages.bars import Series, bars
from discreet.pages.plot import Curve, plot
from discreet.policy.domain import Decimals, Integers
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.columns.values import HEAVY, MOST_HEAVY

Floats = NDArray[np.float64]

_MOST_BARS = 50
_FEW_VALUES = 12
_NARROW = 8  # a single value is drawn alone only where a bar has at least so many values
_CLOCK = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The places of the domain from `start` to before `end`, and how many rows are expected there."""

    start: int
    end: int
    rows: float
    error: float


def draw_column(axis: Axis, counts: Floats, errors: Floats) -> str:
    """Draw the rows of each cell of a column, with the error of each."""
    if not axis.ordered or axis.bins == axis.values <= _FEW_VALUES:
        return _list_values(axis, counts, errors)
    edges = _cut(axis)
    alone = _alone(axis, edges, counts)
    rest = counts[: axis.bins].copy()
    spread = errors[: axis.bins].copy()
    rest[alone] = spread[alone] = 0.0
    drawn = _density(axis, _fill(axis, edges, rest, spread), less=bool(alone))
    beside = [*alone, *range(axis.bins, axis.size)]
    if not beside:
        return drawn
    labels = [axis.label(code) for code in beside]
    total = float(counts.sum())
    return drawn + _lying(counts[beside], errors[beside], labels, total=total)


def _list_values(axis: Axis, counts: Floats, errors: Floats) -> str:
    """Draw a bar for each value; of many categories, one for each of the most frequent."""
    total = float(counts.sum())
    if axis.ordered or axis.size <= _FEW_VALUES:
        labels = [axis.label(code) for code in range(axis.size)]
        return _lying(counts, errors, labels, total=total)
    order = np.argsort(-counts, kind="stable")
    shown = order[: _FEW_VALUES - 1]
    others = order[_FEW_VALUES - 1 :]
    labels = [*(axis.label(int(code)) for code in shown), f"{len(others)} others"]
    heights = np.append(counts[shown], counts[others].sum())
    spread = np.append(errors[shown], np.sqrt((errors[others] ** 2).sum()))
    return _lying(heights, spread, labels, total=total)


def _lying(heights: Floats, errors: Floats, labels: Sequence[str], *, total: float) -> str:
    """Draw lying bars, each with its share of all rows."""
    series = Series(
        values=heights.tolist(),
        ranges=list(zip((heights - errors).tolist(), (heights + errors).tolist(), strict=True)),
        texts=[f"{100 * height / (total or 1.0):.1f} %" for height in heights],
    )
    scale = numbers(0.0, float((heights + errors).max()) or 1.0, title="rows")
    return bars(labels, [series], axis=scale)


def _cut(axis: Axis) -> list[int]:
    """Return the edges of at most fifty bars, each at least a fiftieth of the width.

    Narrow cells are joined. A wide cell stays one bar, but for the part that completes its
    neighbor's: a bar narrower than the others would be higher than the page for a few rows.
    """
    least = -(-axis.values // _MOST_BARS)
    starts = axis.starts
    edges = [0]
    while axis.values - edges[-1] >= 2 * least:
        end = starts[bisect_left(starts, edges[-1] + least)]
        whole = bisect_right(starts, edges[-1]) == bisect_left(starts, end)
        if end - edges[-1] >= 2 * least and not whole:
            end = edges[-1] + least
        edges.append(min(end, axis.values - least))
    return [*edges, axis.values]


def _fill(axis: Axis, edges: Sequence[int], counts: Floats, errors: Floats) -> list[Bar]:
    """Return the bars; a part of a cell has its part of the rows, as synthetic rows are drawn."""
    starts = np.array(axis.starts, dtype=np.float64)
    made = []
    for start, end in pairwise(edges):
        inside = np.minimum(starts[1:], end) - np.maximum(starts[:-1], start)
        parts = np.maximum(inside, 0.0) / np.diff(starts)
        rows = float(parts @ counts)
        made.append(
            Bar(start=start, end=end, rows=rows, error=float(np.hypot.reduce(parts * errors)))
        )
    return made


def _alone(axis: Axis, edges: Sequence[int], counts: Floats) -> list[int]:
    """Return the cells of single values that are most of a bar of many values."""
    if axis.values < _NARROW * _MOST_BARS:
        return []
    own = counts[: axis.bins]
    around = [bar.rows for bar in _fill(axis, edges, own, np.zeros(axis.bins))]
    found = [
        cell
        for cell, (start, end) in enumerate(pairwise(axis.starts))
        if end - start == 1
        and own[cell] >= HEAVY * counts.sum()
        and own[cell] > around[bisect_right(edges, start) - 1] / 2
    ]
    return sorted(sorted(found, key=lambda cell: -own[cell])[:MOST_HEAVY])


def _density(axis: Axis, made: Sequence[Bar], *, less: bool) -> str:
    """Draw upright bars over a true axis: as high as there are rows per unit."""
    across, size, unit = _true_axis(axis)
    edges = [_edge(axis, bar.start) for bar in made] + [_edge(axis, axis.values)]
    widths = np.diff(np.array(edges)) / size
    rows = np.array([bar.rows for bar in made])
    errors = np.array([bar.error for bar in made])
    curve = Curve(
        across=edges,
        up=(rows / widths).tolist(),
        lows=((rows - errors) / widths).tolist(),
        highs=((rows + errors) / widths).tolist(),
        kind="column",
        titles=[
            f"{_ends(axis, bar)}: {bar.rows:,.0f} rows, off by about {bar.error:,.0f}"
            for bar in made
        ],
    )
    what = f"rows per {unit}" + (", without the values below" if less else "")
    up = numbers(0.0, float(((rows + errors) / widths).max()) or 1.0, title=what)
    return plot([curve], across=across, up=up, label=f"{what}, by {axis.name}")


def _ends(axis: Axis, bar: Bar) -> str:
    low, high = map(str, axis.values_at(np.array([bar.start, bar.end - 1])).to_pylist())
    return low if bar.end - bar.start == 1 else f"{low} to {high}"


def _edge(axis: Axis, place: int) -> float:
    """Return where a place of the domain begins on the true axis.

    A number lies in the middle of its bar; a day or a moment begins there.
    """
    domain = axis.column.domain
    if isinstance(domain, Integers | Decimals):
        return (place + domain.first - 0.5) * float(domain.step)
    last = axis.values - 1
    low, high = map(place_of, axis.values_at(np.array([0, last])).to_pylist())
    return low + place * (high - low) / last


def _true_axis(axis: Axis) -> tuple[Scale, float, str]:
    """Return the axis of a column, a round unit of about the width of a bar, and its name."""
    low, high = _edge(axis, 0), _edge(axis, axis.values)
    width = (high - low) / _MOST_BARS
    domain = axis.column.domain
    if isinstance(domain, Integers | Decimals):
        size = max(10.0 ** math.floor(math.log10(width)), float(domain.step))
        scale = numbers(low, high, title=axis.name)
        whole = isinstance(domain, Integers) and size == 1
        return scale, size, "value" if whole else write_tick(size, size)
    first, last = axis.values_at(np.array([0, axis.values - 1])).to_pylist()
    assert isinstance(first, date)
    assert isinstance(last, date)
    unit, seconds = next((each for each in _CLOCK if each[1] <= width * 86_400), _CLOCK[-1])
    if not isinstance(first, datetime):
        unit, seconds = _CLOCK[0]
    scale = replace(days(first, last), high=high, title=axis.name)
    return scale, seconds / 86_400, unit
