"""From the top down: whole numbers, none below zero, in which every level and every table adds up.

The people of a place are shared out among its children in real numbers by least squares
(`nonnegative`), where that is worth it (`Split`). Then the children are split into two halves,
these again, until each is alone: of every cell of all columns, so many people go to the left half
and the others to the right. That is done table by table along `Grid.chain`, from the total to all
columns:

    expect    what least squares say of the left half. Elsewhere in proportion to the coarser table,
              then drawn towards what was measured of each table, the more so the more precise that
              is beside how much such counts differ between places (`_draw_to`). What finer tables
              say counts too: the sums of their cells that have people. Cells that the place has
              nobody in are empty in every child, so their noise is left out
    fit       shifted so that the cells of a coarser cell add up to its number
    round     down, and those with the largest remainders get what is missing

Why it cannot fail: the left half's number of a coarser cell lies between 0 and the place's number u
of it, which is the sum of the place's finer cells u_i. `fit` gives real numbers between 0 and u_i
with that sum, `round` whole ones. What the left half has not, the right half has. So there is
always a solution, and it is never looked for.

Only cells that the place has somebody in are held: memory grows with people, not with the product
of all columns. Everything is a function of estimates, which were released: exact numbers are not in
this module's reach (S19).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.census.counts import Counts, project
from discreet.census.grid import UNKNOWN, Columns, Flags, Floats, Grid, Integers
from discreet.census.solve.least_squares import Alone

_STEPS = 40  # halvings of the interval of a shift
_FURTHEST = 60.0  # a shift of log odds beyond which nothing moves any more
_SWEEPS = 4  # in which smaller tables are brought back to where they were drawn
_LEAST = 1e-9
# an estimate counts for itself where it is three deviations or more from what is expected
_SURPRISE = 9.0


# of two halves of children: the first one, the middle, behind the last
Ends = tuple[Integers, Integers, Integers]


# --- two steps that everything is made of ---------------------------------------------------------


def fit(expected: Floats, most: Floats, group: Integers, wanted: Floats) -> Floats:
    """Return numbers between 0 and `most` that add up to `wanted` in each group, near the expected
    ones.

    All log odds of a group are shifted by the same amount, which is found by halving an interval.
    `wanted` must lie between 0 and the group's sum of `most`. What halving leaves is for `round_to`
    to mend.
    """
    share = np.clip(expected / np.maximum(most, _LEAST), 1e-6, 1 - 1e-6)
    odds = np.log(share / (1 - share))
    low = np.full(len(wanted), -_FURTHEST)
    high = np.full(len(wanted), _FURTHEST)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        total = np.bincount(
            group, weights=most / (1 + np.exp(-odds - middle[group])), minlength=len(wanted)
        )
        low = np.where(total < wanted, middle, low)
        high = np.where(total < wanted, high, middle)
    return np.asarray(most / (1 + np.exp(-odds - high[group])))


def round_to(values: Floats, most: Integers, group: Integers, wanted: Integers) -> Integers:
    """Return whole numbers from 0 to `most` that add up to `wanted` in each group, near the values.

    All are rounded down, and those with the largest remainders get the rest. Where the values do
    not quite add up to `wanted`, what is missing goes where there is room: there is, as `wanted` is
    at most the sum of `most`.
    """
    sums = np.bincount(group, weights=values, minlength=len(wanted))
    values = values * np.divide(wanted, sums, out=np.zeros(len(wanted)), where=sums > 0)[group]
    low = np.minimum(np.floor(values + 1e-9).astype(np.int64), most)
    rest = wanted - np.bincount(group, weights=low, minlength=len(wanted)).astype(np.int64)
    order = np.lexsort((-np.where(low < most, values - low, -1.0), group))
    rank = np.empty(len(order), dtype=np.int64)
    first = np.searchsorted(group[order], np.arange(len(wanted)))
    rank[order] = np.arange(len(order)) - first[group[order]]
    return _mend(np.minimum(low + (rank < rest[group]), most), most, group, wanted)


def _mend(whole: Integers, most: Integers, group: Integers, wanted: Integers) -> Integers:
    """Put what a group lacks where there is room, and take what it has too much, from the front
    on.
    """
    lacking = wanted - np.bincount(group, weights=whole, minlength=len(wanted)).astype(np.int64)
    if lacking.any():
        room = np.where(lacking[group] > 0, most - whole, whole)
        passed = np.cumsum(room) - room
        passed = passed - passed[np.searchsorted(group, group)]
        moved = np.clip(np.abs(lacking)[group] - passed, 0, room)
        whole = whole + np.sign(lacking)[group] * moved
    return whole


def _sums_by(group: Integers, values: Floats | Integers) -> Floats:
    return np.asarray(np.bincount(group, weights=values), dtype=np.float64)


# --- the split ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RunningSums:
    """Running sums over the children of what is known of one table, to add up any run of them."""

    counts: Floats
    variances: Floats

    @classmethod
    def of(cls, known: Alone, table: Columns) -> _RunningSums:
        counts = known.counts[table].astype(np.float64)
        running = np.zeros((len(counts) + 1, counts.shape[1]))
        np.cumsum(counts, axis=0, out=running[1:])
        return cls(counts=running, variances=np.append(0.0, np.cumsum(known.variances[table])))

    def left(self, ends: Ends, cell: Integers, total: Floats) -> tuple[Floats, Floats]:
        """Return the left half's counts given those of both together, and their variance."""
        low, middle, high = ends
        left = self.counts[middle, cell] - self.counts[low, cell]
        right = self.counts[high, cell] - self.counts[middle, cell]
        one = self.variances[middle] - self.variances[low]
        other = self.variances[high] - self.variances[middle]
        both = np.maximum(one + other, 1e-30)
        return left + (total - left - right) * one / both, one * other / both


def _draw_to(expected: Floats, most: Floats | None, estimate: Floats, variance: Floats) -> Floats:
    """Draw what is expected towards the estimate: a linear Bayes estimate, from 0 to `most`.

    Were people spread over the halves at random, a count would vary by the binomial's b (at the
    top, where there is no `most`, by what is expected). Places differ by more: by b + f p, with p
    growing as the square of the count. The factor f is estimated for counts of about the same size,
    from how far the estimates lie from what is expected beyond their own noise. An estimate that is
    far off by its own noise is believed whatever others do: a prison is in one block.
    """
    size = expected if most is None else most
    share = 0.0 if most is None else expected / np.maximum(most, _LEAST)
    chance = np.maximum(expected * (1 - share), 1e-12)
    pairs = chance * (expected if most is None else np.maximum(most - 1, 0))
    apart = (estimate - expected) ** 2
    class_ = np.floor(np.log2(np.maximum(size, 1))).astype(np.int64)
    beyond = np.bincount(class_, weights=apart - variance - chance)
    factor = np.clip(beyond / np.maximum(np.bincount(class_, weights=pairs), _LEAST), 0.0, 1.0)[
        class_
    ]
    spread = chance + factor * pairs
    surprise = 1 - _SURPRISE * variance / np.maximum(apart, 1e-12)
    gain = np.maximum(spread / (spread + variance), surprise)
    return np.asarray(
        np.clip(expected + gain * (estimate - expected), 0.0, np.inf if most is None else most)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Evidence:
    """The evidence of one table about the left halves: for each place and cell with people, a count
    and its variance.
    """

    keys: Integers  # place times cells, plus cell
    item: Integers  # of every entry, its place among the keys
    left: Floats
    variance: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Splitter:
    """Splits places of one level among their children, by what is known of the children."""

    grid: Grid
    sums: dict[Columns, _RunningSums]
    totals: Integers | None  # running sums of totals that are known
    plain: bool  # take estimates as they are

    @classmethod
    def of(cls, known: Alone, grid: Grid, totals: Integers | None, *, plain: bool) -> Splitter:
        sums = {table: _RunningSums.of(known, table) for table in grid.tables}
        return cls(
            grid=grid,
            sums=sums,
            totals=None if totals is None else np.append(0, np.cumsum(totals)),
            plain=plain,
        )

    def split(self, people: Counts, low: Integers, middle: Integers, high: Integers) -> Integers:
        """Return how many people of each entry go left; place i is the children from low[i] to
        high[i].
        """
        told = {table: self._told(people, table, (low, middle, high)) for table in self.sums}
        left = self._left_totals(people, told, low, middle)
        for before, table in zip(self.grid.chain, self.grid.chain[1:], strict=False):
            left = self._refine(people, before, table, left, told)
        return left  # of the cells of all columns, which are the entries themselves

    def _told(self, people: Counts, table: Columns, ends: Ends) -> _Evidence:
        cells = self.grid.cells(table)
        keys, item = np.unique(
            people.place * cells + project(people.cell, self.grid, table), return_inverse=True
        )
        total = _sums_by(item, people.count)
        low, middle, high = (each[keys // cells] for each in ends)
        left, variance = self.sums[table].left((low, middle, high), keys % cells, total)
        return _Evidence(keys=keys, item=item, left=left, variance=variance)

    def _estimate(
        self, told: dict[Columns, _Evidence], table: Columns, item: Integers
    ) -> tuple[Floats, Floats]:
        """Return what all tables say about one's cells: sums of cells with people, weighted by
        variance.

        `item` is, for every entry, its place among the table's cells. Cells without people are
        known to be empty in every child: their noise is left out.
        """
        total = weights = np.zeros(int(item.max(initial=-1)) + 1)
        for other, each in told.items():
            if set(table) <= set(other):
                first = np.empty(len(each.keys), dtype=np.int64)
                # any entry of a cell says in which cell of the smaller table it lies
                first[each.item] = item
                precision = 1 / np.maximum(
                    np.bincount(first, weights=each.variance, minlength=len(total)), 1e-30
                )
                total = total + precision * np.bincount(
                    first, weights=each.left, minlength=len(total)
                )
                weights = weights + precision
        known = weights > 0
        variance = np.divide(1.0, weights, out=np.full(len(total), UNKNOWN), where=known)
        return np.divide(total, weights, out=np.zeros(len(total)), where=known), variance

    def _left_totals(
        self, people: Counts, told: dict[Columns, _Evidence], low: Integers, middle: Integers
    ) -> Integers:
        """Return the left total of every place that has people."""
        present, group = np.unique(people.place, return_inverse=True)
        if self.totals is not None:
            return np.asarray(self.totals[middle[present]] - self.totals[low[present]])
        left, _ = self._estimate(told, (), group)
        return np.clip(np.rint(left), 0, _sums_by(group, people.count)).astype(np.int64)

    def _refine(
        self,
        people: Counts,
        before: Columns,
        table: Columns,
        coarse: Integers,
        told: dict[Columns, _Evidence],
    ) -> Integers:
        """Return the left half's numbers of a finer table, given those of the coarser one."""
        grid = self.grid
        keys, item = np.unique(
            people.place * grid.cells(table) + project(people.cell, grid, table),
            return_inverse=True,
        )
        entry = np.empty(len(keys), dtype=np.int64)
        entry[item] = np.arange(len(item))  # one of each cell's entries
        most = _sums_by(item, people.count).astype(np.int64)
        group = self._cells(people, before)[entry]
        of_group = _sums_by(group, most)
        expected = most * (coarse / np.maximum(of_group, 1))[group]
        heard = []
        for other in self._tell_by(before, table):
            cells = self._cells(people, other)
            heard.append(_Heard(cells[entry], most, *self._estimate(told, other, cells)))
            expected = heard[-1].listen(expected, most, plain=self.plain)
        whole = _Heard(group, most, coarse.astype(np.float64), np.zeros(len(coarse)))
        for _ in range(_SWEEPS):
            for each in (*heard[-2::-1], whole):
                expected = each.keep(expected, most)
        order = np.argsort(group, kind="stable")
        fitted = fit(
            expected[order], most[order].astype(np.float64), group[order], coarse.astype(np.float64)
        )
        left = np.empty(len(order), dtype=np.int64)
        left[order] = round_to(fitted, most[order], group[order], coarse)
        return left

    def _cells(self, people: Counts, table: Columns) -> Integers:
        """Return for every entry its cell among the cells of a table that have people, in order."""
        key = people.place * self.grid.cells(table) + project(people.cell, self.grid, table)
        return np.asarray(np.unique(key, return_inverse=True)[1])

    def _tell_by(self, before: Columns, table: Columns) -> list[Columns]:
        """Return the tables that say something new about this step, small ones first."""
        new = [
            each
            for each in {*self.sums, table}
            if set(each) <= set(table) and not set(each) <= set(before)
        ]
        return sorted(new, key=lambda each: (self.grid.cells(each), each))


class _Heard:
    """One table's evidence in a step: its cells among the items of the step, and the counts that it
    draws them to.
    """

    def __init__(self, item: Integers, most: Integers, estimate: Floats, variance: Floats) -> None:
        self.item, self.total, self.estimate, self.variance = (
            item,
            _sums_by(item, most),
            estimate,
            variance,
        )
        self.after = estimate

    def listen(self, expected: Floats, most: Integers, *, plain: bool) -> Floats:
        """Draw cells to the estimate, in proportion to what is expected in them."""
        before = _sums_by(self.item, expected)
        clipped = np.clip(self.estimate, 0, self.total)
        self.after = (
            clipped if plain else _draw_to(before, self.total, self.estimate, self.variance)
        )
        return self.keep(expected, most)

    def keep(self, expected: Floats, most: Integers) -> Floats:
        """Draw the cells to the same counts again, after larger tables have moved them."""
        before = _sums_by(self.item, expected)
        return _move(
            expected, most, before[self.item], self.after[self.item], self.total[self.item]
        )


def _move(expected: Floats, most: Integers, before: Floats, after: Floats, total: Floats) -> Floats:
    """Move shares of a cell's left half as its total moves: down in proportion, up into the room
    left.
    """
    down = expected * np.divide(after, before, out=np.zeros_like(after), where=before > 0)
    room = most - expected
    gap = total - before
    up = expected + room * np.divide(after - before, gap, out=np.zeros_like(after), where=gap > 0)
    return np.asarray(np.where(after < before, down, up))


# --- the tree -------------------------------------------------------------------------------------


def at_the_top(known: Alone, grid: Grid, total: int | None, zeros: Flags | None) -> Counts:
    """Return the first place's people: its estimates, not below zero, whole, and adding up."""
    number = (
        int(max(0, np.rint(float(_sum_tables(known, grid, ())[0][0])))) if total is None else total
    )
    coarse = np.array([number])
    allowed = np.ones(grid.cells(grid.every)) if zeros is None else (~zeros).astype(np.float64)
    for before, table in zip(grid.chain, grid.chain[1:], strict=False):
        local = Grid(sizes=grid.shape(table), tables=())
        cells = np.arange(grid.cells(table))
        group = project(cells, local, tuple(table.index(column) for column in before))
        room = np.bincount(project(np.arange(len(allowed)), grid, table), weights=allowed)
        open_ = np.minimum(room, 1)
        share = np.bincount(group, weights=open_)
        expected = open_ * (coarse / np.maximum(share, 1))[group]
        expected = _hear_at_the_top(expected, known, grid, before, table)
        order = np.argsort(group, kind="stable")
        most = np.where(open_ > 0, coarse[group], 0)[order]
        sums = np.bincount(group, weights=expected)
        even = np.where(sums[group] > 0, expected, open_)[order]
        finer = np.empty(len(cells), dtype=np.int64)
        finer[order] = round_to(even, most, group[order], coarse)
        coarse = finer
    cell = np.flatnonzero(coarse)
    return Counts(place=np.zeros(len(cell), dtype=np.int64), cell=cell, count=coarse[cell])


def _hear_at_the_top(
    expected: Floats, known: Alone, grid: Grid, before: Columns, table: Columns
) -> Floats:
    """Return what is expected of a finer table after a look at every table within it, small ones
    first.
    """
    local = Grid(sizes=grid.shape(table), tables=())
    cells = np.arange(len(expected))
    new = [
        each
        for each in {*grid.tables, table}
        if set(each) <= set(table) and not set(each) <= set(before)
    ]
    kept = []
    for other in sorted(new, key=lambda each: (grid.cells(each), each)):
        item = project(cells, local, tuple(table.index(column) for column in other))
        now = _sums_by(item, expected)
        after = _draw_to(now, None, *_sum_tables(known, grid, other))
        kept.append((item, after))
        expected = expected * np.divide(after, now, out=np.zeros_like(now), where=now > 0)[item]
    for item, after in kept[-2::-1]:
        now = _sums_by(item, expected)
        expected = expected * np.divide(after, now, out=np.zeros_like(now), where=now > 0)[item]
    return expected


def _sum_tables(known: Alone, grid: Grid, table: Columns) -> tuple[Floats, Floats]:
    """Return what all tables say about one's cells at the first place: sums weighted by
    variance.
    """
    total = np.zeros(grid.cells(table))
    weights = 0.0
    for other, counts in known.counts.items():
        variance = float(known.variances[other][0]) * grid.cells(other) / grid.cells(table)
        if set(table) <= set(other) and variance < UNKNOWN:
            local = Grid(sizes=grid.shape(other), tables=())
            item = project(
                np.arange(counts.shape[1]), local, tuple(other.index(column) for column in table)
            )
            total += _sums_by(item, counts[0]) / variance
            weights += 1 / variance
    number = len(total)
    if weights:
        return (total / weights, np.full(number, 1 / weights))
    return (total, np.full(number, UNKNOWN))
