"""Translate row-wise expressions: from the analyst's syntax tree to a `Value`, an expression of our
own with a public domain.

Only total functions pass: no expression may fail on data. `TRANSLATORS` maps each kind of node that
is understood to the function that translates it; a node that is not in it is refused, so that no
part of a question is ever ignored.
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
    """Resolves names where an expression stands."""

    def column(self, node: exp.Column) -> Value: ...

    def kind(self, node: exp.Column) -> Kind | None:
        """Return a column's type in Postgres, as far as it matters."""
        ...

    def special(self, node: exp.Expression) -> Value | None:
        """Return the value of what only the place of an expression explains: subqueries, aggregates
        per person, windows.
        """
        ...


def translate(node: exp.Expression, scope: Scope) -> Value:
    """Return the value of a row-wise expression, or `Rejected`."""
    found = scope.special(node)
    if found is not None:
        return found
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
            raise reject(node, reason.format(node=show(node)), hint)
    raise reject(
        node,
        f"{show(node)} is not understood on rows.",
        "docs/language.md lists the functions and operators.",
    )


# --- leaves ---------------------------------------------------------------------------------------


def _literal(node: exp.Literal, scope: Scope) -> Value:
    if node.is_string:
        return text_constant(node.this)
    mantissa, _, exponent = node.this.lower().partition("e")
    try:  # the exponent is looked at first: 1e999999999 must not be computed
        value = (
            Fraction(node.this) if abs(int(exponent or 0)) <= 30 and len(mantissa) <= 60 else None
        )
    except ValueError:
        raise reject(
            node, f"{show(node)} is not a number that can be read.", "Write it in digits."
        ) from None
    if value is None or abs(value.numerator) >= numbers.LARGEST or value.denominator > 10**18:
        raise reject(node, f"{show(node)} has too many digits.", "Write a shorter number.")
    return number(value)


def text_constant(text: str) -> Value:
    return Value(expression=Constant(0), domain=Category(values=(text,)), constant=True)


# --- operators ------------------------------------------------------------------------------------


def _arithmetic(operation: Callable[[Value, Value, exp.Expression], Value]) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        left, right = translate(node.this, scope), translate(node.expression, scope)
        return operation(as_number(left, node.this), as_number(right, node.expression), node)

    return apply


def _plus_or_minus(sign: int) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        if isinstance(node.expression, exp.Interval) or isinstance(node.this, exp.Interval):
            return shifts.shift_by_interval(node, scope, sign, translate)
        left, right = translate(node.this, scope), translate(node.expression, scope)
        if isinstance(left.domain, Day | Moment) or isinstance(right.domain, Day | Moment):
            return shifts.add(left, right, sign, node)
        return numbers.add(
            as_number(left, node.this), as_number(right, node.expression), node, sign=sign
        )

    return apply


def _compare(operator: str) -> Translator:
    def apply(node: exp.Expression, scope: Scope) -> Value:
        left, right = translate(node.this, scope), translate(node.expression, scope)
        _check_clock(node, left, right)
        return comparison(operator, left, right, node)

    return apply


def _check_clock(node: exp.Expression, *values: Value) -> None:
    """Refuse NOW() beside moments: it is known to the day. Beside days it is past midnight,
    whatever the hour.
    """
    clock = next((part for part in node.walk() if "clock" in part.meta), None)
    if clock is not None:
        days = [
            value for value in values if isinstance(value.domain, Day) and not value.domain.stamp
        ]
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
    value, low, high = (
        translate(part, scope) for part in (node.this, node.args["low"], node.args["high"])
    )
    _check_clock(node, value, low, high)
    above, below = comparison(">=", value, low, node), comparison("<=", value, high, node)
    return flag(call("AND", above.expression, below.expression), above, below)


def _in(node: exp.In, scope: Scope) -> Value:
    if (
        node.args.get("query")
        or node.args.get("unnest")
        or node.args.get("field")
        or not node.expressions
    ):
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
        left, right = translate(node.this, scope), translate(node.expression, scope)
        same = comparison("=", left, right, node)
        both = call("AND", left.expression.is_null, right.expression.is_null)
        found = call("OR", call("coalesce", same.expression, False), both)
        return Value(expression=found if equal else call("NOT", found), domain=Flag())

    return apply


def _like(node: exp.Expression, scope: Scope) -> Value:
    """x LIKE 'Ka%', x ILIKE 'ka%', x LIKE '10!%' ESCAPE '!'."""
    inner, sign = (node.this, node.expression.name) if isinstance(node, exp.Escape) else (node, "")
    if not isinstance(inner, exp.Like | exp.ILike):
        raise reject(node, f"{show(node)} is not answered.", "ESCAPE goes with LIKE.")
    check_arguments(inner)
    found = patterns.like(
        translate(inner.this, scope), inner, ignore_case=isinstance(inner, exp.ILike), escape=sign
    )
    return flag(call("NOT", found.expression), found) if inner.args.get("negate") else found


# --- functions ------------------------------------------------------------------------------------


def _with_parts(apply: choices.Choice) -> Translator:
    """Return a translator that reads the parts of a node in its own scope."""
    return lambda node, scope: apply(node, lambda part: translate(part, scope))


def _numeric_function(apply: Callable[[Value, exp.Expression], Value]) -> Translator:
    return lambda node, scope: apply(as_number(translate(node.this, scope), node), node)


def _real(name: str, function: Callable[[float], float], *, above: float = -math.inf) -> Translator:
    """Return a function of real numbers above a point at which it is not defined itself."""
    return _numeric_function(
        lambda value, node: numbers.real_function(
            value,
            node,
            engine=lambda x: call(name, x),
            function=function,
            above=above,
            strict=math.isfinite(above),
        )
    )


def _round_to(how: numbers.Rounding) -> Translator:
    """ROUND(x, 2), and TRUNC(x, -4), which goes toward zero."""

    def apply(node: exp.Expression, scope: Scope) -> Value:
        digits, name = 0, "ROUND" if how == "nearest" else "TRUNC"
        if node.args.get("decimals") is not None:
            places = translate(node.args["decimals"], scope)
            constant = places.constant or isinstance(node.args["decimals"], exp.Neg)
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
        return numbers.round_to_step(
            as_number(translate(node.this, scope), node), Fraction(10) ** -digits, how, node
        )

    return apply


def _power(node: exp.Pow, scope: Scope) -> Value:
    base, exponent = as_number(translate(node.this, scope), node), translate(node.expression, scope)
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
    """LOG(x) is to base 10, LOG(b, x) to base b, as in the engine."""
    base, argument = (
        (None, node.this)
        if node.expression is None
        else (translate(node.this, scope), node.expression)
    )
    value = as_number(translate(argument, scope), node)
    radix = 10.0
    if base is not None:
        if (
            not base.constant
            or not isinstance(base.domain, Number)
            or base.domain.lo <= 0
            or base.domain.at(base.domain.lo) == 1
        ):
            raise reject(
                node, "LOG needs a constant base above zero other than 1.", "Write LOG(x) or LN(x)."
            )
        radix = float(base.domain.at(base.domain.lo))
    return numbers.real_function(
        value,
        node,
        engine=lambda x: call("ln", x) / math.log(radix),
        function=lambda x: math.log(x) / math.log(radix),
        above=0.0,
        strict=True,
    )


def _anonymous(node: exp.Anonymous, scope: Scope) -> Value:
    name = node.name.lower()
    arguments = node.expressions
    if name == "clamp" and len(arguments) == 3:
        value, lo, hi = (as_number(translate(part, scope), part) for part in arguments)
        return numbers.clamp(value, lo, hi, node)
    if name in dates.PARTS and len(arguments) == 1:
        return dates.part(translate(arguments[0], scope), name, node)
    if name == "timestampdiff" and len(arguments) == 3 and arguments[0].is_string:
        start, end = (translate(part, scope) for part in arguments[1:])
        return dates.units_between(arguments[0].name, start, end, node)
    if name == "width_bucket" and len(arguments) == 4:
        return _bucket(node, scope)
    for kinds, reason, hint in REFUSED:
        if name in other_names(kinds):
            raise reject(node, reason.format(node=show(node)), hint)
    raise reject(
        node,
        f"{node.name.upper()} is not a function that can be answered.",
        NEAREST.get(name, "docs/language.md lists the functions."),
    )


def _bucket(node: exp.Anonymous, scope: Scope) -> Value:
    value, *rest = (as_number(translate(part, scope), part) for part in node.expressions)
    lo, hi, count = (numbers.grid(each).at(numbers.grid(each).lo) for each in rest)
    if (
        not all(each.constant for each in rest)
        or lo >= hi
        or count.denominator != 1
        or not 1 <= count <= 10_000
    ):
        wanted = "two ends and a number of buckets, written out, the smaller end first"
        raise reject(node, f"{show(node)} needs {wanted}.", "Write WIDTH_BUCKET(age, 0, 100, 10).")
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
