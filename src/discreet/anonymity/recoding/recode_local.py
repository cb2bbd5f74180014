"""Local recoding: each class of people is coarsened only as far as it must be. The default, since
it loses least.

Cheapest class first. A *box* is a group of values in every column; the rows inside it that have no
class yet may become one, at the box's cost for each. Boxes are opened in order of their cost, as
soon as the rows left in them have the guarantee, so that a row is coarsened only when every cheaper
box around it has run out of company. All boxes of one level vector are found by one group-by, and
level vectors wait in a queue by the cost at which a box of theirs may be due: rows only become
fewer, so no box becomes due earlier, and most vectors are looked at once or twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.recoding.joining import OpenClasses, join_leftovers
from discreet.anonymity.recoding.lattice import Recoding, RowGroups, every_vector
from discreet.anonymity.recoding.remaining import Remaining, choose_boxes
from discreet.anonymity.source import Floats, Integers

Progress = Callable[[str, float], None]

FULL_LATTICE = 20_000  # level vectors; beyond, those around a sample of the rows are tried
_SLACK = 0.03  # boxes that are this much dearer than the cheapest are opened with it
# 0 looks at a level vector as soon as a box of it may be due; 1 loses one percent more, in less
# time
_PATIENCE = 0.7
_MOST_VALUES = 1000  # of a column whose distances are worth keeping
_SAMPLE = 300
_ROUND_SHARE = 0.5  # of a sampled round's vectors, the cheapest that are used before sampling anew


def recode(
    table: RowGroups,
    guarantee: Guarantee,
    *,
    most_suppressed: int,
    progress: Progress | None = None,
) -> Recoding:
    """Find classes of little cost that have the guarantee, with at most so many rows suppressed.

    The whole table must have the guarantee; then there is always an answer.
    """
    opened = OpenClasses.empty(table)
    if table.lattice_size <= FULL_LATTICE:
        searched = _cheapest_first(opened, guarantee, every_vector(table.heights), np.inf, progress)
    else:
        searched = _by_samples(opened, guarantee, progress)
    join_leftovers(opened, guarantee, most_suppressed)
    if not guarantee.grows and not _is_kept(opened, guarantee):
        # The whole table has the guarantee, what is left of it after suppression may not: then
        # nothing is suppressed.
        return recode(table, guarantee, most_suppressed=0, progress=progress)
    return Recoding(
        levels=_tighten(table, opened), classes=opened.classes, optimal=False, searched=searched
    )


def _is_kept(opened: OpenClasses, guarantee: Guarantee) -> bool:
    chosen = opened.classes >= 0
    if chosen.all():
        return True
    rest = opened.table.select(chosen)
    return guarantee.kept(opened.classes[chosen], len(opened.vectors), rest.sensitive, rest.counts)


def _cheapest_first(
    opened: OpenClasses,
    guarantee: Guarantee,
    vectors: Integers,
    limit: float,
    progress: Progress | None,
) -> int:
    """Open boxes of these level vectors, by cost up to a limit; return the number of vectors looked
    at.
    """
    rest = Remaining.of(opened.table, opened.left(), vectors)
    start = max(1, rest.left)
    queue = [
        (float(first), index) for index, first in enumerate(_first_looks(opened.table, vectors))
    ]
    heapify(queue)
    searched = 0
    while queue and rest.left:
        due, index = heappop(queue)
        if due > limit:
            break
        searched += 1
        near, keys = rest.near(index, guarantee.k)
        if not len(near):
            continue
        dearest = max(due, queue[0][0] if queue else due) * (1 + _SLACK) + 1e-12
        least = float(rest.cost(index, near).min())
        if least > dearest:
            heappush(queue, (least, index))
            continue
        live, boxes, cost = _good(rest, index, guarantee, *rest.crowded(near, keys, guarantee.k))
        now = cost <= dearest
        if not now.all():
            heappush(queue, (float(cost[~now].min()), index))
        if now.any():
            chosen, classes = choose_boxes(live, boxes, now)
            opened.open(rest.rows[chosen], classes, vectors[index])
            rest.take(chosen)
            if progress is not None:
                progress("rows", 1 - rest.left / start)
    return searched


def _first_looks(table: RowGroups, vectors: Integers) -> Floats:
    """Return the cost at which to look first at each level vector: between its cheapest and average
    box.

    No box is cheaper than the cheapest node of each column, but few are that cheap: looking so
    early finds nothing.
    """
    total = np.zeros(len(vectors))
    for column, (levels, averages) in enumerate(zip(table.costs, table.averages(), strict=True)):
        cheapest = np.array([level.min() if len(level) else 0.0 for level in levels])
        total += (cheapest + _PATIENCE * (averages - cheapest))[vectors[:, column]]
    return total


def _good(
    rest: Remaining, index: int, guarantee: Guarantee, live: Integers, boxes: Integers
) -> tuple[Integers, Integers, Floats]:
    """Return the row groups in boxes that have the guarantee, the box of each, and each box's cost
    per row.
    """
    if not guarantee.sizes_only and len(live):
        good = rest.table.select(live).good(guarantee, boxes, int(boxes[-1]) + 1)
        live, boxes = choose_boxes(live, boxes, good)
    weights = rest.counts[live]
    return (
        live,
        boxes,
        np.bincount(boxes, rest.cost(index, live) * weights) / np.bincount(boxes, weights),
    )


# Lattices too large to walk: the level vectors of boxes around some of the rows that are left.


def _by_samples(opened: OpenClasses, guarantee: Guarantee, progress: Progress | None) -> int:
    table = opened.table
    averages = table.averages()
    distances = _Distances(table=table, known={})
    top = np.array(table.heights)
    company = guarantee.k
    searched = 0
    turn = 0
    while len(rows := opened.left()):
        rest = table.select(rows)
        if rest.counts.sum() < guarantee.k:
            break
        step = max(1, len(rows) // _SAMPLE)
        seeds = np.arange(turn % step, len(rows), step)
        found = np.unique(
            np.array([_around(rest, distances, int(seed), company) for seed in seeds]), axis=0
        )
        expected = sum(level[found[:, column]] for column, level in enumerate(averages))
        last = len(rows) <= 2 * _SAMPLE
        limit = np.inf if last else float(np.quantile(np.asarray(expected), _ROUND_SHARE))
        searched += _cheapest_first(
            opened, guarantee, np.vstack([found, top]) if last else found, limit, progress
        )
        turn += 1
        # too little company: look further around each row, at last at everybody
        if len(opened.left()) == len(rows):
            if company >= rest.counts.sum():
                break
            company *= 2
    return searched


@dataclass(frozen=True, slots=True, kw_only=True)
class _Distances:
    """The distance of every value of a column from one of them: the lowest level on which they look
    alike, and its cost.
    """

    table: RowGroups
    known: dict[tuple[int, int], tuple[Integers, Floats]]

    def of(self, column: int, own: int) -> tuple[Integers, Floats]:
        found = self.known.get((column, own))
        if found is None:
            nodes = self.table.nodes[column]
            costs = self.table.costs[column]
            apart = np.zeros(len(nodes[0]), dtype=np.int64)
            for level in nodes[:-1]:
                apart += level != level[own]
            found = apart, np.array([level[own] for level in costs])[apart]
            if len(apart) <= _MOST_VALUES:
                self.known[column, own] = found
        return found


def _around(rest: RowGroups, distances: _Distances, seed: int, company: int) -> tuple[int, ...]:
    """Return the levels of a small box around one row group with at least so many rows, found
    greedily.
    """
    far = [distances.of(column, int(codes[seed])) for column, codes in enumerate(rest.codes)]
    total = np.zeros(len(rest))
    for codes, (_, prices) in zip(rest.codes, far, strict=True):
        total += prices[codes]
    size = min(4 * company, len(rest))
    near = np.argpartition(total, size - 1)[:size]
    levels = np.stack(
        [apart[codes[near]] for (apart, _), codes in zip(far, rest.codes, strict=True)]
    )
    # what the seed costs on each level
    by_level = np.zeros((len(rest.codes), max(rest.heights) + 1))
    for column, (codes, costs) in enumerate(zip(rest.codes, rest.costs, strict=True)):
        by_level[column, : len(costs)] = [level[codes[seed]] for level in costs]
    columns = np.arange(len(rest.codes))[:, None]
    weights = rest.counts[near]
    vector = np.zeros(len(rest.codes), dtype=np.int64)
    outside = np.ones(size, dtype=np.bool_)
    inside = 0
    while True:
        joined = np.maximum(levels, vector[:, None])
        arrived = outside & (joined == vector[:, None]).all(axis=0)
        inside += int(weights[arrived].sum())
        outside &= ~arrived
        if inside >= company or not outside.any():
            return tuple(vector.tolist())
        price = by_level[columns, joined].sum(axis=0)
        nearest = int(np.argmin(np.where(outside, price, np.inf)))
        vector = joined[:, nearest]


def _tighten(table: RowGroups, opened: OpenClasses) -> tuple[Integers, ...]:
    """Return the levels of each row group: in each column the lowest on which its whole class
    agrees.
    """
    kept = np.flatnonzero(opened.classes >= 0)
    order = kept[np.argsort(opened.classes[kept], kind="stable")]
    starts = np.flatnonzero(np.diff(opened.classes[order], prepend=-1))
    numbers = opened.classes[order][starts]
    levels = []
    for column, (codes, nodes) in enumerate(zip(table.codes, table.nodes, strict=True)):
        lowest = np.zeros(len(opened.vectors), dtype=np.int64)
        for level in nodes[:-1]:
            here = level[codes[order]]
            same = (
                np.minimum.reduceat(here, starts) == np.maximum.reduceat(here, starts)
                if len(starts)
                else []
            )
            lowest[numbers] += ~np.asarray(same, dtype=np.bool_)
        found = np.full(len(table), table.heights[column], dtype=np.int64)
        found[kept] = lowest[opened.classes[kept]]
        levels.append(found)
    return tuple(levels)
