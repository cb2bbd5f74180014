"""The result of an attack: its success with an interval, and always beside it the success of
guessing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, sqrt
from statistics import NormalDist

from discreet.errors import UsageError

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The success of an attack: the share of `n` attempts, and `chance`, the share that guessing
    without the release would reach.
    """

    attack: str
    success: float
    chance: float
    interval: tuple[float, float]
    n: int

    def as_json(self) -> dict[str, object]:
        low, high = self.interval
        return {
            "attack": self.attack,
            "success": self.success,
            "chance": self.chance,
            "interval": [low, high],
            "n": self.n,
        }

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"success {percent(self.success)} of {self.n:,} (interval {percent(low)} to {percent(high)}); "
            f"chance {percent(self.chance)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """`hits` of `n`, with Wilson's interval, which is right near 0 and 1 and for small n too."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        return self.hits / self.n if self.n else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.hits, self.n)

    def finding(self, attack: str, *, chance: float) -> Finding:
        return Finding(
            attack=attack, success=self.value, chance=chance, interval=self.interval, n=self.n
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """How much more an attack succeeds on people in the data (a) than on others (c): (a - c) /
    (1 - c).

    Both rates are the centers of Wilson's intervals. The interval follows from their half-widths by
    propagation of errors. All numbers are clipped to [0, 1].
    """

    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, attack: Rate, control: Rate) -> Risk:
        a, da = _center(attack)
        c, dc = _center(control)
        value = (a - c) / (1 - c)
        half = sqrt((da / (1 - c)) ** 2 + (dc * (1 - a) / (1 - c) ** 2) ** 2)
        low, middle, high = (min(max(v, 0.0), 1.0) for v in (value - half, value, value + half))
        return cls(value=middle, interval=(low, high))


def wilson(hits: int, n: int, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Wilson's interval: all rates that are at most z of their own standard errors from
    hits / n.
    """
    if n == 0:
        return 0.0, 1.0
    center, half = _center(Rate(hits=hits, n=n), confidence=confidence)
    low = 0.0 if hits == 0 else max(center - half, 0.0)
    return low, 1.0 if hits == n else min(center + half, 1.0)


def _center(rate: Rate, *, confidence: float = CONFIDENCE) -> tuple[float, float]:
    if rate.n == 0:
        raise UsageError("An attack that was tried on nobody has no rate.")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = rate.hits * (rate.n - rate.hits) / rate.n
    center = (rate.hits + z * z / 2) / (rate.n + z * z)
    half = z / (rate.n + z * z) * sqrt(spread + z * z / 4)
    return center, half


def trials(width: float, *, rate: float = 0.5, confidence: float = CONFIDENCE) -> int:
    """Return how many attempts make an interval around a rate at most `width` wide."""
    if not 0 < width < 1:
        raise UsageError(f"The width of an interval lies between 0 and 1, not at {width}.")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return int((2 * z / width) ** 2 * max(rate * (1 - rate), 0.01)) + 1


def ceiling(epsilon: float, delta: float = 0.0) -> float:
    """Return the best success of any attack on one person's bit against (ε, δ)-DP, if both values
    are equally likely before (S20).
    """
    if epsilon > 700:
        return 1.0
    return min(1.0, (exp(epsilon) + delta) / (1 + exp(epsilon)))


def percent(share: float) -> str:
    """Write a share as percent, with more digits near the ends: 53 %, 5.3 %, 0.04 %, 99.7 %."""
    points = 100 * share
    near = min(abs(points), abs(100 - points))
    if near == 0 or near >= 10:
        return f"{points:.0f}\u00a0%"
    if near >= 0.1:
        return f"{points:.1f}\u00a0%"
    if near >= 0.01:
        return f"{points:.2f}\u00a0%"
    return f"{points:.1g}\u00a0%" if points < 50 else "over 99.99\u00a0%"
