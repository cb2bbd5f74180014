"""Planned batches against exact sums, against dp-accounting, and against the table of a thousand
questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as oracle
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.loss import LossDistribution, batch, response, shift
from discreet.errors import UsageError
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace


def laplace(scale: float) -> Callable[[int], float]:
    norm = math.log(math.tanh(1 / (2 * scale)))
    return lambda z: norm - abs(z) / scale


def gaussian(sigma: float) -> Callable[[int], float]:
    norm = math.log(
        sum(
            math.exp(-(z**2) / (2 * sigma**2))
            for z in range(-int(40 * sigma) - 1, int(40 * sigma) + 2)
        )
    )
    return lambda z: -(z**2) / (2 * sigma**2) - norm


def coin(epsilon: str, delta: str = "0") -> LossDistribution:
    return response(epsilon=Fraction(epsilon), delta=Fraction(delta))


def epsilon_of(losses: list[LossDistribution], delta: str) -> float:
    found = batch(losses, delta=Fraction(delta)).epsilon
    assert found is not None
    return float(found)


def exact_epsilon(atoms: list[tuple[mpmath.mpf, mpmath.mpf]], delta: str) -> float:
    """From all (loss, mass) of a composition, to sixty digits."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(0), max(loss for loss, _ in atoms)
        for _ in range(70):
            middle = (low + high) / 2
            leak = sum(
                mass * (1 - mpmath.exp(middle - loss)) for loss, mass in atoms if loss > middle
            )
            low, high = (middle, high) if leak > mpmath.mpf(delta) else (low, middle)
        return float(low)


def coins(n: int, epsilon: str) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        p = 1 / (1 + mpmath.exp(-e))
        return [
            ((2 * k - n) * e, mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k))
            for k in range(n + 1)
        ]


@pytest.mark.parametrize(
    ("n", "epsilon", "delta"),
    [(1, "1", "1e-6"), (3, "2", "1e-3"), (10, "0.1", "1e-6"), (10, "1", "1e-9"), (300, "0.1", "0.1"),
     (300, "0.1", "1e-6"), (300, "0.1", "1e-12"), (300, "0.1", "1e-30"), (100, "0.5", "1e-9"), (200, "0.001", "1e-4")],
)  # fmt: skip
def test_equal_coins_cost_what_the_binomial_says(n: int, epsilon: str, delta: str) -> None:
    true = exact_epsilon(coins(n, epsilon), delta)
    assert true <= epsilon_of([coin(epsilon)] * n, delta) <= true * (1 + 1e-4)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.integers(1, 3000), min_size=2, max_size=8),
    st.sampled_from(["1e-2", "1e-5", "1e-9"]),
)
def test_unequal_coins_cost_what_enumeration_says(thousandths: list[int], delta: str) -> None:
    with mpmath.workdps(60):
        sizes = [mpmath.mpf(n) / 1000 for n in thousandths]
        atoms = []
        for signs in product((1, -1), repeat=len(sizes)):
            terms = [sign * size for sign, size in zip(signs, sizes, strict=True)]
            atoms.append(
                (mpmath.fsum(terms), mpmath.fprod(1 / (1 + mpmath.exp(-term)) for term in terms))
            )
    true = exact_epsilon(atoms, delta)
    found = epsilon_of(
        [response(epsilon=Fraction(n, 1000), delta=Fraction(0)) for n in thousandths], delta
    )
    assert true <= found <= true * (1 + 1e-3) + 1e-4


def test_a_thousand_questions_as_in_the_table() -> None:
    fine, unit = [shift(laplace(640.0), by=64)] * 1000, [shift(laplace(10.0), by=1)] * 1000
    assert epsilon_of(fine, "1e-6") == pytest.approx(18.95, abs=0.005)
    assert epsilon_of([shift(gaussian(10.0), by=1)] * 1000, "1e-6") == pytest.approx(
        19.42, abs=0.005
    )
    assert epsilon_of([shift(gaussian(math.sqrt(200)), by=1)] * 1000, "1e-6") == pytest.approx(
        12.60, abs=0.005
    )
    # On the unit grid, Laplace noise loses what randomized response does (S12).
    assert epsilon_of(unit, "1e-6") == pytest.approx(
        epsilon_of([coin("0.1")] * 1000, "1e-6"), rel=1e-6
    )


def test_never_below_dp_accounting_and_as_tight() -> None:
    def theirs(pessimistic: bool) -> float:
        how = {"pessimistic_estimate": pessimistic, "value_discretization_interval": 1e-3}
        dots = how | {"use_connect_dots": pessimistic}
        total = oracle.from_gaussian_mechanism(10.0, **dots).self_compose(200)
        total = total.compose(oracle.from_laplace_mechanism(5.0, **dots).self_compose(50))
        total = total.compose(
            oracle.from_randomized_response(2 / (1 + math.exp(0.3)), 2, **how).self_compose(20)
        )
        return float(total.get_epsilon_for_delta(1e-6))

    ours = epsilon_of(
        [shift(gaussian(10.0), by=1)] * 200
        + [shift(laplace(320.0), by=64)] * 50
        + [coin("0.3")] * 20,
        "1e-6",
    )
    assert theirs(pessimistic=False) <= ours <= theirs(pessimistic=True) * 1.001


def test_two_noises_on_a_small_grid_cost_what_enumeration_says() -> None:
    with mpmath.workdps(60):
        points, weight = range(-80, 81), mpmath.tanh(mpmath.mpf(1) / 4)
        one = [
            ((abs(z - 2) - abs(z)) / mpmath.mpf(2), weight * mpmath.exp(-mpmath.mpf(abs(z)) / 2))
            for z in points
        ]
        merged: dict[mpmath.mpf, mpmath.mpf] = {}
        for (a, p), (b, q) in product(one, one):
            merged[a + b] = merged.get(a + b, mpmath.mpf(0)) + p * q
    true = exact_epsilon(list(merged.items()), "1e-5")
    assert true <= epsilon_of([shift(laplace(2.0), by=2)] * 2, "1e-5") <= true * (1 + 1e-6)


def test_many_small_losses_cost_what_gaussian_noise_does() -> None:
    assert epsilon_of([coin("0.001")] * 10**5, "1e-6") == pytest.approx(
        exact_gaussian(0.001 * math.sqrt(1e5)), rel=1e-3
    )


def test_many_different_losses_cost_what_direct_convolution_says() -> None:
    # of sums of ±n thousandths, at even steps from the lowest; all terms positive: 14 good digits
    masses = np.ones(1)
    for n in range(1, 101):
        p = 1 / (1 + math.exp(-n / 1000))
        masses = np.append(masses * (1 - p), np.zeros(n)) + np.append(np.zeros(n), masses * p)
    sums = (2 * np.arange(len(masses)) - 5050) / 1000
    low, high = 0.0, 5.05
    for _ in range(50):
        middle = (low + high) / 2
        leak = float((masses * -np.expm1(np.minimum(middle - sums, 0))).sum())
        low, high = (middle, high) if leak > 1e-6 else (low, middle)
    found = epsilon_of(
        [response(epsilon=Fraction(n, 1000), delta=Fraction(0)) for n in range(1, 101)], "1e-6"
    )
    assert low <= found <= low * (1 + 1e-4)


def exact_gaussian(mu: float) -> float:
    """The ε at δ = 1e-6 of Gaussian noise of sigma 1 / mu: the limit of many small losses."""
    low, high = 0.0, 50.0
    for _ in range(60):
        e = (low + high) / 2
        leak = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
        low, high = (e, high) if leak > 1e-6 else (low, e)
    return high


def test_the_delta_of_unknown_keys_is_paid_in_the_batch() -> None:
    keys = coin("0.1", "1e-7")
    assert epsilon_of([keys] * 5, "1e-6") > epsilon_of([coin("0.1")] * 5, "1e-6")
    assert epsilon_of([coin("0", "1e-7")] * 5, "1e-6") == 0
    with pytest.raises(
        UsageError, match=r"A batch with δ = 1.1e-6 of its own cannot be priced at δ = 1e-6"
    ):
        batch([keys] * 11, delta=Fraction(1, 10**6))


@pytest.mark.parametrize("hair", ["1e-12", "1e-9", "1e-6"])
def test_a_delta_all_but_used_up_by_the_keys_leaves_the_plain_sum_or_a_refusal(hair: str) -> None:
    try:
        price = batch([coin("0.1", "1e-6")], delta=Fraction(1, 10**6) * (1 + Fraction(hair)))
    except UsageError:
        assert hair == "1e-12"
    else:
        assert Fraction("0.0999") < (price.epsilon or 0) <= Fraction("0.1")


def test_never_more_than_the_plain_sum() -> None:
    assert batch([coin("0.1")] * 10, delta=Fraction(1, 10**30)).epsilon == 1
    assert epsilon_of([coin("49.3")], "1e-300") == 49.3


def test_the_noise_of_the_mechanisms_themselves() -> None:
    for mechanism, noise in (
        (DiscreteLaplace(scale=Fraction(10), l1=Fraction(1)), laplace(10.0)),
        (DiscreteGaussian(sigma=Fraction(10), l2_squared=Fraction(1)), gaussian(10.0)),
    ):
        mine, theirs = shift(noise, by=1), shift(mechanism.log_mass, by=1)
        assert epsilon_of([theirs] * 100, "1e-6") == pytest.approx(
            epsilon_of([mine] * 100, "1e-6"), rel=1e-8
        )


def test_the_price_has_no_proof_in_rho() -> None:
    assert batch([coin("0.1")] * 3, delta=Fraction(1, 10**6)).rho is None


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1)])
def test_a_delta_of_nothing_or_everything_is_refused(delta: Fraction) -> None:
    with pytest.raises(UsageError, match="cannot be priced"):
        batch([coin("0.1")], delta=delta)


def test_an_empty_batch_and_a_noise_too_wide_are_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        batch([], delta=Fraction(1, 10**6))
    with pytest.raises(UsageError, match="too wide"):
        shift(laplace(1e9), by=1)
