"""The lattice of level vectors: one level per column says how coarse a table is.

What recoding works on are row groups (distinct combinations of values, with counts), so its time depends on how many
different people there are, not on how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.hierarchies import Hierarchy
from discreet.anonymity.loss import Costs
from discreet.anonymity.source import Flags, Floats, Groups, Integers

Vector = Sequence[int] | Integers
"""A level for each column."""

_WIDE = 2**62
_BUCKETS = 2**16
_MIX, _SHIFT = np.int64(0x1E3779B97F4A7C15), np.int64(40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coded:
    """Row groups: codes[column][group], counts[group], sensitive[group]; nodes and costs by [column][level][value]."""

    codes: tuple[Integers, ...]
    counts: Integers
    sensitive: Integers | None
    nodes: tuple[tuple[Integers, ...], ...]
    sizes: tuple[tuple[int, ...], ...]
    costs: Costs

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def heights(self) -> tuple[int, ...]:
        return tuple(len(levels) - 1 for levels in self.nodes)

    @property
    def lattice_size(self) -> int:
        return prod(height + 1 for height in self.heights)

    def select(self, which: Integers | Flags) -> Coded:
        return replace(
            self,
            codes=tuple(codes[which] for codes in self.codes),
            counts=self.counts[which],
            sensitive=None if self.sensitive is None else self.sensitive[which],
        )

    def classes(self, vector: Vector) -> tuple[Integers, int]:
        """Which row groups look alike at these levels: a class number for each, and how many classes there are."""
        found, classes = np.unique(self._keys(vector)[0], return_inverse=True)
        return classes, len(found)

    def crowded(self, vector: Vector, k: int) -> tuple[Integers, Integers, int]:
        """The row groups in classes of at least k rows, the class of each, and how many such classes there are."""
        keys, space = self._keys(vector)
        if space <= _BUCKETS:
            rows = np.flatnonzero(np.bincount(keys, self.counts, space)[keys] >= k)
        else:  # a bucket holds whole classes, so one with fewer than k rows needs no closer look
            buckets = (keys * _MIX >> _SHIFT) & (_BUCKETS - 1)
            rows = np.flatnonzero(np.bincount(buckets, self.counts, _BUCKETS)[buckets] >= k)
        found, classes = np.unique(keys[rows], return_inverse=True)
        enough = np.bincount(classes, self.counts[rows], len(found)) >= k
        if enough.all():
            return rows, classes, len(found)
        chosen = enough[classes]
        return rows[chosen], (np.cumsum(enough) - 1)[classes[chosen]], int(enough.sum())

    def _keys(self, vector: Vector) -> tuple[Integers, int]:
        keys, space = np.zeros(len(self), dtype=np.int64), 1
        for codes, nodes, sizes, level in zip(self.codes, self.nodes, self.sizes, vector, strict=True):
            if sizes[level] == 1:
                continue
            if space * sizes[level] > _WIDE:
                found, keys = np.unique(keys, return_inverse=True)
                space = len(found)
            column = nodes[level][codes]
            keys, space = (column if space == 1 else keys * sizes[level] + column), space * sizes[level]
        return keys, space

    def cost(self, vector: Vector, which: Integers | None = None) -> Floats:
        """What each row group costs at these levels."""
        total = np.zeros(len(self) if which is None else len(which))
        for codes, costs, level in zip(self.codes, self.costs, vector, strict=True):
            if level:
                total += costs[level][codes if which is None else codes[which]]
        return total

    def good(self, guarantee: Guarantee, classes: Integers, number: int) -> Flags:
        return guarantee.of_classes(classes, number, self.sensitive, self.counts)

    def averages(self) -> list[Floats]:
        """Of each column the average cost at each level."""
        weight = self.counts / max(1, self.counts.sum())
        return [
            np.array([float((level[codes] * weight).sum()) for level in levels])
            for codes, levels in zip(self.codes, self.costs, strict=True)
        ]


def coded(groups: Groups, hierarchies: Sequence[Hierarchy], costs: Costs, sensitive: str | None) -> Coded:
    """The first columns of the groups are those to recode, in the order of their hierarchies."""
    return Coded(
        codes=groups.codes[: len(hierarchies)],
        counts=groups.counts,
        sensitive=None if sensitive is None else groups.codes[groups.position(sensitive)],
        nodes=tuple(hierarchy.nodes for hierarchy in hierarchies),
        sizes=tuple(tuple(len(labels) for labels in hierarchy.labels) for hierarchy in hierarchies),
        costs=costs,
    )


def every_vector(heights: Sequence[int]) -> Integers:
    """All level vectors, one a row."""
    return np.array(list(product(*(range(height + 1) for height in heights))), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoding:
    """levels[column][group], and classes[group]: who looks alike, -1 for the suppressed.

    `optimal`: nothing in the searched space loses less. `searched`: how many level vectors were looked at.
    """

    levels: tuple[Integers, ...]
    classes: Integers
    optimal: bool
    searched: int
