"""Charts of answers: bars with error bars, or lines with bands over time. Bars below their margin
are pale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from discreet.display.show import cell
from discreet.errors import UsageError
from discreet.pages import axis, blocks
from discreet.pages.bars import Series, bars
from discreet.pages.piece import Piece
from discreet.pages.plot import Curve, plot

if TYPE_CHECKING:
    from discreet.vault.answer import Answer

MOST_BARS, MOST_SERIES = 60, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One noisy number with its margin, and the keys that name it."""

    key: Any
    series: Any
    value: float
    margin: float

    @property
    def low(self) -> float:
        return self.value - self.margin

    @property
    def high(self) -> float:
        return self.value + self.margin


def plot_of(answer: Answer, measure: str | None) -> Piece:
    """Draw an answer, or say why there is nothing to draw."""
    measures = _measures(answer)
    if measure is not None and measure not in measures:
        names = ", ".join(measures) or "none"
        raise UsageError(f"The answer has no number {measure} with a margin. It has: {names}.")
    drawn = chart_of(answer, measure)
    if not drawn:
        raise UsageError(
            "A chart needs a number with a margin, one or two columns that name the rows, and at least two rows; "
            f"at most {MOST_BARS} bars, or {MOST_SERIES} lines."
        )
    return Piece(drawn)


def chart_of(answer: Answer, measure: str | None = None) -> str:
    """Draw one measure, or nothing where keys and rows fit no chart."""
    measures = _measures(answer)
    keys = [name for name in answer.table.column_names if name not in measures]
    if not measures or len(keys) not in (1, 2):
        return ""
    name = measures[0] if measure is None else measure
    time = next((key for key in keys if _is_time(answer, key)), None)
    first = keys[0] if time is None else time
    series = next((key for key in keys if key != first), None)
    points = _points(answer, name, first, series)
    kinds = list(dict.fromkeys(point.series for point in points))
    if len(points) < 2 or len(kinds) > MOST_SERIES:
        return ""
    if time is not None:
        return blocks.figure(
            name, _lines(first, name, points, kinds), note="with its 95 % margin as a band"
        )
    if len(points) > MOST_BARS:
        return ""
    return blocks.figure(name, _bars(name, points, kinds), note="with its 95 % margin as a line")


def _measures(answer: Answer) -> list[str]:
    margins = zip(answer.table.column_names, answer.margins.columns, strict=True)
    return [name for name, column in margins if column.null_count < len(column)]


def _is_time(answer: Answer, key: str) -> bool:
    values = answer.table.column(key).to_pylist()
    return bool(values) and all(isinstance(value, date) for value in values)


def _points(answer: Answer, name: str, key: str, series: str | None) -> list[Point]:
    places = answer.table.column_names
    count = answer.table.num_rows
    columns = (
        answer.table.column(key).to_pylist(),
        [None] * count if series is None else answer.table.column(series).to_pylist(),
        answer.table.column(name).to_pylist(),
        answer.margins.column(places.index(name)).to_pylist(),
    )
    return [
        Point(key=row[0], series=_text(row[1]), value=float(row[2]), margin=float(row[3]))
        for row in zip(*columns, strict=True)
        if row[2] is not None and row[3] is not None
    ]


def _text(value: Any) -> str:
    return "" if value is None else cell(value, None)


def _lines(key: str, name: str, points: Sequence[Point], kinds: Sequence[str]) -> str:
    curves = []
    for color, kind in enumerate(kinds):
        line = sorted(
            (point for point in points if point.series == kind), key=lambda point: point.key
        )
        curves.append(
            Curve(
                across=[axis.place_of(point.key) for point in line],
                up=[point.value for point in line],
                lows=[point.low for point in line],
                highs=[point.high for point in line],
                name=kind,
                color=color,
            )
        )
    moments = [point.key for point in points]
    across = axis.days(min(moments), max(moments), title=key)
    return plot(curves, across=across, up=_scale(name, points), label=f"{name} by {key}")


def _bars(name: str, points: Sequence[Point], kinds: Sequence[str]) -> str:
    """Draw one bar a row; where a second key tells bars apart, write its value behind the first."""
    names = [" · ".join(filter(None, (cell(point.key, None), point.series))) for point in points]
    one = Series(
        values=[point.value for point in points],
        ranges=[(point.low, point.high) for point in points],
        texts=[cell(point.value, point.margin) for point in points],
        pale=[abs(point.value) <= point.margin for point in points],
    )
    return bars(names, [one], axis=_scale(name, points))


def _scale(name: str, points: Sequence[Point]) -> axis.Axis:
    low = min(point.low for point in points)
    high = max(point.high for point in points)
    return axis.numbers(min(0.0, low), max(0.0, high), title=name)
