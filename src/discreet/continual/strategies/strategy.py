"""The protocol of a strategy: which integer combinations of a stream get noise, and how sums are
estimated from them.

A strategy measures y = C x + z, where x are the exact numbers of all periods, C is an integer
matrix and z is integer noise. A row of C uses only past periods, so it can be released as soon as
its period is over. Everything that is published is a function of y alone. The largest |C u| over
all contributions u of one person decides the privacy loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discreet.policy.schedule import Publish
from discreet.vault.exact import IntegerArray
from discreet.vault.steps import Encoder

Floats = npt.NDArray[np.float64]


class Decoder(Protocol):
    """The released side of a strategy. It takes the noisy rows of a period and returns
    estimates.
    """

    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        """Estimate that period, and all periods so far, from a period's noisy rows, for every
        cell.
        """


class Strategy(Protocol):
    """A strategy, as a frozen value."""

    @property
    def name(self) -> str: ...

    @property
    def periods(self) -> int: ...

    def encoder(self) -> Encoder: ...

    def decoder(self) -> Decoder: ...

    def deviations(self, publish: Publish) -> Floats:
        """Return the standard deviation of each period's estimate, in units of the noise's own."""


class Gaussian(Strategy, Protocol):
    """A strategy with Gaussian noise, for budgets in ρ."""

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        """Return at least the largest |C u|² of a person in `times` periods `apart` apart.

        The person counts by a vector of l2 norm at most 1 and in up to `cells` cells of each
        period; `signed` where the vector may have negative entries as well as positive ones.
        """


class Pure(Strategy, Protocol):
    """A strategy with Laplace noise, for budgets in ε."""

    def l1(self, *, times: int) -> int:
        """Return the largest |C u|_1 of a person who counts in `times` periods, by l1 norm at most
        1 in each.
        """


def participation(gram: npt.NDArray[np.int64], *, times: int, apart: int, signed: bool) -> int:
    """Return an upper bound on u' G u over |u_t| <= 1, with at most `times` non-zero u_t, `apart`
    or more apart.

    The i-th period of a person, from 0, is i * apart or later, and the j-th is (j - i) * apart or
    more behind it. So their entry of G is at most the largest G_st over s >= i * apart and t >= s +
    (j - i) * apart, and the bound is the sum of these over i, j < times. Contributions that are
    never negative (`signed` false) cannot use a negative entry, so it counts as 0; those of either
    sign use its absolute value. Vectors u_t of norm at most 1 do no more than numbers, as |<u_s,
    u_t>| <= 1, and <u_s, u_t> >= 0 where they have no negative entries. Where G falls with s and
    with t - s, as for a Toeplitz factor that is not negative and does not increase, the periods 0,
    apart, 2 apart, ... reach every term at once: there the bound is exact
    (docs/proofs/continual.md).
    """
    usable = np.abs(gram) if signed else np.maximum(gram, 0)
    # largest[d]: over starts from here on, d or more apart
    total = 0
    largest = np.zeros(len(gram), dtype=np.int64)
    for start in reversed(range(len(gram))):
        entries = np.maximum.accumulate(usable[start, start:][::-1])[::-1]
        largest[: len(entries)] = np.maximum(largest[: len(entries)], entries)
        slot, between = divmod(start, apart)
        if not between and slot < times:
            own, *later = largest[: (times - slot) * apart : apart].tolist()
            total += own + 2 * sum(later)
    return int(total)


def impulses(strategy: Strategy, draws: Sequence[int], publish: Publish) -> Iterator[Floats]:
    """Yield for each period what every draw so far counts in its estimate; `draws[t]` draws are of
    period t.
    """
    decoder = strategy.decoder()
    sums = Windows(publish)
    first = 0
    total = sum(draws)
    for count in draws:
        rows = np.zeros((count, total))
        rows[np.arange(count), first + np.arange(count)] = 1.0
        first += count
        yield sums.add(*decoder.add(rows))


def by_impulses(strategy: Strategy, draws: Sequence[int], publish: Publish) -> Floats:
    """Return deviations of a strategy with `draws[t]` rows of a draw each in period t, by decoding
    units.
    """
    return np.array(
        [np.sqrt(np.square(weights).sum()) for weights in impulses(strategy, draws, publish)]
    )


class Windows:
    """Computes a published series from the two series of a decoder: single periods, running totals,
    or sums of a window.

    Before a window is full, its sum is over the periods so far.
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
    """Estimates from y = C x + z with a square C: x is solved for, one period after the other, and
    summed.
    """

    def __init__(self, solve: Any) -> None:
        self._solve = solve  # noisy row -> estimate of this period
        self._total: Any = 0.0

    def add(self, noisy: IntegerArray) -> tuple[Floats, Floats]:
        daily = self._solve(np.asarray(noisy[0], dtype=np.float64))
        self._total = self._total + daily
        return daily, self._total
