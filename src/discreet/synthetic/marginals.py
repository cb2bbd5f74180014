"""What a synthesizer may ask: noisy counts of some columns, noisy distances to a model, a choice among candidates.

Everything here is charged already: the allowance prices each mechanism before it runs, and exact counts pass through
unseen. A synthesizer works in shares of what was paid, which add up in either currency.

Privacy
    One person has at most m rows, each in one cell of a marginal: under add_remove the counts move by m in l1, and in
    l2 too (all rows in one cell); under change_one by 2m and sqrt(2) m. Merging cells by a public map changes none of
    that. The distance of the counts to a fixed table moves by the counts' l1 (S16): m, or 2m.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.calibrate import gaussian_sigma, laplace_scale
from discreet.budget import AccountantName, Neighbors
from discreet.mechanisms import to_row
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exponential import selection
from discreet.release import Allowance, Exact
from discreet.sql.values import Value
from discreet.synthetic.axis import Axis

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Columns = tuple[int, ...]
Partition = tuple[Integers, ...]  # for each column, which group every cell of its axis is in
Progress = Callable[[str, float], None]

_PARTS = 10**9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
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
class Candidate:
    """Columns, grouped, and the counts that an already released model gives them."""

    columns: Columns
    partition: Partition
    model: Floats


class Marginals:
    """The counts of one private table, through one allowance."""

    def __init__(
        self,
        *,
        axes: tuple[Axis, ...],
        values: dict[str, Value],
        source: str,
        max_rows: int,
        neighbors: Neighbors,
        currency: AccountantName,
        amount: Fraction,
        allowance: Allowance,
        fetch: Callable[[str], Exact],
        progress: Progress | None = None,
    ) -> None:
        self.axes = axes
        self.measured: list[Measured] = []
        self.amount = float(amount)
        self._values, self._source, self._fetch = values, source, fetch
        self._rows, self._twice = max_rows, neighbors == "change_one"
        self._currency, self._amount, self._allowance = currency, amount, allowance
        self._progress = progress
        self._known: dict[Columns, Exact] = {}

    @property
    def sizes(self) -> list[int]:
        return [axis.size for axis in self.axes]

    def tell(self, what: str, share: float) -> None:
        """How far the work is."""
        if self._progress is not None:
            self._progress(what, share)

    def std(self, share: float) -> float:
        """The standard deviation of each count of a marginal that is given a share of what was paid."""
        return _std(self._noise(self._part(share), times=1))

    def distance_std(self, share: float, count: int) -> float:
        """The standard deviation of each of `count` distances that are given a share together."""
        return _std(self._noise(self._part(share), times=count, distance=True))

    def measure(self, columns: Columns, *, share: float, partition: Partition | None = None) -> Measured:
        """Noisy counts of all cells of some columns, or of groups of them."""
        noise = self._noise(self._part(share), times=1)
        groups = self.whole(columns) if partition is None else partition
        size = math.prod(int(each.max()) + 1 for each in groups)
        counts = self._allowance.marginal(noise, self._exact(columns), cells=flat(groups), size=size)
        found = Measured(
            columns=columns,
            partition=groups,
            counts=np.asarray(counts, dtype=np.int64),
            std=self.std(share),
            noise=to_row(noise),
        )
        self.measured.append(found)
        return found

    def distances(self, candidates: Sequence[Candidate], *, share: float) -> tuple[Floats, float]:
        """The noisy l1 distance of every candidate's counts to its model's, and the noise's standard deviation."""
        noise = self._noise(self._part(share), times=len(candidates), distance=True)
        noisy = self._allowance.distances(noise, [self._exact(c.columns) for c in candidates], **_models(candidates))
        return np.asarray(noisy, dtype=np.float64), _std(noise)

    def select(
        self, candidates: Sequence[Candidate], *, share: float, factors: Sequence[int], expected: Sequence[int]
    ) -> int:
        """The candidate whose factor * (distance - expected) is largest, by a private choice."""
        moved = Fraction(max(factors) * self._rows * (2 if self._twice else 1))
        choice = selection(self._currency, amount=self._part(share), linf=moved)
        exact = [self._exact(candidate.columns) for candidate in candidates]
        return self._allowance.farthest(choice, exact, **_models(candidates), factors=factors, expected=expected)

    def whole(self, columns: Columns) -> Partition:
        return tuple(np.arange(self.axes[column].size) for column in columns)

    def _part(self, share: float) -> Fraction:
        return self._amount * Fraction(math.floor(share * _PARTS), _PARTS)

    def _noise(self, amount: Fraction, *, times: int, distance: bool = False) -> DiscreteGaussian | DiscreteLaplace:
        if self._currency == "sum":
            l1 = Fraction(times * self._rows * (2 if self._twice else 1))
            return DiscreteLaplace(scale=laplace_scale(l1=l1, epsilon=amount), l1=l1)
        doubled = (4 if distance else 2) if self._twice else 1
        l2_squared = Fraction(times * doubled * self._rows**2)
        return DiscreteGaussian(sigma=gaussian_sigma(l2_squared=l2_squared, rho=amount), l2_squared=l2_squared)

    def _exact(self, columns: Columns) -> Exact:
        """Rows per cell, as the engine counts them; k0 is the place of the cell in the grid of the columns."""
        if columns not in self._known:
            cell = "0"
            for column in columns:
                axis = self.axes[column]
                cell = f"({cell} * {axis.size} + {axis.position(self._values[axis.name])})"
            inner = f"SELECT CAST({cell} AS BIGINT) AS k0 FROM {self._source}"
            query = f"SELECT k0, count(*) AS s0 FROM ({inner}) AS cells WHERE k0 IS NOT NULL GROUP BY k0"
            self._known[columns] = self._fetch(query)
        return self._known[columns]


def _std(noise: DiscreteGaussian | DiscreteLaplace) -> float:
    return float(noise.sigma) if isinstance(noise, DiscreteGaussian) else math.sqrt(2) * float(noise.scale)


def _models(candidates: Sequence[Candidate]) -> dict[str, Any]:
    # Privacy: S7. The model is rounded first, so that distances are integers.
    return {
        "cells": [flat(candidate.partition) for candidate in candidates],
        "models": [np.rint(candidate.model).astype(np.int64).ravel() for candidate in candidates],
    }


def flat(partition: Partition) -> Integers:
    """For every cell of the grid, the group it belongs to."""
    place: Integers = np.zeros(1, dtype=np.int64)
    for groups in partition:
        place = (place[:, None] * (int(groups.max()) + 1) + groups[None, :]).ravel()
    return place
