"""Half-widths with a coverage of at least 95 %, for counts and sums that are made of several noisy numbers, and for
ratios (S11)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from discreet.mechanisms import combined
from discreet.mechanisms.combined import Part
from discreet.mechanisms.simulate import Noise, Several

Floats = npt.NDArray[np.float64]


class _Confidence(NamedTuple):
    exact: float
    simulated: float  # a little more, for answers that are not quite straight functions of the noise


CONFIDENCE: Final = _Confidence(exact=combined.CONFIDENCE, simulated=0.965)


def parts(noise: Noise, factors: tuple[Fraction, ...]) -> list[Part]:
    """What the noise of a combination of noisy numbers is made of, if each has this noise."""
    mechanism, draws = (noise.noise, noise.draws) if isinstance(noise, Several) else (noise, 1)
    return [Part(noise=mechanism, factor=factor, draws=draws) for factor in factors]


def half_width(noise: Noise, factors: tuple[Fraction, ...]) -> int:
    """Smallest h such that the rounded error of sum(factor * noise) is at most h with 95 %, in whole units."""
    return math.floor(combined.half_width(parts(noise, factors)) + Fraction(1, 2))


def redrawn_quantile(distance: Floats) -> Floats:
    """Half-widths from redrawn distances, one row for each of n redraws: the k-th smallest, k / (n + 1) >= 96.5 %.

    The error is one more draw, as likely to be at any of n + 1 places among the others: it is within with k / (n + 1).
    """
    n = len(distance)
    k = min(n, math.ceil(CONFIDENCE.simulated * (n + 1)))
    return np.asarray(np.partition(distance, k - 1, axis=0)[k - 1])


def ratio_quantile(noise: Noise, share: Floats) -> Floats:
    """95 % quantile of |(1 - share) * noise - share * noise'|: the noise of A (1 - p) - B p."""
    (part,) = parts(noise, (Fraction(1),))
    if part.draws > 1:
        # For its variance, a sum of two has its 95 % no farther out than one of them: the more draws, the more normal.
        return np.asarray(np.hypot(1 - share, share) * combined.continuous((part,), CONFIDENCE.exact) + 1.5)
    if part.gaussian:
        unit = combined.continuous((part,), CONFIDENCE.exact) * np.sqrt((1 - share) ** 2 + share**2)
    else:
        unit = np.interp(share, np.linspace(0, 1, len(_RATIO_GRID)), _laplace_ratio()) * part.spread
    return np.asarray(unit + 1.0)


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
