"""Weighted least squares up and down the tree: the best unbiased estimates from everything that was
measured.

Every part of the tables (see `grid`) is a tree of its own. Up: a place's own measurement and the
sum over the places in it are two independent estimates; their weighted mean is the best one from
below (Hay et al. 2010, for any variances and any numbers of children). Down: what a place has more
than its children together is shared out among them by variance. Both are closed forms: the
estimates solve the least squares problem over all levels and tables exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.census.grid import (
    UNKNOWN,
    Columns,
    Floats,
    Grid,
    Integers,
    Numbers,
    center,
    margin,
    spread,
)

CERTAIN = 1e18  # the precision of totals that are known
AT_ONCE = 1 << 22  # cells of children that are looked at together


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """The measurements of one level: noisy counts by table (places first), and the variance of each
    table's noise.

    `totals` are exact totals of its places, where they are public. `starts` are the places of the
    next level at which the children of each place begin; None at the finest level.
    """

    places: int
    counts: Mapping[Columns, Integers]
    variances: Mapping[Columns, float]
    totals: Integers | None
    starts: Integers | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelEstimate:
    """Estimates of one level: counts of the largest tables, and the precision of every part at
    every place.
    """

    counts: dict[Columns, Floats]
    precisions: dict[Columns, Floats]

    def of(self, table: Columns) -> Floats:
        """Return counts of any table within one of the largest."""
        home = next(each for each in self.counts if set(table) <= set(each))
        return margin(self.counts[home], home, table)

    def has(self, table: Columns) -> bool:
        return any(set(table) <= set(each) for each in self.counts)


def from_below(levels: Sequence[Level], grid: Grid, *, alone: bool = False) -> list[LevelEstimate]:
    """Return for every level the best estimate from its own measurements and those of the levels
    below.

    `alone` takes every level by itself.
    """
    found: list[LevelEstimate] = []
    for level in reversed(levels):
        below = found[-1] if found and not alone else None
        found.append(_join(level, below, grid))
    return found[::-1]


def _join(level: Level, below: LevelEstimate | None, grid: Grid) -> LevelEstimate:
    counts = {table: np.zeros((level.places, *grid.shape(table))) for table in grid.largest}
    precisions: dict[Columns, Floats] = {}
    for part in grid.parts:
        value, precision = own_part(level, part, grid)
        if below is not None and level.starts is not None:
            kids = center(below.of(part))
            lower = np.add.reduceat(kids, level.starts, axis=0)
            weight = _of_sum(below.precisions[part], level.starts)
            value, precision = _mean(value, precision, lower, weight)
        if level.totals is not None and part == ():
            value = level.totals.astype(np.float64)
            precision = np.full(level.places, CERTAIN)
        precisions[part] = precision
        for table, total in counts.items():
            if set(part) <= set(table):
                total += spread(value, part, table, grid.sizes)
    return LevelEstimate(counts=counts, precisions=precisions)


def own_part(level: Level, part: Columns, grid: Grid) -> tuple[Floats, Floats]:
    """Return what a level's own tables say about a part, and how precisely; zeros where none of
    them has it.
    """
    weights = _weights(level, part, grid)
    total = np.zeros((level.places, *grid.shape(part)))
    together = sum(weights.values())
    for table, weight in weights.items():
        total += weight / together * margin(level.counts[table].astype(np.float64), table, part)
    return center(total), np.full(level.places, together, dtype=np.float64)


def _weights(level: Level, part: Columns, grid: Grid) -> dict[Columns, float]:
    """Return the weight of each table of a level that has a part: one over the variance of its
    sums.
    """
    having = [table for table in level.variances if set(part) <= set(table)]
    return {
        table: grid.cells(part) / grid.cells(table) / level.variances[table] for table in having
    }


def precisions_below(levels: Sequence[Level], grid: Grid) -> list[dict[Columns, Floats]]:
    """Return the precisions of `from_below`, without any counts."""
    found: list[dict[Columns, Floats]] = []
    for level in reversed(levels):
        here = {
            part: np.full(level.places, sum(_weights(level, part, grid).values()))
            for part in grid.parts
        }
        if found and level.starts is not None:
            here = {
                part: own + _of_sum(found[-1][part], level.starts) for part, own in here.items()
            }
        if level.totals is not None:
            here[()] = np.full(level.places, CERTAIN)
        found.append(here)
    return found[::-1]


def _of_sum(precisions: Floats, starts: Integers) -> Floats:
    """Return the precision of a sum over children; zero where one of them is unknown."""
    total = np.add.reduceat(_variances(precisions), starts)
    return np.asarray(np.where(np.isfinite(total), 1 / total, 0.0))


def _variances(precisions: Floats) -> Floats:
    return np.asarray(
        np.divide(1.0, precisions, out=np.full(len(precisions), np.inf), where=precisions > 0)
    )


def _mean(one: Numbers, weight: Floats, other: Floats, beside: Floats) -> tuple[Floats, Floats]:
    both = weight + beside
    share = np.divide(weight, both, out=np.zeros_like(both), where=both > 0)
    share = share.reshape(-1, *[1] * (one.ndim - 1))
    return np.asarray(share * one + (1 - share) * other), both


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alone:
    """Estimates of one level, table by table: counts (places by cells) and the variance of a cell
    at every place.

    Tables by themselves, as their noise is independent: whoever knows which cells are empty
    combines them better than least squares over all cells can. Counts of the finest level are what
    was measured, in as few bits as that is held: most of all cells are there.
    """

    counts: dict[Columns, Numbers]
    variances: dict[Columns, Floats]

    def within(self, places: slice) -> Alone:
        """Return some places of the level."""
        counts = {table: each[places] for table, each in self.counts.items()}
        return Alone(
            counts=counts, variances={table: each[places] for table, each in self.variances.items()}
        )


def runs(starts: Integers, children: int, most: int) -> Iterator[tuple[slice, slice]]:
    """Yield places and their children in runs: at most so many children, or one place."""
    ends = np.append(starts[1:], children)
    first = 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(ends, starts[first] + most, side="right")))
        yield slice(first, last), slice(int(starts[first]), int(ends[last - 1]))
        first = last


def _sums(counts: Numbers, starts: Integers) -> Floats:
    """Sum over the children of every place, in runs that fit into memory as floats."""
    found = np.empty((len(starts), counts.shape[1]))
    for places, children in runs(starts, len(counts), max(1, AT_ONCE // counts.shape[1])):
        begins = starts[places] - children.start
        found[places] = np.add.reduceat(counts[children].astype(np.float64), begins, axis=0)
    return found


def by_table(levels: Sequence[Level], grid: Grid, *, alone: bool = False) -> list[Alone]:
    """Return the best estimate of every level and table from its measurements at this level and
    below.
    """
    found: list[Alone] = []
    for level in reversed(levels):
        counts, variances = {}, {}
        for table in grid.tables:
            value: Numbers = np.broadcast_to(
                np.zeros((), np.int16), (level.places, grid.cells(table))
            )
            precision = np.zeros(level.places)
            if table in level.counts:
                value = level.counts[table].reshape(level.places, -1)
                precision = np.full(level.places, 1 / level.variances[table])
            if found and level.starts is not None and not alone:
                kids = _sums(found[-1].counts[table], level.starts)
                beside = np.add.reduceat(found[-1].variances[table], level.starts)
                value, precision = _mean(
                    value, precision, kids, np.where(beside < UNKNOWN, 1 / beside, 0.0)
                )
            counts[table] = value
            variances[table] = np.divide(
                1.0, precision, out=np.full(level.places, UNKNOWN), where=precision > 0
            )
        found.append(Alone(counts=counts, variances=variances))
    return found[::-1]


def down(
    estimates: Sequence[LevelEstimate], levels: Sequence[Level], grid: Grid
) -> list[LevelEstimate]:
    """Return the least squares solution over all levels, from the estimates from below."""
    found = [estimates[0]]
    for upper, level, lower in zip(levels, levels[1:], estimates[1:], strict=False):
        assert upper.starts is not None
        above = found[-1]
        counts = {table: values.copy() for table, values in lower.counts.items()}
        for part in grid.parts:
            kids = center(lower.of(part))
            gap = center(above.of(part)) - np.add.reduceat(kids, upper.starts, axis=0)
            share = _shares(lower.precisions[part], upper.starts, level.places)
            share = share.reshape(-1, *[1] * (gap.ndim - 1))
            moved = share * np.repeat(gap, _children(upper.starts, level.places), axis=0)
            for table, total in counts.items():
                if set(part) <= set(table):
                    total += spread(moved, part, table, grid.sizes)
        precisions = final_precisions(above.precisions, lower.precisions, upper.starts)
        found.append(LevelEstimate(counts=counts, precisions=precisions))
    return found


def final_precisions(
    above: Mapping[Columns, Floats], below: Mapping[Columns, Floats], starts: Integers
) -> dict[Columns, Floats]:
    """Return the precisions of the children after what is known of their parent has come down to
    them.

    A child of variance v among children of variance V together, under a parent known to be of
    variance w before its children were looked at and of w' after: its variance is v - v^2 / V + (v
    / V)^2 w'.
    """
    found = {}
    for part, precision in below.items():
        children = _children(starts, len(precision))
        variance = _variances(precision)
        together = np.repeat(np.add.reduceat(variance, starts), children)
        parent = np.repeat(_variances(above[part]), children)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(together), variance / together, 0.0)
            after = np.where(
                np.isfinite(together), variance * (1 - share) + share**2 * parent, np.inf
            )
        found[part] = np.divide(1.0, after, out=np.full(len(after), CERTAIN), where=after > 0)
    return found


def _children(starts: Integers, places: int) -> Integers:
    return np.diff(np.append(starts, places))


def _shares(precisions: Floats, starts: Integers, places: int) -> Floats:
    """Return the part of its parent's surplus that each child takes: by variance, or evenly if
    unknown.
    """
    variances = np.divide(1.0, precisions, out=np.full(len(precisions), 1e30), where=precisions > 0)
    children = _children(starts, places)
    return np.asarray(variances / np.repeat(np.add.reduceat(variances, starts), children))
