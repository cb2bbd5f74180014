"""Write a value as text, as the engine does: as a category if it has few values."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Cast, Expression, call, case
from discreet.sql.text.parse import check_labels, reject, show
from discreet.sql.values import numbers
from discreet.sql.values.categories import MAX_CODES, relabel
from discreet.sql.values.value import Category, Day, Flag, Moment, Number, Text, Value, widen


def as_text(value: Value, node: exp.Expression, *, written: exp.Expression) -> Value:
    """Return a value as text: as a category if it has few values.

    `written` is the analyst's expression; it decides how a number shows its digits.
    """
    match value.domain:
        case Text():
            return value
        case Category(values=values):
            return Value(
                expression=value.expression,
                domain=Category(values=tuple(map(str, values))),
                nullable=value.nullable,
                constant=value.constant,
            )
        case Number() as grid if grid.size <= MAX_CODES:
            check_labels(grid.size)
            digits = None if numbers.is_float(written) else _digits(grid.step)
            labels = tuple(_show(grid.at(units), digits) for units in range(grid.lo, grid.hi + 1))
            code = Cast(widen(value.expression, grid.largest) - grid.lo, "BIGINT")
            codes = Category(values=labels)
            # Two numbers that the engine writes alike are one text.
            return relabel(
                Value(expression=code, domain=codes, nullable=value.nullable),
                labels,
            )
        case Flag():
            return Value(
                expression=case((value.expression, 1), (call("NOT", value.expression), 0)),
                domain=Category(values=("false", "true")),
                nullable=value.nullable,
            )
        case Day() as days if days.size <= MAX_CODES:
            check_labels(days.size)
            is_week = days.grain == "week"
            unit = "day" if is_week else days.grain
            place: Expression = call("date_diff", unit, days.lo, value.expression)
            if is_week:
                place = place // 7
            places = Category(values=tuple(range(days.size)))
            clock = " 00:00:00" if days.stamp else ""
            labels = tuple(days.at(index).isoformat() + clock for index in range(days.size))
            return relabel(Value(expression=place, domain=places, nullable=value.nullable), labels)
        case Day() | Moment():
            return Value(
                expression=Cast(value.expression, "VARCHAR"),
                domain=Text(letters=30),  # 2024-12-31 23:59:59.999999
                nullable=value.nullable,
            )
    raise reject(node, f"{show(node)} has too many values to become text.", "Round it first.")


def _digits(step: Fraction) -> int | None:
    """Return how many decimals the numbers of a grid need; None if decimals cannot write them."""
    for places in range(19):
        if (step * 10**places).denominator == 1:
            return places
    return None


def _show(value: Fraction, digits: int | None) -> str:
    """Write a number as the engine does: a decimal with the digits of its type, a float with those
    it needs.
    """
    if digits is None:
        return f"{float(value)!r}"
    decimal = Decimal(int(value * 10**digits)).scaleb(-digits)
    return f"{decimal:f}"
