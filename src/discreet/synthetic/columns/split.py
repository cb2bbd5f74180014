"""Split equal intervals where many rows are, so that a value which many people share gets a cell of
its own.

A number may be zero for most people, or round, or capped: then it has spikes. Equal intervals hide
them, because all values of an interval are drawn equally often. So count the equal intervals first,
divide those with many rows, count their parts, and go on down to single values. A value with many
rows gets a cell of its own; cut the rest of an interval where enough rows lie between.

Privacy
    Every level is one marginal: a row is in one part of one interval, or in none if its interval
    was not divided. So one person's m rows move its counts by m in l1 and l2 (2m and sqrt(2) m
    under change_one), as in `marginals`. The intervals that the next level divides are a function
    of released noisy counts, as in PrivTree [Zhang, Xiao, Xie 2016]; the largest number of levels
    is a function of the domain. Each level has its own price, and the prices add up. The cuts use
    the noisy counts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.algebra import Aggregate, Expression, case
from discreet.budget import AccountantName
from discreet.mechanisms.currency import currency
from discreet.synthetic.columns.axis import Axis, Unsplit, between, look_up
from discreet.synthetic.source import TableSource
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Integers = NDArray[np.int64]

PARTS = 1024  # one level counts about this many parts of an interval
SURE = 0.9995  # a count above the margin at this confidence is more than noise
LEAST = 0.005  # the share of all rows that gives a value a cell of its own
BLOCK = 8  # the most equal intervals that become one if they hold next to nothing
FAIR = 0.02  # the share of all rows that is enough for an interval between such values


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The places of a domain from `start` to before `end`, with their noisy number of rows."""

    start: int
    end: int
    rows: int

    @property
    def single(self) -> bool:
        return self.end - self.start == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Some intervals of a domain, each divided into parts of `width`; the last part may be
    narrower.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    width: int

    @property
    def parts(self) -> int:
        """Return the number of parts of every interval: the longest one needs as many."""
        longest = max(end - start for start, end in zip(self.starts, self.ends, strict=True))
        return -(-longest // self.width)

    def divided(self, rows: Integers) -> list[list[Stretch]]:
        """Return the parts of every interval, given their rows in the order of `cell`."""
        intervals = []
        for place, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            bounds = pairwise([*range(start, end, self.width), end])
            counts = rows[place * self.parts : (place + 1) * self.parts].tolist()
            # A shorter interval has fewer parts.
            parts = zip(bounds, counts, strict=False)
            intervals.append(
                [Stretch(start=low, end=high, rows=count) for (low, high), count in parts]
            )
        return intervals

    def cell(self, place: Expression) -> Expression:
        """Return the number of the part that holds a place, counted through all intervals; NULL if
        none does.
        """
        number = between(place, self.starts[1:], self.ends[-1])
        start = look_up(self.starts, number)
        end = look_up(self.ends, number)
        part = number * self.parts + (place - start) // self.width
        return case((place < start, None), (place < end, part))


def levels(size: int, bins: int) -> int:
    """Return the largest number of levels: equal intervals, then parts, down to single values."""
    number = 1
    cells = bins
    while cells < size:
        number = number + 1
        cells = cells * PARTS
    return number


def split(
    axis: Unsplit,
    source: TableSource,
    *,
    accountant: AccountantName,
    amount: Fraction,
    allowance: Allowance,
    fetch: Callable[[Aggregate], Exact],
) -> Axis:
    """Return the column with a cell for each value that many people share; spend the amount."""
    equal = Axis(column=axis.column, bins=axis.bins)
    most = levels(equal.values, equal.bins)
    moved = source.moved
    noise = currency(accountant).noise(amount=amount / most, moved=moved)
    starts = tuple(equal.starts[:-1])
    ends = tuple(equal.starts[1:])
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    level = Level(starts=starts, ends=ends, width=longest)
    beyond = noise.margin(SURE)
    total = None
    # Values outside the declared range are clamped to its ends, so the ends may have many rows: this
    # is public.
    cuts = {0, 1, equal.values - 1, equal.values}
    for left in reversed(range(most)):  # the number of levels that may still follow
        size = len(level.starts) * level.parts
        exact = fetch(count_parts(source, axis, level))
        rows = np.asarray(
            allowance.marginal(noise, exact, moved=moved, cells=np.arange(size), size=size)
        )
        if total is None:
            total = max(1, int(rows.sum()))
            cuts |= _join_small(equal.starts, rows, noise.deviation)
        least = max(beyond, LEAST * total)
        heavy = []
        for parts in level.divided(rows):
            cuts |= _cuts(parts, least=least, fair=FAIR * total, beyond=beyond)
            heavy += [part for part in parts if part.rows >= least and not part.single]
        if not heavy or not left:
            break
        level = _next(heavy, left)
    bounds = tuple(sorted(cuts))
    return Axis(column=axis.column, bins=len(bounds) - 1, cuts=bounds)


def count_parts(source: TableSource, axis: Unsplit, level: Level) -> Aggregate:
    """Return the count of rows by part of a level's intervals."""
    rows, (place,) = source.placed([axis.name])
    return Aggregate(rows, (level.cell(place),), (source.reading,), known=(0,))


def _next(heavy: Sequence[Stretch], left: int) -> Level:
    """Return the level that divides the parts with many rows; `left` levels must reach single
    values.
    """
    longest = max(part.end - part.start for part in heavy)
    parts = longest if left == 1 else round(longest ** (1 / left)) + 1
    starts = tuple(part.start for part in heavy)
    ends = tuple(part.end for part in heavy)
    return Level(starts=starts, ends=ends, width=-(-longest // parts))


def _join_small(
    starts: Sequence[int], rows: Integers, deviation: float, size: int = BLOCK
) -> set[int]:
    """Return the starts of equal intervals after joining the small ones.

    Up to `size` neighbors that together hold fewer rows than their noise become one.
    """
    cuts = set[int]()
    for first in range(0, len(rows), size):
        block = rows[first : first + size]
        cuts.add(starts[first])
        if size > 1 and block.sum() > deviation * len(block) ** 0.5:
            cuts |= _join_small(starts[first:], block, deviation, size // 2)
    return cuts


def _cuts(parts: Sequence[Stretch], *, least: float, fair: float, beyond: float) -> set[int]:
    """Return cuts around single values with many rows, and between others after enough rows, more
    than their noise.
    """
    cuts = set[int]()
    rows = 0  # since the last cut
    number = 0  # of parts since the last cut
    for part in parts:
        if part.single and part.rows >= least:
            cuts |= {part.start, part.end}
            rows = 0
            number = 0
            continue
        rows = rows + part.rows
        number = number + 1
        if rows >= max(fair, beyond * number**0.5):
            cuts.add(part.end)
            rows = 0
            number = 0
    return cuts
