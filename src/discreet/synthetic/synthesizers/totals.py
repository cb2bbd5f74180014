"""The totals of numbers whose mean the noise of a histogram would blur.

Few rows may hold much of a total: a capital gain is zero for most people, and at its top code for
one in two hundred, who have nearly half of all gains. Noise on their cell is small beside all rows,
but not beside the total. One noisy total then tells the mean better than all cells together. The
counts are moved so that they agree with it, most where they are least certain.

Which columns need this follows from the released histogram and from public prices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.marginals import Marginals
from discreet.synthetic.synthesizers.independent import Histogram

Floats = NDArray[np.float64]

SHARE = 0.05  # of the amount, for one column's total
MOST = 0.08  # and for all of them
BLURRED = 0.05  # the error of a total, as a part of it, from which on it is asked for
FINE = 1_000_000  # the most steps of the grid for a total


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blur:
    """A column whose total a histogram leaves uncertain."""

    column: int
    fine: Axis  # the grid for the total
    falling: bool  # whether places are counted from the highest value
    places: Floats  # how many places the middle of each cell lies from the end
    spread: Floats  # the variance of each cell's count
    error: float  # the total's standard deviation

    def moved(self, counts: Floats, total: float, std: float) -> Floats:
        """Return counts with the same sum that agree with a noisy total as far as it is certain."""
        rows = counts[: len(self.places)]
        # what moves the total without moving the number of rows
        line = self.spread * (self.places - _mean(self.places, self.spread))
        far = (total - float(rows @ self.places)) / (self.error**2 + std**2)
        found = np.maximum(rows + far * line, 0.0)
        found *= rows.sum() / max(float(found.sum()), 1e-9)
        return np.append(found, counts[len(rows) :])


def with_totals(
    data: Marginals, columns: Sequence[Histogram]
) -> tuple[tuple[Histogram, ...], float]:
    """Return the histograms after asking for the totals that they blur, and the share spent."""
    blurs = [
        found
        for place, (column, axis) in enumerate(zip(columns, data.axes, strict=True))
        if axis.ordered and (found := _blur(place, column, axis)) is not None
    ]
    able = [blur for blur in blurs if data.total_std(blur.fine, share=SHARE) < blur.error]
    each = min(SHARE, MOST / max(1, len(able)))
    result = list(columns)
    for blur in able:
        total = data.total(blur.fine, falling=blur.falling, share=each)
        std = data.total_std(blur.fine, share=each)
        column = result[blur.column]
        result[blur.column] = replace(column, counts=blur.moved(column.counts, total, std))
    return tuple(result), each * len(able)


def _blur(place: int, column: Histogram, axis: Axis) -> Blur | None:
    """Return what a histogram tells of a column's total; None if that is enough."""
    rows = column.counts[: axis.bins]
    starts = np.array(axis.starts, dtype=np.float64)
    places = (starts[:-1] + starts[1:] - 1) / 2
    # the nearer end, so that the total is the smaller one
    falling = _mean(places, rows) > (axis.values - 1) / 2
    if falling:
        places = axis.values - 1 - places
    spread = np.minimum(rows, column.std) ** 2
    error = math.sqrt(float(spread @ (places - _mean(places, spread)) ** 2))
    if error <= BLURRED * float(rows @ places):
        return None
    return Blur(
        column=place,
        fine=Axis(column=axis.column, bins=min(axis.values, FINE)),
        falling=falling,
        places=places,
        spread=spread,
        error=error,
    )


def _mean(numbers: Floats, weights: Floats) -> float:
    return float(numbers @ weights) / max(float(weights.sum()), 1e-9)
