"""Choose one quantile on a grid with any number of cells, from the rows near the wanted rank.

`Quantile` computes the score of every cell. This mechanism computes the scores of runs of cells
with equal score: each cell with rows, and the empty cells between two of them. All cells that are
more than `reach` ranks away have the same score, so their rows need not be read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.budget import Loss, Neighbors
from discreet.errors import UsageError
from discreet.mechanisms import fields
from discreet.mechanisms.exponential import ExponentialMechanism
from discreet.mechanisms.quantile import (
    _check_quantile,
    _count,
    _rank_scores,
    hides_rows,
    inside_the_data,
)
from discreet.mechanisms.shapes import Integers, Near, PersonRows
from discreet.noise import Items, Stream
from discreet.noise.choose_runs import Runs, choose_in_runs

FARTHEST = 1 << 62  # ranks: there are never so many rows
_SURELY = 30  # scales beyond the last that matters: a choice from there has a chance below e^-30


@dataclass(frozen=True, slots=True, kw_only=True)
class FineQuantile:
    """Choose a cell by u(v) = -min(reach, distance), by the exponential mechanism. The distance is
    that of the wanted rank, q n + shift, from the ranks that v covers.

    On a fine grid permute-and-flip is hardly better: with many candidates of equal score it becomes
    the exponential mechanism.

    Privacy
        As for `Quantile`: no person moves min(constant, distance) farther than the distance. First
        a run is drawn, then a cell of the run. So each cell has exactly the probability exp(u /
        scale) divided by the sum over all cells.
    Error
        In rank: see `margin`, which lies within the reach.
    """

    epsilon: Fraction
    q: Fraction
    cells: int
    max_rows: int
    neighbors: Neighbors
    reach: int
    shift: int = 0

    per_group: ClassVar[int] = 1
    slices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon")
        fields.whole("cells", self.cells)
        fields.whole("max_rows", self.max_rows)
        fields.whole("reach", self.reach)
        fields.neighbors(self.neighbors)
        _check_quantile(self.q)
        object.__setattr__(self, "q", Fraction(self.q))
        if isinstance(self.shift, bool) or not isinstance(self.shift, int):
            raise UsageError(f"shift must be a whole number, not {self.shift!r}.")

    @property
    def mechanism(self) -> ExponentialMechanism:
        """Return the choice, in whole units of rank / q's denominator."""
        moved = Fraction(1) if self.neighbors == "change_one" else max(self.q, 1 - self.q)
        return ExponentialMechanism(
            epsilon=self.epsilon, linf=self.max_rows * moved * self.q.denominator
        )

    @property
    def most_near(self) -> int:
        """Return the most cells of a group that can have rows within the reach, for any data."""
        return min(self.cells, 2 * self.reach + 2)

    @property
    def scale(self) -> Fraction:
        return self.mechanism.scale

    def hides(self, moved: PersonRows) -> bool:
        return hides_rows(self.max_rows, self.neighbors, moved)

    def loss(self) -> Loss:
        return self.mechanism.loss()

    def scores(self, counts: Integers) -> Integers:
        """Return u(v) times q's denominator, for each cell (of each row of counts)."""
        counts = _count(counts, self.cells)
        scores = _rank_scores(counts, self.q, self.shift * self.q.denominator)
        return np.maximum(scores, -self.reach * self.q.denominator)

    def choose(self, counts: Integers, stream: Stream) -> int:
        return int(self.choose_each(np.asarray(counts)[None], stream, Items.positions(1))[0])

    def choose_each(self, counts: Integers, stream: Stream, items: Items) -> Integers:
        """Choose one cell for each item, from its row of counts."""
        counts = _count(counts, self.cells)
        group, cell = np.nonzero(counts)
        upto = counts.cumsum(axis=1)
        rows = counts[group, cell]
        before = (upto - counts)[group, cell]
        return self.choose_near(
            Near(group=group, cell=cell, rows=rows, before=before, total=upto[group, -1]),
            stream,
            items,
        )

    def choose_near(self, near: Near, stream: Stream, items: Items) -> Integers:
        """Choose one cell for each item (a group), given all cells with rows within the reach."""
        return choose_in_runs(
            stream, items, self.runs(near, len(items)), unit=1 / self.mechanism.scale
        )

    def runs(self, near: Near, groups: int) -> Runs:
        """Return the cells with rows within the reach, and the runs of cells before, between and
        after them.

        The scores fall on both sides of the wanted rank. So the cells with rows within the reach
        follow one another, with only empty cells between them. All cells before and after them are
        out of reach or empty.
        """
        times = self.q.denominator
        most = int(near.total.max(initial=0)) * times + abs(self.shift) * times
        kind = object if most >= 1 << 62 else np.int64
        before, upto, total = (
            each.astype(kind, copy=False)
            for each in (near.before, near.before + near.rows, near.total)
        )
        before = before * times
        upto = upto * times
        wanted = total * self.q.numerator + self.shift * times
        # which no distance passes
        reach = self.reach * times if kind is object else min(self.reach * times, 1 << 62)
        away = np.maximum(np.maximum(before - wanted, wanted - upto), 0)
        kept = np.flatnonzero(away < reach)
        group = near.group[kept]
        cell = near.cell[kept]
        ends = np.searchsorted(group, np.arange(groups), side="right")
        begins = np.append(0, 2 * ends + np.arange(1, groups + 1))
        own = 2 * np.arange(len(kept)) + group + 1
        last = begins[1:] - 1
        held = np.flatnonzero(np.diff(ends, prepend=0))  # groups with any such cell
        gaps = np.full(begins[-1], reach, dtype=kind)
        kind = object if near.cell.dtype == object or self.cells >= 1 << 63 else np.int64
        starts = np.zeros(begins[-1], dtype=kind)
        lengths = np.zeros(begins[-1], dtype=kind)
        starts[own], lengths[own], gaps[own] = cell, 1, away[kept]
        # also where the cells before the next one, and behind the last one, begin
        starts[own + 1] = cell + 1
        gaps[own - 1] = np.minimum(abs(before - wanted)[kept], reach)
        gaps[last[held]] = np.minimum(abs(upto - wanted)[kept][ends[held] - 1], reach)
        ending = np.full(begins[-1], self.cells, dtype=kind)
        ending[own - 1] = cell
        gap = np.append(own - 1, last)
        lengths[gap] = ending[gap] - starts[gap]
        gaps -= np.repeat(_least(gaps, lengths, begins), np.diff(begins))
        return Runs(begins=begins, starts=starts, lengths=lengths, gaps=gaps)

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest number of ranks that the chosen cell keeps to with this probability.

        Whatever the data, as long as the wanted rank lies within 0 and n.
        """
        return -(-self.mechanism.margin(confidence, self.cells) // self.q.denominator)

    def ranks(self, confidence: Fraction | float) -> int:
        return self.margin(confidence) + abs(self.shift)

    def beside_ranks(self) -> dict[str, Any]:
        return inside_the_data(self.q, self.shift)

    def log_mass(self, counts: Integers) -> NDArray[np.float64]:
        """Return the log-probability of each cell."""
        return self.mechanism.log_mass(self.scores(counts).tolist())


def reach_for(
    *, epsilon: Fraction, q: Fraction, cells: int, max_rows: int, neighbors: Neighbors
) -> int:
    """Return a number of ranks: all cells farther away are together chosen with a probability below
    e^-30.
    """
    moved = Fraction(1) if neighbors == "change_one" else max(q, 1 - q)
    return min(
        FARTHEST, math.ceil(2 * max_rows * moved / epsilon * math.ceil(math.log(cells) + _SURELY))
    )


def _least(gaps: Integers, lengths: Integers, begins: NDArray[np.int64]) -> Integers:
    """Return for each item the smallest gap of its runs that are not empty; there is at least
    one.
    """
    held = np.where(lengths > 0, gaps, gaps.max(initial=0))
    return np.minimum.reduceat(held, begins[:-1]) if len(begins) > 1 else held[:0]
