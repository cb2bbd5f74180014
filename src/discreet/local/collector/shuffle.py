"""The shuffle model: what a collector may claim if a shuffler, which it does not control, mixes the
reports of many.

A respondent's report hides among the others'. Only reports of honest respondents count, and the
bounds hold for any ε0-private encoder, so for every protocol here.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, log1p, sqrt

from discreet.budget import amount
from discreet.errors import UsageError


def amplified(*, epsilon: object, honest: int, delta: object) -> float:
    """Return the central ε of n shuffled reports, each ε0-private:

        ln(1 + (e^ε0 - 1) / (e^ε0 + 1) * (8 sqrt(e^ε0 ln(4 / δ) / n) + 8 e^ε0 / n)),

    for ε0 <= ln(n / (16 ln(2 / δ))) [Feldman, McMillan, Talwar 2021]; else ε0 itself, which always
    holds. Rounded up.
    """
    local, small = _amounts(epsilon, delta, honest)
    if honest < 16 * log(2 / small) or local > log(honest / (16 * log(2 / small))):
        return local
    e = exp(local)
    inner = (e - 1) / (e + 1) * (8 * sqrt(e * log(4 / small) / honest) + 8 * e / honest)
    return min(local, log1p(inner) * (1 + 1e-12))


def amplified_tightly(*, epsilon: object, honest: int, delta: object) -> float:
    """Return the same by counting clones instead of bounding their number: a fourth or less, for
    all ε0.

    A shuffled report is at least as private as a sample of A + D from one of A + 1 - D, where C of
    the other n - 1 reports are clones, each with probability e^-ε0, A of these are heads, and D is
    1 with probability e^ε0 / (e^ε0 + 1) [Feldman, McMillan, Talwar 2021]. By bisection, the least ε
    whose divergence is at most δ.
    """
    local, small = _amounts(epsilon, delta, honest)
    low, high = 0.0, local
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if _divergence(middle, local, honest, small) <= small else (middle, high)
        )
    return high


def local_epsilon(*, central: object, honest: int, delta: object) -> float:
    """Return the largest ε0 whose closed bound is at most a central ε: how much each respondent may
    tell.
    """
    wanted, small = _amounts(central, delta, honest)
    low = wanted
    high = max(wanted, log(max(honest / (16 * log(2 / small)), 1)))
    for _ in range(60):
        middle = (low + high) / 2
        fits = amplified(epsilon=Fraction(middle), honest=honest, delta=delta) <= wanted
        low, high = (middle, high) if fits else (low, middle)
    return low


def _amounts(epsilon: object, delta: object, honest: int) -> tuple[float, float]:
    if isinstance(honest, bool) or not isinstance(honest, int) or honest < 1:
        raise UsageError(f"The number of honest reports is 1 or more, not {honest!r}.")
    return float(amount(epsilon, name="epsilon")), float(
        amount(delta, name="delta", most=Fraction(1, 2))
    )


def _divergence(central: float, local: float, n: int, delta: float) -> float:
    """Sum max(0, P - e^central Q) over outcomes, rounded up by what is left out and a relative
    1e-9.

    Given C, the outcomes with P > e^central Q are those of at least `cut` heads, because the ratio
    grows with them; the sums over these are tails of a binomial distribution.
    """
    import numpy as np
    from scipy.stats import binom

    clone = exp(-local)
    told = 1 / (1 + exp(-local))
    factor = exp(central)
    first, last = (int(tail(delta * 1e-6, n - 1, clone)) for tail in (binom.ppf, binom.isf))
    clones = np.arange(max(first, 0), last + 1)
    weights = binom.pmf(clones, n - 1, clone)
    if told <= factor * (1 - told):
        return 0.0
    # heads / (C - heads + 1) must exceed it
    ratio = (factor * told - (1 - told)) / (told - factor * (1 - told))
    cut = np.floor(ratio * (clones + 1) / (1 + ratio)) + 1
    more, same = binom.sf(cut - 2, clones, 0.5), binom.sf(cut - 1, clones, 0.5)  # of A + 1, of A
    given = told * more + (1 - told) * same - factor * (told * same + (1 - told) * more)
    return float((weights * np.maximum(given, 0)).sum() * (1 + 1e-9) + 2e-6 * delta)
