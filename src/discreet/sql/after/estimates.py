"""Estimates: aggregates and their margins, computed from noisy numbers. It costs nothing.

A plan has each estimate beside its statistic (`sql.plan.Statistic`). `components` are the noisy
numbers of that statistic: one integer array per form, with one entry per group. Margins are
half-widths with a coverage of at least 95 % (S11).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import arrow
from discreet.mechanisms.running import Running
from discreet.mechanisms.tails.simulate import Noise, part, redrawn, simulate
from discreet.sql.after.widths.margins import half_width

# arrays of integers; of Python objects if the integers do not fit into 64 bits
Components = tuple[npt.NDArray[Any], ...]
Floats = npt.NDArray[np.float64]
# the share of a divisor that noise may take before farther answers are told of
_MOST = 1 / 3


class NoisyColumn(Protocol):
    """A column of the noisy table."""

    def values(self, components: Components) -> pa.Array:
        """Return the estimates, one per group."""
        ...

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return their half-widths at 95 %, one per group."""
        ...

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the half-width that we know before we read any data.

        If it depends on the number of rows, it is that for `assuming` rows, and None without.
        """
        ...


def redraws(groups: int) -> int:
    """Return how many times to redraw noise: up to 600, fewer if there are very many groups."""
    return max(60, min(600, 600_000 // max(groups, 1)))


def number_type(step: Fraction, largest: int) -> pa.DataType:
    """Return the Arrow type for multiples of a step: integer, or decimal, or float if decimals
    cannot write them.
    """
    # Zeros have the type of one step: a step over 64 bits is no integer.
    largest = max(largest, 1)
    if step.denominator == 1 and largest * step.numerator < 2**63:
        return pa.int64()
    digits = next((places for places in range(19) if (step * 10**places).denominator == 1), None)
    fits = digits is not None and largest * step * 10**digits < 10**38
    return pa.decimal128(38, digits) if fits else pa.float64()


def as_written(value: Fraction, kind: pa.DataType) -> int | float | Decimal:
    if pa.types.is_integer(kind):
        return int(value)
    if pa.types.is_floating(kind):
        return float(value)
    return Decimal(int(value * 10**kind.scale)).scaleb(-kind.scale)


def _largest(numbers: npt.NDArray[Any]) -> int:
    if not len(numbers):
        return 0
    return max(abs(int(numbers.min())), abs(int(numbers.max())))


def _decimals(units: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Return decimals with these digits: a decimal's lower 64 bits, and its sign as the upper 64."""
    words = np.ascontiguousarray(np.stack([units, units >> 63], axis=1))
    return pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(words)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """The estimate of COUNT and SUM: a linear combination of noisy numbers, rounded to units of
    `step`.
    """

    factors: tuple[Fraction, ...]
    step: Fraction

    @property
    def rounds(self) -> bool:
        """Return True if `values` rounds; a combination with whole factors is whole already."""
        return any(factor.denominator > 1 for factor in self.factors)

    def values(self, components: Components) -> pa.Array:
        units = self._units(components)
        largest = max(abs(int(units.min())), abs(int(units.max()))) if len(units) else 0
        # leave room: the SQL after noise may add up some of them
        kind = number_type(self.step, 32 * largest)
        # Privacy: test the factor even if all numbers are zero: otherwise it would fail for some
        # data only.
        scale = kind.scale if pa.types.is_decimal(kind) else 0
        times = int(self.step * 10**scale)
        if units.dtype != object and max(largest, 1) * times < 2**63:
            if pa.types.is_integer(kind):
                return arrow.array(units * times, kind)
            if pa.types.is_decimal(kind):
                return _decimals(units * times, kind)
        return arrow.array([as_written(int(unit) * self.step, kind) for unit in units], kind)

    def _units(self, components: Components) -> npt.NDArray[Any]:
        scale = math.lcm(*(factor.denominator for factor in self.factors))
        whole = [int(factor * scale) for factor in self.factors]
        if scale == 1 and whole.count(0) == len(whole) - 1 and 1 in whole:
            return components[whole.index(1)]
        parts = zip(whole, components, strict=True)
        largest = sum(abs(factor) * max(1, _largest(numbers)) for factor, numbers in parts)
        kind = np.int64 if 2 * largest + scale < 2**62 else object
        total: Any = 0
        for factor, numbers in zip(whole, components, strict=True):
            total = total + numbers.astype(kind) * factor
        return np.asarray((2 * total + scale) // (2 * scale))

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        if isinstance(mechanism, Running):
            return mechanism.of_cells(self.factors, len(components[0])) * float(self.step)
        return np.full(len(components[0]), self.margin(mechanism, assuming=None))

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float:
        return half_width(mechanism, self.factors) * float(self.step)


def reach(function: Callable[[Floats], tuple[Floats, ...]], parts: Floats, noise: Noise) -> Floats:
    """Return half-widths from answers with redrawn noise; infinite where noise may halve a divisor.

    `function` returns answers and their divisors, from parts along the first axis. If noise may
    halve a divisor, the answer is no straight function of noise. Then the quantiles of its distances
    are not those of its errors, and we know only which answers are possible at all. This function
    does not clamp answers to the possible ones. The caller may: the truth is possible, so the
    nearest possible number is no farther from it.

    Some answers have a margin only because noise made their divisor large. So where noise may take
    `_MOST` of it, the half-width is the largest redrawn distance, not the 95 % quantile.
    """
    times = redraws(parts.shape[1])
    size = len(parts)
    noises = [noise] * size
    draws = redrawn(noises, times)
    center, *divisors = function(parts)
    shifts = np.array([draw.astype(np.float64) for draw in draws])
    moved, *lower = function(parts[:, None, :] - shifts[:, :, None])
    step = part(noise).spread
    one = np.eye(size)[:, :, None]
    up = function(parts[:, None, :] + 1 * step * one)[0]
    down = function(parts[:, None, :] + -1 * step * one)[0]
    slopes = (up - down) / (2 * step)
    distance = np.abs(moved - center[None, :])
    widths = simulate(distance, slopes, noises, draws)
    least = [low.min(axis=0) for low in lower]
    safe = _above(1 - _MOST, least, divisors)
    widths = np.where(safe, widths, np.maximum(widths, distance.max(axis=0)))
    return np.where(_above(0.5, least, divisors) & np.isfinite(widths), widths, np.inf)


def _above(share: float, least: list[Floats], divisors: list[Floats]) -> npt.NDArray[np.bool_]:
    """Return where all the least redrawn divisors are above this share of the divisors."""
    pairs = zip(least, divisors, strict=True)
    above = [low > share * divisor for low, divisor in pairs]
    return np.asarray(np.logical_and.reduce(above))


def possible(answer: Floats, within: Floats, *, least: float, most: float) -> tuple[Floats, Floats]:
    """Return the ends of the possible numbers that are `within` this distance of an answer."""
    return np.maximum(answer - within, least), np.minimum(answer + within, most)


def sample_factor(count: Floats) -> Floats:
    """Return n / (n - 1), the ratio of a sample's variance to the population's; at most 2."""
    return np.minimum(np.maximum(count, 1.0) / np.maximum(count - 1, 0.5), 2.0)


def raw_moments(parts: Floats, count: Floats, *, width: int, most: int) -> list[Floats]:
    """Return the means of u, u², ... up to a power; u in [0, 1] is a row's place in its range.

    Parts of degree d are along the first axis, from the low end: u^k is their sum with the weights
    binomial(i, k) / binomial(d, k).
    """
    degree = len(parts) - 1
    rows = np.maximum(count, 1.0)
    moments = []
    for power in range(1, most + 1):
        ways = math.comb(degree, power)
        weights = np.array([math.comb(place, power) / ways for place in range(degree + 1)])
        moments.append(np.tensordot(weights, parts, 1) / float(width**degree) / rows)
    return moments


def floats(components: Components) -> Floats:
    """Return noisy numbers as floats; the first axis is the form."""
    return np.stack([numbers.astype(np.float64) for numbers in components])
