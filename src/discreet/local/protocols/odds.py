"""Coins as unfair as ε allows and no more: thresholds on 64-bit words. Standard library only.

Every encoder tosses coins of the form "64 random bits are below t", so its output distribution is
rational and known exactly, takes the same work whatever comes out, and is three lines in any
language. Rounding of t goes to the private side: a ratio is at most e^ε, and under it by less than
a relative 2^-64 * (1 + 1/p) * (1 + 1/(1-p)), which is 2^-50 for up to a thousand values and ε up to
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
"""Below this ε the rounding of a threshold could swallow all that a report tells."""


def threshold(epsilon: Fraction, *, odds: Fraction = Fraction(1)) -> int:
    """Return the largest t with t / (2^64 - t) <= odds * e^epsilon: how often the truth may be
    told.

    t <= 2^64 / (1 + e^-epsilon / odds). The upper end of the enclosure makes t smaller, if it makes
    a difference.
    """
    if epsilon < LEAST:
        raise UsageError(
            f"At epsilon {number(epsilon)} a report tells nothing that 64-bit coins could tell from nothing."
        )
    _, high = exact.exp_minus(epsilon, _BITS)
    scaled = odds.numerator << _BITS
    return min(WORD - 1, WORD * scaled // (scaled + high * odds.denominator))


def chance(t: int) -> Fraction:
    """Return the probability of a coin with threshold t."""
    return Fraction(t, WORD)


def epsilon_of(ratio: Fraction) -> Fraction:
    """Return ln(ratio), rounded up in the 64th binary place: the ε of a protocol declared by
    probabilities.
    """
    return Fraction(exact.log(ratio, 64)[1], WORD)


def e_to_minus(x: Fraction) -> Fraction:
    """Return e^-x to 2^-192, the same on every machine (a float is not); for choices that only move
    the error.
    """
    return Fraction(exact.exp_minus(x, _BITS)[0], 1 << _BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The probabilities that a report supports the true value (p), and any one other value (q < p).

    Most protocols here are "pure" [Wang, Blocki, Li, Jha 2017]: all a server needs is how many
    reports support each value. What follows from p and q is written here, once: variance, and the
    harm a liar can do.
    """

    p: Fraction
    q: Fraction

    def variance(self, *, n: int, frequency: Fraction) -> Fraction:
        """Return the variance of an estimated frequency among n respondents: over the coins, not
        over people.

        q (1 - q) / (n (p - q)^2) + f (1 - p - q) / (n (p - q)).
        """
        p, q = self.p, self.q
        return (q * (1 - q) / (p - q) + frequency * (1 - p - q)) / (n * (p - q))

    def poisoned(self, *, fakes: int, n: int) -> Fraction:
        """Return the most by which `fakes` made-up reports move an estimate from n reports in all.

        A report adds (1 - q) / (n (p - q)) to a value's estimate, or takes q / (n (p - q)) from it;
        an honest answer would have added 1 / n or nothing.
        """
        return Fraction(fakes, n) * max(1 - self.q, self.p) / (self.p - self.q)
