"""The promise about every class of people who look alike: k of them, diverse, and close to the
whole table.

A class is the rows that share all quasi-identifiers. Counts are matrices, one row a class and one
column a value of the sensitive attribute, so that a whole table is judged in a few array
operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from discreet.anonymity.hierarchies import Hierarchy
from discreet.anonymity.source import Flags, Floats, Integers
from discreet.errors import UsageError

DiversityKind = Literal["distinct", "entropy", "recursive"]
Ground = Literal["equal", "ordered", "hierarchical"]
_CELLS = 2**22  # of a dense block of counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """l-diversity of each class [Machanavajjhala, Gehrke, Kifer, Venkitasubramaniam 2006].

    distinct: at least l different values. entropy: exp of the values' entropy is at least l.
    recursive: the most frequent value is rarer than c times all values from the l-th most frequent
    on, together.
    """

    kind: DiversityKind
    l: float  # noqa: E741
    c: float | None = None

    def holds(self, counts: Floats) -> Flags:
        match self.kind:
            case "distinct":
                return distinct(counts) >= self.l
            case "entropy":
                return effective(counts) >= self.l * (1 - 1e-12)
            case "recursive":
                return dominance(counts, int(self.l)) < (self.c or 0.0)

    @property
    def grows(self) -> bool:
        """True if a diverse class stays diverse when any rows join it."""
        return self.kind == "distinct"

    def __str__(self) -> str:
        if self.kind == "recursive":
            return f"recursive ({self.c:g}, {self.l:g})-diversity"
        return f"{self.kind} {self.l:g}-diversity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closeness:
    """t-closeness: no class is further than t from the whole table, in earth mover's distance [Li,
    Li, Venkatasubramanian 2007]. The ground distance between values is 1 (equal), their difference
    in rank over the number of values less one (ordered), or the height of their lowest common group
    over the tree's (hierarchical).
    """

    t: float
    ground: Ground
    whole: Floats  # the table's own distribution, as counts
    tree: Hierarchy | None = None

    def holds(self, counts: Floats) -> Flags:
        return self.distance(counts) <= self.t + 1e-12

    def distance(self, counts: Floats) -> Floats:
        match self.ground:
            case "equal":
                return equal(counts, self.whole)
            case "ordered":
                return ordered(counts, self.whole)
            case "hierarchical":
                if self.tree is None:
                    raise UsageError(
                        "Hierarchical closeness needs a tree of the sensitive column in the hierarchies."
                    )
                return hierarchical(counts, self.whole, self.tree)

    def __str__(self) -> str:
        return f"{self.t:g}-closeness ({self.ground})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarantee:
    """k-anonymity, and where they are asked for l-diversity and t-closeness, of every class at
    once.
    """

    k: int
    diversity: Diversity | None = None
    closeness: Closeness | None = None

    @property
    def sizes_only(self) -> bool:
        return self.diversity is None and self.closeness is None

    @property
    def grows(self) -> bool:
        """True if a class keeps the guarantee when any rows join; then coarsening can only improve
        it.
        """
        return self.closeness is None and (self.diversity is None or self.diversity.grows)

    def holds(self, counts: Floats) -> Flags:
        good = np.asarray(counts.sum(axis=1) >= self.k)
        for demand in (self.diversity, self.closeness):
            if demand is not None and good.any():
                good[good] = demand.holds(counts[good])
        return good

    def of_classes(
        self, classes: Integers, number: int, sensitive: Integers | None, weights: Integers
    ) -> Flags:
        """Flag the classes 0 to number - 1 that have the guarantee; row group i lies in
        classes[i].
        """
        if self.sizes_only or sensitive is None:
            return np.bincount(classes, weights, number) >= self.k
        width = int(sensitive.max()) + 1 if self.closeness is None else len(self.closeness.whole)
        good = np.empty(number, dtype=np.bool_)
        for first, block in blocks(classes, number, sensitive, weights, width):
            good[first : first + len(block)] = self.holds(block)
        return good

    def kept(
        self, classes: Integers, number: int, sensitive: Integers | None, weights: Integers
    ) -> bool:
        """Check that every class has the guarantee, with closeness to the distribution of these
        very rows.
        """
        judge = self
        if self.closeness is not None and sensitive is not None:
            whole = np.bincount(sensitive, weights, len(self.closeness.whole)).astype(np.float64)
            judge = replace(self, closeness=replace(self.closeness, whole=whole))
        sizes = np.bincount(classes, weights, number)
        return bool(judge.of_classes(classes, number, sensitive, weights)[sizes > 0].all())

    def __str__(self) -> str:
        return ", ".join(
            [
                f"{self.k}-anonymity",
                *(str(each) for each in (self.diversity, self.closeness) if each),
            ]
        )


def blocks(
    classes: Integers, number: int, sensitive: Integers, weights: Integers, width: int
) -> Iterator[tuple[int, Floats]]:
    """Yield counts of (class, value) as dense matrices of a few million cells, each with its first
    class.
    """
    step = max(1, _CELLS // width)
    order = np.argsort(classes, kind="stable") if number > step else np.arange(len(classes))
    ends = (
        np.searchsorted(classes[order], np.arange(0, number + step, step))
        if number > step
        else [0, len(classes)]
    )
    for index, first in enumerate(range(0, number, step)):
        chosen = order[ends[index] : ends[index + 1]]
        size = min(step, number - first)
        cells = (classes[chosen] - first) * width + sensitive[chosen]
        counts = np.bincount(cells, weights[chosen].astype(np.float64), size * width).reshape(
            size, width
        )
        yield first, np.asarray(counts, dtype=np.float64)


# Measures of a matrix of counts, one number a class.


def distinct(counts: Floats) -> Integers:
    """Count the different values of each class."""
    return np.asarray((counts > 0).sum(axis=1), dtype=np.int64)


def effective(counts: Floats) -> Floats:
    """Return the exp of the entropy: a class is as diverse as this many equally frequent values."""
    rows = counts.sum(axis=1)
    logs = counts * np.log(np.maximum(counts, 1))  # 0 log 0 is 0
    return np.asarray(np.maximum(1.0, rows / np.exp(logs.sum(axis=1) / rows)))


def dominance(counts: Floats, rank: int) -> Floats:
    """Return the most frequent value over all from the rank-th on; below c: recursively (c,
    rank)-diverse.
    """
    falling = -np.partition(-counts, range(min(rank, counts.shape[1])), axis=1)[:, : rank - 1]
    rest = counts.sum(axis=1) - falling.sum(axis=1)
    found: Floats = np.divide(
        counts.max(axis=1), rest, out=np.full(len(counts), np.inf), where=rest > 0
    )
    return found


def _apart(counts: Floats, whole: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=1, keepdims=True) - whole / whole.sum())


def equal(counts: Floats, whole: Floats) -> Floats:
    """Return the earth mover's distance when all values are equally far apart: total variation."""
    return np.asarray(np.abs(_apart(counts, whole)).sum(axis=1) / 2)


def ordered(counts: Floats, whole: Floats) -> Floats:
    """Return the earth mover's distance when neighbors in the order are 1 / (values - 1) apart."""
    steps = np.cumsum(_apart(counts, whole), axis=1)
    return np.asarray(np.abs(steps).sum(axis=1) / max(1, len(whole) - 1))


def hierarchical(counts: Floats, whole: Floats, tree: Hierarchy) -> Floats:
    """Return the earth mover's distance when values are as far apart as their lowest common group
    is high.

    In each group, what its children have too much moves to children that have too little; the cost
    is the group's height over the tree's.
    """
    extra = _apart(counts, whole)
    cost = np.zeros(len(counts))
    for level in range(1, tree.height + 1):
        # A leaf's node on this level, for each node of the level below.
        below = tree.nodes[level - 1]
        here = tree.nodes[level]
        parents = np.zeros(extra.shape[1], dtype=np.int64)
        parents[below] = here
        members = np.zeros((extra.shape[1], int(here.max()) + 1))
        members[np.arange(extra.shape[1]), parents] = 1
        much = np.maximum(extra, 0) @ members
        little = np.maximum(-extra, 0) @ members
        cost += np.minimum(much, little).sum(axis=1) * level / tree.height
        extra = extra @ members
    return cost
