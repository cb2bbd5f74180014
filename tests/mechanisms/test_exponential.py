"""Choices: permute-and-flip beats the exponential mechanism as theory says; margins are exact; k
best are k rounds.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from by_definition import implausible
from discreet.errors import UsageError
from discreet.mechanisms import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.exponential import root_below
from discreet.noise import Items, Stream

F = Fraction
BOTH = (ExponentialMechanism, PermuteAndFlip)


def shortfall(mechanism: ExponentialMechanism | PermuteAndFlip, scores: tuple[int, ...]) -> float:
    """How far below the best the chosen score is, on average."""
    return float(np.exp(mechanism.log_mass(scores)) @ (max(scores) - np.array(scores)))


def permuted_and_flipped(scores: tuple[int, ...], scale: Fraction) -> list[float]:
    """Permute-and-flip by its own definition: in every order, the first whose coin of exp(-gap /
    scale) shows heads.
    """
    chances = [math.exp(-(max(scores) - score) / scale) for score in scores]
    mass = [0.0] * len(scores)
    for order in itertools.permutations(range(len(scores))):
        left = 1 / math.factorial(len(scores))
        for i in order:
            mass[i] += left * chances[i]
            left *= 1 - chances[i]
    return mass


@pytest.mark.parametrize(
    "scores", [(0, 0), (0, 3), (5, 5, 1, 0), (0, 1, 2, 3, 4), (7, -7, 0, 6, 6, 2)]
)
def test_the_largest_with_exponential_noise_is_permute_and_flip(scores: tuple[int, ...]) -> None:
    mechanism = PermuteAndFlip(epsilon=F(3, 2), linf=F(1))
    assert np.exp(mechanism.log_mass(scores)) == pytest.approx(
        permuted_and_flipped(scores, mechanism.scale), abs=1e-13
    )


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(5)])
def test_permute_and_flip_is_never_worse_and_up_to_twice_as_good(epsilon: Fraction) -> None:
    """Every vector of up to four scores from 0 to 6: the mean shortfall is between half of and all
    of the other's.
    """
    exponential, flip = (kind(epsilon=epsilon, linf=F(1)) for kind in BOTH)
    ratios = [
        shortfall(flip, scores) / shortfall(exponential, scores)
        for n in (2, 3, 4)
        for scores in itertools.combinations_with_replacement(range(7), n)
        if len(set(scores)) > 1
    ]
    assert max(ratios) <= 1 + 1e-12
    assert min(ratios) >= 0.5 - 1e-12
    if epsilon == 5:
        assert min(ratios) < 0.5001  # two candidates far apart: half, in the limit


def test_permute_and_flip_is_measured_better() -> None:
    scores, runs = (0, 4, 5, 8), 200_000
    table = np.tile(np.array(scores), (runs, 1))
    measured = {}
    for kind in BOTH:
        mechanism = kind(epsilon=F(1, 2), linf=F(1))
        chosen = mechanism.choose_each(table, Stream.fresh(), Items.positions(runs))
        measured[kind] = 8 - np.array(scores)[chosen].mean()
        assert measured[kind] == pytest.approx(
            shortfall(mechanism, scores), abs=7 * 4 / math.sqrt(runs)
        )
    assert measured[PermuteAndFlip] < 0.9 * measured[ExponentialMechanism]


def test_in_zcdp_the_exponential_mechanism_is_the_cheaper_one() -> None:
    exponential, flip = (kind(epsilon=F(1), linf=F(1)).loss().rho for kind in BOTH)
    assert exponential == F(1, 8)
    assert flip is not None
    assert float(flip) == pytest.approx(math.tanh(0.5), rel=1e-12)
    assert float(flip) >= math.tanh(0.5)


@pytest.mark.parametrize("square", [F(1), F(2), F(1, 3), F(10**30), F(1, 10**30), F(4, 9)])
def test_a_root_is_rounded_down(square: Fraction) -> None:
    root = root_below(square)
    assert root**2 <= square < (root * (1 + F(1, 10**8))) ** 2


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("candidates", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(6)])
def test_a_margin_covers_exactly(
    kind: type[ExponentialMechanism | PermuteAndFlip], candidates: int, epsilon: Fraction
) -> None:
    """The worst scores for a margin of t are t + 1 below the best; by the mass, not by the formula
    of the margin.
    """
    mechanism = kind(epsilon=epsilon, linf=F(3))
    t = mechanism.margin(F(19, 20), candidates)

    def coverage(margin: int) -> float:
        return math.exp(mechanism.log_mass([0] + [-margin - 1] * (candidates - 1))[0])

    assert coverage(t) >= 0.95
    assert t == 0 or coverage(t - 1) < 0.95


@pytest.mark.parametrize("kind", BOTH)
def test_no_other_scores_are_worse_for_a_margin(
    kind: type[ExponentialMechanism | PermuteAndFlip],
) -> None:
    mechanism = kind(epsilon=F(2), linf=F(1))
    t = mechanism.margin(0.8, 4)
    for others in itertools.product(range(0, -t - 4, -1), repeat=3):
        mass = np.exp(mechanism.log_mass([0, *others]))
        within = [score >= -t for score in (0, *others)]
        assert mass[within].sum() >= 0.8


def test_margins_of_a_million_candidates() -> None:
    """2 ln(10^6 / (0.05 / 0.95)) = 33.5 in units of linf at ε = 1; permute-and-flip needs ln 2 less
    of it at most.
    """
    exponential, flip = (kind(epsilon=F(1), linf=F(100)).margin(0.95, 10**6) for kind in BOTH)
    assert exponential == math.ceil(200 * math.log((10**6 - 1) * 0.95 / 0.05)) - 1
    assert exponential - 200 * math.log(2) <= flip < exponential


def test_the_best_k_are_k_rounds_without_replacement() -> None:
    top = TopK(epsilon=F(3), linf=F(1), k=3)
    assert top.round == ExponentialMechanism(epsilon=F(1), linf=F(1))
    masses = [top.log_mass((0, 2, 2, 5), chosen) for chosen in itertools.permutations(range(4), 3)]
    assert np.exp(masses).sum() == pytest.approx(1)
    assert top.loss().rho == 3 * F(1, 8)


@pytest.mark.parametrize("kind", [*BOTH, TopK])
def test_one_choice_and_many_have_the_same_law(kind: type) -> None:
    """`choose` and `choose_each` draw differently; 1,500 single choices fit the mass that batches
    are tested by.
    """
    mechanism = kind(epsilon=F(2), linf=F(1), **({"k": 1} if kind is TopK else {}))
    stream, scores = Stream.fresh(), np.array([0, 1, 2])
    chosen = [np.ravel(mechanism.choose(scores, stream.derive("run", i)))[0] for i in range(1500)]
    single = mechanism.round if kind is TopK else mechanism
    expected = 1500 * np.exp(single.log_mass(scores.tolist()))
    counts = np.bincount(chosen, minlength=3)
    assert (abs(counts - expected) < 6.5 * np.sqrt(expected)).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTH)
def test_single_choices_fit_their_mass_and_no_other(
    kind: type[ExponentialMechanism | PermuteAndFlip],
) -> None:
    mechanism, stream, scores = kind(epsilon=F(1), linf=F(1)), Stream.fresh(), (0, 4, 5, 8)
    chosen = [mechanism.choose(np.array(scores), stream.derive("run", i)) for i in range(100_000)]
    for factor, fits in ((F(1), True), (F(4, 5), False), (F(6, 5), False)):
        mass = kind(epsilon=mechanism.epsilon / factor, linf=F(1)).log_mass(scores)
        assert implausible(Counter(chosen), dict(enumerate(mass.tolist()))) != fits


def test_more_than_there_are_cannot_be_chosen() -> None:
    with pytest.raises(UsageError, match="3 of 2 candidates"):
        TopK(epsilon=F(1), linf=F(1), k=3).choose(np.array([1, 2]), Stream.fresh())
    with pytest.raises(UsageError, match="one column of integers"):
        PermuteAndFlip(epsilon=F(1), linf=F(1)).choose(np.array([0.5, 1.0]), Stream.fresh())
