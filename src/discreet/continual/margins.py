"""Half-widths at 95 % of sums of draws (S11)."""

from __future__ import annotations

from functools import lru_cache
from math import log

import numpy as np

CONFIDENCE = 0.95
NORMAL = 1.959963984540054  # of a Gaussian, in standard deviations
_FAR = 120.0


@lru_cache(maxsize=65536)
def laplace(draws: tuple[tuple[float, int], ...]) -> float:
    """Of a sum of independent Laplace draws of scale 1, given as (factor, how many), for discrete ones too.

    P(|S| <= m) = 2/π times the integral of sin(m u) / u times the product of (1 + (factor u)²)^-count, by the inversion
    formula; with two draws or more the integrand falls like u^-5. It is summed at points h apart, which is off by no
    more than P(|S| > 2π/h - m). A discrete draw is no farther out than this one.
    """
    used = [(abs(factor), count) for factor, count in draws if factor and count]
    if sum(count for _, count in used) <= 1:
        return log(1 / (1 - CONFIDENCE)) * sum(factor for factor, _ in used)
    largest = max(factor for factor, _ in used)
    spread = float(np.sqrt(sum(2 * count * (factor / largest) ** 2 for factor, count in used)))
    step = min(0.05, 2 * np.pi / (16 * spread))
    places = np.arange(step / 2, _FAR, step)
    fall = np.zeros_like(places)
    for factor, count in used:
        fall -= count * np.log1p(np.square(places * (factor / largest)))
    weights = np.exp(fall) / places * (step * 2 / np.pi)
    low, high = spread, 4 * spread
    while high - low > 1e-6 * spread:
        middle = (low + high) / 2
        low, high = (low, middle) if weights @ np.sin(places * middle) >= CONFIDENCE else (middle, high)
    return high * largest
