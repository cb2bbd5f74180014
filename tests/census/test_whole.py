"""Whole numbers from the top down: they add up and are never below zero, whatever the noise."""

from __future__ import annotations

import numpy as np
import pytest

from discreet.census.grid import Grid, margin, subsets
from discreet.census.solve import top_down as module
from discreet.census.solve.least_squares import Level, by_table
from discreet.census.solve.top_down import top_down
from discreet.census.solve.whole import fit, round_to


def a_tree(generator: np.random.Generator, most: int) -> tuple[list[int], list[np.ndarray]]:
    sizes, starts = [1], []
    for _ in range(3):
        children = generator.integers(1, most, size=sizes[-1])
        starts.append(np.append(0, np.cumsum(children)[:-1]))
        sizes.append(int(children.sum()))
    return sizes, starts


def measured(
    grid: Grid,
    starts: list[np.ndarray],
    truth: np.ndarray,
    noise: float,
    generator: np.random.Generator,
) -> list[Level]:
    exact = [truth]
    for each in starts[::-1]:
        exact.insert(0, np.add.reduceat(exact[0], each, axis=0))
    levels = []
    for counts, begins in zip(exact, [*starts, None], strict=True):
        noisy = {
            table: np.rint(
                margin(counts.astype(np.float64), grid.every, table)
                + generator.normal(0, noise, size=(len(counts), *grid.shape(table)))
            ).astype(np.int64)
            for table in grid.tables
        }
        variances = dict.fromkeys(grid.tables, noise**2)
        levels.append(
            Level(places=len(counts), counts=noisy, variances=variances, totals=None, starts=begins)
        )
    return levels


@pytest.mark.parametrize("most", [1_000, 2])  # cells of a place that is shared out by least squares
@pytest.mark.parametrize("case", range(30))
def test_it_always_adds_up(case: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CELLS", most)
    generator = np.random.default_rng(case)
    sizes = tuple(int(each) for each in generator.integers(1, 5, size=generator.integers(1, 4)))
    every = tuple(range(len(sizes)))
    chosen = [table for table in subsets(every) if generator.random() < 0.6]
    if {column for table in chosen for column in table} != set(every):
        chosen.append(every)
    grid = Grid(sizes=sizes, tables=tuple(dict.fromkeys(chosen)))
    places, starts = a_tree(generator, 7)
    truth = generator.poisson(generator.choice([0, 0.3, 5], size=(places[-1], *sizes)))
    noise = float(generator.choice([0.5, 5, 200, 1e5]))
    zeros = generator.random(grid.cells(every)) < 0.3
    zeros[0] = False
    levels = measured(grid, starts, truth, noise, generator)
    found = top_down(by_table(levels, grid), starts, grid, zeros=zeros if case % 2 else None)
    for level, counts in enumerate(found):
        assert (counts.count > 0).all()
        assert not (case % 2 and zeros[counts.cell].any())
        for table in grid.tables:
            here = counts.table(grid, table, places[level])
            if level:
                above = found[level - 1].table(grid, table, places[level - 1])
                assert (np.add.reduceat(here, starts[level - 1], axis=0) == above).all()


def test_without_noise_it_is_the_truth() -> None:
    generator = np.random.default_rng(0)
    grid = Grid(sizes=(2, 3), tables=((), (1,), (0, 1)))
    places, starts = a_tree(generator, 6)
    truth = generator.poisson(3.0, size=(places[-1], 2, 3))
    levels = measured(grid, starts, truth, 1e-3, generator)
    found = top_down(by_table(levels, grid), starts, grid)
    assert (found[-1].table(grid, (0, 1), places[-1]) == truth).all()


def test_nobody() -> None:
    grid = Grid(sizes=(2,), tables=((), (0,)))
    levels = measured(grid, [np.array([0])], np.zeros((3, 2)), 1.0, np.random.default_rng(0))
    lower = [
        Level(
            places=each.places,
            counts={table: counts - 50 for table, counts in each.counts.items()},
            variances=each.variances,
            totals=None,
            starts=each.starts,
        )
        for each in levels
    ]
    found = top_down(by_table(lower, grid), [np.array([0])], grid)
    assert [len(each.count) for each in found] == [0, 0]


@pytest.mark.parametrize("case", range(20))
def test_rounding_cannot_fail(case: int) -> None:
    """Any values, any bounds, any sum that the bounds allow."""
    generator = np.random.default_rng(case)
    group = np.sort(generator.integers(0, 6, size=40))
    group = np.unique(group, return_inverse=True)[1]
    most = generator.integers(0, 9, size=40)
    room = np.bincount(group, weights=most).astype(np.int64)
    wanted = np.array([int(generator.integers(0, each + 1)) for each in room])
    values = generator.choice([0.0, 0.2, 3.0, 50.0], size=40)
    for given in (values, fit(values, most.astype(np.float64), group, wanted.astype(np.float64))):
        whole = round_to(given, most, group, wanted)
        assert (whole >= 0).all()
        assert (whole <= most).all()
        assert (np.bincount(group, weights=whole, minlength=len(wanted)) == wanted).all()


def test_numbers_go_to_a_neighboring_whole_number() -> None:
    generator = np.random.default_rng(0)
    values = generator.uniform(0, 4, size=200)
    values *= np.rint(values.sum()) / values.sum()
    most, wanted = np.full(200, 9), np.array([int(np.rint(values.sum()))])
    whole = round_to(values, most, np.zeros(200, dtype=np.int64), wanted)
    assert (np.abs(whole - values) < 1 + 1e-6).all()


def test_better_than_every_level_alone() -> None:
    """What lower levels say and what places have in common makes errors smaller: by half and more
    in small cells.
    """
    generator = np.random.default_rng(3)
    grid = Grid(sizes=(2, 12), tables=((), (0,), (1,), (0, 1)))
    places, starts = a_tree(generator, 12)
    truth = generator.poisson(
        generator.gamma(0.5, 4.0, size=(places[-1], 1, 12)), size=(places[-1], 2, 12)
    )
    errors = {}
    for name, alone in (("ours", False), ("alone", True)):
        levels = measured(grid, starts, truth, 4.0, np.random.default_rng(4))
        found = top_down(by_table(levels, grid, alone=alone), starts, grid, plain=alone)
        errors[name] = np.abs(found[-1].table(grid, (0, 1), places[-1]) - truth).mean()
    noise = np.abs(levels[-1].counts[0, 1] - truth).mean()
    assert errors["ours"] < errors["alone"] < noise
    assert errors["ours"] < 0.5 * noise


def test_least_squares_where_counts_stand_out_from_their_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Large and unequal counts: the sums of all tables that a place has people in say more than
    proportions do.
    """
    generator = np.random.default_rng(6)
    grid = Grid(sizes=(4, 12), tables=((), (0,), (1,), (0, 1)))
    places, starts = a_tree(generator, 12)
    truth = generator.poisson(generator.gamma(0.2, 100.0, size=(places[-1], 4, 12)))
    levels = measured(grid, starts, truth, 6.0, generator)
    errors = []
    for most in (1_000, 2):
        monkeypatch.setattr(module, "MOST_CELLS", most)
        found = top_down(by_table(levels, grid), starts, grid)
        tables = [
            np.abs(found[-1].table(grid, t, places[-1]) - margin(truth, (0, 1), t)).mean()
            for t in grid.tables
        ]
        errors.append(tables)
    assert (np.array(errors[0]) < 0.97 * np.array(errors[1])).sum() >= 2
    assert np.mean(np.array(errors[0]) / errors[1]) < 1
