"""What a strategy is: which integer combinations of a stream get noise, and how sums are estimated from them.

A strategy measures y = C x + z: x are the exact numbers of each period, C an integer matrix, z integer noise. A row of
C reaches back in time only, so a row can be released as soon as its period is over; whatever is published is a function
of y alone. How much privacy that costs is decided by the largest |C u| over what one person can contribute, u.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.release import Encoder, IntegerArray
from discreet.schedule import Publish

Floats = npt.NDArray[np.float64]


class Decoder(Protocol):
    """The released side: noisy rows of one period in, estimates out."""

    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        """What a period's noisy rows say about that period, and about all periods so far, for every cell."""


class Strategy(Protocol):
    """A frozen value."""

    @property
    def name(self) -> str: ...

    @property
    def periods(self) -> int: ...

    def encoder(self) -> Encoder: ...

    def decoder(self) -> Decoder: ...

    def deviations(self, publish: Publish) -> Floats:
        """The standard deviation of each period's estimate, in units of the noise's own."""


class Gaussian(Strategy, Protocol):
    """With Gaussian noise: for budgets in ρ."""

    def l2_squared(self, *, times: int, apart: int, cells: int) -> Fraction:
        """The largest |C u|² of a person who counts in `times` periods `apart` apart, by a vector of l2 norm at most 1
        and up to `cells` cells in each.
        """


class Pure(Strategy, Protocol):
    """With Laplace noise: for budgets in ε."""

    def l1(self, *, times: int) -> int:
        """The largest |C u|_1 of a person who counts in `times` periods, by a vector of l1 norm at most 1 in each."""


def participation(diagonals: Sequence[int] | npt.NDArray[np.int64], *, times: int, apart: int) -> int:
    """An upper bound on u' G u over |u_t| <= 1 with at most `times` non-zero u_t, any two `apart` or more apart.

    `diagonals[d]` is at least |G_st| for all s, t that are d apart. Let g(d) be the largest of diagonals[d:]. The i-th
    and the j-th period of a person are |i - j| * apart or more apart, so their entry is at most g(|i - j| * apart), and
    u' G u <= times * g(0) + 2 * sum of (times - i) * g(i * apart) for i from 1. For vectors u_t of norm at most 1 in
    place of numbers the same holds, as <u_s, u_t> <= 1. Where G is a Gram matrix of a Toeplitz factor that is not
    negative and does not increase, every diagonal is largest at its beginning, and periods 0, apart, 2 apart, ... reach
    the bound: it is exact.
    """
    largest = np.maximum.accumulate(np.asarray(diagonals, dtype=np.int64)[::-1])[::-1]
    total = times * int(largest[0])
    for i in range(1, times):
        if i * apart < len(largest):
            total += 2 * (times - i) * int(largest[i * apart])
    return total


def by_impulses(strategy: Strategy, draws: Sequence[int], publish: Publish) -> Floats:
    """Deviations of any strategy whose rows have a draw each (`draws[t]` of them in period t), by decoding units."""
    decoder, sums, first, total = strategy.decoder(), Windows(publish), 0, sum(draws)
    found = []
    for count in draws:
        rows = np.zeros((count, total))
        rows[np.arange(count), first + np.arange(count)] = 1.0
        first += count
        found.append(np.sqrt(np.square(sums.add(*decoder.add(rows))).sum()))
    return np.array(found)


class Windows:
    """A published series out of the two that a decoder gives: single periods, running totals, or sums of a window.

    Before a window is full it holds what there is.
    """

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._totals: list[Floats] = []

    def add(self, daily: Floats, cumulative: Floats) -> Floats:
        if self._publish == "daily":
            return daily
        if self._publish == "cumulative":
            return cumulative
        self._totals.append(cumulative)
        if len(self._totals) <= self._publish:
            return cumulative
        before: Any = self._totals.pop(0)
        return np.asarray(cumulative - before)


class Inverse:
    """Estimates from y = C x + z with a square C: x is solved for, one period after the other, and summed."""

    def __init__(self, solve: Any) -> None:
        self._solve = solve  # noisy row -> estimate of this period
        self._total: Any = 0.0

    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        daily = self._solve(np.asarray(noisy[0], dtype=np.float64))
        self._total = self._total + daily
        return daily, self._total
