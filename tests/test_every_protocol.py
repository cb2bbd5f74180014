"""Every local protocol: the exact ratio, unbiased estimates, the variance that is claimed,
intervals that cover.

Nothing here trusts a protocol's own account of its coins: an encoder is run on every outcome of
every draw it makes, and what comes out, with its exact probability, is what is tested. Chance
enters only where the vectorised encoders are sampled; these tests have a false-alarm rate of 1e-9
each.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from discreet.errors import UsageError
from discreet.local.collector.distribution import channel, inverse, invert
from discreet.local.collector.estimate import Tally, frequencies, mean
from discreet.local.collector.poisoning import effect, implausible
from discreet.local.collector.prefix_tree import _extensions, _margins
from discreet.local.protocols import odds
from discreet.local.protocols.protocol import (
    PROTOCOLS,
    Duchi,
    FewChanges,
    HadamardResponse,
    HeavyHitters,
    Hybrid,
    KaryResponse,
    LocalHashing,
    OptimizedUnary,
    Piecewise,
    SquareWave,
    SubsetSelection,
    SymmetricUnary,
    Truthful,
    TwoCoins,
    Warner,
    from_wire,
    to_wire,
)
from discreet.local.protocols.repeated.memoize import MemoizedResponse, MemoizedUnary
from discreet.noise import bits, exact, recording
from discreet.policy.domain import Decimals, Integers

FALSE_ALARM = 1e-9
YES_NO = ("no", "yes")
HALVES = Decimals(lo=Fraction(0), hi=Fraction(3), step=Fraction(1, 2))
LETTERS = ("", "a", "b", "c", "aa")

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(3), Fraction(6))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A protocol on a small domain, its answers, and what one report may tell."""

    protocol: Any
    answers: Sequence[Any]

    def __str__(self) -> str:
        return f"{self.protocol.name}-{len(self.answers)}-{float(self.claim):.3g}"

    @property
    def claim(self) -> Fraction:
        return getattr(self.protocol, "one_report", self.protocol.epsilon)


def cases() -> Iterator[Case]:
    yield Case(protocol=TwoCoins(domain=YES_NO), answers=YES_NO)
    for truth in ("3/4", "0.51", "0.99"):
        yield Case(protocol=Truthful(domain=YES_NO, truth=Fraction(truth)), answers=YES_NO)
    for epsilon in EPSILONS:
        yield Case(protocol=Warner(domain=YES_NO, epsilon=epsilon), answers=YES_NO)
        for d in (2, 3, 4, 5, 6):
            for kind in (
                KaryResponse,
                SymmetricUnary,
                OptimizedUnary,
                HadamardResponse,
                LocalHashing,
                SubsetSelection,
            ):
                yield Case(protocol=kind(domain=d, epsilon=epsilon), answers=range(d))
        for grid in (HALVES, Integers(lo=-1, hi=1)):
            values = [grid.step * (grid.first + i) for i in range(grid.size)]
            for number in (Duchi, Piecewise, Hybrid, SquareWave):
                yield Case(protocol=number(domain=grid, epsilon=epsilon), answers=values)
    for text in ("0.5", "2", "5"):
        small = HeavyHitters(length=2, alphabet="abc", epsilon=Fraction(text))
        yield Case(protocol=small, answers=LETTERS)
    sets = HeavyHitters(length=2, alphabet="abc", items=2, epsilon=Fraction(1))
    yield Case(protocol=sets, answers=[(), ("a",), ("a", "b"), ("cc",)])
    for d in (2, 4):
        for memoized in (MemoizedResponse, MemoizedUnary):
            made = memoized(
                domain=d, permanent=Fraction(2), instant=Fraction(3), changes=2, rounds=10
            )
            yield Case(protocol=made, answers=range(d))
    for d, rounds in ((2, 1), (3, 4), (5, 3000)):
        yield Case(
            protocol=FewChanges(domain=d, epsilon=Fraction(2), rounds=rounds, changes=2),
            answers=range(d),
        )


CASES = list(cases())
every_case = pytest.mark.parametrize("case", CASES, ids=str)
PURE = [
    case
    for case in CASES
    if hasattr(case.protocol, "support") and not isinstance(case.protocol, HeavyHitters)
]
NUMBERS = [case for case in CASES if hasattr(case.protocol, "reading")]


def test_every_protocol_has_a_case() -> None:
    assert {type(case.protocol) for case in CASES} == set(PROTOCOLS)
    assert len({protocol.name for protocol in PROTOCOLS}) == len(PROTOCOLS)


# The exact output distribution, from the encoder itself
# -------------------------------------------------------------


class Choices:
    """Stands in for the draws of `noise.bits`, and takes every branch of each in turn, with its
    probability.
    """

    def __init__(self) -> None:
        self.script: list[list[int]] = []  # [branch taken, how many there are]
        self.at = 0
        self.probability = Fraction(1)

    def take(self, branches: Sequence[Fraction]) -> int:
        if self.at == len(self.script):
            self.script.append([0, len(branches)])
        taken = self.script[self.at][0]
        self.at += 1
        self.probability *= branches[taken]
        return taken

    def coin(self, source: object, threshold: int) -> bool:
        chance = Fraction(threshold, 1 << 64)
        return not self.take([chance, 1 - chance])

    def below(self, source: object, n: int) -> int:
        return self.take([Fraction(1, n)] * n)

    def next(self) -> bool:
        while self.script and self.script[-1][0] == self.script[-1][1] - 1:
            self.script.pop()
        if self.script:
            self.script[-1][0] += 1
        self.at, self.probability = 0, Fraction(1)
        return bool(self.script)


def distribution(case: Case, answer: Any, monkeypatch: pytest.MonkeyPatch) -> dict[int, Fraction]:
    choices = Choices()
    found: dict[int, Fraction] = defaultdict(Fraction)
    with monkeypatch.context() as patched:
        patched.setattr(bits, "coin", choices.coin)
        patched.setattr(bits, "below", choices.below)
        while True:
            report = case.protocol.respond(answer)
            assert type(report) is int
            found[report] += choices.probability
            if not choices.next():
                return {report: mass for report, mass in found.items() if mass}


def small(case: Case) -> bool:
    """Whether all outcomes of all draws are few enough to be listed."""
    protocol = case.protocol
    if isinstance(protocol, Truthful):
        return protocol.truth.denominator < 5000
    if isinstance(protocol, HeavyHitters):
        return protocol.g < 16
    return True


@every_case
def test_the_encoder_has_exactly_the_mass_that_is_claimed(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in case.answers if small(case) else ():
        found = distribution(case, answer, monkeypatch)
        assert sum(found.values()) == 1
        assert all(0 <= report < case.protocol.size for report in found)
        claimed = {
            report: case.protocol.mass(report, answer) for report in range(case.protocol.size)
        }
        assert found == {report: mass for report, mass in claimed.items() if mass}


def largest_ratio(case: Case) -> Fraction:
    worst = Fraction(1)
    for report in range(case.protocol.size):
        masses = [case.protocol.mass(report, answer) for answer in case.answers]
        if not any(masses):
            continue
        assert all(masses), "a report that some answers never send gives them away"
        worst = max(worst, max(masses) / min(masses))
    return worst


@every_case
def test_the_largest_ratio_is_e_to_the_epsilon(case: Case) -> None:
    """At most e^ε, by integer arithmetic; and under it by no more than the rounding of a 64-bit
    threshold.
    """
    low, high = exact.log(largest_ratio(case), 128)
    assert Fraction(high, 1 << 128) <= case.claim
    assert case.claim - Fraction(low, 1 << 128) < Fraction(1, 1 << 50)


@pytest.mark.parametrize("d", [2, 10, 1000])
@pytest.mark.parametrize("epsilon", ["0.001", "1", "9"])
def test_thresholds_are_tight_and_safe(d: int, epsilon: str) -> None:
    """`threshold` is the largest: one more would exceed e^ε."""
    for ratio in (Fraction(1), Fraction(1, d - 1) if d > 2 else Fraction(1, 7), Fraction(d)):
        t = odds.threshold(Fraction(epsilon), odds=ratio)
        assert exact.log(Fraction(t, (1 << 64) - t) / ratio, 256)[1] <= Fraction(epsilon) * (
            1 << 256
        )
        assert exact.log(Fraction(t + 1, (1 << 64) - t - 1) / ratio, 256)[0] > Fraction(epsilon) * (
            1 << 256
        )


# The vectorised encoders: the same reports from the same words
# ------------------------------------------------------


class Replayed:
    """A source that gives one respondent's words again."""

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def bits(self, k: int) -> int:
        return sum(self.words.pop(0) << (64 * i) for i in range(-(-k // 64))) & ((1 << k) - 1)


def many(case: Case, n: int) -> list[Any]:
    return [case.answers[i % len(case.answers)] for i in range(n)]


def as_integers(case: Case, reports: Any) -> list[int]:
    if reports.ndim == 1:
        return [int(report) for report in reports]
    if isinstance(case.protocol, HeavyHitters):
        return [
            (
                int.from_bytes(row[:-1].tobytes(), "little") * case.protocol.g
                + int(row[-1]) // case.protocol.levels
            )
            * case.protocol.levels
            + int(row[-1]) % case.protocol.levels
            for row in reports
        ]
    return [int.from_bytes(row.tobytes(), "little") for row in reports]


@pytest.mark.parametrize("case", [c for c in CASES if "unary" not in c.protocol.name], ids=str)
def test_one_respondent_and_many_send_the_same_from_the_same_words(case: Case) -> None:
    values: list[Any] = many(case, 60)
    columns: list[Any] = []

    def keep(asked: Any, words: Any) -> Any:
        if len(asked.ids) == len(values):
            columns.append(words[:, 0])  # of the two words of a round every draw here takes one
        return words

    with recording(craft=keep):
        reports = as_integers(case, case.protocol.encode(values))
    for i, value in enumerate(values):
        source = Replayed([int(column[i]) for column in columns])
        assert case.protocol.respond(value, source) == reports[i]


@every_case
def test_samples_fit_the_mass_and_no_other(case: Case) -> None:
    """How many reports are of the likeliest kind: within chance of what is claimed, and not of 0.8
    or 1.2 of it.

    Where all but a few are of that kind, it is the few whose claim is moved, by a factor of 3.
    """
    answer = case.answers[-1]
    masses = [case.protocol.mass(report, answer) for report in range(case.protocol.size)]
    kind = [report for report, mass in enumerate(masses) if mass == max(masses)]
    if len(kind) == sum(mass > 0 for mass in masses):  # all are alike
        kind = kind[::2]
    p = float(sum(masses[report] for report in kind))
    n = 40_000 if 0.1 < p < 0.9 else 200_000
    hits = int(np.isin(as_integers(case, case.protocol.encode([answer] * n)), kind).sum())
    hits, p = (hits, p) if p <= 0.5 else (n - hits, 1 - p)
    assert chance_of(hits, n, p) > FALSE_ALARM
    for factor in (0.8, 1.2) if p > 0.1 else (1 / 3, 3):
        assert chance_of(hits, n, p * factor) < FALSE_ALARM


def chance_of(hits: int, n: int, p: float) -> float:
    return float(stats.binomtest(hits, n, p).pvalue)


# Estimates
# ---------------------------------------------------------------------------------------------------------


def supports(case: Case, report: int) -> list[int]:
    """Which values a report supports, by the server's own code."""
    return [int(count) for count in case.protocol.tally([report]).counts]


@pytest.mark.parametrize("case", PURE, ids=str)
def test_frequencies_are_unbiased_with_the_variance_of_the_formula(case: Case) -> None:
    protocol, p, q = case.protocol, case.protocol.support.p, case.protocol.support.q
    per_report = {report: supports(case, report) for report in range(protocol.size)}
    for answer, value in itertools.product(case.answers, range(len(case.answers))):
        true = int(list(case.answers).index(answer) == value)
        readings = [
            ((per_report[y][value] - q) / (p - q), protocol.mass(y, answer)) for y in per_report
        ]
        assert sum(reading * mass for reading, mass in readings) == true
        variance = sum(reading**2 * mass for reading, mass in readings) - true
        assert variance == protocol.variance(n=1, frequency=true)


@pytest.mark.parametrize("case", NUMBERS, ids=str)
def test_means_are_unbiased_with_the_variance_of_the_formula(case: Case) -> None:
    protocol = case.protocol
    readings = [protocol.reading(report) for report in range(protocol.size)]
    for step, answer in enumerate(case.answers):
        masses = [protocol.mass(report, answer) for report in range(protocol.size)]
        assert sum(r * m for r, m in zip(readings, masses, strict=True)) == step
        variance = sum(r * r * m for r, m in zip(readings, masses, strict=True)) - step**2
        assert variance == protocol.reading_variance(step)
        assert variance * protocol.domain.step**2 / 10 == protocol.variance(n=10, answer=answer)
        assert protocol.variance(n=10) >= protocol.variance(n=10, answer=answer)


@pytest.mark.parametrize("case", [c for c in CASES if isinstance(c.protocol, SquareWave)], ids=str)
def test_distributions_are_unbiased_with_the_variance_of_the_formula(case: Case) -> None:
    protocol = case.protocol
    read = inverse(protocol.window)
    for step, answer in enumerate(case.answers):
        mass = np.array([float(protocol.mass(report, answer)) for report in range(protocol.size)])
        np.testing.assert_allclose(channel(protocol.window)[:, step], mass, rtol=1e-14)
        np.testing.assert_allclose(read @ mass, np.eye(len(case.answers))[step], atol=1e-9)
        spread = (read**2) @ mass - (read @ mass) ** 2
        np.testing.assert_allclose(protocol.variance(n=7, answer=answer), spread / 7, rtol=1e-9)


@pytest.mark.parametrize(
    "case", [c for c in CASES if isinstance(c.protocol, HeavyHitters)], ids=str
)
def test_prefixes_are_supported_by_exactly_p_and_q(case: Case) -> None:
    """The walk's transform, on each possible report: the true prefix with probability p, every
    other with q.
    """
    protocol = case.protocol
    assert protocol.levels == 1
    for answer in case.answers if protocol.items == 1 else ():
        chance = np.zeros(1 << protocol.code_bits, dtype=object)
        for report in range(protocol.size):
            rest = report // protocol.levels
            function = np.array([[rest // protocol.g]], dtype=np.uint64)
            supported = _extensions(protocol, [0], function, np.array([rest % protocol.g]), 0)[0]
            chance = chance + supported.astype(object) * protocol.mass(report, answer)
        expected = [protocol.support.q] * (1 << protocol.code_bits)
        expected[protocol.code(answer)] = protocol.support.p
        assert list(chance) == expected


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "4"])
def test_subset_selection_has_the_variance_of_all_sets_whatever_the_number_of_values(
    epsilon: str,
) -> None:
    """From the definition [Ye, Barg 2018]: w of d values, e^ε times likelier if they hold the
    truth; the best w.
    """
    e = np.exp(float(epsilon))
    for d in range(2, 65):
        w = np.arange(1, d)
        p = w * e / (w * e + d - w)
        q = (w - 1) / (d - 1) * p + w / (d - 1) * (1 - p)
        least = (q * (1 - q) / (p - q) ** 2).min()
        assert float(SubsetSelection(domain=d, epsilon=epsilon).variance(n=1)) == pytest.approx(
            least, rel=1e-9
        )


@pytest.mark.parametrize("d", [129, 140, 200, 1000, 1328])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "4", "5", "6"])
def test_subset_selection_of_more_values_costs_at_most_four_percent_more(
    d: int, epsilon: str
) -> None:
    e = np.exp(float(epsilon))
    w = np.arange(1, d)
    p = w * e / (w * e + d - w)
    q = (w - 1) / (d - 1) * p + w / (d - 1) * (1 - p)
    least = (q * (1 - q) / (p - q) ** 2).min()
    assert float(SubsetSelection(domain=d, epsilon=epsilon).variance(n=1)) <= 1.04 * least


# Intervals
# ---------------------------------------------------------------------------------------------------------


def coverage(protocol: Any, n: int, holders: int) -> float:
    """The exact probability that a frequency of holders / n lies within the margin of its
    estimate.
    """
    p, q = float(protocol.support.p), float(protocol.support.q)
    true = stats.binom.pmf(np.arange(holders + 1), holders, p)
    false = stats.binom.pmf(np.arange(n - holders + 1), n - holders, q)
    chance = np.convolve(true, false)
    found = frequencies(protocol, Tally(counts=np.arange(n + 1), n=n))
    return float(chance[abs(found.estimates - holders / n) <= found.margins].sum())


@pytest.mark.parametrize("case", PURE, ids=str)
def test_intervals_of_frequencies_cover(case: Case) -> None:
    """At least 95 %, whatever the truth; and they are not simply wide."""
    for n in (1, 4, 25, 30, 300, 1000):
        covered = [
            coverage(case.protocol, n, holders)
            for holders in sorted({*np.linspace(0, n, 11).astype(int)})
        ]
        assert min(covered) >= 0.95 - 1e-9
    assert np.mean(covered) < 0.985 or case.protocol.variance(n=1000) < 1e-5


@pytest.mark.parametrize("epsilon", ["5", "6", "7", "9", "12"])
@pytest.mark.parametrize("d", [2, 3, 10])
def test_intervals_of_frequencies_cover_where_a_flipped_answer_is_rare(
    d: int, epsilon: str
) -> None:
    """Half a report beside the normal margin covered 94 % where one in twenty collections has a
    flipped answer.
    """
    protocol = KaryResponse(domain=d, epsilon=epsilon)
    for n in (5, 15, 25, 60, 150, 500, 2000):
        for holders in sorted({*np.linspace(0, n, 11).astype(int)}):
            assert coverage(protocol, n, holders) >= 0.95 - 1e-9


@pytest.mark.parametrize("case", NUMBERS, ids=str)
def test_intervals_of_means_cover(case: Case) -> None:
    """The distribution of the sum of n reports, exactly, by convolution of their masses."""
    for n, answer in itertools.product(
        (10, 30, 100, 400), (case.answers[0], case.answers[len(case.answers) // 2])
    ):
        assert _mean_coverage(case.protocol, answer, n) >= 0.95


def _mean_coverage(protocol: Any, answer: Any, n: int) -> float:
    # Readings as whole numbers of a small unit, so that their sum is one too.
    sent = [report for report in range(protocol.size) if protocol.mass(report, answer)]
    readings = np.array([float(protocol.reading(report)) for report in sent])
    masses = np.array([float(protocol.mass(report, answer)) for report in sent])
    unit = (readings.max() - readings.min()) / 200
    places = np.rint((readings - readings.min()) / unit).astype(int)
    one = np.bincount(places, weights=masses)
    size = len(one) * n
    total = np.fft.irfft(np.fft.rfft(one, size) ** n, size)
    means = (readings.min() * n + unit * np.arange(size)) / n
    center = float((total * means).sum())
    margin = float(mean(protocol, protocol.tally([0] * n)).margins[0]) / float(protocol.domain.step)
    return float(total[abs(means - center) <= margin].sum())


@pytest.mark.parametrize("size", [2, 3, 11, 50])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "3", "6"])
def test_intervals_of_distributions_cover(size: int, epsilon: str) -> None:
    """Of every value, if all have one answer: the sum of n readings by convolution, on a fine grid.
    Several answers together vary less than the one that varies most, which the margin is made of.
    """
    protocol = SquareWave(domain=Integers(lo=0, hi=size - 1), epsilon=Fraction(epsilon))
    read, mass = inverse(protocol.window), channel(protocol.window)
    for n, answer in itertools.product((30, 100, 1000), {0, size // 2}):
        nobody = Tally(counts=np.zeros(protocol.size, dtype=np.int64), n=n)
        margins = invert(protocol.window, nobody, confidence=0.95)[1]
        for value in {0, answer, size - 1}:
            unit = (read[value].max() - read[value].min()) / 500
            places = np.rint((read[value] - read[value].min()) / unit).astype(int)
            one = np.bincount(places, weights=mass[:, answer])
            total = np.fft.irfft(np.fft.rfft(one, len(one) * n) ** n, len(one) * n)
            off = abs(np.arange(len(total)) - n * float(one @ np.arange(len(one))))
            assert total[off * unit <= n * margins[value]].sum() >= 0.95


@pytest.mark.parametrize("epsilon", ["1", "3", "5"])
@pytest.mark.parametrize(("n", "speaking"), [(300, 300), (300, 150), (2000, 1000), (2000, 500)])
def test_intervals_of_strings_cover(epsilon: str, n: int, speaking: int) -> None:
    """Exactly, before strings are selected: who speaks at the last level is drawn from all, then
    come the coins.
    """
    protocol = HeavyHitters(length=2, alphabet="abc", epsilon=Fraction(epsilon))
    p, q = float(protocol.support.p), float(protocol.support.q)
    shares = (np.arange(speaking + 1) / speaking - q) / (p - q)
    half = _margins(protocol, shares, n, speaking, 0.95)
    for holders in np.linspace(0, n, 9).astype(int):
        chance = np.zeros(speaking + 1)
        for spoke in range(max(0, holders - (n - speaking)), min(holders, speaking) + 1):
            likely = float(stats.hypergeom.pmf(spoke, n, holders, speaking))
            if likely < 1e-9:
                continue
            true = stats.binom.pmf(np.arange(spoke + 1), spoke, p)
            false = stats.binom.pmf(np.arange(speaking - spoke + 1), speaking - spoke, q)
            chance += likely * np.convolve(true, false)
        assert chance[abs(shares - holders / n) <= half].sum() >= 0.95 - 1e-6


# On the way
# --------------------------------------------------------------------------------------------------------


@every_case
def test_what_is_accepted_can_come_of_an_answer(case: Case) -> None:
    """And what no answer sends is refused, so that it cannot move an estimate further than an
    honest report can.
    """
    protocol = case.protocol
    sent = [
        report
        for report in range(protocol.size)
        if any(protocol.mass(report, answer) for answer in case.answers)
    ]
    accepted = [report for report in range(protocol.size) if not implausible(protocol, report)]
    assert set(accepted) <= set(sent)
    if "unary" not in protocol.name:  # whose reports of 10^-9 are refused too
        assert accepted == sent


@pytest.mark.parametrize("case", NUMBERS, ids=str)
def test_a_made_up_number_moves_the_mean_by_what_is_claimed(case: Case) -> None:
    protocol, top = case.protocol, case.protocol.domain.size - 1
    readings = [
        protocol.reading(report)
        for report in range(protocol.size)
        if not implausible(protocol, report)
    ]
    furthest = max(max(readings), top - min(readings)) * protocol.domain.step
    assert effect(protocol, fakes=1, n=100) == float(furthest / 100)


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 1 << 36), Fraction(1, 1001), Fraction(101), Fraction(1000)]
)
def test_a_square_wave_that_cannot_be_undone_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(UsageError, match=r"The square wave is for epsilon 0\.001 to 100"):
        SquareWave(domain=HALVES, epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(100)])
@pytest.mark.parametrize("size", [2, 3, 1024])
def test_a_square_wave_at_the_ends_of_its_range_is_undone(size: int, epsilon: Fraction) -> None:
    protocol = SquareWave(domain=Integers(lo=0, hi=size - 1), epsilon=epsilon)
    np.testing.assert_allclose(
        inverse(protocol.window) @ channel(protocol.window), np.eye(size), atol=1e-4
    )
    found = protocol.estimate(protocol.encode([1] * 50))
    assert np.isfinite([found.estimates, found.margins, found.consistent]).all()


def test_values_that_are_no_values_are_refused() -> None:
    for kind in (
        KaryResponse,
        SymmetricUnary,
        OptimizedUnary,
        HadamardResponse,
        LocalHashing,
        SubsetSelection,
    ):
        with pytest.raises(UsageError, match="words or numbers"):
            kind(domain=[[1], [2]], epsilon=Fraction(1))


@every_case
def test_reports_travel_and_come_back(case: Case) -> None:
    size = case.protocol.size
    for report in (0, size // 2, size - 1):
        assert from_wire(to_wire(report, size), size) == report
    for wrong in (size, -1, 1.0, True, None, "0", "xyz", [0], f"{size:x}"):
        with pytest.raises(ValueError, match="not a report"):
            from_wire(wrong, size)
