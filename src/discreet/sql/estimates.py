"""From noisy numbers to an aggregate and its margin: post-processing, which costs nothing.

An estimate is a value: which measurement it reads, and how. `components` are the noisy numbers of that measurement,
one integer array per form, one entry per group. Margins are half-widths with a coverage of at least 95 % (S11).
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
from discreet.mechanisms.simulate import Noise, part, redrawn, simulated
from discreet.sql.margins import half_width, ratio_quantile

Components = tuple[npt.NDArray[Any], ...]  # integers, also as Python objects where they pass 64 bits
Floats = npt.NDArray[np.float64]


class Estimate(Protocol):
    """A column of the noisy table."""

    @property
    def measurement(self) -> int: ...

    def values(self, components: Components) -> pa.Array:
        """The estimates, one per group."""
        ...

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Their half-widths at 95 %, one per group."""
        ...

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """The half-width that can be told before any data is read; None where it needs `assuming` so many rows."""
        ...


def redraws(groups: int) -> int:
    """How often noise is drawn again: enough to see how an answer bends, fewer where there are very many groups."""
    return max(60, min(600, 600_000 // max(groups, 1)))


def number_type(step: Fraction, largest: int) -> pa.DataType:
    """The Arrow type that shows multiples of a step: integer, decimal, or float where decimals do not end or fit."""
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
    return max((abs(int(end)) for end in (numbers.min(), numbers.max())), default=0) if len(numbers) else 0


def _decimals(units: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Decimals from their digits as 64-bit integers, of which the upper half is the sign."""
    words = np.stack([units, units >> 63], axis=1)
    return pa.Array.from_buffers(kind, len(units), [None, pa.py_buffer(np.ascontiguousarray(words))])


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """COUNT and SUM: a combination of the noisy numbers, rounded to whole units of `step`."""

    measurement: int
    factors: tuple[Fraction, ...]
    step: Fraction

    @property
    def rounds(self) -> bool:
        """Whether anything is rounded: one noisy number by itself is whole."""
        return any(factor.denominator > 1 for factor in self.factors)

    def values(self, components: Components) -> pa.Array:
        units = self._units(components)
        largest = max(abs(int(units.min())), abs(int(units.max()))) if len(units) else 0
        kind = number_type(self.step, 32 * largest)  # with room for a few that are added up after noise
        if pa.types.is_integer(kind) and units.dtype != object:
            return arrow.array(units * self.step.numerator, kind)
        if pa.types.is_decimal(kind) and units.dtype != object:
            times = int(self.step * 10**kind.scale)
            if largest * times < 2**63:
                return _decimals(units * times, kind)
        return arrow.array([as_written(int(unit) * self.step, kind) for unit in units], kind)

    def _units(self, components: Components) -> npt.NDArray[Any]:
        scale = math.lcm(*(factor.denominator for factor in self.factors))
        whole = [int(factor * scale) for factor in self.factors]
        if scale == 1 and whole.count(0) == len(whole) - 1 and 1 in whole:
            return components[whole.index(1)]
        largest = sum(abs(factor) * _largest(numbers) for factor, numbers in zip(whole, components, strict=True))
        kind = np.int64 if 2 * largest + scale < 2**62 else object
        total: Any = 0
        for factor, numbers in zip(whole, components, strict=True):
            total = total + numbers.astype(kind) * factor
        return np.asarray((2 * total + scale) // (2 * scale))

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        return np.full(len(components[0]), self.margin(mechanism, assuming=None))

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float:
        return half_width(mechanism, self.factors) * float(self.step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """AVG: from the sums A of x - lo and B of hi - x over the rows that have x, all in units of `step`.

    mean = lo + width * A / (A + B), kept inside [lo, hi]. A group with a noisy count of zero or less has no mean.
    With degree 2, A and B are put together from the three parts that a variance measures.
    """

    measurement: int
    lo: int
    width: int
    step: Fraction
    degree: int

    def values(self, components: Components) -> pa.Array:
        a, b = self._sides(tuple(numbers.astype(np.float64) for numbers in components))
        return arrow.array((self.lo + self.width * _share(a, b)) * float(self.step), mask=a + b <= 0)

    def _sides(self, parts: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        if self.degree == 1:
            return parts[0], parts[1]
        return (parts[1] / 2 + parts[2]) / self.width, (parts[0] + parts[1] / 2) / self.width

    def _place(self, parts: Floats) -> tuple[Floats, Floats]:
        """Where the mean stands in the range, possible or not, and the noisy count."""
        a, b = self._sides(tuple(parts))
        return a / np.maximum(a + b, 1.0), a + b

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        parts = tuple(numbers.astype(np.float64) for numbers in components)
        a, b = self._sides(parts)
        reach = _fieller(a, b, mechanism) if self.degree == 1 else _reach(self._place, np.stack(parts[:3]), mechanism)
        farthest = np.maximum(_share(a, b), 1 - _share(a, b))
        return np.where(a + b > 0, np.minimum(reach, farthest), farthest) * self.width * float(self.step)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        # Half of the rows at each end, or all of them at one: the wider of the two.
        total = float(assuming) * self.width**self.degree
        cases = [(0.5, 0.5), (1.0, 0.0)] if self.degree == 1 else [(0.5, 0.0, 0.5), (1.0, 0.0, 0.0)]
        return max(
            float(self.margins(tuple(np.array([total * share]) for share in case), mechanism)[0]) for case in cases
        )


def _reach(function: Callable[[Floats], tuple[Floats, ...]], parts: Floats, noise: Noise) -> Floats:
    """Half-widths from answers with redrawn noise; infinite where noise may halve what is divided by.

    `function` gives answers, and what must not be halved, from parts along the first axis. There answers are no
    straight function of noise, and the quantiles of their distances are not those of the errors: nothing is known but
    what is possible at all. No answer is kept inside that here: the answer that is told is the nearest possible number
    to the one in the middle, and so no farther from the truth, which is possible.
    """
    times, size = redraws(parts.shape[1]), len(parts)
    noises = [noise] * size
    drawn = redrawn(noises, times)
    center, *divisors = function(parts)
    moved, *lower = function(parts[:, None, :] - np.array([each.astype(np.float64) for each in drawn])[:, :, None])
    step = part(noise).spread
    around = [function(parts[:, None, :] + sign * step * np.eye(size)[:, :, None])[0] for sign in (1, -1)]
    reach = simulated(np.abs(moved - center[None, :]), (around[0] - around[1]) / (2 * step), noises, drawn)
    straight = [(low > divisor / 2).all(axis=0) for low, divisor in zip(lower, divisors, strict=True)]
    return np.where(np.logical_and.reduce(straight) & np.isfinite(reach), reach, np.inf)


def _possible(answer: Floats, reach: Floats, *, least: float, most: float) -> tuple[Floats, Floats]:
    """The ends of what is within reach of an answer and possible."""
    return np.maximum(answer - reach, least), np.minimum(answer + reach, most)


def _share(a: Floats, b: Floats) -> Floats:
    total = a + b
    return np.clip(np.divide(a, total, out=np.full_like(a, 0.5), where=total > 0), 0.0, 1.0)


def _sampled(count: Floats) -> Floats:
    """n / (n - 1), which is at most 2."""
    return np.minimum(np.maximum(count, 1.0) / np.maximum(count - 1, 0.5), 2.0)


def _fieller(a: Floats, b: Floats, mechanism: Noise) -> Floats:
    """Half-width of Fieller's interval for p = A / (A + B): |A (1 - p) - B p| within the noise it can have."""
    share, total = _share(a, b), np.maximum(a + b, 1.0)  # noise is 1 or more, so below that the reach is everything
    farthest = np.zeros_like(a)
    for side in (-1.0, 1.0):
        reach = np.zeros_like(a)
        for _ in range(6):
            edge = np.clip(share + side * reach, 0.0, 1.0)
            reach = np.maximum(np.minimum(ratio_quantile(mechanism, edge) / total, 1.0), reach)
        farthest = np.maximum(farthest, reach)
    return farthest


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """VARIANCE and STDDEV from the sums of (W - v)², 2 v (W - v) and v², with v = x - lo in units and W the width.

    The three make W² in every row, so their noise costs no more than that of one of them.
    """

    measurement: int
    lo: int
    width: int
    step: Fraction
    sample: bool
    root: bool

    def values(self, components: Components) -> pa.Array:
        found, count = self._spread(np.stack([numbers.astype(np.float64) for numbers in components[:3]]))
        variance = self._nearest(found, count)
        return arrow.array(np.sqrt(variance) if self.root else variance, mask=count <= (1.5 if self.sample else 0))

    def _spread(self, sums: Floats) -> tuple[Floats, Floats]:
        """The variance in the column's own unit, possible or not, and the noisy count; sums along the first axis."""
        low, middle, high = sums
        count = (low + middle + high) / self.width**2
        safe = np.maximum(count, 1.0)
        mean = (middle / 2 + high) / self.width**2 / safe
        variance = high / self.width**2 / safe - mean**2
        return variance * (_sampled(count) if self.sample else 1.0) * self._unit, count

    def _nearest(self, variance: Floats, count: Floats) -> Floats:
        """The nearest that so many rows can have: no more than with half of them at each end."""
        return np.clip(variance, 0.0, (_sampled(count) if self.sample else 1.0) * self._unit / 4)

    @property
    def _unit(self) -> float:
        return (self.width * float(self.step)) ** 2

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """By redrawing the declared noise around the noisy sums (S11); of a root, from the ends of its square."""
        sums = np.stack([numbers.astype(np.float64) for numbers in components[:3]])
        center, count = self._spread(sums)
        reach = np.where(count > 2, _reach(self._spread, sums, mechanism), np.inf)
        answer = self._nearest(center, count)
        ends = _possible(answer, reach, least=0.0, most=self._unit / (2 if self.sample else 4))
        low, middle, high = (np.sqrt(each) if self.root else each for each in (ends[0], answer, ends[1]))
        return np.maximum(middle - low, high - middle)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        count = np.array([float(assuming)])
        shares = (0.5, 0.0, 0.5)  # the widest spread there is: half at each end
        sums = tuple(np.round(count * share * self.width**2) for share in shares)
        return float(self.margins(sums, mechanism)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """COVAR and CORR from products of parts of two columns: component i * (degree + 1) + j goes with parts i and j.

    With u, w the places of x, y in their ranges: the mean of u is that of i / degree, of u w that of (i j) / degree²;
    with degree 2, the mean of u² is the share of i = 2.
    """

    measurement: int
    degree: int
    widths: tuple[int, int]
    steps: tuple[Fraction, Fraction]
    sample: bool
    correlation: bool

    def values(self, components: Components) -> pa.Array:
        found, count, _ = self._joint(np.stack([numbers.astype(np.float64) for numbers in components]))
        return arrow.array(self._nearest(found, count), mask=(count <= 1.5) | ~np.isfinite(found))

    def _joint(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """The covariance or correlation, possible or not, the noisy count, and what it was divided by.

        Parts are along the first axis.
        """
        degree = self.degree
        total = parts.sum(axis=0)
        count = total / float((self.widths[0] * self.widths[1]) ** degree)
        shares = np.divide(parts, total, out=np.full_like(parts, np.nan), where=total > 0)
        table = shares.reshape((degree + 1, degree + 1, *shares.shape[1:]))
        place = np.arange(degree + 1) / degree
        mean_x, mean_y = np.tensordot(place, table.sum(axis=1), 1), np.tensordot(place, table.sum(axis=0), 1)
        product = np.tensordot(place, np.tensordot(place, table, (0, 0)), (0, 0))
        covariance = product - mean_x * mean_y
        if self.correlation:
            spread_x = np.clip(table[2].sum(axis=0) - mean_x**2, 0, 0.25)
            spread_y = np.clip(table[:, 2].sum(axis=0) - mean_y**2, 0, 0.25)
            root = np.sqrt(spread_x * spread_y)
            return np.divide(covariance, root, out=np.full_like(root, np.nan), where=root > 0), count, count * root
        return covariance * self._unit * (_sampled(count) if self.sample else 1.0), count, count

    def _nearest(self, found: Floats, count: Floats) -> Floats:
        """The nearest that so many rows can have."""
        if self.correlation:
            return np.clip(found, -1.0, 1.0)
        most = (_sampled(count) if self.sample else 1.0) * self._unit / 4
        return np.clip(found, -most, most)

    @property
    def _unit(self) -> float:
        return float(self.steps[0] * self.steps[1]) * self.widths[0] * self.widths[1]

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """By redrawing the declared noise around the noisy sums (S11)."""
        parts = np.stack([numbers.astype(np.float64) for numbers in components])
        center, count, _ = self._joint(parts)
        reach = np.where(count > 2, _reach(self._joint, parts, mechanism), np.inf)
        most = 1.0 if self.correlation else self._unit / (2 if self.sample else 4)
        answer = np.nan_to_num(self._nearest(center, count))
        low, high = _possible(answer, np.nan_to_num(reach, nan=np.inf), least=-most, most=most)
        return np.maximum(answer - low, high - answer)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        size = (self.degree + 1) ** 2
        even = float(assuming) * float((self.widths[0] * self.widths[1]) ** self.degree) / size
        return float(self.margins(tuple(np.array([even]) for _ in range(size)), mechanism)[0])
