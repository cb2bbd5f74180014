"""Counts for synthesizers: noisy counts of columns, noisy distances to a model, and a private
choice among candidates.

All of it is paid for before: the allowance prices each mechanism before it runs, and nobody sees
the exact counts. A synthesizer spends shares of the amount that was paid; shares add up in either
currency.

Privacy
    One person has at most m rows, each in one cell of a marginal. Under add_remove the counts move
    by m in l1, and in l2 too (if all rows are in one cell); under change_one by 2m and sqrt(2) m.
    Merging cells by a public map does not change that. The distance of the counts to a fixed table
    moves by the counts' l1 (S16): m, or 2m. So does a sum of numbers of size at most 1. A vector of
    t distances or sums moves by t m in l1 and sqrt(t) m in l2, or twice that. If rows have weights,
    read u for m, where one person's weights add up to at most u.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.algebra import (
    Aggregate,
    Cast,
    Column,
    Constant,
    Expression,
    Factor,
    Select,
    Source,
    Stage,
    Sum,
    call,
    case,
)
from discreet.budget import AccountantName
from discreet.mechanisms import to_row
from discreet.mechanisms.combined import CONFIDENCE
from discreet.mechanisms.currency import currency
from discreet.mechanisms.shapes import Additive, Movement, Scores
from discreet.synthetic.columns.axis import Axis, look_up
from discreet.synthetic.source import TableSource
from discreet.synthetic.workload import EVERY_PAIR, Workload
from discreet.vault.allowance import Allowance
from discreet.vault.answer import rows_used
from discreet.vault.exact import Exact

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]
Partition = tuple[Integers, ...]  # for each column, the group of every cell of its axis
Progress = Callable[[str, float], None]

SCALE = 100  # for correlations, numbers lie on a line from -SCALE to SCALE
# The most rows that a model may expect in a cell: with up to 2^26 cells, a distance fits into 64
# bits.
MOST_ROWS = 2**36
_PARTS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisyMarginal:
    """Noisy counts of the groups of some columns' cells, with the noise's standard deviation."""

    columns: Columns
    partition: Partition
    counts: Integers
    std: float
    noise: dict[str, str]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(groups.max()) + 1 for groups in self.partition)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Relations:
    """Noisy sums, over all rows, of products of two columns' scores, in rows.

    A score has a whole number from -SCALE to SCALE for every cell of its column; a product is
    divided by SCALE^2.
    """

    scores: tuple[tuple[int, Integers], ...]  # the column, and the score of each of its cells
    pairs: tuple[tuple[int, int], ...]  # which two scores each sum multiplies
    sums: Floats
    std: float
    noise: dict[str, str]

    @property
    def columns(self) -> frozenset[Columns]:
        """Return the pairs of columns that these tell of."""
        return frozenset((self.scores[a][0], self.scores[b][0]) for a, b in self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """The error that noise adds to a number: its standard deviation, and the half-width of its 95 %
    interval.
    """

    deviation: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """Columns, the groups of their cells, and the counts that a released model gives them."""

    columns: Columns
    partition: Partition
    model: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """A public rule: a row's points are the sum of its cells' weights, and bins divide the points.

    The points tell rows whose `label` column is in cell `positive` from others.
    """

    label: int
    positive: int
    weights: tuple[Integers, ...]  # for every column, the weight of every cell
    ends: tuple[int, ...]  # the ends of all bins but the last

    @property
    def bins(self) -> int:
        return len(self.ends) + 1


class Marginals:
    """The counts of one private table, through one allowance."""

    def __init__(
        self,
        *,
        axes: tuple[Axis, ...],
        source: TableSource,
        accountant: AccountantName,
        amount: Fraction,
        allowance: Allowance,
        fetch: Callable[[Aggregate], Exact],
        workload: Workload = EVERY_PAIR,
        progress: Progress | None = None,
    ) -> None:
        self.axes = axes
        self.workload = workload
        self.measured: list[NoisyMarginal] = []
        self.related: list[Relations] = []
        self._source = source
        self._fetch = fetch
        self._twice = source.neighbors == "change_one"
        self._currency = currency(accountant)
        self._amount = amount
        self._allowance = allowance
        self._progress = progress
        self._exact_counts: dict[Columns, Exact] = {}

    @property
    def sizes(self) -> list[int]:
        return [axis.size for axis in self.axes]

    @property
    def mechanisms(self) -> list[dict[str, str]]:
        """Return the mechanisms used so far, as the ledger lists them."""
        return rows_used(self._allowance.used)

    def tell(self, what: str, share: float) -> None:
        """Report the progress of the work."""
        if self._progress is not None:
            self._progress(what, share)

    def std(self, share: float) -> float:
        """Return the standard deviation of the counts of a marginal that spends this share of the
        amount.
        """
        return self._noise(share, self._source.moved).deviation / self._source.unit

    def distance_std(self, share: float, count: int) -> float:
        """Return the standard deviation of `count` distances that spend this share together."""
        return self._noise(share, self._moved_numbers(count)).deviation / self._source.unit

    def measure(
        self, columns: Columns, *, share: float, partition: Partition | None = None
    ) -> NoisyMarginal:
        """Return noisy counts of all cells of some columns, or of groups of them."""
        moved = self._source.moved
        noise = self._noise(share, moved)
        groups = self.whole(columns) if partition is None else partition
        size = math.prod(int(own.max()) + 1 for own in groups)
        counts = self._allowance.marginal(
            noise, self._exact(columns), moved=moved, cells=flat(groups), size=size
        )
        marginal = NoisyMarginal(
            columns=columns,
            partition=groups,
            counts=_in_rows(np.asarray(counts, dtype=np.int64), self._source.unit),
            std=self.std(share),
            noise=to_row(noise),
        )
        self.measured.append(marginal)
        return marginal

    def distances(self, candidates: Sequence[Candidate], *, share: float) -> tuple[Floats, Error]:
        """Return the noisy l1 distances of the candidates' counts to their models, and the error of
        each distance.
        """
        moved = self._moved_numbers(len(candidates))
        unit = self._source.unit
        noise = self._noise(share, moved)
        models = _models(candidates, unit)
        exact = self._every_exact([candidate.columns for candidate in candidates])
        noisy = self._allowance.distances(noise, exact, moved=moved, **models)
        error = Error(deviation=noise.deviation / unit, margin=noise.margin(CONFIDENCE) / unit)
        return np.asarray(noisy, dtype=np.float64) / unit, error

    def relations(
        self,
        scores: Sequence[tuple[int, Integers]],
        pairs: Sequence[tuple[int, int]],
        *,
        share: float,
    ) -> Relations:
        """Return noisy sums, over all rows, of products of two scores; the earlier column is first.

        A product is between -SCALE^2 and SCALE^2, and all sums get noise as one vector.
        """
        moved = self._moved_numbers(len(pairs), largest=SCALE**2)
        noise = self._noise(share, moved)
        lines = [np.clip(line, -SCALE, SCALE) for _, line in scores]
        exact = self._every_exact([(scores[a][0], scores[b][0]) for a, b in pairs])
        points = (np.multiply.outer(lines[a], lines[b]).ravel() for a, b in pairs)
        noisy = self._allowance.sums(noise, exact, moved=moved, points=points)
        row = SCALE**2 * self._source.unit
        relations = Relations(
            scores=tuple((column, line) for (column, _), line in zip(scores, lines, strict=True)),
            pairs=tuple(pairs),
            sums=np.asarray(noisy, dtype=np.float64) / row,
            std=noise.deviation / row,
            noise=to_row(noise),
        )
        self.related.append(relations)
        return relations

    def moments(self, lines: Mapping[int, Integers], *, share: float) -> tuple[Floats, Additive]:
        """Return noisy sums of all products of two columns, of the columns, and of the rows, and
        the noise.

        `lines` has, for every cell of a column, its place between -SCALE and SCALE. In every sum a
        row counts up to SCALE^2, and all sums get noise as one vector; `products` lists them.
        """
        pairs = products(len(lines))
        moved = self._moved_numbers(len(pairs), largest=SCALE**2)
        noise = self._noise(share, moved)
        rows, cells = self._by_cell(list(lines))
        numbers = []
        for column, line in lines.items():
            number = call("coalesce", look_up(line.tolist(), cells[column]), 0)
            numbers.append((f"x{column}", number))
        factors = [*(Column("lined", name) for name, _ in numbers), Constant(SCALE)]
        weight, reading = self._source.weighing("lined")
        # a stage, so that the engine computes each number once
        stage = Stage(Select(rows, (*numbers, *weight)), "lined")
        sums = tuple(_product(factors[a], factors[b], reading.factors) for a, b in pairs)
        exact = self._fetch(Aggregate(stage, (), sums))
        places = range(len(pairs))
        forms = [tuple(int(place == other) for other in places) for place in places]
        noisy = self._allowance.measure(noise, exact, moved=moved, sizes=(), forms=forms)
        return np.array([float(component[0]) for component in noisy]), noise

    def counted(self, axis: Axis, *, share: float) -> tuple[Integers, Additive]:
        """Return noisy counts of a column's rows in cells of another axis, and the noise.

        Rows without a cell do not count.
        """
        moved = self._source.moved
        noise = self._noise(share, moved)
        rows, (place,) = self._source.placed([axis.name])
        cell = Cast(axis.cell(place), "BIGINT")
        exact = self._fetch(Aggregate(rows, (cell,), (self._source.reading,), known=(0,)))
        size = axis.size
        counts = self._allowance.marginal(
            noise, exact, moved=moved, cells=np.arange(size), size=size
        )
        return np.asarray(counts, dtype=np.int64), noise

    def sum_of(self, axis: Axis, *, center: int, share: float) -> tuple[float, Additive]:
        """Return the noisy sum of a column's cells, less `center` each, and the noise.

        Rows without a cell add nothing.
        """
        largest = max(center, axis.bins - 1 - center)
        moved = self._moved_numbers(1, largest=largest)
        noise = self._noise(share, moved)
        rows, (place,) = self._source.placed([axis.name])
        value = Cast(axis.cell(place) - center, "BIGINT")
        total = Sum((Factor(value, -center, largest, 1, True), *self._source.reading.factors))
        exact = self._fetch(Aggregate(rows, (), (total,)))
        noisy = self._allowance.measure(noise, exact, moved=moved, sizes=(), forms=[(1,)])
        return float(noisy[0][0]), noise

    def total_std(self, axis: Axis, *, share: float) -> float:
        """Return the standard deviation of a total that spends this share, in places."""
        noise = self._noise(share, self._moved_numbers(1, largest=axis.bins - 1))
        return noise.deviation * axis.values / axis.bins / self._source.unit

    def total(self, axis: Axis, *, falling: bool, share: float) -> float:
        """Return the noisy sum, over all rows, of how many places lie between a column's value and
        the lowest one, or if `falling`, the highest one.

        A row counts as many as its cell lies away from the first or the last cell; NULL counts
        nothing. One person's m rows move the sum by m times that of the farthest cell.
        """
        moved = self._moved_numbers(1, largest=axis.bins - 1)
        noise = self._noise(share, moved)
        rows, (place,) = self._source.placed([axis.name])
        cell = Cast(axis.cell(place), "BIGINT")
        exact = self._fetch(Aggregate(rows, (cell,), (self._source.reading,), known=(0,)))
        points = np.zeros(axis.size, dtype=np.int64)
        line = np.arange(axis.bins)
        points[: axis.bins] = line[::-1] if falling else line
        noisy = self._allowance.sums(noise, [exact], moved=moved, points=[points])
        return float(noisy[0]) * axis.values / axis.bins / self._source.unit

    def scored(self, score: Score, *, share: float) -> tuple[Integers, Additive]:
        """Return noisy counts of rows by label and bin of a public score, and the noise; the bins
        of the first label come first.
        """
        moved = self._source.moved
        noise = self._noise(share, moved)
        columns = [column for column, weights in enumerate(score.weights) if weights.any()]
        rows, cells = self._by_cell([*columns, score.label])
        points: Expression = Constant(0)
        for column in columns:
            points = points + look_up(score.weights[column].tolist(), cells[column])
        weight, reading = self._source.weighing("scored")
        values = (("points", points), ("label", cells[score.label]), *weight)
        stage = Stage(Select(rows, values), "scored")
        points = Column("scored", "points")
        label = Column("scored", "label")
        steps = [(points < end, place) for place, end in enumerate(score.ends)]
        bin_of = case((points.is_null, None), *steps, otherwise=len(score.ends))
        positive = case((label.equals(score.positive), 1), (label.is_known, 0))
        cell = positive * score.bins + bin_of
        exact = self._fetch(Aggregate(stage, (cell,), (reading,), known=(0,)))
        size = 2 * score.bins
        counts = self._allowance.marginal(
            noise, exact, moved=moved, cells=np.arange(size), size=size
        )
        return np.asarray(counts, dtype=np.int64), noise

    def select(
        self,
        candidates: Sequence[Candidate],
        *,
        share: float,
        factors: Sequence[int],
        expected: Sequence[int],
    ) -> int:
        """Return the place of a candidate, chosen privately for a large factor * (distance -
        expected).
        """
        moved = self._source.most * (2 if self._twice else 1)
        unit = self._source.unit
        scores = Scores(linf=max(factors) * moved, monotone=False)
        choice = self._currency.choice(amount=self._part(share), moved=scores)
        exact = self._every_exact([candidate.columns for candidate in candidates])
        return self._allowance.farthest(
            choice,
            exact,
            moved=moved,
            **_models(candidates, unit),
            factors=factors,
            expected=[distance * unit for distance in expected],
        )

    def whole(self, columns: Columns) -> Partition:
        """Return the partition of columns in which each cell is its own group."""
        return tuple(np.arange(self.axes[column].size) for column in columns)

    def _part(self, share: float) -> Fraction:
        return self._amount * Fraction(math.floor(share * _PARTS), _PARTS)

    def _moved_numbers(self, count: int, *, largest: int = 1) -> Movement:
        """Return how far one person moves `count` numbers, if a row moves each by up to
        `largest`.
        """
        distance = largest * self._source.most * (2 if self._twice else 1)
        return Movement(l1=count * distance, l2_squared=count * distance**2)

    def _noise(self, share: float, moved: Movement) -> Additive:
        return self._currency.noise(amount=self._part(share), moved=moved)

    def _every_exact(self, sets: Sequence[Columns]) -> Iterator[Exact]:
        """Yield the exact counts of sets of columns, one set after another."""
        for place, columns in enumerate(sets):
            if columns not in self._exact_counts:
                self.tell("counts", place / len(sets))
            yield self._exact(columns)
        self.tell("counts", 1.0)

    def _exact(self, columns: Columns) -> Exact:
        """Return the engine's counts of rows by cell; the key is the cell's place in the columns'
        grid.

        Keep the counts of pairs. A larger set may have as many cells as there are rows, so keep
        only the last one.
        """
        if columns not in self._exact_counts:
            self._exact_counts = {
                own: exact for own, exact in self._exact_counts.items() if len(own) <= 2
            }
            rows, cells = self._by_cell(columns)
            cell: Expression = Constant(0)
            for column in columns:
                cell = cell * self.axes[column].size + cells[column]
            key = Cast(cell, "BIGINT")
            counts = Aggregate(rows, (key,), (self._source.reading,), known=(0,))
            self._exact_counts[columns] = self._fetch(counts)
        return self._exact_counts[columns]

    def _by_cell(self, columns: Sequence[int]) -> tuple[Source, dict[int, Expression]]:
        """Return all rows, and the cells of some columns."""
        distinct = list(dict.fromkeys(columns))
        axes = [self.axes[column] for column in distinct]
        rows, places = self._source.placed([axis.name for axis in axes])
        cells = [axis.cell(place) for axis, place in zip(axes, places, strict=True)]
        return rows, dict(zip(distinct, cells, strict=True))


def _in_rows(counts: Integers, unit: int) -> Integers:
    """Return counts in parts of a `unit` as whole rows."""
    return counts if unit == 1 else np.rint(counts / unit).astype(np.int64)


def _product(a: Expression, b: Expression, weight: tuple[Factor, ...]) -> Sum:
    """Return the weighted sum of a product of two numbers between -SCALE and SCALE."""
    if a == b:
        return Sum((Factor(a, -SCALE, SCALE, 2, True), *weight))
    return Sum((Factor(a, -SCALE, SCALE, 1, True), Factor(b, -SCALE, SCALE, 1, True), *weight))


def products(width: int) -> list[tuple[int, int]]:
    """Return the two columns of each sum of `Marginals.moments`; the constant is the last column."""
    return [(a, b) for a in range(width + 1) for b in range(a, width + 1)]


def _models(candidates: Sequence[Candidate], unit: int) -> dict[str, Any]:
    # Privacy: S7. Round the model first, so that distances are integers. Clip it, so that every
    # distance fits into 64 bits: an overflow would let one person turn the largest number into the
    # smallest.
    models = []
    for candidate in candidates:
        rows = np.clip(candidate.model * unit, -MOST_ROWS, MOST_ROWS)
        models.append(np.rint(rows).astype(np.int64).ravel())
    cells = (flat(candidate.partition) for candidate in candidates)
    return {"cells": cells, "models": models}


def flat(partition: Partition) -> Integers:
    """Return the group of every cell of the grid."""
    place: Integers = np.zeros(1, dtype=np.int64)
    for groups in partition:
        place = (place[:, None] * (int(groups.max()) + 1) + groups[None, :]).ravel()
    return place
