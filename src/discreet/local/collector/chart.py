"""Estimates as people see them: bars with their margins, in a terminal and on a page of its own."""

from __future__ import annotations

import html
from collections.abc import Iterator
from math import ceil, floor, log10
from typing import Any

from discreet.budget import number

_MOST_BARS = 40
_WIDTH, _ROW, _LEFT, _RIGHT = 640, 22, 150, 140


def text(found: dict[str, Any], *, width: int = 30) -> Iterator[str]:
    """Lines for a terminal."""
    for key, question in found.items():
        yield f"{key}: {question['ask']}  (n = {question['n']:,}, ε = {number(question['epsilon'])})"
        if not question["n"]:
            yield "  no reports yet"
        elif question.get("statistic") == "mean":
            yield f"  mean {told(question['estimates'][0], question['margins'][0])}"
        else:
            yield from _bars(question, width)
        if question["n"]:
            yield f"  1 % of made-up reports could move a number here by {question['poisoned_by_1_percent']:.3g}"
        for sentence in question.get("suspicions", ()):
            yield f"  warning: {sentence}"
        yield ""


def _bars(question: dict[str, Any], width: int) -> Iterator[str]:
    shown = _shown(question)
    widest = max((len(value) for value, *_ in shown), default=0)
    for value, estimate, margin, share in shown:
        bar = "█" * round(width * min(max(share, 0), 1))
        yield f"  {value:<{widest}}  {told(estimate, margin, percent=True):>18}  {bar}"
    if len(shown) < len(question["values"]):
        yield f"  ... and {len(question['values']) - len(shown)} more"


def told(estimate: float, margin: float, *, percent: bool = False) -> str:
    """An estimate with its margin in three digits, rounded up by what the rounding of both can take from it."""
    scale, sign = (100, "%") if percent else (1, "")
    places = min(max(2 - floor(log10(max(margin * scale, 1e-9))), 0), 12)
    unit = 10.0**-places
    up = ceil(margin * scale / unit + 0.5 - 1e-9) * unit
    return f"{estimate * scale:.{places}f}{sign} ± {up:.{places}f}{sign}"


def _shown(question: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """All bars in their order, or of very many the largest, with values that can be shown."""
    from discreet.show import label

    values = question["values"]
    numbers = (question[name] for name in ("estimates", "margins", "consistent"))
    rows = list(zip(map(label, values), *numbers, strict=True))
    if len(rows) <= _MOST_BARS or all(isinstance(value, float) for value in values):
        return rows[:1024]
    return sorted(rows, key=lambda row: -row[3])[:_MOST_BARS]


def document(title: str, found: dict[str, Any]) -> str:
    """A page with a chart for each question; no script, nothing loaded."""
    from discreet.local.respondent.page import part

    charts = "\n".join(_figure(key, question) for key, question in found.items())
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{part("page.css")}</style></head>'
        f"<body><main><h1>{html.escape(title)}</h1><p>Estimated out of randomized reports. A bar is the most plausible "
        f"share, the line on it the 95 % interval of the unbiased estimate.</p>{charts}</main></body></html>"
    )


def _figure(key: str, question: dict[str, Any]) -> str:
    figures = f"n = {question['n']:,}, ε = {number(question['epsilon'])}"
    head = f"<h2>{html.escape(key)}</h2><p>{html.escape(question['ask'])} ({figures})</p>"
    if not question["n"]:
        return head + "<p>No reports yet.</p>"
    if question.get("statistic") == "mean":
        return head + f"<p>Mean <strong>{told(question['estimates'][0], question['margins'][0])}</strong></p>"
    rows = _shown(question)
    top = max([share for *_, share in rows] + [estimate + margin for _, estimate, margin, _ in rows] + [1e-9])
    scale = (_WIDTH - _LEFT - _RIGHT) / top
    marks = [_mark(place, row, scale) for place, row in enumerate(rows)]
    height = _ROW * len(rows) + 8
    title = html.escape(f"{key}: " + ", ".join(f"{value} {share:.1%}" for value, _, _, share in rows[:12]))
    return f'{head}<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{title}">{"".join(marks)}</svg>'


def _mark(place: int, row: tuple[str, float, float, float], scale: float) -> str:
    value, estimate, margin, share = row
    y = _ROW * place + 4
    middle = y + _ROW / 2 - 3
    low, high = (_LEFT + scale * min(max(end, 0), 2) for end in (estimate - margin, estimate + margin))
    return (
        f'<text x="{_LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end" font-size="13" fill="currentColor">'
        f"{html.escape(value)}</text>"
        f'<rect x="{_LEFT}" y="{y}" width="{scale * share:.1f}" height="{_ROW - 6}" fill="#2457a6" opacity=".75"/>'
        f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" stroke="currentColor" stroke-width="2"/>'
        f'<text x="{_WIDTH - _RIGHT + 8}" y="{middle + 4:.1f}" font-size="12" fill="currentColor">'
        f"{told(estimate, margin, percent=True)}</text>"
    )
