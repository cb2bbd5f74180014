"""Coins that are as biased as ε allows: thresholds on 64-bit words. Standard library only.

Every encoder tosses coins of the form "64 random bits are below t". So the probabilities of its
reports are rational and known exactly, a toss takes the same work whatever it shows, and the code
is three lines in any language.

Privacy: t is rounded so that no ratio of probabilities is above e^ε. It is below by less than a
relative 2^-64 * (1 + 1/p) * (1 + 1/(1-p)), which is 2^-50 for up to a thousand values and ε up to
9.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import number
from discreet.errors import UsageError
from discreet.noise import exact
from discreet.noise.bits import WORD

_BITS = 192
LEAST = Fraction(1, 1 << 36)
"""The least ε. Below it, rounding the threshold could remove all information from a report."""


def threshold(epsilon: Fraction, *, odds: Fraction = Fraction(1)) -> int:
    """Return the largest t with t / (2^64 - t) <= odds * e^epsilon, the threshold of the coin for
    the truth.

    That is t <= 2^64 / (1 + e^-epsilon / odds). Use the upper end of the interval around
    e^-epsilon, which can only make t smaller.
    """
    if epsilon < LEAST:
        raise UsageError(
            f"At epsilon {number(epsilon)} a report tells nothing that 64-bit coins could tell from nothing."
        )
    _, high = exact.exp_minus(epsilon, _BITS)
    scaled = odds.numerator << _BITS
    return min(WORD - 1, WORD * scaled // (scaled + high * odds.denominator))


def chance(t: int) -> Fraction:
    """Return the probability that a coin with threshold t shows heads."""
    return Fraction(t, WORD)


def epsilon_of(ratio: Fraction) -> Fraction:
    """Return ln(ratio), rounded up to 64 binary places: the ε of a protocol whose probabilities are
    given.
    """
    return Fraction(exact.log(ratio, 64)[1], WORD)


def e_to_minus(x: Fraction) -> Fraction:
    """Return e^-x to 2^-192. Unlike a float, it is the same on every machine. Use it for choices
    that change only the error, not the privacy.
    """
    return Fraction(exact.exp_minus(x, _BITS)[0], 1 << _BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The probability p that a report supports the true value, and q < p that it supports a given
    other value.

    Most protocols here are "pure" [Wang, Blocki, Li, Jha 2017]: a server needs only the number of
    reports that support each value. Then p and q decide the variance of estimates, and how far
    made-up reports can move them.
    """

    p: Fraction
    q: Fraction

    def variance(self, *, n: int, frequency: Fraction) -> Fraction:
        """Return the variance of an estimated frequency among n respondents. It is over the coins;
        the respondents are fixed.

        q (1 - q) / (n (p - q)^2) + f (1 - p - q) / (n (p - q)).
        """
        p = self.p
        q = self.q
        return (q * (1 - q) / (p - q) + frequency * (1 - p - q)) / (n * (p - q))

    def poisoned(self, *, fakes: int, n: int) -> Fraction:
        """Return how far `fakes` made-up reports can move an estimate, if there are n reports in
        all.

        A report adds (1 - q) / (n (p - q)) to a value's estimate, or subtracts q / (n (p - q)). An
        honest answer would have added 1 / n or nothing.
        """
        return Fraction(fakes, n) * max(1 - self.q, self.p) / (self.p - self.q)
