"""Sharing out by non-negative least squares: the best numbers there are, that add up both ways."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from discreet.census.counts import Counts, project
from discreet.census.grid import UNKNOWN, Columns, Floats, Grid
from discreet.census.solve.least_squares import Alone
from discreet.census.solve.nonnegative import nearest, share_out

GRID = Grid(sizes=(2, 3), tables=((), (0,), (1,), (0, 1)))
PEOPLE = Counts(
    place=np.zeros(4, np.int64), cell=np.array([0, 1, 3, 5]), count=np.array([40, 3, 7, 20])
)
OPEN = PEOPLE.cell
BEGINS = np.array([0])


def a_place(seed: int, children: int = 3, variances: dict[Columns, float] | None = None) -> Alone:
    """What was measured of the children of one place: noise of several deviations, so that zero is
    often met.
    """
    generator = np.random.default_rng(seed)
    variances = variances or {(): 4.0, (0,): 9.0, (1,): 16.0, (0, 1): 25.0}
    truth = np.zeros((children, 6))
    truth[:, OPEN] = (
        generator.multinomial(1, np.full(children, 1 / children), size=(4,)).T * PEOPLE.count
    )
    counts = {}
    for table, variance in variances.items():
        sums = truth.reshape(children, 2, 3).sum(
            axis=tuple(1 + axis for axis in (0, 1) if axis not in table)
        )
        flat = sums.reshape(children, -1)
        counts[table] = flat + generator.normal(0, min(variance, 100.0) ** 0.5, flat.shape)
    return Alone(
        counts=counts,
        variances={table: np.full(children, each) for table, each in variances.items()},
    )


def shared(known: Alone, totals: object = None) -> Floats:
    found = share_out(PEOPLE, known, BEGINS, None if totals is None else np.array(totals), GRID)
    return np.asarray(found.counts[0, 1])


@pytest.mark.parametrize("seed", range(6))
def test_it_adds_up_both_ways_and_is_the_best_that_does(seed: int) -> None:
    known = a_place(seed)
    numbers = shared(known, [30, 30, 10])[:, OPEN]
    assert numbers.min() >= 0
    assert numbers.sum(axis=0) == pytest.approx(PEOPLE.count, abs=0.2)
    assert numbers.sum(axis=1) == pytest.approx([30, 30, 10], abs=0.2)

    def distance(flat: Floats) -> float:
        cells = np.zeros((3, 6))
        cells[:, OPEN] = flat.reshape(3, 4)
        total = 0.0
        for table, counts in known.counts.items():
            gone = tuple(1 + axis for axis in (0, 1) if axis not in table)
            sums = cells.reshape(3, 2, 3).sum(axis=gone).reshape(3, -1)
            held = np.isin(np.arange(sums.shape[1]), np.unique(project(OPEN, GRID, table)))
            total += float(
                (((sums - counts)[:, held]) ** 2 / known.variances[table][:, None]).sum()
            )
        return total

    sums = [
        {"type": "eq", "fun": lambda x, at=at: x.reshape(3, 4)[:, at].sum() - PEOPLE.count[at]}
        for at in range(4)
    ]
    sums += [
        {"type": "eq", "fun": lambda x, at=at: x.reshape(3, 4)[at].sum() - [30, 30, 10][at]}
        for at in range(2)
    ]
    start = np.outer(np.array([30, 30, 10]) / 70, PEOPLE.count).ravel()
    best = minimize(
        distance,
        start,
        bounds=[(0, None)] * 12,
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-10},
    )
    assert best.success
    assert distance(numbers.ravel()) <= best.fun * 1.01 + 0.5


def test_totals_are_kept_where_they_are_public_and_estimated_where_not() -> None:
    known = a_place(1)
    assert shared(known, [70, 0, 0]).sum(axis=1) == pytest.approx([70, 0, 0], abs=0.2)
    estimated = shared(known).sum(axis=1)
    assert estimated.sum() == pytest.approx(70, abs=0.2)
    # seven deviations of the best table
    assert np.abs(estimated - known.counts[()][:, 0]).max() < 15


def test_cells_without_people_stay_empty_in_every_child() -> None:
    closed = np.setdiff1d(np.arange(6), OPEN)
    assert not shared(a_place(2))[:, closed].any()


def test_what_nothing_measures_is_in_proportion() -> None:
    """Only totals are known: each cell's people follow them."""
    known = a_place(3, variances={(): 1e-6, (0,): UNKNOWN, (1,): UNKNOWN, (0, 1): UNKNOWN})
    numbers = shared(known, [35, 21, 14])
    assert numbers[:, OPEN] == pytest.approx(np.outer([0.5, 0.3, 0.2], PEOPLE.count), abs=0.2)


def test_one_child_has_everything() -> None:
    assert shared(a_place(4, children=1))[0, OPEN] == pytest.approx(PEOPLE.count)


def test_the_nearest_numbers_that_are_not_below_zero() -> None:
    assert nearest(np.array([5.0, 1.0, -4.0]), 6.0) == pytest.approx([5, 1, 0])
    assert nearest(np.array([5.0, 1.0, -4.0]), 3.0) == pytest.approx([3, 0, 0])
    assert nearest(np.array([-5.0, -7.0]), 4.0) == pytest.approx([3, 1])
    assert nearest(np.array([2.0, -1.0]), 0.0) == pytest.approx([0, 0])
