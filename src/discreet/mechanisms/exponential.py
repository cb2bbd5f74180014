"""Choose by score: permute-and-flip for `sum` budgets, the exponential mechanism for `zcdp`
budgets, and the best k (S7).

Scores are exact integers, and one person moves each of them by at most `linf`, under the relation
of neighbors for which the plan computed it. `monotone` says that a person moves all scores the same
way, as counts under add_remove; this halves the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss
from discreet.mechanisms import fields
from discreet.mechanisms.shapes import Integers, PersonRows, Scores
from discreet.noise import Items, Stream, noisy_max, noisy_top
from discreet.noise.choose_each import noisy_top_each


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialMechanism:
    """Choose candidate i with probability proportional to exp(score_i / scale): the largest of
    scores + Gumbel noise.

    Privacy
        epsilon-DP [McSherry, Talwar 2007] with scale = 2 linf / epsilon, or linf / epsilon if
        monotone. The log-ratio of two neighbors' masses is (score_i - score'_i) / scale + c with c
        the same for all i, so it stays within an interval of length epsilon that holds 0. Hence rho
        = epsilon^2 / 8 [Cesar, Rogers 2021]: K(a) = log E exp(a L) has K(0) = K(1) = 0 and K'' = a
        variance on that interval <= epsilon^2 / 4, so K(a) <= a (a - 1) epsilon^2 / 8.
    Error
        How far the score of the chosen one may be below the best: `margin`.
    """

    epsilon: Fraction
    linf: Fraction
    monotone: bool = False

    per_group: ClassVar[int] = 1
    slices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon", "linf")
        fields.flag("monotone", self.monotone)

    @property
    def scale(self) -> Fraction:
        return _scale(self.epsilon, self.linf, self.monotone)

    def hides(self, moved: PersonRows) -> bool:
        return self.hides_scores(moved.scores)

    def ranks(self, confidence: Fraction | float) -> None:
        return None

    def beside_ranks(self) -> dict[str, Any]:
        return {}

    def hides_scores(self, moved: Scores) -> bool:
        return moved.apart <= Scores(linf=self.linf, monotone=self.monotone).apart

    def loss(self) -> Loss:
        return Loss(epsilon=self.epsilon, rho=self.epsilon**2 / 8)

    def choose(self, scores: Integers, stream: Stream) -> int:
        return noisy_max(stream, scores, unit=1 / self.scale, kind="gumbel")

    def choose_each(self, scores: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Choose once for each item, from its row of scores."""
        return noisy_top_each(stream, items, scores, k=1, unit=1 / self.scale, kind="gumbel")[:, 0]

    def margin(self, confidence: Fraction | float, candidates: int) -> int:
        """Return the smallest t: the chosen score is at most t below the best with this
        probability.
        """
        return _shortfall(self.miss, confidence, candidates, self.scale)

    def miss(self, gap: int, candidates: int) -> float:
        """Return the probability of not choosing the best, when all the others are `gap` below it:
        the worst case.
        """
        weight = (candidates - 1) * math.exp(-gap / self.scale)
        return weight / (1 + weight)

    def log_mass(self, scores: Sequence[int]) -> NDArray[np.float64]:
        """Return the log-probability of choosing each."""
        below = _below_best(scores, self.scale)
        return below - math.log(math.fsum(np.exp(below)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip:
    """Choose the largest of scores + exponential noise of mean `scale` = 2 linf / epsilon (linf /
    epsilon if monotone).

    The same as permute-and-flip [McKenna, Sheldon 2020], whose number of coins depends on the
    scores, but with one draw a candidate [Ding et al. 2021]. In expectation never worse than
    `ExponentialMechanism` at the same epsilon, and up to twice as good.

    Privacy
        epsilon-DP. Fix the others' noise, so that i wins if its noise is at least t. On a neighbor
        that is at most t + 2 linf (t + linf if monotone), and P(E >= t + d) >= exp(-d / scale) P(E
        >= t) for all t, also t < 0. In zCDP no better than any pure mechanism, epsilon *
        tanh(epsilon / 2): docs/proofs/pure.md.
    Error
        How far the score of the chosen one may be below the best: `margin`.
    """

    epsilon: Fraction
    linf: Fraction
    monotone: bool = False

    per_group: ClassVar[int] = 1
    slices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon", "linf")
        fields.flag("monotone", self.monotone)

    @property
    def scale(self) -> Fraction:
        return _scale(self.epsilon, self.linf, self.monotone)

    def hides(self, moved: PersonRows) -> bool:
        return self.hides_scores(moved.scores)

    def ranks(self, confidence: Fraction | float) -> None:
        return None

    def beside_ranks(self) -> dict[str, Any]:
        return {}

    def hides_scores(self, moved: Scores) -> bool:
        return moved.apart <= Scores(linf=self.linf, monotone=self.monotone).apart

    def loss(self) -> Loss:
        return Loss(epsilon=self.epsilon, rho=pure_rho(epsilon=self.epsilon))

    def choose(self, scores: Integers, stream: Stream) -> int:
        return noisy_max(stream, scores, unit=1 / self.scale, kind="exponential")

    def choose_each(self, scores: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Choose once for each item, from its row of scores."""
        return noisy_top_each(stream, items, scores, k=1, unit=1 / self.scale, kind="exponential")[
            :, 0
        ]

    def margin(self, confidence: Fraction | float, candidates: int) -> int:
        """Return the smallest t: the chosen score is at most t below the best with this
        probability.
        """
        return _shortfall(self.miss, confidence, candidates, self.scale)

    def miss(self, gap: int, candidates: int) -> float:
        """Return the probability of not choosing the best, when all the others are `gap` below it:
        the worst case.

        The best is chosen with probability (1 - (1 - f)^n) / (n f), f = exp(-gap / scale).
        """
        f = math.exp(-gap / self.scale)
        if candidates * f < 1e-8:
            return (candidates - 1) * f / 2
        return 1 + (math.expm1(candidates * math.log1p(-f)) if f < 1 else -1) / (candidates * f)

    def log_mass(self, scores: Sequence[int]) -> NDArray[np.float64]:
        """Return the log-probability of each: f_i times the integral over [0, 1] of prod (1 - f_j
        t).

        That is of degree n - 1 in t, so that Gauss's rule with over n / 2 nodes integrates it
        exactly.
        """
        below = _below_best(scores, self.scale)
        f = np.exp(below)
        nodes, weights = np.polynomial.legendre.leggauss(len(f) // 2 + 1)
        t = (nodes + 1) / 2
        misses = np.log1p(-np.outer(f, t))
        others = np.exp(misses.sum(axis=0) - misses)
        log_mass: NDArray[np.float64] = below + np.log(others @ (weights / 2))
        return log_mass


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK:
    """Choose k candidates, the best first: the k largest of scores + Gumbel noise, drawn once.

    The same as k rounds of `ExponentialMechanism` at epsilon / k, each without those chosen
    [Durfee, Rogers 2019].

    Privacy
        epsilon-DP as the sum of the k rounds, and rho = k (epsilon / k)^2 / 8.
    """

    epsilon: Fraction
    linf: Fraction
    k: int
    monotone: bool = False

    slices: ClassVar[int] = 1

    def __post_init__(self) -> None:
        fields.whole("k", self.k)
        fields.rationals(self, "epsilon", "linf")
        fields.flag("monotone", self.monotone)

    @property
    def round(self) -> ExponentialMechanism:
        return ExponentialMechanism(
            epsilon=self.epsilon / self.k, linf=self.linf, monotone=self.monotone
        )

    @property
    def per_group(self) -> int:
        return self.k

    @property
    def scale(self) -> Fraction:
        return self.round.scale

    def hides(self, moved: PersonRows) -> bool:
        return self.round.hides(moved)

    def ranks(self, confidence: Fraction | float) -> None:
        return None

    def beside_ranks(self) -> dict[str, Any]:
        return {}

    def loss(self) -> Loss:
        return Loss(epsilon=self.epsilon, rho=self.epsilon**2 / (8 * self.k))

    def choose(self, scores: Integers, stream: Stream) -> list[int]:
        return noisy_top(stream, scores, k=self.k, unit=1 / self.round.scale, kind="gumbel")

    def choose_each(self, scores: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Return the k best of each item's row of scores, a row each."""
        return noisy_top_each(
            stream, items, scores, k=self.k, unit=1 / self.round.scale, kind="gumbel"
        )

    def log_mass(self, scores: Sequence[int], chosen: Sequence[int]) -> float:
        """Return the log-probability of choosing these, in this order."""
        left = list(range(len(scores)))
        total = 0.0
        for place in chosen:
            total += float(self.round.log_mass([scores[i] for i in left])[left.index(place)])
            left.remove(place)
        return total


def root_below(square: Fraction) -> Fraction:
    """Return a square root, rounded down to 30 bits or more: sqrt(8 rho) is never too large an
    epsilon.
    """
    shift = 2 * max(
        0, 30 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1
    )
    return Fraction(math.isqrt((square.numerator << shift) // square.denominator), 1 << shift // 2)


def _scale(epsilon: Fraction, linf: Fraction, monotone: bool) -> Fraction:
    return (linf if monotone else 2 * linf) / epsilon


def _below_best(scores: Sequence[int], scale: Fraction) -> NDArray[np.float64]:
    best = max(scores)
    return np.array([-float((best - int(score)) / scale) for score in scores])


def _shortfall(
    miss: Callable[[int, int], float],
    confidence: Fraction | float,
    candidates: int,
    scale: Fraction,
) -> int:
    """Return the smallest t at which missing by t + 1 or more is rare enough; it falls in t."""
    rare = 1 - float(fields.confidence(confidence))
    fields.whole("candidates", candidates)
    # Of n candidates, t / scale is log(n / rare) less at most 1, or so: nearly always found between
    # the two.
    high = max(1, math.ceil(float(scale) * math.log(max(2, candidates) / rare)))
    while miss(high, candidates) > rare:
        high *= 2
    low = max(0, high - math.ceil(scale))
    if miss(low, candidates) <= rare:
        low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if miss(middle, candidates) <= rare else (middle, high)
    return high - 1
