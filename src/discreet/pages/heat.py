"""A map of all pairs of names: the stronger the color, the larger the value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A pair: the places of two names, a value from 0 to `full`, and whether it is marked by a dot."""

    row: int
    column: int
    value: float
    marked: bool = False


def heat(names: Sequence[str], squares: Iterable[Square], *, full: float, label: str) -> str:
    """Every pair twice, as the map is the same on both sides of its diagonal."""
    many, parts = len(names), []
    for each in squares:
        title = f"<title>{escape(f'{names[each.row]} × {names[each.column]}: {each.value:.3f}')}</title>"
        for x, y in ((each.row, each.column), (each.column, each.row)):
            parts.append(
                f'<rect class="fill" fill-opacity="{_strength(each.value / full):.2f}" x="{10 * x + 0.3:.1f}" '
                f'y="{10 * y + 0.3:.1f}" width="9.4" height="9.4">{title}</rect>'
            )
            if each.marked:
                parts.append(f'<circle class="fill c1" cx="{10 * x + 5}" cy="{10 * y + 5}" r="1.1"/>')
    left = "".join(f"<span>{escape(name)}</span>" for name in names)
    return (
        f'<div class="heat c0" style="--many: {many}"><div></div><div class="top">{left}</div><div class="left">{left}'
        f'</div><div class="squares"><svg viewBox="0 0 {10 * many} {10 * many}" role="img" '
        f'aria-label="{escape(label)}">{"".join(parts)}</svg></div></div>{_scale(full)}'
    )


def _strength(share: float) -> float:
    """From hardly visible to full; small values are spread apart."""
    return float(0.06 + 0.94 * min(1.0, max(0.0, share)) ** 0.6)


def _scale(full: float) -> str:
    steps = "".join(
        f'<rect class="fill" fill-opacity="{_strength(step / 9):.2f}" x="{10 * step}" width="10" height="10"/>'
        for step in range(10)
    )
    return (
        '<div class="legend c0" style="margin-top: .6em"><span>0</span><span style="width: 10em; height: 1em">'
        f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{steps}</svg></span>'
        f"<span>{full:g} or more</span></div>"
    )
