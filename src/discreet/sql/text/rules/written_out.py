"""Rewrite constants that tools wrap: CAST(2 AS SMALLINT) where a number must be written out,
(INTERVAL '-30 day') in brackets, MAKE_TIMESTAMP of constants.
"""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from discreet.sql.text.constants import whole_number

# Where a number must be written out, by the kind of node.
_PLACES: tuple[tuple[tuple[type[exp.Expression], ...], tuple[str, ...]], ...] = (
    ((exp.Substring,), ("start", "length")),
    ((exp.Left, exp.Right, exp.Pad, exp.Pow), ("expression",)),
    ((exp.SplitPart,), ("part_index",)),
    ((exp.PercentileCont, exp.PercentileDisc), ("this", "expression")),
    ((exp.Quantile,), ("quantile",)),
)
_WHOLE = exp.DataType.INTEGER_TYPES
_REAL = (*exp.DataType.FLOAT_TYPES, exp.DataType.Type.DECIMAL)


def uncast_numbers(node: exp.Expression) -> exp.Expression:
    """LEFT(x, CAST(2 AS SMALLINT)) is LEFT(x, 2)."""
    for kinds, names in _PLACES:
        if isinstance(node, kinds):
            for name in names:
                part = node.args.get(name)
                if isinstance(part, exp.Array):
                    part.set("expressions", [_plain(each) for each in part.expressions])
                elif isinstance(part, exp.Expression):
                    node.set(name, _plain(part))
    return node


def _plain(node: exp.Expression) -> exp.Expression:
    """Return the number of CAST(2 AS SMALLINT), if the type holds it as it is; else the node."""
    inner = node.unnest()
    if not isinstance(inner, exp.Cast):
        return node
    number, kind = inner.this.unnest(), inner.args["to"]
    if not isinstance(number, exp.Literal) or number.is_string or kind.expressions:
        return node
    exact = kind.this in _REAL or (kind.this in _WHOLE and number.name.isdigit())
    small = len(number.name) <= 4 or kind.this in _REAL  # every such type but TINYINT holds 9999
    tiny = kind.this in (exp.DataType.Type.TINYINT, exp.DataType.Type.UTINYINT)
    return number if exact and small and (not tiny or len(number.name) <= 2) else node


def unbracket_interval(node: exp.Expression) -> exp.Expression:
    """NOW() + (INTERVAL '-30 day'): brackets around a length of time."""
    if isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression, exp.Paren):
        inner = node.expression.unnest()
        if isinstance(inner, exp.Interval):
            node.set("expression", inner)
    return node


def read_make_timestamp(node: exp.Expression) -> exp.Expression:
    """MAKE_TIMESTAMP(2024, 3, 1, 0, 0, 0.0): the moment itself."""
    if isinstance(node, exp.TimestampFromParts):
        names = ("year", "month", "day", "hour", "min", "sec")
        parts = [node.args.get(name) for name in names]
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "make_timestamp":
        parts = list(node.expressions)
    else:
        return node
    if len(parts) != 6:
        return node
    *rest, seconds = parts
    year, month, day, hour, minute = numbers = [whole_number(part) for part in rest]
    text = seconds.name.removesuffix(".0") if isinstance(seconds, exp.Literal) else ""
    if None in numbers or not (text.isascii() and text.isdigit()):
        return node
    written = f"{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{int(text):02}"
    try:
        datetime.fromisoformat(written)
    except ValueError:
        return node
    return exp.cast(exp.Literal.string(written), "TIMESTAMP")


RULES = (uncast_numbers, unbracket_interval, read_make_timestamp)
