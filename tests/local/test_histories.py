"""Questions that are asked again and again: what whole histories of answers tell, exactly, and what
is estimated.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from math import log
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from small_survey import SURE

from discreet.errors import UsageError
from discreet.local.collector.estimate import Tally
from discreet.local.protocols import odds
from discreet.local.protocols.repeated.few_changes import (
    MOST_CHANGES,
    FewChanges,
    _gap,
    _pattern,
    _patterns,
)
from discreet.local.protocols.repeated.memoize import MemoizedResponse, MemoizedUnary, lifetime
from discreet.local.question import choose_protocol
from discreet.noise import bits, exact

# Memoization: the lifetime ε of histories that change
# ----------------------------------------------------------------


def then_mass(protocol: Any, permanent: int, report: int) -> Fraction:
    if isinstance(protocol, MemoizedResponse):
        return protocol.then.mass(report, permanent)
    keep, differ = odds.chance(protocol.keep), (permanent ^ report).bit_count()
    return keep ** (len(protocol.domain) - differ) * (1 - keep) ** differ


def memoized_mass(protocol: Any, history: tuple[int, ...], reports: tuple[int, ...]) -> Fraction:
    """The exact chance of these reports: one permanent answer for each different value."""
    total = Fraction(1)
    for value in set(history):
        own = [report for was, report in zip(history, reports, strict=True) if was == value]
        joint = Fraction(0)
        for permanent in range(protocol.size):
            term = protocol.first.mass(permanent, value)
            for report in own:
                term *= then_mass(protocol, permanent, report)
            joint += term
        total *= joint
    return total


def worst_by_brute_force(protocol: Any, rounds: int) -> float:
    histories = [
        history
        for history in itertools.product(range(len(protocol.domain)), repeat=rounds)
        if len(set(history)) <= protocol.changes
    ]
    worst = Fraction(1)
    for reports in itertools.product(range(protocol.size), repeat=rounds):
        masses = [memoized_mass(protocol, history, reports) for history in histories]
        worst = max(worst, max(masses) / min(masses))
    return log(worst)


def worst_of_two_values(protocol: Any, rounds: int) -> float:
    """The same for two values, by counting: how many reports are 1, and how many of each kind a
    value meets.
    """
    p1, p2 = float(protocol.first.support.p), float(protocol.then.support.p)

    def of_one(value: int, zeros: int, ones: int) -> float:
        first = [p1, 1 - p1] if value == 0 else [1 - p1, p1]
        return first[0] * p2**zeros * (1 - p2) ** ones + first[1] * p2**ones * (1 - p2) ** zeros

    worst = 0.0
    for ones in range(rounds + 1):
        zeros = rounds - ones
        splits = itertools.product(range(zeros + 1), range(ones + 1))
        masses = [of_one(0, a, b) * of_one(1, zeros - a, ones - b) for a, b in splits]
        worst = max(worst, log(max(masses) / min(masses)))
    return worst


def binary(rounds: int, **other: Any) -> MemoizedResponse:
    return MemoizedResponse(
        domain=2, **{"permanent": 1, "instant": 2, "changes": 2, "rounds": rounds} | other
    )


def test_the_epsilon_of_permanent_answers_alone_is_not_that_of_histories() -> None:
    """2 was claimed; it is 3.4 after 4 rounds and 11.4 after 12."""
    assert worst_of_two_values(binary(4), 4) == pytest.approx(3.4, abs=0.05)
    assert worst_of_two_values(binary(12), 12) == pytest.approx(11.4, abs=0.05)
    assert worst_by_brute_force(binary(4), 4) == pytest.approx(worst_of_two_values(binary(4), 4))


@pytest.mark.parametrize("permanent", [0.2, 1, 3])
@pytest.mark.parametrize("instant", [0.2, 1, 2, 4])
def test_the_lifetime_bounds_every_pair_of_histories(permanent: float, instant: float) -> None:
    for rounds in (1, 2, 3, 4, 6, 8, 12, 20, 40):
        protocol = binary(rounds, permanent=permanent, instant=instant)
        true = worst_of_two_values(protocol, rounds)
        assert true <= float(protocol.epsilon) + 1e-12
    # and what is added does not grow with the rounds
    assert float(protocol.epsilon) - true < 2 * permanent + 1.5


@pytest.mark.parametrize(
    ("kind", "d", "changes", "rounds"),
    [
        (MemoizedResponse, 2, 2, 5),
        (MemoizedResponse, 3, 2, 4),
        (MemoizedResponse, 3, 3, 4),
        (MemoizedResponse, 4, 2, 3),
        (MemoizedResponse, 4, 4, 3),
        (MemoizedUnary, 2, 2, 3),
        (MemoizedUnary, 3, 3, 2),
    ],
)
def test_the_lifetime_bounds_all_small_histories(
    kind: Any, d: int, changes: int, rounds: int
) -> None:
    protocol = kind(domain=d, permanent=1, instant=2, changes=changes, rounds=rounds)
    assert worst_by_brute_force(protocol, rounds) <= float(protocol.epsilon) + 1e-12


@pytest.mark.parametrize("kind", [MemoizedResponse, MemoizedUnary])
def test_an_answer_that_never_changes_costs_its_permanent_answer(kind: Any) -> None:
    protocol = kind(domain=2, permanent=1, instant=2, changes=1)
    assert protocol.epsilon == 1
    for rounds in (1, 2, 3):
        assert worst_by_brute_force(protocol, rounds) <= float(lifetime(protocol, rounds)) <= 1
    assert worst_by_brute_force(protocol, 3) > 0.9


@pytest.mark.parametrize("kind", [MemoizedResponse, MemoizedUnary])
def test_changes_need_a_number_of_rounds(kind: Any) -> None:
    with pytest.raises(UsageError, match="the number of rounds must be said"):
        kind(domain=2, permanent=1, instant=2, changes=2)
    for wrong in ({"changes": 0}, {"changes": True}, {"rounds": 0}, {"rounds": 1.5}):
        with pytest.raises(UsageError, match="whole number"):
            kind(**{"domain": 2, "permanent": 1, "instant": 2, "changes": 1, "rounds": 3} | wrong)


@pytest.mark.parametrize(
    ("d", "name"),
    [(2, "memoized"), (4, "memoized"), (100, "memoized_unary"), (1000, "memoized_unary")],
)
def test_best_picks_a_memoized_protocol_by_the_variance_of_both_stages(d: int, name: str) -> None:
    declared = {"values": list(range(d)), "epsilon": "1", "repeats": {"instant": "2", "changes": 1}}
    assert choose_protocol(declared) == name
    kinds = {kind.name: kind for kind in (MemoizedResponse, MemoizedUnary)}
    variances = {
        each: float(
            kind(domain=d, permanent=1, instant=2, changes=1).variance(
                n=1, frequency=Fraction(1, d)
            )
        )
        for each, kind in kinds.items()
    }
    assert min(variances, key=variances.__getitem__) == name
    if d == 1000:
        assert variances["memoized"] > 600 * variances["memoized_unary"]


def test_best_without_instant_is_for_whole_histories() -> None:
    assert (
        choose_protocol({"values": [1, 2], "epsilon": "1", "repeats": {"rounds": 12, "changes": 2}})
        == "few_changes"
    )


# Few changes: ε over whole histories, by brute force
# -----------------------------------------------------------------


class Choices:
    """Stands in for the draws of `noise.bits`, and takes every branch of each in turn, with its
    probability.
    """

    def __init__(self) -> None:
        self.script: list[list[int]] = []
        self.at, self.probability = 0, Fraction(1)

    def take(self, branches: Sequence[Fraction]) -> int:
        if self.at == len(self.script):
            self.script.append([0, len(branches)])
        taken = self.script[self.at][0]
        self.at += 1
        self.probability *= branches[taken]
        return taken

    def coin(self, source: object, threshold: int) -> bool:
        return not self.take([Fraction(threshold, 1 << 64), 1 - Fraction(threshold, 1 << 64)])

    def below(self, source: object, n: int) -> int:
        return self.take([Fraction(1, n)] * n)

    def next(self) -> bool:
        while self.script and self.script[-1][0] == self.script[-1][1] - 1:
            self.script.pop()
        if self.script:
            self.script[-1][0] += 1
        self.at, self.probability = 0, Fraction(1)
        return bool(self.script)


def few(*, d: int, rounds: int, changes: int, tree: bool, epsilon: object = 1) -> FewChanges:
    """Which shape is better is another question: both are tested on few rounds."""
    protocol = FewChanges(domain=d, epsilon=epsilon, rounds=rounds, changes=changes)  # type: ignore[arg-type]
    object.__setattr__(protocol, "tree", tree)
    return protocol


def sent(protocol: FewChanges, history: Sequence[int]) -> tuple[int, ...]:
    """All reports of a respondent with this history, as a device makes them."""
    plan, places, reports = protocol.plan(), list[int](), []
    for place in history:
        places.append(protocol.held(places, place))
        reports.append(protocol.report(plan, places))
    return tuple(reports)


def distribution(
    protocol: FewChanges, history: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> dict[tuple[int, ...], Fraction]:
    choices, found = Choices(), defaultdict[tuple[int, ...], Fraction](Fraction)
    with monkeypatch.context() as patched:
        patched.setattr(bits, "coin", choices.coin)
        patched.setattr(bits, "below", choices.below)
        while True:
            reports = sent(protocol, history)
            found[reports] += choices.probability
            if not choices.next():
                return found


SMALL = [
    few(d=2, rounds=3, changes=1, tree=True),
    few(d=2, rounds=4, changes=1, tree=True),
    few(d=2, rounds=4, changes=2, tree=True, epsilon=2),
    few(d=2, rounds=3, changes=3, tree=True, epsilon="0.5"),
    few(d=3, rounds=2, changes=1, tree=True),
    few(d=3, rounds=3, changes=1, tree=True),
    few(d=2, rounds=4, changes=1, tree=False),
    few(d=3, rounds=3, changes=1, tree=False, epsilon=3),
]


def shape(protocol: FewChanges) -> str:
    kind = "tree" if protocol.tree else "single"
    return f"{kind}-{len(protocol.domain)}-{protocol.rounds}-{protocol.changes}-{float(protocol.epsilon):g}"


def histories(protocol: FewChanges) -> list[tuple[int, ...]]:
    return list(itertools.product(range(len(protocol.domain)), repeat=protocol.rounds))


@pytest.mark.parametrize("protocol", SMALL, ids=shape)
def test_whole_histories_differ_by_e_to_the_epsilon_at_most(
    protocol: FewChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs of histories, also of those with more changes than count; every sequence of
    reports, exactly.
    """
    found = [distribution(protocol, history, monkeypatch) for history in histories(protocol)]
    assert all(sum(masses.values()) == 1 for masses in found)
    sequences = set().union(*found)
    assert all(set(masses) == sequences for masses in found)  # none is impossible for anybody
    worst = max(
        max(ratios) / min(ratios)
        for ratios in ([masses[each] for masses in found] for each in sequences)
    )
    low, high = exact.log(worst, 128)
    assert Fraction(high, 1 << 128) <= protocol.epsilon
    # and it is no empty bound
    assert protocol.epsilon - Fraction(low, 1 << 128) < Fraction(1, 1 << 50)


@pytest.mark.parametrize("protocol", SMALL, ids=shape)
def test_every_round_is_estimated_without_bias(
    protocol: FewChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact expectation of every term, over all coins, adds up to the history as it counts."""
    for history in histories(protocol):
        masses = distribution(protocol, history, monkeypatch)
        counted = list[int]()
        for place in history:
            counted.append(protocol.held(counted, place))
        for round, value in itertools.product(
            range(1, protocol.rounds + 1), range(len(protocol.domain))
        ):
            mean = sum(
                mass * reading(protocol, reports, round, value) for reports, mass in masses.items()
            )
            d = protocol.rows + 1
            assert mean * Fraction(d - 1, d) + Fraction(1, d) == int(counted[round - 1] == value)


def reading(protocol: FewChanges, reports: tuple[int, ...], round: int, value: int) -> Fraction:
    """What one respondent adds to the sum of the terms: by their part, which they are in with
    chance 1 / parts.
    """
    total = Fraction(0)
    for part, spoken, weight, gap in protocol.terms(round):
        row, own = divmod(reports[spoken - 1] // 2, protocol.parts)
        if own == part:
            sign = (-1) ** ((row + 1 & value).bit_count() + reports[spoken - 1])
            total += protocol.parts * weight * sign / gap
    return total


@pytest.mark.parametrize("protocol", [each for each in SMALL if each.tree], ids=shape)
def test_one_change_too_many_is_as_if_there_were_none(
    protocol: FewChanges, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distribution of reports is that of the held history: it does not show that there was a
    further value.
    """
    for history in histories(protocol):
        counted = list[int]()
        for place in history:
            counted.append(protocol.held(counted, place))
        changed = sum(one != other for one, other in itertools.pairwise(counted))
        assert changed <= protocol.changes
        if counted != list(history):
            assert distribution(protocol, history, monkeypatch) == distribution(
                protocol, counted, monkeypatch
            )


def test_patterns_are_ranked_each_once() -> None:
    for k in range(1, 9):
        for agree in range(1, k + 1):
            many = _patterns(k, agree)
            high = [_pattern(rank, k, agree, True) for rank in range(many)]
            low = [_pattern(rank, k, agree, False) for rank in range((1 << k) - many)]
            assert sorted(high + low) == list(range(1 << k))
            assert (
                min(each.bit_count() for each in high)
                == agree
                > max(each.bit_count() for each in low)
            )


@pytest.mark.parametrize("k", [1, 2, 3, 8, MOST_CHANGES])
def test_the_gap_shrinks_with_the_root_of_the_changes(k: int) -> None:
    protocol = FewChanges(domain=2, epsilon=1, rounds=100, changes=k)
    gap = float(_gap(k, protocol.agree, Fraction(1)))
    assert gap >= 0.462 / 1.3 / k**0.5  # one of them at random would have 0.462 / k


# Few changes: estimates
# ----------------------------------------------------------------------------------------------


def simulated(protocol: FewChanges, people: list[list[int]]) -> dict[int, Tally]:
    rounds = zip(*(sent(protocol, history) for history in people), strict=True)
    return {number: protocol.tally(list(reports)) for number, reports in enumerate(rounds, start=1)}


@pytest.mark.parametrize("tree", [False, True])
def test_estimates_follow_a_change(tree: bool) -> None:
    """Half of the people change in round 4; every round is within margins that fail less than once
    in 10^9 runs.
    """
    protocol = few(d=3, rounds=6, changes=1, tree=tree, epsilon=4)
    people = [[0] * 6, [0, 0, 0, 2, 2, 2]] * 3000
    tallies = simulated(protocol, people)
    for round in range(1, 7):
        found = protocol.read_round(round, tallies, confidence=SURE)
        assert found is not None
        truth = np.array([1.0, 0, 0] if round < 4 else [0.5, 0, 0.5])
        assert (abs(found.estimates - truth) <= found.margins).all()
        assert found.n == 6000
    after = protocol.read_round(6, tallies, confidence=0.95)
    assert after is not None
    assert (after.margins < 0.25).all()  # which tells 0.5 from 1
    assert protocol.read_round(6, {1: tallies[1]}) is None


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
@pytest.mark.parametrize("n", [40, 200, 1001])
def test_margins_of_single_rounds_cover(epsilon: str, n: int) -> None:
    """Exactly, whatever the share: n people speak in a round, of whom some have the value."""
    protocol = few(d=2, rounds=5, changes=1, tree=False, epsilon=epsilon)
    p = float(odds.chance(protocol.keep))
    counts = np.arange(n + 1)
    ends = []
    # the margin does not depend on the bits, and the estimate is linear in them
    for ones in (0, n):
        table = np.zeros((protocol.rows, protocol.parts, 2), dtype=np.int64)
        table[0, 2] = [ones, n - ones]
        found = protocol.read_round(3, {3: Tally(counts=table.reshape(-1), n=n)})
        assert found is not None
        ends.append(found.estimates[0])
    estimates = ends[0] + (ends[1] - ends[0]) * counts / n
    for holders in np.linspace(0, n, 9).astype(int):
        true = binom.pmf(np.arange(holders + 1), holders, p)
        false = binom.pmf(np.arange(n - holders + 1), n - holders, 1 - p)
        inside = abs(estimates - holders / n) <= found.margins[0]
        assert np.convolve(true, false)[inside].sum() >= 0.95


@pytest.mark.parametrize("n", [30, 31, 200])
@pytest.mark.parametrize("changes", [1, 3])
def test_margins_of_the_tree_cover(n: int, changes: int) -> None:
    """Exactly, for n people in each part, when nobody's answer changes: bits of intervals are fair,
    the first leans.

    With changes the variance is less than what the margin is made of.
    """
    protocol = few(d=2, rounds=7, changes=changes, tree=True)
    scales = [weight / float(gap) / n / 2 for _, _, weight, gap in protocol.terms(7)]
    chances = [float(odds.chance(protocol.keep)), 0.5, 0.5, 0.5]
    outcomes = {0.0: 1.0}
    for scale, p in zip(scales, chances, strict=True):
        bits_of_one = binom.pmf(np.arange(n + 1), n, p)
        grid = np.array(list(outcomes))
        values = (grid[:, None] + scale * (2 * np.arange(n + 1) - n)).reshape(-1)
        masses = (np.array(list(outcomes.values()))[:, None] * bits_of_one).reshape(-1)
        # in steps of a thousandth, for which the test allows
        places = np.rint(values / 1e-3).astype(int)
        summed = np.bincount(places - places.min(), weights=masses)
        outcomes = {
            (place + places.min()) * 1e-3: mass for place, mass in enumerate(summed) if mass > 1e-15
        }
    table = np.full((protocol.rows, protocol.parts, 2), n / 2)
    tallies = {t: Tally(counts=table.reshape(-1), n=n * protocol.parts) for t in range(1, 8)}
    found = protocol.read_round(7, tallies)
    assert found is not None
    margin = float(found.margins[0]) - 2e-3
    assert sum(mass for value, mass in outcomes.items() if abs(value - 0.5) <= margin) >= 0.95


@pytest.mark.parametrize(
    ("rounds", "changes", "tree"),
    [(12, 1, False), (100, 1, False), (365, 1, True), (365, 4, False), (4000, 3, True)],
)
def test_the_shape_with_the_least_mean_variance_is_taken(
    rounds: int, changes: int, tree: bool
) -> None:
    protocol = FewChanges(domain=2, epsilon=1, rounds=rounds, changes=changes)
    assert protocol.tree is tree
    means = {}
    for each in (False, True):
        forced = few(d=2, rounds=rounds, changes=changes, tree=each)
        means[each] = (
            sum(float(forced.variance(n=1, round=t)) for t in range(1, rounds + 1)) / rounds
        )
    assert means[tree] < means[not tree]


@pytest.mark.parametrize(
    "wrong", [{"rounds": 0}, {"rounds": 4001}, {"changes": 0}, {"changes": 33}, {"rounds": True}]
)
def test_nonsense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="whole number"):
        FewChanges(**{"domain": 2, "epsilon": 1, "rounds": 12, "changes": 2} | wrong)
