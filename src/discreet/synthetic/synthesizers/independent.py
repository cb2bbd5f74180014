"""`random` and `independent`: no correlations. Every other synthesizer begins with the one-way
marginals made here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.marginals import Marginals
from discreet.synthetic.synthesizers.graphical import Model, junction_tree
from discreet.synthetic.synthesizers.smooth import in_groups, smoothed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """A column as a model sees it: groups of cells, and how many rows are expected in every
    cell.
    """

    groups: Integers
    counts: Floats
    std: float  # of the noise on a cell
    noisy: Floats  # the counts as released, before smoothing

    @property
    def size(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def grouped(self) -> Floats:
        return np.asarray(np.bincount(self.groups, weights=self.counts), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Synthesis:
    """What a synthesizer found: the columns' histograms, and a model of their groups."""

    histograms: tuple[Histogram, ...]
    model: Model


def random(data: Marginals) -> Synthesis:
    """Make every value as likely as every other: nothing is asked of the data but how many rows
    there are.
    """
    smallest = min(range(len(data.axes)), key=lambda column: data.axes[column].size)
    found = data.measure(
        (smallest,), share=1, partition=(np.zeros(data.axes[smallest].size, dtype=np.int64),)
    )
    total = max(1.0, float(found.counts[0]))
    columns = tuple(
        Histogram(
            groups=np.arange(size),
            counts=np.full(size, total / size),
            std=found.std,
            noisy=np.full(size, total / size),
        )
        for size in data.sizes
    )
    return Synthesis(histograms=columns, model=product(columns, total))


def independent(data: Marginals) -> Synthesis:
    """Measure a histogram of every column, as if they knew nothing of each other."""
    columns, total = histograms(data, share=1)
    return Synthesis(histograms=columns, model=product(columns, total))


def product(columns: Sequence[Histogram], total: float) -> Model:
    """Return the model of independent columns."""
    tree = junction_tree([column.size for column in columns], [])
    tables = tuple(
        columns[clique[0]].grouped / columns[clique[0]].counts.sum() for clique in tree.cliques
    )
    return Model(tree=tree, tables=tables, total=total)


def histograms(
    data: Marginals, *, share: float, before: Sequence[Histogram] = ()
) -> tuple[tuple[Histogram, ...], float]:
    """Measure and smooth all one-way marginals, and estimate how many rows there are; together with
    those released `before`.

    A column of k cells that a share w of questions needs gets a part in proportion to (w k)^(2/3),
    which minimises the weighted sum of all cells' errors.
    """
    weights = np.array([data.workload.column_weight(c) * k for c, k in enumerate(data.sizes)]) ** (
        2 / 3
    )
    found = []
    for column, weight in enumerate(weights):
        data.tell("counting columns", column / len(weights))
        new = data.measure((column,), share=share * float(weight / weights.sum()) * (1 - 1e-7))
        noisy, std = new.counts.astype(np.float64), new.std
        if before:
            old, trust = (
                before[column],
                before[column].std ** -2 / (before[column].std ** -2 + std**-2),
            )
            noisy, std = trust * old.noisy + (1 - trust) * noisy, (old.std**-2 + std**-2) ** -0.5
        found.append((noisy, std))
    data.tell("counting columns", 1.0)
    total = estimated_total(found)
    return tuple(
        _histogram(axis, *each, total) for axis, each in zip(data.axes, found, strict=True)
    ), total


def _histogram(axis: Axis, noisy: Floats, std: float, total: float) -> Histogram:
    if axis.ordered and axis.column.nullable:  # NULL has no neighbors
        missing = min(max(0.0, float(noisy[-1])), total)
        rest = smoothed(noisy[:-1], std=std, ordered=True, total=max(1.0, total - missing))
        counts = np.append(rest, missing)
        counts *= total / counts.sum()
    else:
        counts = smoothed(noisy, std=std, ordered=axis.ordered, total=total)
    return Histogram(groups=np.arange(axis.size), counts=counts, std=std, noisy=noisy)


def estimated_total(found: Sequence[tuple[Floats, float]]) -> float:
    """Return how many rows there are: every marginal tells, and the more precise ones count for
    more.
    """
    precision = np.array([1 / (len(noisy) * std**2) for noisy, std in found])
    sums = np.array([float(noisy.sum()) for noisy, _ in found])
    return max(1.0, float(precision @ sums / precision.sum()))


def grouped(
    data: Marginals, columns: Sequence[Histogram], *, least: float, most: int
) -> tuple[Histogram, ...]:
    """Put the cells of each column into groups of at least `least` standard deviations of their
    noise.
    """
    found = []
    for column, axis in zip(columns, data.axes, strict=True):
        nulls = axis.ordered and axis.column.nullable
        cells = column.counts[:-1] if nulls else column.counts
        groups = in_groups(cells, least=least * column.std, most=most, ordered=axis.ordered)
        if nulls:
            groups = np.append(groups, groups.max() + 1)
        found.append(replace(column, groups=groups))
    return tuple(found)
