"""The pages of reports: a description, its comparison with the truth, and scores on raw rows (these
are secret).
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

from discreet.budget import with_margin
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars
from discreet.pages.heat import Square, heat
from discreet.pages.plot import Curve, plot
from discreet.synthetic.columns.values import Figure
from discreet.synthetic.compare import Comparison, Distance
from discreet.synthetic.description import Description
from discreet.synthetic.report.digits import as_exact_as, few_digits
from discreet.synthetic.report.errors import cell_errors
from discreet.synthetic.report.histogram import draw_column
from discreet.synthetic.report.inspect import as_json, cost_text, value_columns
from discreet.synthetic.report.raw import BANNER, RawReport

Progress = Callable[[str, float], None] | None

_NOISES = {
    "DiscreteGaussian": "Gaussian, whole numbers",
    "DiscreteLaplace": "Laplace, whole numbers",
}
_SCALES = (0.02, 0.04, 0.08, 0.12, 0.2, 0.4, 0.6, 1.0)


def description_page(description: Description, *, progress: Progress = None) -> str:
    """Return the page of a description: its columns and pairs, and their expected errors."""
    found = as_json(description, progress=progress)
    pairs = found["pairs"]
    names = [axis.name for axis in description.axes]
    counted = [each for each in pairs if each["counted"]]
    columns_error = sum(each["expected_error"] for each in found["columns"]) / len(names)
    parts = [
        blocks.cards(
            [
                (f"{found['expected_rows']:,}", "rows, about"),
                (f"{len(names)}", "columns"),
                (cost_text(found["cost"]).split(",")[0], "what it cost"),
                (f"{columns_error:.3f}", "expected error of a column"),
                (f"{len(counted)} of {len(pairs)}", "pairs counted"),
            ]
        ),
        *map(blocks.warning, found["warnings"]),
        blocks.paragraph(
            "Everything on this page follows from the description, which is already released: no data was touched to "
            "draw it. The area of an upright bar is its number of rows. Error bars show how far noise is expected to "
            "have moved a count. Errors are total variation distances, from 0 (the same) to 1: an error of 0.02 moves "
            "no share by more than two points.",
            kind="soft",
        ),
        blocks.heading("Columns"),
        blocks.grid(
            [_column(description, place, each) for place, each in enumerate(found["columns"])],
            least=20,
        ),
    ]
    if any(each["values"] for each in found["columns"]):
        parts += [
            blocks.heading(
                "Values", "The values of synthetic rows: this share of them lies at or below each."
            ),
            _values(found["columns"]),
        ]
    if pairs:
        parts += _pairs(names, pairs)
    parts += [
        blocks.heading("What was counted, with which noise"),
        blocks.table(
            ("columns", "counts", "noise", "standard deviation"),
            [
                (
                    " × ".join(names[column] for column in each.columns),
                    f"{len(each.counts):,}",
                    _NOISES.get(each.noise.get("mechanism", ""), ""),
                    f"{each.std:.1f}",
                )
                for each in description.measured
            ]
            + [
                (
                    "products of two columns' scores",
                    f"{len(each.pairs):,}",
                    _NOISES.get(each.noise.get("mechanism", ""), ""),
                    f"{each.std:.1f}",
                )
                for each in description.related
            ],
        ),
    ]
    subtitle = f"A description by {found['synthesizer']}, for {cost_text(found['cost'])}"
    return blocks.page(f"{found['table']}, described", parts, subtitle=subtitle)


def _values(columns: list[dict[str, Any]]) -> str:
    names, rows = value_columns(columns)
    lines: list[list[str | blocks.Cell]] = [
        [name, mean, *(_unbroken(cell, " ") for cell in cells), _unbroken(heavy, ", ")]
        for name, mean, *cells, heavy in rows
    ]
    return blocks.table(names, lines)


def _unbroken(text: str, gap: str) -> blocks.Cell:
    """Return a cell that breaks only where there is a gap, so that a day stays in one line."""
    parts = [f'<span class="n">{escape(part)}</span>' for part in text.split(gap)]
    return blocks.Cell("", above=gap.join(parts))


def _pairs(names: list[str], pairs: list[dict[str, Any]]) -> list[str]:
    places = {name: place for place, name in enumerate(names)}

    def squares(field: str) -> list[Square]:
        return [
            Square(
                row=places[each["columns"][0]],
                column=places[each["columns"][1]],
                value=each[field],
                marked=not each["counted"] and field == "expected_error",
            )
            for each in pairs
        ]

    strongest = sorted(pairs, key=lambda each: -each["association"])[:20]
    return [
        blocks.heading(
            "Pairs", "What columns tell about each other, and how far noise may have moved that."
        ),
        blocks.grid(
            [
                blocks.figure(
                    "Association",
                    heat(names, squares("association"), full=0.5, label="association of pairs"),
                    note="distance from independence",
                ),
                blocks.figure(
                    "Expected error",
                    heat(
                        names, squares("expected_error"), full=0.2, label="expected error of pairs"
                    ),
                    note="of noise; a dot: never counted, so more may be missing",
                ),
            ]
        ),
        blocks.heading("The strongest pairs", "A pair that was not counted follows from others."),
        blocks.table(
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
    drawn = draw_column(
        description.axes[column], description.marginal((column,)), cell_errors(description, column)
    )
    return blocks.figure(found["name"], drawn, note=f"expected error {found['expected_error']:.3f}")


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a paid comparison of synthetic rows with true ones."""
    cost = cost_text(comparison.certificate.get("cost", {}))
    found = comparison.classifier
    facts = [
        (f"{comparison.mean:.3f}", "distance of a pair, on average"),
        (cost.split(",")[0], "what this page cost"),
    ]
    if found is not None:
        facts += [
            (with_margin(found.true, found.margin), f"AUC for {found.target} on true rows"),
            (f"{found.synthetic:.3f}", "AUC on synthetic rows"),
        ]
    parts = [
        blocks.cards(facts),
        blocks.paragraph(
            "True figures on this page carry noise and were paid for; ± is the 95 % margin of the noise. It may be "
            "published. Distances are total variation distances, from 0 (the same) to 1.",
            kind="soft",
        ),
        *_value_parts(comparison.values),
        *_distance_parts(comparison.distances, comparison.asked),
    ]
    if comparison.correlations:
        points = [
            (" × ".join(e.columns), e.true, e.synthetic, e.margin) for e in comparison.correlations
        ]
        parts += _correlation_parts(points)
    subtitle = f"Synthetic rows against true ones, for {cost}"
    return blocks.page(f"{comparison.table}, compared", parts, subtitle=subtitle)


def _value_parts(values: tuple[Figure, ...]) -> list[str]:
    """Return the table of figures of values: distances over cells do not see inside a cell."""
    if not values:
        return []
    lines = [
        (
            each.column,
            each.figure,
            with_margin(each.true, each.margin) if each.margin else few_digits(each.true),
            as_exact_as(each.margin, each.synthetic),
        )
        for each in values
    ]
    heading = blocks.heading(
        "Values", "Means, cumulative shares, and the share of values that many have."
    )
    return [heading, blocks.table(("column", "figure", "true", "synthetic"), lines)]


def _distance_parts(distances: tuple[Distance, ...], asked: tuple[Distance, ...]) -> list[str]:
    def worst(some: list[Distance], title: str) -> str:
        shown = sorted(some, key=lambda each: -each.distance)[:20]
        full = next(end for end in _SCALES if end >= max(each.distance for each in shown))
        series = Series(
            values=[each.distance for each in shown],
            ranges=[_around(each.distance, each.margin) for each in shown],
            texts=[_told(each.distance, each.margin) for each in shown],
        )
        scale = axis.numbers(0.0, full, title="distance")
        names = [" × ".join(each.columns) for each in shown]
        return blocks.figure(title, bars(names, [series], axis=scale, mark="spot"))

    groups = [
        ("Columns", [each for each in distances if len(each.columns) == 1]),
        ("Pairs that are farthest off", [each for each in distances if len(each.columns) == 2]),
        ("What questions ask for", list(asked)),
    ]
    shown = [worst(some, title) for title, some in groups if some]
    return [blocks.heading("Distances"), blocks.grid(shown)]


def _correlation_parts(points: list[tuple[str, float, float, float]]) -> list[str]:
    strongest = sorted(points, key=lambda each: -abs(each[1]))[:12]
    return [
        blocks.heading("Correlations", "On the dashed line, synthetic rows agree with true ones."),
        blocks.grid(
            [
                blocks.figure("All pairs of numbers", _scatter(points)),
                blocks.table(
                    ("pair", "true", "synthetic"),
                    [
                        (
                            name,
                            with_margin(true, margin) if margin else _sign(true),
                            _sign(synthetic),
                        )
                        for name, true, synthetic, margin in strongest
                    ],
                ),
            ]
        ),
    ]


def _scatter(points: list[tuple[str, float, float, float]]) -> str:
    """Draw correlations: synthetic ones across, true ones (with margins) up; equal ones lie on the
    line.
    """
    largest = max(max(abs(true) + margin, abs(synthetic)) for _, true, synthetic, margin in points)
    full = next((end for end in (0.25, 0.5) if largest <= end), 1.0)
    curves = [
        Curve(across=[-full, full], up=[-full, full], kind="dash", color=1),
        Curve(
            across=[synthetic for _, _, synthetic, _ in points],
            up=[true for _, true, _, _ in points],
            lows=[true - margin for _, true, _, margin in points],
            highs=[true + margin for _, true, _, margin in points],
            kind="spot",
            titles=[
                f"{name}: true {_told(true, margin)}, synthetic {made:.2f}"
                for name, true, made, margin in points
            ],
        ),
    ]
    across = axis.numbers(-full, full, title="synthetic correlation")
    up = axis.numbers(-full, full, title="true correlation")
    return plot(
        curves, across=across, up=up, label="true against synthetic correlations", square=True
    )


def _around(value: float, margin: float) -> tuple[float, float] | None:
    return (value - margin, value + margin) if margin else None


def _told(value: float, margin: float) -> str:
    return with_margin(value, margin) if margin else f"{value:.3f}"


def _sign(value: float) -> str:
    """Write a number in two digits; zero has no sign."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def raw_page(report: RawReport) -> str:
    """Return the page of scores on raw rows, for the curator alone."""
    facts = [
        (f"{report.rows:,}", "true rows, exactly"),
        (f"{report.mean:.3f}", "distance of a pair, on average"),
    ]
    if report.classifier is not None:
        facts += [
            (
                f"{report.classifier.synthetic:.3f}",
                f"AUC for {report.classifier.target}, made from synthetic rows",
            ),
            (f"{report.classifier.true:.3f}", "AUC, made from true rows"),
        ]
    exact = tuple(
        Distance(columns=columns, distance=value, margin=0.0)
        for columns, value in report.distances.items()
    )
    parts = [
        blocks.cards(facts),
        blocks.warning(
            "Every figure here was computed on raw rows, without noise and without a charge. It is no part of any "
            "promise. Do not publish, quote or paraphrase it."
        ),
    ]
    if report.risks:
        parts += [
            blocks.heading(
                "Risks",
                "Attacks on the synthetic rows. What succeeds as often on people who are not in the data (the control) "
                "is knowledge about everybody, not a leak.",
            ),
            blocks.table(
                ("attack", "succeeds", "by chance", "on the control", "risk beyond it"),
                report.risks,
            ),
        ]
    parts += _value_parts(report.values)
    parts += _distance_parts(exact, ())
    if report.correlations:
        parts += _correlation_parts(
            [
                (" × ".join(pair), true, made, 0.0)
                for pair, (true, made) in report.correlations.items()
            ]
        )
    return blocks.page(
        f"{report.table}: raw rows", parts, subtitle="For the curator alone", banner=BANNER
    )
