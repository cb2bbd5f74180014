"""Conditions on row numbers within each person, which limit a person's rows: row number = 1."""

from __future__ import annotations

from sqlglot import exp

from discreet.algebra import Expression
from discreet.errors import Rejected
from discreet.sql.rows.relation import Names
from discreet.sql.text.parse import whole


def numbers_left(part: exp.Expression, names: Names) -> tuple[Expression, int] | None:
    """Return the column of a condition `row number = 1`, `<= k` or `< k`, and how many of its numbers
    the condition leaves; None for other conditions.
    """
    if type(part) not in (exp.EQ, exp.LTE, exp.LT) or not isinstance(part.this, exp.Column):
        return None
    limit = whole(part.expression)
    if limit is None:
        return None
    try:
        value = names.column(part.this)
    except Rejected:  # a column of a table that is joined later
        return None
    if not value.numbering:
        return None
    if isinstance(part, exp.EQ):
        return value.expression, 1
    last = limit - 1 if isinstance(part, exp.LT) else limit
    return value.expression, max(last, 1)
