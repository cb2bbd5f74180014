"""Every accountant: limits, prices, what people read; the filter against dp-accounting and the
counterexample.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce

import pytest
from dp_accounting.dp_event import ZCDpEvent
from dp_accounting.pld import privacy_loss_distribution as oracle
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from discreet.accounting import (
    ACCOUNTANTS,
    Accountant,
    SumAccountant,
    ZcdpAccountant,
    accountant,
    between_neighbors,
    delta_for_keys,
    loss,
    lump,
    zcdp,
)
from discreet.accounting.calibrate import gaussian_sigma, laplace_scale
from discreet.budget import Charge, Loss
from discreet.errors import UsageError

DELTA = Fraction(1, 10**9)
SUM, ZCDP = SumAccountant(), ZcdpAccountant(delta_convert=DELTA / 2)
BOTH = pytest.mark.parametrize("accountant", [SUM, ZCDP], ids=lambda value: value.name)

amounts = st.integers(1, 10**6).map(lambda n: Fraction(n, 10**5))


def pure(epsilon: Fraction) -> Loss:
    return Loss(epsilon=epsilon, rho=zcdp.pure_rho(epsilon=epsilon))


def test_there_is_a_case_for_every_accountant() -> None:
    assert {type(value) for value in (SUM, ZCDP)} == set(ACCOUNTANTS)


def test_a_policy_names_its_accountant() -> None:
    assert accountant("sum", delta=DELTA, keys=Fraction(1)) == SUM
    assert accountant("zcdp", delta=DELTA, keys=Fraction(1, 2)) == ZCDP
    with pytest.raises(UsageError, match="sum or zcdp, not 'renyi'"):
        accountant("renyi", delta=DELTA, keys=Fraction(1, 2))  # type: ignore[arg-type]


@pytest.mark.parametrize(("delta", "keys"), [(Fraction(0), Fraction(1, 2)), (DELTA, Fraction(1))])
def test_zcdp_needs_some_delta_to_convert_with(delta: Fraction, keys: Fraction) -> None:
    with pytest.raises(UsageError, match="needs a delta above zero"):
        accountant("zcdp", delta=delta, keys=keys)


# --- limits and shares ----------------------------------------------------------------------------


def test_all_of_delta_is_for_keys_on_sum_and_a_share_on_zcdp() -> None:
    assert SUM.limit(epsilon=Fraction(4), delta=DELTA) == Charge(amount=Fraction(4), delta=DELTA)
    limit = ZCDP.limit(epsilon=Fraction(4), delta=DELTA)
    assert limit == Charge(
        amount=zcdp.rho_of(epsilon=Fraction(4), delta=DELTA / 2), delta=DELTA / 2
    )


@BOTH
def test_the_whole_limit_reads_as_the_policy_wrote_it(accountant: Accountant) -> None:
    limit = accountant.limit(epsilon=Fraction(4), delta=DELTA)
    for told in (accountant.budget(limit), accountant.left(limit)):
        assert told.delta == DELTA
        assert float(told.epsilon) == pytest.approx(4, rel=1e-8)
    assert accountant.budget(limit).epsilon <= 4


def test_an_analysts_share_of_one_in_four() -> None:
    shares = [a.limit(epsilon=Fraction(1), delta=DELTA).amount / a.limit(epsilon=Fraction(4), delta=DELTA).amount
              for a in (SUM, ZCDP)]  # fmt: skip
    assert shares[0] == Fraction(1, 4)
    assert float(shares[1]) == pytest.approx(0.072, abs=5e-4)  # S6: say so


@BOTH
@settings(deadline=None)
@given(st.integers(1, 400).map(lambda n: Fraction(n, 100)))
def test_noise_made_for_an_epsilon_is_priced_within_it_and_reads_as_it(
    accountant: Accountant, epsilon: Fraction
) -> None:
    amount = accountant.allot(epsilon=epsilon)
    sigma = gaussian_sigma(l2_squared=Fraction(3), rho=amount)
    scale = laplace_scale(l1=Fraction(3), epsilon=amount)
    cost = accountant.price([Loss(epsilon=3 / scale, rho=3 / (2 * sigma**2))])
    assert amount * (1 - Fraction(1, 10**10)) <= cost.amount <= amount
    assert accountant.budget(cost).epsilon == epsilon


@BOTH
@settings(deadline=None)
@given(amounts)
def test_what_is_left_fits(accountant: Accountant, amount: Fraction) -> None:
    assert accountant.allot(epsilon=accountant.left(Charge(amount=amount)).epsilon) <= amount


@BOTH
def test_nothing_is_left_below_zero(accountant: Accountant) -> None:
    told = accountant.left(Charge(amount=Fraction(-1), delta=-DELTA))
    assert (told.epsilon, told.delta) == (0, 0)


@BOTH
def test_spending_all_of_the_amount_spends_all_of_the_delta(accountant: Accountant) -> None:
    limit = accountant.limit(epsilon=Fraction(4), delta=DELTA)
    assert delta_for_keys(limit.amount, of=limit) == limit.delta
    tenth = delta_for_keys(limit.amount / 10, of=limit)
    assert tenth == limit.delta / 10
    assert delta_for_keys(limit.amount * 2, of=limit) == limit.delta
    assert delta_for_keys(limit.amount, of=Charge(amount=limit.amount)) == 0
    assert sum(delta_for_keys(limit.amount * k / 6, of=limit) for k in (1, 2, 3)) <= limit.delta


# --- prices ---------------------------------------------------------------------------------------


def test_a_loss_without_a_proof_in_the_currency_is_refused() -> None:
    gaussian = Loss(epsilon=None, rho=Fraction(1, 8))
    unproved = Loss(epsilon=Fraction(1), rho=None)
    with pytest.raises(UsageError, match="no proof in ε, and cannot be paid from a sum budget"):
        SUM.price([pure(Fraction(1)), gaussian])
    with pytest.raises(UsageError, match="no proof in ρ, and cannot be paid from a zcdp budget"):
        ZCDP.price([gaussian, unproved])


@BOTH
def test_a_price_is_rounded_up_and_short(accountant: Accountant) -> None:
    third = Loss(epsilon=Fraction(1, 3), rho=Fraction(1, 3), delta=Fraction(1, 3))
    cost = accountant.price([third])
    assert Fraction(1, 3) < cost.amount < Fraction(1, 3) * (1 + Fraction(1, 10**20))
    assert cost.amount == cost.delta
    # a decimal: a ledger's total cannot grow a longer and longer fraction
    assert 10**24 % cost.amount.denominator == 0
    assert accountant.price([]) == Charge(amount=Fraction(0))


@BOTH
def test_ten_tenths_fit_and_the_eleventh_does_not(accountant: Accountant) -> None:
    limit, spent = Charge(amount=Fraction(1), delta=DELTA), Charge(amount=Fraction(0))
    tenth = accountant.price([Loss(epsilon=Fraction(1, 10), rho=Fraction(1, 10), delta=DELTA / 10)])
    for _ in range(10):
        assert (spent := spent + tenth).fits(limit)
    assert not (spent + tenth).fits(limit)


# --- neighbors and groups -------------------------------------------------------------------------


def test_change_one_costs_two_epsilon_or_four_rho() -> None:
    one = Charge(amount=Fraction(1))
    assert between_neighbors(one, SUM, before="add_remove", after="change_one") == Charge(
        amount=Fraction(2)
    )
    assert between_neighbors(one, ZCDP, before="add_remove", after="change_one") == Charge(
        amount=Fraction(4)
    )
    for before, after in (
        ("change_one", "add_remove"),
        ("change_one", "change_one"),
        ("add_remove", "add_remove"),
    ):
        assert between_neighbors(one, ZCDP, before=before, after=after) == one  # type: ignore[arg-type]


def test_the_delta_of_two_people_is_that_of_one_and_e_to_the_epsilon_times_it() -> None:
    pair = SUM.group(Charge(amount=Fraction(1), delta=DELTA), size=2)
    assert float(pair.delta / DELTA) == pytest.approx(1 + math.e, rel=1e-12)
    assert float(pair.delta / DELTA) >= 1 + math.e

    def delta(
        epsilon: float, shift: float
    ) -> float:  # a true pair: Gaussian noise, one step and two
        return float(
            norm.cdf(shift / 2 - epsilon / shift)
            - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
        )

    for epsilon in (0.5, 1.0, 2.0):
        charge = Charge(amount=Fraction(epsilon), delta=Fraction(delta(epsilon, 1.0)))
        assert delta(2 * epsilon, 2.0) <= SUM.group(charge, size=2).delta
        assert delta(2 * epsilon, 2.0) > 2 * delta(epsilon, 1.0)  # doubling δ alone would be false


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_a_household_has_the_delta_that_the_promise_tells(size: int) -> None:
    """(kε, δ (e^kε - 1) / (e^ε - 1)), against true pairs of Gaussian noise that are k steps apart;
    kδ is too little.
    """

    def true(epsilon: float, shift: float) -> float:
        return float(
            norm.cdf(shift / 2 - epsilon / shift)
            - math.exp(epsilon) * norm.cdf(-shift / 2 - epsilon / shift)
        )

    for epsilon in (0.5, 1.0, 2.0):
        one = true(epsilon, 0.2)
        told = one * math.expm1(size * epsilon) / math.expm1(epsilon)
        group = SUM.group(Charge(amount=Fraction(epsilon), delta=Fraction(one)), size=size)
        assert group.amount == size * Fraction(epsilon)
        assert told * (1 - 1e-12) <= float(group.delta) <= told * (1 + 1e-9)
        assert true(size * epsilon, 0.2 * size) <= float(group.delta) * (1 + 1e-12)
        assert size == 1 or true(size * epsilon, 0.2 * size) > size * one
    # as docs/promise.md has it
    assert math.expm1(4) / math.expm1(1) * 1e-9 == pytest.approx(3.12e-8, rel=0.01)
    assert math.expm1(16) / math.expm1(4) * 1e-9 == pytest.approx(1.66e-4, rel=0.01)


def test_approximate_zcdp_has_no_general_price_for_a_group() -> None:
    with pytest.raises(UsageError, match="recompute it from the mechanisms"):
        ZCDP.group(Charge(amount=Fraction(1), delta=DELTA), size=2)
    with pytest.raises(UsageError, match="no protection"):
        SUM.group(Charge(amount=Fraction(2000), delta=DELTA), size=2)


# --- composition ----------------------------------------------------------------------------------

kinds = st.sampled_from(["laplace", "gaussian", "exponential"])
streams = st.lists(
    st.tuples(kinds, st.sampled_from([0.05, 0.1, 0.2, 0.5, 1.0])), min_size=1, max_size=12
)


def truth(stream: list[tuple[str, float]], delta: float) -> float:
    """dp-accounting's ε, rounded down. An exponential choice between two is a coin with odds exp(ε
    / 2).
    """
    step = {"value_discretization_interval": 1e-3, "pessimistic_estimate": False}
    buckets = step | {"use_connect_dots": False}
    parts = []
    for kind, size in sorted(set(stream)):
        if kind == "laplace":
            one = oracle.from_laplace_mechanism(1 / size, **buckets)
        elif kind == "gaussian":
            one = oracle.from_gaussian_mechanism(1 / size, **buckets)
        else:
            one = oracle.from_randomized_response(2 / (1 + math.exp(size / 2)), 2, **step)
        parts.append(one.self_compose(stream.count((kind, size))))
    return float(
        reduce(lambda total, part: total.compose(part), parts).get_epsilon_for_delta(delta)
    )


def loss_of(kind: str, size: float) -> Loss:
    """Laplace of scale 1 / size, Gaussian of sigma 1 / size, exponential mechanism of epsilon
    size.
    """
    exact = Fraction(str(size))
    if kind == "laplace":
        return pure(exact)
    return (
        Loss(epsilon=None, rho=exact**2 / 2)
        if kind == "gaussian"
        else Loss(epsilon=exact, rho=exact**2 / 8)
    )


@settings(deadline=None, max_examples=50)
@given(streams)
def test_composition_agrees_with_dp_accounting_and_is_never_below_the_truth(
    stream: list[tuple[str, float]],
) -> None:
    losses = [loss_of(kind, size) for kind, size in stream]
    true = truth(stream, float(ZCDP.delta_convert))
    cost = ZCDP.budget(ZCDP.price(losses))
    assert cost.epsilon >= true
    peer = RdpAccountant(orders=[1 + 1.02**n for n in range(-300, 700)])
    for each in losses:
        assert each.rho is not None
        peer.compose(ZCDpEvent(float(each.rho)))
    assert float(cost.epsilon) == pytest.approx(
        peer.get_epsilon(float(ZCDP.delta_convert)), rel=1e-3
    )
    if all(each.epsilon is not None for each in losses):
        assert SUM.price(losses).amount == sum(each.epsilon for each in losses if each.epsilon)
        assert SUM.price(losses).amount >= true


def test_the_stream_whose_list_depends_on_the_answers() -> None:
    """A filter by privacy-loss distribution admits both branches of this plan, and its promise is
    then false.

    Randomized response at 0.05 first. If its answer speaks for the table, randomized response at
    0.25; if it speaks against, a leak of everything with the probability that just fits. Budget
    (0.2, 0.0274).
    """
    first, second, epsilon = Fraction("0.05"), Fraction("0.25"), Fraction("0.2")
    p, r = (1 / (1 + math.exp(-float(odds))) for odds in (first, second))
    # both for the table: a loss of 0.3
    delta = Fraction(p * r * -math.expm1(-0.1)) * (1 + Fraction(1, 10**4))
    assert float(delta) == pytest.approx(0.0274, abs=5e-5)
    leak = Loss(epsilon=Fraction(0), rho=Fraction(0), delta=delta * (1 - Fraction(1, 10**4)))

    branches = ((pure(first), pure(second)), (pure(first), leak))
    for branch in branches:  # as planned batches, each alone keeps the budget
        planned = [
            loss.response(epsilon=each.epsilon, delta=each.delta)
            for each in branch
            if each.epsilon is not None
        ]
        assert loss.batch(planned, delta=delta).epsilon <= epsilon

    # By enumeration: the leak has infinite loss; a loss of 0.05 - 0.25 stays below 0.2.
    true = p * r * -math.expm1(0.2 - 0.3) + (1 - p) * float(leak.delta)
    assert true > 1.45 * float(delta)

    limit = SUM.limit(epsilon=epsilon, delta=delta)
    assert not SUM.price(branches[0]).fits(limit)
    assert SUM.price(branches[1]).fits(limit)  # what we admit keeps the promise:
    assert (1 - p) * float(leak.delta) <= delta


def test_a_thousand_questions_as_in_the_table() -> None:
    delta = Fraction(1, 10**6)
    laplace, tenth = pure(Fraction(1, 10)), Fraction(1, 200)
    zcdp_ = ZcdpAccountant(delta_convert=delta)

    def spent(rho: Fraction) -> float:
        return float(zcdp_.budget(zcdp_.price([Loss(epsilon=None, rho=rho)] * 1000)).epsilon)

    assert SUM.price([laplace] * 1000).amount == 100
    # Gaussian of sigma 10; Laplace by ε² / 2
    assert spent(tenth) == pytest.approx(20.55, abs=0.005)
    # fine-grid Laplace
    assert spent(Fraction("0.1") + Fraction(math.expm1(-0.1))) == pytest.approx(20.13, abs=0.005)
    assert spent(Fraction(1, 400)) == pytest.approx(13.37, abs=0.005)


def test_a_zcdp_algorithm_is_one_row_of_a_sum_budget() -> None:
    row = lump(Fraction("0.005"), delta=Fraction(1, 10**6), delta_keys=DELTA)
    cost = SUM.price([row, pure(Fraction(1))])
    assert float(cost.amount) == pytest.approx(1.42994, abs=1e-5)
    assert cost.delta == Fraction(1, 10**6) + DELTA
    with pytest.raises(UsageError, match="no proof in ρ"):
        ZCDP.price([row])
