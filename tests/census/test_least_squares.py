"""Closed forms against the normal equations, written out for small trees and tables that overlap in
every way.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.census.grid import Grid
from discreet.census.solve.least_squares import Level, by_table, down, from_below, precisions_below


def levels_of(grid: Grid, starts: list[np.ndarray], generator: np.random.Generator) -> list[Level]:
    sizes = [len(each) for each in starts] + [
        int(generator.integers(len(starts[-1]), len(starts[-1]) + 3))
    ]
    sizes[-1] = max(sizes[-1], int(starts[-1].max()) + 1)
    levels = []
    for place, size in enumerate(sizes):
        levels.append(
            Level(
                places=size,
                counts={
                    table: generator.integers(-9, 30, size=(size, *grid.shape(table)))
                    for table in grid.tables
                },
                variances={table: float(generator.uniform(0.5, 4)) for table in grid.tables},
                totals=None,
                starts=starts[place] if place < len(starts) else None,
            )
        )
    return levels


@pytest.mark.parametrize(
    "tables",
    [
        ((),),
        ((0,), (1,), (2,)),
        ((), (0,), (0, 1), (1, 2)),
        ((0, 1), (0, 2), (1, 2)),
        ((), (2,), (0, 1, 2)),
    ],
)
def test_estimates_and_variances_are_those_of_the_normal_equations(
    tables: tuple[tuple[int, ...], ...],
) -> None:
    generator = np.random.default_rng(len(tables))
    grid = Grid(sizes=(2, 3, 2), tables=tables)
    starts = [np.array([0]), np.array([0, 2])]
    levels = levels_of(grid, starts, generator)
    below = from_below(levels, grid)
    solved = down(below, levels, grid)
    leaves = levels[-1].places
    above = [np.arange(leaves)]
    for each in starts[::-1]:
        above.insert(0, (np.searchsorted(each, above[0], side="right") - 1))
    cells = list(itertools.product(*map(range, grid.sizes)))

    def rows(level: int, table: tuple[int, ...]) -> np.ndarray:
        """One row for each place and cell: which leaves and cells of all columns it adds up."""
        keys = itertools.product(
            range(levels[level].places), *(range(grid.sizes[column]) for column in table)
        )
        return np.array(
            [
                [
                    float(
                        above[level][leaf] == key[0]
                        and tuple(cell[column] for column in table) == key[1:]
                    )
                    for leaf in range(leaves)
                    for cell in cells
                ]
                for key in keys
            ]
        )

    design = np.concatenate([rows(level, table) for level in range(3) for table in tables])
    noisy = np.concatenate(
        [levels[level].counts[table].ravel() for level in range(3) for table in tables]
    )
    weight = np.concatenate(
        [
            np.full(levels[level].counts[table].size, 1 / levels[level].variances[table])
            for level in range(3)
            for table in tables
        ]
    )
    inverse = np.linalg.pinv(design.T @ (weight[:, None] * design))
    best = inverse @ (design.T @ (weight * noisy))
    for level, table in itertools.product(range(3), tables):
        wanted = rows(level, table)
        assert np.allclose(wanted @ best, solved[level].of(table).ravel())
        variance = np.diag(wanted @ inverse @ wanted.T).reshape(levels[level].places, -1)
        claimed = np.broadcast_to(
            grid.variance(table, solved[level].precisions), levels[level].places
        )
        assert np.allclose(variance, claimed[:, None])


def test_precisions_need_no_counts() -> None:
    grid = Grid(sizes=(2, 3), tables=((), (0,), (0, 1)))
    levels = levels_of(grid, [np.array([0]), np.array([0, 1])], np.random.default_rng(1))
    for known, full in zip(precisions_below(levels, grid), from_below(levels, grid), strict=True):
        assert known.keys() == full.precisions.keys()
        assert all(np.allclose(known[part], full.precisions[part]) for part in known)


def test_totals_that_are_known_stay() -> None:
    grid = Grid(sizes=(2,), tables=((), (0,)))
    levels = levels_of(grid, [np.array([0])], np.random.default_rng(2))
    exact = Level(
        places=1,
        counts=levels[0].counts,
        variances=levels[0].variances,
        totals=np.array([77]),
        starts=levels[0].starts,
    )
    solved = down(from_below([exact, levels[1]], grid), [exact, levels[1]], grid)
    assert np.isclose(float(solved[0].of(())[0]), 77)
    assert np.isclose(float(solved[1].of(()).sum()), 77)


def test_a_table_by_itself_is_least_squares_of_it_alone() -> None:
    """Estimates from below, table by table, are those of a publication of that table only."""
    grid = Grid(sizes=(2, 3), tables=((), (0, 1), (1,)))
    levels = levels_of(grid, [np.array([0]), np.array([0, 2, 3])], np.random.default_rng(5))
    found = by_table(levels, grid)
    for table in grid.tables:
        only = Grid(sizes=grid.sizes, tables=(table,))
        alone = [
            Level(
                places=each.places,
                counts={table: each.counts[table]},
                variances={table: each.variances[table]},
                totals=None,
                starts=each.starts,
            )
            for each in levels
        ]
        for one, other in zip(found, from_below(alone, only), strict=True):
            assert np.allclose(
                one.counts[table], other.of(table).reshape(len(one.counts[table]), -1)
            )
            assert np.allclose(one.variances[table], only.variance(table, other.precisions))
