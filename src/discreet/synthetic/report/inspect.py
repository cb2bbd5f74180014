"""The figures to look at before publishing: columns, pairs, expected errors, cost. They follow from
the description alone; `reports` draws them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from discreet.synthetic.columns.values import tell_values
from discreet.synthetic.description import Description
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
    lines += [
        "",
        "values (of the description: mean; 5, 25, 50, 75, 95, 99 % lie at or below; the heaviest)",
    ]
    lines += [
        f"{each['name'][:24]:24} {value_text(each['values'])}"
        for each in found["columns"]
        if each["values"]
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
        "also miss a correlation; `discreet compare` tells how much, at a price.",
    ]
    return "\n".join(lines)


def value_text(values: dict[str, Any]) -> str:
    """Write a column's values in one line."""
    mean = "" if values["mean"] is None else f"{values['mean']:.6g}; "
    heavy = ", ".join(f"{each['value']} ({100 * each['share']:.1f} %)" for each in values["heavy"])
    return f"{mean}{', '.join(values['quantiles'].values())}{'; ' + heavy if heavy else ''}"


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
