"""The lattice of level vectors: one level per column says how coarse a table is.

What recoding works on are row groups (distinct combinations of values, with counts), so its time
depends on how many different people there are, not on how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.hierarchies import Hierarchy
from discreet.anonymity.information_loss import Costs
from discreet.anonymity.source import Flags, Floats, Groups, Integers

Vector = Sequence[int] | Integers
"""A level for each column."""

_WIDE = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroups:
    """Row groups: codes[column][group], counts[group], sensitive[group]; nodes and costs by
    [column][level][value].
    """

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

    def select(self, which: Integers | Flags) -> RowGroups:
        return replace(
            self,
            codes=tuple(codes[which] for codes in self.codes),
            counts=self.counts[which],
            sensitive=None if self.sensitive is None else self.sensitive[which],
        )

    def classes(self, vector: Vector) -> tuple[Integers, int]:
        """Group rows that look alike at these levels: a class number for each, and the number of
        classes.
        """
        return relabel(*self._keys(vector))

    def _keys(self, vector: Vector) -> tuple[Integers, int]:
        keys = np.zeros(len(self), dtype=np.int64)
        space = 1
        for codes, nodes, sizes, level in zip(
            self.codes, self.nodes, self.sizes, vector, strict=True
        ):
            if sizes[level] == 1:
                continue
            if space * sizes[level] > _WIDE:
                keys, space = relabel(keys, space)
            column = nodes[level][codes]
            keys = column if space == 1 else keys * sizes[level] + column
            space = space * sizes[level]
        return keys, space

    def cost(self, vector: Vector, which: Integers | None = None) -> Floats:
        """Return the cost of each row group at these levels."""
        total = np.zeros(len(self) if which is None else len(which))
        for codes, costs, level in zip(self.codes, self.costs, vector, strict=True):
            if level:
                total += costs[level][codes if which is None else codes[which]]
        return total

    def good(self, guarantee: Guarantee, classes: Integers, number: int) -> Flags:
        return guarantee.of_classes(classes, number, self.sensitive, self.counts)

    def averages(self) -> list[Floats]:
        """Return the average cost of each column at each level."""
        weight = self.counts / max(1, self.counts.sum())
        return [
            np.array([float((level[codes] * weight).sum()) for level in levels])
            for codes, levels in zip(self.codes, self.costs, strict=True)
        ]


def relabel(keys: Integers, space: int) -> tuple[Integers, int]:
    """Renumber keys below `space` without gaps, in the same order; also return how many there
    are.
    """
    if space > 8 * len(keys) + 1024:
        found, numbers = np.unique(keys, return_inverse=True)
        return numbers, len(found)
    present = np.zeros(space, dtype=np.bool_)
    present[keys] = True
    numbers = np.cumsum(present) - 1
    return numbers[keys], int(numbers[-1]) + 1


def encode(
    groups: Groups, hierarchies: Sequence[Hierarchy], costs: Costs, sensitive: str | None
) -> RowGroups:
    """Encode groups, whose first columns are those to recode, in the order of their hierarchies."""
    return RowGroups(
        codes=groups.codes[: len(hierarchies)],
        counts=groups.counts,
        sensitive=None if sensitive is None else groups.codes[groups.position(sensitive)],
        nodes=tuple(hierarchy.nodes for hierarchy in hierarchies),
        sizes=tuple(tuple(len(labels) for labels in hierarchy.labels) for hierarchy in hierarchies),
        costs=costs,
    )


def every_vector(heights: Sequence[int]) -> Integers:
    """Return all level vectors, one a row."""
    return np.array(list(product(*(range(height + 1) for height in heights))), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoding:
    """levels[column][group], and classes[group]: who looks alike, -1 for the suppressed.

    `optimal`: nothing in the searched space loses less. `searched`: how many level vectors were
    looked at.
    """

    levels: tuple[Integers, ...]
    classes: Integers
    optimal: bool
    searched: int
