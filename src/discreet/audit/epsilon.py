"""A lower bound on ε from runs alone: no more than the claim, if the claim is true, but for a
stated chance.

The event that tells two neighbors apart best is chosen on one half of the runs and judged on the
other, so choosing it costs no confidence. Both of its probabilities are bounded by Clopper and
Pearson's intervals: with confidence 1 - α, P(event | x) >= low and P(event | x') <= high, hence ε
>= log((low - δ) / high).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import epsilon_of
from discreet.budget import Loss
from discreet.errors import UsageError

Codes = NDArray[np.int64]

# the δ at which a ρ is told as an ε: small ones are beyond what runs can see
SEEN_AT = Fraction(1, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An event, how often it was seen on either neighbor among the runs that judge it, and the ε
    that this proves.
    """

    proved: float
    event: int  # how many different outcomes it has
    seen: tuple[int, int]
    judged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """A bound that runs proved, beside the claim; `sound` says that they do not contradict each
    other.
    """

    name: str
    parameters: dict[str, str]
    claimed: float
    delta: float
    bound: Bound
    runs: int
    confidence: float

    @property
    def proved(self) -> float:
        return self.bound.proved

    @property
    def sound(self) -> bool:
        return self.proved <= self.claimed

    def as_json(self) -> dict[str, object]:
        told = {
            "name": self.name,
            "claimed": self.claimed,
            "delta": self.delta,
            "proved": self.proved,
        }
        event = {"event_seen": list(self.bound.seen), "judged_on": self.bound.judged}
        return (
            told | event | {"runs": self.runs, "confidence": self.confidence, "sound": self.sound}
        )


def check(*, runs: int, confidence: float) -> None:
    if not 1_000 <= runs <= 10**8 or not 0.5 <= confidence < 1:
        raise UsageError(
            "An audit takes from 1,000 to 100,000,000 runs, and a confidence from 0.5 to below 1."
        )


def claim(loss: Loss) -> tuple[float, float]:
    """Return the ε and δ that a loss claims; a ρ is turned into ε at `SEEN_AT`."""
    if loss.epsilon is not None:
        return float(loss.epsilon), float(loss.delta)
    assert loss.rho is not None
    return float(epsilon_of(rho=loss.rho, delta=SEEN_AT)), float(SEEN_AT + loss.delta)


def finding(
    name: str,
    parameters: dict[str, str],
    outcomes: tuple[Codes, Codes],
    *,
    loss: Loss,
    confidence: float,
) -> AuditFinding:
    """Hold the outcomes of as many runs on each of two neighbors against a claim."""
    claimed, delta = claim(loss)
    return AuditFinding(
        name=name,
        parameters=parameters,
        claimed=claimed,
        delta=delta,
        bound=either_way(outcomes, delta=delta, confidence=confidence),
        runs=len(outcomes[0]),
        confidence=confidence,
    )


def either_way(outcomes: tuple[Codes, Codes], *, delta: float, confidence: float) -> Bound:
    """Return the better of the two directions, together at this confidence."""
    each = 1 - (1 - confidence) / 2
    both = [lower_bound(*pair, delta=delta, confidence=each) for pair in (outcomes, outcomes[::-1])]
    return max(both, key=lambda bound: bound.proved)


def lower_bound(first: Codes, second: Codes, *, delta: float, confidence: float) -> Bound:
    """Return the ε that outcomes on two neighbors prove, by an event likelier on the first."""
    half = len(first) // 2
    event = _best_event(first[:half], second[:half], delta=delta)
    rest = len(first) - half
    seen = (int(np.isin(first[half:], event).sum()), int(np.isin(second[half:], event).sum()))
    low, high = interval(seen, rest, alpha=1 - confidence)
    proved = max(0.0, math.log((low - delta) / high)) if low > delta else 0.0
    return Bound(proved=proved, event=len(event), seen=seen, judged=rest)


def interval(seen: tuple[int, int], runs: int, *, alpha: float) -> tuple[float, float]:
    """Return a lower bound on the first probability and an upper one on the second, together at 1 -
    alpha.
    """
    from scipy import stats

    low = float(stats.beta.ppf(alpha / 2, seen[0], runs - seen[0] + 1)) if seen[0] else 0.0
    high = (
        float(stats.beta.ppf(1 - alpha / 2, seen[1] + 1, runs - seen[1])) if seen[1] < runs else 1.0
    )
    return low, high


def count(first: Codes, second: Codes) -> tuple[Codes, Codes, Codes]:
    """Return the outcomes there are, and how often each was seen in either."""
    values = np.unique(np.concatenate([first, second]))
    a, b = (
        np.bincount(np.searchsorted(values, part), minlength=len(values))
        for part in (first, second)
    )
    return values, a, b


def _best_event(first: Codes, second: Codes, *, delta: float) -> Codes:
    """Return the outcomes whose ratio is above a cut: the cut at which the bound itself would be
    largest.
    """
    values, a, b = count(first, second)
    # An outcome's own ratio is taken with care: two standard deviations, so that rare ones do not
    # come first by chance.
    order = np.argsort(-np.maximum(0, a - 2 * np.sqrt(a)) / (b + 2 * np.sqrt(b) + 2), kind="stable")
    above = np.cumsum(a[order])
    below = np.cumsum(b[order])
    spread = 5.0  # standard deviations that the interval of the other half will cost, about
    sure = above - spread * np.sqrt(above) - delta * len(first)
    score = np.log(np.maximum(sure, 1e-9)) - np.log(below + spread * np.sqrt(below) + spread**2 / 2)
    return np.asarray(values[order[: int(np.argmax(score)) + 1]])
