"""A publication as text for a terminal and as one web page without scripts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from discreet.census.grid import Floats, Integers
from discreet.census.publication import Publication, totals_by_level
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars
from discreet.pages.plot import Curve, plot

_SHOWN = 6  # places of a level
_DOTS = 1500


def text(publication: Publication) -> str:
    """Write for a terminal: places, totals, errors of totals by size of place, and what it cost."""
    plan = publication.plan
    lines = [
        f"{plan.terms.name}: {int(publication.people.count.sum()):,} people, {', '.join(plan.names)}"
    ]
    for level, largest in totals_by_level(publication, 3):
        size = plan.places.sizes[plan.places.levels.index(level)]
        said = ", ".join(f"{name} {count:,}" for name, count in largest)
        lines.append(f"  {level} ({size:,}): {said}{', ...' if size > len(largest) else ''}")
    lines.append(
        "errors of a count, by size of place (the mean, and ± the error that 95 % of counts keep "
        "within; from released numbers):"
    )
    for row in _by_place(publication):
        lines.append(
            f"  {row['level']} {row['table']}, places of {_class(row)}: {row['error']:.2f}, ± {row['margin']:.2f}, "
            f"bias {row['bias']:+.2f}"
        )
    cost = publication.certificate["cost"]
    paid = f"cost ε = {cost['epsilon']:.4g}" + (
        "" if cost["rho"] is None else f", ρ = {cost['rho']:.4g}"
    )
    return "\n".join([*lines, paid, plan.promise])


def _by_place(publication: Publication) -> list[dict[str, Any]]:
    first = publication.plan.names[0]
    return [
        row
        for row in publication.margins.to_pylist()
        if row["of"] == "place" and row["table"] == first
    ]


def _class(row: dict[str, Any]) -> str:
    low = row["from"]
    high = row["below"]
    if high is None:
        return f"{low:,} people or more"
    return f"{low:,} people" if high == low + 1 else f"{low:,} to {high - 1:,} people"


def page(publication: Publication) -> str:
    """Write the whole page."""
    plan = publication.plan
    cost = publication.certificate["cost"]
    paid = f"ε = {cost['epsilon']:.4g}" + (
        "" if cost["rho"] is None else f", ρ = {cost['rho']:.4g}"
    )
    facts = [
        (f"{int(publication.people.count.sum()):,}", "people"),
        (f"{plan.places.sizes[-1]:,}", "places of the finest level"),
        (paid, "one charge"),
    ]
    parts = [
        blocks.cards(facts),
        blocks.paragraph(f"Tables: {', '.join(plan.names)}. {plan.promise}", kind="soft"),
        blocks.heading("Totals", "The largest places of each level."),
        blocks.grid(_totals(publication), least=20),
        blocks.heading(
            "Errors",
            "Of a count by size of place: a dot is the mean; 95 % of counts keep within its line.",
        ),
        _errors(publication),
        blocks.heading(
            "Measured against published",
            "Numbers on the dashed line were not changed to make tables add up.",
        ),
        blocks.grid(_against(publication)),
        *_bias(publication),
    ]
    return blocks.page(
        plan.terms.name, parts, subtitle="Tables that add up, made at once for one charge"
    )


def _totals(publication: Publication) -> list[str]:
    """Draw the largest places of every level, as bars within their level."""
    figures = []
    for level, largest in totals_by_level(publication, _SHOWN):
        number = publication.plan.places.sizes[publication.plan.places.levels.index(level)]
        counts = [count for _, count in largest]
        series = Series(values=counts, texts=[f"{count:,}" for count in counts])
        scale = axis.numbers(0.0, max([*counts, 1]), title="people")
        chart = bars([name for name, _ in largest], [series], axis=scale, label=level)
        figures.append(blocks.figure(level, chart, note=f"{number:,} in all"))
    return figures


def _errors(publication: Publication) -> str:
    """Draw the error of the first table against the size of a place, level by level."""
    rows = _by_place(publication)
    series = Series(
        values=[row["error"] for row in rows],
        ranges=[(0.0, row["margin"]) for row in rows],
        texts=[f"{row['error']:.2f}, ± {row['margin']:.2f}" for row in rows],
    )
    scale = axis.numbers(
        0.0, max([row["margin"] for row in rows] + [1.0]), title=f"error of {rows[0]['table']}"
    )
    names = [f"{row['level']}, {_class(row)}" for row in rows]
    return blocks.figure(
        "", bars(names, [series], axis=scale, mark="spot", label="errors by size of place")
    )


def _against(publication: Publication) -> list[str]:
    """Draw what was measured against the whole numbers, for the first table, at the two finest
    measured levels.
    """
    found: list[str] = []
    plan = publication.plan
    for level in range(len(plan.places.levels) - 1, -1, -1):
        if plan.noises[level][0] is None or len(found) == 2:
            continue
        noisy = publication.noisy[level, 0].ravel()
        whole = publication.counts(level, plan.grid.tables[0]).ravel()
        found.append(
            blocks.figure(f"{plan.names[0]} by {plan.places.levels[level]}", _scatter(noisy, whole))
        )
    return found


def _scatter(noisy: Integers, whole: Integers) -> str:
    chosen = np.unique(np.linspace(0, len(noisy) - 1, min(len(noisy), _DOTS)).astype(np.int64))
    across = _bent(noisy[chosen])
    up = _bent(whole[chosen])
    high = float(max(across.max(), up.max(), 1))
    curves = [
        Curve(across=[0.0, high], up=[0.0, high], kind="dash", color=1),
        Curve(across=across.tolist(), up=up.tolist(), kind="speck"),
    ]
    return plot(
        curves,
        across=_powers(float(min(across.min(), 0)), high, title="measured"),
        up=_powers(min(0.0, float(up.min())), high, title="published"),
        label="measured against published counts",
    )


def _bent(values: Integers | Floats) -> Floats:
    """Return logarithms of both signs: small numbers stay apart, large ones fit."""
    return np.asarray(np.sign(values) * np.log10(1 + np.abs(values)))


def _powers(low: float, high: float, *, title: str) -> axis.Axis:
    """Return an axis of bent logarithms, with ticks at powers of ten of both signs."""
    powers = range(math.ceil(low), math.floor(high) + 1)
    return axis.Axis(
        low=low,
        high=high,
        ticks=tuple((float(power), _number(power)) for power in powers),
        title=title,
    )


def _number(power: int) -> str:
    """Return the number whose bent logarithm this is, to the nearest power of ten."""
    return "0" if power == 0 else f"{'−' if power < 0 else ''}{10 ** abs(power):,}"


def _bias(publication: Publication) -> list[str]:
    """Draw the bias of counts by their size: keeping numbers from falling below zero raises small
    ones.
    """
    finest = publication.plan.places.levels[-1]
    rows = [
        (
            row["level"],
            row["table"],
            _class(row),
            f"{row['number']:,}",
            f"{row['error']:.2f}",
            f"{row['margin']:.2f}",
            f"{row['bias']:+.3f}".replace("-", "−"),
        )
        for row in publication.margins.to_pylist()
        if row["of"] == "cell"
        and (row["level"] == finest or row["table"] == publication.plan.names[0])
    ]
    said = (
        "No published number is below zero, so noise can only raise a count of 0, and other counts fall to make "
        "up for that. The measurements beside the tables have no such bias."
    )
    names = ("level", "table", "counts of", "cells", "error", "95 %", "bias")
    return [blocks.heading("Bias of small and large counts", said), blocks.table(names, rows)]
