"""Choices: probabilities as the mechanisms say, and a float never decides what it cannot."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import exp, inf, prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from discreet.errors import UsageError
from discreet.noise import Stream, noisy_max, noisy_top, recording
from discreet.noise.choose import Kind, _bounds, _Racer
from discreet.noise.tape import WordRequest

FALSE_ALARM = 1e-9
KINDS: list[Kind] = ["exponential", "gumbel"]
WORD = 1 << 64
EDGES = [
    0,
    1,
    2,
    1000,
    2**34 - 1,
    2**34,
    2**40,
    2**53 + 1,
    2**63 - 1,
    2**63,
    WORD - 2**48 - 1,
    WORD - 2**48,
]
WORDS = [*EDGES, WORD - 2**48 + 1, WORD - 2**20, WORD - 2, WORD - 1]


def chances(scores: list[int], unit: float, kind: Kind) -> list[float]:
    """The probability that each candidate wins."""
    if kind == "gumbel":
        weights = [exp(unit * score) for score in scores]
        return [weight / sum(weights) for weight in weights]

    def wins(i: int) -> float:
        others = [unit * (score - scores[i]) for j, score in enumerate(scores) if j != i]
        density = lambda e: exp(-e) * prod(max(0.0, 1 - exp(behind - e)) for behind in others)  # noqa: E731
        return float(integrate.quad(density, max(0.0, *others), inf)[0])

    return [wins(i) for i in range(len(scores))]


@pytest.mark.parametrize("kind", KINDS)
def test_choices_have_the_probabilities_of_their_mechanism(kind: Kind) -> None:
    scores, unit, n = [0, -3, 2, 1], Fraction(1, 2), 2500
    stream = Stream.fresh()
    counts = Counter(
        noisy_max(stream.derive("run", i), scores, unit=unit, kind=kind) for i in range(n)
    )
    observed = np.array([counts[i] for i in range(4)])
    for wrong, fits in ((1.0, True), (0.4, False), (1.7, False)):
        expected = n * np.array(chances(scores, float(unit) * wrong, kind))
        p = stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 3)
        assert (p > FALSE_ALARM) == fits, wrong


def test_the_top_in_order_is_the_exponential_mechanism_repeated() -> None:
    scores, n, stream = [2, 0, 1], 2500, Stream.fresh()
    counts = Counter(
        tuple(noisy_top(stream.derive("run", i), scores, k=2, unit=Fraction(1), kind="gumbel"))
        for i in range(n)
    )
    orders = list(permutations(range(3), 2))
    weight = [exp(score) for score in scores]
    expected = np.array(
        [n * weight[a] / sum(weight) * weight[b] / (sum(weight) - weight[a]) for a, b in orders]
    )
    observed = np.array([counts[order] for order in orders])
    assert stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), 5) > FALSE_ALARM
    assert stats.chi2.sf(((observed - n / 6) ** 2 / (n / 6)).sum(), 5) < FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_float_bounds_hold_for_every_real_of_a_word(kind: Kind) -> None:
    drawn = Stream.fresh().bits(64 * 100)
    words = (
        WORDS
        + [drawn >> 64 * i & WORD - 1 for i in range(100)]
        + [(drawn >> 64 * i & WORD - 1) >> 28 for i in range(9)]
    )
    gaps = np.array([0.0, 0.3, 1e6])
    for word in words:
        low, high = _bounds(np.full(3, word, dtype=np.uint64), gaps.copy(), kind)
        for tail in (1, WORD - 2):  # the reals at both ends of the word's cell, but for 2^-128
            racer = _Racer(
                place=0,
                behind=Fraction(0),
                kind=kind,
                prefix=word << 64 | tail,
                more=Stream.fresh(),
            )
            enclosed = racer.enclosed()
            assert enclosed is not None
            for gap, least, most in zip(gaps, low, high, strict=True):
                assert least <= enclosed[1] - Fraction(float(gap))
                assert enclosed[0] - Fraction(float(gap)) <= most


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prefix", [1, 5, 2**60, 2**127, 2**128 - 2**60, 2**128 - 3, 2**128 - 2])
def test_an_enclosure_holds_all_that_further_bits_may_say(kind: Kind, prefix: int) -> None:
    def enclosed(prefix: int, held: int) -> tuple[Fraction, Fraction]:
        found = _Racer(
            place=0, behind=Fraction(1, 3), kind=kind, prefix=prefix, more=Stream.fresh(), held=held
        ).enclosed()
        assert found is not None
        return found

    low, high = enclosed(prefix, 128)
    for last in (1, WORD // 2, WORD - 2):
        narrower = enclosed(prefix << 64 | last, 192)
        assert low <= narrower[0] <= narrower[1] <= high
    narrow = enclosed(prefix << 64 | 1, 192)
    assert narrow[1] - narrow[0] < (high - low) / 2**60


def test_noise_that_is_not_yet_bounded_is_not_enclosed() -> None:
    for kind in KINDS:
        for prefix in (0, (1 << 128) - 1):
            racer = _Racer(
                place=0, behind=Fraction(0), kind=kind, prefix=prefix, more=Stream.fresh()
            )
            assert racer.enclosed() is None
            racer.extend()
            assert racer.enclosed() is not None  # but for a chance of 2^-64


@pytest.mark.parametrize("kind", KINDS)
def test_discarding_by_float_changes_nothing(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, n = Stream.fresh(), 150
    runs = []
    for always in (0, 3, n):
        monkeypatch.setattr("discreet.noise.choose._ALWAYS", always)
        scores = [i % 7 for i in range(n)]
        runs.append(
            [
                noisy_top(stream.derive("run", i), scores, k=4, unit=Fraction(1, 3), kind=kind)
                for i in range(6)
            ]
        )
    assert runs[0] == runs[1] == runs[2]


def crafted(
    words: list[tuple[int, int]], scores: Any, *, k: int, unit: Fraction, kind: Kind
) -> list[int]:
    def craft(asked: WordRequest, drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if asked.path[-1][0] == "noisy_top":
            drawn[:] = np.array(words, dtype=np.uint64)
        return drawn

    with recording(craft=craft):
        return noisy_top(Stream.fresh(), scores, k=k, unit=unit, kind=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_close_race_is_decided_by_later_words(kind: Kind) -> None:
    """Both noises fall as the word grows. Equal first words: the second decides; both equal: words
    of their own.
    """
    for word in (5, 2**33, 2**50, 2**63 + 12345, WORD - 2**47):
        for second in (5, 2**40, 2**63):
            words = [(word, second + 1), (word, second), (word, second + 2)]
            assert crafted(words, [0, 0, 0], k=3, unit=Fraction(1), kind=kind) == [1, 0, 2]
            assert crafted(words, [0, 0, 0], k=1, unit=Fraction(0), kind=kind) == [1]
    outcomes = {
        tuple(crafted([(2**50, 7)] * 2, [0, 0], k=2, unit=Fraction(1), kind=kind))
        for _ in range(40)
    }
    assert outcomes == {(0, 1), (1, 0)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_tiny_difference_of_scores_counts(kind: Kind) -> None:
    words = [(2**60, 2**63), (2**60, 2**63 - 2)]
    assert crafted(words, [1, 0], k=1, unit=Fraction(1, 2**100), kind=kind) == [0]
    assert crafted(words, [1, 0], k=1, unit=Fraction(1, 2**200), kind=kind) == [1]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_any_size(kind: Kind) -> None:
    top = 2**63 - 1
    for scores in ([-top - 1, top, 0], [-(10**500), 10**500, 0], [5, 10**30, -(10**30)]):
        chosen = noisy_top(Stream.fresh(), scores, k=3, unit=Fraction(10), kind=kind)
        assert chosen == sorted(range(3), key=lambda i: -scores[i])
    scores = np.array([0, top, -top], dtype=np.int64)
    assert noisy_max(Stream.fresh(), scores, unit=Fraction(10**300), kind=kind) == 1
    assert noisy_max(Stream.fresh(), [3], unit=Fraction(1), kind=kind) == 0
    huge = [0, 1, 2]
    assert noisy_top(Stream.fresh(), huge, k=3, unit=Fraction(10**400), kind=kind) == [2, 1, 0]


def test_equal_scores_are_chosen_evenly_and_by_position_not_at_all() -> None:
    stream = Stream.fresh()
    scores = np.zeros(1000, np.int64)
    chosen = [
        noisy_max(stream.derive("run", i), scores, unit=Fraction(1), kind="gumbel")
        for i in range(400)
    ]
    assert abs(np.mean(chosen) - 499.5) < 6.2 * 289 / 400**0.5


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ([1.5, 2.0], {}), (["a"], {}), ([[1, 2]], {}), ([True, False], {}), ([], {}), ([1, 2], {"k": 3}),
        ([1, 2], {"k": 0}), ([1, 2], {"kind": "laplace"}), ([1, 2], {"unit": Fraction(-1)}),
    ],
)  # fmt: skip
def test_bad_questions_are_refused(scores: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        noisy_top(
            Stream.fresh(), scores, **{"k": 1, "unit": Fraction(1), "kind": "gumbel", **options}
        )
