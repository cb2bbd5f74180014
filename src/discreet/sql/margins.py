"""Half-widths with a coverage of at least 95 %, for combinations of several noisy numbers (S11).

Small scales are computed exactly, by convolving the masses. Large ones use the continuous distribution with an
allowance for the grid: a discrete Laplace variable is floor(E) - floor(E') for exponential E, E', so it is within 1 of
a continuous one; the discrete Gaussian's tails differ from the continuous one's by less than that.

Of a number that was added up from c noisy ones (`Several`), the sum T of c discrete draws is a continuous sum less what
the floors took away, which is independent of T and symmetric. T is symmetric and falls to both sides, so no interval of
2h + 1 whole numbers holds more of it than the middle one: |T| <= h is no less likely than |continuous sum| <= h + 1/2.
"""

from __future__ import annotations

import math
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


class _Confidence(NamedTuple):
    exact: float
    simulated: float  # a little more, for answers that are not quite straight functions of the noise


CONFIDENCE: Final = _Confidence(exact=0.95, simulated=0.965)
_EXACT_SIZE = 400_000  # lattice points up to which masses are convolved


def half_width(noise: Any, factors: tuple[Fraction, ...]) -> int:
    """Smallest h such that the rounded error of sum(factor * noise) is at most h with 95 %, in whole units."""
    mechanism, draws = _drawn(noise)
    used = tuple(sorted(abs(factor) for factor in factors if factor))
    if used == (Fraction(1),) and draws == 1:
        return int(mechanism.margin(CONFIDENCE.exact))
    common = math.lcm(*(factor.denominator for factor in used))
    whole = tuple(int(factor * common) for factor in used)
    spread, gaussian = _spread(mechanism), isinstance(mechanism, DiscreteGaussian)
    if _lattice(whole, spread, draws) <= _EXACT_SIZE and (draws == 1 or spread <= 32):
        return _exact_half_width(mechanism, whole, common, draws)
    plain = tuple(float(factor) for factor in used)
    if draws == 1:
        return max(0, math.ceil(_unit_quantile(gaussian, plain) * spread + float(sum(used)) - 0.5))
    # Of one number nothing is added for the grid (see above); of several, each is first spread over its unit.
    grid = 1.5 * sum(plain) if len(plain) > 1 else 0.0
    return max(0, math.ceil(several_quantile(gaussian, plain, draws) * spread + grid - 0.5))


def _drawn(noise: Any) -> tuple[Any, int]:
    return (noise.noise, noise.draws) if isinstance(noise, Several) else (noise, 1)


def _lattice(whole: tuple[int, ...], spread: float, draws: int) -> float:
    """Lattice points that hold such a sum but for a part that is beyond a float."""
    if draws == 1:
        return sum(whole) * spread * 25
    return max(whole) * spread * 25 + 14 * math.hypot(*whole) * math.sqrt(2 * draws) * spread


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
    # Each Laplace variable is moved to the nearest point of a lattice, by at most half a step.
    step, half = max(factors) * 40 / 2**14, 2**14
    points = np.arange(-half, half + 1) * step
    size = 2 ** math.ceil(math.log2(len(factors) * len(points)))
    transform: Any = 1.0
    for factor in factors:
        transform = transform * np.fft.rfft(_laplace_lattice(points, step, factor), size)
    total = np.fft.irfft(transform, size)[: len(factors) * (len(points) - 1) + 1]
    middle = len(total) // 2
    inside = total[middle] + np.cumsum(total[middle + 1 :] + total[:middle][::-1])
    return float((np.searchsorted(inside, CONFIDENCE.exact + 1e-9) + 1 + len(factors) / 2) * step)


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


def _laplace_lattice(points: Any, step: float, factor: float) -> Floats:
    edges = np.append(points - step / 2, points[-1] + step / 2)
    below = np.where(
        edges < 0, 0.5 * np.exp(np.minimum(edges, 0) / factor), 1 - 0.5 * np.exp(-np.maximum(edges, 0) / factor)
    )
    return np.diff(below)


@lru_cache(maxsize=256)
def _exact_half_width(mechanism: Any, whole: tuple[int, ...], common: int, draws: int) -> int:
    """By convolution of the masses: |sum(whole * z)| < common * (h + 1/2) must hold with 95 %."""
    total = np.ones(1)
    reach = math.ceil(_spread(mechanism) * 25) + 1
    z = np.arange(-reach, reach + 1)
    mass = np.exp([mechanism.log_mass(int(each)) for each in z])
    for factor in whole:
        spaced = np.zeros(2 * reach * factor + 1)
        spaced[::factor] = mass
        total = np.convolve(total, spaced) if len(spaced) < 2000 else _fft_convolve(total, spaced)
    if draws > 1:
        total = _convolved(total, draws, math.ceil(_lattice(whole, _spread(mechanism), draws)))
    middle = len(total) // 2
    inside = total[middle] + np.concatenate(([0.0], np.cumsum(total[middle + 1 :] + total[:middle][::-1])))
    first = int(np.searchsorted(inside, CONFIDENCE.exact + 1e-9))  # largest |value| that must be inside
    return max(0, math.ceil(Fraction(first, common) - Fraction(1, 2) + Fraction(1, 2 * common)))


def _convolved(mass: Floats, times: int, reach: int) -> Floats:
    """A symmetric mass convolved with itself, on the lattice points up to `reach`; what is beyond them is nothing."""
    length = 2 ** math.ceil(math.log2(2 * max(reach, len(mass)) + 1))
    middle = len(mass) // 2
    around = np.roll(np.pad(mass, (0, length - len(mass))), -middle)
    total = np.fft.irfft(np.fft.rfft(around).real ** times, length)
    return np.concatenate((total[-reach:], total[: reach + 1]))


def _fft_convolve(a: Floats, b: Floats) -> Floats:
    size = len(a) + len(b) - 1
    length = 2 ** math.ceil(math.log2(size))
    return np.asarray(np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:size])
