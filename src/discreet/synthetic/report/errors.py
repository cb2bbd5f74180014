"""Expect the error of a description from its own noise: free, and without touching data.

A released count errs by its noise. Smoothing and the model's prior keep a cell from erring by much
more than it holds, so a cell of c rows counted with standard deviation s is expected to err by
about sqrt(2 / pi) * s c / (s + c). For several columns that adds up over the one-way marginals and
the pairs that were counted. What was not counted, the model takes for as independent as it may be:
that part of the error is not noise, cannot be known without asking the data, and is what
`curator.compare` pays for.
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
_MEAN = math.sqrt(2 / math.pi)  # of |z|, z standard normal


def expected_error(description: Description, columns: tuple[int, ...]) -> float:
    """Return the expected total variation distance that noise makes: of one column, or of several
    together.
    """
    one_way = [_one_way(description, column) for column in columns]
    pairs = [_pair(description, pair) for pair in combinations(columns, 2)]
    return min(
        1.0,
        math.sqrt(math.fsum(error**2 for error in (*one_way, *(pair or 0.0 for pair in pairs)))),
    )


def is_counted(description: Description, columns: tuple[int, ...]) -> bool:
    """Return True if some released table has all of these columns."""
    return any(set(columns) <= set(each.columns) for each in description.measured)


def cell_errors(description: Description, column: int) -> Floats:
    """Return the expected error of every cell's count."""
    cells = description.marginal((column,))
    std = std_of_average([each for each in description.measured if each.columns == (column,)])
    if std is None:  # `random` has no histograms: what a cell holds is only a guess
        return cells
    return _MEAN * std * cells / (std + cells)


def std_of_average(measured: list[NoisyMarginal]) -> float | None:
    """Return the standard deviation of the average of several releases of the same counts, weighted
    by precision.
    """
    return math.fsum(each.std**-2 for each in measured) ** -0.5 if measured else None


def _one_way(description: Description, column: int) -> float:
    return float(cell_errors(description, column).sum()) / 2 / description.model.total


def _pair(description: Description, pair: tuple[int, ...]) -> float | None:
    """Return the noise of the finest table that counted a pair; None where none did."""
    found = [each for each in description.measured if set(pair) <= set(each.columns)]
    if not found:
        return None
    finest = max(found, key=lambda each: math.prod(each.shape))
    std = std_of_average([each for each in found if each.shape == finest.shape]) or finest.std
    cells = np.maximum(finest.counts.astype(np.float64), 0.0)
    return float((_MEAN * std * cells / (std + cells)).sum()) / 2 / description.model.total
