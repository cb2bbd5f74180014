"""Uniform integers, coins and permutations from random bits, one at a time: exact, and on the
standard library alone.

For a respondent's encoder and wherever a handful of draws is needed; `noise.coins` draws many at
once. Whole 64-bit words are taken, in the order of the calls, so that another language that reads
the same words draws the same numbers.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import NamedTuple, Protocol

from discreet.noise import exact

WORD = 1 << 64


class RandomBits(Protocol):
    """Anything that gives uniform, independent random bits."""

    def bits(self, k: int) -> int: ...


class SystemBits:
    """The operating system's random bits. It holds nothing, so a fork or a copied machine shares
    nothing.
    """

    __slots__ = ()

    def bits(self, k: int) -> int:
        return int.from_bytes(os.urandom((k + 7) // 8), "little") >> (-k % 8)


SYSTEM = SystemBits()


class Draw(NamedTuple):
    """One draw as it fell: a coin with a chance of heads (1), or one of n equally likely numbers
    from 0.
    """

    heads: Fraction | None
    n: int
    outcome: int


class RecordingBits:
    """The system's random bits, with every draw noted in `made`, to be shown to the respondent."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made: list[Draw] = []

    def bits(self, k: int) -> int:
        return SYSTEM.bits(k)


def coin(source: RandomBits, threshold: int) -> bool:
    """Return True with probability threshold / 2^64: one word, one comparison, whatever the
    outcome.
    """
    heads = source.bits(64) < threshold
    if isinstance(source, RecordingBits):
        source.made.append(Draw(heads=Fraction(threshold, WORD), n=2, outcome=int(heads)))
    return heads


def below(source: RandomBits, n: int) -> int:
    """Return a uniform integer in [0, n).

    As many whole words as n needs, again if they fall in the incomplete last run of n: the number
    of trials says nothing about the result.
    """
    if n < 1:
        raise ValueError(f"below() needs a positive bound, not {n}.")
    width = 64 * max(1, -(-(n - 1).bit_length() // 64))
    whole = (1 << width) // n * n
    while True:
        drawn = source.bits(width)
        if drawn < whole:
            break
    if isinstance(source, RecordingBits):
        source.made.append(Draw(heads=None, n=n, outcome=drawn % n))
    return drawn % n


def bernoulli(source: RandomBits, p: Fraction) -> bool:
    """Return True with probability p, a rational in [0, 1]."""
    if not 0 <= p <= 1:
        raise ValueError(f"A probability lies in [0, 1]; {p} does not.")
    return below(source, p.denominator) < p.numerator


def bernoulli_exp(source: RandomBits, x: Fraction) -> bool:
    """Return True with probability exp(-x), x >= 0: compare a uniform real bit by bit, as far as
    needed.
    """
    if x < 0:
        raise ValueError(f"exp(-x) is a probability for x >= 0; {x} is less.")
    return x == 0 or exact.less(
        source.bits(64), 64, lambda: source.bits(64), lambda bits: exact.exp_minus(x, bits)
    )


def permutation(source: RandomBits, n: int) -> list[int]:
    """Return a uniform ordering of 0 .. n - 1 (Fisher and Yates)."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        swapped = below(source, last + 1)
        order[last], order[swapped] = order[swapped], order[last]
    return order
