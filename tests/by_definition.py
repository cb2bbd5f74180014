"""Privacy by its definitions, from exact distributions, and what runs alone can prove about it.

A distribution is a dict from outcomes to log-probabilities; an outcome that is missing is
impossible.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Distribution = Mapping[Any, float]

FALSE_ALARM = 1e-9
ORDERS = (1, 1.01, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def product(*parts: Distribution) -> dict[Hashable, float]:
    """The joint distribution of independent ones."""
    joint: dict[Hashable, float] = {(): 0.0}
    for part in parts:
        joint = {(*left, right): p + q for left, p in joint.items() for right, q in part.items()}
    return joint


def _aligned(p: Distribution, q: Distribution) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    outcomes = sorted({*p, *q}, key=repr)
    return (
        np.array([p.get(outcome, -math.inf) for outcome in outcomes]),
        np.array([q.get(outcome, -math.inf) for outcome in outcomes]),
    )


def total(p: Distribution) -> float:
    return math.fsum(math.exp(log_mass) for log_mass in p.values())


def epsilon(p: Distribution, q: Distribution) -> float:
    """The largest log-ratio, either way."""
    logs = _aligned(p, q)
    both = ~(np.isneginf(logs[0]) & np.isneginf(logs[1]))
    return float(np.max(np.abs(logs[0][both] - logs[1][both])))


def delta(p: Distribution, q: Distribution, at: float) -> float:
    """The least δ with which p and q are (at, δ)-indistinguishable: the larger of the two
    hockey-stick divergences.
    """
    logs = _aligned(p, q)
    a, b = np.exp(logs[0]), np.exp(logs[1])
    return max(
        math.fsum(np.maximum(0, a - math.exp(at) * b)),
        math.fsum(np.maximum(0, b - math.exp(at) * a)),
    )


def rho(p: Distribution, q: Distribution, orders: Sequence[float] = ORDERS) -> float:
    """The largest Renyi divergence over its order, over many orders, either way."""
    logs = _aligned(p, q)
    return max(_renyi(x, y, order) / order for order in orders for x, y in (logs, logs[::-1]))


def _renyi(log_p: NDArray[np.float64], log_q: NDArray[np.float64], order: float) -> float:
    here = ~np.isneginf(log_p)
    if order == 1:
        return math.fsum(np.exp(log_p[here]) * (log_p[here] - log_q[here]))
    terms = order * log_p[here] + (1 - order) * log_q[here]
    top = terms.max()
    return float((top + math.log(math.fsum(np.exp(terms - top)))) / (order - 1))


def given(p: Distribution, event: Iterable[Hashable]) -> tuple[dict[Hashable, float], float]:
    """p given an event, and the probability of the event."""
    inside = {outcome: p[outcome] for outcome in event if outcome in p}
    probability = total(inside)
    return {
        outcome: log_mass - math.log(probability) for outcome, log_mass in inside.items()
    }, probability


def implausible(counts: Mapping[Hashable, int], p: Distribution) -> bool:
    """Whether these counts are refused as draws from p, wrongly with a probability under
    FALSE_ALARM.

    An exact binomial test of every outcome, and of all rare ones together, with Bonferroni's
    correction.
    """
    runs = sum(counts.values())
    if any(outcome not in p for outcome in counts):
        return True
    common = [outcome for outcome, log_mass in p.items() if math.exp(log_mass) * runs >= 1]
    seen = np.array([counts.get(outcome, 0) for outcome in common] + [0])
    mass = np.array([math.exp(p[outcome]) for outcome in common] + [0.0])
    seen[-1], mass[-1] = runs - seen.sum(), max(0.0, 1 - mass.sum())
    mass = np.clip(mass * (1 + 1e-12) + 1e-13, 0, 1)  # what float64 may be off by
    above = stats.binom.sf(seen - 1, runs, mass)
    below = stats.binom.cdf(seen, runs, np.clip(mass - 2e-12, 0, 1))
    return bool(np.minimum(above, below).min() * 2 * len(seen) < FALSE_ALARM)


def provable_epsilon(
    on_one: NDArray[np.int64], on_other: NDArray[np.int64], *, at_delta: float = 0.0
) -> float:
    """An ε that a mechanism exceeds, as runs on two neighbors prove; wrongly with a probability
    under FALSE_ALARM.

    Outcomes are codes. One fifth of the runs picks the event, a set of outcomes whose ratio is
    high; the rest bounds its two probabilities by Clopper and Pearson, and ε >= log((P(event) - δ)
    / P'(event)).
    """
    if max(on_one.max(), on_other.max()) > 1 << 20:
        codes = np.unique(np.concatenate([on_one, on_other]), return_inverse=True)[1]
        on_one, on_other = codes[: len(on_one)], codes[len(on_one) :]
    width = int(max(on_one.max(), on_other.max())) + 1
    best = 0.0
    for one, other in ((on_one, on_other), (on_other, on_one)):
        fifth = len(one) // 5
        learnt = [np.bincount(codes[:fifth], minlength=width) for codes in (one, other)]
        event = _event(*learnt, at_delta=at_delta * fifth)
        inside = [
            np.bincount(codes[fifth:], minlength=width)[event].sum() for codes in (one, other)
        ]
        left = len(one) - fifth
        low = stats.beta.ppf(FALSE_ALARM / 4, inside[0], left - inside[0] + 1) if inside[0] else 0.0
        high = stats.beta.ppf(1 - FALSE_ALARM / 4, inside[1] + 1, left - inside[1])
        best = max(best, math.log((low - at_delta) / high) if low > at_delta else 0.0)
    return best


def _event(
    one: NDArray[np.int64], other: NDArray[np.int64], *, at_delta: float
) -> NDArray[np.int64]:
    """Of the sets made of the outcomes with the highest ratios, the one whose worst-case ratio is
    best.
    """
    order = np.argsort(-np.maximum(0, one - 2 * np.sqrt(one)) / (other + 2 * np.sqrt(other) + 2))
    ones, others = one[order].cumsum(), other[order].cumsum()
    cautious = (ones - 6 * np.sqrt(ones) - at_delta) / (others + 6 * np.sqrt(others) + 18)
    chosen: NDArray[np.int64] = order[: int(np.argmax(cautious)) + 1]
    return chosen
