"""Arithmetic on grid numbers: each operation returns an expression over integers, with exact bounds
of its result.

No operation fails on a row: division by zero is NULL, and we refuse an operation whose result could
overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from discreet.algebra import Cast, Constant, Expression, call, case
from discreet.sql.text.parse import reject, show
from discreet.sql.values.value import Number, Value, number, widen

# The most units of a number: the engine's 128-bit sums then hold 2^36 people's rows
# (requests.readings).
LARGEST = 2**90
QUOTIENT_STEP = Fraction(1, 1_000_000)  # the grid of a quotient of two columns
Rounding = Literal["down", "up", "nearest", "even", "toward_zero"]


def common_step(*steps: Fraction) -> Fraction:
    """Return the step of the coarsest grid that holds the grids of all these steps."""
    denominator = math.lcm(*(step.denominator for step in steps))
    numerators = [int(step * denominator) for step in steps]
    return Fraction(math.gcd(*numerators), denominator)


def on_step(value: Value, step: Fraction, node: exp.Expression) -> Value:
    """Return the same number counted in a finer step."""
    domain = grid(value)
    factor = domain.step / step
    assert factor.denominator == 1, "a grid can only be refined"
    lo = domain.lo * factor.numerator
    hi = domain.hi * factor.numerator
    check_size(lo, hi, node)
    check_step(step, node)
    check_size(0, factor.numerator, node)  # the factor is a number in the SQL as well
    if factor == 1:
        return value
    wide = widen(value.expression, max(abs(lo), abs(hi)))
    return Value(
        expression=Constant(lo) if value.constant else wide * factor.numerator,
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=value.nullable,
        constant=value.constant,
    )


def grid(value: Value) -> Number:
    assert isinstance(value.domain, Number)
    return value.domain


def check_size(lo: int, hi: int, node: exp.Expression) -> None:
    if max(abs(lo), abs(hi)) >= LARGEST:
        raise reject(
            node,
            f"{show(node)} can become too large to be added up exactly.",
            "Scale it down, or CLAMP its parts.",
        )


def check_step(step: Fraction, node: exp.Expression) -> None:
    check_size(-step.numerator, step.denominator, node)


def add(left: Value, right: Value, node: exp.Expression, *, sign: int = 1) -> Value:
    step = common_step(grid(left).step, grid(right).step)
    a = on_step(left, step, node)
    b = on_step(right, step, node)
    lows = grid(a)
    highs = grid(b)
    ends = sorted((sign * highs.lo, sign * highs.hi))
    lo = lows.lo + ends[0]
    hi = lows.hi + ends[1]
    check_size(lo, hi, node)
    bound = max(abs(lo), abs(hi), lows.largest, highs.largest)
    x = widen(a.expression, bound)
    y = widen(b.expression, bound)
    return Value(
        expression=x + y if sign > 0 else x - y,
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=left.nullable or right.nullable,
    )


def negate(value: Value) -> Value:
    domain = grid(value)
    wide = widen(value.expression, domain.largest)
    return Value(
        expression=Constant(-domain.lo) if value.constant else -wide,
        domain=Number(step=domain.step, lo=-domain.hi, hi=-domain.lo),
        nullable=value.nullable,
        constant=value.constant,
    )


def multiply(left: Value, right: Value, node: exp.Expression) -> Value:
    if right.constant:
        return scale(left, grid(right).at(grid(right).lo), node)
    if left.constant:
        return scale(right, grid(left).at(grid(left).lo), node)
    a = grid(left)
    b = grid(right)
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo = min(corners)
    hi = max(corners)
    if left.expression == right.expression:
        lo = max(lo, 0)
    check_size(lo, hi, node)
    check_step(a.step * b.step, node)
    bound = max(abs(lo), abs(hi), a.largest, b.largest)
    product = widen(left.expression, bound) * widen(right.expression, bound)
    domain = Number(step=a.step * b.step, lo=lo, hi=hi)
    return Value(expression=product, domain=domain, nullable=left.nullable or right.nullable)


def scale(value: Value, factor: Fraction, node: exp.Expression) -> Value:
    """Return value * factor: the engine's integers stay, only the step changes."""
    if factor == 0:
        zero = widen(value.expression, grid(value).largest) * 0
        only_zero = Number(step=Fraction(1), lo=0, hi=0)
        return Value(expression=zero, domain=only_zero, nullable=value.nullable)
    same_sign = value if factor > 0 else negate(value)
    domain = grid(same_sign)
    step = domain.step * abs(factor)
    check_step(step, node)
    return Value(
        expression=same_sign.expression,
        domain=Number(step=step, lo=domain.lo, hi=domain.hi),
        nullable=value.nullable,
        constant=value.constant,
    )


def divide(left: Value, right: Value, node: exp.Expression) -> Value:
    if right.constant:
        divisor = grid(right).at(grid(right).lo)
        if divisor == 0:
            raise reject(node, "division by zero.", "Divide by something else.")
        return scale(left, 1 / divisor, node)
    a = grid(left)
    b = grid(right)
    ratio = a.step / b.step / QUOTIENT_STEP
    check_step(ratio, node)
    # no intermediate number below is larger
    bound = 2 * (a.largest * ratio.numerator + b.largest * ratio.denominator)
    check_size(0, bound, node)
    n = widen(left.expression, bound) * ratio.numerator
    d = widen(right.expression, bound) * ratio.denominator
    if b.lo > 0:
        smallest = b.lo
    elif b.hi < 0:
        smallest = -b.hi
    else:
        smallest = 1
    most = -(-a.largest * ratio.numerator // (smallest * ratio.denominator)) + 1
    check_size(0, most, node)
    lo = 0 if a.lo >= 0 and b.lo >= 0 else -most
    # round half away from zero: |n| / |d| as (2 |n| + |d|) // (2 |d|)
    doubled = 2 * call("abs", call("nullif", d, 0))
    magnitude = (2 * call("abs", n) + call("abs", d)) // doubled
    return Value(
        expression=case(((n < 0).equals(d < 0), magnitude), otherwise=-magnitude),
        domain=Number(step=QUOTIENT_STEP, lo=lo, hi=most),
        nullable=True,
    )


def whole_quotient(left: Value, right: Value, node: exp.Expression) -> Value:
    """Return left // right, which drops the fraction (toward zero, as the engine does)."""
    if right.constant:
        return round_to_step(divide(left, right, node), Fraction(1), "toward_zero", node)
    a, b = _align(left, right, node)
    most = grid(a).largest
    lo = 0 if grid(a).lo >= 0 and grid(b).lo >= 0 else -most
    bound = max(most, grid(b).largest)
    divisor = call("nullif", widen(b.expression, bound), 0)
    return Value(
        expression=widen(a.expression, bound) // divisor,
        domain=Number(step=Fraction(1), lo=lo, hi=most),
        nullable=True,
    )


def remainder(left: Value, right: Value, node: exp.Expression) -> Value:
    """Return the remainder, with the sign of the dividend."""
    a, b = _align(left, right, node)
    dividend = grid(a)
    divisor = grid(b)
    if right.constant and divisor.lo == 0:
        raise reject(node, "division by zero.", "Divide by something else.")
    most = min(dividend.largest, max(divisor.largest - 1, 0))
    bound = max(dividend.largest, divisor.largest)
    lo = 0 if dividend.lo >= 0 else -most
    hi = 0 if dividend.hi <= 0 else most
    return Value(
        expression=widen(a.expression, bound) % call("nullif", widen(b.expression, bound), 0),
        domain=Number(step=dividend.step, lo=lo, hi=hi),
        nullable=left.nullable or right.nullable or not right.constant,
    )


def round_to_step(value: Value, step: Fraction, how: Rounding, node: exp.Expression) -> Value:
    """Return the number rounded to a grid of `step`.

    `how` is the direction; "nearest" moves a half away from zero, "even" moves it to the even
    number.
    """
    domain = grid(value)
    ratio = domain.step / step
    up = ratio.numerator
    down = ratio.denominator
    if down == 1:  # it is on the grid already
        return value
    check_step(ratio, node)
    lo = _round_fraction(Fraction(domain.lo * up, down), how)
    hi = _round_fraction(Fraction(domain.hi * up, down), how)
    bound = domain.largest * up * 2 + down
    check_size(0, bound, node)
    wide = widen(value.expression, bound)
    n = wide * up if up > 1 else wide
    quotient = _quotient(n, down, how, negative=domain.lo < 0)
    return Value(
        expression=Constant(lo) if value.constant else quotient,
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=value.nullable,
        constant=value.constant,
    )


def absolute(value: Value) -> Value:
    domain = grid(value)
    lo = 0 if domain.lo <= 0 <= domain.hi else min(abs(domain.lo), abs(domain.hi))
    return Value(
        expression=call("abs", widen(value.expression, domain.largest)),
        domain=Number(step=domain.step, lo=lo, hi=domain.largest),
        nullable=value.nullable,
    )


def sign(value: Value) -> Value:
    domain = grid(value)
    x = value.expression
    lo = (domain.lo > 0) - (domain.lo < 0)
    hi = (domain.hi > 0) - (domain.hi < 0)
    return Value(
        expression=case((x > 0, 1), (x < 0, -1), (x.equals(0), 0)),
        domain=Number(step=Fraction(1), lo=lo, hi=hi),
        nullable=value.nullable,
    )


def clamp(value: Value, lo: Value, hi: Value, node: exp.Expression) -> Value:
    if not (lo.constant and hi.constant):
        raise reject(node, "CLAMP needs two constants as its range.", "Write CLAMP(x, 0, 100).")
    step = common_step(grid(value).step, grid(lo).step, grid(hi).step)
    x = on_step(value, step, node)
    least = grid(on_step(lo, step, node)).lo
    most = grid(on_step(hi, step, node)).lo
    if least > most:
        raise reject(node, "the range of CLAMP is reversed.", "Write the smaller number first.")
    domain = grid(x)
    bounds = Number(
        step=step,
        lo=min(max(domain.lo, least), most),
        hi=max(min(domain.hi, most), least),
    )
    wide = widen(x.expression, max(domain.largest, abs(least), abs(most)))
    inside = call("least", call("greatest", wide, least), most)
    # LEAST and GREATEST skip NULLs, so the CASE keeps them.
    expression = case((x.expression.is_known, inside))
    return Value(expression=expression, domain=bounds, nullable=value.nullable)


def bucket(
    value: Value, ends: tuple[Fraction, Fraction], count: int, node: exp.Expression
) -> Value:
    """Return the number, from 1, of the part that holds the value, of `count` equal parts between
    the ends; 0 below them and count + 1 above.
    """
    lo, hi = ends
    parts = scale(add(value, number(-lo), node), count / (hi - lo), node)
    place = add(round_to_step(parts, Fraction(1), "down", node), number(1), node)
    return clamp(place, number(0), number(count + 1), node)


def real_function(
    value: Value,
    node: exp.Expression,
    *,
    engine: Callable[[Expression], Expression],
    function: Callable[[float], float],
    above: float,
    strict: bool,
) -> Value:
    """Return a monotone function of real numbers, rounded to millionths on each row.

    It is NULL unless its argument is above `above`, or if not `strict`, equal to it.
    """
    domain = grid(value)
    x = Cast(value.expression, "DOUBLE") * domain.step.numerator / domain.step.denominator
    inside = x.is_known
    if math.isfinite(above):
        inside = x > above if strict else x >= above
    ends = [float(domain.at(end)) for end in (domain.lo, domain.hi)]
    # A function may have a pole, as ln has at 0. Its bound is at the smallest argument on the grid
    # for which it is defined.
    least = max(ends[0], above + (float(domain.step) if strict else 0.0))
    if ends[1] < least:
        raise reject(
            node,
            f"{show(node)} is never defined: its argument is out of range.",
            "Change the argument.",
        )
    try:
        bounds = [
            math.floor(function(least) * 1e6) - 1,
            math.ceil(function(max(ends[1], least)) * 1e6) + 1,
        ]
    except OverflowError:
        raise reject(node, f"{show(node)} can become too large.", "CLAMP its argument.") from None
    lo = min(bounds)
    hi = max(bounds)
    check_size(lo, hi, node)
    if max(abs(lo), abs(hi)) >= 2**53:
        raise reject(node, f"{show(node)} can become too large.", "CLAMP its argument.")
    units = Cast(call("round", engine(x) * 1_000_000), "BIGINT")
    within = call("least", call("greatest", units, lo), hi)
    return Value(
        expression=case((inside, within)),
        domain=Number(step=QUOTIENT_STEP, lo=lo, hi=hi),
        nullable=value.nullable or ends[0] < least,
    )


def _align(left: Value, right: Value, node: exp.Expression) -> tuple[Value, Value]:
    step = common_step(grid(left).step, grid(right).step)
    return on_step(left, step, node), on_step(right, step, node)


def _round_fraction(value: Fraction, how: Rounding) -> int:
    match how:
        case "down":
            return math.floor(value)
        case "up":
            return math.ceil(value)
        case "toward_zero":
            return math.trunc(value)
        case "even":
            return round(value)
        case _:  # nearest
            size = math.floor(abs(value) + Fraction(1, 2))
            return size if value >= 0 else -size


def _quotient(n: Expression, d: int, how: Rounding, *, negative: bool) -> Expression:
    """Return n / d for a constant d > 0, rounded; the engine's // drops the fraction."""
    if how == "toward_zero":
        return n // d
    # how to round x / d for x >= 0
    divisions: dict[str, Callable[[Expression], Expression]] = {
        "down": lambda x: x // d,
        "up": lambda x: (x + (d - 1)) // d,
        "nearest": lambda x: (2 * x + d) // (2 * d),
        "even": lambda x: _half_even(x, d),
    }
    if not negative:
        return divisions[how](n)
    opposite = {"down": "up", "up": "down"}.get(how, how)  # the direction for -n
    return case((n >= 0, divisions[how](n)), otherwise=-divisions[opposite](-n))


def _half_even(n: Expression, d: int) -> Expression:
    """Return n / d for n >= 0, rounded to the nearest whole number, a half to the even one."""
    up = (2 * n + d) // (2 * d)
    halfway = call("AND", ((2 * n + d) % (2 * d)).equals(0), (up % 2).equals(1))
    return up - case((halfway, 1), otherwise=0)


# The results of these are floats in the engine; those of the next are if an argument is one.
_FLOATS = (exp.Div, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Log, exp.Exp, exp.Pow, exp.Pi)
_AS_ARGUMENTS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.Neg,
    exp.Paren,
    exp.Abs,
    exp.Case,
    exp.If,
    exp.Coalesce,
    exp.Least,
    exp.Greatest,
)


def is_float(node: exp.Expression) -> bool:
    """Return True if an expression is a float in the engine; columns are integers or decimals."""
    if isinstance(node, exp.Cast):
        return node.args["to"].this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    if isinstance(node, _AS_ARGUMENTS):
        return any(is_float(part) for part in node.iter_expressions())
    return isinstance(node, _FLOATS) and "whole" not in node.meta
