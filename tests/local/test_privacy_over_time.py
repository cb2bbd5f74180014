"""Memoization, shuffling, poisoning, choosing a protocol: what is claimed beyond a single
report.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import e, exp, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from small_survey import SURE

from discreet import local
from discreet.errors import UsageError
from discreet.local.collector.poisoning import effect, implausible, suspicions
from discreet.local.collector.shuffle import amplified, amplified_tightly, local_epsilon
from discreet.local.protocols import odds
from discreet.local.protocols.hashing import LocalHashing
from discreet.local.protocols.numeric import Duchi, Hybrid, Piecewise
from discreet.local.protocols.repeated.memoize import MemoizedResponse, MemoizedUnary
from discreet.local.protocols.response import KaryResponse, TwoCoins
from discreet.local.protocols.square_wave import SquareWave
from discreet.local.protocols.subset import SubsetSelection
from discreet.local.protocols.unary import OptimizedUnary
from discreet.noise import exact
from discreet.policy.domain import Integers

# Memoization (S17)
# -------------------------------------------------------------------------------------------------


def all_reports(protocol: Any, answer: int, reports: tuple[int, ...]) -> Fraction:
    """The probability of a sequence of reports that are all drawn from one permanent answer."""
    total = Fraction(0)
    for permanent in range(protocol.size):
        joint = protocol.first.mass(permanent, answer)
        for report in reports:
            joint *= then_mass(protocol, permanent, report)
        total += joint
    return total


def then_mass(protocol: Any, permanent: int, report: int) -> Fraction:
    if isinstance(protocol, MemoizedResponse):
        return protocol.then.mass(report, permanent)
    keep, differ = odds.chance(protocol.keep), (permanent ^ report).bit_count()
    return keep ** (len(protocol.domain) - differ) * (1 - keep) ** differ


@pytest.mark.parametrize("kind", [MemoizedResponse, MemoizedUnary])
def test_no_number_of_reports_tells_more_than_the_permanent_answer(kind: Any) -> None:
    protocol = kind(domain=2, permanent=Fraction(3, 2), instant=Fraction(2), changes=1)
    worst = []
    for n in (1, 2, 3, 4):
        ratios = []
        for reports in itertools.product(range(protocol.size), repeat=n):
            masses = [all_reports(protocol, answer, reports) for answer in range(2)]
            ratios.append(max(masses) / min(masses))
        worst.append(exact.log(max(ratios), 64)[1] / 2**64)
    assert worst == sorted(worst)  # more reports tell more ...
    assert worst[0] == pytest.approx(float(protocol.one_report), abs=1e-12)
    assert all(each <= 1.5 for each in worst)  # ... and never more than ε_permanent
    assert worst[-1] > 1.3  # which they approach, so it is no empty bound
    assert protocol.epsilon == Fraction(3, 2)


@pytest.mark.parametrize("kind", [MemoizedResponse, MemoizedUnary])
def test_memoized_reports_are_estimated_within_their_margins(kind: Any) -> None:
    protocol = kind(domain=("low", "middle", "high"), permanent=2, instant=2, changes=1)
    values = ["low"] * 6000 + ["high"] * 2000
    found = protocol.read(protocol.tally(protocol.encode(values)), confidence=SURE)
    assert (abs(found.estimates - np.array([0.75, 0, 0.25])) <= found.margins).all()


# Shuffling
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "expected"), [(10**4, 0.214), (10**5, 0.0726), (10**6, 0.0235)])
def test_closed_amplification_has_the_published_figures(n: int, expected: float) -> None:
    assert amplified(epsilon=1, honest=n, delta=1e-6) == pytest.approx(expected, rel=5e-3)


def test_amplification_never_exceeds_the_local_epsilon_and_needs_enough_reports() -> None:
    assert amplified(epsilon=1, honest=100, delta=1e-6) == 1.0  # outside the theorem's range
    assert amplified(epsilon=12, honest=10**6, delta=1e-6) == 12.0
    limit = log(10**5 / (16 * log(2e6)))
    assert amplified(epsilon=limit * 0.999, honest=10**5, delta=1e-6) < limit
    assert amplified(epsilon=limit * 1.001, honest=10**5, delta=1e-6) == pytest.approx(
        limit * 1.001
    )


@pytest.mark.parametrize(("epsilon", "n"), [(0.5, 1000), (1, 10**4), (2, 10**5), (3, 500)])
def test_tight_amplification_is_between_a_real_attack_and_the_closed_bound(
    epsilon: float, n: int
) -> None:
    tight = amplified_tightly(epsilon=epsilon, honest=n, delta=1e-6)
    assert tight <= amplified(epsilon=epsilon, honest=n, delta=1e-6)
    assert tight >= true_loss(epsilon, n, 1e-6)


def true_loss(epsilon: float, n: int, delta: float) -> float:
    """What shuffled Warner responses of n people really leak, when all but one are known to say
    no.
    """
    p = 1 / (1 + exp(-epsilon))
    others = binom.pmf(np.arange(n), n - 1, 1 - p)
    yes = np.append(others * (1 - p), 0) + np.append(0, others * p)
    no = np.append(others * p, 0) + np.append(0, others * (1 - p))
    low, high = 0.0, epsilon
    for _ in range(40):
        middle = (low + high) / 2
        leaks = (
            max(
                np.maximum(yes - exp(middle) * no, 0).sum(),
                np.maximum(no - exp(middle) * yes, 0).sum(),
            )
            > delta
        )
        low, high = (middle, high) if leaks else (low, middle)
    return low


def test_local_epsilon_inverts_amplification() -> None:
    found = local_epsilon(central=1, honest=10**5, delta=1e-6)
    assert amplified(epsilon=found, honest=10**5, delta=1e-6) <= 1
    assert amplified(epsilon=found * 1.001, honest=10**5, delta=1e-6) > 1
    assert local_epsilon(central=0.5, honest=10, delta=1e-6) == 0.5


@pytest.mark.parametrize(
    "wrong", [{"honest": 0}, {"honest": True}, {"delta": 0}, {"delta": 0.9}, {"epsilon": -1}]
)
def test_nonsense_is_not_amplified(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        amplified(**{"epsilon": 1, "honest": 1000, "delta": 1e-6, **wrong})


# Poisoning
# ---------------------------------------------------------------------------------------------------------

KINDS = [
    TwoCoins(domain=("no", "yes")),
    KaryResponse(domain=5, epsilon=1),
    OptimizedUnary(domain=5, epsilon=1),
    LocalHashing(domain=5, epsilon=1),
    SubsetSelection(domain=5, epsilon=1),
    Duchi(domain=Integers(lo=0, hi=4), epsilon=1),
    Piecewise(domain=Integers(lo=0, hi=4), epsilon=1),
    Hybrid(domain=Integers(lo=0, hi=4), epsilon=1),
    SquareWave(domain=Integers(lo=0, hi=4), epsilon=1),
]


@pytest.mark.parametrize("protocol", KINDS, ids=lambda protocol: protocol.name)
def test_made_up_reports_do_what_is_stated_and_no_more(protocol: Any) -> None:
    """Every possible report, a hundred times among a thousand, in place of honest answers: the
    worst is the bound.
    """
    n, fakes = 1000, 100
    answers = protocol.domain if hasattr(protocol, "support") else range(5)
    honest = [protocol.respond(answers[i % len(answers)]) for i in range(n - fakes)]
    stated = effect(protocol, fakes=fakes, n=n)
    worst = 0.0
    before = estimates(protocol, honest) * (n - fakes) / n
    for report in range(protocol.size):
        after = estimates(protocol, [*honest, *[report] * fakes])
        moved = after - before
        if hasattr(protocol, "reading"):
            shifts = [abs(moved - fakes / n * answer).max() for answer in (0, 4)]
        else:  # an honest answer adds 1 to its value's share, or nothing to another's
            shifts = [abs(moved - fakes / n * answer).max() for answer in (0, 1)]
        worst = max(worst, *shifts)
    assert worst <= stated * (1 + 1e-9)
    assert worst == pytest.approx(stated, rel=1e-6)


def estimates(protocol: Any, reports: list[int]) -> np.ndarray:
    if isinstance(protocol, SquareWave):
        from discreet.local.collector.distribution import invert

        return invert(protocol.window, protocol.tally(reports), confidence=0.95)[0]
    return np.asarray(protocol.estimate(reports).estimates)


def test_unary_reports_with_too_many_ones_show() -> None:
    protocol = OptimizedUnary(domain=200, epsilon=1)
    assert implausible(protocol, (1 << 200) - 1)
    assert implausible(protocol, 0)
    assert not any(implausible(protocol, protocol.respond(7)) for _ in range(300))
    assert not implausible(OptimizedUnary(domain=4, epsilon=1), 0b1111)  # honest with few values
    assert not implausible(KaryResponse(domain=4, epsilon=1), 3)


@pytest.mark.parametrize(
    "protocol",
    [
        LocalHashing(domain=50, epsilon=1),
        SubsetSelection(domain=50, epsilon=1),
        SubsetSelection(domain=53, epsilon=1),
        local.HadamardResponse(domain=50, epsilon=1),
        KaryResponse(domain=50, epsilon=1),
        SquareWave(domain=Integers(lo=0, hi=49), epsilon=1),
    ],
    ids=lambda protocol: f"{protocol.name}-{protocol.size}",
)
def test_collections_that_nobody_honest_sends_show(protocol: Any) -> None:
    """A third of all reports the same; and an honest collection, of one answer only, does not
    show.
    """
    honest = protocol.encode([7] * 20_000)
    assert suspicions(protocol, honest) == []
    flooded = np.concatenate([honest, np.repeat(honest[:1], 10_000, axis=0)])
    assert suspicions(protocol, flooded)


def test_a_value_beyond_all_shows() -> None:
    protocol = KaryResponse(domain=10, epsilon=1)
    # honest reports of one value are spread
    assert suspicions(protocol, np.zeros(1000, dtype=np.int64))
    assert suspicions(protocol, []) == []


# Choosing
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "epsilon", "name"),
    [
        (2, 1, "kary"),
        (4, 0.5, "kary"),
        (5, 3, "kary"),
        (1000, 1, "local_hashing"),
        (10**6, 1, "local_hashing"),
        (1000, 5, "subset_selection"),
    ],
)
def test_best_picks_by_variance_and_size_and_says_why(d: int, epsilon: float, name: str) -> None:
    choice = local.best(d, epsilon)
    assert choice.protocol.name == name
    assert f"{d} values" in choice.why
    assert name in choice.why
    optimum = 4 * e**epsilon / (e**epsilon - 1) ** 2
    assert choice.variance <= 1.1 * optimum or name == "kary"
    assert choice.bits <= 64


@pytest.mark.parametrize(
    "wrong", [(1, 1), (0, 1), (10, 0), (10, float("nan")), (10, -1), (10, float("inf")), (10**9, 1)]
)
def test_best_refuses_nonsense(wrong: tuple[int, float]) -> None:
    with pytest.raises(UsageError):
        local.best(*wrong)


@pytest.mark.parametrize(
    ("kind", "figures"), [(Duchi, (4.68, 1.08)), (Piecewise, (5.22, 0.24)), (Hybrid, (4.29, 0.22))]
)
def test_numbers_have_the_published_worst_variances(
    kind: Any, figures: tuple[float, float]
) -> None:
    from discreet.policy.domain import Decimals

    grid = Decimals(lo=Fraction(-1), hi=Fraction(1), step=Fraction(1, 500))
    for epsilon, expected in zip((1, 4), figures, strict=True):
        assert float(kind(domain=grid, epsilon=epsilon).variance(n=1)) == pytest.approx(
            expected, rel=0.02
        )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("KaryResponse", 339),
        ("OptimizedUnary", 3.68),
        ("LocalHashing", 3.68),
        ("SubsetSelection", 3.67),
        ("HadamardResponse", 4.68),
    ],
)
def test_frequencies_have_the_published_variances(kind: str, expected: float) -> None:
    protocol = getattr(local, kind)(domain=1000, epsilon=1)
    assert float(protocol.variance(n=1)) == pytest.approx(expected, rel=0.005)
    assert sqrt(float(protocol.variance(n=100))) == pytest.approx(
        sqrt(float(protocol.variance(n=1))) / 10
    )
