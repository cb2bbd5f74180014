"""A classifier from a description, to try on true rows: logistic regression on the groups of every
column.

It is a function of the description alone, so it is public. A row's points are a sum of integers,
which every engine can compute. Noisy counts by label and points tell how well it does on true rows
(S16).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.mechanisms.shapes import Additive
from discreet.mechanisms.tails.simulate import half_widths
from discreet.noise import Stream
from discreet.synthetic.generate import codes
from discreet.synthetic.marginals import Score

if TYPE_CHECKING:
    from discreet.synthetic.description import Description

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BINS = 40
_ROWS = 40_000  # the most synthetic rows to learn from
_POINTS = 1000  # points for one unit of log odds
_RIDGE = 1.0
_TIMES = 600  # how many times to redraw noise


def target_of(description: Description, text: str) -> tuple[int, int]:
    """Return the column and the cell that a text names: `income=high`, or for a column of two
    values `smoker`.
    """
    if not isinstance(text, str):
        raise UsageError(f"target is a text such as income=high, not {type(text).__name__}.")
    name, _, value = text.partition("=")
    (column,) = description.places([name.strip()])
    axis = description.axes[column]
    if value:
        return column, axis.code(value.strip())
    if axis.bins != 2:
        raise UsageError(
            f"{name} has more than two values. Name the one to tell from others: {name}=value."
        )
    return column, 1


def rows_of(description: Description) -> Integers:
    """Return the cells of synthetic rows, always the same for one description.

    So the same comparison, asked again, trains the same classifier.
    """
    stream = Stream(hashlib.sha256(description.to_bytes()).digest())
    rows = min(max(description.rows, 1000), _ROWS)
    return codes(description, rows=rows, stream=stream)


def learn_score(
    cells: Integers, groups: tuple[Integers, ...], *, label: int, positive: int
) -> Score:
    """Return the score that best tells `positive` rows from others on these rows."""
    from scipy.optimize import minimize

    sizes = [int(own.max()) + 1 for own in groups]
    starts = np.cumsum([0, *sizes])
    others = [column for column in range(len(groups)) if column != label]
    places = [groups[column][cells[:, column]] + starts[column] for column in others]
    truth = (cells[:, label] == positive).astype(np.float64)

    def loss(weights: Floats) -> tuple[float, Floats]:
        odds = np.full(len(cells), weights[-1])
        for place in places:
            odds += weights[place]
        wrong = 1 / (1 + np.exp(-np.clip(odds, -500, 500))) - truth
        gradient = np.zeros(len(weights))
        for place in places:
            gradient += np.bincount(place, weights=wrong, minlength=len(weights))
        gradient[-1] = wrong.sum()
        ridge = _RIDGE * weights
        ridge[-1] = 0.0
        value = float(np.logaddexp(0, odds).sum() - truth @ odds + ridge @ weights / 2)
        return value, gradient + ridge

    start = np.zeros(starts[-1] + 1)
    fit = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100})
    points = np.rint(fit.x[:-1] * _POINTS).astype(np.int64)
    weights = []
    for column, group in enumerate(groups):
        if column == label:
            weights.append(np.zeros(len(group), dtype=np.int64))
        else:
            weights.append(points[starts[column] :][group])
    totals = sum(own[cells[:, column]] for column, own in enumerate(weights))
    ends = np.unique(np.quantile(totals, np.arange(1, BINS) / BINS).astype(np.int64))
    return Score(label=label, positive=positive, weights=tuple(weights), ends=tuple(ends.tolist()))


def count_by_label(score: Score, cells: Integers) -> Integers:
    """Return counts of rows by label and bin, as `Marginals.scored` counts true rows."""
    points = sum(own[cells[:, column]] for column, own in enumerate(score.weights))
    bins = np.searchsorted(np.array(score.ends), points, side="right")
    place = (cells[:, score.label] == score.positive) * score.bins + bins
    return np.asarray(np.bincount(place, minlength=2 * score.bins), dtype=np.int64)


def area(counts: NDArray[np.generic]) -> Floats:
    """Return the area under the curve from counts by label and bin, along the first axis; NaN if a
    label has no rows.
    """
    low, high = np.asarray(counts, dtype=np.float64).reshape(2, -1, *counts.shape[1:])
    negatives = low.sum(axis=0)
    positives = high.sum(axis=0)
    both = (negatives > 0) & (positives > 0)
    pairs = np.where(both, negatives * positives, np.nan)
    return np.asarray((high * (np.cumsum(low, axis=0) - low / 2)).sum(axis=0) / pairs)


def area_margin(counts: Integers, noise: Additive) -> float:
    """Return the 95 % half-width of the area from noisy counts; 0.5, which covers everything, if
    noise hides a label.
    """
    enough = 3 * noise.deviation * (len(counts) / 2) ** 0.5
    if min(counts.reshape(2, -1).sum(axis=1)) <= enough:
        return 0.5
    return min(0.5, float(half_widths(area, counts.astype(np.float64), noise, _TIMES)[0]))
