"""Place a value among the public values of its domain."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.algebra import (
    Cast,
    Column,
    Expression,
    Select,
    Source,
    Stage,
    call,
    case,
    conjuncts,
)
from discreet.sql.values.texts_left import texts_left


def texts_in_conditions(
    value: Expression, source: Source, where: Sequence[Expression]
) -> tuple[str, ...] | None:
    """Return the texts that conditions allow for a value, as x IN ('a', 'b') does, here or in a
    subquery; None if no condition lists them.
    """
    for condition in conjuncts(where):
        texts = texts_left(condition, value)
        if texts:
            return texts
    match source:
        case Stage(stage=stage, query=Select(source=inner, columns=columns, where=below)):
            definitions = dict(columns)
            if isinstance(value, Column) and value.stage == stage and value.name in definitions:
                return texts_in_conditions(definitions[value.name], inner, below)
    return None


def place_among(
    places: Sequence[Expression], sizes: Sequence[int], cells: Sequence[int]
) -> Expression:
    """Return the expression of a row's place among the listed groups; NULL for a row that is in none
    of them.
    """
    # Cast to BIGINT, because a product could overflow the type of the column.
    flat: Expression = Cast(places[0], "BIGINT")
    for place, size in zip(places[1:], sizes[1:], strict=True):
        flat = flat * size + place
    if cells[-1] - cells[0] + 1 == len(cells):
        return case((call("AND", flat >= cells[0], flat <= cells[-1]), flat - cells[0]))
    return call("list_position", call("list", *cells), flat) - 1
