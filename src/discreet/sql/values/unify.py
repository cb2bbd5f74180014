"""Bring values of several kinds to one: as numbers, as conditions, in a common domain; and compare
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, call, case
from discreet.sql.text.parse import reject, show
from discreet.sql.values import categories, numbers
from discreet.sql.values.time import days
from discreet.sql.values.value import (
    NO_FLAG,
    NO_NUMBER,
    NULL,
    Category,
    Day,
    Flag,
    Missing,
    Moment,
    Number,
    Opaque,
    Text,
    Value,
    number,
)


def flag(condition: Expression, *parts: Value) -> Value:
    return Value(expression=condition, domain=Flag(), nullable=any(part.nullable for part in parts))


def flag_as_number(condition: Expression) -> Expression:
    return case((condition, 1), (call("NOT", condition), 0))


def as_number(value: Value, node: exp.Expression) -> Value:
    """Return the value as a number; a flag as 1 or 0, a category by the numbers of its labels."""
    match value.domain:
        case Number():
            return value
        case Flag():
            bounds = Number(step=Fraction(1), lo=0, hi=1)
            return Value(
                expression=flag_as_number(value.expression), domain=bounds, nullable=value.nullable
            )
        case Category(values=values):
            return categories.numeric_codes(value, values, node)
        case Missing():
            return Value(
                expression=NO_NUMBER, domain=Number(step=Fraction(1), lo=0, hi=0), nullable=True
            )
    raise reject(
        node,
        f"{show(node)} is not a number.",
        "Only columns that the policy declares as integer or decimal can be computed with.",
    )


def as_flag(value: Value, node: exp.Expression) -> Value:
    match value.domain:
        case Flag():
            return value
        case Missing():
            return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
        case Number():
            return flag(call("<>", value.expression, 0), value)
    raise reject(node, f"{show(node)} is not a condition.", "Compare it with something.")


def unify(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """Return the same values in one common domain, for CASE, COALESCE, comparisons and the like."""
    others = [value for value in values if not isinstance(value.domain, Missing)]
    if not others:
        return list(values)
    kinds = {type(value.domain) for value in others}
    if Opaque in kinds:
        raise reject(
            node,
            "an identifier cannot be computed with.",
            "It can be counted: COUNT(DISTINCT ...).",
        )
    if kinds & {Day, Moment}:
        return days.unify(values, node)
    if kinds == {Flag}:
        return [as_flag(value, node) for value in values]
    if kinds <= {Category, Text}:
        return categories.unify(values, node)
    if kinds <= {Number, Flag} or (
        kinds <= {Number, Flag, Category} and all(_numeric(value) for value in others)
    ):
        return _unify_numbers(values, node)
    raise reject(
        node, f"{show(node)} mixes kinds of values.", "Compare and combine values of one kind only."
    )


def _unify_numbers(values: Sequence[Value], node: exp.Expression) -> list[Value]:
    """Return values as numbers of one step; the literal NULL stays as it is."""

    def missing(value: Value) -> bool:
        return isinstance(value.domain, Missing)

    amounts = [value if missing(value) else as_number(value, node) for value in values]
    steps = [numbers.grid(amount).step for amount in amounts if not missing(amount)]
    step = numbers.common_step(*steps)
    return [
        amount if missing(amount) else numbers.on_step(amount, step, node) for amount in amounts
    ]


def _numeric(value: Value) -> bool:
    return not isinstance(value.domain, Category) or categories.all_numeric(value.domain.values)


def join_domains(
    values: Sequence[Value],
) -> Number | Category | Flag | Day | Moment | Text | Missing:
    """Return the smallest domain that holds all of several unified values."""
    domains = [value.domain for value in values if not isinstance(value.domain, Missing)]
    if not domains:
        return Missing()
    first = domains[0]
    if isinstance(first, Number):
        grids = [domain for domain in domains if isinstance(domain, Number)]
        lo = min(grid.lo for grid in grids)
        hi = max(grid.hi for grid in grids)
        return Number(step=first.step, lo=lo, hi=hi)
    if isinstance(first, Day):
        return days.join_days([domain for domain in domains if isinstance(domain, Day)])
    if isinstance(first, Moment):
        return days.join_moments([domain for domain in domains if isinstance(domain, Moment)])
    if isinstance(first, Text):
        letters = [domain.letters for domain in domains if isinstance(domain, Text)]
        return Text(letters=max(letters))
    assert not isinstance(first, Opaque)
    return first


def among_others(value: Value) -> Expression:
    """Return the expression of a value beside the values that it was unified with: the literal NULL
    takes their type.
    """
    return NULL if isinstance(value.domain, Missing) else value.expression


def comparison(operator: str, left: Value, right: Value, node: exp.Expression) -> Value:
    """Return the condition `left operator right`."""
    if isinstance(left.domain, Opaque) or isinstance(right.domain, Opaque):
        return _compare_identifiers(operator, left, right, node)
    left, right = days.read_constants(left, right, node)
    left, right = _read_constants(left, right)
    if (
        isinstance(left.domain, Category)
        and isinstance(right.domain, Category)
        and (left.constant or right.constant)
    ):
        return categories.compare_codes(operator, left, right)
    a, b = unify((left, right), node)
    if isinstance(a.domain, Missing) or isinstance(b.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    if isinstance(a.domain, Category) and operator not in ("=", "<>"):
        a = categories.rank_by_text(a)
        b = categories.rank_by_text(b)
    return flag(call(operator, a.expression, b.expression), left, right)


def _read_constants(left: Value, right: Value) -> tuple[Value, Value]:
    """Read a text constant as a number or a flag if the other side is one: age > '30', smoker =
    'true'.
    """

    def read(value: Value, other: Value) -> Value:
        if not value.constant or not isinstance(value.domain, Category):
            return value
        text = str(value.domain.values[0]).strip()
        if isinstance(other.domain, Number) and categories.all_numeric(value.domain.values):
            return number(Fraction(text))
        if isinstance(other.domain, Flag) and text.lower() in _TRUTH:
            return Value(expression=Constant(_TRUTH[text.lower()]), domain=Flag())
        return value

    return read(left, right), read(right, left)


_TRUTH = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def _compare_identifiers(operator: str, left: Value, right: Value, node: exp.Expression) -> Value:
    """Compare identifiers for equality with a constant or with each other; refuse anything else."""
    # Privacy: a constant selects one person, and the noise hides one person. Two identifiers of one
    # row belong to one person.
    texts: list[Expression] = []
    for value in (left, right):
        if isinstance(value.domain, Opaque):
            texts.append(Cast(value.expression, "VARCHAR"))
        elif value.constant and isinstance(value.domain, Category | Number):
            domain = value.domain
            first = domain.values[0] if isinstance(domain, Category) else domain.at(domain.lo)
            texts.append(Constant(str(first)))
    if operator not in ("=", "<>") or len(texts) < 2:
        raise reject(
            node,
            f"{show(node)} does more with an identifier than compare it for equality.",
            "Owners are matched by a JOIN on the owner, or by IN (SELECT owner FROM ...).",
        )
    return Value(
        expression=call(operator, *texts), domain=Flag(), nullable=left.nullable or right.nullable
    )
