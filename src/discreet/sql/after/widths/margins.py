"""Half-widths with a coverage of at least 95 %, for sums of several noisy numbers and for ratios
(S11).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from discreet.mechanisms import combined
from discreet.mechanisms.combined import CONFIDENCE
from discreet.mechanisms.running import Running
from discreet.mechanisms.tails.simulate import Noise, part

Floats = npt.NDArray[np.float64]


def half_width(noise: Noise, factors: tuple[Fraction, ...]) -> int:
    """Return the smallest whole number h with P(rounded |sum(factor * noise)| <= h) >= 95 %.

    With noise on running totals, return that of the noisiest number.
    """
    if isinstance(noise, Running):
        return int(noise.of_numbers(factors).max())
    width = combined.half_width(part(noise, factor) for factor in factors)
    return math.floor(width + Fraction(1, 2))


def ratio_quantile(noise: Noise, share: Floats) -> Floats:
    """Return the 95 % quantile of |(1 - share) * noise - share * noise'|.

    It is the noise of A (1 - p) - B p.
    """
    draw = part(noise)
    if draw.draws > 1:
        # A sum of more draws is more normal: relative to its deviation, the 95 % of a sum of two
        # noises is no farther out than that of one.
        quantile = combined.continuous((draw,), CONFIDENCE)
        return np.asarray(np.hypot(1 - share, share) * quantile + 1.5)
    if draw.gaussian:
        unit = combined.continuous((draw,), CONFIDENCE) * np.sqrt((1 - share) ** 2 + share**2)
    else:
        grid = np.linspace(0, 1, len(_RATIO_GRID))
        unit = np.interp(share, grid, _laplace_ratio()) * draw.spread
    return np.asarray(unit + 1.0)


_RATIO_GRID = range(129)


@lru_cache(maxsize=1)
def _laplace_ratio() -> Floats:
    """Return the quantile for shares on a grid.

    Each entry is at least as large as its neighbors' quantiles, so it also covers the shares
    between them.
    """
    shares = np.linspace(0, 1, len(_RATIO_GRID))
    exact = np.array([_laplace_pair(1 - share, share) for share in shares])
    edges = np.pad(exact, 1, mode="edge")
    return np.asarray(np.maximum(exact, np.maximum(edges[:-2], edges[2:])))


def _laplace_pair(a: float, b: float) -> float:
    """Return t with P(|a L + b L'| > t) = 5 %, for independent unit Laplace L, L'."""

    def tail(t: float) -> float:
        if abs(a - b) < 1e-3:
            c = (a + b) / 2
            return (1 + t / (2 * c)) * math.exp(-t / c)
        parts = [c**2 * math.exp(-t / c) if c > 1e-9 else 0.0 for c in (a, b)]
        return (parts[0] - parts[1]) / (a**2 - b**2)

    lo = 0.0
    hi = 10.0
    for _ in range(60):
        middle = (lo + hi) / 2
        if tail(middle) > 1 - CONFIDENCE:
            lo = middle
        else:
            hi = middle
    # near a = b the tail is that of the mean of both
    return hi * (1.001 if abs(a - b) < 2e-3 else 1.0)
