"""The figures to look at before publishing: columns, pairs, expected errors, cost. They follow from
the description alone; `reports` draws them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from discreet.synthetic.columns.values import QUANTILES, tell_values
from discreet.synthetic.description import Description
from discreet.synthetic.report.digits import few_digits
from discreet.synthetic.report.errors import expected_error, is_counted

Progress = Callable[[str, float], None] | None


def as_json(description: Description, *, progress: Progress = None) -> dict[str, Any]:
    """Return the figures of the report."""
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
                "counted": is_counted(description, pair),
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
                "values": tell_values(description, column),
            }
            for column, axis in enumerate(axes)
        ],
        "pairs": pairs,
    }


def _association(description: Description, pair: tuple[int, ...]) -> float:
    """Return the total variation distance of a pair in the model from independent columns."""
    table = description.model.marginal(pair)
    table = table / table.sum()
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float(np.abs(table - independent).sum() / 2)


def text(description: Description, *, progress: Progress = None) -> str:
    """Write the report for a terminal."""
    found = as_json(description, progress=progress)
    lines = [
        f"{found['table']} by {found['synthesizer']}: about {found['expected_rows']} rows, {cost_text(found['cost'])}",
        *(f"Warning: {warning}" for warning in found["warnings"]),
        "",
        f"{'column':24} {'cells':>6} {'groups':>6}  expected error",
    ]
    lines += [
        f"{each['name'][:24]:24} {each['cells']:6} {each['groups']:6}  "
        f"{each['expected_error']:.3f} {_bar(each['expected_error'])}"
        for each in found["columns"]
    ]
    lines += ["", "values of synthetic rows (so many of them lie at or below each)"]
    names, rows = value_columns(found["columns"])
    for column, *cells in rows:
        lines.append(column)
        told = [(name, cell) for name, cell in zip(names[1:], cells, strict=True) if cell]
        lines += [f"    {name:14} {cell}" for name, cell in told]
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
        "also miss a correlation; `discreet compare` tells how much, at a price.",
    ]
    return "\n".join(lines)


def value_columns(columns: list[dict[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the names and the rows of a table of values: the mean, the quantiles, the heaviest."""
    ranks = [f"{100 * rank:.0f} %" for rank in QUANTILES]
    names = ("column", "mean", *ranks, "most frequent")
    rows = []
    for each in columns:
        values = each["values"]
        if values:
            mean = "" if values["mean"] is None else few_digits(values["mean"])
            heavy = ", ".join(
                f"{own['value']} ({100 * own['share']:.1f} %)" for own in values["heavy"]
            )
            rows.append((each["name"], mean, *values["quantiles"].values(), heavy))
    return names, rows


def _bar(share: float) -> str:
    return "█" * max(1, round(40 * min(share, 1.0))) if share > 0 else ""


def cost_text(cost: dict[str, Any]) -> str:
    known = {name: cost.get(name) for name in ("epsilon", "rho", "delta")}
    signs = {"epsilon": "ε", "rho": "ρ", "delta": "δ"}
    return ", ".join(
        f"{signs[name]} = {value:.4g}"
        for name, value in known.items()
        if isinstance(value, int | float) and value
    )
