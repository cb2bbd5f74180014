"""Lines with bands, points with error bars and upright columns, in a frame with two axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from discreet.pages.axis import Axis
from discreet.pages.bars import ticks_below
from discreet.pages.blocks import legend

SIDE = 1000
"""The width and height of a drawing in its own units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points (across, up) of a kind: line, dash, spot, speck or column.

    Bands and error bars go from `lows` to `highs`.
    """

    across: Sequence[float]
    up: Sequence[float]
    lows: Sequence[float] = ()
    highs: Sequence[float] = ()
    kind: str = "line"
    name: str = ""
    color: int = 0
    titles: Sequence[str] = ()


def plot(
    curves: Sequence[Curve], *, across: Axis, up: Axis, label: str, square: bool = False
) -> str:
    """Draw the curves over two axes, and what their colors mean where several have a name."""
    named = [each for each in curves if each.name]
    kinds = {"column": "fill", "dash": "line dash"}
    key = (
        [(each.name, each.color, kinds.get(each.kind, each.kind)) for each in named]
        if len(named) > 1
        else []
    )
    shapes = _rules(across, up) + "".join(_shape(each, across, up) for each in curves)
    widest = max((text for _, text in up.ticks), key=len, default="")
    marks = "".join(
        f'<span style="bottom: {100 * up.at(value):.2f}%">{escape(t)}</span>'
        for value, t in up.ticks
    )
    title = f'<div class="title">{escape(up.title)}</div>' if up.title else ""
    below = f'<div class="title across">{escape(across.title)}</div>' if across.title else ""
    return (
        f'{legend(key) if key else ""}<div class="plot">{title}<div class="up"><b>{escape(widest)}</b>{marks}</div>'
        f'<div class="area{" square" if square else ""}"><svg viewBox="0 0 {SIDE} {SIDE}" preserveAspectRatio="none" '
        f'role="img" aria-label="{escape(label)}">{shapes}</svg></div><div></div>'
        f"{ticks_below(across, at_edge=True)}{below}</div>"
    )


def _rules(across: Axis, up: Axis) -> str:
    lines = "".join(f"M0 {_y(up, value)}H{SIDE}" for value, _ in up.ticks)
    marks = "".join(f"M{_x(across, value)} {SIDE}v12" for value, _ in across.ticks)
    floor = max(up.low, 0.0) if up.low <= 0.0 <= up.high else up.low
    return (
        f'<path class="rule" d="{lines}"/><path class="zero" d="M0 {_y(up, floor)}H{SIDE}{marks}"/>'
    )


def _x(axis: Axis, value: float) -> str:
    return f"{SIDE * axis.at(value):.1f}"


def _y(axis: Axis, value: float) -> str:
    return f"{SIDE * (1 - axis.at(value)):.1f}"


def _shape(curve: Curve, across: Axis, up: Axis) -> str:
    draw = {"spot": _spots, "speck": _spots, "column": _columns}.get(curve.kind, _line)
    return f'<g class="c{curve.color}">{draw(curve, across, up)}</g>'


def _path(places: Sequence[float], values: Sequence[float], across: Axis, up: Axis) -> str:
    return "L".join(f"{_x(across, x)} {_y(up, y)}" for x, y in zip(places, values, strict=True))


def _line(curve: Curve, across: Axis, up: Axis) -> str:
    band = ""
    if curve.lows:
        back = _path(curve.across[::-1], curve.lows[::-1], across, up)
        band = f'<path class="band" d="M{_path(curve.across, curve.highs, across, up)}L{back}Z"/>'
    kind = "line dash" if curve.kind == "dash" else "line"
    return f'{band}<path class="{kind}" d="M{_path(curve.across, curve.up, across, up)}"/>'


def _spots(curve: Curve, across: Axis, up: Axis) -> str:
    parts = []
    for place, (x, y) in enumerate(zip(curve.across, curve.up, strict=True)):
        title = f"<title>{escape(curve.titles[place])}</title>" if curve.titles else ""
        reach = ""
        if curve.lows:
            low = _y(up, curve.lows[place])
            high = _y(up, curve.highs[place])
            reach = f'<path class="line reach" d="M{_x(across, x)} {low}V{high}"/>'
        parts.append(
            f'{reach}<path class="{curve.kind}" d="M{_x(across, x)} {_y(up, y)}h.01">{title}</path>'
        )
    return "".join(parts)


def _columns(curve: Curve, across: Axis, up: Axis) -> str:
    """Draw upright bars between neighboring places; `across` has one place more than there are
    bars.
    """
    parts = []
    floor = SIDE * (1 - up.at(0.0))
    for place, value in enumerate(curve.up):
        left, right = (SIDE * across.at(curve.across[place + end]) for end in (0, 1))
        top = SIDE * (1 - up.at(value))
        title = f"<title>{escape(curve.titles[place])}</title>" if curve.titles else ""
        gap = (right - left) * 0.06
        parts.append(
            f'<rect class="fill" x="{left + gap:.1f}" y="{min(top, floor):.1f}" width="{right - left - 2 * gap:.1f}" '
            f'height="{abs(floor - top):.1f}">{title}</rect>'
        )
        if curve.lows:
            middle = (left + right) / 2
            low = _y(up, curve.lows[place])
            high = _y(up, curve.highs[place])
            parts.append(f'<path class="error" d="M{middle:.1f} {low}V{high}"/>')
    return "".join(parts)
