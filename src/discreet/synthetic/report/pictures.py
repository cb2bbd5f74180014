"""Pictures and pages as text: SVG and HTML that load nothing and run nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from discreet.budget import with_margin

Floats = NDArray[np.float64]

INK, BLUE, ORANGE, PALE = "#1d2733", "#31688e", "#d9822b", "#e9eef3"
_STYLE = f"""
:root {{ color-scheme: light; }}
body {{ font: 15px/1.55 system-ui, "Segoe UI", sans-serif; color: {INK}; background: #f6f8fa; margin: 0; }}
main {{ max-width: 66rem; margin: 0 auto; padding: 2.2rem 1.5rem 4rem; }}
header {{ border-bottom: 3px solid {BLUE}; padding-bottom: .8rem; margin-bottom: 1.4rem; }}
h1 {{ font-size: 1.75rem; line-height: 1.2; margin: 0; }} h2 {{ font-size: 1.2rem; margin: 2.6rem 0 .3rem; }}
.note, figcaption span {{ color: #5a6675; font-weight: 400; }} .note {{ margin: .2rem 0 .9rem; max-width: 50rem; }}
.cards {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }}
.card, figure {{ background: #fff; border: 1px solid #dde4ea; border-radius: .5rem; padding: .8rem 1rem; margin: 0; }}
.card {{ color: #5a6675; }} .card b {{ display: block; font-size: 1.45rem; line-height: 1.3; color: {INK}; }}
.grid {{ display: grid; grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); gap: .9rem; }}
.two {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr)); gap: .9rem; }}
.two > *, .grid > * {{ min-width: 0; }}
figcaption {{ font-weight: 600; margin-bottom: .3rem; }} svg {{ display: block; width: 100%; height: auto; }}
svg text {{ font: 11px system-ui, sans-serif; fill: #44505c; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; background: #fff; width: 100%; }}
th, td {{ padding: .3rem .8rem; text-align: left; border-bottom: 1px solid #e6ebf0; }} .n {{ text-align: right; }}
.warning {{ background: #fff3d6; border-left: 4px solid {ORANGE}; padding: .6rem 1rem; border-radius: .3rem; }}
.secret {{ background: #b3261e; color: #fff; padding: .8rem 1.5rem; font-weight: 700; letter-spacing: .04em; }}
@media (max-width: 40rem) {{ main {{ padding: 1.2rem .8rem; }}
  th, td {{ padding: .3rem .4rem; overflow-wrap: anywhere; }} }}
@media print {{ body {{ background: #fff; }} figure, .card, tr {{ break-inside: avoid; }} }}
"""


def page(title: str, subtitle: str, parts: Iterable[str], *, banner: str = "") -> str:
    """One HTML page."""
    above = f'<div class="secret">{escape(banner)}</div>' if banner else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(banner + ": " if banner else "")}{escape(title)}</title><style>{_STYLE}</style></head><body>{above}<main>
<header><h1>{escape(title)}</h1><div class="note">{escape(subtitle)}</div></header>
{"".join(parts)}
</main></body></html>
"""


def cards(facts: Sequence[tuple[str, str]]) -> str:
    """The few numbers that everybody should see first."""
    found = "".join(f'<div class="card"><b>{escape(value)}</b>{escape(name)}</div>' for value, name in facts)
    return f'<div class="cards">{found}</div>'


def heading(text: str, note: str = "") -> str:
    return f"<h2>{escape(text)}</h2>" + (f'<p class="note">{escape(note)}</p>' if note else "")


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; what looks like a number stands to the right."""
    lines = [list(row) for row in rows]
    right = [bool(lines) and all(_is_number(row[place]) for row in lines) for place in range(len(names))]
    sides = [' class="n"' if each else "" for each in right]
    head = "".join(f"<th{side}>{escape(name)}</th>" for name, side in zip(names, sides, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{escape(cell)}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in lines
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text[:1] in "–-−"


def figure(title: str, note: str, picture: str) -> str:
    return f"<figure><figcaption>{escape(title)} <span>{escape(note)}</span></figcaption>{picture}</figure>"


def histogram(heights: Floats, errors: Floats, labels: Sequence[str], *, ends: tuple[str, str]) -> str:
    """Upright bars with error bars; what stands left and right is written below."""
    top, width = float((heights + errors).max()) or 1.0, 300 / len(heights)
    parts = []
    for place, (height, error, label) in enumerate(zip(heights, errors, labels, strict=True)):
        x, y, reach = place * width, 100 * (1 - height / top), 100 * error / top
        parts.append(
            f'<rect x="{x + width * 0.06:.1f}" y="{y:.1f}" width="{width * 0.88:.1f}" height="{100 - y:.1f}" '
            f'fill="{BLUE}"><title>{escape(label)}: {height:,.0f}, off by about {error:,.0f}</title></rect>'
            + _whisker(x + width / 2, max(0.0, y - reach), x + width / 2, min(100.0, y + reach))
        )
    below = (
        f'<line x1="0" x2="300" y1="100" y2="100" stroke="{INK}" stroke-width=".6"/>'
        f'<text x="0" y="114">{escape(_cut(ends[0], 24))}</text>'
        f'<text x="300" y="114" text-anchor="end">{escape(_cut(ends[1], 24))}</text>'
    )
    return f'<svg viewBox="0 0 300 118">{"".join(parts)}{below}</svg>'


def bars(heights: Floats, errors: Floats, labels: Sequence[str]) -> str:
    """Lying bars, each with its name and its share."""
    top, total, side = float((heights + errors).max()) or 1.0, float(heights.sum()) or 1.0, 17
    left = _room(labels, most=18)
    long = 248 - left  # what is right of it are the shares
    parts = []
    for place, (height, error, label) in enumerate(zip(heights, errors, labels, strict=True)):
        y, length, reach = place * side, long * height / top, long * error / top
        parts.append(
            f'<text x="{left - 6}" y="{y + 12}" text-anchor="end">{escape(_cut(label, 18))}</text>'
            f'<rect x="{left}" y="{y + 2}" width="{length:.1f}" height="{side - 4}" fill="{BLUE}">'
            f"<title>{escape(label)}: {height:,.0f}, off by about {error:,.0f}</title></rect>"
            + _whisker(left + max(0.0, length - reach), y + side / 2, left + length + reach, y + side / 2)
            + f'<text x="298" y="{y + 12}" text-anchor="end">{100 * height / total:.1f}&#8239;%</text>'
        )
    return f'<svg viewBox="0 0 300 {len(heights) * side}">{"".join(parts)}</svg>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """A cell of a heat map: the places of two columns, a value from 0 to 1, and whether it is hatched."""

    row: int
    column: int
    value: float
    doubtful: bool = False


def heat(names: Sequence[str], squares: Iterable[Square], *, full: float) -> str:
    """A map of all pairs; the darkest stands for `full` or more."""
    side, left, top = 20, 108, 92
    parts = [
        f'<text x="{left - 6}" y="{top + row * side + 14}" text-anchor="end">{escape(_cut(name, 16))}</text>'
        f'<text transform="translate({left + row * side + 14} {top - 6}) rotate(-55)">{escape(_cut(name, 16))}</text>'
        for row, name in enumerate(names)
    ]
    for each in squares:
        title = f"{names[each.row]} × {names[each.column]}: {each.value:.3f}"
        for x, y in ((each.row, each.column), (each.column, each.row)):
            dot = f'<circle cx="{left + x * side + 9.5}" cy="{top + y * side + 9.5}" r="2" fill="{ORANGE}"/>'
            parts.append(
                f'<rect x="{left + x * side}" y="{top + y * side}" width="{side - 1}" height="{side - 1}" rx="2" '
                f'fill="{_shade(each.value / full)}"><title>{escape(title)}</title></rect>'
                + (dot if each.doubtful else "")
            )
    bottom = top + len(names) * side + 12
    scale = "".join(
        f'<rect x="{left + step * 12}" y="{bottom}" width="12" height="9" fill="{_shade(step / 9)}"/>'
        for step in range(10)
    )
    scale += (
        f'<text x="{left - 6}" y="{bottom + 9}" text-anchor="end">0</text>'
        f'<text x="{left + 126}" y="{bottom + 9}">{full:g} or more</text>'
    )
    return f'<svg viewBox="0 0 {left + len(names) * side + 62} {bottom + 16}">{"".join(parts)}{scale}</svg>'


def dots(entries: Sequence[tuple[str, float, float]], *, full: float) -> str:
    """Named values from 0 to `full` with their margins."""
    side, left = 18, _room([name for name, _, _ in entries], most=32)
    long = 470 - left
    parts = [
        f'<line x1="{x}" x2="{x}" y1="0" y2="{len(entries) * side}" stroke="{PALE}"/>'
        f'<text x="{x}" y="{len(entries) * side + 13}" text-anchor="middle">{full * step / 4:.2g}</text>'
        for step, x in ((step, left + long * step / 4) for step in range(5))
    ]
    for place, (name, value, margin) in enumerate(entries):
        y, x, reach = place * side + 9, left + long * min(value / full, 1.0), long * margin / full
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{escape(_cut(name, 32))}</text>'
            + _whisker(max(left, x - reach), y, min(490.0, x + reach), y)
            + f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="{BLUE}"><title>{escape(name)}: {with_margin(value, margin)}'
            "</title></circle>"
        )
    return f'<svg viewBox="0 0 500 {len(entries) * side + 18}">{"".join(parts)}</svg>'


def scatter(entries: Sequence[tuple[str, float, float, float]]) -> str:
    """Correlations: true (with a margin) from left to right, synthetic upwards; what agrees lies on the line."""
    largest = max(max(abs(true), abs(synthetic)) for _, true, synthetic, _ in entries)
    full = next((end for end in (0.25, 0.5) if largest <= end), 1.0)
    scale = 130 / full
    parts = [
        f'<line x1="30" y1="290" x2="290" y2="30" stroke="{ORANGE}" stroke-dasharray="4 3"/>'
        f'<line x1="160" x2="160" y1="30" y2="290" stroke="{PALE}"/><line x1="30" x2="290" y1="160" y2="160" '
        f'stroke="{PALE}"/><text x="290" y="308" text-anchor="end">true: −{full:g} to {full:g}</text>'
        f'<text x="30" y="22">synthetic: −{full:g} to {full:g}</text>'
    ]
    for name, true, synthetic, margin in entries:
        x, y, reach = 160 + scale * true, 160 - scale * synthetic, scale * margin
        parts.append(
            _whisker(max(30.0, x - reach), y, min(290.0, x + reach), y)
            + f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{BLUE}"><title>{escape(name)}: true '
            f"{with_margin(true, margin)}, synthetic {synthetic:.2f}</title></circle>"
        )
    return f'<svg viewBox="0 0 320 316" style="max-width: 26rem">{"".join(parts)}</svg>'


def _whisker(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{INK}" stroke-width="1.1"/>'


def _shade(share: float) -> str:
    """From nearly white to dark blue."""
    part = min(1.0, max(0.0, share)) ** 0.6
    light, dark = (238, 243, 247), (24, 60, 96)
    return "#" + "".join(f"{round(a + (b - a) * part):02x}" for a, b in zip(light, dark, strict=True))


def _room(labels: Sequence[str], *, most: int) -> float:
    """How far to the right pictures begin, so that their labels stand to the left of them."""
    return 14 + 6.2 * min(most, max(map(len, labels)))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
