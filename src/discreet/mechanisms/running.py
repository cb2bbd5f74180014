"""Noise for running totals over an ordered public key: little on every total, instead of one more
draw for each period (S15).

Running totals of T noisy numbers have the noise of up to T draws. Here the noise is added to sums
of the numbers with fixed factors, y = C x + z, and all is computed from y. C is the
column-normalised square root of the running sum: of 365 totals the noisiest has a deviation of
2.76 instead of 19.1, and the numbers themselves of up to 1.9 instead of 1 [Fichtenberger,
Henzinger, Upadhyay 2023].

Privacy
    C has whole entries. For x, x' of one person's difference w = x - x', C x and C x' are whole
    vectors |C w|_2 apart, and z is discrete Gaussian: rho = |C w|² / 2 sigma² [Canonne, Kamath,
    Steinke 2020]. With C_c the column of the period of cell c (each combination of other keys, and
    each form, has a copy of C of its own, so |column of c| <= L = the longest column's length):
        |C w| = |sum of w_c C_c| <= sum of |w_c| |C_c| <= L |w|_1.
    - add_remove: |w|_1 <= A, the l1 of what one person adds. So |C w|² <= L² A². It is reached by
      a person whose rows are all in the period of the longest column.
    - change_one: w = u - v, |u|_1 <= A and |v|_1 <= A. |C w|² <= (|C u| + |C v|)² <= 4 L² A².
      Where u and v have no negative entries, nor has C, <C u, C v> >= 0, so
      |C w|² = |C u|² + |C v|² - 2 <C u, C v> <= 2 L² A².
    What leaves is a function of y (`vault.running`), so it costs nothing more.
Error
    The noise of the totals is M z with M = A C^-1, A the running sum; that of single numbers is
    its differences. Totals are rounded to whole numbers, and numbers are differences of totals.
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
UNIT: Final = 1 << 12  # the length of each column, but for rounding: it costs 0.02 % of error
MOST_PERIODS: Final = 1100  # three years of days: more take too long before anything is paid
_FINE = 30  # bits after the point of the series and its norms, whose squares fit 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Places of numbers in a flat array: periods of the ordered key, and under each `inner` cells
    of the keys behind it. Keys before it repeat the whole.
    """

    periods: int
    inner: int

    def by_period(self, values: Any) -> Any:
        """Return the numbers with a row for each period."""
        return np.moveaxis(values.reshape(-1, self.periods, self.inner), 1, 0).reshape(
            self.periods, -1
        )


@lru_cache(maxsize=8)
def factor(periods: int) -> npt.NDArray[np.int64]:
    """Return C, lower triangular, made of whole numbers by whole numbers: the same everywhere.

    The series 1, 1/2, 3/8, ... of (1 - x)^(-1/2), each column divided by its length.
    """
    series = [1 << _FINE]
    for step in range(1, periods):
        series.append(series[-1] * (2 * step - 1) // (2 * step))
    lengths = [math.isqrt(square) for square in np.cumsum(np.square(series, dtype=np.int64))]
    lags = np.subtract.outer(np.arange(periods), np.arange(periods))
    column = np.array(lengths[::-1], dtype=np.int64)
    entries = np.array(series, dtype=np.int64)[np.maximum(lags, 0)] * UNIT
    found: npt.NDArray[np.int64] = np.where(lags >= 0, (entries + column // 2) // column, 0)
    found.setflags(write=False)
    return found


@lru_cache(maxsize=64)
def longest(periods: int) -> int:
    """Return the square of the length of the longest column."""
    return int(np.square(factor(periods)).sum(axis=0).max())


@lru_cache(maxsize=8)
def weights(periods: int) -> Floats:
    """Return M = A C^-1: each total as a combination of the numbers y, and of the noise on them."""
    with one_thread():
        inverse = np.linalg.inv(factor(periods).astype(np.float64))
        return np.asarray(np.cumsum(np.tril(inverse), axis=0))


@lru_cache(maxsize=64)
def lengths(periods: int) -> tuple[Floats, Floats]:
    """Return deviations of totals and of single numbers, for noise of deviation 1 on y."""
    totals = weights(periods)
    single = np.diff(totals, axis=0, prepend=0.0)
    return np.linalg.norm(totals, axis=1), np.linalg.norm(single, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The noise on numbers whose running totals were measured: not independent, and not alike."""

    noise: Additive
    grid: Grid

    def of_totals(self, factors: Sequence[Fraction]) -> Floats:
        """Return the half-width of each period's total of sum(factor * number).

        Totals of whole numbers are whole, and rounding takes each half a unit.
        """
        wide = lengths(self.grid.periods)[0] * self._reach(factors)
        return np.asarray(np.floor(wide + _sum(factors) / 2))

    def of_numbers(self, factors: Sequence[Fraction]) -> Floats:
        """Return the half-width of each period's sum(factor * number): two roundings, and its own
        where a factor is no whole number.
        """
        wide = lengths(self.grid.periods)[1] * self._reach(factors)
        whole = all(Fraction(each).denominator == 1 for each in factors)
        return np.asarray(np.floor(wide + _sum(factors) + (0 if whole else 0.5)))

    def of_cells(self, factors: Sequence[Fraction], cells: int) -> Floats:
        """Return `of_numbers` for each cell of the whole grid."""
        each = np.repeat(self.of_numbers(factors), self.grid.inner)
        return np.tile(each, cells // len(each))

    def on_numbers(self, drawn: Floats) -> Floats:
        """Return the noise on numbers from draws on y: a row for each cell, redrawn in columns."""
        order = self.grid.by_period(np.arange(len(drawn)))
        totals = np.rint(np.tensordot(weights(self.grid.periods), drawn[order], 1))
        found = np.empty_like(drawn)
        found[order] = np.diff(totals, axis=0, prepend=0.0)
        return found

    def by_draws(self, slopes: Floats) -> tuple[Floats, Floats]:
        """Return slopes by the draws on y from those by numbers, a row for each cell; and how far
        the rounding of totals takes each column.
        """
        order = self.grid.by_period(np.arange(len(slopes)))
        rows = slopes[order]
        by_totals = -np.diff(rows, axis=0, append=0.0)
        found = np.empty_like(slopes)
        found[order] = np.tensordot(weights(self.grid.periods).T, by_totals, 1)
        return found, np.abs(by_totals).sum(axis=(0, 1)) / 2

    def _reach(self, factors: Sequence[Fraction]) -> float:
        length = math.hypot(*map(float, factors))
        return normal_half_width(float(self.noise.spread)) * length


def _sum(factors: Sequence[Fraction]) -> float:
    return float(sum(map(abs, factors)))
