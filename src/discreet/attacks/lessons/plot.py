"""Success against ε: from where to where it is drawn, and as characters for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10

from discreet.attacks.experiment.finding import ceiling
from discreet.attacks.lessons.lesson import Lesson

CEILING = "no attack can do better: e^ε / (1 + e^ε)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """ε on a logarithmic axis, success on one from the bottom to 1."""

    low: float
    high: float
    bottom: float

    @classmethod
    def of(cls, lesson: Lesson) -> Scale:
        epsilons = [float(point.epsilon) for point in lesson.points]
        lowest = min([lesson.exact.chance, *(point.finding.interval[0] for point in lesson.points)])
        return cls(low=min(epsilons), high=max(epsilons), bottom=0.4 if lowest >= 0.4 else 0.0)

    def across(self, epsilon: float) -> float:
        return log10(epsilon / self.low) / log10(self.high / self.low)

    def up(self, share: float) -> float:
        return (max(share, self.bottom) - self.bottom) / (1 - self.bottom)

    def curve(self, steps: int) -> list[tuple[float, float]]:
        """Return the ceiling of S20 as (across, up)."""
        shares = [i / steps for i in range(steps + 1)]
        return [(x, self.up(ceiling(self.low * (self.high / self.low) ** x))) for x in shares]

    @property
    def ticks(self) -> list[float]:
        if self.bottom:
            return [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
        return [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def characters(lesson: Lesson, width: int = 60) -> list[list[tuple[str, str]]]:
    """Return rows of (character, kind): kind is point, ceiling, chance, exact or none; every second
    row is a tick.
    """
    scale = Scale.of(lesson)
    height = 2 * len(scale.ticks) - 1
    grid = [[(" ", "")] * width for _ in range(height)]

    def put(across: float, up: float, character: str, kind: str) -> None:
        grid[round((1 - up) * (height - 1))][round(across * (width - 1))] = (character, kind)

    for column in range(width):
        put(column / (width - 1), scale.up(lesson.exact.chance), "─", "chance")
        put(column / (width - 1), scale.up(lesson.exact.success), "╌", "exact")
    for across, up in scale.curve(2 * width) if lesson.bounded else ():
        put(across, up, "·", "ceiling")
    for point in lesson.points:
        put(scale.across(float(point.epsilon)), scale.up(point.finding.success), "●", "point")
    return grid
