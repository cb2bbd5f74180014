"""Noise that costs no more than it was given, and the cheapest amount for a margin."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import zcdp
from discreet.accounting.calibrate import (
    cheapest,
    gaussian_sigma,
    laplace_scale,
    overtaking,
)
from discreet.budget import round_down
from discreet.errors import UsageError

positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
A_BIT_LESS = 1 - Fraction(1, 10**10)


@given(positive, positive)
def test_laplace_noise_costs_exactly_its_epsilon(l1: Fraction, epsilon: Fraction) -> None:
    assert l1 / laplace_scale(l1=l1, epsilon=epsilon) == epsilon


@given(positive, positive)
def test_gaussian_noise_costs_at_most_its_rho_and_barely_less(
    l2_squared: Fraction, rho: Fraction
) -> None:
    sigma = gaussian_sigma(l2_squared=l2_squared, rho=rho)
    assert l2_squared / (2 * sigma**2) <= rho < l2_squared / (2 * (sigma * A_BIT_LESS) ** 2)
    assert round_down(sigma, digits=12) == sigma


def test_sigmas_that_are_short_come_out_exact() -> None:
    assert gaussian_sigma(l2_squared=Fraction(1), rho=Fraction("0.02")) == 5
    assert gaussian_sigma(l2_squared=Fraction(9 * 10**30), rho=Fraction("0.5")) == 3 * 10**15


def test_a_root_next_to_a_short_decimal_is_not_taken_for_it() -> None:
    hair = Fraction(1, 10**30)
    assert gaussian_sigma(l2_squared=25 + hair, rho=Fraction(1, 2)) == Fraction("5.00000000001")


# --- by margin ------------------------------------------------------------------------------------


def steps(amount: Fraction) -> int:
    """The margin of integer noise: it falls in steps."""
    return math.ceil(math.log(20) / float(amount))


@settings(deadline=None)
@given(st.integers(3, 10**7), st.sampled_from([Fraction(1), Fraction(4), Fraction("1.2345678")]))
def test_the_cheapest_amount_keeps_the_margin_and_one_digit_less_does_not(
    wanted: int, most: Fraction
) -> None:
    amount = cheapest(steps, wanted=Fraction(wanted), most=most)
    assert steps(amount) <= wanted
    assert round_down(amount, digits=4) == amount
    assert steps(round_down(amount * Fraction("0.99999"), digits=4)) > wanted


def test_the_cheapest_amount_may_be_the_most() -> None:
    assert cheapest(lambda amount: 1 / amount, wanted=Fraction(3), most=Fraction(1, 3)) == Fraction(
        1, 3
    )


def test_a_margin_out_of_reach_says_what_is_in_reach() -> None:
    with pytest.raises(UsageError, match=r"A margin of 2 cannot be had: even 1, .* gives 3\."):
        cheapest(steps, wanted=Fraction(2), most=Fraction(1))
    with pytest.raises(UsageError, match="cannot be had"):
        cheapest(lambda amount: math.nan, wanted=Fraction(2), most=Fraction(1))


def test_a_margin_that_costs_nothing_still_costs_something() -> None:
    assert (
        0 < cheapest(lambda amount: 0, wanted=Fraction(2), most=Fraction(1)) < Fraction(1, 10**90)
    )


# --- which accountant -----------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (4, "5e-10"), (10, "1e-7")])
def test_zcdp_overtakes_where_its_margin_becomes_the_smaller(epsilon: int, delta: str) -> None:
    n = overtaking(epsilon=Fraction(epsilon), delta=Fraction(delta))
    rho = float(zcdp.rho_of(epsilon=Fraction(epsilon), delta=Fraction(delta)))

    def wins(questions: int) -> bool:
        return 1.96 * math.sqrt(questions / (2 * rho)) < math.log(20) * questions / epsilon

    assert wins(n + 1)
    assert not wins(n - 1)
    assert 5 < n < 30
