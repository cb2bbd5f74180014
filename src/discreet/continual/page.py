"""A release as one web page without scripts: each series in its band, the budget beside what naive
releases cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.budget import with_margin
from discreet.continual.chart import Line, lines_of, name_sum
from discreet.continual.naive import naive_costs
from discreet.pages import axis, blocks
from discreet.pages.plot import Curve, plot

if TYPE_CHECKING:
    from discreet.continual.series import Series


def page(series: Series) -> str:
    """Write the whole page."""
    schedule = series.schedule
    found = lines_of(series)
    kinds = list(dict.fromkeys(line[2] for line in found))
    groups = (
        [[line for line in found if line[2] == kind] for kind in kinds]
        if len(found) > len(kinds)
        else [found]
    )
    charts = [
        blocks.grid([_figure(line, name_sum(line[2], schedule.period)) for line in group])
        for group in groups
    ]
    parts = [
        blocks.code(schedule.question),
        blocks.paragraph(_facts(series), kind="soft"),
        *charts,
        *_budget(series),
    ]
    return blocks.page(schedule.name, parts, subtitle=f"Published every {schedule.period}")


def _facts(series: Series) -> str:
    schedule, person = series.schedule, series.schedule.per_person
    horizon = "an unknown number of" if schedule.periods is None else f"{schedule.periods}"
    counted = (
        f"one in any {person.apart}"
        if person.periods is None
        else f"{person.periods} periods at most"
    )
    return (
        f"{series.periods} of {horizon} periods of a {schedule.period} from {schedule.start}. "
        f"One person counts in {counted}. Noise: {series.design.strategy.name}. "
        "A band is the 95 % margin of the noise."
    )


def _figure(line: Line, kind: str) -> str:
    keys, statistic, _, periods, values, margins = line
    title = " · ".join(
        [f"{statistic} {kind}", *("none" if key is None else str(key) for key in keys)]
    )
    lows = [value - margin for value, margin in zip(values, margins, strict=True)]
    highs = [value + margin for value, margin in zip(values, margins, strict=True)]
    curve = Curve(
        across=[axis.place_of(each) for each in periods], up=values, lows=lows, highs=highs
    )
    up = axis.numbers(min(0.0, *lows), max(0.0, *highs), title=statistic)
    chart = plot([curve], across=axis.days(periods[0], periods[-1]), up=up, label=title)
    return blocks.figure(
        title, chart, note=f"{with_margin(values[-1], margins[-1])} on {periods[-1]}"
    )


def _budget(series: Series) -> list[str]:
    """Draw what was paid, which is flat, beside what the same numbers would have cost one by
    one.
    """
    periods = series.schedule.periods or max(series.periods, 1)
    costs = naive_costs(series, periods)
    paid = float(series.budget.epsilon)
    begins = [series.schedule.begins(at - 1).date() for at, _ in costs]
    words = (
        f"The whole horizon costs {series.budget}, charged before the first period. The same numbers, each asked "
        f"anew in its period and as precise, would cost ε = {costs[-1][1]:,.3g} by the end."
    )
    first = series.schedule.begins(0).date()
    last = series.schedule.begins(periods - 1).date()
    curves = [
        Curve(
            across=[axis.place_of(each) for each in begins],
            up=[cost for _, cost in costs],
            name="asked one by one",
            color=1,
        ),
        Curve(
            across=[axis.place_of(first), axis.place_of(last)],
            up=[paid, paid],
            name=f"this release, ε = {paid:.3g}",
        ),
    ]
    up = axis.numbers(0.0, max(costs[-1][1], paid), title="ε spent")
    chart = plot(curves, across=axis.days(first, last), up=up, label="what was spent")
    return [blocks.heading("The budget"), blocks.paragraph(words), blocks.figure("", chart)]
