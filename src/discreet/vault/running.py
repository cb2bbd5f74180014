"""Turn numbers into the sums that get noise for running totals, and noisy sums back into numbers.

`mechanisms.running` explains the method and has its proof. `back` is post-processing: its only
input is what the mechanism released.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.mechanisms.running import Grid, factor, weights
from discreet.threads import one_thread
from discreet.vault.exact import IntegerArray
from discreet.vault.integers import exact_product, largest

_ROUNDS = 8  # each round takes 50 bits off the rest; numbers have at most 38 digits


def multiply_by_factor(values: IntegerArray, grid: Grid) -> IntegerArray:
    """Return the exact C x for every combination of the other keys."""
    rows = grid.by_period(values)
    return _flat(exact_product(factor(grid.periods), rows), grid, len(values))


def back(noisy: IntegerArray, grid: Grid) -> IntegerArray:
    """Return integers whose running totals are the nearest integers to A C^-1 y.

    A number may have more digits than a float. So each round computes exactly what the totals do
    not explain yet, and solves for that rest again, until nothing is left.
    """
    rows = grid.by_period(noisy)
    total = None
    rest = rows
    for _ in range(_ROUNDS):
        with one_thread():
            step = _whole(np.rint(weights(grid.periods) @ rest.astype(np.float64)))
        if total is not None and not step.any():
            break
        total = step if total is None else _add(total, step)
        rest = _add(rows, -exact_product(factor(grid.periods), _differences(total)))
    assert total is not None
    return _flat(_differences(total), grid, len(noisy))


def _add(one: IntegerArray, other: IntegerArray) -> IntegerArray:
    wide = object in (one.dtype, other.dtype) or largest(one) + largest(other) >= 2**62
    kind = object if wide else np.int64
    return np.asarray(one.astype(kind) + other.astype(kind))


def _differences(totals: IntegerArray) -> IntegerArray:
    return np.concatenate([totals[:1], _add(totals[1:], -totals[:-1])])


def _whole(values: Any) -> IntegerArray:
    """Return whole floats as integers; as Python's own if sums of them may pass 64 bits."""
    if np.abs(values).max(initial=0.0) < 2.0**60:
        return np.asarray(values.astype(np.int64))
    return np.array([int(each) for each in values.ravel()], dtype=object).reshape(values.shape)


def _flat(rows: IntegerArray, grid: Grid, size: int) -> IntegerArray:
    cells = np.empty(size, dtype=rows.dtype)
    cells[grid.by_period(np.arange(size))] = rows
    return cells
