"""Zero-concentrated DP: convert ρ to ε and back, with certified rounding. ρ is the currency of
budgets for many small questions.

A ρ-zCDP mechanism is (ε, δ)-DP for each a > 1 with

    δ = exp((a - 1)(a ρ - ε)) / (a - 1) * (1 - 1/a)^a        [Canonne, Kamath, Steinke 2020]

which says, with u = a - 1,

    ε = (1 + u) ρ + g(u, δ),   g(u, δ) = log(u / (1 + u)) + (log(1 / δ) - log(1 + u)) / u.

Every u > 0 gives a true statement, so floats only look for a good u; what is claimed is then
evaluated there with exact rationals and logarithms rounded in the safe direction. For one δ the
claim is the lower envelope of lines in ρ over a fixed grid of u: ε of ρ and ρ of ε are exact
inverses of each other, increasing both, before the final rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.budget import number, round_down, round_up
from discreet.errors import UsageError

_EPSILON_DIGITS = 9  # so that ε = 0.5 made into ρ and into noise, and priced again, reads 0.5
_RHO_DIGITS = 15
_DELTA_DIGITS = 24
_GRID = 2**20  # values of u from one power of two to the next: neighbors cost under 1e-12 of ε


@lru_cache(maxsize=4096)
def epsilon_of(*, rho: Fraction, delta: Fraction) -> Fraction:
    """Return the ε of a ρ-zCDP mechanism at this δ, rounded up to nine digits."""
    return round_up(_epsilon(rho, _usable(delta)), digits=_EPSILON_DIGITS)


@lru_cache(maxsize=4096)
def epsilon_within(*, rho: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ε of nine digits whose `rho_of` is at most `rho`: the ε that can still be
    asked for.
    """
    return round_down(_epsilon(rho, _usable(delta)), digits=_EPSILON_DIGITS)


@lru_cache(maxsize=4096)
def rho_of(*, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the ρ that a (ε, δ) allows, rounded down: every mechanism of this ρ is (ε, δ)-DP."""
    delta = _usable(delta)
    start = _root(_slope_in_rho(_as_float(epsilon), _minus_log(delta)))
    best = _climb(start, lambda u: (epsilon - _intercept(u, delta)) / (1 + u))
    if best <= 0:
        raise UsageError(
            f"epsilon {number(epsilon)} with delta {number(delta)} is too small to be turned into rho."
        )
    return round_down(best, digits=_RHO_DIGITS)


@lru_cache(maxsize=4096)
def pure_rho(*, epsilon: Fraction) -> Fraction:
    """Return the ρ of any (ε, 0)-DP mechanism: ε tanh(ε / 2), rounded up; tight for randomized
    response.

    tanh(ε / 2) = (1 - e) / (1 + e) with e = exp(-ε), and is at most ε / 2 and at most 1.
    """
    context = Context(prec=60, rounding=ROUND_HALF_EVEN)
    power = context.exp(context.divide(Decimal(-epsilon.numerator), Decimal(epsilon.denominator)))
    # Privacy: the quotient is wrong by at most ε * 10^-60 (over 400 the bound 1 is taken), exp by
    # half a unit in its last digit, so exp(-ε) is at least `low`; a smaller e means a larger tanh.
    low = max(Fraction(0), Fraction(power) - Fraction(1, 10**50)) if epsilon < 400 else Fraction(0)
    return round_up(epsilon * min(epsilon / 2, (1 - low) / (1 + low)), digits=_RHO_DIGITS)


def _usable(delta: Fraction) -> Fraction:
    if not 0 < delta < 1:
        raise UsageError(
            f"Turning rho into epsilon needs a delta between 0 and 1, not {number(delta)}."
        )
    return round_down(delta, digits=_DELTA_DIGITS)  # Privacy: a smaller δ is a stronger claim


def _epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    if rho == 0:
        return Fraction(0)
    start = _root(_slope_in_epsilon(_as_float(rho), _minus_log(delta)))
    best = -_climb(start, lambda u: -(1 + u) * rho - _intercept(u, delta))
    return max(Fraction(0), best)


@lru_cache(maxsize=16384)
def _intercept(u: Fraction, delta: Fraction) -> Fraction:
    """Return g(u, δ), rounded up by less than 10^-38 / u."""
    digits = 44 + max(0, round(math.log10(u)))
    above, below = u.numerator, u.denominator
    log_above = _log(above, digits)
    log_below = _log(below, digits)
    log_sum = _log(above + below, digits)
    minus_log_delta = _log(delta.denominator, digits) - _log(delta.numerator, digits)
    near = log_above - log_sum + (minus_log_delta - log_sum + log_below) / u
    # Privacy: these logarithms are below 10^4, so each is wrong by at most half of 10^(4 - digits);
    # two stand alone, four are divided by u.
    return near + (2 + 4 / u) / Fraction(10) ** (digits - 4)


@lru_cache(maxsize=4096)
def _log(n: int, digits: int) -> Fraction:
    """Return log n to so many digits. Python documents that `ln` is correctly rounded, for operands
    of any length.
    """
    return Fraction(Context(prec=digits, rounding=ROUND_HALF_EVEN).ln(Decimal(n)))


def _climb(start: float, value: Callable[[Fraction], Fraction]) -> Fraction:
    """Return the largest value over the grid of u. Start from a float that should be near it.

    log δ is convex in a for every ρ and ε, so there is only one maximum. If the search ends too
    early, the claim is weaker, never false.
    """
    mantissa, exponent = math.frexp(start)
    place = (exponent - 1) * _GRID + round((2 * mantissa - 1) * _GRID)
    best = value(_on_grid(place))
    for step in (1, -1):
        for _ in range(64):
            there = value(_on_grid(place + step))
            if there <= best:
                break
            place = place + step
            best = there
    return best


def _on_grid(place: int) -> Fraction:
    exponent, rest = divmod(place, _GRID)
    return (1 + Fraction(rest, _GRID)) * Fraction(2) ** exponent


def _slope_in_epsilon(rho: float, minus_log_delta: float) -> Callable[[float], float]:
    """Return the sign of d/du of (1 + u) ρ + g(u, δ)."""
    return lambda u: rho * u * u - (minus_log_delta - math.log1p(u))


def _slope_in_rho(epsilon: float, minus_log_delta: float) -> Callable[[float], float]:
    """Return minus the sign of d/du of (ε - g(u, δ)) / (1 + u)."""
    return lambda u: (
        u * u * (epsilon + math.log1p(1 / u)) - (2 * u + 1) * (minus_log_delta - math.log1p(u))
    )


def _root(rising: Callable[[float], float]) -> float:
    """Return where a function of u > 0 turns from negative to positive, by bisection of log u."""
    low, high = -340.0, 340.0
    for _ in range(56):
        middle = (low + high) / 2
        if rising(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _minus_log(delta: Fraction) -> float:
    return math.log(delta.denominator) - math.log(delta.numerator)


def _as_float(value: Fraction) -> float:
    if value.numerator.bit_length() - value.denominator.bit_length() < 1020:
        return min(float(value), 1e300)
    return 1e300
