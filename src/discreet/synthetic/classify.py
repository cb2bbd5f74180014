"""A classifier made from a description, to be tried on true rows: logistic regression on the groups
of every column.

It is a function of the description alone, so it is public; its points for a row are a sum of
integers that every engine can compute, and how well it does on true rows follows from noisy counts
of label and points (S16).
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
_ROWS = 40_000  # to learn from
_POINTS = 1000  # of one unit of log odds
_RIDGE = 1.0
_TIMES = 600  # that noise is drawn again


def target_of(description: Description, text: str) -> tuple[int, int]:
    """Return the column and the cell that `income=high`, or `smoker` where there are but two
    values, names.
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
    """Return synthetic cells, always the same of one description: what is compared must not change
    between two tries.
    """
    stream = Stream(hashlib.sha256(description.to_bytes()).digest())
    return codes(description, rows=min(max(description.rows, 1000), _ROWS), stream=stream)


def learn_score(
    cells: Integers, groups: tuple[Integers, ...], *, label: int, positive: int
) -> Score:
    """Learn the score that tells `positive` rows from others best on these rows."""
    from scipy.optimize import minimize

    sizes = [int(each.max()) + 1 for each in groups]
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

    found = minimize(
        loss, np.zeros(starts[-1] + 1), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    ).x
    points = np.rint(found[:-1] * _POINTS).astype(np.int64)
    weights = tuple(
        np.zeros(len(group), dtype=np.int64) if column == label else points[starts[column] :][group]
        for column, group in enumerate(groups)
    )
    totals = sum(each[cells[:, column]] for column, each in enumerate(weights))
    ends = np.unique(np.quantile(totals, np.arange(1, BINS) / BINS).astype(np.int64))
    return Score(label=label, positive=positive, weights=weights, ends=tuple(ends.tolist()))


def count_by_label(score: Score, cells: Integers) -> Integers:
    """Return rows by label and bin, as `Marginals.scored` counts them on true rows."""
    points = sum(each[cells[:, column]] for column, each in enumerate(score.weights))
    bins = np.searchsorted(np.array(score.ends), points, side="right")
    place = (cells[:, score.label] == score.positive) * score.bins + bins
    return np.asarray(np.bincount(place, minlength=2 * score.bins), dtype=np.int64)


def area(counts: NDArray[np.generic]) -> Floats:
    """Return the area under the curve from counts by label and bin, which are along the first axis.

    NaN where there are no rows of a label.
    """
    low, high = np.asarray(counts, dtype=np.float64).reshape(2, -1, *counts.shape[1:])
    negatives, positives = low.sum(axis=0), high.sum(axis=0)
    both = (negatives > 0) & (positives > 0)
    pairs = np.where(both, negatives * positives, np.nan)
    return np.asarray((high * (np.cumsum(low, axis=0) - low / 2)).sum(axis=0) / pairs)


def area_margin(counts: Integers, noise: Additive) -> float:
    """Return the half-width at 95 % of the area from noisy counts; a half, which is everything,
    where noise hides a label.
    """
    enough = 3 * noise.deviation * (len(counts) / 2) ** 0.5
    if min(counts.reshape(2, -1).sum(axis=1)) <= enough:
        return 0.5
    return min(0.5, float(half_widths(area, counts.astype(np.float64), noise, _TIMES)[0]))
