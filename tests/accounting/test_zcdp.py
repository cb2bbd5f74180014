"""Conversions between ρ and ε against the formula, evaluated independently to fifty digits."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting import zcdp
from discreet.accounting.zcdp import epsilon_of, epsilon_within, pure_rho, rho_of
from discreet.errors import UsageError


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def log_delta(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """log of the infimum over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) (1-1/a)^a, which is
    convex in a.
    """
    with mpmath.workdps(50):
        r, e = real(rho), real(epsilon)

        def value(log_u: mpmath.mpf) -> mpmath.mpf:
            u = mpmath.exp(log_u)
            return u * ((1 + u) * r - e) - mpmath.log(u) + (1 + u) * mpmath.log(u / (1 + u))

        low, high = mpmath.mpf(-60), mpmath.mpf(60)
        for _ in range(120):  # unimodal in log u as well
            third = (high - low) / 3
            low, high = (
                (low, high - third)
                if value(low + third) < value(high - third)
                else (low + third, high)
            )
        return value((low + high) / 2)


epsilons = st.integers(1, 10**9).map(lambda n: Fraction(n, 10**7)) | st.sampled_from(
    [Fraction(1, 10**6), Fraction(400)]
)
rhos = st.fractions(min_value=Fraction(1, 10**9), max_value=100, max_denominator=10**12)
deltas = st.sampled_from([Fraction(1, 10**n) for n in (2, 5, 6, 9, 12, 30, 100)]) | st.fractions(
    min_value=Fraction(1, 10**15), max_value=Fraction(1, 3)
)


def test_the_known_figures() -> None:
    assert float(epsilon_of(rho=Fraction("0.005"), delta=Fraction("1e-6"))) == pytest.approx(
        0.42994, abs=5e-6
    )
    whole = rho_of(epsilon=Fraction(4), delta=Fraction("5e-10"))
    assert float(rho_of(epsilon=Fraction(1), delta=Fraction("5e-10")) / whole) == pytest.approx(
        0.072, abs=5e-4
    )
    assert float(rho_of(epsilon=Fraction(4), delta=Fraction("1e-9")) / whole) == pytest.approx(
        1.034, abs=5e-4
    )


@settings(deadline=None, max_examples=60)
@given(rhos, deltas)
def test_epsilon_of_rho_is_true_and_tight(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_of(rho=rho, delta=delta)
    with mpmath.workdps(50):
        assert log_delta(rho, epsilon) <= mpmath.log(real(delta))
        if epsilon:
            assert log_delta(rho, epsilon * (1 - Fraction(2, 10**8))) > mpmath.log(real(delta))


@settings(deadline=None, max_examples=60)
@given(epsilons, deltas)
def test_rho_of_epsilon_is_true_and_tight(epsilon: Fraction, delta: Fraction) -> None:
    rho = rho_of(epsilon=epsilon, delta=delta)
    with mpmath.workdps(50):
        assert log_delta(rho, epsilon) <= mpmath.log(real(delta))
        assert log_delta(rho * (1 + Fraction(1, 10**10)), epsilon) > mpmath.log(real(delta))


@settings(deadline=None)
@given(epsilons, deltas)
def test_there_and_back_never_gains_and_reads_the_same(epsilon: Fraction, delta: Fraction) -> None:
    back = epsilon_of(rho=rho_of(epsilon=epsilon, delta=delta), delta=delta)
    assert epsilon * (1 - Fraction(1, 10**6)) <= back <= epsilon


@settings(deadline=None)
@given(rhos, deltas)
def test_what_is_left_can_be_asked_for(rho: Fraction, delta: Fraction) -> None:
    epsilon = epsilon_within(rho=rho, delta=delta)
    assert epsilon <= epsilon_of(rho=rho, delta=delta) <= epsilon * (1 + Fraction(1, 10**8))
    if epsilon:
        assert rho * (1 - Fraction(1, 10**6)) <= rho_of(epsilon=epsilon, delta=delta) <= rho


@settings(deadline=None)
@given(epsilons, epsilons, deltas, deltas)
def test_more_epsilon_or_more_delta_is_more_rho(
    e1: Fraction, e2: Fraction, d1: Fraction, d2: Fraction
) -> None:
    (e1, e2), (d1, d2) = sorted((e1, e2)), sorted((d1, d2))
    assert rho_of(epsilon=e1, delta=d1) <= rho_of(epsilon=e2, delta=d1)
    assert rho_of(epsilon=e1, delta=d1) <= rho_of(epsilon=e1, delta=d2)


@settings(deadline=None)
@given(rhos, rhos, deltas, deltas)
def test_more_rho_or_less_delta_is_more_epsilon(
    r1: Fraction, r2: Fraction, d1: Fraction, d2: Fraction
) -> None:
    (r1, r2), (d1, d2) = sorted((r1, r2)), sorted((d1, d2))
    assert epsilon_of(rho=r1, delta=d2) <= epsilon_of(rho=r2, delta=d2)
    assert epsilon_of(rho=r1, delta=d2) <= epsilon_of(rho=r1, delta=d1)


@settings(deadline=None)
@given(st.integers(2**20, 2**21), st.integers(-60, 60), deltas)
def test_the_intercept_is_rounded_up_and_by_next_to_nothing(
    mantissa: int, exponent: int, delta: Fraction
) -> None:
    u = mantissa * Fraction(2) ** (exponent - 20)
    claimed = zcdp._intercept(u, delta)
    with mpmath.workdps(120):
        x, d = real(u), real(delta)
        true = mpmath.log(x / (1 + x)) + (mpmath.log(1 / d) - mpmath.log(1 + x)) / x
        assert 0 < real(claimed) - true < mpmath.mpf(10) ** -35 / min(x, 1)


def test_nothing_costs_nothing() -> None:
    assert epsilon_of(rho=Fraction(0), delta=Fraction(1, 10**6)) == 0


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(2)])
def test_a_delta_outside_0_and_1_is_refused(delta: Fraction) -> None:
    with pytest.raises(UsageError, match=f"between 0 and 1, not {delta}"):
        rho_of(epsilon=Fraction(1), delta=delta)
    with pytest.raises(UsageError, match=f"between 0 and 1, not {delta}"):
        epsilon_of(rho=Fraction(1), delta=delta)


@pytest.mark.parametrize("epsilon", ["1e-100", "1e-20", "1e9", "1e300"])
@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "0.999999"])
def test_extremes_stay_on_the_safe_side(epsilon: str, delta: str) -> None:
    rho = rho_of(epsilon=Fraction(epsilon), delta=Fraction(delta))
    assert rho > 0
    assert epsilon_of(rho=rho, delta=Fraction(delta)) <= Fraction(epsilon)


def test_an_epsilon_beyond_the_search_is_refused_not_guessed() -> None:
    with pytest.raises(UsageError, match="too small"):
        rho_of(epsilon=Fraction("1e-300"), delta=Fraction("1e-300"))


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=1000))
def test_pure_rho_is_epsilon_tanh_of_half_rounded_up(epsilon: Fraction) -> None:
    with mpmath.workdps(80):
        true = real(epsilon) * mpmath.tanh(real(epsilon) / 2)
        assert true <= real(pure_rho(epsilon=epsilon)) <= true * (1 + mpmath.mpf(10) ** -13)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 3.0])
def test_pure_rho_covers_randomized_response_at_every_order(epsilon: float) -> None:
    p = mpmath.e**epsilon / (1 + mpmath.e**epsilon)
    rho = real(pure_rho(epsilon=Fraction(epsilon)))
    for order in (1.0001, 1.5, 2, 3, 10, 100):
        renyi = mpmath.log(
            p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
        ) / (order - 1)
        assert renyi <= order * rho
    # order 1, the Kullback-Leibler divergence, is tight
    assert (2 * p - 1) * epsilon == pytest.approx(float(rho))


def test_a_question_asked_again_is_not_converted_again() -> None:
    def convert() -> None:
        for n in range(1, 101):
            rho_of(epsilon=Fraction(n, 7919), delta=Fraction(1, 7919_000_000))

    convert()
    before = rho_of.cache_info().misses
    convert()
    assert rho_of.cache_info().misses == before
