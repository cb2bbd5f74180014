"""`random` and `independent`: no correlations. Every other synthesizer begins with the one-way marginals made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.graphical import Model, junction_tree
from discreet.synthetic.marginals import Marginals, Measured
from discreet.synthetic.smooth import in_groups, smoothed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """A column as a model sees it: groups of cells, and how many rows are expected in every cell."""

    groups: Integers
    counts: Floats
    std: float  # of the noise on a cell

    @property
    def size(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def grouped(self) -> Floats:
        return np.bincount(self.groups, weights=self.counts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Synthesis:
    """What a synthesizer found: the columns' histograms, and a model of their groups."""

    histograms: tuple[Histogram, ...]
    model: Model


def random(data: Marginals) -> Synthesis:
    """Every value as likely as every other: nothing is asked of the data but how many rows there are."""
    smallest = min(range(len(data.axes)), key=lambda column: data.axes[column].size)
    found = data.measure((smallest,), share=1, partition=(np.zeros(data.axes[smallest].size, dtype=np.int64),))
    total = max(1.0, float(found.counts[0]))
    columns = tuple(
        Histogram(groups=np.arange(size), counts=np.full(size, total / size), std=found.std) for size in data.sizes
    )
    return Synthesis(histograms=columns, model=product(columns, total))


def independent(data: Marginals) -> Synthesis:
    """A histogram of every column, as if they knew nothing of each other."""
    columns, total = histograms(data, share=1)
    return Synthesis(histograms=columns, model=product(columns, total))


def product(columns: Sequence[Histogram], total: float) -> Model:
    """The model of independent columns."""
    tree = junction_tree([column.size for column in columns], [])
    tables = tuple(columns[clique[0]].grouped / columns[clique[0]].counts.sum() for clique in tree.cliques)
    return Model(tree=tree, tables=tables, total=total)


def histograms(data: Marginals, *, share: float) -> tuple[tuple[Histogram, ...], float]:
    """All one-way marginals, smoothed, and how many rows there are.

    A column of k cells gets a part in proportion to k^(2/3), which minimises the sum of all cells' errors.
    """
    weights = np.array(data.sizes, dtype=np.float64) ** (2 / 3)
    found = []
    for column, weight in enumerate(weights):
        data.tell("counting columns", column / len(weights))
        found.append(data.measure((column,), share=share * float(weight / weights.sum()) * (1 - 1e-7)))
    data.tell("counting columns", 1.0)
    total = estimated_total(found)
    columns = []
    for measured, axis in zip(found, data.axes, strict=True):
        counts = measured.counts.astype(np.float64)
        if axis.ordered and axis.column.nullable:  # NULL has no neighbors
            missing = max(0.0, float(counts[-1]))
            rest = smoothed(counts[:-1], std=measured.std, ordered=True, total=max(1.0, total - missing))
            counts = np.append(rest, missing)
            counts *= total / counts.sum()
        else:
            counts = smoothed(counts, std=measured.std, ordered=axis.ordered, total=total)
        columns.append(Histogram(groups=np.arange(axis.size), counts=counts, std=measured.std))
    return tuple(columns), total


def estimated_total(found: Sequence[Measured]) -> float:
    """How many rows there are: every marginal tells, and the more precise ones count for more."""
    precision = np.array([1 / (len(each.counts) * each.std**2) for each in found])
    sums = np.array([float(each.counts.sum()) for each in found])
    return max(1.0, float(precision @ sums / precision.sum()))


def grouped(data: Marginals, columns: Sequence[Histogram], *, least: float, most: int) -> tuple[Histogram, ...]:
    """The same columns with their cells in groups of at least `least` standard deviations of their noise."""
    found = []
    for column, axis in zip(columns, data.axes, strict=True):
        nulls = axis.ordered and axis.column.nullable
        cells = column.counts[:-1] if nulls else column.counts
        groups = in_groups(cells, least=least * column.std, most=most, ordered=axis.ordered)
        if nulls:
            groups = np.append(groups, groups.max() + 1)
        found.append(Histogram(groups=groups, counts=column.counts, std=column.std))
    return tuple(found)
