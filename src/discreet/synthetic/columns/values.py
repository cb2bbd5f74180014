"""Figures of a column's values, beyond its cells: mean, quantiles, and shares of common values.

A distance over a description's own cells does not see inside them: if nine of ten true values are
0 and the description draws 0 to 999 evenly, all in one cell, the distance is 0. So compare values
too. The description and the domain alone decide which: the ends of the range, zero, the
description's heaviest values and its quantiles.

Privacy
    A paid comparison of a column is one marginal (`Marginals.counted`), whose cells are those
    values and the gaps between them, and one sum of numbers of size at most h
    (`Marginals.sum_of`), which one person's m rows move by m h (2 m h under change_one).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.mechanisms.combined import CONFIDENCE
from discreet.policy.domain import Decimals, Integers
from discreet.synthetic.columns.axis import BINS, Axis

if TYPE_CHECKING:
    from discreet.synthetic.description import Description
    from discreet.synthetic.marginals import Marginals

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
HEAVY = 0.01  # a value with at least this share of all rows is heavy
MOST_HEAVY = 8
MOST_WATCHED = 12  # the most values with cells of their own to look at
FINE = 1_000_000  # the most steps of the grid for a mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a column's values: for the true ones, with its 95 % half-width, and for the
    synthetic ones.
    """

    column: str
    figure: str
    true: float
    synthetic: float
    margin: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """The distribution of a column's values in a description: rows by cell, even within a cell."""

    axis: Axis
    rows: Floats

    @classmethod
    def of(cls, description: Description, column: int) -> Spread:
        axis = description.axes[column]
        return cls(axis=axis, rows=description.marginal((column,))[: axis.bins])

    @cached_property
    def total(self) -> float:
        return max(float(self.rows.sum()), 1e-9)

    @cached_property
    def ends(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.rows)]) / self.total

    def below(self, place: int) -> float:
        """Return the share of values before a place of the domain."""
        return float(np.interp(place, np.array(self.axis.starts, dtype=np.float64), self.ends))

    def share(self, place: int) -> float:
        return self.below(place + 1) - self.below(place)

    def quantile(self, rank: float) -> int:
        """Return the place of the smallest value with at least this share of values at or below."""
        cell = min(int(np.searchsorted(self.ends, rank, side="left")), self.axis.bins) - 1
        cell = max(cell, 0)
        start = self.axis.starts[cell]
        end = self.axis.starts[cell + 1]
        share = self.ends[cell + 1] - self.ends[cell]
        inside = 0.0 if share <= 0 else (rank - self.ends[cell]) / share
        return min(end - 1, start + max(0, math.ceil(inside * (end - start)) - 1))

    @property
    def mean(self) -> float:
        """Return the mean, in places of the domain."""
        middles = np.array([(start + end - 1) / 2 for start, end in pairwise(self.axis.starts)])
        return float(self.rows @ middles) / self.total

    @property
    def single(self) -> list[int]:
        """Return the cells of one value, the heaviest first."""
        ends = enumerate(pairwise(self.axis.starts))
        cells = [cell for cell, (start, end) in ends if end - start == 1]
        return sorted(cells, key=lambda cell: -self.rows[cell])

    @property
    def heavy(self) -> list[int]:
        """Return the places of single values with many rows, the heaviest first."""
        many = [cell for cell in self.single if self.rows[cell] >= HEAVY * self.total]
        return [self.axis.starts[cell] for cell in many[:MOST_HEAVY]]

    @property
    def alone(self) -> list[int]:
        """Return the places of values with cells of their own between intervals.

        They may have few rows here, but the cuts were made because they may have many.
        """
        if self.axis.cuts is None:
            return []
        return [self.axis.starts[cell] for cell in self.single[:MOST_WATCHED]]

    @property
    def watched(self) -> list[int]:
        """Return the places of values that many rows may have: the ends of the range, zero, heavy
        values, and values with cells of their own.
        """
        domain = self.axis.column.domain
        places = {0, self.axis.values - 1, *self.heavy, *self.alone}
        if isinstance(domain, Integers | Decimals) and domain.first <= 0 <= domain.last:
            places.add(-domain.first)
        return sorted(places)


def able(axis: Axis) -> bool:
    """Return True if figures of values say more about a column than distances over its cells."""
    return axis.ordered and axis.values > 2


def show_value(axis: Axis, place: float) -> str:
    """Return a value as people write it."""
    return str(axis.values_at(np.array([round(place)], dtype=np.int64)).to_pylist()[0])


def number(axis: Axis, place: float) -> float | None:
    """Return the number at a place of a domain; None if it is no domain of numbers."""
    domain = axis.column.domain
    if not isinstance(domain, Integers | Decimals):
        return None
    return float((place + domain.first) * float(domain.step))


def tell_values(description: Description, column: int) -> dict[str, Any] | None:
    """Return the figures of a column's values in a description, for `inspect`."""
    axis = description.axes[column]
    if not able(axis):
        return None
    spread = Spread.of(description, column)
    return {
        "mean": number(axis, spread.mean),
        "quantiles": {str(rank): show_value(axis, spread.quantile(rank)) for rank in QUANTILES},
        "heavy": [
            {"value": show_value(axis, place), "share": spread.share(place)}
            for place in spread.heavy
        ],
    }


def exact_figures(description: Description, table: pa.Table) -> tuple[Figure, ...]:
    """Return the figures of raw rows beside a description's, without noise: NOT FOR RELEASE.

    They include the values that are heavy in the raw rows.
    """
    figures = []
    for column, axis in enumerate(description.axes):
        if not able(axis):
            continue
        places = axis.places(table.column(axis.name))
        if len(places):
            own = _exact(Spread.of(description, column), places)
            figures += [
                Figure(column=axis.name, figure=what, true=true, synthetic=synthetic, margin=0.0)
                for what, true, synthetic in own
            ]
    return tuple(figures)


def _exact(spread: Spread, places: Places) -> list[tuple[str, float, float]]:
    """Return the figures of one column: the name, the true figure, and the synthetic one."""
    axis = spread.axis
    figures = []
    true = number(axis, float(places.mean()))
    synthetic = number(axis, spread.mean)
    if true is not None and synthetic is not None:
        figures.append(("mean", true, synthetic))
    values, counts = np.unique(places, return_counts=True)
    heaviest = values[np.argsort(-counts, kind="stable")][:MOST_HEAVY]
    heavy = [int(place) for place in heaviest if (places == place).mean() >= HEAVY]
    for place in sorted({*spread.watched, *heavy}):
        share = float((places == place).mean())
        figures.append((f"share of {show_value(axis, place)}", share, spread.share(place)))
    for place in sorted({spread.quantile(rank) for rank in QUANTILES}):
        share = float((places <= place).mean())
        figures.append((f"at most {show_value(axis, place)}", share, spread.below(place + 1)))
    gaps = [abs(float((places <= p).mean()) - spread.below(int(p) + 1)) for p in _few(values)]
    figures.append(("largest gap of cumulative shares", 0.0, max(gaps)))
    return figures


def _few(values: Places) -> Places:
    """Return at most a thousand values, evenly chosen."""
    return values[:: max(1, len(values) // 1000)]


def noisy_figures(description: Description, data: Marginals, *, share: float) -> tuple[Figure, ...]:
    """Return noisy figures of the true table beside a description's; spend a share of the amount."""
    columns = columns_to_compare(description)
    figures = []
    for done, column in enumerate(columns):
        data.tell("values", done / len(columns))
        own = share / len(columns) / 2
        figures += _noisy(Spread.of(description, column), data, share=own)
    return tuple(figures)


def columns_to_compare(description: Description) -> list[int]:
    """Return the columns with more values than cells, whose values a paid comparison looks at."""
    return [
        column for column, axis in enumerate(description.axes) if able(axis) and axis.values > BINS
    ]


def _noisy(spread: Spread, data: Marginals, *, share: float) -> list[Figure]:
    """Return the noisy figures of one column; spend twice the share."""
    axis = spread.axis
    values = spread.watched
    ranks = sorted({spread.quantile(rank) for rank in QUANTILES})
    bounds = {0, axis.values}
    for place in values:
        bounds |= {place, place + 1}
    for place in ranks:
        bounds.add(place + 1)
    cuts = sorted(bounds)
    present = replace(axis.column, nullable=False)
    cells = replace(axis, column=present, bins=len(cuts) - 1, cuts=tuple(cuts))
    counts, noise = data.counted(cells, share=share)
    total = max(1.0, float(counts.sum()))
    width = noise.margin(CONFIDENCE)

    def figure(what: str, rows: float, cells: int, synthetic: float) -> Figure:
        value = min(max(rows / total, 0.0), 1.0)
        margin = (width * cells**0.5 + value * width * len(counts) ** 0.5) / total
        return Figure(
            column=axis.name, figure=what, true=value, synthetic=synthetic, margin=min(margin, 1.0)
        )

    figures = []
    for place in values:
        rows = float(counts[cuts.index(place)])
        figures.append(figure(f"share of {show_value(axis, place)}", rows, 1, spread.share(place)))
    for place in ranks:
        below = cuts.index(place + 1)
        rows = float(counts[:below].sum())
        share_below = spread.below(place + 1)
        figures.append(figure(f"at most {show_value(axis, place)}", rows, below, share_below))
    fine = Axis(column=present, bins=min(axis.values, FINE))
    half = fine.bins // 2
    total_places, noise = data.sum_of(fine, center=half, share=share)
    at = (total_places / total + half + 0.5) * (axis.values / fine.bins) - 0.5
    true = number(axis, at)
    synthetic = number(axis, spread.mean)
    if true is not None and synthetic is not None:
        rows_margin = width * len(counts) ** 0.5
        per_place = abs(float(axis.column.domain.step)) * axis.values / fine.bins  # type: ignore[union-attr]
        sum_margin = noise.margin(CONFIDENCE) + abs(total_places) / total * rows_margin
        off = sum_margin / max(1.0, total - rows_margin)
        margin = per_place * (off + (0.5 if fine.bins < axis.values else 0.0))
        mean = Figure(
            column=axis.name, figure="mean", true=true, synthetic=synthetic, margin=margin
        )
        figures.insert(0, mean)
    return figures
