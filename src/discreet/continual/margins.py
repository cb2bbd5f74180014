"""Half-widths at 95 % of what a release publishes (S11).

The noise of an estimate is a sum of draws, each with a factor. Where the draws have whole factors,
their masses are convolved, and the half-width is the smallest there is. Where the factors are many
and unlike, as of a matrix's inverse, it is that of a normal number and a little more for the grid:
3.4 / sigma of it, and sigma is in the thousands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.continual.strategies.strategy import Strategy, impulses
from discreet.mechanisms import combined
from discreet.mechanisms.combined import DrawSum
from discreet.mechanisms.shapes import Additive
from discreet.policy.schedule import Publish

WIDE = 340  # sigma from which on 1 % at most is given away for the grid
_DIGITS = 12  # of a factor: draws whose factors are the same but for rounded floats belong together


def half_widths(
    strategy: Strategy,
    noise: Additive,
    factors: Sequence[Fraction],
    publish: Publish,
    *,
    first: int,
) -> list[float]:
    """Return the half-width of each period's estimate: the sum of `factors` times what the strategy
    estimates.
    """
    if noise.gaussian and noise.spread >= WIDE and not hasattr(strategy, "draws"):
        length = float(np.linalg.norm([float(each) for each in factors]))
        spread = combined.normal_half_width(float(noise.spread)) * length
        return [float(each) for each in strategy.deviations(publish)[first:] * spread]
    counted = list(_count(strategy, publish))[first:]
    return [combined.as_float(_half_width(noise, factors, each)) for each in counted]


def _half_width(
    noise: Additive, factors: Sequence[Fraction], counts: Counter[Fraction]
) -> Fraction:
    return combined.half_width(
        DrawSum(noise=noise, factor=factor * times, draws=count)
        for factor in factors
        for times, count in counts.items()
    )


def _count(strategy: Any, publish: Publish) -> Iterator[Counter[Fraction]]:
    """Yield for each period how many draws are in its estimate with each factor."""
    if hasattr(strategy, "draws"):
        for once, twice in zip(*(each.tolist() for each in strategy.draws(publish)), strict=True):
            yield Counter({Fraction(1): once, Fraction(2): twice})
        return
    encoder = strategy.encoder()
    nothing = np.zeros(1, dtype=np.int64)
    draws = [len(encoder.add(nothing).draws) for _ in range(strategy.periods)]
    for weights in impulses(strategy, draws, publish):
        yield Counter(Fraction(round(abs(each), _DIGITS)) for each in weights.tolist() if each)
