"""Half-widths with a coverage of at least 95 %, for combinations of several noisy numbers (S11).

Their masses are convolved on a lattice of at most `_POINTS` points, whatever the scale and the factors: exactly where
the combination has so few values, and else with each noisy number moved to the nearest point, by half a step at most,
which the half-width makes good (`_half_width`).

Noise that is wider still uses the continuous distribution with an allowance for the grid: a discrete Laplace variable
is floor(E) - floor(E') for exponential E, E', so it is within 1 of a continuous one; the discrete Gaussian's tails
differ from the continuous one's by less than that.

Of a number that was added up from c noisy ones (`Several`), the sum T of c discrete draws is a continuous sum less what
the floors took away, which is independent of T and symmetric. T is symmetric and falls to both sides, so no interval of
2h + 1 whole numbers holds more of it than the middle one: |T| <= h is no less likely than |continuous sum| <= h + 1/2.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.mechanisms import Mechanism
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.simulate import Noise, Several

Floats = npt.NDArray[np.float64]
Tail = Callable[[Floats], Floats]  # P(Z >= t) for any t > 0


class _Confidence(NamedTuple):
    exact: float
    simulated: float  # a little more, for answers that are not quite straight functions of the noise


CONFIDENCE: Final = _Confidence(exact=0.95, simulated=0.965)
_POINTS = 1 << 16  # of a lattice: half a megabyte, and a millisecond to transform
_HALF = _POINTS // 2 - 1  # to each side of zero
_REST = 1e-10  # probability beyond a lattice
_MORE = 1e-9  # asked for above 95 %: for the rest of the sum, for those of its parts, and for rounded floats


def half_width(noise: Any, factors: tuple[Fraction, ...]) -> int:
    """Smallest h such that the rounded error of sum(factor * noise) is at most h with 95 %, in whole units."""
    mechanism, draws = _drawn(noise)
    used = tuple(sorted(abs(factor) for factor in factors if factor))
    if not used:
        return 0
    if len(used) == 1 and draws == 1:  # also of a threshold's noise
        return _rounded(used[0] * int(mechanism.margin(CONFIDENCE.exact)), used[0].denominator)
    gaussian = isinstance(mechanism, DiscreteGaussian)
    spread = max(_spread(mechanism), 0.01)  # at which noise is other than zero once in 1e43
    if len(used) == 1:
        return _rounded(used[0] * _half_width(gaussian, spread, (Fraction(1),), draws), used[0].denominator)
    return _half_width(gaussian, spread, used, draws)


def _drawn(noise: Any) -> tuple[Any, int]:
    return (noise.noise, noise.draws) if isinstance(noise, Several) else (noise, 1)


def _rounded(most: Fraction, denominator: int) -> int:
    """Smallest h such that an error of at most `most`, a multiple of 1 / denominator, is below h + 1/2."""
    return max(0, math.ceil(most - Fraction(1, 2) + Fraction(1, 2 * denominator)))


@lru_cache(maxsize=1024)
def _half_width(gaussian: bool, spread: float, factors: tuple[Fraction, ...], draws: int) -> int:
    plain = tuple(float(factor) for factor in factors)
    reach = _reach(gaussian, plain, draws) * spread
    common = math.lcm(*(factor.denominator for factor in factors))
    unit = Fraction(math.gcd(*(int(factor * common) for factor in factors)), common)  # all values are multiples of it
    if reach <= _HALF * unit:
        first = _within(_tail(gaussian, spread, draws), plain, step=float(unit), half=math.ceil(reach / float(unit)))
        return _rounded(first * unit, common)
    # Of one number nothing is added for the grid (see above); of several, each is first spread over its unit.
    grid = (1.0 if draws == 1 else 1.5 if len(factors) > 1 else 0.0) * sum(plain)
    step = _step(reach, len(factors))
    if len(factors) / 2 * step < grid and _reach(gaussian, (1.0,), draws) * spread <= _HALF:
        first = _within(_tail(gaussian, spread, draws), plain, step=step, half=_HALF)
        most = (first + len(factors) / 2) * step * (1 + 1e-9)
    else:
        most = several_quantile(gaussian, plain, draws) * spread + grid
    return max(0, math.ceil(most - 0.5))


def _step(reach: float, numbers: int) -> float:
    """Of the finest lattice that holds what is within reach, also when so many numbers were moved by half a step."""
    return reach / (_HALF - numbers / 2)


def _reach(gaussian: bool, factors: tuple[float, ...], draws: int) -> float:
    """Beyond which sum(factor * noise) of scale 1 is with a probability of at most `_REST`, by Chernoff's bound.

    E exp(t Z) is at most exp(t^2 / 2) for both Gaussians and at most 1 / (1 - t^2) for both Laplaces, t < 1: of the
    discrete one it is 1 / (1 - r^2) with r = sinh(t / 2s) / sinh(1 / 2s), which is at most t as sinh is convex.
    """
    rest = math.log(2 / _REST)
    if gaussian:
        return math.hypot(*factors) * math.sqrt(2 * draws * rest)
    largest = max(factors)
    t = np.linspace(0.01, 0.99, 99)
    logs = -sum(np.log1p(-((factor / largest * t) ** 2)) for factor in factors)
    return float(((rest + draws * logs) / t).min()) * largest


def _tail(gaussian: bool, spread: float, draws: int) -> Tail:
    """Of the sum of so many draws of discrete noise."""
    if draws > 1:
        half = math.ceil(_reach(gaussian, (1.0,), draws) * spread)
        total = _ring(_transform(_tail(gaussian, spread, 1), 1.0, half) ** draws)
        return _listed(np.cumsum(total[half::-1])[::-1])
    if not gaussian:
        return lambda t: np.asarray(np.exp(-np.ceil(t) / spread) / (1 + math.exp(-1 / spread)))
    mass = np.exp(-((np.arange(math.ceil(10 * spread) + 2) / spread) ** 2) / 2)  # beyond 10 sigma is less than 1e-22
    return _listed(np.cumsum(mass[::-1])[::-1] / (2 * mass.sum() - 1))


def _listed(beyond: Floats) -> Tail:
    """From P(Z >= 0), P(Z >= 1), ..., after which there is nothing."""
    ended = np.append(beyond, 0.0)
    return lambda t: np.asarray(ended[np.minimum(np.ceil(t), len(beyond)).astype(np.int64)])


def _within(tail: Tail, factors: tuple[float, ...], *, step: float, half: int) -> int:
    """The smallest v for which the sum is within v steps with 95 %, when each number is moved to the nearest of these.

    The lattice is a ring, round which what is beyond its `half` comes back inside: no more than `_REST`.
    """
    transform: Any = 1.0
    for factor, times in Counter(factors).items():
        transform = transform * _transform(tail, step / factor, half) ** times
    total = _ring(transform)
    inside = total[0] + 2 * np.concatenate(([0.0], np.cumsum(total[1 : half + 1])))
    return int(np.searchsorted(inside, CONFIDENCE.exact + _MORE))


def _transform(tail: Tail, step: float, half: int) -> Floats:
    """Fourier's, of the masses on a ring of `half` steps to each side; real, as noise is symmetric."""
    beyond = tail((np.arange(half + 1, dtype=np.float64) + 0.5) * step)
    around = np.zeros(2 ** math.ceil(math.log2(2 * half + 2)))
    around[0], around[1 : half + 1] = 1 - 2 * beyond[0], -np.diff(beyond)
    around[-1 : -half - 1 : -1] = around[1 : half + 1]
    return np.asarray(np.fft.rfft(around).real)


def _ring(transform: Floats) -> Floats:
    return np.asarray(np.fft.irfft(transform, 2 * (len(transform) - 1)))


def redrawn_quantile(distance: Floats) -> Floats:
    """Half-widths from redrawn distances, one row for each of n redraws: the k-th smallest, k / (n + 1) >= 96.5 %.

    The error is one more draw, as likely to be at any of n + 1 places among the others: it is within with k / (n + 1).
    """
    n = len(distance)
    k = min(n, math.ceil(CONFIDENCE.simulated * (n + 1)))
    return np.asarray(np.partition(distance, k - 1, axis=0)[k - 1])


def ratio_quantile(noise: Noise, share: Floats) -> Floats:
    """95 % quantile of |(1 - share) * noise - share * noise'|: the noise of A (1 - p) - B p."""
    mechanism, draws = _drawn(noise)
    gaussian, spread = isinstance(mechanism, DiscreteGaussian), _spread(mechanism)
    if draws > 1:
        # For its variance, a sum of two has its 95 % no farther out than one of them: the more draws, the more normal.
        return np.asarray(np.hypot(1 - share, share) * several_quantile(gaussian, (1.0,), draws) * spread + 1.5)
    if gaussian:
        unit = 1.959963984540055 * np.sqrt((1 - share) ** 2 + share**2)
    else:
        unit = np.interp(share, np.linspace(0, 1, len(_RATIO_GRID)), _laplace_ratio())
    return np.asarray(unit * spread + 1.0)


_RATIO_GRID = range(129)


@lru_cache(maxsize=1)
def _laplace_ratio() -> Floats:
    """The quantile for shares on a grid; each entry also covers the shares up to its neighbors."""
    exact = np.array([_laplace_pair(1 - p, p) for p in np.linspace(0, 1, len(_RATIO_GRID))])
    padded = np.pad(exact, 1, mode="edge")
    return np.asarray(np.maximum(exact, np.maximum(padded[:-2], padded[2:])))


def _laplace_pair(a: float, b: float) -> float:
    """t with P(|a L + b L'| > t) = 5 %, for independent unit Laplace L, L'."""

    def tail(t: float) -> float:
        if abs(a - b) < 1e-3:
            c = (a + b) / 2
            return (1 + t / (2 * c)) * math.exp(-t / c)
        parts = [c**2 * math.exp(-t / c) if c > 1e-9 else 0.0 for c in (a, b)]
        return (parts[0] - parts[1]) / (a**2 - b**2)

    lo, hi = 0.0, 10.0
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if tail(middle) > 1 - CONFIDENCE.exact else (lo, middle)
    return hi * (1.001 if abs(a - b) < 2e-3 else 1.0)


def _spread(mechanism: Mechanism) -> float:
    match mechanism:
        case DiscreteLaplace(scale=scale):
            return float(scale)
        case DiscreteGaussian(sigma=sigma):
            return float(sigma)
    raise TypeError(f"{type(mechanism).__name__} has no spread")


@lru_cache(maxsize=256)
def _unit_quantile(gaussian: bool, factors: tuple[float, ...]) -> float:
    """95 % quantile of |sum(factor * noise)| for continuous noise of scale 1, rounded up."""
    if gaussian:
        return 1.959963984540055 * math.hypot(*factors)
    step = _step(_reach(gaussian, factors, 1), len(factors))
    first = _within(lambda t: np.asarray(np.exp(-t) / 2), factors, step=step, half=_HALF)
    return (first + len(factors) / 2) * step * (1 + 1e-9)


@lru_cache(maxsize=1024)
def several_quantile(gaussian: bool, factors: tuple[float, ...], draws: int) -> float:
    """95 % quantile of |sum(factor * sum of so many draws)| for continuous noise of scale 1."""
    if gaussian or draws == 1:
        return _unit_quantile(gaussian, factors) * math.sqrt(draws)
    deviation = math.sqrt(2 * draws) * math.hypot(*factors)
    # P(|S| <= x) from the characteristic function, which is real and falls fast; in units of the standard deviation.
    step = 0.07  # repeats after 90 deviations, where nothing is left
    t = np.arange(1, 10_001) * step
    logs: Floats = sum((-draws * np.log1p((factor / deviation * t) ** 2) for factor in factors), np.zeros_like(t))
    weights = np.exp(logs) / t
    lo, hi = 1.9, 2.2
    for _ in range(40):
        middle = (lo + hi) / 2
        inside = 2 * step / math.pi * (middle / 2 + float(np.sin(t * middle) @ weights))
        lo, hi = (middle, hi) if inside < CONFIDENCE.exact + 1e-9 else (lo, middle)
    return hi * deviation
