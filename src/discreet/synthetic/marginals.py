"""Counts for synthesizers: noisy counts of some columns, noisy distances to a model, a choice among
candidates.

Everything here is charged already: the allowance prices each mechanism before it runs, and exact
counts pass through unseen. A synthesizer works in shares of what was paid, which add up in either
currency.

Privacy
    Where rows have weights that add up to at most u for one person, read u for m.
    One person has at most m rows, each in one cell of a marginal: under add_remove the counts move
    by m in l1, and in l2 too (all rows in one cell); under change_one by 2m and sqrt(2) m. Merging
    cells by a public map changes none of that. The distance of the counts to a fixed table moves by
    the counts' l1 (S16): m, or 2m. So does a sum of numbers of at most 1 in size; t distances or
    sums are a vector that moves by t m in l1 and sqrt(t) m in l2, or twice that.
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
Partition = tuple[Integers, ...]  # for each column, which group every cell of its axis is in
Progress = Callable[[str, float], None]

SCALE = 100  # half the length of the line that numbers are put on for their correlations
# that a model may expect in a cell: with up to 2^26 cells a distance fits into 64 bits
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
    """Columns, grouped, and the counts that an already released model gives them."""

    columns: Columns
    partition: Partition
    model: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Score:
    """A public rule that gives every row points, the sum of its cells' weights, and the bin of
    points it is in.

    It is to tell rows whose `label` column is in cell `positive` from others.
    """

    label: int
    positive: int
    weights: tuple[Integers, ...]  # for every column, of every cell
    ends: tuple[int, ...]  # of all bins but the last

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
        self._source, self._fetch = source, fetch
        self._twice = source.neighbors == "change_one"
        self._currency, self._amount, self._allowance = currency(accountant), amount, allowance
        self._progress = progress
        self._known: dict[Columns, Exact] = {}

    @property
    def sizes(self) -> list[int]:
        return [axis.size for axis in self.axes]

    @property
    def mechanisms(self) -> list[dict[str, str]]:
        """The mechanisms that were used so far, as the ledger lists them."""
        return rows_used(self._allowance.used)

    def tell(self, what: str, share: float) -> None:
        """Tell how far the work is."""
        if self._progress is not None:
            self._progress(what, share)

    def std(self, share: float) -> float:
        """Return the standard deviation of each count of a marginal that is given a share of what
        was paid.
        """
        return self._noise(share, self._source.moved).deviation / self._source.unit

    def distance_std(self, share: float, count: int) -> float:
        """Return the standard deviation of each of `count` distances that are given a share
        together.
        """
        return self._noise(share, self._moved_numbers(count)).deviation / self._source.unit

    def measure(
        self, columns: Columns, *, share: float, partition: Partition | None = None
    ) -> NoisyMarginal:
        """Return noisy counts of all cells of some columns, or of groups of them."""
        moved = self._source.moved
        noise = self._noise(share, moved)
        groups = self.whole(columns) if partition is None else partition
        size = math.prod(int(each.max()) + 1 for each in groups)
        counts = self._allowance.marginal(
            noise, self._exact(columns), moved=moved, cells=flat(groups), size=size
        )
        found = NoisyMarginal(
            columns=columns,
            partition=groups,
            counts=_whole(np.asarray(counts, dtype=np.int64), self._source.unit),
            std=self.std(share),
            noise=to_row(noise),
        )
        self.measured.append(found)
        return found

    def distances(self, candidates: Sequence[Candidate], *, share: float) -> tuple[Floats, Error]:
        """Return the noisy l1 distance of every candidate's counts to its model's, and how far
        noise moves each.
        """
        moved, unit = self._moved_numbers(len(candidates)), self._source.unit
        noise = self._noise(share, moved)
        models = _models(candidates, unit)
        noisy = self._allowance.distances(
            noise,
            self._every_exact([each.columns for each in candidates]),
            moved=moved,
            **models,
        )
        error = Error(deviation=noise.deviation / unit, margin=noise.margin(CONFIDENCE) / unit)
        return np.asarray(noisy, dtype=np.float64) / unit, error

    def relations(
        self,
        scores: Sequence[tuple[int, Integers]],
        pairs: Sequence[tuple[int, int]],
        *,
        share: float,
    ) -> Relations:
        """Noisy sums over all rows of the products of pairs of scores, the earlier column's first.

        A product is between -SCALE^2 and SCALE^2, and all sums get noise as one vector.
        """
        moved = self._moved_numbers(len(pairs), largest=SCALE**2)
        noise = self._noise(share, moved)
        lines = [np.clip(line, -SCALE, SCALE) for _, line in scores]
        noisy = self._allowance.sums(
            noise,
            self._every_exact([(scores[a][0], scores[b][0]) for a, b in pairs]),
            moved=moved,
            points=(np.multiply.outer(lines[a], lines[b]).ravel() for a, b in pairs),
        )
        row = SCALE**2 * self._source.unit
        found = Relations(
            scores=tuple((column, line) for (column, _), line in zip(scores, lines, strict=True)),
            pairs=tuple(pairs),
            sums=np.asarray(noisy, dtype=np.float64) / row,
            std=noise.deviation / row,
            noise=to_row(noise),
        )
        self.related.append(found)
        return found

    def moments(self, lines: Mapping[int, Integers], *, share: float) -> tuple[Floats, Additive]:
        """Return noisy sums of all products of two columns, of the columns themselves and of the
        rows, and the noise.

        `lines` says for every cell of a column where it stands between -SCALE and SCALE. Every sum
        is in units of SCALE^2 a row, and they get noise as one vector: see `products`.
        """
        pairs = products(len(lines))
        moved = self._moved_numbers(len(pairs), largest=SCALE**2)
        noise = self._noise(share, moved)
        rows, cells = self._by_cell(list(lines))
        found = [
            (f"x{column}", call("coalesce", look_up(line.tolist(), cells[column]), 0))
            for column, line in lines.items()
        ]
        factors = [*(Column("lined", name) for name, _ in found), Constant(SCALE)]
        carried, reading = self._source.weighing("lined")
        lined = Stage(Select(rows, (*found, *carried)), "lined")  # each computed once
        sums = tuple(_product(factors[a], factors[b], reading.factors) for a, b in pairs)
        exact = self._fetch(Aggregate(lined, (), sums))
        forms = [
            tuple(int(place == other) for other in range(len(pairs))) for place in range(len(pairs))
        ]
        noisy = self._allowance.measure(noise, exact, moved=moved, sizes=(), forms=forms)
        return np.array([float(each[0]) for each in noisy]), noise

    def counted(self, axis: Axis, *, share: float) -> tuple[Integers, Additive]:
        """Return noisy counts of a column's rows in other cells than its own, and the noise. No
        cell: not counted.
        """
        moved = self._source.moved
        noise = self._noise(share, moved)
        rows, (place,) = self._source.placed([axis.name])
        exact = self._fetch(
            Aggregate(
                rows, (Cast(axis.cell(place), "BIGINT"),), (self._source.reading,), known=(0,)
            )
        )
        size = axis.size
        return np.asarray(
            self._allowance.marginal(noise, exact, moved=moved, cells=np.arange(size), size=size),
            dtype=np.int64,
        ), noise

    def sum_of(self, axis: Axis, *, center: int, share: float) -> tuple[float, Additive]:
        """Return the noisy sum of a column's cells, less `center` each, and the noise; rows without
        a cell add nothing.
        """
        largest = max(center, axis.bins - 1 - center)
        moved = self._moved_numbers(1, largest=largest)
        noise = self._noise(share, moved)
        rows, (place,) = self._source.placed([axis.name])
        value = Cast(axis.cell(place) - center, "BIGINT")
        added = Sum((Factor(value, -center, largest, 1, True), *self._source.reading.factors))
        exact = self._fetch(Aggregate(rows, (), (added,)))
        noisy = self._allowance.measure(noise, exact, moved=moved, sizes=(), forms=[(1,)])
        return float(noisy[0][0]), noise

    def scored(self, score: Score, *, share: float) -> tuple[Integers, Additive]:
        """Return noisy counts of the rows by label and by bin of a public score, label after label,
        and the noise.
        """
        moved = self._source.moved
        noise = self._noise(share, moved)
        columns = [column for column, weights in enumerate(score.weights) if weights.any()]
        rows, cells = self._by_cell([*columns, score.label])
        points: Expression = Constant(0)
        for column in columns:
            points = points + look_up(score.weights[column].tolist(), cells[column])
        carried, reading = self._source.weighing("scored")
        scored = Stage(
            Select(rows, (("points", points), ("label", cells[score.label]), *carried)), "scored"
        )
        points, label = Column("scored", "points"), Column("scored", "label")
        steps = [(points < end, place) for place, end in enumerate(score.ends)]
        bin_of = case((points.is_null, None), *steps, otherwise=len(score.ends))
        positive = case((label.equals(score.positive), 1), (label.is_known, 0))
        exact = self._fetch(
            Aggregate(scored, (positive * score.bins + bin_of,), (reading,), known=(0,))
        )
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
        """Choose privately the candidate whose factor * (distance - expected) is largest."""
        moved, unit = self._source.most * (2 if self._twice else 1), self._source.unit
        scores = Scores(linf=max(factors) * moved, monotone=False)
        choice = self._currency.choice(amount=self._part(share), moved=scores)
        exact = self._every_exact([each.columns for each in candidates])
        return self._allowance.farthest(
            choice,
            exact,
            moved=moved,
            **_models(candidates, unit),
            factors=factors,
            expected=[each * unit for each in expected],
        )

    def whole(self, columns: Columns) -> Partition:
        return tuple(np.arange(self.axes[column].size) for column in columns)

    def _part(self, share: float) -> Fraction:
        return self._amount * Fraction(math.floor(share * _PARTS), _PARTS)

    def _moved_numbers(self, count: int, *, largest: int = 1) -> Movement:
        """Return how far one person moves `count` numbers that a row moves by up to `largest`
        each.
        """
        each = largest * self._source.most * (2 if self._twice else 1)
        return Movement(l1=count * each, l2_squared=count * each**2)

    def _noise(self, share: float, moved: Movement) -> Additive:
        return self._currency.noise(amount=self._part(share), moved=moved)

    def _every_exact(self, sets: Sequence[Columns]) -> Iterator[Exact]:
        """Read the exact counts of all these columns, one set after another."""
        for place, columns in enumerate(sets):
            if columns not in self._known:
                self.tell("counts", place / len(sets))
            yield self._exact(columns)
        self.tell("counts", 1.0)

    def _exact(self, columns: Columns) -> Exact:
        """Return rows per cell, as the engine counts them; the only key is the place of the cell in
        the columns' grid.

        Pairs are remembered; of larger sets, which may have as many cells as there are rows, only
        the last one.
        """
        if columns not in self._known:
            self._known = {each: exact for each, exact in self._known.items() if len(each) <= 2}
            rows, cells = self._by_cell(columns)
            cell: Expression = Constant(0)
            for column in columns:
                cell = cell * self.axes[column].size + cells[column]
            self._known[columns] = self._fetch(
                Aggregate(rows, (Cast(cell, "BIGINT"),), (self._source.reading,), known=(0,))
            )
        return self._known[columns]

    def _by_cell(self, columns: Sequence[int]) -> tuple[Source, dict[int, Expression]]:
        """Return all rows, and the cells of some columns."""
        every = list(dict.fromkeys(columns))
        rows, places = self._source.placed([self.axes[column].name for column in every])
        return rows, {
            column: self.axes[column].cell(place)
            for column, place in zip(every, places, strict=True)
        }


def _whole(counts: Integers, unit: int) -> Integers:
    """Return counts in units of a person's weight, as whole rows."""
    return counts if unit == 1 else np.rint(counts / unit).astype(np.int64)


def _product(a: Expression, b: Expression, weight: tuple[Factor, ...]) -> Sum:
    """Return the sum of a product of two numbers between -SCALE and SCALE, weighted as rows are."""
    if a == b:
        return Sum((Factor(a, -SCALE, SCALE, 2, True), *weight))
    return Sum((Factor(a, -SCALE, SCALE, 1, True), Factor(b, -SCALE, SCALE, 1, True), *weight))


def products(width: int) -> list[tuple[int, int]]:
    """Return, for each sum of `Marginals.moments`, the two columns that it multiplies; the constant
    counts as the last of them.
    """
    return [(a, b) for a in range(width + 1) for b in range(a, width + 1)]


def _models(candidates: Sequence[Candidate], unit: int) -> dict[str, Any]:
    # Privacy: S7. The model is rounded first, so that distances are integers; and kept so small
    # that none of these passes 64 bits, where one person could turn the largest number into the
    # smallest.
    return {
        "cells": (flat(candidate.partition) for candidate in candidates),
        "models": [
            np.rint(np.clip(candidate.model * unit, -MOST_ROWS, MOST_ROWS)).astype(np.int64).ravel()
            for candidate in candidates
        ],
    }


def flat(partition: Partition) -> Integers:
    """Return, for every cell of the grid, the group it belongs to."""
    place: Integers = np.zeros(1, dtype=np.int64)
    for groups in partition:
        place = (place[:, None] * (int(groups.max()) + 1) + groups[None, :]).ravel()
    return place
