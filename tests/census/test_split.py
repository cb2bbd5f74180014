"""The split of a budget: what is given stays, what is left out is chosen well, from public sizes
alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.census.grid import Grid
from discreet.census.split import error, split

GRID = Grid(sizes=(2, 10), tables=((), (0,), (0, 1)))
SIZES = (1, 5, 40, 400)
WEIGHTS = (1.0, 1.0, 3.0)


def shares(norm: str, **given: list[Fraction] | None) -> np.ndarray:
    found = split(GRID, SIZES, WEIGHTS, norm, **({"levels": None, "tables": None} | given))  # type: ignore[arg-type]
    assert sum(map(sum, found)) <= 1
    assert all(share >= 0 for row in found for share in row)
    return np.array([[float(share) for share in row] for row in found])


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_other_split_is_better(norm: str) -> None:
    found = shares(norm)
    measure = lambda each: float(error(each[None], GRID, SIZES, np.array(WEIGHTS), norm)[0])  # type: ignore[arg-type]  # noqa: E731
    best = measure(found / found.sum())
    assert best < measure(np.full((4, 3), 1 / 12))
    generator = np.random.default_rng(0)
    for _ in range(200):
        other = found * np.exp(generator.normal(0, 0.3, size=found.shape))
        assert measure(other / other.sum()) > best * (1 - 1e-3)


def test_what_is_given_stays() -> None:
    levels = [Fraction(1), Fraction(2), Fraction(0), Fraction(1)]
    tables = [Fraction(1), Fraction(0), Fraction(3)]
    both = shares("l2", levels=levels, tables=tables)
    assert np.allclose(both, np.outer([0.25, 0.5, 0, 0.25], [0.25, 0, 0.75]), atol=1e-5)
    assert np.allclose(shares("l2", levels=levels).sum(axis=1), [0.25, 0.5, 0, 0.25], atol=1e-5)
    only = shares("l2", tables=tables)
    assert np.allclose(only / only.sum(axis=1, keepdims=True), [0.25, 0, 0.75], atol=1e-3)


def test_the_measure_is_that_of_least_squares() -> None:
    """Where every place has as many children, it is the sum of the variances that `least_squares`
    claims.
    """
    from discreet.census.solve.least_squares import Level, final_precisions, precisions_below

    sizes = (1, 4, 12)
    given = np.random.default_rng(0).uniform(0.1, 1, size=(3, 3))
    starts = [np.array([0]), np.arange(4) * 3]
    levels = [
        Level(
            places=size,
            counts={},
            variances={table: 1 / share for table, share in zip(GRID.tables, row, strict=True)},
            totals=None,
            starts=begins,
        )
        for size, row, begins in zip(sizes, given, [*starts, None], strict=True)
    ]
    below = precisions_below(levels, GRID)
    final = [below[0]]
    for begins, lower in zip(starts, below[1:], strict=True):
        final.append(final_precisions(final[-1], lower, begins))
    pairs = [
        (each, table, weight)
        for each in final
        for table, weight in zip(GRID.tables, WEIGHTS, strict=True)
    ]
    wanted = sum(
        weight * float(np.mean(GRID.variance(table, each))) for each, table, weight in pairs
    )
    assert np.isclose(error(given[None], GRID, sizes, np.array(WEIGHTS), "l2")[0], wanted)
