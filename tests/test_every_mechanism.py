"""One battery for all mechanisms: what each claims, by definition, by its draws, and by a million
runs of its code.

A newcomer is listed in CASES (tests/mechanism_cases.py says how it is run) and gets all of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from by_definition import delta, epsilon, given, implausible, provable_epsilon, rho, total
from discreet.accounting.zcdp import epsilon_of
from discreet.errors import UsageError
from discreet.mechanisms import (
    MECHANISMS,
    AboveThreshold,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    FineQuantile,
    GaussianThreshold,
    LaplaceThreshold,
    PermuteAndFlip,
    Quantile,
    Quantiles,
    RandomizedResponse,
    TopK,
    TruncatedLaplaceThreshold,
    from_row,
    to_row,
)
from discreet.noise import Stream, recording
from mechanism_cases import (
    Case,
    all_reach,
    by,
    looser,
    wider,
    with_coins,
    with_one_noise,
    without_noise,
)

F = Fraction
RUNS = 1_000_000
SPENT = 0.01  # the δ at which a mechanism that is only zCDP is compared with its ε

laplace = DiscreteLaplace(scale=F(2), l1=F(1))
laplace_of_two = DiscreteLaplace(scale=F(3), l1=F(2))
gaussian = DiscreteGaussian(sigma=F(2), l2_squared=F(2))
exponential = ExponentialMechanism(epsilon=F(1), linf=F(1))
exponential_monotone = ExponentialMechanism(epsilon=F(1), linf=F(2), monotone=True)
flip = PermuteAndFlip(epsilon=F(1), linf=F(1))
flip_monotone = PermuteAndFlip(epsilon=F(1), linf=F(2), monotone=True)
top = TopK(epsilon=F(2), linf=F(1), k=2)
laplace_keys = LaplaceThreshold(
    scale=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 50)
)
gaussian_keys = GaussianThreshold(
    sigma=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 50)
)
truncated_keys = TruncatedLaplaceThreshold(
    scale=F(2), linf=1, max_groups=2, neighbors="add_remove", delta=F(1, 50)
)
changed_keys = TruncatedLaplaceThreshold(
    scale=F(4), linf=2, max_groups=1, neighbors="change_one", delta=F(1, 50)
)
median = Quantile(
    epsilon=F(1), q=F(1, 2), cells=12, max_rows=1, neighbors="add_remove", choice="exponential"
)
high = Quantile(
    epsilon=F(1),
    q=F(9, 10),
    cells=12,
    max_rows=2,
    neighbors="change_one",
    choice="permute_and_flip",
)
fine = FineQuantile(epsilon=F(1), q=F(1, 2), cells=12, max_rows=1, neighbors="add_remove", reach=15)
octiles = Quantiles(
    epsilon=F(2), quantiles=tuple(F(i, 8) for i in range(1, 8)), cells=4, slices=1, max_rows=2, neighbors="add_remove",
    choice="permute_and_flip",
)  # fmt: skip
quartiles = Quantiles(
    epsilon=F(2), quantiles=(F(1, 4), F(1, 2), F(3, 4)), cells=4, slices=2, max_rows=2, neighbors="change_one",
    choice="exponential",
)  # fmt: skip
above = AboveThreshold.costing(epsilon=F(1), linf=1, max_hits=1)
above_twice = AboveThreshold.costing(epsilon=F(2), linf=1, max_hits=2)
above_monotone = AboveThreshold.costing(epsilon=F(1), linf=1, max_hits=1, monotone=True)
yes_or_no = RandomizedResponse(epsilon=F(1), categories=2)
one_of_five = RandomizedResponse(epsilon=F(2), categories=5)

# the median lies in a wide gap; one row more at the bottom moves all of it
FAR = (0, 39, 1, *[0] * 8, 40)
# so does the ninth decile, and two rows from the top to the bottom move it
HIGH = (0, 0, 178, 2, *[0] * 7, 20)

CASES = (
    Case(
        mechanism=laplace,
        pairs=(((0,), (1,)),),
        attained=1, attained_rho=1, proved=0.9,
        mistakes={
            "half scale": (by(wider(laplace, F(1, 2))), ((0,), (1,))),
            "off by one": (by(laplace), ((0,), (2,))),
        },
    ),
    Case(
        mechanism=laplace_of_two,
        pairs=(((0, 0), (1, 1)), ((0, 0), (2, 0)), ((0, 0), (1, -1))),
        attained=1, attained_rho=0.8, proved=0.8,
        mistakes={
            "half scale": (by(wider(laplace_of_two, F(1, 2))), ((0, 0), (1, 1))),
            "off by one": (by(laplace_of_two), ((0, 0), (2, 1))),
            "reused noise": (with_one_noise(laplace_of_two), ((0, 0), (1, 0))),
        },
    ),
    Case(
        mechanism=gaussian,
        pairs=(((0, 0), (1, 1)), ((0, 0), (1, 0))),
        attained=0.5, attained_rho=1, proved=0.6,
        mistakes={
            "half scale": (by(wider(gaussian, F(1, 2))), ((0, 0), (1, 1))),
            "off by one": (by(gaussian), ((0, 0), (2, 2))),
            "reused noise": (with_one_noise(gaussian), ((0, 0), (1, 0))),
        },
    ),
    Case(
        mechanism=exponential,
        pairs=(((0, 8), (1, 7)), ((0, 0, 80), (1, -1, 79)), ((0, 0), (1, -1)), ((3, 3, 3), (4, 3, 2))),
        attained=1, attained_rho=0.97, proved=0.75,
        mistakes={
            "half scale": (by(wider(exponential, F(1, 2))), ((0, 4), (1, 3))),
            "off by one": (by(exponential), ((0, 8), (2, 6))),
            "reused noise": (without_noise, ((1, 0), (0, 1))),
        },
    ),
    Case(
        mechanism=exponential_monotone,
        pairs=(((0, 8), (2, 8)), ((0, 1), (2, 1)), ((0, 80), (0, 82)), ((0, 1, 0), (2, 1, 2))),
        attained=1, attained_rho=0.97, proved=0.7,
        mistakes={
            "half scale": (by(wider(exponential_monotone, F(1, 2))), ((0, 4), (2, 4))),
            "not monotone": (by(exponential_monotone), ((0, 8), (2, 6))),
        },
    ),
    Case(
        mechanism=flip,
        pairs=(((0, 6), (1, 5)), ((0, 0, 80), (1, -1, 79)), ((0, 0), (1, -1)), ((3, 3, 3), (4, 3, 2))),
        attained=1, attained_rho=0.3, proved=0.8,
        mistakes={
            "half scale": (by(wider(flip, F(1, 2))), ((0, 6), (1, 5))),
            "off by one": (by(flip), ((0, 6), (2, 4))),
        },
    ),
    Case(
        mechanism=flip_monotone,
        pairs=(((0, 8), (2, 8)), ((0, 1), (2, 1)), ((0, 80), (0, 82)), ((0, 1, 0), (2, 1, 2))),
        attained=1, attained_rho=0.5, proved=0.75,
        mistakes={
            "half scale": (by(wider(flip_monotone, F(1, 2))), ((0, 4), (2, 4))),
            "not monotone": (by(flip_monotone), ((0, 8), (2, 6))),
        },
    ),
    Case(
        mechanism=top,
        pairs=(((0, 0, 7, 7), (1, 1, 6, 6)), ((0, 0, 90, 90), (1, 1, 89, 89))),
        attained=1, attained_rho=0.4, proved=0.45,
        mistakes={
            "unsplit budget": (by(dataclasses.replace(top, epsilon=2 * top.epsilon)), ((0, 0, 3, 3), (1, 1, 2, 2))),
            "off by one": (by(top), ((0, 0, 6, 6), (2, 2, 4, 4))),
        },
    ),
    Case(
        mechanism=laplace_keys,
        pairs=(((16, 16), (17, 17)), ((None, None), (1, 1)), ((16, None), (17, 1)), ((3, None), (4, 1))),
        attained=1, attained_rho=0.9, proved=0.75,
        mistakes={
            "half scale": (by(wider(laplace_keys, F(1, 2))), ((16, 16), (17, 17))),
            "off by one": (by(laplace_keys), ((16, 16), (18, 17))),
            "threshold too low": (looser(laplace_keys, F(2, 5)), ((None, None), (1, 1))),
            "unsplit budget": (all_reach(laplace_keys, 17), ((16, 16, 16, 16), (17, 17, 17, 17))),
        },
    ),
    Case(
        mechanism=gaussian_keys,
        pairs=(((16, 16), (17, 17)), ((None, None), (1, 1)), ((16, None), (17, 1)), ((3, None), (4, 1))),
        attained=0.5, attained_rho=0.95, proved=0.4,
        mistakes={
            "half scale": (by(wider(gaussian_keys, F(1, 3))), ((16, 16), (17, 17))),
            "threshold too low": (looser(gaussian_keys, F(2, 5)), ((None, None), (1, 1))),
        },
    ),
    Case(
        mechanism=truncated_keys,
        pairs=(((16, 16), (17, 17)), ((None, None), (1, 1)), ((16, None), (17, 1)), ((2, 2), (3, 3))),
        attained=1, attained_rho=0.9, proved=0.75,
        mistakes={
            "half scale": (by(wider(truncated_keys, F(1, 2))), ((16, 16), (17, 17))),
            "off by one": (by(truncated_keys), ((16, 16), (18, 17))),
            "threshold too low": (looser(truncated_keys, F(2, 5)), ((None, None), (1, 1))),
        },
    ),
    Case(
        mechanism=changed_keys,
        pairs=(((16, 18), (18, 16)), ((2, None), (None, 2)), ((None, 9), (2, 7)), ((9, 7), (7, 9))),
        attained=1, attained_rho=0.9, proved=0.75,
        mistakes={
            "half scale": (by(wider(changed_keys, F(1, 2))), ((16, 18), (18, 16))),
            "threshold too low": (looser(changed_keys, F(2, 5)), ((2, None), (None, 2))),
        },
    ),
    Case(
        mechanism=median,
        pairs=((FAR, (1, *FAR[1:])), ((0,) * 12, (0,) * 6 + (1,) + (0,) * 5), (HIGH, (*HIGH[:-1], 21))),
        fitted=(3,) * 12,
        attained=0.85, attained_rho=0.4, proved=0.65,
        mistakes={
            "half scale": (by(wider(median, F(1, 2))), (FAR, (1, *FAR[1:]))),
            "off by one": (by(median), (FAR, (2, *FAR[1:]))),
        },
    ),
    Case(
        mechanism=high,
        pairs=((HIGH, (2, *HIGH[1:-1], 18)), (HIGH, (*HIGH[:-1], 18)), ((3,) * 12, (1, *[3] * 10, 5))),
        fitted=(3,) * 12,
        attained=0.9, attained_rho=0.1, proved=0.65,
        mistakes={
            "half scale": (by(wider(high, F(1, 2))), (HIGH, (2, *HIGH[1:-1], 18))),
            "off by one": (by(high), (HIGH, (4, *HIGH[1:-1], 16))),
        },
    ),
    Case(
        mechanism=fine,
        pairs=((FAR, (1, *FAR[1:])), ((3,) * 12, (4, *[3] * 11))),
        fitted=(3,) * 12,
        attained=0.85, attained_rho=0.4, proved=0.65,
        mistakes={
            "half scale": (by(wider(fine, F(1, 2))), (FAR, (1, *FAR[1:]))),
            "off by one": (by(fine), (FAR, (2, *FAR[1:]))),
        },
    ),
    Case(
        mechanism=octiles,
        pairs=(((2, 2, 0, 0), (2, 0, 0, 0)), ((4, 1, 2, 5), (2, 1, 2, 5)), ((0, 3, 0, 5), (1, 3, 0, 6))),
        fitted=(4, 1, 2, 5),
        attained=0.6, attained_rho=0.1, proved=0.35,
        mistakes={"unsplit budget": (by(wider(octiles, F(1, 3))), ((4, 1, 2, 5), (2, 1, 2, 5)))},
    ),
    Case(
        mechanism=quartiles,
        pairs=(((7, 6, 1, 7), (9, 6, 1, 5)), ((2, 0, 0, 2), (0, 2, 2, 0)), ((0, 1, 1, 0), (1, 0, 0, 1))),
        attained=0.35, attained_rho=0.1, proved=0.2,
        mistakes={"quarter scale": (by(wider(quartiles, F(1, 4))), ((7, 6, 1, 7), (9, 6, 1, 5)))},
    ),
    Case(
        mechanism=above,
        pairs=(((-2, 6, 6), (-1, 7, 5)), ((-2, 10, -2), (-3, 9, -1)), ((0, 0), (1, 1))),
        attained=1, attained_rho=0.1, proved=0.6,
        mistakes={
            "half scale": (by(wider(above, F(1, 2))), ((-2, 3, 3), (-1, 4, 2))),
            "off by one": (by(above), ((-2, 6, 6), (0, 8, 4))),
        },
    ),
    Case(
        mechanism=above_twice,
        pairs=(((0, 0, 0, 0), (1, -1, 1, -1)), ((6, 2, 6, 6), (7, 1, 7, 5))),
        fitted=(6, 2, 6, 6),
        attained=1, attained_rho=0.2, proved=0.7,
        mistakes={
            "unsplit budget": (by(wider(above_twice, F(1, 2))), ((0, 0, 0, 0), (1, -1, 1, -1))),
        },
    ),
    Case(
        mechanism=above_monotone,
        pairs=(((-2, 4, 4), (-1, 5, 4)), ((0, 9, -3), (1, 10, -3)), ((0, 0), (1, 1))),
        attained=1, attained_rho=0.1, proved=0.65,
        mistakes={
            "half scale": (by(wider(above_monotone, F(1, 2))), ((-2, 2, 2), (-1, 3, 2))),
            "not monotone": (by(above_monotone), ((-2, 2, 2), (-1, 3, 1))),
        },
    ),
    Case(
        mechanism=yes_or_no,
        pairs=((0, 1),),
        attained=1, attained_rho=1, proved=0.95,
        mistakes={"half scale": (by(wider(yes_or_no, F(1, 2))), (0, 1))},
    ),
    Case(
        mechanism=one_of_five,
        pairs=((0, 1), (4, 2)),
        attained=1, attained_rho=0.5, proved=0.95,
        mistakes={"half scale": (by(wider(one_of_five, F(1, 2))), (0, 1))},
    ),
)  # fmt: skip

by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def claimed_epsilon(case: Case) -> tuple[float, float]:
    """The (ε, δ) that is claimed; of a mechanism that is only zCDP, by conversion."""
    loss = case.mechanism.loss()
    if loss.epsilon is not None:
        return float(loss.epsilon), float(loss.delta)
    return float(epsilon_of(rho=loss.rho, delta=F(str(SPENT)))), float(loss.delta) + SPENT


def test_every_mechanism_has_a_case() -> None:
    assert {type(case.mechanism) for case in CASES} == set(MECHANISMS)


@by_name
def test_it_is_a_frozen_value_that_returns_from_its_row(case: Case) -> None:
    row = to_row(case.mechanism)
    assert all(isinstance(text, str) for text in row.values())
    assert from_row(row) == case.mechanism
    assert hash(from_row(row)) == hash(case.mechanism)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(case.mechanism, dataclasses.fields(case.mechanism)[0].name, F(1))
    with pytest.raises(TypeError):
        type(case.mechanism)(F(1))
    assert "Privacy" in (type(case.mechanism).__doc__ or "")


@by_name
def test_a_whole_number_is_a_rational_one(case: Case) -> None:
    """ε = 1 as an int is ε = 1 as a Fraction: in the loss, which stays exact, and in every draw."""
    whole = {
        field.name: int(value)
        for field in dataclasses.fields(case.mechanism)
        if isinstance(value := getattr(case.mechanism, field.name), Fraction)
        and value.denominator == 1
    }
    alike = dataclasses.replace(case, mechanism=dataclasses.replace(case.mechanism, **whole))
    assert alike.mechanism == case.mechanism
    assert alike.mechanism.loss() == case.mechanism.loss()
    assert all(
        value is None or isinstance(value, Fraction)
        for value in dataclasses.astuple(alike.mechanism.loss())
    )
    with recording() as tape:
        here = case.runs(case.pairs[0][0], 5, Stream.fresh())
    with recording(replay=tape):
        assert (alike.runs(case.pairs[0][0], 5, Stream.fresh()) == here).all()


@by_name
def test_bad_fields_are_refused_in_one_sentence(case: Case) -> None:
    """Each rational and whole number in turn is zero, negative, a float, a truth value, not a
    number at all.
    """
    tried = 0
    for field in dataclasses.fields(case.mechanism):
        if isinstance(getattr(case.mechanism, field.name), tuple) or field.name == "shift":
            continue
        for wrong in (
            (0, -1, 0.5, math.nan, math.inf, None, "many")
            if field.name != "q"
            else (-1, 2, 0.5, None)
        ):
            with pytest.raises(UsageError, match=r"^[^.]*(\.\d[^.]*)*\.$"):
                dataclasses.replace(case.mechanism, **{field.name: wrong})
            tried += 1
    assert tried


@by_name
def test_the_mass_is_a_probability(case: Case) -> None:
    for x in itertools.chain(*case.pairs):
        assert total(case.distribution(x)) == pytest.approx(1, abs=1e-12)


@by_name
def test_the_claimed_epsilon_and_delta_are_those_of_the_definition(case: Case) -> None:
    at, spent = claimed_epsilon(case)
    worst, attained = 0.0, 0.0
    for x, y in case.pairs:
        p, q = case.distribution(x), case.distribution(y)
        worst = max(worst, delta(p, q, at * (1 + 1e-12)))
        common = {outcome: p[outcome] for outcome in p if outcome in q}
        attained = max(attained, epsilon(common, {outcome: q[outcome] for outcome in common}))
    assert worst <= spent + 1e-12
    assert attained >= case.attained * at * (1 - 1e-9)
    if not spent:
        assert attained <= at * (1 + 1e-9)


@by_name
def test_the_claimed_rho_bounds_the_renyi_divergences(case: Case) -> None:
    """Given events of a probability of at least 1 - δ: that what was seen can be seen on both."""
    loss = case.mechanism.loss()
    attained = 0.0
    for x, y in case.pairs:
        if isinstance(case.mechanism, TruncatedLaplaceThreshold):
            p, q = with_coins(case.mechanism, x), with_coins(case.mechanism, y)
        else:
            p, q = case.distribution(x), case.distribution(y)
        if loss.delta:
            common = [outcome for outcome in p if outcome in q]
            (p, on_p), (q, on_q) = given(p, common), given(q, common)
            assert min(on_p, on_q) >= 1 - loss.delta
        attained = max(attained, rho(p, q))
    assert (
        case.attained_rho * float(loss.rho) * (1 - 1e-9) <= attained <= float(loss.rho) * (1 + 1e-9)
    )


@by_name
def test_draws_fit_their_mass_and_no_other(case: Case) -> None:
    runs, x = RUNS // 5, case.pairs[0][0] if case.fitted is None else case.fitted
    mass = case.distribution(x)
    for factor, fits in ((F(1), True), (F(4, 5), False), (F(6, 5), False)):
        codes = case.scaled(factor).runs(x, runs, Stream.fresh())
        assert implausible(Counter(codes.tolist()), mass) != fits


@by_name
def test_a_million_runs_prove_no_more_than_is_claimed(case: Case) -> None:
    at, spent = claimed_epsilon(case)
    one, other = (case.runs(x, RUNS, Stream.fresh()) for x in case.pairs[0])
    proved = provable_epsilon(one, other, at_delta=spent)
    assert case.proved * at <= proved <= at


MISTAKES = [(case, name) for case in CASES for name in case.mistakes]


@pytest.mark.parametrize(
    ("case", "name"), MISTAKES, ids=lambda value: getattr(value, "name", value)
)
def test_runs_catch_a_planted_mistake(case: Case, name: str) -> None:
    at, spent = claimed_epsilon(case)
    runs, (x, y) = case.mistakes[name]
    one, other = (runs(z, RUNS // 4, Stream.fresh()) for z in (x, y))
    assert provable_epsilon(one, other, at_delta=spent) > at


@by_name
def test_the_same_draws_on_a_neighbor(case: Case) -> None:
    """S14: as long as what left agrees, the next draw has the same scale and index; and replayed,
    the same outcome.
    """
    for x, y in case.pairs:
        if any(a is None for z in (x, y) if isinstance(z, tuple) for a in z):
            continue  # keys that exist on one side only: see tests/mechanisms/test_threshold.py
        with recording() as tape:
            here = case.runs(x, 3, Stream.fresh())
        with recording(replay=tape) as again:
            assert (case.runs(x, 3, Stream.fresh()) == here).all()
        assert again.draws == tape.draws
        with recording(
            replay=tape, choices=True
        ) as beside:  # also those inside, which the outcome does not show
            there = case.runs(y, 3, Stream.fresh())
        assert tape.draws[0] == beside.draws[0]
        if (here == there).all():
            assert tape.draws == beside.draws


@by_name
def test_no_two_draws_share_their_words(case: Case) -> None:
    """Reused noise is caught before it is drawn: a purpose, round and item are asked for once."""
    with recording() as tape:
        case.runs(case.pairs[0][0], 5, Stream.fresh())
    asked = [
        (a.root, a.path, a.round, bytes(item))
        for a in tape.asked
        for item in np.ascontiguousarray(a.ids)
        if a.path[0][0] != "threshold"  # above-threshold's own, which stays until the next yes
    ]
    assert asked
    assert len(set(asked)) == len(asked)


ADDED = tuple(
    kind
    for size in (F(1, 3), F(1), F(7, 2), F(40))
    for kind in (
        DiscreteLaplace(scale=size, l1=F(1)),
        DiscreteGaussian(sigma=size, l2_squared=F(1)),
    )
)


@pytest.mark.parametrize("mechanism", ADDED, ids=str)
@pytest.mark.parametrize("confidence", [F(1, 2), F(19, 20), F(9999, 10000)])
def test_margins_of_added_noise_cover_exactly(mechanism: Any, confidence: Fraction) -> None:
    def coverage(half_width: int) -> float:
        return math.fsum(
            math.exp(mechanism.log_mass(z)) for z in range(-half_width, half_width + 1)
        )

    margin = mechanism.margin(confidence)
    assert coverage(margin) >= confidence > coverage(margin - 1)


def test_discrete_noise_covers_more_than_was_asked() -> None:
    """S11: at ε = 1 the 95 % margin of a count is 3, and covers 97.3 %."""
    unit = DiscreteLaplace(scale=F(1), l1=F(1))
    assert unit.margin(0.95) == 3
    assert math.fsum(math.exp(unit.log_mass(z)) for z in range(-3, 4)) == pytest.approx(
        0.9732, abs=1e-4
    )


def test_every_margin_is_tested() -> None:
    """Of added noise here; of choices, thresholds, quantiles and above-threshold in
    tests/mechanisms, by their mass.
    """
    added, chosen = (
        {DiscreteLaplace, DiscreteGaussian},
        {ExponentialMechanism, PermuteAndFlip, Quantile, Quantiles},
    )
    chosen |= {FineQuantile}
    thresholds = {LaplaceThreshold, GaussianThreshold, TruncatedLaplaceThreshold, AboveThreshold}
    assert {kind for kind in MECHANISMS if hasattr(kind, "margin")} == added | chosen | thresholds


def test_two_groups_of_one_statistic_and_two_statistics_have_different_noise() -> None:
    """Of 2,000 choices between two of which one is taken 991 times in 1,000, all fall alike with a
    chance of 1e-15.
    """
    stream: Any = Stream.fresh()
    for case in CASES:
        x = case.pairs[0][0]
        first, second = (case.runs(x, 2000, stream.derive("statistic", i)) for i in range(2))
        assert (first != second).any()
