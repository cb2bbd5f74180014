"""The expected error of a description by its own noise: for free, and without reading data.

The error of a released count is its noise. Smoothing and the model's prior keep the error of a cell
from being much larger than its count. So a cell of c rows with noise of standard deviation s has an
expected error of about sqrt(2 / pi) * s c / (s + c). For several columns, add up the squares of the
errors of the one-way marginals and of the pairs that were counted. Columns that were not counted
together are as independent in the model as they can be. The error of this is not noise; only the
data can tell it, and `curator.compare` pays for that.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from discreet.synthetic.description import Description
    from discreet.synthetic.marginals import NoisyMarginal

Floats = NDArray[np.float64]
_MEAN = math.sqrt(2 / math.pi)  # the mean of |z| for a standard normal z


def expected_error(description: Description, columns: tuple[int, ...]) -> float:
    """Return the expected total variation distance by noise, of one column or of several together."""
    errors = [_one_way(description, column) for column in columns]
    errors += [_pair(description, pair) or 0.0 for pair in combinations(columns, 2)]
    return min(1.0, math.sqrt(math.fsum(error**2 for error in errors)))


def is_counted(description: Description, columns: tuple[int, ...]) -> bool:
    """Return True if some released table has all of these columns."""
    return any(set(columns) <= set(marginal.columns) for marginal in description.measured)


def cell_errors(description: Description, column: int) -> Floats:
    """Return the expected error of every cell's count."""
    cells = description.marginal((column,))
    std = std_of_average([own for own in description.measured if own.columns == (column,)])
    if std is None:  # `random` has no histograms, so its counts are guesses
        return cells
    return _MEAN * std * cells / (std + cells)


def std_of_average(measured: list[NoisyMarginal]) -> float | None:
    """Return the standard deviation of the average of several releases of the same counts, weighted
    by precision.
    """
    return math.fsum(own.std**-2 for own in measured) ** -0.5 if measured else None


def _one_way(description: Description, column: int) -> float:
    return float(cell_errors(description, column).sum()) / 2 / description.model.total


def _pair(description: Description, pair: tuple[int, ...]) -> float | None:
    """Return the error by noise of the finest table that counted a pair; None if none did."""
    tables = [own for own in description.measured if set(pair) <= set(own.columns)]
    if not tables:
        return None
    finest = max(tables, key=lambda own: math.prod(own.shape))
    std = std_of_average([own for own in tables if own.shape == finest.shape]) or finest.std
    cells = np.maximum(finest.counts.astype(np.float64), 0.0)
    return float((_MEAN * std * cells / (std + cells)).sum()) / 2 / description.model.total
