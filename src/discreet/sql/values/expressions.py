"""Translate a row-wise expression: from the analyst's syntax tree to a `Value`, an expression of our
own with a public domain.

We translate total functions only: no expression may fail on data. `TRANSLATORS` has the translator
of each kind of node; we refuse every other kind, so that no part of a question is ever ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from sqlglot import exp

from discreet.algebra import Constant, call
from discreet.sql.text.parse import check_weight, reject, show
from discreet.sql.text.postgres import Kind, resolve
from discreet.sql.values import choices, numbers, patterns, strings
from discreet.sql.values.arguments import check_arguments
from discreet.sql.values.casts import cast
from discreet.sql.values.refusals import NEAREST, REFUSED, other_names
from discreet.sql.values.time import dates, shifts
from discreet.sql.values.unify import (
    as_flag,
    as_number,
    comparison,
    flag,
)
from discreet.sql.values.value import (
    NULL,
    Category,
    Day,
    Flag,
    Missing,
    Moment,
    Number,
    Value,
    careful,
    number,
)


class Scope(Protocol):
    """The meaning of names at the place of an expression."""

    def column(self, node: exp.Column) -> Value: ...

    def kind(self, node: exp.Column) -> Kind | None:
        """Return a column's type in Postgres, if the meaning depends on it."""
        ...

    def special(self, node: exp.Expression) -> Value | None:
        """Return the value of a node that only this place can translate: a subquery, an aggregate
        per person, a window. Return None for other nodes.
        """
        ...


def translate(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of a row-wise expression; raise `Rejected` if we do not answer it."""
    special = scope.special(node)
    if special is not None:
        return special
    node = resolve(node, scope.kind)
    translator = TRANSLATORS.get(type(node))
    if translator is not None:
        check_arguments(node)
        value = translator(node, scope)
        check_weight(value.expression.weight)
        leaf = value.constant or isinstance(node, exp.Column | exp.Paren | exp.Boolean | exp.Null)
        return value if leaf else replace(value, expression=careful(value.expression))
    if isinstance(node, exp.Tuple):
        raise reject(
            node, f"{show(node)} is several values.", "Compare column by column: a = 1 AND b = 2."
        )
    if isinstance(node, exp.AggFunc):
        raise reject(
            node,
            f"{show(node)} is an aggregate and stands where each row is looked at by itself.",
            "Put conditions on aggregates into HAVING.",
        )
    for kinds, reason, hint in REFUSED:
        if isinstance(node, kinds):
            this = show(node.this) if isinstance(node.this, exp.Column) else "name"
            raise reject(node, reason.format(node=show(node)), hint.replace("{this}", this))
    raise reject(
        node,
        f"{show(node)} is not understood on rows.",
        "docs/language.md lists the functions and operators.",
    )


# --- leaves ---------------------------------------------------------------------------------------


def _literal(node: exp.Literal, scope: Scope) -> Value:
    if node.is_string:
        return text_constant(node.this)
    try:
        value = _parse_number(node.this)
    except ValueError:
        raise reject(
            node, f"{show(node)} is not a number that can be read.", "Write it in digits."
        ) from None
    if value is None or abs(value.numerator) >= numbers.LARGEST or value.denominator > 10**18:
        raise reject(node, f"{show(node)} has too many digits.", "Write a shorter number.")
    return number(value)


def _parse_number(text: str) -> Fraction | None:
    """Return the number that a text writes; None if it is too long to compute, as 1e999999999 is."""
    mantissa, _, exponent = text.lower().partition("e")
    short = abs(int(exponent or 0)) <= 30 and len(mantissa) <= 60
    return Fraction(text) if short else None


def text_constant(text: str) -> Value:
    """Return a text constant: a category of one value."""
    return Value(expression=Constant(0), domain=Category(values=(text,)), constant=True)


# --- operators ------------------------------------------------------------------------------------


def _arithmetic(operation: Callable[[Value, Value, exp.Expression], Value]) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        left = translate(node.this, scope)
        right = translate(node.expression, scope)
        return operation(as_number(left, node.this), as_number(right, node.expression), node)

    return apply


def _plus_or_minus(sign: int) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return shifts.shift_by_interval(node, scope, sign, translate)
        left = translate(node.this, scope)
        right = translate(node.expression, scope)
        if isinstance(left.domain, Day | Moment) or isinstance(right.domain, Day | Moment):
            return shifts.add(left, right, sign, node)
        return numbers.add(
            as_number(left, node.this), as_number(right, node.expression), node, sign=sign
        )

    return apply


def _compare(operator: str) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        left = translate(node.this, scope)
        right = translate(node.expression, scope)
        _check_clock(node, left, right)
        return comparison(operator, left, right, node)

    return apply


def _check_clock(node: exp.Expression, *values: Value) -> None:
    """Refuse a comparison of NOW() with timestamps, because we know NOW() to the day only.

    A comparison with days does not depend on the hour: NOW() is past the midnight of its day.
    """
    clock = next((part for part in node.walk() if "clock" in part.meta), None)
    if clock is None:
        return
    domains = [value.domain for value in values]
    days = [domain for domain in domains if isinstance(domain, Day) and not domain.stamp]
    if len(days) < len(values) - 1:
        raise reject(
            node,
            f"{show(clock)} is known to the day, and an answer must be repeatable.",
            "Write CURRENT_DATE, or DATE_TRUNC('day', NOW()).",
        )


def _and_or(operator: str) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        parts = [as_flag(translate(part, scope), part) for part in node.flatten()]
        return flag(call(operator, *(part.expression for part in parts)), *parts)

    return apply


def _not(node: exp.Not, scope: Scope) -> Value:
    part = as_flag(translate(node.this, scope), node.this)
    return flag(call("NOT", part.expression), part)


def _between(node: exp.Between, scope: Scope) -> Value:
    if node.args.get("symmetric"):
        raise reject(
            node,
            "BETWEEN SYMMETRIC is not answered.",
            "Write BETWEEN with the smaller bound first.",
        )
    value = translate(node.this, scope)
    low = translate(node.args["low"], scope)
    high = translate(node.args["high"], scope)
    _check_clock(node, value, low, high)
    above = comparison(">=", value, low, node)
    below = comparison("<=", value, high, node)
    return flag(call("AND", above.expression, below.expression), above, below)


def _in(node: exp.In, scope: Scope) -> Value:
    other_forms = [node.args.get(name) for name in ("query", "unnest", "field")]
    if any(other_forms) or not node.expressions:
        raise reject(
            node,
            "this form of IN is not answered.",
            "Write a list of constants, or owner IN (SELECT owner FROM ...).",
        )
    value = translate(node.this, scope)
    check_weight(value.expression.weight * len(node.expressions))
    parts = [comparison("=", value, translate(item, scope), node) for item in node.expressions]
    return flag(call("OR", *(part.expression for part in parts)), *parts)


def _is(node: exp.Is, scope: Scope) -> Value:
    value = translate(node.this, scope)
    match node.expression:
        case exp.Null():
            return Value(expression=value.expression.is_null, domain=Flag())
        case exp.Boolean(this=truth):
            name = "is true" if truth else "is false"
            return Value(expression=call(name, as_flag(value, node).expression), domain=Flag())
    raise reject(node, f"{show(node)} is not answered.", "IS goes with NULL, TRUE or FALSE.")


def _distinct_from(equal: bool) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        left = translate(node.this, scope)
        right = translate(node.expression, scope)
        same = comparison("=", left, right, node)
        both_null = call("AND", left.expression.is_null, right.expression.is_null)
        alike = call("OR", call("coalesce", same.expression, False), both_null)
        return Value(expression=alike if equal else call("NOT", alike), domain=Flag())

    return apply


def _like(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of x LIKE 'Ka%', x ILIKE 'ka%' or x LIKE '10!%' ESCAPE '!'."""
    inner = node
    escape = ""
    if isinstance(node, exp.Escape):
        inner = node.this
        escape = node.expression.name
    if not isinstance(inner, exp.Like | exp.ILike):
        raise reject(node, f"{show(node)} is not answered.", "ESCAPE goes with LIKE.")
    check_arguments(inner)
    value = translate(inner.this, scope)
    ignore_case = isinstance(inner, exp.ILike)
    condition = patterns.like(value, inner, ignore_case=ignore_case, escape=escape)
    if inner.args.get("negate"):
        return flag(call("NOT", condition.expression), condition)
    return condition


# --- functions ------------------------------------------------------------------------------------


def _with_parts(apply: choices.Choice) -> Translator:
    """Return a translator that reads the parts of a node in the scope of the node."""
    return lambda node, scope: apply(node, lambda part: translate(part, scope))


def _numeric_function(apply: Callable[[Value, exp.Expression], Value]) -> Translator:
    return lambda node, scope: apply(as_number(translate(node.this, scope), node), node)


def _real(name: str, function: Callable[[float], float], *, above: float = -math.inf) -> Translator:
    """Return the translator of a function of real numbers that is defined above a point only."""

    def apply(value: Value, node: exp.Expression) -> Value:
        return numbers.real_function(
            value,
            node,
            engine=lambda x: call(name, x),
            function=function,
            above=above,
            strict=math.isfinite(above),
        )

    return _numeric_function(apply)


def _round_to(how: numbers.Rounding) -> Translator:
    """Return the translator of ROUND(x, 2), or of TRUNC(x, -4), which rounds toward zero."""

    def apply(node: exp.Expression, scope: Scope) -> Value:
        digits = 0
        name = "ROUND" if how == "nearest" else "TRUNC"
        decimals = node.args.get("decimals")
        if decimals is not None:
            places = translate(decimals, scope)
            constant = places.constant or isinstance(decimals, exp.Neg)
            if (
                not constant
                or not isinstance(places.domain, Number)
                or places.domain.step.denominator != 1
            ):
                raise reject(
                    node, f"{name} needs a constant number of digits.", f"Write {name}(x, 2)."
                )
            digits = int(places.domain.at(places.domain.lo))
        if abs(digits) > 12:
            raise reject(
                node, f"{name} to more than 12 digits is not answered.", f"Write {name}(x, 2)."
            )
        value = as_number(translate(node.this, scope), node)
        return numbers.round_to_step(value, Fraction(10) ** -digits, how, node)

    return apply


def _power(node: exp.Pow, scope: Scope) -> Value:
    base = as_number(translate(node.this, scope), node)
    exponent = translate(node.expression, scope)
    if not exponent.constant or not isinstance(exponent.domain, Number):
        raise reject(node, "POWER needs a constant exponent.", "Write POWER(x, 2).")
    power = exponent.domain.at(exponent.domain.lo)
    if power == Fraction(1, 2):
        return _square_root(base, node)
    if power.denominator != 1 or not 1 <= power <= 8:
        raise reject(
            node,
            "POWER is answered for whole exponents from 1 to 8.",
            "Write POWER(x, 2), or SQRT(x).",
        )
    result = base
    for _ in range(int(power) - 1):
        result = numbers.multiply(result, base, node)
    return result


def _square_root(value: Value, node: exp.Expression) -> Value:
    return numbers.real_function(
        value, node, engine=lambda x: call("sqrt", x), function=math.sqrt, above=0.0, strict=False
    )


def _logarithm(node: exp.Log, scope: Scope) -> Value:
    """Return LOG(x), to base 10, or LOG(b, x), to base b, as the engine computes them."""
    if node.expression is None:
        value = as_number(translate(node.this, scope), node)
        radix = 10.0
    else:
        base = translate(node.this, scope)
        value = as_number(translate(node.expression, scope), node)
        radix = _radix(base, node)
    log_radix = math.log(radix)
    return numbers.real_function(
        value,
        node,
        engine=lambda x: call("ln", x) / log_radix,
        function=lambda x: math.log(x) / log_radix,
        above=0.0,
        strict=True,
    )


def _radix(base: Value, node: exp.Log) -> float:
    """Return the constant base of a logarithm; refuse any other."""
    if base.constant and isinstance(base.domain, Number):
        radix = base.domain.at(base.domain.lo)
        if radix > 0 and radix != 1:
            return float(radix)
    raise reject(
        node, "LOG needs a constant base above zero other than 1.", "Write LOG(x) or LN(x)."
    )


def _anonymous(node: exp.Anonymous, scope: Scope) -> Value:
    name = node.name.lower()
    arguments = node.expressions
    if name == "clamp" and len(arguments) == 3:
        value, lo, hi = [as_number(translate(part, scope), part) for part in arguments]
        return numbers.clamp(value, lo, hi, node)
    if name in dates.PARTS and len(arguments) == 1:
        return dates.part(translate(arguments[0], scope), name, node)
    if name == "timestampdiff" and len(arguments) == 3 and arguments[0].is_string:
        start = translate(arguments[1], scope)
        end = translate(arguments[2], scope)
        return dates.units_between(arguments[0].name, start, end, node)
    if name == "width_bucket" and len(arguments) == 4:
        return _bucket(node, scope)
    for kinds, reason, hint in REFUSED:
        if name in other_names(kinds):
            raise reject(node, reason.format(node=show(node)), hint.replace("{this}", "name"))
    raise reject(
        node,
        f"{node.name.upper()} is not a function that can be answered.",
        NEAREST.get(name, "docs/language.md lists the functions."),
    )


def _bucket(node: exp.Anonymous, scope: Scope) -> Value:
    value, *constants = [as_number(translate(part, scope), part) for part in node.expressions]
    grids = [numbers.grid(constant) for constant in constants]
    lo, hi, count = [grid.at(grid.lo) for grid in grids]
    written = all(constant.constant for constant in constants)
    whole = count.denominator == 1 and 1 <= count <= 10_000
    if not written or lo >= hi or not whole:
        need = "two ends and a number of buckets, written out, the smaller end first"
        raise reject(node, f"{show(node)} needs {need}.", "Write WIDTH_BUCKET(age, 0, 100, 10).")
    return numbers.bucket(value, (lo, hi), int(count), node)


Translator = Callable[[exp.Expression, Scope], Value]

TRANSLATORS: dict[type[exp.Expression], Translator] = {
    exp.Column: lambda node, scope: scope.column(node),
    exp.Paren: lambda node, scope: translate(node.this, scope),
    exp.Literal: _literal,
    exp.Null: lambda node, scope: Value(expression=NULL, domain=Missing(), nullable=True),
    exp.Boolean: lambda node, scope: Value(expression=Constant(bool(node.this)), domain=Flag()),
    exp.Add: _plus_or_minus(1),
    exp.Sub: _plus_or_minus(-1),
    exp.Mul: _arithmetic(numbers.multiply),
    exp.Div: _arithmetic(numbers.divide),
    exp.IntDiv: _arithmetic(numbers.whole_quotient),
    exp.Mod: _arithmetic(numbers.remainder),
    exp.Neg: lambda node, scope: numbers.negate(as_number(translate(node.this, scope), node)),
    exp.EQ: _compare("="),
    exp.NEQ: _compare("<>"),
    exp.LT: _compare("<"),
    exp.LTE: _compare("<="),
    exp.GT: _compare(">"),
    exp.GTE: _compare(">="),
    exp.And: _and_or("AND"),
    exp.Or: _and_or("OR"),
    exp.Not: _not,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(True),
    exp.NullSafeNEQ: _distinct_from(False),
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _like,
    **{kind: _with_parts(apply) for kind, apply in choices.FUNCTIONS.items()},
    exp.Abs: _numeric_function(lambda value, node: numbers.absolute(value)),
    exp.Sign: _numeric_function(lambda value, node: numbers.sign(value)),
    exp.Floor: _numeric_function(
        lambda value, node: numbers.round_to_step(value, Fraction(1), "down", node)
    ),
    exp.Ceil: _numeric_function(
        lambda value, node: numbers.round_to_step(value, Fraction(1), "up", node)
    ),
    exp.Round: _round_to("nearest"),
    exp.Trunc: _round_to("toward_zero"),
    exp.Pow: _power,
    exp.Sqrt: _numeric_function(_square_root),
    exp.Cbrt: _real("cbrt", math.cbrt),
    exp.Ln: _real("ln", math.log, above=0.0),
    exp.Log: _logarithm,
    exp.Pi: lambda node, scope: number(Fraction(str(math.pi))),
    exp.Exp: _real("exp", math.exp),
    exp.Cast: lambda node, scope: cast(translate(node.this, scope), node),
    exp.TryCast: lambda node, scope: cast(translate(node.this, scope), node),
    exp.Anonymous: _anonymous,
    **{
        kind: (lambda node, scope: strings.function(node, scope, translate))
        for kind in strings.FUNCTIONS
    },
    **{
        kind: (lambda node, scope: dates.function(node, scope, translate))
        for kind in dates.FUNCTIONS
    },
}
