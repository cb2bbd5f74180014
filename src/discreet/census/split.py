"""Split the budget over levels and tables: as declared, or so that the expected error is smallest.

The error is the sum, over levels and tables, of the table's weight times the variance of one of its
cells after least squares. It depends on public sizes alone.

With ρ, precisions are proportional to shares, and the error is convex in them. Each round of the
multiplicative rule for such functions makes it smaller, until it is the smallest (Torsney 1983).
With ε, precisions are proportional to the squares of shares. There the same rule stops when no
small change helps, often with a few tables of the finest level, of which all others are sums.

The places of a level are assumed to have equally many children. This affects how good the split is,
not what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from discreet.census.grid import Floats, Grid
from discreet.mechanisms.shapes import Norm

_ROUNDS = 60
_PARTS = 10**6
_LEAST = 1e-3  # a share that is a smaller part of the mean share becomes zero


def error(shares: Floats, grid: Grid, sizes: Sequence[int], weights: Floats, norm: Norm) -> Floats:
    """Return the error of many splits at once, for a budget of 1. `shares` has the axes splits,
    levels, tables.
    """
    precision = shares if norm == "l2" else shares**2
    levels = len(sizes)
    branches = [sizes[level + 1] / sizes[level] for level in range(levels - 1)]
    total = np.zeros(len(shares))
    for part in grid.parts:
        own = [
            sum(
                precision[:, level, place] * grid.cells(part) / grid.cells(table)
                for place, table in enumerate(grid.tables)
                if set(part) <= set(table)
            )
            for level in range(levels)
        ]
        up = [np.asarray(own[-1])]
        for level in range(levels - 2, -1, -1):
            up.append(own[level] + up[-1] / branches[level])
        up = up[::-1]
        variance = 1 / np.maximum(up[0], 1e-12)
        centered = np.prod([1 - 1 / size for size in grid.shape(part)])
        worth = sum(
            weight * centered * (grid.cells(part) / grid.cells(table)) ** 2
            for table, weight in zip(grid.tables, weights, strict=True)
            if set(part) <= set(table)
        )
        total += worth * variance
        for level in range(1, levels):
            branch = branches[level - 1]
            variance = (1 - 1 / branch) / np.maximum(up[level], 1e-12) + variance / branch**2
            total += worth * variance
    return total


def split(
    grid: Grid,
    sizes: Sequence[int],
    weights: Sequence[float],
    norm: Norm,
    *,
    levels: Sequence[Fraction] | None,
    tables: Sequence[Fraction] | None,
) -> list[list[Fraction]]:
    """Return a share for every level and table; together they are at most 1.

    `levels` and `tables` are the declared shares, which are kept.
    """
    by_level = np.full(len(sizes), 1 / len(sizes))
    if levels is not None:
        by_level = _normal(levels)
    by_table = np.full(len(grid.tables), 1 / len(grid.tables))
    if tables is not None:
        by_table = _normal(tables)
    shares = np.outer(by_level, by_table)
    given = {
        "levels": None if levels is None else by_level,
        "tables": None if tables is None else by_table,
    }
    if levels is None or tables is None:
        for _ in range(_ROUNDS):
            slopes = _slopes(shares, grid, sizes, np.asarray(weights), norm)
            shares = _hold(shares * np.sqrt(slopes), **given)
        shares = np.where(shares < _LEAST * shares.sum() / shares.size, 0.0, shares)
        shares = _hold(shares, **given)
    return [[Fraction(int(share * _PARTS), _PARTS) for share in row] for row in shares]


def _normal(shares: Sequence[Fraction]) -> Floats:
    return np.array([float(share / sum(shares)) for share in shares])


def _hold(shares: Floats, *, levels: Floats | None, tables: Floats | None) -> Floats:
    """Scale shares so that they add up to 1, and so that the given sums by level or table hold."""
    if tables is not None:
        shares = np.outer(shares.sum(axis=1), tables)
    if levels is None:
        return np.asarray(shares / shares.sum())
    sums = np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(shares / sums * levels[:, None])


def _slopes(
    shares: Floats, grid: Grid, sizes: Sequence[int], weights: Floats, norm: Norm
) -> Floats:
    """Return how fast the error falls as each share grows; 0 for shares that are zero."""
    step = 1e-4
    moved = np.repeat(shares[None], shares.size + 1, axis=0)
    places = np.arange(shares.size)
    moved.reshape(len(moved), -1)[places + 1, places] *= 1 + step
    found = error(moved, grid, sizes, weights, norm)
    falls = np.maximum((found[0] - found[1:]) / step, 0.0).reshape(shares.shape)
    return np.asarray(np.divide(falls, shares, out=np.zeros_like(falls), where=shares > 0))
