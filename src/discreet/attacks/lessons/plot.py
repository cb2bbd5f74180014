"""Success against ε: as an SVG for a page, as characters for a terminal. Drawn here; no script and no library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import log10

from discreet.attacks.experiment.finding import ceiling, percent
from discreet.attacks.lessons.lesson import Lesson

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 24, 56
CEILING = "No attack can do better: e^ε / (1 + e^ε)"


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
        """The ceiling of S20 as (across, up)."""
        shares = [i / steps for i in range(steps + 1)]
        return [(x, self.up(ceiling(self.low * (self.high / self.low) ** x))) for x in shares]

    def at(self, across: float, up: float) -> tuple[float, float]:
        """On the picture."""
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (1 - up) * (HEIGHT - TOP - BOTTOM)

    @property
    def ticks(self) -> list[float]:
        return [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0] if self.bottom else [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def svg(lesson: Lesson) -> str:
    scale = Scale.of(lesson)
    parts = [*_axes(lesson, scale)]
    parts += _line(scale, lesson.exact.success, "exact", "without noise")
    parts += _line(scale, lesson.exact.chance, "chance", "chance")
    if lesson.bounded:
        dots = " ".join(f"{x:.1f},{y:.1f}" for x, y in (scale.at(*place) for place in scale.curve(80)))
        parts.append(f'<polyline class="ceiling" points="{dots}"><title>{CEILING}</title></polyline>')
    for point in lesson.points:
        low, high = point.finding.interval
        across = scale.across(float(point.epsilon))
        x, y = scale.at(across, scale.up(point.finding.success))
        bottom, top = scale.at(across, scale.up(low))[1], scale.at(across, scale.up(high))[1]
        told = escape(f"ε = {float(point.epsilon):g}: {point.finding}")
        parts.append(f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" y2="{top:.1f}"/>')
        parts.append(f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="5"><title>{told}</title></circle>')
    label = escape(f"Success of the attack against ε: {lesson.measure}")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _axes(lesson: Lesson, scale: Scale) -> Iterator[str]:
    right, floor = WIDTH - RIGHT, HEIGHT - BOTTOM
    for share in scale.ticks:
        _, y = scale.at(0, scale.up(share))
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text("tick", LEFT - 10, y + 4, percent(share), "end")
    yield f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{floor}" y2="{floor}"/>'
    for point in lesson.points:
        x, _ = scale.at(scale.across(float(point.epsilon)), 0)
        yield _text("tick", x, floor + 20, f"{float(point.epsilon):g}", "middle")
    yield _text("name", (LEFT + right) / 2, HEIGHT - 10, "ε: the smaller, the more noise", "middle")


def _line(scale: Scale, share: float, kind: str, name: str) -> Iterator[str]:
    x, y = scale.at(1, scale.up(share))
    yield f'<line class="{kind}" x1="{LEFT}" x2="{x:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield _text(f"{kind}-name", x + 8, y + 4, f"{name} {percent(share)}", "start")


def _text(kind: str, x: float, y: float, text: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def characters(lesson: Lesson, width: int = 60) -> list[list[tuple[str, str]]]:
    """Rows of (character, kind), kind being point, ceiling, chance, exact or nothing; every second row is a tick."""
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
