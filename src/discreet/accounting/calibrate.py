"""From an amount of privacy to a size of noise, and from a wanted margin to the cheapest amount.

Every result is an exact rational on the safe side: noise of that size loses at most the amount it was made for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from discreet.accounting import zcdp
from discreet.budget import number, round_down, round_up
from discreet.errors import UsageError

_DIGITS = 12  # of sigma, and of each part of a split
_MARGIN_DIGITS = 4  # of an amount found from a margin: at most a thousandth dearer than the cheapest
_LEAST = Fraction(1, 10**100)
_NORMAL_95 = 1.959963984540054  # half-width that holds 95 % of a Gaussian, in sigmas
_LAPLACE_95 = math.log(20)  # the same of a Laplace, in scales


def laplace_scale(*, l1: Fraction, epsilon: Fraction) -> Fraction:
    """The scale at which noise of mass proportional to exp(-|z| / scale) costs exactly ε."""
    return l1 / epsilon


def gaussian_sigma(*, l2_squared: Fraction, rho: Fraction) -> Fraction:
    """The smallest sigma of twelve digits with l2² / (2 sigma²) <= ρ."""
    square = l2_squared / (2 * rho)
    sigma = round_up(_power(square, Fraction(1, 2)), digits=_DIGITS)
    while sigma**2 < square:  # Privacy: checked in exact rationals, whatever the root above did
        sigma = round_up(sigma * (1 + Fraction(1, 10 ** (_DIGITS + 1))), digits=_DIGITS)
    return sigma


def bounded_range_epsilon(*, rho: Fraction) -> Fraction:
    """The ε of a selection of bounded range, which costs ρ = ε² / 8: the exponential mechanism (S7)."""
    epsilon = round_down(_power(8 * rho, Fraction(1, 2)), digits=_DIGITS)
    while epsilon**2 > 8 * rho:
        epsilon = _one_less(epsilon)
    return epsilon


def pure_epsilon(*, rho: Fraction) -> Fraction:
    """The ε of any pure mechanism within ρ, from ε tanh(ε / 2) <= ρ: within 10^-9 of the largest."""
    target = float(rho)
    low, high = 0.0, target + math.sqrt(2 * target) + 1.0  # there ε tanh(ε / 2) is above ρ
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * math.tanh(middle / 2) <= target else (low, middle)
    epsilon = round_up(Fraction(low), digits=_DIGITS)
    for _ in range(100):
        if zcdp.pure_rho(epsilon=epsilon) <= rho:  # Privacy: the certified formula has the last word, not the floats
            return epsilon
        epsilon = _one_less(epsilon)
    raise UsageError(f"No pure mechanism can be fitted within ρ = {number(rho)}.")


def _one_less(value: Fraction) -> Fraction:
    return round_down(value * (1 - Fraction(1, 10 ** (_DIGITS + 1))), digits=_DIGITS)


def cheapest(margin: Callable[[Fraction], Fraction | float], *, wanted: Fraction, most: Fraction) -> Fraction:
    """The smallest amount of four digits, up to `most`, whose margin is at most `wanted`.

    `margin` must not grow with the amount. It is the margin that the answer will state, noise rounded and all, so the
    amount that comes back keeps its word even where `margin` has steps.
    """
    if wanted < 0 or not margin(most) <= wanted:
        raise UsageError(
            f"A margin of {number(wanted)} cannot be had: even {number(most)}, the most that one question may spend, "
            f"gives {number(margin(most))}."
        )
    low, high = most / 10, most
    while margin(low) <= wanted:
        low, high = low / 10, low
        if low < _LEAST:
            return round_up(high, digits=_MARGIN_DIGITS)
    while high - low > high / 10 ** (_MARGIN_DIGITS + 1):  # until at most one decimal of four digits lies between
        middle = (low + high) / 2
        low, high = (low, middle) if margin(middle) <= wanted else (middle, high)
    short = round_down(high, digits=_MARGIN_DIGITS)
    return short if margin(short) <= wanted else min(round_up(high, digits=_MARGIN_DIGITS), most)


def split_epsilon(epsilon: Fraction, *, l1: Sequence[Fraction], weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Parts of ε for several statistics that minimise the sum of weight * (l1 / part)².

    They are as the cube roots of weight * l1². For wanted margins m the weights are 1 / m²; for a statistic of many
    cells, times the number of cells.
    """
    return _parts(epsilon, [w * s**2 for w, s in zip(weights, l1, strict=True)], Fraction(1, 3))


def split_rho(rho: Fraction, *, l2_squared: Sequence[Fraction], weights: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Parts of ρ for several statistics that minimise the sum of weight * l2² / (2 part).

    They are as the square roots of weight * l2²; weights as in `split_epsilon`.
    """
    return _parts(rho, [w * s for w, s in zip(weights, l2_squared, strict=True)], Fraction(1, 2))


def _parts(amount: Fraction, errors: Sequence[Fraction], exponent: Fraction) -> tuple[Fraction, ...]:
    if not errors or min(errors) <= 0:
        raise UsageError("An amount is split among one or more statistics, each of positive weight and sensitivity.")
    sizes = [_power(error, exponent) for error in errors]
    return tuple(round_down(amount * size / sum(sizes), digits=_DIGITS) for size in sizes)


def _power(value: Fraction, exponent: Fraction) -> Fraction:
    """value^exponent to 18 digits, the same on every machine; roots that are short decimals come out exact."""
    context = Context(prec=24)
    base = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    power = context.power(base, context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))
    return Fraction(Context(prec=18).plus(power))


def overtaking(*, epsilon: Fraction, delta: Fraction) -> int:
    """About how many equal questions a budget must serve before `zcdp` gives each a smaller margin than `sum` does.

    n counts share the budget: Laplace noise of scale n / ε each, or Gaussian noise of sigma² = n / (2ρ).
    """
    rho = zcdp.rho_of(epsilon=epsilon, delta=delta)
    return math.ceil((_NORMAL_95 / _LAPLACE_95) ** 2 * float(epsilon**2 / (2 * rho)))
