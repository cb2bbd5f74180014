"""Draw a release in a terminal: each series as dots within their margins, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.budget import number, with_margin
from discreet.continual.naive import naive_costs

if TYPE_CHECKING:
    from discreet.continual.series import Series

WIDTH = 72
HEIGHT = 10
MOST_CHARTS = 8

# keys, statistic, kind of sum, periods, values, margins
Line = tuple[tuple[Any, ...], str, str, list[Any], list[float], list[float]]


def lines_of(series: Series) -> list[Line]:
    """Return a line for each combination of keys, statistic and kind of sum."""
    lines: dict[tuple[Any, ...], Line] = {}
    for row in series.table.to_pylist():
        keys = tuple(row[name] for name in series.asked.keys)
        place = (row["statistic"], row["publish"], keys)
        line = lines.setdefault(place, (keys, row["statistic"], row["publish"], [], [], []))
        for column, name in zip(line[3:], ("period", "value", "margin"), strict=True):
            column.append(row[name])
    return list(lines.values())


def chart(values: Sequence[float], margins: Sequence[float]) -> list[str]:
    """Return rows of text with a chart: ● is the value, │ its margin."""
    columns = min(WIDTH, len(values))
    places = [round(index * (len(values) - 1) / max(columns - 1, 1)) for index in range(columns)]
    low = min(values[at] - margins[at] for at in places)
    high = max(values[at] + margins[at] for at in places)
    span = (high - low) or 1.0

    def height(value: float) -> int:
        return min(HEIGHT - 1, int((value - low) / span * HEIGHT))

    grid = [[" "] * columns for _ in range(HEIGHT)]
    for column, at in enumerate(places):
        for row in range(height(values[at] - margins[at]), height(values[at] + margins[at]) + 1):
            grid[row][column] = "│"
        grid[height(values[at])][column] = "●"
    labels = {HEIGHT - 1: f"{high:,.0f}", 0: f"{low:,.0f}"}
    return [f"{labels.get(row, ''):>10} ┤{''.join(grid[row])}" for row in reversed(range(HEIGHT))]


def text(series: Series) -> str:
    """Write everything that `discreet release show` prints."""
    schedule = series.schedule
    horizon = "an unknown number" if schedule.periods is None else str(schedule.periods)
    lines = [
        f"{schedule.name}: {schedule.question}",
        f"{series.periods} of {horizon} periods of a {schedule.period} from {schedule.start}",
        f"by {series.design.strategy.name}",
        "",
    ]
    found = lines_of(series)
    for keys, statistic, publish, periods, values, margins in found[:MOST_CHARTS]:
        title = " ".join([statistic, name_sum(publish, schedule.period), *map(str, keys)])
        lines += [
            f"{title}: {with_margin(values[-1], margins[-1])} on {periods[-1]}",
            *chart(values, margins),
            "",
        ]
    if len(found) > MOST_CHARTS:
        lines.append(f"and {len(found) - MOST_CHARTS} more; --out writes all of them.")
    lines.append(
        f"cost {series.budget}, charged once at the start; ± is a 95 % margin of the noise."
    )
    if series.periods:
        asked = naive_costs(series, series.periods, points=1)[-1][1]
        lines.append(
            f"The same numbers, each asked anew in its period, would have cost ε = {number(round(asked, 3))} so far."
        )
    return "\n".join(lines)


def name_sum(publish: str, period: str) -> str:
    """Name a kind of sum: by day, in all, over 7 days."""
    if publish == "daily":
        return f"by {period}"
    return "in all" if publish == "cumulative" else f"over {publish} {period}s"
