"""Global recoding: one level per column for the whole table, and the rows that then still stand out
are suppressed.

The optimum over all level vectors. Two facts cut the lattice down: a vector whose loss without
suppression already reaches the best found cannot win, nor can any coarser one; and where the
guarantee can only improve as the table is coarsened, a vector that would suppress too much rules
out every finer one. Looks are taken at vectors that may go either way, so that however one ends
much is ruled out, and they roll up group-bys that earlier looks left behind.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.information_loss import Measure
from discreet.anonymity.recoding.lattice import Recoding, RowGroups, every_vector, relabel
from discreet.anonymity.source import Flags, Floats, Integers

FULL_LATTICE = 2_000_000  # level vectors; beyond, greedily from the top down
_KEPT = 2**21  # row groups of tables that were rolled up


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorLook:
    """The result of one level vector: rows suppressed, the loss with them (infinite if they are too
    many), and a lower bound on the loss of it and of all coarser vectors.
    """

    suppressed: int
    loss: float
    bound: float


def recode(
    table: RowGroups, guarantee: Guarantee, *, most_suppressed: int, measure: Measure
) -> Recoding:
    """Find the level vector of least loss that has the guarantee and suppresses at most so many
    rows.
    """
    view = _View.of(table, guarantee, measure, most_suppressed)
    optimal = table.lattice_size <= FULL_LATTICE
    best = _search(view) if optimal else _descend(view)
    classes, number = table.classes(best)
    good = view.good(table, classes, number)
    return Recoding(
        levels=tuple(np.full(len(table), level, dtype=np.int64) for level in best),
        classes=np.where(good[classes], classes, -1),
        optimal=optimal,
        searched=view.looks,
    )


@dataclass(slots=True, kw_only=True)
class _View:
    """A table with its finer group-bys at hand, to look at level vectors."""

    table: RowGroups
    guarantee: Guarantee
    measure: Measure
    most_suppressed: int
    rolled: dict[bytes, RowGroups]  # by their level vectors
    averages: list[Floats]  # [column][level]: what a column costs if nothing is suppressed
    looks: int = 0

    @staticmethod
    def of(table: RowGroups, guarantee: Guarantee, measure: Measure, most_suppressed: int) -> _View:
        return _View(
            table=table,
            guarantee=guarantee,
            measure=measure,
            most_suppressed=most_suppressed,
            rolled={},
            averages=table.averages(),
        )

    def look(self, vector: Integers) -> VectorLook:
        self.looks += 1
        finer = self._roll_up(vector)
        classes, number = finer.classes(vector)
        good = self.good(finer, classes, number)
        rows = float(self.table.counts.sum())
        sizes = np.bincount(classes, finer.counts, number)
        suppressed = int(sizes[~good].sum())
        if self.measure == "discernibility":
            bound = float((sizes**2).sum()) / rows**2
            loss = (float((sizes[good] ** 2).sum()) + suppressed * rows) / rows**2
        else:
            bound = float(
                sum(levels[level] for levels, level in zip(self.averages, vector, strict=True))
            )
            loss = bound
            if 0 < suppressed <= self.most_suppressed:
                bad = np.flatnonzero(~good[classes])
                extra = finer.cost(self.table.heights, bad) - finer.cost(vector, bad)
                loss += float((extra * finer.counts[bad]).sum()) / rows
        enough = suppressed <= self.most_suppressed
        return VectorLook(suppressed=suppressed, loss=loss if enough else np.inf, bound=bound)

    def good(self, table: RowGroups, classes: Integers, number: int) -> Flags:
        """Flag classes that have the guarantee; closeness is to what is published: the rows that
        are kept.
        """
        good = table.good(self.guarantee, classes, number)
        closeness = self.guarantee.closeness
        if closeness is None or good.all() or table.sensitive is None or not good.any():
            return good
        kept = good[classes]
        whole = np.bincount(table.sensitive[kept], table.counts[kept], len(closeness.whole)).astype(
            np.float64
        )
        again = replace(self.guarantee, closeness=replace(closeness, whole=whole))
        still = table.good(again, classes, number)
        return good if still[good].all() else np.zeros(number, dtype=np.bool_)

    def _roll_up(self, vector: Integers) -> RowGroups:
        """Group the table anew, with its two widest columns as coarse as this; keep it for other
        vectors.
        """
        values = [len(nodes[0]) for nodes in self.table.nodes]
        base = np.zeros_like(vector)
        for column in np.argsort(values)[-2:]:
            base[column] = vector[column]
        name = base.tobytes()
        found = self.rolled.get(name)
        if found is None:
            found = _merge(self.table, base) if base.any() else self.table
            if sum(map(len, self.rolled.values())) + len(found) <= max(_KEPT, 2 * len(self.table)):
                self.rolled[name] = found
        return found


def _merge(finer: RowGroups, vector: Integers) -> RowGroups:
    """Merge row groups that look alike at these levels."""
    classes, number = finer.classes(vector)
    if finer.sensitive is not None:
        width = int(finer.sensitive.max()) + 1
        classes, number = relabel(classes * width + finer.sensitive, number * width)
    # Any member stands for its class: what is coarser than the class does not tell them apart.
    member = np.empty(number, dtype=np.int64)
    member[classes] = np.arange(len(finer))
    return replace(
        finer.select(member), counts=np.bincount(classes, finer.counts, number).astype(np.int64)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Bounds on level vectors that need no group-by: the loss of each if nothing is suppressed, and
    the least that each suppressed row adds.
    """

    unsuppressed: Floats
    for_a_row: Floats

    @staticmethod
    def of(view: _View, vectors: Integers) -> _Bounds:
        least = np.zeros(len(vectors))
        dearest = np.zeros(len(vectors))
        dropped = 0.0
        if view.measure != "discernibility":
            rows = float(view.table.counts.sum())
            for column, (averages, costs) in enumerate(
                zip(view.averages, view.table.costs, strict=True)
            ):
                least += averages[vectors[:, column]]
                dearest += np.array([level.max() for level in costs])[vectors[:, column]] / rows
                dropped += float(costs[-1].min()) / rows
        return _Bounds(unsuppressed=least, for_a_row=np.maximum(0.0, dropped - dearest))

    def select(self, which: Flags | Integers) -> _Bounds:
        return _Bounds(unsuppressed=self.unsuppressed[which], for_a_row=self.for_a_row[which])


def _search(view: _View) -> Integers:
    vectors = every_vector(view.table.heights)
    known = _Bounds.of(view, vectors)
    order = np.lexsort((vectors.sum(axis=1), known.unsuppressed))
    vectors = vectors[order]
    known = known.select(order)
    bounds = known.unsuppressed.copy()
    best: Integers = np.array(view.table.heights)
    least = np.inf
    # Suppression makes the guarantee of the whole a matter of the parts: it is monotone where
    # classes may grow.
    monotone = view.guarantee.grows or view.most_suppressed == 0
    # of the vectors by their bound: coarser after one that suppresses too much, finer after one
    # that will do
    where = 0.5
    while len(vectors):
        index = int(where * (len(vectors) - 1)) if monotone else 0
        vector = vectors[index]
        looked = view.look(vector)
        gone = np.arange(len(vectors)) == index
        if monotone:
            finer = (vectors <= vector).all(axis=1)
            if looked.loss == np.inf:
                gone = finer
            else:  # what is suppressed here is suppressed in every finer vector too
                more = known.unsuppressed[finer] + looked.suppressed * known.for_a_row[finer]
                bounds[finer] = np.maximum(bounds[finer], more)
        where = (where + 1) / 2 if looked.loss == np.inf else 0.8 * where
        if looked.loss < least - 1e-15:
            best, least = vector, looked.loss
        coarser = (vectors >= vector).all(axis=1)
        bounds[coarser] = np.maximum(bounds[coarser], looked.bound)
        left = ~gone & (bounds < least - 1e-15)
        vectors = vectors[left]
        bounds = bounds[left]
        known = known.select(left)
    return best


def _descend(view: _View) -> Integers:
    """Go from everything `*` down, in the column that lowers the loss most; not always the
    optimum.
    """
    best = np.array(view.table.heights)
    least = view.look(best).loss
    while True:
        finer = []
        for column in np.flatnonzero(best):
            vector = best.copy()
            vector[column] -= 1
            looked = view.look(vector)
            if looked.loss < np.inf:
                finer.append((looked.loss, int(column)))
        if not finer or min(finer)[0] > least:
            return best
        least, chosen = min(finer)
        best[chosen] -= 1
