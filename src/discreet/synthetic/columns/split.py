"""Equal intervals, split where many rows are, until values that many share have a cell of their
own.

A number that is zero for most people, or heaped on round values, or cut off at the top, has spikes.
In equal intervals they drown: values within one interval are drawn alike. So the equal intervals
are counted first; those that hold much are divided and their parts counted, and so on down to
single values. What holds much then gets a cell of its own, and the rest of an interval is cut where
enough rows lie between.

Privacy
    Every level is one marginal: a row is in one part of one interval, or in none where its interval
    was not divided. So one person's m rows move its counts by m in l1 and l2 (2m and sqrt(2) m
    under change_one), as in `marginals`. Which intervals the next level divides is a function of
    noisy counts that are released, as in PrivTree [Zhang, Xiao, Xie 2016]; how many levels there
    may be is a function of the domain. Each level is priced by itself, levels add up, and the cuts
    are computed of their noisy counts alone.
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

PARTS = 1024  # of an interval that one level counts, about
SURE = 0.9995  # confidence of the margin above which a count is taken to be more than noise
LEAST = 0.005  # of all rows, what a value has to hold to get a cell of its own
BLOCK = 8  # equal intervals, at most, that become one again where they hold next to nothing
FAIR = 0.02  # of all rows, what is enough for an interval between such values


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Neighboring places of a domain, from `start` to before `end`, and how many rows they hold,
    about.
    """

    start: int
    end: int
    rows: int

    @property
    def single(self) -> bool:
        return self.end - self.start == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Some intervals of a domain and the `width` of the parts that each is divided into; the last
    may be narrower.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    width: int

    @property
    def parts(self) -> int:
        """Return how many parts an interval has: as many as the longest needs."""
        longest = max(end - start for start, end in zip(self.starts, self.ends, strict=True))
        return -(-longest // self.width)

    def divided(self, rows: Integers) -> list[list[Stretch]]:
        """Return the parts of every interval, with rows in the order of `cell`."""
        found = []
        for place, (start, end) in enumerate(zip(self.starts, self.ends, strict=True)):
            bounds = pairwise([*range(start, end, self.width), end])
            held = rows[place * self.parts : (place + 1) * self.parts].tolist()
            # The last interval may have fewer.
            parts = zip(bounds, held, strict=False)
            found.append([Stretch(start=low, end=high, rows=each) for (low, high), each in parts])
        return found

    def cell(self, place: Expression) -> Expression:
        """Return the part that a place is in, counted through all intervals; NULL where it is in
        none.
        """
        number = between(place, self.starts[1:], self.ends[-1])
        start, end = (look_up(each, number) for each in (self.starts, self.ends))
        part = number * self.parts + (place - start) // self.width
        return case((place < start, None), (place < end, part))


def levels(size: int, bins: int) -> int:
    """Return how often the rows of a column are counted at most: in equal intervals, then in parts
    down to single values.
    """
    found, reached = 1, bins
    while reached < size:
        found, reached = found + 1, reached * PARTS
    return found


def split(
    axis: Unsplit,
    source: TableSource,
    *,
    accountant: AccountantName,
    amount: Fraction,
    allowance: Allowance,
    fetch: Callable[[Aggregate], Exact],
) -> Axis:
    """Give values that many share a cell of their own, for an amount."""
    equal = Axis(column=axis.column, bins=axis.bins)
    most, moved = levels(equal.values, equal.bins), source.moved
    noise = currency(accountant).noise(amount=amount / most, moved=moved)
    starts, ends = tuple(equal.starts[:-1]), tuple(equal.starts[1:])
    level = Level(
        starts=starts,
        ends=ends,
        width=max(end - start for start, end in zip(starts, ends, strict=True)),
    )
    # What lies outside of a declared range is moved to its ends: these are where many values may
    # be, for all to know.
    beyond, total, cuts = noise.margin(SURE), None, {0, 1, equal.values - 1, equal.values}
    for left in reversed(range(most)):  # how many levels may still follow
        size = len(level.starts) * level.parts
        exact = fetch(count_parts(source, axis, level))
        rows = np.asarray(
            allowance.marginal(noise, exact, moved=moved, cells=np.arange(size), size=size)
        )
        if total is None:
            total = max(1, int(rows.sum()))
            cuts |= _worth(equal.starts, rows, noise.deviation)
        least, found = max(beyond, LEAST * total), level.divided(rows)
        for parts in found:
            cuts |= _cuts(parts, least=least, fair=FAIR * total, beyond=beyond)
        heavy = [
            part for parts in found for part in parts if part.rows >= least and not part.single
        ]
        if not heavy or not left:
            break
        level = _next(heavy, left)
    bounds = tuple(sorted(cuts))
    return Axis(column=axis.column, bins=len(bounds) - 1, cuts=bounds)


def count_parts(source: TableSource, axis: Unsplit, level: Level) -> Aggregate:
    """Return rows per part of a level's intervals."""
    rows, places = source.placed([axis.name])
    return Aggregate(rows, (level.cell(places[0]),), (source.reading,), known=(0,))


def _next(heavy: Sequence[Stretch], left: int) -> Level:
    """Return the level that divides parts which hold much; `left` levels are to reach single
    values.
    """
    longest = max(part.end - part.start for part in heavy)
    parts = longest if left == 1 else round(longest ** (1 / left)) + 1
    starts, ends = tuple(part.start for part in heavy), tuple(part.end for part in heavy)
    return Level(starts=starts, ends=ends, width=-(-longest // parts))


def _worth(starts: Sequence[int], rows: Integers, deviation: float, size: int = BLOCK) -> set[int]:
    """Return where equal intervals begin after those that noise would drown are joined: neighbors,
    up to `size` of them, that together hold less than noise become one. Neighbors, up to `size` of
    them, that together hold less than noise become one.
    """
    found = set[int]()
    for first in range(0, len(rows), size):
        held = rows[first : first + size]
        found.add(starts[first])
        if size > 1 and held.sum() > deviation * len(held) ** 0.5:
            found |= _worth(starts[first:], held, deviation, size // 2)
    return found


def _cuts(parts: Sequence[Stretch], *, least: float, fair: float, beyond: float) -> set[int]:
    """Cut out single values that hold much, and cut between others where enough rows lie, beyond
    their noise.
    """
    found, held, number = set[int](), 0, 0
    for part in parts:
        if part.single and part.rows >= least:
            found |= {part.start, part.end}
            held, number = 0, 0
            continue
        held, number = held + part.rows, number + 1
        if held >= max(fair, beyond * number**0.5):
            found.add(part.end)
            held, number = 0, 0
    return found
