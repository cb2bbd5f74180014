"""The square root in small memory: a few leaky buffers instead of all periods so far [Dvijotham et
al. 2024].

For streams of any length up to the horizon: memory and work per period do not grow with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import isqrt, log2
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, nnls
from scipy.special import gammaln

from discreet.budget import round_up
from discreet.continual.strategies.strategy import Decoder, Floats, Inverse
from discreet.policy.schedule import Publish
from discreet.vault.exact import IntegerArray
from discreet.vault.steps import Encoder, ExactStep

BITS = 24  # y is in units of 2^-24
_SAFE = Fraction(1, 10**9)  # far above what floats lose in sums of up to 10^6 positive terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered:
    """Release y_t = 2^24 x_t + sum of H_i + z_t: buffer i holds S_i, loses S_i >> f_i each period
    and gains v_i x_t.

    Privacy
        H_i = S_i >> f_i. Up to rounding down, y is Toeplitz with c_0 = 2^24 and
        c_j = sum of v_i 2^-f_i (1 - 2^-f_i)^(j - 1), which is positive and decreasing, so |C u|² is
        largest for periods 0, apart, 2 apart, ... (see `strategy.participation`). Rounding: S_i is
        off its exact value by e with 0 <= e < 2^f_i, because e' = (1 - 2^-f_i) e + r, 0 <= r < 1;
        so H_i is off by between -1 and 1, y by less than the number n of buffers, and y on
        neighbors by less than 2 n more than C u says, in each of the m cells that a person ever
        touches. Over T periods: |difference|_2 <= |C u| + 2 n √(m T) (docs/proofs/continual.md).
    Error
        That of the square root, of which c is a fit by positive weights: within 0.2 % up to 10^6
        periods.
    """

    periods: int
    shifts: tuple[int, ...]
    weights: tuple[int, ...]
    name = "buffered square root"

    @classmethod
    def fitted(cls, periods: int) -> Buffered:
        """Return buffers that forget by halves: one for every power of two up to the horizon."""
        shifts = tuple(range(1, max(2, int(log2(periods))) + 2))
        lags = np.unique(np.geomspace(1, max(periods - 1, 1), 400).astype(np.int64))
        wanted = _root_at(lags)
        rates = 0.5 ** np.array(shifts)
        parts = np.exp(np.outer(lags - 1, np.log1p(-rates))) * rates
        found, _ = nnls(parts / wanted[:, None], np.ones(len(lags)))
        used = [
            (shift, round(weight * 2**BITS))
            for shift, weight in zip(shifts, found.tolist(), strict=True)
        ]
        kept = [(shift, weight) for shift, weight in used if weight > 0]
        return cls(
            periods=periods,
            shifts=tuple(each[0] for each in kept),
            weights=tuple(each[1] for each in kept),
        )

    def encoder(self) -> Encoder:
        return _Encoder(np.array(self.shifts), np.array(self.weights))

    def decoder(self) -> Decoder:
        return Inverse(_Solve(self._rates, self._gains))

    @property
    def _rates(self) -> Floats:
        return np.asarray(0.5 ** np.array(self.shifts, dtype=np.float64))

    @property
    def _gains(self) -> Floats:
        return np.asarray(np.array(self.weights, dtype=np.float64) * self._rates)

    def series(self) -> Floats:
        """Return c_0, c_1, ...: what a period counts in those after it."""
        lags = np.arange(self.periods - 1)
        total = np.zeros(self.periods)
        total[0] = 2.0**BITS
        for rate, gain in zip(self._rates, self._gains, strict=True):
            total[1:] += gain * np.exp(lags * np.log1p(-rate))
        return total

    def l2_squared(self, *, times: int, apart: int, cells: int, signed: bool) -> Fraction:
        total = float(np.square(_repeat(self.series(), times=times, apart=apart)).sum())
        exact = round_up(Fraction(total) * (1 + _SAFE), digits=15)
        rounding = 2 * len(self.shifts) * (isqrt(self.periods * times * cells) + 1)
        length = Fraction(isqrt(int(exact)) + 1) + rounding
        return length**2

    def deviations(self, publish: Publish) -> Floats:
        """Return deviations from the response of the decoder to one unit: everything is
        Toeplitz.
        """
        response = self._inverse()
        if publish != "daily":
            response = np.cumsum(response)
            if publish != "cumulative":
                response[publish:] -= response[:-publish].copy()
        return np.asarray(np.sqrt(np.cumsum(np.square(response))))

    def _inverse(self) -> Floats:
        """Return the series of C^-1.

        With s = 1 / x, c is 2^24 + sum of gain / (s - 1 + rate). It falls from one of its poles to
        the next, so between two neighbors, and below the last, it has one zero each; 1 / c has its
        poles there and is a sum of powers again.
        """
        rates, gains = self._rates, self._gains
        ends = np.append(rates, rates[0] + gains.sum() / 2.0**BITS + 1.0)
        ends.sort()

        def height(u: float) -> float:
            return float(2.0**BITS + (gains / (rates - u)).sum())

        places = np.array(
            [brentq(height, *_inside(*pair), xtol=1e-300, rtol=1e-14) for pair in pairwise(ends)]
        )
        slopes = np.array([(gains / np.square(rates - place)).sum() for place in places])
        lags = np.arange(self.periods - 1)
        total = np.zeros(self.periods)
        total[0] = 2.0**-BITS
        for place, slope in zip(places, slopes, strict=True):
            total[1:] -= (1.0 - place) ** lags / slope
        return total


def _repeat(series: Floats, *, times: int, apart: int) -> Floats:
    """Return C u of a person in periods 0, apart, 2 apart, ...: the series added to itself, by
    doubling.

    Only positive numbers are added, each in at most 2 log2(times) roundings.
    """
    total, count = series, 1
    for digit in bin(times)[3:]:
        total = _later(total, total, count * apart)
        count = 2 * count
        if digit == "1":
            total = _later(series, total, apart)
            count = count + 1
    return total


def _later(first: Floats, second: Floats, lag: int) -> Floats:
    """Add two series, the second `lag` periods later; drop what falls behind the horizon."""
    total = first.copy()
    total[lag:] += second[: max(0, len(second) - lag)]
    return total


def _inside(low: float, high: float) -> tuple[float, float]:
    """Return points just inside an interval: at its ends there are poles."""
    return low * (1 + 1e-13), high * (1 - 1e-13)


def _root_at(lags: npt.NDArray[np.int64]) -> Floats:
    """Return binomial(2j, j) / 4^j = Γ(j + 1/2) / (√π j!)."""
    j = lags.astype(np.float64)
    return np.asarray(np.exp(gammaln(j + 0.5) - gammaln(j + 1.0)) / np.sqrt(np.pi))


class _Encoder:
    """Each buffer as S = high * 2^shift + low, so that nothing is lost and nothing overflows."""

    def __init__(self, shifts: npt.NDArray[np.int64], weights: npt.NDArray[np.int64]) -> None:
        self._shifts = shifts[:, None]
        self._weights = weights[:, None]
        self._mask = (1 << self._shifts) - 1
        self._high: Any = 0
        self._low: Any = 0
        self._period = 0

    def add(self, values: IntegerArray) -> ExactStep:
        if not self._period:
            self._high = np.zeros((len(self._shifts), len(values)), dtype=np.int64)
            self._low = np.zeros_like(self._high)
        if (
            values.dtype == object
            or _far(values, 2**25)
            or _far(self._high, 2**61 // len(self._shifts))
        ):
            self._high, self._low, values = (
                each.astype(object) for each in (self._high, self._low, values)
            )
        row = (values << BITS) + self._high.sum(axis=0)
        moved = self._low - self._high + self._weights * values
        self._high = self._high + (moved >> self._shifts)
        self._low = moved & self._mask
        self._period += 1
        return ExactStep(
            values=row[None, :], draws=(self._period - 1,), signs=np.ones((1, 1), dtype=np.int64)
        )


def _far(values: IntegerArray, limit: int) -> bool:
    return bool(values.size and (values.max() > limit or values.min() < -limit))


class _Solve:
    def __init__(self, rates: Floats, gains: Floats) -> None:
        self._keep = (1.0 - rates)[:, None]
        self._gains = gains[:, None]
        self._held: Any = 0.0

    def __call__(self, noisy: Floats) -> Floats:
        held = self._held
        estimate = (noisy - (held.sum(axis=0) if np.ndim(held) else 0.0)) / 2.0**BITS
        self._held = self._keep * held + self._gains * estimate
        return np.asarray(estimate)
