"""Convert an amount of privacy to a size of noise, and a wanted margin to the cheapest amount.

Every result is an exact rational on the safe side: noise of that size loses at most the amount it
was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

from discreet.accounting import zcdp
from discreet.budget import number, round_down, round_up
from discreet.errors import UsageError

_DIGITS = 12  # of sigma
# of an amount found from a margin: at most a thousandth dearer than the cheapest
_MARGIN_DIGITS = 4
_LEAST = Fraction(1, 10**100)
_NORMAL_95 = 1.959963984540054  # half-width that holds 95 % of a Gaussian, in sigmas
_LAPLACE_95 = math.log(20)  # the same of a Laplace, in scales


def laplace_scale(*, l1: Fraction, epsilon: Fraction) -> Fraction:
    """Return the scale at which noise of mass proportional to exp(-|z| / scale) costs exactly ε."""
    return l1 / epsilon


def gaussian_sigma(*, l2_squared: Fraction, rho: Fraction) -> Fraction:
    """Return the smallest sigma of twelve digits with l2² / (2 sigma²) <= ρ."""
    square = l2_squared / (2 * rho)
    sigma = round_up(_root(square), digits=_DIGITS)
    while sigma**2 < square:  # Privacy: checked in exact rationals, whatever the root above did
        sigma = round_up(sigma * (1 + Fraction(1, 10 ** (_DIGITS + 1))), digits=_DIGITS)
    return sigma


def cheapest(
    margin: Callable[[Fraction], Fraction | float], *, wanted: Fraction, most: Fraction
) -> Fraction:
    """Return the smallest amount of four digits, up to `most`, whose margin is at most `wanted`.

    `margin` must not grow with the amount. It must be the margin that the answer will state, with
    all rounding; then the answer's margin is at most `wanted` even if `margin` has steps.
    """
    if wanted < 0 or not margin(most) <= wanted:
        raise UsageError(
            f"A margin of {number(wanted)} cannot be had: even {number(most)}, the most that one question may spend, "
            f"gives {number(margin(most))}."
        )
    low = most / 10
    high = most
    while margin(low) <= wanted:
        low, high = low / 10, low
        if low < _LEAST:
            return round_up(high, digits=_MARGIN_DIGITS)
    # until at most one decimal of four digits lies between
    while high - low > high / 10 ** (_MARGIN_DIGITS + 1):
        middle = (low + high) / 2
        low, high = (low, middle) if margin(middle) <= wanted else (middle, high)
    short = round_down(high, digits=_MARGIN_DIGITS)
    return short if margin(short) <= wanted else min(round_up(high, digits=_MARGIN_DIGITS), most)


def _root(square: Fraction) -> Fraction:
    """Return a square root to 18 digits, the same on every machine; roots that are short decimals
    come out exact.
    """
    context = Context(prec=24)
    root = context.sqrt(context.divide(Decimal(square.numerator), Decimal(square.denominator)))
    return Fraction(Context(prec=18).plus(root))


def overtaking(*, epsilon: Fraction, delta: Fraction) -> int:
    """Return about how many equal questions give each a smaller margin under `zcdp` than under
    `sum`.

    n counts share the budget: Laplace noise of scale n / ε each, or Gaussian noise of sigma² = n /
    (2ρ).
    """
    rho = zcdp.rho_of(epsilon=epsilon, delta=delta)
    return math.ceil((_NORMAL_95 / _LAPLACE_95) ** 2 * float(epsilon**2 / (2 * rho)))
