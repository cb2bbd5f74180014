"""Rebuild the expressions that run after noise, node by node, from kinds of nodes that we know to
be harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from discreet.sql.after import as_json
from discreet.sql.text.dialect import WRITER
from discreet.sql.text.parse import reject, show, whole
from discreet.sql.text.postgres import ColumnKind, resolve
from discreet.sql.values.expressions import TRANSLATORS
from discreet.sql.values.refusals import NEAREST

MOST_DIGITS = 18  # of a number written out: the engine's type for sums holds sums of such numbers

AGGREGATES = (
    exp.Count,
    exp.Sum,
    exp.Avg,
    exp.Min,
    exp.Max,
    exp.Median,
    exp.Variance,
    exp.VariancePop,
    exp.Stddev,
    exp.StddevPop,
    exp.StddevSamp,
    exp.CountIf,
    exp.Corr,
    exp.CovarPop,
    exp.CovarSamp,
    exp.ArgMax,
    exp.ArgMin,
    exp.LogicalOr,
    exp.LogicalAnd,
    exp.Quantile,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.GroupConcat,
    exp.ArrayAgg,
)
_WINDOWS = (
    exp.Window,
    exp.WindowSpec,
    exp.RowNumber,
    exp.Rank,
    exp.DenseRank,
    exp.PercentRank,
    exp.CumeDist,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
)
_STRUCTURE = (
    exp.Alias,
    exp.Identifier,
    exp.Order,
    exp.Ordered,
    exp.Group,
    exp.Having,
    exp.Where,
    exp.Qualify,
    exp.Distinct,
    exp.Star,
    exp.DataType,
    exp.DataTypeParam,
    exp.Interval,
    exp.Var,
    exp.Tuple,
    exp.Filter,
    exp.In,
    exp.Exists,
    exp.If,
)
_NO_TRY = (exp.Query, exp.Interval, exp.Window, *AGGREGATES)  # DuckDB's TRY cannot contain these
_KNOWN = frozenset((*TRANSLATORS, *AGGREGATES, *_WINDOWS, *_STRUCTURE)) - {exp.Anonymous}


def as_sql(node: exp.Expression) -> str:
    return str(node.sql(dialect=WRITER, comments=False))


def rebuild(
    node: exp.Expression, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Return the node with its parts rewritten, and NULL for divisions by zero, overflows and casts
    that fail.
    """
    if as_json.is_json(node):
        assert isinstance(node, exp.Anonymous)
        return as_json.rebuild_json(node, rewrite)
    if isinstance(node, exp.Anonymous):
        return _clamp(node, rewrite)
    if isinstance(node, exp.Bracket):
        return _element(node, rewrite)
    if "clock" in node.meta:
        raise reject(node, f"{show(node)} is known to the day alone.", "Write CURRENT_DATE.")
    if type(node) not in _KNOWN:
        raise reject(
            node,
            f"{show(node)} is not answered on aggregated results.",
            "docs/language.md lists what is.",
        )
    if isinstance(node, exp.ArgMax | exp.ArgMin) and node.args.get("count"):
        raise reject(node, f"{show(node)} lists several values.", "Use ORDER BY and LIMIT.")
    parts = {name: _rebuild_part(part, rewrite) for name, part in node.args.items()}
    copy = type(node)(**parts)
    copy.meta.update(node.meta)
    _check_numbers(node, copy)
    return _make_total(copy)


def _check_numbers(node: exp.Expression, copy: exp.Expression) -> None:
    """Refuse numbers that are not written out where the engine needs a constant, and numbers that
    are too long for it.
    """
    if isinstance(copy, exp.Pad):
        _check_pad(copy)
    if isinstance(copy, exp.Ntile) and not whole(copy.this):
        raise reject(node, f"{show(node)} needs a whole number, from 1.", "Write it out: NTILE(4).")
    if isinstance(copy, exp.WindowSpec):
        ends = [copy.args.get(end) for end in ("start", "end")]
        if not all(map(_is_frame_end, ends)):
            raise reject(
                node,
                "a frame needs whole numbers written out.",
                "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
            )
    if isinstance(copy, exp.Literal) and not copy.is_string:
        digits = re.sub(r"[eE].*|[.]", "", copy.name)
        if len(digits) > MOST_DIGITS:
            raise reject(
                node, f"{show(node)} has more than {MOST_DIGITS} digits.", "Write it as 1e20."
            )


def _make_total(copy: exp.Expression) -> exp.Expression:
    """Return an expression that gives NULL where the operation has no result."""
    if isinstance(copy, exp.Div | exp.IntDiv | exp.Mod):
        copy.set("expression", exp.func("NULLIF", copy.expression, exp.Literal.number(0)))
    if type(copy) is exp.Cast:
        kind = copy.args["to"]
        if kind.this == exp.DataType.Type.DECIMAL and not kind.expressions:
            kind = exp.DataType.build("DOUBLE")  # Postgres's NUMERIC
        return exp.TryCast(this=copy.this, to=kind)
    may_overflow = isinstance(copy, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Abs)
    if may_overflow and not copy.find(*_NO_TRY):
        return exp.Try(this=copy)
    # A product can need more than 128 bits; a sum cannot.
    if isinstance(copy, exp.Mul) and not copy.find(exp.Interval):
        left = exp.cast(copy.this, "DOUBLE")
        right = exp.cast(copy.expression, "DOUBLE")
        return exp.Mul(this=left, expression=right)
    if isinstance(copy, exp.Sqrt | exp.Ln | exp.Log):
        has_base = isinstance(copy, exp.Log) and copy.expression is not None
        argument = copy.expression if has_base else copy.this
        above = exp.GTE if isinstance(copy, exp.Sqrt) else exp.GT
        valid = above(this=argument.copy(), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=valid, true=copy)])
    return copy


def whole_division(node: exp.Expression, column: ColumnKind) -> exp.Expression:
    """Return the division of whole numbers for the engine if Postgres would divide them so.

    The noisy numbers may be of any type in the engine, so the quotient is truncated.
    """
    division = resolve(node, column)
    if division is node or not isinstance(division, exp.IntDiv):
        return division
    quotient = exp.Div(
        this=exp.cast(division.this.copy(), "DOUBLE"), expression=division.expression.copy()
    )
    whole_part = exp.Cast(this=exp.Trunc(this=quotient), to=exp.DataType.build("BIGINT"))
    whole_part.parent = node.parent
    return whole_part


def _is_frame_end(end: Any) -> bool:
    """Return True if a frame may end so: UNBOUNDED, CURRENT ROW, or a constant number of rows, days
    and the like.
    """
    if not isinstance(end, exp.Expression):
        return True
    amount = end.this if isinstance(end, exp.Interval) else end
    return whole(amount) is not None


def _check_pad(node: exp.Pad) -> None:
    """Refuse to pad to a length that could use up the memory."""
    fill = node.args.get("fill_pattern")
    length = whole(node.expression)
    is_text = fill is None or (isinstance(fill, exp.Literal) and fill.this)
    if length is None or length > 1_000 or not is_text:
        raise reject(
            node,
            f"{show(node)} is not answered.",
            "Write LPAD(code, 5, '0'), to at most 1,000 letters.",
        )


def _rebuild_part(part: Any, rewrite: Callable[[exp.Expression], exp.Expression]) -> Any:
    if isinstance(part, list):
        return [_rebuild_part(item, rewrite) for item in part]
    if isinstance(part, exp.Identifier | exp.Var | exp.DataType | exp.Star):
        return part.copy()
    return rewrite(part) if isinstance(part, exp.Expression) else part


def _element(
    node: exp.Bracket, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Rebuild quantiles[2] with the place as the analyst wrote it.

    The parser's tree counts places from 0 or from 1, so read the place from the text.
    """
    match = re.search(r"\[(\d{1,6})\]$", as_sql(node))
    if match is None:
        raise reject(node, f"{show(node)} needs a place written out.", "Write quantiles[1].")
    place = exp.Literal.number(int(match[1]))
    return exp.Anonymous(this="list_extract", expressions=[rewrite(node.this), place])


def _clamp(
    node: exp.Anonymous, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    if node.name.lower() != "clamp" or len(node.expressions) != 3:
        raise reject(
            node,
            f"{node.name.upper()} is not a function that can be answered.",
            NEAREST.get(node.name.lower(), "docs/language.md lists the functions."),
        )
    value, lo, hi = [rewrite(part) for part in node.expressions]
    return exp.func("LEAST", exp.func("GREATEST", value, lo), hi)
