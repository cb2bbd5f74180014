"""The small part of randomness: every draw is a known function of words, so most of it is checked
without chance.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from math import exp, factorial

import pytest

from discreet.noise import bits

FALSE_ALARM = 1e-9


class Words:
    """A source that gives the words it was built with, and then fails."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    def bits(self, k: int) -> int:
        value = sum(self.left.pop(0) << (64 * i) for i in range(-(-k // 64)))
        return value & ((1 << k) - 1)


def sigmas(hits: int, trials: int, p: float) -> float:
    return abs(hits - trials * p) / (trials * p * (1 - p)) ** 0.5


def test_a_coin_turns_exactly_at_its_threshold() -> None:
    threshold = bits.WORD // 3
    assert bits.coin(Words(threshold - 1), threshold)
    assert not bits.coin(Words(threshold), threshold)
    assert bits.coin(Words(bits.WORD - 1), bits.WORD)
    assert not bits.coin(Words(0), 0)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 2**63 + 1, 2**64 - 1, 2**64])
def test_below_gives_each_number_the_same_number_of_words(n: int) -> None:
    """Words under the largest multiple of n map by remainder, evenly; the others are drawn
    again.
    """
    whole = bits.WORD // n * n
    assert bits.below(Words(whole - 1), n) == n - 1
    assert bits.below(Words(0), n) == 0
    if whole < bits.WORD:
        source = Words(whole, bits.WORD - 1, 5)
        assert bits.below(source, n) == 5 % n
        assert source.left == []


def test_below_takes_two_words_past_one() -> None:
    assert bits.below(Words(7, 1), 2**65) == (1 << 64) + 7


def test_a_rational_coin_is_exact() -> None:
    outcomes = Counter(bits.bernoulli(Words(w), Fraction(3, 7)) for w in range(7))
    assert outcomes == {True: 3, False: 4}


def test_exp_coin_agrees_with_its_enclosure_at_the_boundary() -> None:
    boundary = int(exp(-1) * 2**64) & ~0xFFFFF
    assert bits.bernoulli_exp(Words(boundary - (1 << 20)), Fraction(1))
    assert not bits.bernoulli_exp(Words(boundary + (1 << 21)), Fraction(1))
    assert bits.bernoulli_exp(Words(), Fraction(0))


def test_exp_coin_lands_as_often_as_it_says() -> None:
    n = 40_000
    hits = sum(bits.bernoulli_exp(bits.SYSTEM, Fraction(3, 2)) for _ in range(n))
    assert sigmas(hits, n, exp(-1.5)) < 6.2  # two-sided 6.1 sigma is FALSE_ALARM
    assert sigmas(hits, n, exp(-1.5) * 1.2) > 6.2  # and a coin a fifth off would be noticed


def test_system_bits_stay_in_range_and_use_it() -> None:
    for k in (1, 3, 8, 13, 64, 100):
        drawn = [bits.SYSTEM.bits(k) for _ in range(200)]
        assert all(0 <= value < 1 << k for value in drawn)
        if k >= 8:
            assert any(value >> (k - 1) for value in drawn)


def test_every_permutation_has_the_same_number_of_words() -> None:
    """Each step's draw is uniform by the test above; all combinations of draws give all orders
    once.
    """
    orders = {
        tuple(bits.permutation(Words(a, b, c), 4))
        for a, b, c in itertools.product(range(4), range(3), range(2))
    }
    assert len(orders) == factorial(4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: bits.below(bits.SYSTEM, 0),
        lambda: bits.bernoulli(bits.SYSTEM, Fraction(3, 2)),
        lambda: bits.bernoulli_exp(bits.SYSTEM, Fraction(-1)),
    ],
)
def test_nonsense_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"needs|probability"):
        wrong()  # type: ignore[operator]


def test_only_the_standard_library_is_loaded() -> None:
    code = "import sys, discreet.noise.bits; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "cryptography", "pydantic", "typing_extensions"} & set(loaded)
