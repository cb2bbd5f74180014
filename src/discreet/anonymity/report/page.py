"""The report as one HTML file that needs nothing else: no scripts, no fonts, no addresses."""

from __future__ import annotations

from collections.abc import Mapping

from discreet.anonymity.failures import Example
from discreet.anonymity.publish import Anonymized
from discreet.anonymity.report import words
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars, stack
from discreet.pages.blocks import Cell

_STRENGTHS = (1.0, 0.72, 0.5, 0.34, 0.22)
_MOST_DOTS = 60


def page(made: Anonymized, *, title: str) -> str:
    """Write the whole report on an anonymized table."""
    parts = [
        *_summary(made),
        *map(blocks.warning, made.warnings),
        *_cost(made),
        *_classes(made),
        *_failures(made),
        *_instead(made),
    ]
    return blocks.page(title, parts)


def _summary(made: Anonymized) -> list[str]:
    facts = [(f"{made.k:,}", "k"), (f"{made.rows:,}", "rows"), (f"{made.classes:,}", "classes")]
    facts += [(f"{made.l:,}", "l (distinct)")] if made.l is not None else []
    facts += [(f"{made.t:.3f}", "t")] if made.t is not None else []
    facts += [
        (f"{made.suppressed:,}", "suppressed"),
        (f"{100 * made.loss.ncp:.1f} %", "information lost"),
    ]
    kind = (
        "each class as far as it must be"
        if made.recoding == "local"
        else "the whole table to one level per column"
    )
    asked = f"Asked for: {made.guarantee}, coarsening {kind}; measured again on the finished table."
    return [
        blocks.paragraph(f"{words.promise(made)} {asked}"),
        blocks.cards(facts),
        blocks.warning(words.NOT_ENOUGH),
    ]


def _cost(made: Anonymized) -> list[str]:
    moved = made.report.utility.by_column if made.report else {}
    rows: list[list[str | Cell]] = []
    for column, levels in made.transformation.items():
        shares = {levels: 1.0} if isinstance(levels, str) else levels
        text = words.levels(levels)
        wrong = f"{100 * moved[column]:.1f} %" if column in moved else "–"
        lost = f"{100 * made.loss.columns[column]:.1f} %"
        rows.append(
            [column, lost, wrong, Cell(text, kind="soft small", above=_levels(column, shares))]
        )
    return [
        blocks.heading("What it costs"),
        blocks.paragraph(
            "Lost: the share of a column's range that its published values stand for (normalized certainty penalty). "
            "Miscounted: the share of people who seem to have another value when a reader spreads each published value "
            "evenly over what it stands for."
        ),
        blocks.table(
            (
                "column",
                "lost",
                "miscounted",
                "how its rows are shown, from exact to not at all (*)",
            ),
            rows,
        ),
        blocks.paragraph(
            f"Other measures: lm {made.loss.lm:.3f}, precision {made.loss.precision:.3f}, entropy "
            f"{made.loss.entropy:.3f}, discernibility {made.loss.discernibility:.5f}, average class "
            f"{made.loss.average_class:.1f} rows.",
            kind="soft",
        ),
    ]


def _levels(column: str, shares: Mapping[str, float]) -> str:
    """Draw the levels of a column: the more exact, the stronger the blue; `*` in orange."""
    parts = []
    for index, (name, share) in enumerate(shares.items(), start=0 if "exact" in shares else 1):
        color, strength = (
            (1, 1.0) if name == "*" else (0, _STRENGTHS[min(index, len(_STRENGTHS) - 1)])
        )
        parts.append((words.level(name), share, color, strength))
    return stack(parts, label=f"rows of {column} by level")


def _classes(made: Anonymized) -> list[str]:
    if made.report is None:
        return []
    before, after = made.report.before, made.report.after
    series = [
        Series(
            values=[*rows.values()],
            texts=[f"{each:,}" for each in rows.values()],
            name=name,
            color=color,
        )
        for rows, name, color in ((before, "before", 1), (after, "published", 0))
    ]
    scale = axis.numbers(0.0, max(*before.values(), *after.values(), 1), title="people")
    chart = bars([*before], series, axis=scale, label="people by class size")
    return [
        blocks.heading("Classes"),
        blocks.paragraph(
            f"Before, {words.count(made.report.unique_before, 'person was', 'people were')} alone in their class."
        ),
        blocks.figure("People by the size of their class", chart),
    ]


def _failures(made: Anonymized) -> list[str]:
    failed = None if made.report is None else made.report.failures
    if failed is None:
        return []
    first = words.homogeneity(failed)
    second = words.side_information(failed)
    return [
        blocks.heading("What it does not give", "Two failures of k-anonymity, on this table."),
        blocks.grid(
            [
                blocks.card(
                    f"1. Everybody in the class has the same {failed.secret}",
                    [*map(blocks.paragraph, first), _people(failed.agreeing)],
                ),
                blocks.card(
                    "2. The attacker knows somebody",
                    [*map(blocks.paragraph, second), _people(failed.thinned)],
                ),
            ],
            least=20,
        ),
    ]


def _people(example: Example | None) -> str:
    """Draw a dot for each member of the class, colored by the secret."""
    if example is None:
        return ""
    colors = [
        1 if index == 0 else (0, 2, 3, 4)[(index - 1) % 4] for index in range(len(example.values))
    ]
    dots: list[str] = []
    for color, (_, count) in zip(colors, example.values, strict=True):
        dots += [f'<span class="ink c{color}">●</span>'] * count
    more = (
        f' <span class="soft small">and {len(dots) - _MOST_DOTS:,} more</span>'
        if len(dots) > _MOST_DOTS
        else ""
    )
    key = [
        (f"{value}: {count:,}", color, "fill")
        for color, (value, count) in zip(colors, example.values, strict=True)
    ]
    return f"<p>{' '.join(dots[-_MOST_DOTS:])}{more}</p>{blocks.legend(key[:5])}"


def _instead(made: Anonymized) -> list[str]:
    if made.report is None or not made.report.utility.kinds:
        return []
    kinds = made.report.utility.kinds
    epsilons = list(kinds[0].margins)
    names = ["statistic", "this table: 19 of 20 off by up to", "the worst by"]
    rows = [
        [
            f"counts {each.name} ({words.size(each)})",
            f"{each.usual:,.0f}",
            f"{each.worst:,.0f}",
            *(f"± {each.margins[epsilon]:,}" for epsilon in epsilons),
        ]
        for each in kinds
    ]
    left_out = made.report.utility.left_out
    note = f" Left out, with too many values: {', '.join(left_out)}." if left_out else ""
    return [
        blocks.heading("What differential privacy would give instead"),
        blocks.paragraph(
            "The same counts with discrete Laplace noise, ε shared by all tables of a row. Its promise holds whatever "
            "the attacker knows and whatever else is published, and its error is known beforehand: 19 of 20 noisy "
            "counts are within the margin."
        ),
        blocks.table([*names, *(f"with noise, ε = {epsilon}" for epsilon in epsilons)], rows),
        blocks.paragraph(
            "Margins are computed from the formula; nothing was drawn and nothing was spent. Errors of this table are "
            f"of counts that are not zero.{note}",
            kind="soft",
        ),
    ]
