"""Half-widths with a coverage of at least 95 %: of counts and sums made of several noisy numbers,
and of ratios (S11).
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
    """Smallest h such that the rounded error of sum(factor * noise) is at most h with 95 %, in
    whole units. Where running totals were measured: of the noisiest number.
    """
    if isinstance(noise, Running):
        return int(noise.of_numbers(factors).max())
    return math.floor(
        combined.half_width(part(noise, factor) for factor in factors) + Fraction(1, 2)
    )


def ratio_quantile(noise: Noise, share: Floats) -> Floats:
    """95 % quantile of |(1 - share) * noise - share * noise'|: the noise of A (1 - p) - B p."""
    each = part(noise)
    if each.draws > 1:
        # For its variance, a sum of two has its 95 % no farther out than one of them: the more
        # draws, the more normal.
        return np.asarray(
            np.hypot(1 - share, share) * combined.continuous((each,), CONFIDENCE) + 1.5
        )
    if each.gaussian:
        unit = combined.continuous((each,), CONFIDENCE) * np.sqrt((1 - share) ** 2 + share**2)
    else:
        unit = np.interp(share, np.linspace(0, 1, len(_RATIO_GRID)), _laplace_ratio()) * each.spread
    return np.asarray(unit + 1.0)


_RATIO_GRID = range(129)


@lru_cache(maxsize=1)
def _laplace_ratio() -> Floats:
    """Return the quantile for shares on a grid; each entry also covers the shares up to its
    neighbors.
    """
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
        lo, hi = (middle, hi) if tail(middle) > 1 - CONFIDENCE else (lo, middle)
    return hi * (1.001 if abs(a - b) < 2e-3 else 1.0)
