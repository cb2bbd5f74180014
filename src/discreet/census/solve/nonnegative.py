"""Non-negative least squares: how the people of a place are shared out among its children, in real
numbers.

For the k children of a place and the n cells in which it has somebody, the k x n numbers x are
found that

    minimise    the squared distances to everything that was measured, each over its variance
    where       x is not below zero, each cell's numbers add up to the place's, each child's to the
                child's total

Totals come first, as what non-negativity does to many small cells must not move them: a child's
total is the weighted mean of what its tables add up to over those n cells; the others are empty in
every child, and their noise is left out.

The children of a place are taken to be measured equally well (by their mean precision), so that one
n x n matrix serves all of them and both kinds of sums have a closed form. The problem is convex,
and alternating directions (ADMM) arrive from any start. They stop when nothing moves by more than
`_NEAR` of a person, or after `_ROUNDS`: what is published stays whole and adds up wherever that is,
because `whole` rounds it.

Directions that no table measures are left at what is expected, each cell's people in proportion to
the totals: a prior of next to no weight. Everything here is a function of noisy counts (S19).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.census.counts import Counts, project
from discreet.census.grid import Columns, Floats, Grid, Integers, Numbers
from discreet.census.solve.least_squares import Alone

MOST_CELLS = 1_000  # of one place; beyond them its matrix costs more than it is worth
_ROUNDS = 500
_NEAR = 0.02
_RELAXED = 1.6  # each step is lengthened by this factor: the usual choice
_DOUBT = 100.0  # the least variance of what is expected, over that of the best table


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measurement:
    """One table over the open cells of a place: which of its cells each lies in, and what was
    measured of the children.

    `counts` has a row for each child and a column for each of those cells; `variances` one number
    for each child.
    """

    item: Integers
    counts: Floats
    variances: Floats


def share_out(
    people: Counts, known: Alone, begins: Integers, totals: Integers | None, grid: Grid
) -> Alone:
    """Return real numbers of the children of every place: of the tables of `grid.chain`, all cells.

    `people` are those of the places, `known` what was measured of the children, which begin at
    `begins`; `totals` are the children's where they are public.
    """
    children = len(next(iter(known.variances.values())))
    found = {table: np.zeros((children, grid.cells(table))) for table in grid.chain}
    ends = np.append(begins[1:], children)
    places = np.searchsorted(people.place, np.arange(len(begins) + 1))
    for place, (first, last) in enumerate(zip(begins, ends, strict=True)):
        own = slice(places[place], places[place + 1])
        cell = people.cell[own]
        count = people.count[own].astype(np.float64)
        if not len(cell):
            continue
        kids = slice(int(first), int(last))
        solved = _solve(
            _measured(known, kids, cell, grid), count, None if totals is None else totals[kids]
        )
        for table, numbers in found.items():
            item = project(cell, grid, table)
            for child, row in enumerate(solved):
                numbers[kids.start + child] += np.bincount(
                    item, weights=row, minlength=numbers.shape[1]
                )
    return Alone(
        counts=dict[Columns, Numbers](found),
        variances={table: np.ones(children) for table in found},
    )


def _measured(known: Alone, kids: slice, cell: Integers, grid: Grid) -> list[_Measurement]:
    found = []
    for table, counts in known.counts.items():
        cells, item = np.unique(project(cell, grid, table), return_inverse=True)
        own = counts[kids][:, cells].astype(np.float64)
        found.append(_Measurement(item=item, counts=own, variances=known.variances[table][kids]))
    return found


def _solve(tables: list[_Measurement], count: Floats, exact: Integers | None) -> Floats:
    """Return the numbers of one place's children, a row each."""
    total = float(count.sum())
    wanted = _totals(tables, total) if exact is None else exact.astype(np.float64)
    children = len(wanted)
    cells = len(count)
    expected = np.outer(wanted / total, count)
    if children == 1:
        return expected
    best = min(float(table.variances.min()) for table in tables)
    prior = 1 / np.maximum(count**2, _DOUBT * best)
    matrix = np.diag(prior)
    towards = prior * expected
    for table in tables:
        weight = float(np.mean(1 / table.variances))
        matrix += weight * (table.item[:, None] == table.item)
        towards += weight * table.counts[:, table.item]
    step = float(np.median(np.diag(matrix)))
    sums = _Sums(count=count, totals=wanted)
    near = np.asarray(np.linalg.inv(matrix + step * np.eye(cells)), dtype=np.float64)
    exactly = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    kept = np.maximum(sums.hold(towards @ exactly, exactly), 0)
    pulled = np.zeros_like(kept)
    for _ in range(_ROUNDS):
        free = sums.hold((towards + step * (kept - pulled)) @ near, near)
        reached = _RELAXED * free + (1 - _RELAXED) * kept
        before = kept
        kept = np.maximum(reached + pulled, 0)
        pulled += reached - kept
        if max(np.abs(free - kept).max(), np.abs(kept - before).max()) < _NEAR:
            break
    return kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Hold what the numbers of a place's children must add up to: by cell, and by child."""

    count: Floats
    totals: Floats

    def hold(self, numbers: Floats, inverse: Floats) -> Floats:
        """Return the nearest numbers, in the metric whose inverse is given, that add up both ways.

        All children are shifted alike until cells add up. Then each moves along `inverse @ 1` by
        what its total lacks; those lacks cancel over the children, so cells still add up.
        """
        numbers = numbers - (numbers.sum(axis=0) - self.count) / len(numbers)
        along = inverse.sum(axis=1)
        lacks = self.totals - numbers.sum(axis=1)
        return np.asarray(numbers + np.outer(lacks / along.sum(), along))


def _totals(tables: list[_Measurement], total: float) -> Floats:
    """Return the children's totals: what all tables say, weighted by variance; none below zero, of
    the right sum.
    """
    said = weights = np.zeros(len(tables[0].counts))
    for table in tables:
        weight = 1 / (table.counts.shape[1] * table.variances)
        said = said + weight * table.counts.sum(axis=1)
        weights = weights + weight
    return nearest(said / weights, total)


def nearest(wished: Floats, total: float) -> Floats:
    """Return the nearest numbers that are not below zero and add up to `total`."""
    order = np.sort(wished)[::-1]
    surplus = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    shift = surplus[np.flatnonzero(order > surplus)[-1]] if total > 0 else order[0]
    return np.asarray(np.maximum(wished - shift, 0))
