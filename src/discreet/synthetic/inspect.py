"""What a person needs to see before publishing: columns, pairs, expected errors, cost. From the description alone."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from itertools import combinations
from typing import Any

import numpy as np

from discreet.synthetic.description import Description
from discreet.synthetic.errors import cell_errors, counted, expected_error

Progress = Callable[[str, float], None] | None

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #1d2733; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { margin-top: 2.2rem; font-size: 1.15rem; }
.note { color: #5a6675; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .7rem .15rem 0; text-align: left; } td.n, th.n { text-align: right; }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(18rem, 1fr)); gap: 1.2rem; }
figure { margin: 0; } figcaption { font-weight: 600; } figcaption span { font-weight: 400; color: #5a6675; }
svg { width: 100%; height: auto; } .warning { background: #fff3d6; padding: .6rem 1rem; border-radius: .4rem; }
"""


def as_json(description: Description, *, progress: Progress = None) -> dict[str, Any]:
    """The figures of the report."""
    axes = description.axes
    pairs = []
    every = list(combinations(range(len(axes)), 2))
    for number, pair in enumerate(every):
        if progress is not None:
            progress("pairs", number / len(every))
        pairs.append(
            {
                "columns": [axes[column].name for column in pair],
                "association": _association(description, pair),
                "expected_error": expected_error(description, pair),
                "counted": counted(description, pair),
            }
        )
    return {
        "table": description.table,
        "synthesizer": description.synthesizer,
        "expected_rows": description.rows,
        "cost": description.cost,
        "warnings": list(description.warnings),
        "columns": [
            {
                "name": axis.name,
                "cells": axis.size,
                "groups": int(description.groups[column].max()) + 1,
                "expected_error": expected_error(description, (column,)),
            }
            for column, axis in enumerate(axes)
        ],
        "pairs": pairs,
    }


def _association(description: Description, pair: tuple[int, ...]) -> float:
    """The total variation distance of a pair, in the model, from two columns that know nothing of each other."""
    table = description.model.marginal(pair)
    table = table / table.sum()
    return float(np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2)


def text(description: Description, *, progress: Progress = None) -> str:
    """The report for a terminal."""
    found = as_json(description, progress=progress)
    lines = [
        f"{found['table']} by {found['synthesizer']}: about {found['expected_rows']} rows, {_cost(found['cost'])}",
        *(f"Warning: {warning}" for warning in found["warnings"]),
        "",
        f"{'column':24} {'cells':>6} {'groups':>6}  expected error",
    ]
    lines += [
        f"{each['name'][:24]:24} {each['cells']:6} {each['groups']:6}  "
        f"{each['expected_error']:.3f} {_bar(each['expected_error'])}"
        for each in found["columns"]
    ]
    strongest = sorted(found["pairs"], key=lambda each: -each["association"])[:15]
    lines += ["", f"{'strongest pairs':40} {'association':>11} {'expected error':>14}"]
    lines += [
        f"{' x '.join(each['columns'])[:40]:40} {each['association']:11.3f} {each['expected_error']:14.3f}"
        f"{'' if each['counted'] else '  not counted: follows from other pairs'}"
        for each in strongest
    ]
    lines += [
        "",
        "Errors are total variation distances (0 to 1) that noise is expected to make. Pairs that were not counted may",
        "also miss a correlation; `curator.compare` tells how much, at a price.",
    ]
    return "\n".join(lines)


def _bar(share: float) -> str:
    return "█" * max(1, round(40 * min(share, 1.0))) if share > 0 else ""


def _cost(cost: dict[str, Any]) -> str:
    known = {name: cost.get(name) for name in ("epsilon", "rho", "delta")}
    signs = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
    return ", ".join(
        f"{signs[name]} = {value:.4g}" for name, value in known.items() if isinstance(value, int | float) and value
    )


def document(description: Description, *, progress: Progress = None) -> str:
    """The report as one HTML page that loads nothing."""
    found = as_json(description, progress=progress)
    figures = "".join(_figure(description, column, each) for column, each in enumerate(found["columns"]))
    warnings = "".join(f'<p class="warning">{escape(warning)}</p>' for warning in found["warnings"])
    strongest = sorted(found["pairs"], key=lambda each: -each["association"])[:20]
    rows = "".join(
        f"<tr><td>{escape(' × '.join(each['columns']))}</td><td class=n>{each['association']:.3f}</td>"
        f"<td class=n>{each['expected_error']:.3f}</td><td>{'yes' if each['counted'] else 'no'}</td></tr>"
        for each in strongest
    )
    measured = "".join(
        f"<tr><td>{escape(' × '.join(description.axes[c].name for c in each.columns))}</td>"
        f"<td class=n>{len(each.counts)}</td><td>{escape(each.noise.get('mechanism', ''))}</td>"
        f"<td class=n>{each.std:.1f}</td></tr>"
        for each in description.measured
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(found["table"])}: a description</title>
<style>{_STYLE}</style></head><body>
<h1>{escape(found["table"])}, described</h1>
<p class="note">by {escape(found["synthesizer"])}; about {found["expected_rows"]:,} rows;
cost {escape(_cost(found["cost"]))}</p>
{warnings}
<p>Everything on this page comes from the description, which is already released. Error bars show how far noise is
expected to have moved a count; errors are total variation distances, from 0 (the same) to 1.</p>
<h2>Columns</h2><div class="columns">{figures}</div>
<h2>Pairs</h2>
<p class="note">How far each pair is, in the model, from two columns that know nothing of each other (left), and the
error that noise is expected to make (right).</p>
{_heat(description, found, "association")}{_heat(description, found, "expected_error")}
<h2>Strongest pairs</h2>
<table><tr><th>pair</th><th class=n>association</th><th class=n>expected error</th><th>counted</th></tr>{rows}</table>
<p class="note">A pair that was not counted follows from others; a correlation of its own would be missed.</p>
<h2>What was counted, with which noise</h2>
<table><tr><th>columns</th><th class=n>counts</th><th>noise</th><th class=n>standard deviation</th></tr>
{measured}</table>
</body></html>
"""


def _figure(description: Description, column: int, found: dict[str, Any]) -> str:
    """A bar for every cell (or run of cells), with error bars."""
    axis, counts, errors = description.axes[column], description.marginal((column,)), cell_errors(description, column)
    cells = np.minimum(np.arange(axis.size) * min(axis.size, 50) // axis.size, 49)
    heights, spread = np.bincount(cells, weights=counts), np.sqrt(np.bincount(cells, weights=errors**2))
    top = float((heights + spread).max()) or 1.0
    width = 300 / len(heights)
    bars = []
    for place, (height, error) in enumerate(zip(heights, spread, strict=True)):
        x, y = place * width, 100 * (1 - height / top)
        first = int(np.flatnonzero(cells == place)[0])
        middle, reach = x + width / 2, 100 * error / top
        bars.append(
            f'<rect x="{x + width * 0.08:.1f}" y="{y:.1f}" width="{width * 0.84:.1f}" height="{100 - y:.1f}" '
            'fill="#4878a8">'
            f"<title>{escape(axis.label(first))}: {height:.0f} ± {error:.0f}</title></rect>"
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{max(0.0, y - reach):.1f}" '
            f'y2="{min(100.0, y + reach):.1f}" stroke="#1d2733" stroke-width="1"/>'
        )
    caption = f"{escape(axis.name)} <span>expected error {found['expected_error']:.3f}</span>"
    return f'<figure><figcaption>{caption}</figcaption><svg viewBox="0 0 300 102">{"".join(bars)}</svg></figure>'


def _heat(description: Description, found: dict[str, Any], field: str) -> str:
    """A triangle of squares, one a pair."""
    names = [axis.name for axis in description.axes]
    side, left, top = 18, 110, 100
    parts = [
        f'<text x="{left - 6}" y="{top + row * side + 13}" font-size="11" text-anchor="end">{escape(name[:16])}</text>'
        f'<text transform="translate({left + row * side + 13} {top - 6}) rotate(-60)" font-size="11">'
        f"{escape(name[:16])}</text>"
        for row, name in enumerate(names)
    ]
    for each in found["pairs"]:
        a, b = (names.index(name) for name in each["columns"])
        strength = min(1.0, each[field] / 0.5) ** 0.5
        title = f"{' × '.join(each['columns'])}: {each[field]:.3f}"
        parts += [
            f'<rect x="{left + x * side}" y="{top + y * side}" width="{side - 1}" height="{side - 1}" fill="#4878a8" '
            f'fill-opacity="{0.04 + 0.96 * strength:.2f}"><title>{escape(title)}</title></rect>'
            for x, y in ((a, b), (b, a))
        ]
    size = left + len(names) * side + 60
    return f'<svg viewBox="0 0 {size} {top + len(names) * side + 10}" style="max-width: 30rem">{"".join(parts)}</svg>'
