"""The pages one would show a board: of a description, of its comparison with the truth, and of raw rows (secret)."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import numpy as np

from discreet.budget import with_margin
from discreet.synthetic.compare import Comparison, Distance
from discreet.synthetic.description import Description
from discreet.synthetic.report import pictures
from discreet.synthetic.report.errors import cell_errors
from discreet.synthetic.report.inspect import as_json, cost_text
from discreet.synthetic.report.pictures import Square
from discreet.synthetic.report.raw import BANNER, RawReport

Progress = Callable[[str, float], None] | None

_MOST_BARS = 50
_FEW_VALUES = 12
_NOISES = {"DiscreteGaussian": "Gaussian, whole numbers", "DiscreteLaplace": "Laplace, whole numbers"}
_SCALES = (0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 1.0)


def description_page(description: Description, *, progress: Progress = None) -> str:
    """What a description holds and how wrong it may be."""
    found = as_json(description, progress=progress)
    pairs, names = found["pairs"], [axis.name for axis in description.axes]
    counted = [each for each in pairs if each["counted"]]
    columns_error = sum(each["expected_error"] for each in found["columns"]) / len(names)
    parts = [
        pictures.cards(
            [
                (f"{found['expected_rows']:,}", "rows, about"),
                (f"{len(names)}", "columns"),
                (cost_text(found["cost"]).split(",")[0], "what it cost"),
                (f"{columns_error:.3f}", "expected error of a column"),
                (f"{len(counted)} of {len(pairs)}", "pairs counted"),
            ]
        ),
        *(f'<p class="warning">{escape(warning)}</p>' for warning in found["warnings"]),
        '<p class="note">Everything on this page follows from the description, which is already released: no data was '
        "touched to draw it. Error bars show how far noise is expected to have moved a count. Errors are total "
        "variation distances, from 0 (the same) to 1: an error of 0.02 moves no share by more than two points.</p>",
        pictures.heading("Columns"),
        '<div class="grid">',
        *(_column(description, place, each) for place, each in enumerate(found["columns"])),
        "</div>",
    ]
    if pairs:
        parts += _pairs(names, pairs)
    parts += [
        pictures.heading("What was counted, with which noise"),
        pictures.table(
            ("columns", "counts", "noise", "standard deviation"),
            [
                (
                    " × ".join(names[column] for column in each.columns),
                    f"{len(each.counts):,}",
                    _NOISES.get(each.noise.get("mechanism", ""), ""),
                    f"{each.std:.1f}",
                )
                for each in description.measured
            ],
        ),
    ]
    subtitle = f"A description by {found['synthesizer']}, for {cost_text(found['cost'])}"
    return pictures.page(f"{found['table']}, described", subtitle, parts)


def _pairs(names: list[str], pairs: list[dict[str, Any]]) -> list[str]:
    places = {name: place for place, name in enumerate(names)}

    def squares(field: str) -> list[Square]:
        return [
            Square(
                row=places[each["columns"][0]],
                column=places[each["columns"][1]],
                value=each[field],
                doubtful=not each["counted"] and field == "expected_error",
            )
            for each in pairs
        ]

    strongest = sorted(pairs, key=lambda each: -each["association"])[:20]
    return [
        pictures.heading("Pairs", "What columns tell about each other, and how far noise may have moved that."),
        '<div class="two">',
        pictures.figure(
            "Association", "distance from independence", pictures.heat(names, squares("association"), full=0.5)
        ),
        pictures.figure(
            "Expected error",
            "of noise; a dot: never counted, so more may be missing",
            pictures.heat(names, squares("expected_error"), full=0.2),
        ),
        "</div>",
        pictures.heading("The strongest pairs", "A pair that was not counted follows from others."),
        pictures.table(
            ("pair", "association", "expected error", "counted"),
            [
                (
                    " × ".join(each["columns"]),
                    f"{each['association']:.3f}",
                    f"{each['expected_error']:.3f}",
                    "yes" if each["counted"] else "no",
                )
                for each in strongest
            ],
        ),
    ]


def _column(description: Description, column: int, found: dict[str, Any]) -> str:
    """A picture of one column: lying bars for a few listed values, upright ones for all others."""
    axis, counts, errors = description.axes[column], description.marginal((column,)), cell_errors(description, column)
    note = f"expected error {found['expected_error']:.3f}"
    if axis.size <= _FEW_VALUES:
        labels = [axis.label(code) for code in range(axis.size)]
        return pictures.figure(axis.name, note, pictures.bars(counts, errors, labels))
    if not axis.ordered:  # the most frequent first
        order = np.argsort(-counts, kind="stable")
        shown, rest = order[: _FEW_VALUES - 1], order[_FEW_VALUES - 1 :]
        labels = [*(axis.label(int(code)) for code in shown), f"{len(rest)} others"]
        heights = np.append(counts[shown], counts[rest].sum())
        spread = np.append(errors[shown], np.sqrt((errors[rest] ** 2).sum()))
        return pictures.figure(axis.name, note, pictures.bars(heights, spread, labels))
    cells = np.arange(axis.size) // -(-axis.size // _MOST_BARS)  # as many cells in every bar, but for the last
    heights = np.asarray(np.bincount(cells, weights=counts), dtype=np.float64)
    spread = np.sqrt(np.bincount(cells, weights=errors**2))
    firsts = [int(np.flatnonzero(cells == place)[0]) for place in range(len(heights))]
    labels = [axis.label(first) for first in firsts]
    ends = axis.label(0).split(" to ")[0], axis.label(axis.size - 1).split(" to ")[-1]
    return pictures.figure(axis.name, note, pictures.histogram(heights, spread, labels, ends=ends))


def comparison_page(comparison: Comparison) -> str:
    """Real against synthetic, as far as it was paid for."""
    cost = cost_text(comparison.certificate.get("cost", {}))
    found = comparison.classifier
    facts = [(f"{comparison.mean:.3f}", "distance of a pair, on average"), (cost.split(",")[0], "what this page cost")]
    if found is not None:
        facts += [
            (with_margin(found.true, found.margin), f"AUC for {found.target} on true rows"),
            (f"{found.synthetic:.3f}", "AUC on synthetic rows"),
        ]
    parts = [
        pictures.cards(facts),
        '<p class="note">True figures on this page carry noise and were paid for; margins hold with 95 %. It may be '
        "published. Distances are total variation distances, from 0 (the same) to 1.</p>",
        *_distance_parts(comparison.distances, comparison.asked),
    ]
    if comparison.correlations:
        points = [(" × ".join(e.columns), e.true, e.synthetic, e.margin) for e in comparison.correlations]
        parts += _correlation_parts(points)
    subtitle = f"Synthetic rows against true ones, for {cost}"
    return pictures.page(f"{comparison.table}, compared", subtitle, parts)


def _distance_parts(distances: tuple[Distance, ...], asked: tuple[Distance, ...]) -> list[str]:
    def worst(some: list[Distance], title: str) -> str:
        shown = sorted(some, key=lambda each: -each.distance)[:20]
        full = next(end for end in _SCALES if end >= max(each.distance for each in shown))
        entries = [(" × ".join(each.columns), each.distance, each.margin) for each in shown]
        return pictures.figure(title, "", pictures.dots(entries, full=full))

    groups = [
        ("Columns", [each for each in distances if len(each.columns) == 1]),
        ("Pairs that are farthest off", [each for each in distances if len(each.columns) == 2]),
        ("What questions ask for", list(asked)),
    ]
    shown = [worst(some, title) for title, some in groups if some]
    return [pictures.heading("Distances"), '<div class="two">', *shown, "</div>"]


def _correlation_parts(points: list[tuple[str, float, float, float]]) -> list[str]:
    strongest = sorted(points, key=lambda each: -abs(each[1]))[:12]
    return [
        pictures.heading("Correlations", "On the dashed line, synthetic rows agree with true ones."),
        '<div class="two">',
        pictures.figure("All pairs of numbers", "", pictures.scatter(points)),
        pictures.table(
            ("pair", "true", "synthetic"),
            [
                (name, with_margin(true, margin) if margin else _signed(true), _signed(synthetic))
                for name, true, synthetic, margin in strongest
            ],
        ),
        "</div>",
    ]


def _signed(value: float) -> str:
    """Two digits; what is nothing has no sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def raw_page(report: RawReport) -> str:
    """What was computed on raw rows: for the curator alone."""
    facts = [(f"{report.rows:,}", "true rows, exactly"), (f"{report.mean:.3f}", "distance of a pair, on average")]
    if report.classifier is not None:
        facts += [
            (f"{report.classifier.synthetic:.3f}", f"AUC for {report.classifier.target}, made from synthetic rows"),
            (f"{report.classifier.true:.3f}", "AUC, made from true rows"),
        ]
    exact = tuple(Distance(columns=columns, distance=value, margin=0.0) for columns, value in report.distances.items())
    parts = [
        pictures.cards(facts),
        '<p class="warning">Every figure here was computed on raw rows, without noise and without a charge. It is no '
        "part of any promise. Do not publish, quote or paraphrase it.</p>",
    ]
    if report.risks:
        parts += [
            pictures.heading(
                "Risks",
                "Attacks on the synthetic rows. What succeeds as often on people who are not in the data (the control) "
                "is knowledge about everybody, not a leak.",
            ),
            pictures.table(("attack", "succeeds", "by chance", "on the control", "risk beyond it"), report.risks),
        ]
    parts += _distance_parts(exact, ())
    if report.correlations:
        parts += _correlation_parts(
            [(" × ".join(pair), true, made, 0.0) for pair, (true, made) in report.correlations.items()]
        )
    return pictures.page(f"{report.table}: raw rows", "For the curator alone", parts, banner=BANNER)
