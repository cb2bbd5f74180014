"""What an amount buys costs that amount, hides what it was bought for, and is the best kind for its
budget.
"""

from __future__ import annotations

from fractions import Fraction
from typing import get_args

import pytest

from discreet.accounting import accountant
from discreet.budget import AccountantName, Neighbors
from discreet.mechanisms import (
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GaussianThreshold,
    Mechanism,
    PermuteAndFlip,
    Quantiles,
    TruncatedLaplaceThreshold,
)
from discreet.mechanisms.currency import CURRENCIES, currency
from discreet.mechanisms.shapes import Keys, Movement, Scores

F = Fraction
NAMES: tuple[AccountantName, ...] = get_args(AccountantName)
AMOUNTS = (F(1, 3), F(1, 10**12), F(7, 2), F(10**9))


def cost(name: AccountantName, mechanism: Mechanism) -> Fraction:
    loss = mechanism.loss()
    amount = loss.epsilon if name == "sum" else loss.rho
    assert amount is not None
    return amount


def test_every_accountant_has_a_currency() -> None:
    assert set(CURRENCIES) == set(NAMES)
    for name in NAMES:
        assert accountant(name, delta=F(1, 100), keys=F(1, 2)).name == name


def test_the_currency_decides_the_kind() -> None:
    moved, scores = Movement(l1=3, l2_squared=5), Scores(linf=3, monotone=True)
    epsilon, rho = currency("sum"), currency("zcdp")
    assert epsilon.noise(amount=F(1, 2), moved=moved) == DiscreteLaplace(scale=F(6), l1=F(3))
    assert rho.noise(amount=F(5, 8), moved=moved) == DiscreteGaussian(sigma=F(2), l2_squared=F(5))
    assert epsilon.choice(amount=F(1, 2), moved=scores) == PermuteAndFlip(
        epsilon=F(1, 2), linf=F(3), monotone=True
    )
    assert rho.choice(amount=F(1, 8), moved=scores) == ExponentialMechanism(
        epsilon=F(1), linf=F(3), monotone=True
    )
    keys = {"amount": F(1), "max_groups": 2, "neighbors": "change_one", "delta": F(1, 100)}
    assert isinstance(epsilon.people(**keys), TruncatedLaplaceThreshold)  # type: ignore[arg-type]
    assert isinstance(rho.people(**keys), GaussianThreshold)  # type: ignore[arg-type]


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_bought_costs_its_amount_and_hides_its_move(
    name: AccountantName, amount: Fraction
) -> None:
    paid, moved, scores = (
        currency(name),
        Movement(l1=7, l2_squared=F(11, 3)),
        Scores(linf=7, monotone=False),
    )
    noise, choice = paid.noise(amount=amount, moved=moved), paid.choice(amount=amount, moved=scores)
    assert noise.hides(moved)
    assert choice.hides_scores(scores)
    for each in (noise, choice):
        assert amount * (1 - F(1, 10**8)) < cost(name, each) <= amount


@pytest.mark.parametrize("neighbors", get_args(Neighbors))
@pytest.mark.parametrize("name", NAMES)
def test_a_test_of_people_costs_its_amount(name: AccountantName, neighbors: Neighbors) -> None:
    bought = currency(name).people(
        amount=F(1, 3), max_groups=4, neighbors=neighbors, delta=F(1, 1000)
    )
    assert bought.hides(Keys(most=4, neighbors=neighbors))
    assert F(1, 3) * (1 - F(1, 10**8)) < cost(name, bought) <= F(1, 3)
    assert bought.loss().delta == F(1, 1000)


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_rounds_of_choices_cost_their_amount_together(
    name: AccountantName, amount: Fraction
) -> None:
    paid, wanted = currency(name), tuple(F(place, 8) for place in range(1, 8))
    bought = Quantiles(
        epsilon=paid.choice_epsilon(amount=amount, rounds=3), quantiles=wanted, cells=4, slices=1, max_rows=2,
        neighbors="add_remove", choice=paid.choice_name,
    )  # fmt: skip
    assert amount * (1 - F(1, 10**8)) < cost(name, bought) <= amount


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_those_of_the_noise(name: AccountantName) -> None:
    """Shares, moves and spreads in floats, as they are weighed, against the noise that is
    bought.
    """
    paid, one, two = currency(name), Movement(l1=2, l2_squared=3), Movement(l1=10, l2_squared=48)
    whole, part, more = (
        paid.noise(amount=amount, moved=moved)
        for amount, moved in ((F(1), one), (F(1, 5), one), (F(1), two))
    )
    assert float(part.spread / whole.spread) == pytest.approx(paid.widening(5))
    assert float(more.spread / whole.spread) == pytest.approx(paid.ratio(two, one))
    assert paid.length(two) / paid.length(one) == pytest.approx(paid.ratio(two, one))
    assert paid.amount(length=paid.length(two), spread=float(more.spread)) == pytest.approx(1)


def test_a_ratio_of_moves_beyond_floats() -> None:
    huge, more = (Movement(l1=10**400 * times, l2_squared=10**400 * times**2) for times in (1, 3))
    assert [currency(name).ratio(more, huge) for name in NAMES] == [3, 3]
