"""A column's values themselves, beside its cells: mean, quantiles, and the share of values that
many may have.

A distance over a description's own cells cannot see what happens within them: nine zeros of ten,
drawn evenly from 0 to 999, are a distance of nothing. So a description is asked about values too.
Which ones are looked at follows from the description and the domain alone: the ends of the range,
zero, the description's heaviest values and its quantiles.

Privacy
    Compared for a price, a column is one marginal (`Marginals.counted`), whose cells are those
    values and what lies between them, and one sum of numbers of at most h in size
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
HEAVY = 0.01  # of all rows, what a single value has to hold to be told
MOST_HEAVY = 8
MOST_WATCHED = 12  # of values that stand alone
FINE = 1_000_000  # steps in which a mean is told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a column's values: of the true ones, with the half-width of its 95 % interval,
    and of synthetic.
    """

    column: str
    figure: str
    true: float
    synthetic: float
    margin: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """A column's known values as a description has them: rows by cell, drawn evenly within each."""

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
        """Return the place of the smallest value up to which at least this share of values lies."""
        cell = min(int(np.searchsorted(self.ends, rank, side="left")), self.axis.bins) - 1
        start, end = self.axis.starts[max(cell, 0)], self.axis.starts[max(cell, 0) + 1]
        held = self.ends[max(cell, 0) + 1] - self.ends[max(cell, 0)]
        inside = 0.0 if held <= 0 else (rank - self.ends[max(cell, 0)]) / held
        return min(end - 1, start + max(0, math.ceil(inside * (end - start)) - 1))

    @property
    def mean(self) -> float:
        """In places of the domain."""
        middles = np.array([(start + end - 1) / 2 for start, end in pairwise(self.axis.starts)])
        return float(self.rows @ middles) / self.total

    @property
    def single(self) -> list[int]:
        """The cells of one value, the heaviest first."""
        ends = enumerate(pairwise(self.axis.starts))
        found = [cell for cell, (start, end) in ends if end - start == 1]
        return sorted(found, key=lambda cell: -self.rows[cell])

    @property
    def heavy(self) -> list[int]:
        """The places of single values that many rows have, the heaviest first."""
        many = [cell for cell in self.single if self.rows[cell] >= HEAVY * self.total]
        return [self.axis.starts[cell] for cell in many[:MOST_HEAVY]]

    @property
    def alone(self) -> list[int]:
        """The places of single values between intervals, however few rows they hold here: somebody
        thought that many may.
        """
        if self.axis.cuts is None:
            return []
        return [self.axis.starts[cell] for cell in self.single[:MOST_WATCHED]]

    @property
    def watched(self) -> list[int]:
        """The places of values that many may have: the ends of the range, zero, what is heavy here,
        and what the policy says stands alone.
        """
        domain = self.axis.column.domain
        zero = (
            [-domain.first]
            if isinstance(domain, Integers | Decimals) and domain.first <= 0 <= domain.last
            else []
        )
        return sorted({0, self.axis.values - 1, *zero, *self.heavy, *self.alone})


def able(axis: Axis) -> bool:
    """Return True if a column has values within its cells, or so many cells that a distance tells
    little of its values.
    """
    return axis.ordered and axis.values > 2


def show_value(axis: Axis, place: float) -> str:
    """Return a value as people write it."""
    return str(axis.values_at(np.array([round(place)], dtype=np.int64)).to_pylist()[0])


def number(axis: Axis, place: float) -> float | None:
    """Return a place of a domain of numbers as the number that stands there."""
    domain = axis.column.domain
    return (
        float((place + domain.first) * float(domain.step))
        if isinstance(domain, Integers | Decimals)
        else None
    )


def tell_values(description: Description, column: int) -> dict[str, Any] | None:
    """Return what a description says of a column's values: for `inspect`."""
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
    """Return the figures of raw rows beside a description's, without noise: NOT FOR RELEASE. Also
    of what is truly heavy.
    """
    found = []
    for column, axis in enumerate(description.axes):
        places = axis.places(table.column(axis.name)) if able(axis) else np.zeros(0, dtype=np.int64)
        if not len(places):
            continue
        spread = Spread.of(description, column)
        values, counts = np.unique(places, return_counts=True)
        heaviest = values[np.argsort(-counts, kind="stable")][:MOST_HEAVY]
        heavy = [int(place) for place in heaviest if (places == place).mean() >= HEAVY]
        watched = [
            (f"share of {show_value(axis, p)}", float((places == p).mean()), spread.share(p))
            for p in sorted({*spread.watched, *heavy})
        ]
        ranks = [
            (f"at most {show_value(axis, p)}", float((places <= p).mean()), spread.below(p + 1))
            for p in sorted({spread.quantile(rank) for rank in QUANTILES})
        ]
        gap = max(abs(float((places <= p).mean()) - spread.below(int(p) + 1)) for p in _few(values))
        figures = [*watched, *ranks, ("largest gap of cumulative shares", 0.0, gap)]
        true, made = number(axis, float(places.mean())), number(axis, spread.mean)
        if true is not None and made is not None:
            figures.insert(0, ("mean", true, made))
        found += [
            Figure(column=axis.name, figure=what, true=a, synthetic=b, margin=0.0)
            for what, a, b in figures
        ]
    return tuple(found)


def _few(values: Places) -> Places:
    """Return at most a thousand values, evenly chosen."""
    return values[:: max(1, len(values) // 1000)]


def noisy_figures(description: Description, data: Marginals, *, share: float) -> tuple[Figure, ...]:
    """Return the figures of the true table with noise, beside a description's, for a share of what
    was paid.
    """
    columns = columns_to_compare(description)
    found = []
    for done, column in enumerate(columns):
        data.tell("values", done / len(columns))
        each = share / len(columns) / 2
        found += _noisy(Spread.of(description, column), data, share=each)
    return tuple(found)


def columns_to_compare(description: Description) -> list[int]:
    """Return the columns whose values are compared for a price: those that have too many to be
    cells of their own.
    """
    return [
        column for column, axis in enumerate(description.axes) if able(axis) and axis.values > BINS
    ]


def _noisy(spread: Spread, data: Marginals, *, share: float) -> list[Figure]:
    axis, watched = spread.axis, spread.watched
    ranks = sorted({spread.quantile(rank) for rank in QUANTILES})
    cuts = sorted(
        {
            0,
            axis.values,
            *(p for place in watched for p in (place, place + 1)),
            *(p + 1 for p in ranks),
        }
    )
    asked = replace(
        axis, column=replace(axis.column, nullable=False), bins=len(cuts) - 1, cuts=tuple(cuts)
    )
    counts, noise = data.counted(asked, share=share)
    total, wide = max(1.0, float(counts.sum())), noise.margin(CONFIDENCE)

    def figure(what: str, rows: float, cells: int, synthetic: float) -> Figure:
        value = min(max(rows / total, 0.0), 1.0)
        margin = (wide * cells**0.5 + value * wide * len(counts) ** 0.5) / total
        return Figure(
            column=axis.name, figure=what, true=value, synthetic=synthetic, margin=min(margin, 1.0)
        )

    found = [
        figure(
            f"share of {show_value(axis, place)}",
            float(counts[cuts.index(place)]),
            1,
            spread.share(place),
        )
        for place in watched
    ]
    for place in ranks:
        cells = cuts.index(place + 1)
        rows = float(counts[:cells].sum())
        found.append(
            figure(f"at most {show_value(axis, place)}", rows, cells, spread.below(place + 1))
        )
    fine = Axis(column=asked.column, bins=min(axis.values, FINE))
    half = fine.bins // 2
    summed, noise = data.sum_of(fine, center=half, share=share)
    at = (summed / total + half + 0.5) * (axis.values / fine.bins) - 0.5
    true, made = number(axis, at), number(axis, spread.mean)
    if true is not None and made is not None:
        rows_margin = wide * len(counts) ** 0.5
        per_place = abs(float(axis.column.domain.step)) * axis.values / fine.bins  # type: ignore[union-attr]
        off = (noise.margin(CONFIDENCE) + abs(summed) / total * rows_margin) / max(
            1.0, total - rows_margin
        )
        margin = per_place * (off + (0.5 if fine.bins < axis.values else 0.0))
        found.insert(
            0, Figure(column=axis.name, figure="mean", true=true, synthetic=made, margin=margin)
        )
    return found
