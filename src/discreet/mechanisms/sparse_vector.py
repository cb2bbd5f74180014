"""Find which numbers of a stream reach a threshold. Only those that do cost something, however many
are tested (S7).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss
from discreet.errors import UsageError
from discreet.mechanisms import fields
from discreet.noise import Items, Stream, discrete_laplace

Integers = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold:
    """Answer for each number, in turn, whether number + N >= threshold + M; stop after `max_hits`
    answers of yes.

    This variant draws a geometric N (P(N >= n) = exp(-n / query_scale), n >= 0) for every number,
    and a geometric M with threshold_scale at the start and *anew after each yes*. It releases only
    yes or no, never a noisy number. One-sided noise is enough in place of Laplace noise, and has
    half its variance [Liu, Wang, Liu, Li, Chen 2024]. Each number may depend on all answers so far.
    One person moves each number by at most `linf`, and all in the same direction if `monotone`.

    Privacy
        From one yes to the next the cost is epsilon_1 = linf / threshold_scale + 2 linf /
        query_scale (without the 2 if monotone). So epsilon = max_hits * epsilon_1 and rho =
        max_hits * epsilon_1 tanh(epsilon_1 / 2). Proof: docs/proofs/above-threshold.md. The tests
        have variants for which this is false, as controls.
    Error
        See `margin`.
    """

    threshold_scale: Fraction
    query_scale: Fraction
    linf: int
    max_hits: int
    monotone: bool = False

    def __post_init__(self) -> None:
        fields.rationals(self, "threshold_scale", "query_scale")
        fields.whole("linf", self.linf)
        fields.whole("max_hits", self.max_hits)
        fields.flag("monotone", self.monotone)

    @classmethod
    def costing(
        cls, *, epsilon: Fraction, linf: int, max_hits: int, monotone: bool = False
    ) -> AboveThreshold:
        """Return the mechanism that costs this epsilon, split so that the variance of N - M is near
        its least.

        a = linf / threshold_scale and b = c linf / query_scale add up to epsilon / max_hits, c = 2
        (1 if monotone); the variance goes as 1 / a^2 + c^2 / b^2, which is least at b = c^(2/3) a:
        8 : 5, or 1 : 1.
        """
        fields.positive("epsilon", epsilon)
        fields.whole("max_hits", max_hits)
        a, b = (Fraction(1, 2), Fraction(1, 2)) if monotone else (Fraction(5, 13), Fraction(4, 13))
        unit = max_hits * linf / Fraction(epsilon)
        return cls(
            threshold_scale=unit / a,
            query_scale=unit / b,
            linf=linf,
            max_hits=max_hits,
            monotone=monotone,
        )

    @property
    def epsilon_each(self) -> Fraction:
        """Return the cost of one yes with all the noes before it."""
        moved = self.linf if self.monotone else 2 * self.linf
        return self.linf / self.threshold_scale + moved / self.query_scale

    def loss(self) -> Loss:
        each = self.epsilon_each
        return Loss(epsilon=self.max_hits * each, rho=self.max_hits * pure_rho(epsilon=each))

    def release(self, numbers: Iterable[int], stream: Stream, *, threshold: int) -> Iterator[bool]:
        """Yield yes or no for each number. Take the next number only after the answer was taken."""
        hits = 0
        one = Items.positions(1)
        for index, number in enumerate(numbers):
            hit = bool(
                self.above(
                    np.array([number]), stream, one, threshold=threshold, index=index, hits=hits
                )[0]
            )
            hits += hit
            yield hit
            if hits == self.max_hits:
                return

    def above(
        self,
        numbers: Integers,
        stream: Stream,
        items: Items,
        *,
        threshold: int,
        index: int,
        hits: int,
    ) -> NDArray[np.bool_]:
        """Answer number `index` of each of several runs, the items, with so many yes before it in
        each.
        """
        if hits >= self.max_hits:
            raise UsageError(f"After {self.max_hits} times yes there is nothing left to ask about.")
        # Privacy: a number is asked about once: `index` names its noise, `hits` the threshold's.
        raised = geometric(stream.derive("threshold", hits), items, self.threshold_scale)
        lifted = geometric(stream.derive("number", index), items, self.query_scale)
        above: NDArray[np.bool_] = numbers + lifted >= threshold + raised
        return above

    def margin(self, confidence: Fraction | float, *, numbers: int) -> int:
        """Return the smallest t for which, with this probability, all answers up to the first yes
        are right within t.

        That is: no number more than t above the threshold gets a no, and none more than t below it
        gets a yes.
        """
        wanted = float(fields.confidence(confidence))
        fields.whole("numbers", numbers)
        high = 1
        while self.coverage(high, numbers=numbers) < wanted:
            high *= 2
        low = -1 if high == 1 else high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (low, middle)
                if self.coverage(middle, numbers=numbers) >= wanted
                else (middle, high)
            )
        return high

    def coverage(self, t: int, *, numbers: int) -> float:
        """Return the probability that `margin` speaks of, at the worst numbers, rounded down.

        Summed over M; for large scales over blocks of M, each with the end that covers less.
        """
        scale = float(self.threshold_scale)
        width = max(1, int(self.threshold_scale) >> 12)
        start = np.arange(0, 45 * scale + width, width)
        weight = np.exp(-start / scale) * -math.expm1(-width / scale)
        low = -np.expm1(-(start + t + 1) / float(self.query_scale))
        high = np.exp(-np.maximum(0, start + width - 1 - t - 1) / float(self.query_scale))
        return float(
            min((weight * low**numbers).sum(), (weight * low ** (numbers - 1) * high).sum())
        )

    def log_mass(self, numbers: Sequence[int], answers: Sequence[bool], *, threshold: int) -> float:
        """Return the log-probability of these answers to these numbers; for small scales."""
        total = 0.0
        gaps = [threshold - number for number in numbers]
        m = np.arange(0, max(0, -min(gaps)) + 60 * math.ceil(self.threshold_scale) + 60)
        held = np.exp(-m / float(self.threshold_scale)) * -math.expm1(
            -1 / float(self.threshold_scale)
        )
        joint = held.copy()
        for gap, answer in zip(gaps, answers, strict=True):
            x = np.maximum(0, m + gap) / float(self.query_scale)
            joint *= np.exp(-x) if answer else -np.expm1(-x)
            if answer:
                total += math.log(joint.sum())
                joint = held.copy()
        return total + (math.log(joint.sum()) if joint.sum() > 0 else -math.inf)


def geometric(stream: Stream, items: Items, scale: Fraction) -> Integers:
    """Draw N with P(N >= n) = exp(-n / scale), n >= 0: fold one discrete Laplace draw, -1 onto 0,
    -2 onto 1, ...

    With r = exp(-1 / scale), Z = n and Z = -1 - n together have the mass (1 - r) / (1 + r) * (r^n +
    r^(n + 1)), and that is (1 - r) r^n.
    """
    z: Integers = discrete_laplace(stream, items, scale)
    return np.where(z < 0, -1 - z, z)
