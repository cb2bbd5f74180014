"""CAST: a value as another type; NULL where that type cannot hold it."""

from __future__ import annotations

import math
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import call, case
from discreet.errors import Rejected
from discreet.sql.text.parse import reject, show, whole
from discreet.sql.values import numbers
from discreet.sql.values.as_text import as_text
from discreet.sql.values.time import days
from discreet.sql.values.unify import as_flag, as_number
from discreet.sql.values.value import (
    NO_NUMBER,
    Missing,
    Number,
    Opaque,
    Value,
)


def cast(value: Value, node: exp.Cast) -> Value:
    """Cast a value as `node` says, or raise `Rejected`."""
    target = node.args["to"].this
    kind = exp.DataType.Type
    if isinstance(value.domain, Missing):
        return value
    if isinstance(value.domain, Opaque):
        raise reject(
            node,
            "an identifier cannot be computed with.",
            "It can be counted: COUNT(DISTINCT ...).",
        )
    if target in _INTEGER_BITS:
        # The engine rounds a half of a decimal away from zero, and a half of a float (a quotient is
        # a float) to the even number. In Postgres a quotient is a decimal.
        is_float = _is_double if "postgres" in node.meta else numbers.is_float
        how: numbers.Rounding = "even" if is_float(node.this) else "nearest"
        whole_number = numbers.round_to_step(as_number(value, node), Fraction(1), how, node)
        return _fitting(whole_number, Fraction(2 ** _INTEGER_BITS[target] - 1))
    if target in (kind.DOUBLE, kind.FLOAT):
        return as_number(value, node)
    if target is kind.DECIMAL:
        return _as_decimal(value, node)
    if target in (kind.TEXT, kind.VARCHAR):
        return as_text(value, node, written=node.this)
    if target is kind.BOOLEAN:
        return as_flag(value, node)
    if target is kind.DATE:
        return days.as_day(value, node)
    if target in (kind.TIMESTAMP, kind.TIMESTAMPNTZ, kind.DATETIME):
        return days.as_moment(value, node)
    raise _refuse_cast(node, target)


def _as_decimal(value: Value, node: exp.Cast) -> Value:
    """Return a value as DECIMAL(p, s); Postgres's NUMERIC without sizes keeps all digits."""
    if not node.args["to"].expressions:
        return as_number(value, node)
    sizes = [whole(part.this) for part in node.args["to"].expressions]
    width = sizes[0]
    digits = sizes[1] if len(sizes) > 1 else 0
    if width is None or digits is None or not digits <= width <= 38 or not width:
        raise reject(
            node, f"{show(node)} is no DECIMAL of at most 38 digits.", "Write DECIMAL(18, 2)."
        )
    unit = Fraction(1, 10**digits)
    decimal = numbers.round_to_step(as_number(value, node), unit, "nearest", node)
    if numbers.grid(decimal).step > unit:  # the type fixes the digits: 5.00
        decimal = numbers.on_step(decimal, unit, node)
    return _fitting(decimal, (10**width - 1) * unit)


def _refuse_cast(node: exp.Cast, target: exp.DataType.Type) -> Rejected:
    """Return the refusal of a cast to a type that no row value has."""
    if target in (exp.DataType.Type.TIME, exp.DataType.Type.TIMETZ):
        return reject(
            node,
            f"{show(node)}: times of day are not answered.",
            "Write EXTRACT(HOUR FROM seen) >= 12, or hours and minutes: "
            "EXTRACT(HOUR FROM seen) * 60 + EXTRACT(MINUTE FROM seen).",
        )
    return reject(
        node,
        f"CAST to {node.args['to'].sql()} is not answered.",
        "Cast to INTEGER, DOUBLE, DECIMAL, VARCHAR, DATE, TIMESTAMP or BOOLEAN.",
    )


def _is_double(node: exp.Expression) -> bool:
    """Return True if an expression is a float in Postgres: a cast to a float, a root and the
    like.
    """
    return any(_makes_double(part) for part in node.walk())


def _makes_double(node: exp.Expression) -> bool:
    if isinstance(node, exp.Cast):
        return node.args["to"].this in (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    return isinstance(node, exp.Sqrt | exp.Cbrt | exp.Ln | exp.Log | exp.Exp | exp.Pi)


_INTEGER_BITS = {
    exp.DataType.Type.TINYINT: 7,
    exp.DataType.Type.SMALLINT: 15,
    exp.DataType.Type.INT: 31,
    exp.DataType.Type.BIGINT: 63,
    exp.DataType.Type.INT128: 127,
}


def _fitting(value: Value, largest: Fraction) -> Value:
    """Return a number as a narrow type holds it: NULL where its size is over the type's largest."""
    domain = numbers.grid(value)
    most = math.floor(largest / domain.step)
    if domain.largest <= most:
        return value
    if domain.lo > most or domain.hi < -most:
        return Value(
            expression=NO_NUMBER, domain=Number(step=Fraction(1), lo=0, hi=0), nullable=True
        )
    bounds = Number(step=domain.step, lo=max(domain.lo, -most), hi=min(domain.hi, most))
    inside = call("AND", value.expression >= -most, value.expression <= most)
    return Value(expression=case((inside, value.expression)), domain=bounds, nullable=True)
