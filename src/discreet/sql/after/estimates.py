"""Compute aggregates and their margins from noisy numbers: post-processing, which costs nothing.

An estimate stands with the statistic that it is computed of (`sql.plan.Statistic`). `components`
are the noisy numbers of that statistic, one integer array per form, one entry per group. Margins
are half-widths with a coverage of at least 95 % (S11).
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

# integers, also as Python objects where they pass 64 bits
Components = tuple[npt.NDArray[Any], ...]
Floats = npt.NDArray[np.float64]


class NoisyColumn(Protocol):
    """A column of the noisy table."""

    def values(self, components: Components) -> pa.Array:
        """Return the estimates, one per group."""
        ...

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return their half-widths at 95 %, one per group."""
        ...

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the half-width that can be told before any data is read; None where it needs
        `assuming` so many rows.
        """
        ...


def redraws(groups: int) -> int:
    """Return how often to draw noise again: enough to see how an answer bends, fewer for very many
    groups.
    """
    return max(60, min(600, 600_000 // max(groups, 1)))


def number_type(step: Fraction, largest: int) -> pa.DataType:
    """Return the Arrow type that shows multiples of a step: integer, decimal, or float where
    decimals do not end or fit.
    """
    largest = max(largest, 1)  # a step beyond 64 bits is, even where all there is are zeros
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
    return (
        max((abs(int(end)) for end in (numbers.min(), numbers.max())), default=0)
        if len(numbers)
        else 0
    )


def _decimals(units: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Return decimals from their digits as 64-bit integers, of which the upper half is the sign."""
    words = np.stack([units, units >> 63], axis=1)
    return pa.Array.from_buffers(
        kind, len(units), [None, pa.py_buffer(np.ascontiguousarray(words))]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """COUNT and SUM: a combination of the noisy numbers, rounded to whole units of `step`."""

    factors: tuple[Fraction, ...]
    step: Fraction

    @property
    def rounds(self) -> bool:
        """Return True if anything is rounded: one noisy number by itself is whole."""
        return any(factor.denominator > 1 for factor in self.factors)

    def values(self, components: Components) -> pa.Array:
        units = self._units(components)
        largest = max(abs(int(units.min())), abs(int(units.max()))) if len(units) else 0
        # with room for a few that are added up after noise
        kind = number_type(self.step, 32 * largest)
        # Privacy: a factor that does not fit counts even where all numbers are zero, or only those
        # would fail.
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
    """Return half-widths from answers with redrawn noise; infinite where noise may halve what is
    divided by.

    `function` gives answers, and what must not be halved, from parts along the first axis. There
    answers are no straight function of noise, and the quantiles of their distances are not those of
    the errors: nothing is known but what is possible at all. No answer is kept inside that here:
    the answer that is told is the nearest possible number to the one in the middle, and so no
    farther from the truth, which is possible.
    """
    times, size = redraws(parts.shape[1]), len(parts)
    noises = [noise] * size
    drawn = redrawn(noises, times)
    center, *divisors = function(parts)
    moved, *lower = function(
        parts[:, None, :] - np.array([each.astype(np.float64) for each in drawn])[:, :, None]
    )
    step = part(noise).spread
    around = [
        function(parts[:, None, :] + sign * step * np.eye(size)[:, :, None])[0] for sign in (1, -1)
    ]
    found = simulate(
        np.abs(moved - center[None, :]), (around[0] - around[1]) / (2 * step), noises, drawn
    )
    straight = [
        (low > divisor / 2).all(axis=0) for low, divisor in zip(lower, divisors, strict=True)
    ]
    return np.where(np.logical_and.reduce(straight) & np.isfinite(found), found, np.inf)


def possible(answer: Floats, within: Floats, *, least: float, most: float) -> tuple[Floats, Floats]:
    """Return the ends of what is within reach of an answer and possible."""
    return np.maximum(answer - within, least), np.minimum(answer + within, most)


def sample_factor(count: Floats) -> Floats:
    """Return n / (n - 1), by which a sample's variance is larger; at most 2."""
    return np.minimum(np.maximum(count, 1.0) / np.maximum(count - 1, 0.5), 2.0)


def raw_moments(parts: Floats, count: Floats, *, width: int, most: int) -> list[Floats]:
    """Return the mean of u, u², ... up to a power, of the places u in [0, 1] that rows have in
    their range.

    Parts of degree d are along the first axis, from the low end: u^k is made of them with
    binomial(i, k) / binomial(d, k).
    """
    degree = len(parts) - 1
    whole = np.maximum(count, 1.0)
    found = []
    for power in range(1, most + 1):
        weights = [
            math.comb(place, power) / math.comb(degree, power) for place in range(degree + 1)
        ]
        found.append(np.tensordot(np.array(weights), parts, 1) / float(width**degree) / whole)
    return found


def floats(components: Components) -> Floats:
    """Return noisy numbers as floats, those of one form after those of another."""
    return np.stack([numbers.astype(np.float64) for numbers in components])
