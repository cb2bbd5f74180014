"""Methods that pure protocols share: their variance and their estimates follow from `support`.
Standard library only.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.local.protocols.odds import Support

if TYPE_CHECKING:
    from discreet.local.collector.estimate import Estimate, Tally


def frequency_variance(protocol: Any, *, n: int, frequency: object = 0) -> Fraction:
    """Return the variance of an estimated frequency, as a method of every pure protocol."""
    support: Support = protocol.support
    return support.variance(n=n, frequency=Fraction(str(frequency)))


def read_frequencies(protocol: Any, tally: Tally, *, confidence: float = 0.95) -> Estimate:
    """Estimate the frequency of every value, with margins, as a method of every pure protocol."""
    from discreet.local.collector.estimate import frequencies

    return frequencies(protocol, tally, confidence=confidence)


def estimate(protocol: Any, reports: Any) -> Estimate:
    """Estimate from reports, as a method of every protocol."""
    result: Estimate = protocol.read(protocol.tally(reports))
    return result
