"""A lower bound on ε from runs alone: no more than the claim, if the claim is true, but for a stated chance.

The event that tells two neighbors apart best is chosen on one half of the runs and judged on the other, so choosing it
costs no confidence. Both of its probabilities are bounded by Clopper and Pearson's intervals: with confidence 1 - α,
P(event | x) >= low and P(event | x') <= high, hence ε >= log((low - δ) / high).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import epsilon_of
from discreet.errors import UsageError
from discreet.mechanisms import Mechanism, to_row
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip
from discreet.noise import Items, Stream

Outcomes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What runs proved of a mechanism, beside what it claims; `sound` says that they do not contradict each other."""

    mechanism: str
    parameters: dict[str, str]
    claimed: float
    delta: float
    proved: float
    runs: int
    confidence: float

    @property
    def sound(self) -> bool:
        return self.proved <= self.claimed


def lower_bound(first: Outcomes, second: Outcomes, *, delta: float, confidence: float) -> float:
    """The ε that outcomes on two neighbors prove, at this confidence."""
    half = len(first) // 2
    event = _best_event(first[:half], second[:half])
    rest = len(first) - half
    counts = [int(np.isin(outcomes[half:], event).sum()) for outcomes in (first, second)]
    low, high = _interval(counts, rest, alpha=1 - confidence)
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def _interval(counts: list[int], runs: int, *, alpha: float) -> tuple[float, float]:
    """A lower bound on the first probability and an upper one on the second, together at 1 - alpha."""
    from scipy import stats

    low = float(stats.beta.ppf(alpha / 2, counts[0], runs - counts[0] + 1)) if counts[0] else 0.0
    high = float(stats.beta.ppf(1 - alpha / 2, counts[1] + 1, runs - counts[1])) if counts[1] < runs else 1.0
    return low, high


def _best_event(first: Outcomes, second: Outcomes) -> Outcomes:
    """The outcomes whose ratio is above a cut, for the cut at which the bound itself would be largest."""
    values = np.unique(np.concatenate([first, second]))
    a, b = (np.bincount(np.searchsorted(values, part), minlength=len(values)) for part in (first, second))
    order = np.argsort(-(a + 1) / (b + 1))
    above, below = np.cumsum(a[order]), np.cumsum(b[order])
    spread = 4.0  # standard deviations that the interval of the other half will cost, about
    score = np.log(np.maximum(above - spread * np.sqrt(above), 1)) - np.log(below + spread * np.sqrt(below) + spread)
    return np.asarray(values[order[: int(np.argmax(score)) + 1]])


# --- mechanisms by name -----------------------------------------------------------------------------------------------

Run = Callable[[Any, int, int], Outcomes]  # the mechanism, which of two neighbors, how many runs


def _added(mechanism: Any, neighbor: int, runs: int) -> Outcomes:
    step = mechanism.l1 if isinstance(mechanism, DiscreteLaplace) else math.isqrt(int(mechanism.l2_squared))
    values = np.full(runs, int(step) * neighbor)
    return np.asarray(mechanism.add_to(values, Stream.fresh(), Items.positions(runs)), dtype=np.int64)


def _chosen(mechanism: Any, neighbor: int, runs: int) -> Outcomes:
    scores = np.tile(np.array([0, 0, 0, int(mechanism.linf) * neighbor]), (runs, 1))
    if not mechanism.monotone:
        scores[:, :3] = int(mechanism.linf) * (1 - neighbor)
    return np.asarray(mechanism.choose_each(scores, Stream.fresh(), Items.positions(runs)), dtype=np.int64).reshape(-1)


_ONE = Fraction(1)
AUDITS: dict[str, tuple[Mechanism, Run]] = {
    "DiscreteLaplace": (DiscreteLaplace(scale=_ONE, l1=_ONE), _added),
    "DiscreteGaussian": (DiscreteGaussian(sigma=Fraction(2), l2_squared=_ONE), _added),
    "PermuteAndFlip": (PermuteAndFlip(epsilon=_ONE, linf=_ONE, monotone=False), _chosen),
    "ExponentialMechanism": (ExponentialMechanism(epsilon=_ONE, linf=_ONE, monotone=False), _chosen),
}


def audited(name: str, *, runs: int, confidence: float) -> Finding:
    """Run a mechanism on two neighbors, both ways around, and hold what that proves beside the claim."""
    if name not in AUDITS:
        raise UsageError(f"There is no audit of {name!r}. Mechanisms are {', '.join(AUDITS)}.")
    if not 1_000 <= runs <= 10**8 or not 0.5 <= confidence < 1:
        raise UsageError("An audit takes from 1,000 to 100,000,000 runs, and a confidence from 0.5 to below 1.")
    mechanism, run = AUDITS[name]
    claimed, delta = _claim(mechanism)
    outcomes = [run(mechanism, neighbor, runs) for neighbor in (0, 1)]
    each = 1 - (1 - confidence) / 2
    pairs = (outcomes, outcomes[::-1])
    proved = max(lower_bound(one, other, delta=delta, confidence=each) for one, other in pairs)
    row = {key: value for key, value in to_row(mechanism).items() if key != "mechanism"}
    return Finding(
        mechanism=name,
        parameters=row,
        claimed=claimed,
        delta=delta,
        proved=proved,
        runs=runs,
        confidence=confidence,
    )


def _claim(mechanism: Mechanism) -> tuple[float, float]:
    """The mechanism's ε and δ; where it has a ρ only, what that is at δ = 1e-6."""
    loss = mechanism.loss()
    if loss.epsilon is not None:
        return float(loss.epsilon), float(loss.delta)
    assert loss.rho is not None
    delta = Fraction(1, 10**6)
    return float(epsilon_of(rho=loss.rho, delta=delta)), float(delta)
