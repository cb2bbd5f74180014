"""Which values a report supports, and what follows: estimate, variance, the harm a liar can do. Standard library only.

Most protocols here are "pure" [Wang, Blocki, Li, Jha 2017]: a report supports some of the values, the true one with
probability p and any other with probability q. All a server needs is how many reports support each value, and all it
computes from that is written here, once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.local.collector.estimate import Estimate, Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """The probabilities that a report supports the true value (p), and any one other value (q < p)."""

    p: Fraction
    q: Fraction

    def variance(self, *, n: int, frequency: Fraction) -> Fraction:
        """Of the estimate of a value that has this frequency among n respondents: over the coins, not over people.

        q (1 - q) / (n (p - q)^2) + f (1 - p - q) / (n (p - q)).
        """
        p, q = self.p, self.q
        return (q * (1 - q) / (p - q) + frequency * (1 - p - q)) / (n * (p - q))

    def poisoned(self, *, fakes: int, n: int) -> Fraction:
        """The most by which `fakes` reports, made up as one likes, move an estimate from n reports in all.

        A report adds (1 - q) / (n (p - q)) to a value's estimate, or takes q / (n (p - q)) from it; an honest answer
        would have added 1 / n or nothing.
        """
        return Fraction(fakes, n) * max(1 - self.q, self.p) / (self.p - self.q)


def frequency_variance(protocol: Any, *, n: int, frequency: object = 0) -> Fraction:
    """The variance of an estimated frequency, as a method of every pure protocol."""
    support: Support = protocol.support
    return support.variance(n=n, frequency=Fraction(str(frequency)))


def read_frequencies(protocol: Any, tally: Tally, *, confidence: float = 0.95) -> Estimate:
    """The frequency of every value among the respondents, with margins, as a method of every pure protocol."""
    from discreet.local.collector.estimate import frequencies

    return frequencies(protocol, tally, confidence=confidence)


def estimate(protocol: Any, reports: Any) -> Estimate:
    """What the reports tell, as a method of every protocol."""
    found: Estimate = protocol.read(protocol.tally(reports))
    return found
