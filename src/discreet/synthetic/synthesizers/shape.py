"""The shape that a model gives to how two columns hang together, where one noisy sum tells how
strongly.

A sum of products of scores says, for example, that people who are high in one column tend to be
high in the other. It does not say how much more so far from the middle: with nothing else known, a
model of maximum entropy makes the highest values of a long tail as little related as those just
above the middle, so that correlations and shares of variance come out too small. Here the columns
are taken to be steps of normal numbers that are correlated (a Gaussian copula): the log-potential
of two values is in proportion to the product of their normal scores. All of this is computed from
noisy histograms and noisy sums, so it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.columns.axis import Axis

Floats = NDArray[np.float64]

STEEPEST = 1.5  # slope, for normal scores: a correlation of 0.72
FARTHEST = 4.0  # normal score
HALVINGS = 12  # of the range of slopes
FITTINGS = 15  # of a table to its margins
LEAST_SPREAD = 0.01  # standard deviation of a line
LEAST_EIGENVALUE = 0.2  # of the matrix of correlations
LESS = 0.95  # what correlations are multiplied by until it has that


def normal_scores(rows: Floats, score: Floats, axis: Axis) -> Floats:
    """Return the mean normal score of each group's rows; of a list or of NULL, the score itself."""
    from scipy.special import ndtri

    if not axis.ordered or (axis.column.nullable and score[-1] != 0.0):
        return score
    known = rows[:-1] if axis.column.nullable else rows
    ends = np.clip(np.cumsum(known) / max(float(known.sum()), 1e-9), 0.0, 1.0)
    density = np.exp(-(ndtri(np.clip(ends, 1e-6, 1 - 1e-6)) ** 2) / 2) / math.sqrt(2 * math.pi)
    density[-1] = 0.0  # beyond the last group
    share = np.maximum(np.diff(ends, prepend=0.0), 1e-6)
    line = np.clip(-np.diff(density, prepend=0.0) / share, -FARTHEST, FARTHEST)
    return np.append(line, 0.0) if axis.column.nullable else line


def slopes(
    places: Sequence[int],
    shares: Sequence[Floats],
    lines: Sequence[Floats],
    wanted: Sequence[tuple[int, int, Floats, float]],
) -> list[float]:
    """Return, for each wanted pair of lines, what to multiply the product of the two lines by.

    Line i is of the column `places[i]`, whose groups hold `shares[i]` of the rows. A wanted pair
    has its two lines, the products of the scores that were measured, and the mean that they should
    have. Each pair's slope is found alone, and read as a correlation. The inverse of all
    correlations then tells which slopes give these together: what two columns owe to a third is not
    counted twice.
    """
    spread = [
        max(math.sqrt(max(float(share @ line**2) - float(share @ line) ** 2, 0.0)), LEAST_SPREAD)
        for share, line in zip(shares, lines, strict=True)
    ]
    matrix = np.eye(len(lines))
    for a, b in combinations(range(len(lines)), 2):
        if places[a] == places[b]:
            share = shares[a]
            both = float(share @ (lines[a] * lines[b]))
            both -= float(share @ lines[a]) * float(share @ lines[b])
            matrix[a, b] = matrix[b, a] = both / spread[a] / spread[b]
    for a, b, products, mean in wanted:
        alone = _slope(shares[a], shares[b], np.multiply.outer(lines[a], lines[b]), products, mean)
        standard = alone * spread[a] * spread[b]
        # of two normal numbers with correlation r, the slope is r / (1 - r^2)
        matrix[a, b] = matrix[b, a] = 2 * standard / (1 + math.sqrt(1 + 4 * standard**2))
    while float(np.linalg.eigvalsh(matrix).min()) < LEAST_EIGENVALUE:
        matrix = LESS * matrix + (1 - LESS) * np.eye(len(matrix))
    inverse = np.linalg.inv(matrix)
    return [-float(inverse[a, b]) / spread[a] / spread[b] for a, b, _, _ in wanted]


def _slope(a: Floats, b: Floats, lines: Floats, products: Floats, mean: float) -> float:
    """Return the x for which the table exp(x lines), fitted to margins a and b, has this mean of
    the products.
    """
    a, b = np.maximum(a, 1e-9), np.maximum(b, 1e-9)
    low, high = -STEEPEST, STEEPEST
    for _ in range(HALVINGS):
        x = (low + high) / 2
        table = np.exp(x * lines)
        right = np.ones(len(b))
        for _ in range(FITTINGS):
            left = a / (table @ right)
            right = b / (left @ table)
        if float(left @ (table * products) @ right) < mean:
            low = x
        else:
            high = x
    return (low + high) / 2
