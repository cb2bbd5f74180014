"""Half-widths of weighted sums of independent noises: x with P(|sum of factor * draw| <= x) >= 95 %
(S11).

If the sum has few possible values, convolve their masses; then x is the smallest possible.
Otherwise compute an upper bound in two ways, and take the smaller one.

moved: Move each part to the nearest point of a lattice, and convolve the masses there, on `_POINTS`
points.
    A part moves by at most half a step, independently of the others, and to both sides alike. So n
    parts together move by at most n / 2 steps, and with probability 1 - 2 exp(-2 c^2 / n) by at
    most c steps (Hoeffding). This is added.

continuous: Take the half-width of the continuous distribution, which has a closed form or is one
integral, and add something for the grid.
    Let T be the sum of the draws of a part. It is symmetric and falls to both sides, because each
    draw is log-concave. A continuous Laplace number is a discrete one plus the independent parts
    that the floors of two exponentials removed. A discrete Gaussian number plus an independent
    normal number of variance s^2 is, within one part in 10^16, normal with variance sigma^2 + s^2,
    if sigma^2 s^2 / (sigma^2 + s^2) is 2 (Poisson's summation of the masses). So there is a
    continuous C = T + R, with R independent and symmetric.
    One part: no 2h + 1 neighbors have more of T's mass than those in the middle, so P(|T| <= h) >=
    P(|C| <= h + 1/2).
    Several parts: with U uniform on (-1/2, 1/2), T + U is symmetric and unimodal, and more peaked
    than C + U. Then the sum over the parts is more peaked too (Birnbaum 1948). The U of all parts
    move the sum by at most half of the sum of all factors, and with probability
    1 - 2 exp(-2 c^2 / |factors|^2) by at most c. They are subtracted once on each side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from discreet.mechanisms.shapes import Noise

Floats = npt.NDArray[np.float64]
Tail = Callable[[Floats], Floats]
"""P(Z >= t) for any t > 0."""

CONFIDENCE: Final = 0.95
_POINTS = 1 << 16  # of a lattice: half a megabyte, and a millisecond to transform
_HALF = _POINTS // 2 - 1  # to each side of zero
_REST = 1e-10  # probability beyond a lattice
_RARE = 1e-9  # probability that parts are moved farther than is made good
_MORE = 4e-9  # asked for above the confidence: for all of these, and for rounded floats
# sigma^2 s^2 / (sigma^2 + s^2) above: the masses' ripple is then below 2 exp(-4 pi^2)
_SMOOTH = 2.0
_LEAST_SIGMA = 4.0  # of continuous noise: that of a smaller sigma is more peaked
_MOST_PARTS = 64  # that are transformed one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawSum:
    """The sum of several draws of one noise, times a factor."""

    noise: Noise  # of a threshold: that of the numbers it lets pass
    factor: Fraction
    draws: int = 1

    @property
    def gaussian(self) -> bool:
        return self.noise.gaussian

    @property
    def spread(self) -> float:
        return float(self.noise.spread)


def half_width(parts: Iterable[DrawSum], confidence: float = CONFIDENCE) -> Fraction:
    """Return a half-width: with at least this probability, the sum of independent parts is within
    it.
    """
    found: dict[tuple[Any, Fraction], DrawSum] = {}
    for part in parts:
        if part.factor and part.draws:
            size = abs(part.factor)
            before = found.get((part.noise, size))
            draws = part.draws + (before.draws if before else 0)
            found[part.noise, size] = replace(part, factor=size, draws=draws)
    return _half_width(
        tuple(sorted(found.values(), key=lambda each: (each.factor, each.spread))), confidence
    )


@lru_cache(maxsize=8192)
def _half_width(parts: tuple[DrawSum, ...], confidence: float) -> Fraction:
    if not parts:
        return Fraction(0)
    if len(parts) == 1 and parts[0].draws == 1:
        return parts[0].factor * int(parts[0].noise.margin(confidence))
    reach = _reach(parts)
    if not reach:
        return Fraction(0)
    common = math.lcm(*(part.factor.denominator for part in parts))
    # all values are multiples of it
    unit = Fraction(math.gcd(*(int(part.factor * common) for part in parts)), common)
    if reach <= _HALF * unit and len(parts) <= _MOST_PARTS:
        half = math.ceil(reach / float(unit))
        return unit * _within(parts, confidence, step=float(unit), half=half, draws=True)
    if len(parts) == 1:
        factor = parts[0].factor
        return factor * max(0, math.ceil(continuous(parts, confidence) / float(factor) - 0.5))
    step = _step(reach, len(parts))
    moved = _steps_moved(len(parts)) * step
    grid = _grid(parts)
    if len(parts) <= _MOST_PARTS and moved < grid and all(map(_listable, parts)):
        first = _within(parts, confidence, step=step, half=_HALF, draws=False)
        return Fraction((first * step + moved) * (1 + 1e-9))
    return Fraction(continuous(parts, confidence) + grid)


def as_float(half_width: Fraction) -> float:
    """Return a half-width as a float: a whole number unchanged, any other rounded up, because
    values are floats too.
    """
    return float(half_width) if half_width.denominator == 1 else float(half_width) * (1 + 1e-12)


def _steps_moved(parts: int) -> float:
    """Return a bound on the number of steps by which rounding moves the sum of so many parts."""
    return min(parts / 2, math.sqrt(parts * math.log(2 / _RARE) / 2))


def _step(reach: float, parts: int) -> float:
    """Return the spacing of the finest lattice that covers ±reach after each part was moved."""
    return reach / (_HALF - parts / 2)


def _reach(parts: tuple[DrawSum, ...]) -> float:
    """Return a distance that the sum exceeds with probability at most `_REST`, by Chernoff's bound.

    E exp(t Z) is at most exp(t^2 / 2) for both Gaussians of scale 1 and at most 1 / (1 - t^2) for
    both Laplaces, t < 1: of the discrete one it is 1 / (1 - r^2) with r = sinh(t / 2s) / sinh(1 /
    2s), which is at most t as sinh is convex.
    """
    rest = math.log(2 / _REST)
    widths = np.array([float(part.factor) * part.spread for part in parts])
    draws = np.array([part.draws for part in parts], dtype=np.float64)
    largest = float(widths.max())
    if not largest:  # below what floats can hold
        return 0.0
    gaussian = np.array([part.gaussian for part in parts])
    if gaussian.all():
        return math.sqrt(2 * rest * float(draws @ widths**2))
    t = np.linspace(0.01, 0.99, 99)[:, None] * (widths / largest)
    logs = np.where(gaussian, t**2 / 2, -np.log1p(-(t**2))) @ draws
    return float(((rest + logs) / np.linspace(0.01, 0.99, 99)).min()) * largest


def _listable(part: DrawSum) -> bool:
    """Return True if the tail of the sum of a part's draws can be computed: in closed form, or from
    a list.
    """
    if part.draws == 1 and not part.gaussian:
        return True
    return _reach((replace(part, factor=Fraction(1)),)) <= _HALF


def _tail(part: DrawSum) -> Tail:
    """Return P(Z >= t) of the sum Z of a part's draws."""
    spread = max(part.spread, 0.01)  # at which noise is other than zero once in 1e43
    if part.draws > 1:
        one = replace(part, factor=Fraction(1))
        half = math.ceil(_reach((one,)))
        total = _ring(_transform(_tail(replace(part, draws=1)), 1.0, half) ** part.draws)
        return _from_list(np.cumsum(total[half::-1])[::-1])
    if part.noise.reaches:
        return _truncate(part.noise)
    if not part.gaussian:
        return lambda t: np.asarray(np.exp(-np.ceil(t) / spread) / (1 + math.exp(-1 / spread)))
    # beyond 10 sigma is less than 1e-22
    mass = np.exp(-((np.arange(math.ceil(10 * spread) + 2) / spread) ** 2) / 2)
    return _from_list(np.cumsum(mass[::-1])[::-1] / (2 * mass.sum() - 1))


def _truncate(noise: Noise) -> Tail:
    scale = float(noise.spread)
    chances = noise.reaches

    def tail(t: Floats) -> Floats:
        total = np.zeros(np.shape(t))
        for reach, chance in chances:
            end = math.exp(-(reach + 1) / scale)
            beyond = np.maximum(np.exp(-np.ceil(t) / scale) - end, 0.0)
            total += float(chance) * beyond / (1 + math.exp(-1 / scale) - 2 * end)
        return total

    return tail


def _from_list(beyond: Floats) -> Tail:
    """Return a tail given by P(Z >= 0), P(Z >= 1), ...; after the last it is 0."""
    ended = np.append(beyond, 0.0)
    return lambda t: np.asarray(ended[np.minimum(np.ceil(t), len(beyond)).astype(np.int64)])


def _within(
    parts: tuple[DrawSum, ...], confidence: float, *, step: float, half: int, draws: bool
) -> int:
    """Return the smallest v for which the sum is within v steps, if each part, or each draw, is
    rounded to a step.

    The lattice is a ring: mass beyond its `half`, which is at most `_REST`, wraps around.
    """
    transform: Any = 1.0
    for part in parts:
        own = replace(part, draws=1) if draws else part
        transform = transform * _transform(_tail(own), step / float(part.factor), half) ** (
            part.draws if draws else 1
        )
    return _smallest(_ring(transform), half, confidence + _MORE)


def _smallest(total: Floats, half: int, wanted: float) -> int:
    inside = total[0] + 2 * np.concatenate(([0.0], np.cumsum(total[1 : half + 1])))
    return int(np.searchsorted(inside, wanted))


def _transform(tail: Tail, step: float, half: int) -> Floats:
    """Return the Fourier transform of the masses on a ring of `half` steps to each side. By
    symmetry it is real.
    """
    beyond = tail((np.arange(half + 1, dtype=np.float64) + 0.5) * step)
    around = np.zeros(2 ** math.ceil(math.log2(2 * half + 2)))
    around[0], around[1 : half + 1] = 1 - 2 * beyond[0], -np.diff(beyond)
    around[-1 : -half - 1 : -1] = around[1 : half + 1]
    return np.asarray(np.fft.rfft(around).real)


def _ring(transform: Floats) -> Floats:
    return np.asarray(np.fft.irfft(transform, 2 * (len(transform) - 1)))


# --- continuous noise -----------------------------------------------------------------------------


# added for the grid, times the length of the factors
_GRID = 2 * math.sqrt(math.log(2 / _RARE) / 2)


def normal_half_width(sigma: float) -> float:
    """Return the half-width of a sum of discrete Gaussian draws, to be multiplied by the length of
    their factors.
    """
    return _normal(CONFIDENCE + _MORE) * _smooth(sigma) + _GRID


def _grid(parts: tuple[DrawSum, ...]) -> float:
    factors = [float(part.factor) for part in parts]
    return min(math.fsum(factors), _GRID * math.hypot(*factors))


def continuous(parts: tuple[DrawSum, ...], confidence: float) -> float:
    """Return the half-width of the continuous sum, without the addition for the grid."""
    normal = [
        (float(part.factor) * _smooth(part.spread), part.draws) for part in parts if part.gaussian
    ]
    laplace = tuple(
        (float(part.factor) * part.spread, part.draws) for part in parts if not part.gaussian
    )
    deviation = math.sqrt(math.fsum(draws * width**2 for width, draws in normal))
    return _invert(deviation, laplace, confidence)


def _smooth(sigma: float) -> float:
    """Return the deviation of the normal number that discrete Gaussian noise becomes by adding
    independent normal noise.
    """
    square = max(sigma, _LEAST_SIGMA) ** 2
    return math.sqrt(square + _SMOOTH * square / (square - _SMOOTH))


@lru_cache(maxsize=8192)
def _invert(deviation: float, laplace: tuple[tuple[float, int], ...], confidence: float) -> float:
    """Return the half-width of a normal number plus Laplace ones (scale, how many), by their
    characteristic function.

    P(|S| <= x) = 2/pi times the integral of sin(x u) / u times the product of 1 / (1 + (scale
    u)^2). It is summed at points h apart, which is off by no more than P(|S| > 2 pi/h - x). Of few
    numbers the product falls too slowly.
    """
    wanted = confidence + _MORE
    if not laplace:
        return _normal(wanted) * deviation
    if not deviation and sum(count for _, count in laplace) == 1:
        return -math.log(1 - wanted) * laplace[0][0]
    total = math.sqrt(deviation**2 + math.fsum(2 * count * scale**2 for scale, count in laplace))
    if not total:  # below what floats can hold
        return 0.0
    step = 0.06  # in deviations: repeats after 100 of them, where nothing is left
    u = (np.arange(1, 4_000) - 0.5) * step
    logs = -((deviation / total * u) ** 2) / 2
    for scale, count in laplace:
        logs = logs - count * np.log1p((scale / total * u) ** 2)
    if logs[-1] > -20.0:
        return (
            _lay_out(
                deviation / total, tuple((scale / total, count) for scale, count in laplace), wanted
            )
            * total
        )
    weights = np.exp(logs) / u * (2 * step / math.pi)
    low, high = 0.5, 12.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if weights @ np.sin(u * middle) < wanted else (low, middle)
    return high * total * (1 + 1e-9)


def _lay_out(deviation: float, laplace: tuple[tuple[float, int], ...], wanted: float) -> float:
    """Return the same by masses on a lattice, to whose points each number is moved."""
    reach = 30.0  # in deviations of the sum: beyond it is less than 1e-17
    count = sum(count for _, count in laplace) + bool(deviation)
    step = _step(reach, count)
    transform: Any = 1.0
    if deviation:
        transform = np.exp(
            -((2 * math.pi * np.arange(_POINTS // 2 + 1) / _POINTS / step * deviation) ** 2) / 2
        )
    for scale, times in laplace:
        transform = transform * _transform(_laplace_tail(scale), step, _HALF) ** times
    return (_smallest(_ring(transform), _HALF, wanted) + _steps_moved(count)) * step * (1 + 1e-9)


def _laplace_tail(scale: float) -> Tail:
    return lambda t: np.asarray(np.exp(-t / scale) / 2)


@lru_cache(maxsize=64)
def _normal(confidence: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + confidence) / 2) * (1 + 1e-12)
