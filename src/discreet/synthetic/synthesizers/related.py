"""How all pairs of columns hang together, measured at once.

A column gets scores between -1 and 1: where its rows stand from its low to its high end, or which
of its heaviest values they have. The sum over rows of the product of two columns' scores tells
whether they rise together, and is one number; a table of two columns has many, and so costs more
for the same precision. One vector of these sums over all pairs leaves nothing to chance about which
pairs are looked at. Those that stand out from their noise go into the model, as long as it stays
small.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.marginals import SCALE, Columns, Marginals, Relations
from discreet.synthetic.synthesizers.graphical import FitTarget, cells_needed
from discreet.synthetic.synthesizers.independent import Histogram

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Score = tuple[int, Floats]  # the column, and a number from -1 to 1 for each of its groups

MOST_SCORES = 3  # of one listed column
LEAST_SHARE = 0.05  # of all rows, what a listed value must hold to get a score
MISSING = 0.1  # of all rows, from where on NULL of a number gets a score
STEEP = 2.0  # scores rise from -1 to 1 over the middle half of the rows
STANDS_OUT = 1.5  # standard deviations
MOST_NOISE = 0.5  # of all rows
MOST_CELLS = 60_000  # of the junction tree


def related(
    data: Marginals, columns: Sequence[Histogram], total: float, *, share: float
) -> list[FitTarget]:
    """Return what a model is to fit of the pairs that are asked for: those that stand out.

    Nothing is measured, and the share is left, where noise would drown every pair.
    """
    scores = [
        (place, score)
        for place, (column, axis) in enumerate(zip(columns, data.axes, strict=True))
        for score in _scores(column, axis)
    ]
    pairs = [
        (a, b)
        for a, b in combinations(range(len(scores)), 2)
        if scores[a][0] < scores[b][0] and data.workload.weight((scores[a][0], scores[b][0])) > 0
    ]
    # where noise is that large, no pair can stand out
    if not pairs or data.distance_std(share, len(pairs)) > MOST_NOISE * total:
        return []
    lines = [
        (place, np.rint(SCALE * score[columns[place].groups]).astype(np.int64))
        for place, score in scores
    ]
    found = data.relations(lines, pairs, share=share)
    rounded = [(place, np.rint(SCALE * score) / SCALE) for place, score in scores]
    outstanding = _outstanding(columns, rounded, found, total)
    sums: dict[Columns, list[int]] = defaultdict(list)
    for number, (a, b) in enumerate(pairs):
        sums[scores[a][0], scores[b][0]].append(number)
    order = sorted(sums, key=lambda pair: -max(outstanding[each] for each in sums[pair]))
    sizes, kept, sets = [column.size for column in columns], list[FitTarget](), list[Columns]()
    for pair in order:
        if max(outstanding[each] for each in sums[pair]) < STANDS_OUT:
            break
        if cells_needed(sizes, [*sets, pair]) <= MOST_CELLS:
            sets.append(pair)
            kept.append(_target(pair, rounded, found, sums[pair]))
    return kept


def _scores(column: Histogram, axis: Axis) -> list[Floats]:
    """The scores of a column's groups."""
    rows = column.grouped
    if len(rows) < 2:
        return []
    if not axis.ordered:
        heavy = np.argsort(-rows, kind="stable")[: min(len(rows) - 1, MOST_SCORES)]
        kept = [group for group in heavy if rows[group] > LEAST_SHARE * rows.sum()]
        return [np.where(np.arange(len(rows)) == group, 1.0, -1.0) for group in kept]
    if not axis.column.nullable:
        return [_rising(rows)]
    missing = np.where(np.arange(len(rows)) == len(rows) - 1, 1.0, -1.0)
    found = [np.append(_rising(rows[:-1]), 0.0)] if len(rows) > 2 else []
    return [*found, missing] if not found or rows[-1] > MISSING * rows.sum() else found


def _rising(rows: Floats) -> Floats:
    """Where the middle of each group stands, from -1 at the lowest to 1 at the highest."""
    middle = (np.cumsum(rows) - rows / 2) / max(float(rows.sum()), 1e-9)
    line = np.clip(STEEP * (2 * middle - 1), -1.0, 1.0)
    half = (line.max() - line.min()) / 2
    if half <= 0:
        return np.zeros(len(rows))
    return np.asarray((line - line.min()) / half - 1)


def _outstanding(
    columns: Sequence[Histogram], scores: Sequence[Score], found: Relations, total: float
) -> list[float]:
    """How many standard deviations each sum is from that of columns that know nothing of each
    other.

    Noise of the sum, noise of the histograms that tell the mean scores, and chance all count.
    """
    mean, square, error = [], [], []
    for place, score in scores:
        rows, cells = columns[place].grouped, np.bincount(columns[place].groups)
        whole = float(rows.sum())
        mean.append(float(score @ rows) / whole)
        square.append(float(score**2 @ rows) / whole)
        error.append(columns[place].std * math.sqrt(float(score**2 @ cells)))
    distances = []
    for (a, b), noisy in zip(found.pairs, found.sums.tolist(), strict=True):
        chance = total * max(square[a] - mean[a] ** 2, 0.0) * max(square[b] - mean[b] ** 2, 0.0)
        means = (mean[a] * error[b]) ** 2 + (mean[b] * error[a]) ** 2
        std = math.sqrt(found.std**2 + chance + means)
        distances.append(abs(noisy - total * mean[a] * mean[b]) / std)
    return distances


def _target(
    pair: Columns, scores: Sequence[Score], found: Relations, numbers: Sequence[int]
) -> FitTarget:
    """The sums of one pair of columns as a model is to fit them."""
    products = [np.multiply.outer(*(scores[each][1] for each in found.pairs[n])) for n in numbers]
    return FitTarget(
        columns=pair,
        cells=np.zeros(0, dtype=np.int64),
        counts=found.sums[list(numbers)],
        std=found.std,
        scores=np.array([each.ravel() for each in products]),
    )
