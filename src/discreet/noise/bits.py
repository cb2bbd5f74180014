"""Draw uniform integers, coins and permutations from random bits: exact, one at a time, with the
standard library alone.

Use it in a respondent's encoder, and wherever a few draws are enough; `noise.coins` draws many at
once. Every call reads whole 64-bit words, in the order of the calls. So a program in another
language that reads the same words draws the same numbers.
"""

from __future__ import annotations

import os
from fractions import Fraction
from typing import NamedTuple, Protocol

from discreet.noise import exact

WORD = 1 << 64


class RandomBits(Protocol):
    """A source of uniform, independent random bits."""

    def bits(self, k: int) -> int: ...


class SystemBits:
    """The operating system's random bits.

    It has no state of its own, so a forked process or a copied machine never repeats bits.
    """

    __slots__ = ()

    def bits(self, k: int) -> int:
        return int.from_bytes(os.urandom((k + 7) // 8), "little") >> (-k % 8)


SYSTEM = SystemBits()


class Draw(NamedTuple):
    """The outcome of one draw: of a coin that shows heads (1) with probability `heads`, or, if that
    is None, of n equally likely numbers 0 .. n - 1.
    """

    heads: Fraction | None
    n: int
    outcome: int


class RecordingBits:
    """The system's random bits. It lists every draw in `made`, to show them to the respondent."""

    __slots__ = ("made",)

    def __init__(self) -> None:
        self.made: list[Draw] = []

    def bits(self, k: int) -> int:
        return SYSTEM.bits(k)


def coin(source: RandomBits, threshold: int) -> bool:
    """Return True with probability threshold / 2^64.

    It always reads one word and compares once, whatever the outcome.
    """
    heads = source.bits(64) < threshold
    if isinstance(source, RecordingBits):
        source.made.append(Draw(heads=Fraction(threshold, WORD), n=2, outcome=int(heads)))
    return heads


def below(source: RandomBits, n: int) -> int:
    """Return a uniform integer in [0, n).

    Read as many whole words as n needs, and take the number that they spell modulo n. Numbers past
    the last multiple of n would make some results likelier: read again instead. The number of
    trials says nothing about the result.
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
    """Return True with probability exp(-x), x >= 0.

    Compare a uniform real with exp(-x), and read more of its bits only while they decide.
    """
    if x < 0:
        raise ValueError(f"exp(-x) is a probability for x >= 0; {x} is less.")
    if x == 0:
        return True
    first = source.bits(64)
    return exact.less(first, 64, lambda: source.bits(64), lambda bits: exact.exp_minus(x, bits))


def permutation(source: RandomBits, n: int) -> list[int]:
    """Return a uniform ordering of 0 .. n - 1 (Fisher and Yates)."""
    order = list(range(n))
    for last in range(n - 1, 0, -1):
        swapped = below(source, last + 1)
        order[last], order[swapped] = order[swapped], order[last]
    return order
