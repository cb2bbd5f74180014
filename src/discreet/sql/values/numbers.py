"""Arithmetic on grid numbers: each operation gives an expression over integers, with exact bounds
of its result.

All of it is total: division by zero is NULL, and an operation whose result could overflow is
refused.
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

# units; leaves room for 2^36 people's rows in the engine's 128-bit sums (requests.readings)
LARGEST = 2**90
QUOTIENT_STEP = Fraction(1, 1_000_000)  # the grid of a quotient of two columns
Rounding = Literal["down", "up", "nearest", "even", "toward_zero"]


def common_step(*steps: Fraction) -> Fraction:
    """Return the coarsest grid that holds all the given ones."""
    denominator = math.lcm(*(step.denominator for step in steps))
    return Fraction(math.gcd(*(int(step * denominator) for step in steps)), denominator)


def on_step(value: Value, step: Fraction, node: exp.Expression) -> Value:
    """Return the same number counted in a finer step."""
    domain = grid(value)
    factor = domain.step / step
    assert factor.denominator == 1, "a grid can only be refined"
    lo, hi = domain.lo * factor.numerator, domain.hi * factor.numerator
    check_size(lo, hi, node)
    check_step(step, node)
    check_size(0, factor.numerator, node)  # which stands in the SQL, whatever it is multiplied with
    if factor == 1:
        return value
    wide = widen(value.expression, max(abs(lo), abs(hi)))
    found = Constant(lo) if value.constant else wide * factor.numerator
    domain = Number(step=step, lo=lo, hi=hi)
    return Value(expression=found, domain=domain, nullable=value.nullable, constant=value.constant)


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
    a, b = on_step(left, step, node), on_step(right, step, node)
    lows, highs = grid(a), grid(b)
    ends = sorted((sign * highs.lo, sign * highs.hi))
    lo, hi = lows.lo + ends[0], lows.hi + ends[1]
    check_size(lo, hi, node)
    bound = max(abs(lo), abs(hi), lows.largest, highs.largest)
    x, y = widen(a.expression, bound), widen(b.expression, bound)
    found = x + y if sign > 0 else x - y
    return Value(
        expression=found,
        domain=Number(step=step, lo=lo, hi=hi),
        nullable=left.nullable or right.nullable,
    )


def negate(value: Value) -> Value:
    domain = grid(value)
    return Value(
        expression=Constant(-domain.lo)
        if value.constant
        else -widen(value.expression, domain.largest),
        domain=Number(step=domain.step, lo=-domain.hi, hi=-domain.lo),
        nullable=value.nullable,
        constant=value.constant,
    )


def multiply(left: Value, right: Value, node: exp.Expression) -> Value:
    if right.constant:
        return scale(left, grid(right).at(grid(right).lo), node)
    if left.constant:
        return scale(right, grid(left).at(grid(left).lo), node)
    a, b = grid(left), grid(right)
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    lo, hi = min(corners), max(corners)
    if left.expression == right.expression:
        lo = max(lo, 0)
    check_size(lo, hi, node)
    check_step(a.step * b.step, node)
    bound = max(abs(lo), abs(hi), a.largest, b.largest)
    product = widen(left.expression, bound) * widen(right.expression, bound)
    domain = Number(step=a.step * b.step, lo=lo, hi=hi)
    return Value(expression=product, domain=domain, nullable=left.nullable or right.nullable)


def scale(value: Value, factor: Fraction, node: exp.Expression) -> Value:
    """value * factor: the engine's integers stay, only what one unit means changes."""
    if factor == 0:
        zero = widen(value.expression, grid(value).largest) * 0
        return Value(
            expression=zero, domain=Number(step=Fraction(1), lo=0, hi=0), nullable=value.nullable
        )
    positive = value if factor > 0 else negate(value)
    domain = grid(positive)
    check_step(domain.step * abs(factor), node)
    scaled = Number(step=domain.step * abs(factor), lo=domain.lo, hi=domain.hi)
    return Value(
        expression=positive.expression,
        domain=scaled,
        nullable=value.nullable,
        constant=value.constant,
    )


def divide(left: Value, right: Value, node: exp.Expression) -> Value:
    if right.constant:
        divisor = grid(right).at(grid(right).lo)
        if divisor == 0:
            raise reject(node, "division by zero.", "Divide by something else.")
        return scale(left, 1 / divisor, node)
    a, b = grid(left), grid(right)
    ratio = a.step / b.step / QUOTIENT_STEP
    check_step(ratio, node)
    # of the numbers on the way, too
    bound = 2 * (a.largest * ratio.numerator + b.largest * ratio.denominator)
    check_size(0, bound, node)
    n = widen(left.expression, bound) * ratio.numerator
    d = widen(right.expression, bound) * ratio.denominator
    smallest = b.lo if b.lo > 0 else -b.hi if b.hi < 0 else 1
    most = -(-a.largest * ratio.numerator // (smallest * ratio.denominator)) + 1
    check_size(0, most, node)
    lo = 0 if a.lo >= 0 and b.lo >= 0 else -most
    magnitude = (2 * call("abs", n) + call("abs", d)) // (2 * call("abs", call("nullif", d, 0)))
    found = case(((n < 0).equals(d < 0), magnitude), otherwise=-magnitude)
    return Value(expression=found, domain=Number(step=QUOTIENT_STEP, lo=lo, hi=most), nullable=True)


def whole_quotient(left: Value, right: Value, node: exp.Expression) -> Value:
    """Integer division, which drops the fraction (toward zero, as the engine does)."""
    if right.constant:
        return round_to_step(divide(left, right, node), Fraction(1), "toward_zero", node)
    a, b = _align(left, right, node)
    most = grid(a).largest
    lo = 0 if grid(a).lo >= 0 and grid(b).lo >= 0 else -most
    bound = max(most, grid(b).largest)
    found = widen(a.expression, bound) // call("nullif", widen(b.expression, bound), 0)
    return Value(expression=found, domain=Number(step=Fraction(1), lo=lo, hi=most), nullable=True)


def remainder(left: Value, right: Value, node: exp.Expression) -> Value:
    """Return the remainder, with the sign of the dividend."""
    a, b = _align(left, right, node)
    dividend, divisor = grid(a), grid(b)
    if right.constant and divisor.lo == 0:
        raise reject(node, "division by zero.", "Divide by something else.")
    most = min(dividend.largest, max(divisor.largest - 1, 0))
    bound = max(dividend.largest, divisor.largest)
    found = widen(a.expression, bound) % call("nullif", widen(b.expression, bound), 0)
    domain = Number(
        step=dividend.step, lo=0 if dividend.lo >= 0 else -most, hi=0 if dividend.hi <= 0 else most
    )
    return Value(
        expression=found,
        domain=domain,
        nullable=left.nullable or right.nullable or not right.constant,
    )


def round_to_step(value: Value, step: Fraction, how: Rounding, node: exp.Expression) -> Value:
    """Return the number moved to a grid of `step`, by the named rule; half goes away from zero, or
    to the even one.
    """
    domain = grid(value)
    ratio = domain.step / step
    up, down = ratio.numerator, ratio.denominator
    if down == 1:  # it is on the grid already
        return value
    check_step(ratio, node)
    lo, hi = (_round_fraction(Fraction(end * up, down), how) for end in (domain.lo, domain.hi))
    check_size(0, domain.largest * up * 2 + down, node)
    wide = widen(value.expression, domain.largest * up * 2 + down)
    n = wide * up if up > 1 else wide
    found = Constant(lo) if value.constant else _quotient(n, down, how, negative=domain.lo < 0)
    bounds = Number(step=step, lo=lo, hi=hi)
    return Value(expression=found, domain=bounds, nullable=value.nullable, constant=value.constant)


def absolute(value: Value) -> Value:
    domain = grid(value)
    lo = 0 if domain.lo <= 0 <= domain.hi else min(abs(domain.lo), abs(domain.hi))
    found = call("abs", widen(value.expression, domain.largest))
    return Value(
        expression=found,
        domain=Number(step=domain.step, lo=lo, hi=domain.largest),
        nullable=value.nullable,
    )


def sign(value: Value) -> Value:
    domain = grid(value)
    x = value.expression
    found = case((x > 0, 1), (x < 0, -1), (x.equals(0), 0))
    bounds = Number(
        step=Fraction(1), lo=(domain.lo > 0) - (domain.lo < 0), hi=(domain.hi > 0) - (domain.hi < 0)
    )
    return Value(expression=found, domain=bounds, nullable=value.nullable)


def clamp(value: Value, lo: Value, hi: Value, node: exp.Expression) -> Value:
    if not (lo.constant and hi.constant):
        raise reject(node, "CLAMP needs two constants as its range.", "Write CLAMP(x, 0, 100).")
    step = common_step(grid(value).step, grid(lo).step, grid(hi).step)
    x, low, high = (on_step(each, step, node) for each in (value, lo, hi))
    least, most = grid(low).lo, grid(high).lo
    if least > most:
        raise reject(node, "the range of CLAMP is reversed.", "Write the smaller number first.")
    domain = grid(x)
    bounds = Number(
        step=step, lo=min(max(domain.lo, least), most), hi=max(min(domain.hi, most), least)
    )
    wide = widen(x.expression, max(domain.largest, abs(least), abs(most)))
    # LEAST and GREATEST skip NULLs, so NULL has to be kept by hand.
    found = case((x.expression.is_known, call("least", call("greatest", wide, least), most)))
    return Value(expression=found, domain=bounds, nullable=value.nullable)


def bucket(
    value: Value, ends: tuple[Fraction, Fraction], count: int, node: exp.Expression
) -> Value:
    """Return which of `count` equal parts between the ends holds the number: from 1; 0 below, count
    + 1 above.
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
    """Return a monotone float function, taken to a grid of a millionth row by row; NULL outside its
    domain.
    """
    domain = grid(value)
    x = Cast(value.expression, "DOUBLE") * domain.step.numerator / domain.step.denominator
    inside = x.is_known if math.isinf(above) else x > above if strict else x >= above
    ends = [float(domain.at(end)) for end in (domain.lo, domain.hi)]
    # The smallest argument inside the domain that the grid can hold bounds functions with a pole,
    # such as ln at 0.
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
    lo, hi = min(bounds), max(bounds)
    check_size(lo, hi, node)
    if max(abs(lo), abs(hi)) >= 2**53:
        raise reject(node, f"{show(node)} can become too large.", "CLAMP its argument.")
    units = Cast(call("round", engine(x) * 1_000_000), "BIGINT")
    clamped = case((inside, call("least", call("greatest", units, lo), hi)))
    return Value(
        expression=clamped,
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
    """n / d for a constant d > 0, rounded; the engine's // drops the fraction."""
    if how == "toward_zero":
        return n // d
    upwards: dict[str, Callable[[Expression], Expression]] = {
        "down": lambda x: x // d,
        "up": lambda x: (x + (d - 1)) // d,
        "nearest": lambda x: (2 * x + d) // (2 * d),
        "even": lambda x: _half_even(x, d),
    }
    if not negative:
        return upwards[how](n)
    mirrored = {"down": "up", "up": "down"}.get(how, how)  # -n rounded the other way
    return case((n >= 0, upwards[how](n)), otherwise=-upwards[mirrored](-n))


def _half_even(n: Expression, d: int) -> Expression:
    """n / d for n >= 0 to the nearest whole number; from the middle between two, to the even
    one.
    """
    up = (2 * n + d) // (2 * d)
    halfway = call("AND", ((2 * n + d) % (2 * d)).equals(0), (up % 2).equals(1))
    return up - case((halfway, 1), otherwise=0)


_FLOATS = (exp.Div, exp.Sqrt, exp.Cbrt, exp.Ln, exp.Log, exp.Exp, exp.Pow, exp.Pi)
_KEPT = (
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
    """Return True if an expression is a float to the engine; columns are integers and decimals."""
    if isinstance(node, exp.Cast):
        return node.args["to"].this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    if isinstance(node, _KEPT):
        return any(is_float(part) for part in node.iter_expressions())
    return isinstance(node, _FLOATS) and "whole" not in node.meta
