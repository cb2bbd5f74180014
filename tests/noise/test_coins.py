"""Coins, uniform integers and orderings: each a known function of its words, so checked mostly
without chance.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import UsageError
from discreet.noise import (
    Items,
    Stream,
    bernoulli,
    bernoulli_exp,
    exact,
    permutation,
    recording,
    uniform,
)
from discreet.noise.tape import WordRequest

FALSE_ALARM = 1e-9
WORD = 1 << 64


def crafted(draw: Any, words: list[list[int]], *parameters: Any, more: int | None = None) -> Any:
    """What is drawn when round r gives words[r] to the items that ask in it, and further words are
    `more`.
    """

    def craft(asked: WordRequest, drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if asked.path[-1][0] == draw.__name__ and asked.round < len(words):
            drawn[:, 0] = words[asked.round]
        elif more is not None and asked.path[-1][0] == "bits":
            drawn[:] = more
        return drawn

    with recording(craft=craft):
        return draw(Stream.fresh(), Items.positions(len(words[0])), *parameters)


@pytest.mark.parametrize(
    "p", [Fraction(1, 3), Fraction(1, 2), Fraction(1, 2**70), Fraction(2**70 - 1, 2**70)]
)
def test_a_coin_turns_exactly_at_its_probability(p: Fraction) -> None:
    low, _ = exact.rational(p, 64)
    rest = exact.rational(p * WORD - low, 64)[0]
    for step in (-1, 1):
        if 0 <= low + step < WORD:
            assert crafted(bernoulli, [[low + step]], p) == [step < 0]
        if low < WORD and 0 <= rest + step < WORD and rest:
            assert crafted(bernoulli, [[low]], p, more=rest + step) == [step < 0]
    if p == Fraction(1, 2):
        assert crafted(bernoulli, [[low - 1, low]], p, more=0).tolist() == [True, False]


def test_a_sure_coin_is_sure() -> None:
    words = [[0, 1, WORD // 2, WORD - 1]]
    assert crafted(bernoulli, words, Fraction(1)).all()
    assert not crafted(bernoulli, words, Fraction(0)).any()
    assert crafted(bernoulli_exp, words, Fraction(0)).all()
    assert crafted(bernoulli_exp, words, Fraction(10**9)).tolist() == [False] * 4
    assert crafted(bernoulli_exp, [[WORD - 1]], Fraction(1, 10**40), more=0) == [True]


@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1), Fraction(30)])
def test_an_exp_coin_turns_exactly_at_its_probability(x: Fraction) -> None:
    low, high = exact.exp_minus(x, 128)
    word, rest = low >> 64, low & WORD - 1
    assert word == high >> 64
    assert crafted(bernoulli_exp, [[word - 1, word + 1]], x).tolist() == [True, False]
    assert crafted(bernoulli_exp, [[word]], x, more=rest - 2) == [True]
    assert crafted(bernoulli_exp, [[word]], x, more=rest + 2) == [False]


def test_coins_land_as_often_as_they_say() -> None:
    n, stream = 10**6, Stream.fresh()
    items = Items.positions(n)
    for heads, p in (
        (bernoulli(stream, items, Fraction(1, 3)), 1 / 3),
        (bernoulli_exp(stream, items, Fraction(2)), float(np.exp(-2))),
    ):
        for claim, fits in ((p, True), (p * 1.05, False), (p * 0.95, False)):
            assert (stats.binomtest(int(heads.sum()), n, claim).pvalue > FALSE_ALARM) == fits


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**32, 2**62 + 1, 2**63 - 1, 2**63])
def test_uniform_is_even_over_words(n: int) -> None:
    """Words below the largest multiple of n fall on each number equally often; the others are drawn
    again.
    """
    whole = WORD // n * n
    assert crafted(uniform, [[0, n - 1, n, whole - 1]], n).tolist() == [0, n - 1, 0, n - 1]
    if whole < WORD:
        assert crafted(uniform, [[WORD - 1, 5, whole], [whole, n], [n + 2]], n).tolist() == [
            2 % n,
            5 % n,
            0,
        ]


def test_uniform_beyond_64_bits() -> None:
    n = 3 * 2**90
    drawn = uniform(Stream.fresh(), Items.positions(3000), n)
    assert all(type(value) is int and 0 <= value < n for value in drawn)
    counts = np.bincount([value * 10 // n for value in drawn.tolist()], minlength=10)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


def test_uniform_fits() -> None:
    counts = np.bincount(uniform(Stream.fresh(), Items.positions(10**6), 7), minlength=7)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    lopsided = counts + np.array([4000, -4000, 0, 0, 0, 0, 0])  # a bias of 3 %
    assert stats.chisquare(lopsided).pvalue < FALSE_ALARM


def test_every_ordering_is_as_likely() -> None:
    stream, n = Stream.fresh(), 3000
    counts = Counter(tuple(permutation(stream.derive("run", i), 4).tolist()) for i in range(n))
    assert set(counts) <= set(permutations(range(4)))
    assert stats.chisquare([counts[order] for order in permutations(range(4))]).pvalue > FALSE_ALARM


def test_ties_of_an_ordering_are_broken_by_further_words() -> None:
    def craft(asked: WordRequest, drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if asked.round == 0:
            drawn[:, 0], drawn[:, 1] = 7, [3, 9, 3, 1]
        else:
            drawn[:, 0] = [5, 0, 4, 0]
        return drawn

    with recording(craft=craft):
        assert permutation(Stream.fresh(), 4).tolist() == [3, 2, 0, 1]


def test_orderings_of_nothing_and_of_one() -> None:
    assert permutation(Stream.fresh(), 0).tolist() == []
    assert permutation(Stream.fresh(), 1).tolist() == [0]


@pytest.mark.parametrize(
    ("draw", "parameter"),
    [
        (bernoulli, Fraction(-1, 2)),
        (bernoulli, Fraction(3, 2)),
        (bernoulli_exp, Fraction(-1)),
        (uniform, 0),
        (uniform, -5),
        (uniform, True),
        (uniform, 2.0),
    ],
)
def test_bad_parameters_are_refused(draw: Any, parameter: Any) -> None:
    with pytest.raises(UsageError, match=r"not|less"):
        draw(Stream.fresh(), Items.positions(1), parameter)
