"""Show estimates as bars with margins, in a terminal and on an HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10
from typing import Any

from discreet.budget import number
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars

_MOST_BARS = 40


def text(found: dict[str, Any], *, width: int = 30) -> Iterator[str]:
    """Yield lines for a terminal."""
    for key, question in found.items():
        yield f"{key}: {question['ask']}  (n = {question['n']:,}, ε = {number(question['epsilon'])})"
        if not question["n"]:
            yield "  no reports yet"
        elif question.get("statistic") == "mean":
            yield f"  mean {with_margin(question['estimates'][0], question['margins'][0])}"
        else:
            yield from _bars(question, width)
        if question["n"]:
            yield f"  1 % of made-up reports could move a number here by {question['poisoned_by_1_percent']:.3g}"
        for sentence in question.get("suspicions", ()):
            yield f"  warning: {sentence}"
        yield ""


def _bars(question: dict[str, Any], width: int) -> Iterator[str]:
    shown = _show(question)
    widest = max((len(value) for value, *_ in shown), default=0)
    for value, estimate, margin, share in shown:
        bar = "█" * round(width * min(max(share, 0), 1))
        yield f"  {value:<{widest}}  {with_margin(estimate, margin, percent=True):>18}  {bar}"
    if len(shown) < len(question["values"]):
        yield f"  ... and {len(question['values']) - len(shown)} more"


def with_margin(estimate: float, margin: float, *, percent: bool = False) -> str:
    """Write an estimate and its margin, which has three digits. The margin is rounded up so far
    that it covers the rounding of both.
    """
    scale, sign = (100, "%") if percent else (1, "")
    places = min(max(2 - floor(log10(max(margin * scale, 1e-9))), 0), 12)
    unit = 10.0**-places
    up = ceil(margin * scale / unit + 0.5 - 1e-9) * unit
    return f"{estimate * scale:.{places}f}{sign} ± {up:.{places}f}{sign}"


def _show(question: dict[str, Any]) -> list[tuple[str, float, float, float]]:
    """Return (value, estimate, margin, share) of all bars in their order, or of the largest if they
    are very many.
    """
    from discreet.display.show import label

    values = question["values"]
    numbers = (question[name] for name in ("estimates", "margins", "consistent"))
    rows = list(zip(map(label, values), *numbers, strict=True))
    if len(rows) <= _MOST_BARS or all(isinstance(value, float) for value in values):
        return rows[:1024]
    return sorted(rows, key=lambda row: -row[3])[:_MOST_BARS]


def document(title: str, found: dict[str, Any]) -> str:
    """Write a page with a chart for each question. It has no script and loads nothing."""
    words = (
        "Estimates, made of randomized reports. A bar is the most plausible share; the line on it, and the number "
        "beside it, are the unbiased estimate with its 95 % interval."
    )
    charts = [part for key, question in found.items() for part in _figure(key, question)]
    return blocks.page(
        title, [blocks.paragraph(words, kind="soft"), *charts], subtitle="What respondents answered"
    )


def _figure(key: str, question: dict[str, Any]) -> list[str]:
    note = f"{question['n']:,} reports, ε = {number(question['epsilon'])}"
    head = [blocks.heading(key), blocks.paragraph(question["ask"])]
    if not question["n"]:
        return [*head, blocks.paragraph("No reports yet.")]
    if question.get("statistic") == "mean":
        mean = with_margin(question["estimates"][0], question["margins"][0])
        return [*head, blocks.cards([(mean, f"mean; {note}")])]
    rows = _show(question)
    series = Series(
        values=[share for *_, share in rows],
        ranges=[(estimate - margin, estimate + margin) for _, estimate, margin, _ in rows],
        texts=[with_margin(estimate, margin, percent=True) for _, estimate, margin, _ in rows],
    )
    top = max(
        [share for *_, share in rows]
        + [estimate + margin for _, estimate, margin, _ in rows]
        + [1e-9]
    )
    scale = axis.numbers(0.0, min(top, 1.0), title="share of respondents", percent=True)
    chart = bars([value for value, *_ in rows], [series], axis=scale, label=question["ask"])
    return [*head, blocks.figure("", chart, note=note)]
