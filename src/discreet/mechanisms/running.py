"""Noise for running totals over an ordered public key, which stays small on every total (S15).

If noise is added to each of T numbers, their running totals have the noise of up to T draws. Here
the noise is added to sums of the numbers with fixed factors, y = C x + z, and everything is
computed from y. C is the column-normalised square root of the running sum. For 365 periods the
noisiest total then has a deviation of 2.76 instead of 19.1, and single numbers have one of at most
1.9 instead of 1 [Fichtenberger, Henzinger, Upadhyay 2023].

Privacy
    The entries of C are whole numbers. Let x and x' differ by one person, w = x - x'. Then C x and
    C x' are whole vectors at a distance of |C w|_2, and z is discrete Gaussian: rho = |C w|² / 2
    sigma² [Canonne, Kamath, Steinke 2020]. Let C_c be the column of the period of cell c, and L the
    length of the longest column. (Each combination of other keys, and each form, has its own copy
    of C, so every column is at most L long.)
        |C w| = |sum of w_c C_c| <= sum of |w_c| |C_c| <= L |w|_1.
    - add_remove: |w|_1 <= A, the l1 of what one person adds. So |C w|² <= L² A². A person whose
      rows are all in the period of the longest column reaches it.
    - change_one: w = u - v, |u|_1 <= A and |v|_1 <= A. |C w|² <= (|C u| + |C v|)² <= 4 L² A².
      C has no negative entries. If u and v have none either, <C u, C v> >= 0, so
      |C w|² = |C u|² + |C v|² - 2 <C u, C v> <= 2 L² A².
    What is released is a function of y (`vault.running`), so it costs nothing more.
Error
    The noise of the totals is M z with M = A C^-1, where A is the running sum. Totals are rounded
    to whole numbers. Single numbers are differences of totals, so their noise is a difference too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.combined import normal_half_width
from discreet.mechanisms.shapes import Additive
from discreet.threads import one_thread

Floats = npt.NDArray[np.float64]
UNIT: Final = 1 << 12  # the length of each column before rounding, which costs 0.02 % of error
MOST_PERIODS: Final = 1100  # three years of days; more take too long to plan
_FINE = 30  # bits after the point of the series and of its norms, so that squares fit 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The layout of numbers in a flat array.

    The array has `periods` of the ordered key, each with `inner` cells of the keys after it. The
    keys before it repeat all of this.
    """

    periods: int
    inner: int

    def by_period(self, values: Any) -> Any:
        """Return the numbers as a table with a row for each period."""
        cells = values.reshape(-1, self.periods, self.inner)
        return np.moveaxis(cells, 1, 0).reshape(self.periods, -1)


@lru_cache(maxsize=8)
def factor(periods: int) -> npt.NDArray[np.int64]:
    """Return C, a lower triangular matrix of whole numbers.

    Its columns hold the series 1, 1/2, 3/8, ... of (1 - x)^(-1/2), each divided by its length.
    Only whole numbers are computed with, so C is the same on every machine.
    """
    series = [1 << _FINE]
    for step in range(1, periods):
        series.append(series[-1] * (2 * step - 1) // (2 * step))
    lengths = [math.isqrt(square) for square in np.cumsum(np.square(series, dtype=np.int64))]
    lags = np.subtract.outer(np.arange(periods), np.arange(periods))
    column = np.array(lengths[::-1], dtype=np.int64)
    entries = np.array(series, dtype=np.int64)[np.maximum(lags, 0)] * UNIT
    rounded = (entries + column // 2) // column
    matrix: npt.NDArray[np.int64] = np.where(lags >= 0, rounded, 0)
    matrix.setflags(write=False)
    return matrix


@lru_cache(maxsize=64)
def longest(periods: int) -> int:
    """Return the square of the length of the longest column."""
    return int(np.square(factor(periods)).sum(axis=0).max())


@lru_cache(maxsize=8)
def weights(periods: int) -> Floats:
    """Return M = A C^-1: a row for each total, with its factors of y and of the noise on y."""
    with one_thread():
        inverse = np.linalg.inv(factor(periods).astype(np.float64))
        return np.asarray(np.cumsum(np.tril(inverse), axis=0))


@lru_cache(maxsize=64)
def lengths(periods: int) -> tuple[Floats, Floats]:
    """Return the deviations of totals and of single numbers, if the noise on y has deviation 1."""
    totals = weights(periods)
    single = np.diff(totals, axis=0, prepend=0.0)
    return np.linalg.norm(totals, axis=1), np.linalg.norm(single, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The noise on numbers whose running totals were measured.

    It is neither independent from number to number, nor of one spread.
    """

    noise: Additive
    grid: Grid

    def of_totals(self, factors: Sequence[Fraction]) -> Floats:
        """Return the half-width, for each period, of the running total of sum(factor * number).

        Each total was rounded to a whole number, which moved it by up to half a unit.
        """
        wide = lengths(self.grid.periods)[0] * self._reach(factors)
        return np.asarray(np.floor(wide + _sum(factors) / 2))

    def of_numbers(self, factors: Sequence[Fraction]) -> Floats:
        """Return the half-width, for each period, of sum(factor * number).

        A number is the difference of two rounded totals. If a factor is no whole number, the sum is
        rounded once more.
        """
        wide = lengths(self.grid.periods)[1] * self._reach(factors)
        whole = all(Fraction(factor).denominator == 1 for factor in factors)
        last_rounding = 0 if whole else 0.5
        return np.asarray(np.floor(wide + _sum(factors) + last_rounding))

    def of_cells(self, factors: Sequence[Fraction], cells: int) -> Floats:
        """Return the half-width of `of_numbers` for each of the cells of the whole array."""
        grid = np.repeat(self.of_numbers(factors), self.grid.inner)
        return np.tile(grid, cells // len(grid))

    def on_numbers(self, drawn: Floats) -> Floats:
        """Return the noise on numbers that follows from `drawn`, the noise on y.

        Both have a row for each cell and a column for each repetition of the draw.
        """
        order = self.grid.by_period(np.arange(len(drawn)))
        totals = np.rint(np.tensordot(weights(self.grid.periods), drawn[order], 1))
        noise = np.empty_like(drawn)
        noise[order] = np.diff(totals, axis=0, prepend=0.0)
        return noise

    def by_draws(self, slopes: Floats) -> tuple[Floats, Floats]:
        """Convert slopes of functions by the numbers to their slopes by the noise on y.

        Both have a row for each cell and a column for each function. Return the slopes by the
        noise, and how far the rounding of totals may move each function.
        """
        order = self.grid.by_period(np.arange(len(slopes)))
        by_totals = -np.diff(slopes[order], axis=0, append=0.0)
        by_noise = np.empty_like(slopes)
        by_noise[order] = np.tensordot(weights(self.grid.periods).T, by_totals, 1)
        return by_noise, np.abs(by_totals).sum(axis=(0, 1)) / 2

    def _reach(self, factors: Sequence[Fraction]) -> float:
        length = math.hypot(*map(float, factors))
        return normal_half_width(float(self.noise.spread)) * length


def _sum(factors: Sequence[Fraction]) -> float:
    return float(sum(map(abs, factors)))
