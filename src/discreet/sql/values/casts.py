"""CAST: a value as another type, NULL where that type cannot hold it."""

from __future__ import annotations

import math
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import call, case
from discreet.errors import Rejected
from discreet.sql.text.parse import reject, show, whole
from discreet.sql.values import numbers, strings
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
        # As the engine does: half away from zero from decimals, to the even number from floats,
        # such as quotients are.
        # In Postgres quotients are decimals.
        is_float = _is_double if "postgres" in node.meta else numbers.is_float
        how: numbers.Rounding = "even" if is_float(node.this) else "nearest"
        whole_number = numbers.round_to_step(as_number(value, node), Fraction(1), how, node)
        return _fitting(whole_number, Fraction(2 ** _INTEGER_BITS[target] - 1))
    if target in (kind.DOUBLE, kind.FLOAT):
        return as_number(value, node)
    if target is kind.DECIMAL:
        if not node.args["to"].expressions:  # Postgres's NUMERIC, which keeps all digits
            return as_number(value, node)
        sizes = [whole(part.this) for part in node.args["to"].expressions]
        digits = sizes[1] if len(sizes) > 1 else 0
        if sizes[0] is None or digits is None or not digits <= sizes[0] <= 38 or not sizes[0]:
            raise reject(
                node, f"{show(node)} is no DECIMAL of at most 38 digits.", "Write DECIMAL(18, 2)."
            )
        unit = Fraction(1, 10**digits)
        rounded = numbers.round_to_step(as_number(value, node), unit, "nearest", node)
        if numbers.grid(rounded).step > unit:  # its digits are those of the type: 5.00
            rounded = numbers.on_step(rounded, unit, node)
        return _fitting(rounded, (10 ** sizes[0] - 1) * unit)
    if target in (kind.TEXT, kind.VARCHAR):
        return strings.as_text(value, node, written=node.this)
    if target is kind.BOOLEAN:
        return as_flag(value, node)
    if target is kind.DATE:
        return days.as_day(value, node)
    if target in (kind.TIMESTAMP, kind.TIMESTAMPNTZ, kind.DATETIME):
        return days.as_moment(value, node)
    raise _refuse_cast(node, target)


def _refuse_cast(node: exp.Cast, target: exp.DataType.Type) -> Rejected:
    """Return the refusal of a cast to a type that rows have not."""
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
    """Return True if an expression is a float in Postgres: what is cast to it, roots and the
    like.
    """
    kinds = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
    return any(
        isinstance(part, exp.Sqrt | exp.Cbrt | exp.Ln | exp.Log | exp.Exp | exp.Pi)
        or (isinstance(part, exp.Cast) and part.args["to"].this in kinds)
        for part in node.walk()
    )


_INTEGER_BITS = {
    exp.DataType.Type.TINYINT: 7,
    exp.DataType.Type.SMALLINT: 15,
    exp.DataType.Type.INT: 31,
    exp.DataType.Type.BIGINT: 63,
    exp.DataType.Type.INT128: 127,
}


def _fitting(value: Value, largest: Fraction) -> Value:
    """Return a cast to a narrow type: NULL where the number is beyond the type's largest."""
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
