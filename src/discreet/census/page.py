"""A publication as text for a terminal and as one web page without scripts."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.census.grid import Floats, Integers
from discreet.census.publication import Publication, totals_by_level

_SHOWN = 6  # places of a level
_DOTS = 1500
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 520, 260, 58, 34
_STYLE = """
:root { color-scheme: light dark; --ink: #22303a; --quiet: #66757f; --line: #1f6f9f; --rule: #c9d3d9; --other: #b5482f;
  --paper: #fdfdfc; }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe7ea; --quiet: #93a3ac; --line: #6fb7dd; --rule: #3a474f;
  --other: #e58a70; --paper: #14191c; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 1120px; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } p { margin: .4rem 0; }
.quiet { color: var(--quiet); } .wide { overflow-x: auto; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--quiet); } .rule { stroke: var(--rule); }
.line { fill: none; stroke: var(--line); stroke-width: 1.5; } .dot { fill: var(--line); fill-opacity: .45; }
.other { fill: none; stroke: var(--other); stroke-width: 1.5; } text.other { fill: var(--other); stroke: none; }
text.line { fill: var(--line); stroke: none; } .bar { fill: var(--line); fill-opacity: .25; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; } td, th { padding: .15rem .8rem .15rem 0;
  text-align: right; border-bottom: 1px solid var(--rule); font-weight: 400; } th { color: var(--quiet); }
td:first-child, th:first-child, td:nth-child(2), th:nth-child(2) { text-align: left; }
"""


def text(publication: Publication) -> str:
    """What a terminal shows: places, totals, errors of totals by size of place, and what it cost."""
    plan = publication.plan
    lines = [f"{plan.terms.name}: {int(publication.people.count.sum()):,} people, {', '.join(plan.names)}"]
    for level, largest in totals_by_level(publication, 3):
        size = plan.places.sizes[plan.places.levels.index(level)]
        said = ", ".join(f"{name} {count:,}" for name, count in largest)
        lines.append(f"  {level} ({size:,}): {said}{', ...' if size > len(largest) else ''}")
    lines.append("errors of a count, by size of place (mean, and what 95 % keep; from what was released):")
    for row in _by_place(publication):
        lines.append(
            f"  {row['level']} {row['table']}, places of {_class(row)}: {row['error']:.2f}, ± {row['margin']:.2f}, "
            f"bias {row['bias']:+.2f}"
        )
    cost = publication.certificate["cost"]
    paid = f"cost ε = {cost['epsilon']:.4g}" + ("" if cost["rho"] is None else f", ρ = {cost['rho']:.4g}")
    return "\n".join([*lines, paid, plan.promise])


def _by_place(publication: Publication) -> list[dict[str, Any]]:
    first = publication.plan.names[0]
    return [row for row in publication.margins.to_pylist() if row["of"] == "place" and row["table"] == first]


def _class(row: dict[str, Any]) -> str:
    low, high = row["from"], row["below"]
    if high is None:
        return f"{low:,} people or more"
    return f"{low:,} people" if high == low + 1 else f"{low:,} to {high - 1:,} people"


def page(publication: Publication) -> str:
    """The whole page."""
    plan = publication.plan
    cost = publication.certificate["cost"]
    paid = f"ε = {cost['epsilon']:.4g}" + ("" if cost["rho"] is None else f", ρ = {cost['rho']:.4g}")
    facts = (
        f"{int(publication.people.count.sum()):,} people in {plan.places.sizes[-1]:,} places of the finest level. "
        f"Tables: {', '.join(plan.names)}. One charge of {paid}. {plan.promise}"
    )
    figures = [_tree(publication), _errors(publication), *_against(publication)]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(plan.terms.name)}</title><style>{_STYLE}</style></head><body>"
        f'<h1>{html.escape(plan.terms.name)}</h1><p class="quiet">{html.escape(facts)}</p>'
        f'<div class="grid">{"".join(figures)}</div>{_bias(publication)}</body></html>\n'
    )


def _tree(publication: Publication) -> str:
    """The largest places of every level, as bars within their level."""
    rows, y = [], 14.0
    for level, largest in totals_by_level(publication, _SHOWN):
        number = publication.plan.places.sizes[publication.plan.places.levels.index(level)]
        rows.append(f'<text x="0" y="{y:.0f}" class="line">{html.escape(level)} ({number:,})</text>')
        most = max((count for _, count in largest), default=1) or 1
        for name, count in largest:
            y += 16
            wide = 300 * count / most
            rows.append(f'<rect class="bar" x="110" y="{y - 11:.0f}" width="{wide:.1f}" height="13"/>')
            rows.append(f'<text x="14" y="{y:.0f}">{html.escape(name)}</text>')
            rows.append(f'<text x="{116 + wide:.1f}" y="{y:.0f}">{count:,}</text>')
        y += 22
    body = f'<svg viewBox="0 0 {_WIDTH} {y:.0f}" role="img" aria-label="tree with totals">{"".join(rows)}</svg>'
    return f"<figure><figcaption>Totals, the largest places of each level</figcaption>{body}</figure>"


def _errors(publication: Publication) -> str:
    """Error of the first table against the size of a place, a line for each level."""
    rows = _by_place(publication)
    frame = _Frame(
        low=(0, 0.0), high=(math.log10(200_000), max([row["margin"] for row in rows] + [1.0]) * 1.1), across="people"
    )
    parts, names = [], list(dict.fromkeys(row["level"] for row in rows))
    for place, level in enumerate(names):
        here = [row for row in rows if row["level"] == level]
        points = [(math.log10(max(row["from"], 0.7) * 1.5), row["error"], row["margin"]) for row in here]
        shade = 0.35 + 0.65 * (place + 1) / len(names)
        for x, error, wide in points:
            parts.append(
                f'<path class="line" opacity="{shade:.2f}" d="M{frame.x(x):.1f} {frame.y(0):.1f}V{frame.y(wide):.1f}"/>'
            )
            parts.append(f'<circle class="dot" cx="{frame.x(x):.1f}" cy="{frame.y(error):.1f}" r="3"/>')
        x, _, wide = points[-1]
        parts.append(f'<text x="{frame.x(x) + 4:.1f}" y="{frame.y(wide):.1f}">{html.escape(level)}</text>')
    return _figure("Error of a count by size of place: dots are means, lines reach what 95 % keep", frame, parts)


def _against(publication: Publication) -> list[str]:
    """What was measured against the whole numbers, for the first table, at the two finest levels that were measured."""
    found: list[str] = []
    plan = publication.plan
    for level in range(len(plan.places.levels) - 1, -1, -1):
        if plan.noises[level][0] is None or len(found) == 2:
            continue
        noisy = publication.noisy[level, 0].ravel()
        whole = publication.counts(level, plan.grid.tables[0]).ravel()
        found.append(
            _scatter(f"Measured against published, {plan.names[0]} by {plan.places.levels[level]}", noisy, whole)
        )
    return found


def _scatter(title: str, noisy: Integers, whole: Integers) -> str:
    chosen = np.unique(np.linspace(0, len(noisy) - 1, min(len(noisy), _DOTS)).astype(np.int64))
    across, up = _bent(noisy[chosen]), _bent(whole[chosen])
    low, high = float(min(across.min(), 0)), float(max(across.max(), up.max(), 1))
    frame = _Frame(low=(low, min(0.0, float(up.min()))), high=(high, high), across="measured", bent=True)
    parts = [
        f'<path class="other" d="M{frame.x(0):.1f} {frame.y(0):.1f}L{frame.x(high):.1f} {frame.y(high):.1f}"/>',
        *(
            f'<circle class="dot" cx="{frame.x(x):.1f}" cy="{frame.y(y):.1f}" r="1.8"/>'
            for x, y in zip(across.tolist(), up.tolist(), strict=True)
        ),
    ]
    return _figure(title, frame, parts)


def _bent(values: Integers | Floats) -> Floats:
    """Logarithms of both signs: small numbers stay apart, large ones fit."""
    return np.asarray(np.sign(values) * np.log10(1 + np.abs(values)))


def _bias(publication: Publication) -> str:
    """The bias of counts by their size: what keeping numbers from falling below zero does to small ones."""
    rows = [row for row in publication.margins.to_pylist() if row["of"] == "cell"]
    finest = publication.plan.places.levels[-1]
    body = "".join(
        f"<tr><td>{html.escape(row['level'])}</td><td>{html.escape(row['table'])}</td><td>{_class(row)}</td>"
        f"<td>{row['number']:,}</td><td>{row['error']:.2f}</td><td>{row['margin']:.2f}</td><td>{row['bias']:+.3f}</td></tr>"
        for row in rows
        if row["level"] == finest or row["table"] == publication.plan.names[0]
    )
    head = "".join(f"<th>{name}</th>" for name in ("level", "table", "counts of", "cells", "error", "95 %", "bias"))
    said = (
        "No published number is below zero, so noise can only raise a count of nobody, and others must give: small "
        "counts come out too high, large ones too low. The measurements beside the tables have no such bias."
    )
    return (
        f'<h2>Bias of small and large counts</h2><p class="quiet">{said}</p>'
        f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
    )


def _figure(title: str, frame: _Frame, parts: Sequence[str]) -> str:
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{html.escape(title)}">'
        f"{frame.axes()}{''.join(parts)}</svg></figure>"
    )


class _Frame:
    """A plot's axes; across it is a logarithm of a number, and so it is upwards where both are `bent`."""

    def __init__(self, *, low: tuple[float, float], high: tuple[float, float], across: str, bent: bool = False) -> None:
        self._low, self._high, self._across, self._bent = low, high, across, bent

    def x(self, value: float) -> float:
        return _LEFT + (value - self._low[0]) / (self._high[0] - self._low[0]) * (_WIDTH - _LEFT - 40)

    def y(self, value: float) -> float:
        return 8 + (self._high[1] - value) / (self._high[1] - self._low[1]) * (_HEIGHT - 8 - _BOTTOM)

    def axes(self) -> str:
        marks = []
        for power in range(math.ceil(self._low[0]), math.floor(self._high[0]) + 1):
            label = f"{_number(power)}"
            marks.append(f'<text x="{self.x(power):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{label}</text>')
        ticks = range(math.ceil(self._low[1]), math.floor(self._high[1]) + 1) if self._bent else _ticks(self._high[1])
        for value in ticks:
            label = _number(int(value)) if self._bent else f"{value:g}"
            marks.append(f'<path class="rule" d="M{_LEFT} {self.y(value):.1f}H{_WIDTH - 40}"/>')
            marks.append(f'<text x="{_LEFT - 6}" y="{self.y(value) + 4:.1f}" text-anchor="end">{label}</text>')
        marks.append(f'<text x="{_WIDTH - 40}" y="{_HEIGHT - 4}" text-anchor="end">{self._across}</text>')
        return "".join(marks)


def _number(power: int) -> str:
    """The number whose bent logarithm this is, to the nearest power of ten."""
    return "0" if power == 0 else f"{'−' if power < 0 else ''}{10 ** abs(power):,}"


def _ticks(high: float) -> list[float]:
    unit = 10 ** math.floor(math.log10(high / 4))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= high / 4)
    return [step * at for at in range(math.floor(high / step) + 1)]
