"""From the top down: every place of a level is split among its children, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.census.counts import Counts
from discreet.census.grid import Flags, Grid, Integers
from discreet.census.solve.least_squares import AT_ONCE, Alone, runs
from discreet.census.solve.nonnegative import MOST_CELLS, share_out
from discreet.census.solve.whole import Splitter, at_the_top
from discreet.census.workers import Workers


def top_down(
    known: Sequence[Alone],
    starts: Sequence[Integers],
    grid: Grid,
    *,
    totals: Sequence[Integers | None] = (),
    zeros: Flags | None = None,
    plain: bool = False,
    workers: Workers | None = None,
) -> list[Counts]:
    """Return whole numbers for every level; `starts` are where each place's children begin in the
    next.
    """
    exact = list(totals) or [None] * len(known)
    total = None if exact[0] is None else int(exact[0][0])
    levels = [at_the_top(known[0], grid, total, zeros)]
    for begins, here, fixed in zip(starts, known[1:], exact[1:], strict=True):
        split = Split(grid=grid, plain=plain, workers=workers or Workers())
        levels.append(split.next_level(levels[-1], here, begins, fixed))
    return levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
    """Some places of a level with the measurements of their children, which are `low` to `high` of
    the next level.
    """

    people: Counts
    known: Alone
    totals: Integers | None
    low: Integers
    high: Integers
    first: int  # of the children, among all of their level
    grid: Grid
    plain: bool
    # by least squares; otherwise by what is drawn to estimates, or by these as they are
    solves: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """The rule by which places are split among their children: which workers do it, and whether
    estimates are taken as they are (`plain`).
    """

    grid: Grid
    plain: bool
    workers: Workers

    def next_level(
        self, above: Counts, known: Alone, begins: Integers, totals: Integers | None
    ) -> Counts:
        """Split every place among its children; workers share the places, in pieces that fit into
        memory.
        """
        return Counts.joined(
            list(self.workers.map(_split, self._pieces(above, known, begins, totals)))
        )

    def _pieces(
        self, above: Counts, known: Alone, begins: Integers, totals: Integers | None
    ) -> Iterator[_Piece]:
        children = len(next(iter(known.variances.values())))
        ends = np.append(begins[1:], children)
        solves = not self.plain and self._solvable(above, known, ends - begins)
        for places, span in runs(begins, children, max(1, AT_ONCE // self.grid.together)):
            yield _Piece(
                people=above.between(places.start, places.stop),
                known=known.within(span),
                totals=None if totals is None else totals[span],
                low=begins[places] - span.start,
                high=ends[places] - span.start,
                first=span.start,
                grid=self.grid,
                plain=self.plain,
                solves=solves,
            )

    def _solvable(self, above: Counts, known: Alone, children: Integers) -> bool:
        """Say whether least squares share out a level: no place is too wide, and counts are not
        lost in their noise.

        Where a cell of a child has fewer people than its noise deviates, what places have in common
        says more.
        """
        if self.grid.every not in known.variances or not len(above.place):
            return False
        deviation = float(np.median(known.variances[self.grid.every])) ** 0.5
        mean = above.count.sum() / children[above.place].sum()
        return bool(mean >= deviation and np.bincount(above.place).max() <= MOST_CELLS)


def _split(piece: _Piece) -> Counts:
    known, grid = piece.known, piece.grid
    if piece.solves:
        known = share_out(piece.people, known, piece.low, piece.totals, grid)
        grid = Grid(sizes=grid.sizes, tables=grid.chain)
    splitter = Splitter.of(known, grid, piece.totals, plain=piece.plain or piece.solves)
    return _halve(piece.people, splitter, piece.low, piece.high, piece.first)


def _halve(
    people: Counts, splitter: Splitter, low: Integers, high: Integers, offset: int
) -> Counts:
    """Split places in halves until each is one child; `low` and `high` are the children of each
    place.
    """
    done = []
    while True:
        alone = high - low <= 1
        arrived = people.kept(alone[people.place])
        done.append(
            Counts(place=low[arrived.place] + offset, cell=arrived.cell, count=arrived.count)
        )
        people = people.kept(~alone[people.place])
        number = np.cumsum(~alone) - 1
        people = Counts(place=number[people.place], cell=people.cell, count=people.count)
        low = low[~alone]
        high = high[~alone]
        if not len(low):
            return Counts.joined(done)
        middle = (low + high) // 2
        left = splitter.split(people, low, middle, high)
        halves = [
            Counts(place=2 * people.place, cell=people.cell, count=left),
            Counts(place=2 * people.place + 1, cell=people.cell, count=people.count - left),
        ]
        people = Counts.joined([half.kept(half.count > 0) for half in halves])
        low = np.stack([low, middle], 1).ravel()
        high = np.stack([middle, high], 1).ravel()
