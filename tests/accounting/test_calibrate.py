"""Noise that costs no more than it was given, the cheapest amount for a margin, splits that are best."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import zcdp
from discreet.accounting.calibrate import (
    bounded_range_epsilon,
    cheapest,
    gaussian_sigma,
    laplace_scale,
    overtaking,
    pure_epsilon,
    split_epsilon,
    split_rho,
)
from discreet.budget import round_down
from discreet.errors import UsageError

positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9)
A_BIT_LESS = 1 - Fraction(1, 10**10)


@given(positive, positive)
def test_laplace_noise_costs_exactly_its_epsilon(l1: Fraction, epsilon: Fraction) -> None:
    assert l1 / laplace_scale(l1=l1, epsilon=epsilon) == epsilon


@given(positive, positive)
def test_gaussian_noise_costs_at_most_its_rho_and_barely_less(l2_squared: Fraction, rho: Fraction) -> None:
    sigma = gaussian_sigma(l2_squared=l2_squared, rho=rho)
    assert l2_squared / (2 * sigma**2) <= rho < l2_squared / (2 * (sigma * A_BIT_LESS) ** 2)
    assert round_down(sigma, digits=12) == sigma


def test_sigmas_that_are_short_come_out_exact() -> None:
    assert gaussian_sigma(l2_squared=Fraction(1), rho=Fraction("0.02")) == 5
    assert gaussian_sigma(l2_squared=Fraction(9 * 10**30), rho=Fraction("0.5")) == 3 * 10**15


def test_a_root_next_to_a_short_decimal_is_not_taken_for_it() -> None:
    hair = Fraction(1, 10**30)
    assert gaussian_sigma(l2_squared=25 + hair, rho=Fraction(1, 2)) == Fraction("5.00000000001")
    assert bounded_range_epsilon(rho=(1 - hair) / 8) == Fraction("0.999999999999")


@given(positive)
def test_a_selection_costs_at_most_its_rho(rho: Fraction) -> None:
    epsilon = bounded_range_epsilon(rho=rho)
    assert epsilon**2 / 8 <= rho < (epsilon / A_BIT_LESS) ** 2 / 8


@given(positive)
def test_a_pure_mechanism_costs_at_most_its_rho(rho: Fraction) -> None:
    epsilon = pure_epsilon(rho=rho)
    assert zcdp.pure_rho(epsilon=epsilon) <= rho < zcdp.pure_rho(epsilon=epsilon * (1 + Fraction(1, 10**8)))


def test_selection_buys_more_epsilon_than_any_pure_mechanism_may_have() -> None:
    assert bounded_range_epsilon(rho=Fraction(1, 8)) == 1
    assert float(pure_epsilon(rho=Fraction(1, 8))) == pytest.approx(0.505, abs=1e-3)


# --- by margin --------------------------------------------------------------------------------------------------------


def steps(amount: Fraction) -> int:
    """The margin of integer noise: it falls in steps."""
    return math.ceil(math.log(20) / float(amount))


@settings(deadline=None)
@given(st.integers(3, 10**7), st.sampled_from([Fraction(1), Fraction(4), Fraction("1.2345678")]))
def test_the_cheapest_amount_keeps_the_margin_and_one_digit_less_does_not(wanted: int, most: Fraction) -> None:
    amount = cheapest(steps, wanted=Fraction(wanted), most=most)
    assert steps(amount) <= wanted
    assert round_down(amount, digits=4) == amount
    assert steps(round_down(amount * Fraction("0.99999"), digits=4)) > wanted


def test_the_cheapest_amount_may_be_the_most() -> None:
    assert cheapest(lambda amount: 1 / amount, wanted=Fraction(3), most=Fraction(1, 3)) == Fraction(1, 3)


def test_a_margin_out_of_reach_says_what_is_in_reach() -> None:
    with pytest.raises(UsageError, match=r"A margin of 2 cannot be had: even 1, .* gives 3\."):
        cheapest(steps, wanted=Fraction(2), most=Fraction(1))
    with pytest.raises(UsageError, match="cannot be had"):
        cheapest(lambda amount: math.nan, wanted=Fraction(2), most=Fraction(1))


def test_a_margin_that_costs_nothing_still_costs_something() -> None:
    assert 0 < cheapest(lambda amount: 0, wanted=Fraction(2), most=Fraction(1)) < Fraction(1, 10**90)


# --- splits -----------------------------------------------------------------------------------------------------------

parts = st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=1, max_size=6)


def best(total: tuple[Fraction, ...], error: list[float], power: int) -> bool:
    """Whether moving a hundredth of any part to any other makes the sum of error / part^power larger."""
    shares = [float(part) for part in total]

    def size(values: list[float]) -> float:
        return sum(e / value**power for e, value in zip(error, values, strict=True))

    for i in range(len(shares)):
        for j in range(len(shares)):
            moved = list(shares)
            moved[i], moved[j] = moved[i] - shares[i] / 100, moved[j] + shares[i] / 100
            if i != j and size(moved) < size(shares) * (1 - 1e-9):
                return False
    return True


@given(parts, st.sampled_from([Fraction(1), Fraction(1, 3), Fraction("0.037")]))
def test_splits_are_best_and_sum_to_the_amount(sizes: list[tuple[int, int]], amount: Fraction) -> None:
    sensitivities = [Fraction(s) for s, _ in sizes]
    weights = [Fraction(w, 1000) for _, w in sizes]
    by_epsilon = split_epsilon(amount, l1=sensitivities, weights=weights)
    by_rho = split_rho(amount, l2_squared=sensitivities, weights=weights)
    for split in (by_epsilon, by_rho):
        assert amount * A_BIT_LESS <= sum(split) <= amount
    assert best(by_epsilon, [float(w * s**2) for s, w in zip(sensitivities, weights, strict=True)], 2)
    assert best(by_rho, [float(w * s) for s, w in zip(sensitivities, weights, strict=True)], 1)


def test_even_splits_are_even_and_short_splits_exact() -> None:
    one = Fraction(1)
    assert split_epsilon(one, l1=[one] * 4, weights=[one] * 4) == (Fraction(1, 4),) * 4
    assert split_epsilon(one, l1=[one, Fraction(8)], weights=[one] * 2) == (Fraction("0.2"), Fraction("0.8"))
    assert split_rho(one, l2_squared=[one, Fraction(81)], weights=[one] * 2) == (Fraction("0.1"), Fraction("0.9"))


@pytest.mark.parametrize("weights", [[], [Fraction(0)], [Fraction(-1)]])
def test_a_statistic_without_weight_is_refused(weights: list[Fraction]) -> None:
    with pytest.raises(UsageError, match="positive weight"):
        split_rho(Fraction(1), l2_squared=[Fraction(1)] * len(weights), weights=weights)


# --- which accountant -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), (4, "5e-10"), (10, "1e-7")])
def test_zcdp_overtakes_where_its_margin_becomes_the_smaller(epsilon: int, delta: str) -> None:
    n = overtaking(epsilon=Fraction(epsilon), delta=Fraction(delta))
    rho = float(zcdp.rho_of(epsilon=Fraction(epsilon), delta=Fraction(delta)))

    def wins(questions: int) -> bool:
        return 1.96 * math.sqrt(questions / (2 * rho)) < math.log(20) * questions / epsilon

    assert wins(n + 1)
    assert not wins(n - 1)
    assert 5 < n < 30
