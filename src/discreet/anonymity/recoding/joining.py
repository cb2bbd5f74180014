"""The last step of local recoding: rows for which no class could be opened join one that is
there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.recoding.lattice import RowGroups
from discreet.anonymity.source import Floats, Integers

_TRIED = 64  # classes, nearest first, where a class may lose its guarantee by being joined


@dataclass(slots=True, kw_only=True)
class OpenClasses:
    """The classes so far: of each row group its class (-1: none yet), of each class its levels."""

    table: RowGroups
    classes: Integers
    vectors: list[Integers]

    @staticmethod
    def empty(table: RowGroups) -> OpenClasses:
        return OpenClasses(table=table, classes=np.full(len(table), -1, dtype=np.int64), vectors=[])

    def left(self) -> Integers:
        return np.flatnonzero(self.classes < 0)

    def open(self, rows: Integers, boxes: Integers, vector: Integers) -> None:
        """Make a class of the rows in each box; boxes are numbered from 0."""
        self.classes[rows] = len(self.vectors) + boxes
        self.vectors.extend([vector] * (int(boxes.max()) + 1))


def join_leftovers(opened: OpenClasses, guarantee: Guarantee, most_suppressed: int) -> None:
    """Join rows without a class to the class where they cost least; suppress where cheaper and
    allowed.
    """
    table = opened.table
    left = opened.left()
    if not len(left):
        return
    if not opened.vectors:  # nobody has a class: everybody becomes one
        opened.open(left, np.zeros(len(left), dtype=np.int64), np.array(table.heights))
        return
    classes = _Classes.of(opened, guarantee)
    dropped = table.cost(table.heights, left) * table.counts[left]
    allowed = most_suppressed
    stuck = []
    for index in np.argsort(-table.counts[left], kind="stable"):
        row = int(left[index])
        rows = int(table.counts[left[index]])
        target, price = classes.best(row)
        if rows <= allowed and price > dropped[index]:
            allowed -= rows
        elif target is None:
            stuck.append(row)
        else:
            classes.join(row, target)
    opened.vectors = list(classes.vectors)
    if stuck:
        _swallow(opened, guarantee, np.array(stuck), allowed)


@dataclass(slots=True, kw_only=True)
class _Classes:
    """The opened classes as arrays: the values of one member, the levels, size, cost and sensitive
    counts of each.
    """

    opened: OpenClasses
    guarantee: Guarantee
    members: list[Integers]
    vectors: Integers
    sizes: Integers
    costs: Floats
    stacked: list[Floats]
    counts: Floats | None
    apart: dict[tuple[int, int], Integers] = field(default_factory=dict)

    @staticmethod
    def of(opened: OpenClasses, guarantee: Guarantee) -> _Classes:
        table = opened.table
        number = len(opened.vectors)
        has = np.flatnonzero(opened.classes >= 0)
        member = np.zeros(number, dtype=np.int64)
        member[opened.classes[has]] = has
        counts = None
        if not guarantee.grows and table.sensitive is not None:
            width = int(table.sensitive.max()) + 1
            cells = opened.classes[has] * width + table.sensitive[has]
            counts = (
                np.bincount(cells, table.counts[has], number * width)
                .reshape(number, width)
                .astype(np.float64)
            )
        made = _Classes(
            opened=opened,
            guarantee=guarantee,
            members=[codes[member] for codes in table.codes],
            vectors=np.array(opened.vectors),
            sizes=np.bincount(opened.classes[has], table.counts[has], number).astype(np.int64),
            costs=np.zeros(number),
            stacked=[np.stack(levels) for levels in table.costs],
            counts=counts,
        )
        made.costs = sum(
            (costs[made.vectors[:, i], made.members[i]] for i, costs in enumerate(made.stacked)),
            np.zeros(number),
        )
        return made

    def best(self, row: int) -> tuple[int | None, float]:
        """Return the class that a row joins at the least cost to all, and that cost; None if none
        near can take it.
        """
        total = np.zeros(len(self.sizes))
        for column, costs in enumerate(self.stacked):
            raised = np.maximum(self.vectors[:, column], self._apart(column, row))
            total += costs[raised, self.members[column]]
        price = (self.sizes + self.opened.table.counts[row]) * total - self.sizes * self.costs
        if self.counts is None or self.opened.table.sensitive is None:
            target = int(np.argmin(price))
            return target, float(price[target])
        near = np.argsort(price, kind="stable")[:_TRIED]
        joined = self.counts[near].copy()
        joined[:, self.opened.table.sensitive[row]] += self.opened.table.counts[row]
        able = near[self.guarantee.holds(joined)]
        return (int(able[0]), float(price[able[0]])) if len(able) else (None, np.inf)

    def _apart(self, column: int, row: int) -> Integers:
        """Return the lowest level of a column on which a row looks like each class's member."""
        own = int(self.opened.table.codes[column][row])
        if (column, own) not in self.apart:
            levels = self.opened.table.nodes[column][:-1]
            far = sum(
                (level[self.members[column]] != level[own] for level in levels),
                np.zeros(len(self.sizes), np.int64),
            )
            self.apart[column, own] = far
        return self.apart[column, own]

    def join(self, row: int, target: int) -> None:
        table = self.opened.table
        cost = 0.0
        for column, costs in enumerate(self.stacked):
            level = max(self.vectors[target, column], self._apart(column, row)[target])
            self.vectors[target, column] = level
            cost += float(costs[level, self.members[column][target]])
        self.opened.classes[row] = target
        self.sizes[target] += table.counts[row]
        self.costs[target] = cost
        if self.counts is not None and table.sensitive is not None:
            self.counts[target, table.sensitive[row]] += table.counts[row]


def _swallow(opened: OpenClasses, guarantee: Guarantee, stuck: Integers, allowed: int) -> None:
    """Make a class of the rows that no class can take; add whole classes until it has the
    guarantee.

    It ends at the latest with the whole table, which has it.
    """
    table = opened.table
    if int(table.counts[stuck].sum()) <= allowed:
        return
    number = len(opened.vectors)
    opened.classes[stuck] = number
    opened.vectors.append(np.array(table.heights))
    while True:
        inside = table.select(opened.classes == number)
        if inside.good(guarantee, np.zeros(len(inside), dtype=np.int64), 1)[0]:
            return
        has = np.flatnonzero((opened.classes >= 0) & (opened.classes != number))
        if not len(has):
            return
        opened.classes[opened.classes == _most_helpful(opened, number, has)] = number


def _most_helpful(opened: OpenClasses, number: int, has: Integers) -> int:
    """Return the class whose rows bring the new one closest to the whole table, per row that they
    cost.
    """
    table = opened.table
    sizes = np.bincount(opened.classes[has], table.counts[has], number)
    candidates = np.flatnonzero(sizes)
    if table.sensitive is None:
        return int(candidates[np.argmin(sizes[candidates])])
    width = int(table.sensitive.max()) + 1
    inside = opened.classes == number
    own = np.bincount(table.sensitive[inside], table.counts[inside], width)
    cells = opened.classes[has] * width + table.sensitive[has]
    each = np.bincount(cells, table.counts[has], number * width).reshape(number, width)[candidates]
    whole = np.bincount(table.sensitive, table.counts, width)
    share = whole / whole.sum()
    before = np.abs(own / own.sum() - share).sum()
    after = np.abs((each + own) / (each + own).sum(axis=1, keepdims=True) - share).sum(axis=1)
    return int(candidates[np.argmax((before - after) / sizes[candidates])])
