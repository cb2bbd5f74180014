"""Rebuild the expressions that run after noise, node by node, from kinds that are known to be total
and harmless.
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

MOST_DIGITS = 18  # of a number written out: sums of those fit into what the engine adds in

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
_NOT_TRIED = (exp.Query, exp.Interval, exp.Window, *AGGREGATES)  # what DuckDB's TRY cannot hold
_KNOWN = frozenset((*TRANSLATORS, *AGGREGATES, *_WINDOWS, *_STRUCTURE)) - {exp.Anonymous}


def as_sql(node: exp.Expression) -> str:
    return str(node.sql(dialect=WRITER, comments=False))


def rebuild(
    node: exp.Expression, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Return the node with its parts rewritten, made total: division by zero, overflows and failed
    casts give NULL.
    """
    if as_json.is_json(node):
        assert isinstance(node, exp.Anonymous)
        return as_json.rebuilt(node, rewrite)
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
    copy = type(node)(**{name: _rebuilt_part(part, rewrite) for name, part in node.args.items()})
    copy.meta.update(node.meta)
    _check_numbers(node, copy)
    return _total(copy)


def _check_numbers(node: exp.Expression, copy: exp.Expression) -> None:
    """Refuse numbers that the engine must know beforehand and does not, and those that are too long
    for it.
    """
    if isinstance(copy, exp.Pad):
        _check_pad(copy)
    if isinstance(copy, exp.Ntile) and not whole(copy.this):
        raise reject(node, f"{show(node)} needs a whole number, from 1.", "Write it out: NTILE(4).")
    if isinstance(copy, exp.WindowSpec) and not all(
        _frame_end(copy.args.get(end)) for end in ("start", "end")
    ):
        raise reject(
            node,
            "a frame needs whole numbers written out.",
            "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.",
        )
    if (
        isinstance(copy, exp.Literal)
        and not copy.is_string
        and len(re.sub(r"[eE].*|[.]", "", copy.name)) > MOST_DIGITS
    ):
        raise reject(node, f"{show(node)} has more than {MOST_DIGITS} digits.", "Write it as 1e20.")


def _total(copy: exp.Expression) -> exp.Expression:
    """Return an expression that gives NULL where the operation has no result."""
    if isinstance(copy, exp.Div | exp.IntDiv | exp.Mod):
        copy.set("expression", exp.func("NULLIF", copy.expression, exp.Literal.number(0)))
    if (
        type(copy) is exp.Cast
        and copy.args["to"].this == exp.DataType.Type.DECIMAL
        and not copy.args["to"].expressions
    ):
        return exp.TryCast(this=copy.this, to=exp.DataType.build("DOUBLE"))  # Postgres's NUMERIC
    if type(copy) is exp.Cast:
        return exp.TryCast(this=copy.this, to=copy.args["to"])
    if isinstance(copy, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Abs) and not copy.find(
        *_NOT_TRIED
    ):
        return exp.Try(this=copy)
    # products pass 128 bits, sums do not
    if isinstance(copy, exp.Mul) and not copy.find(exp.Interval):
        return exp.Mul(
            this=exp.cast(copy.this, "DOUBLE"), expression=exp.cast(copy.expression, "DOUBLE")
        )
    if isinstance(copy, exp.Sqrt | exp.Ln | exp.Log):
        argument = (
            copy.expression
            if isinstance(copy, exp.Log) and copy.expression is not None
            else copy.this
        )
        low = exp.GTE if isinstance(copy, exp.Sqrt) else exp.GT
        return exp.Case(
            ifs=[
                exp.If(this=low(this=argument.copy(), expression=exp.Literal.number(0)), true=copy)
            ]
        )
    return copy


def whole_division(node: exp.Expression, column: ColumnKind) -> exp.Expression:
    """Return what the workbench computes where Postgres divides whole numbers: noisy ones may be of
    any type.
    """
    found = resolve(node, column)
    if found is node or not isinstance(found, exp.IntDiv):
        return found
    quotient = exp.Div(
        this=exp.cast(found.this.copy(), "DOUBLE"), expression=found.expression.copy()
    )
    made = exp.Cast(this=exp.Trunc(this=quotient), to=exp.DataType.build("BIGINT"))
    made.parent = node.parent
    return made


def _frame_end(end: Any) -> bool:
    """Return True if a frame may end so: UNBOUNDED, CURRENT ROW, a number of rows, or of days and
    the like.
    """
    return (
        not isinstance(end, exp.Expression)
        or whole(end.this if isinstance(end, exp.Interval) else end) is not None
    )


def _check_pad(node: exp.Pad) -> None:
    """Refuse to pad to a length that could exhaust memory: a billion letters are as many after
    noise.
    """
    fill = node.args.get("fill_pattern")
    length = whole(node.expression)
    if (
        length is None
        or length > 1_000
        or (fill is not None and not (isinstance(fill, exp.Literal) and fill.this))
    ):
        raise reject(
            node,
            f"{show(node)} is not answered.",
            "Write LPAD(code, 5, '0'), to at most 1,000 letters.",
        )


def _rebuilt_part(part: Any, rewrite: Callable[[exp.Expression], exp.Expression]) -> Any:
    if isinstance(part, list):
        return [_rebuilt_part(each, rewrite) for each in part]
    if isinstance(part, exp.Identifier | exp.Var | exp.DataType | exp.Star):
        return part.copy()
    return rewrite(part) if isinstance(part, exp.Expression) else part


def _element(
    node: exp.Bracket, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Rebuild quantiles[2] with the place as it is written; the parser counts from 0 or 1, by what
    it takes the list for.
    """
    written = re.search(r"\[(\d{1,6})\]$", as_sql(node))
    if written is None:
        raise reject(node, f"{show(node)} needs a place written out.", "Write quantiles[1].")
    return exp.Anonymous(
        this="list_extract", expressions=[rewrite(node.this), exp.Literal.number(int(written[1]))]
    )


def _clamp(
    node: exp.Anonymous, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    if node.name.lower() != "clamp" or len(node.expressions) != 3:
        raise reject(
            node,
            f"{node.name.upper()} is not a function that can be answered.",
            NEAREST.get(node.name.lower(), "docs/language.md lists the functions."),
        )
    value, lo, hi = (rewrite(part) for part in node.expressions)
    return exp.func("LEAST", exp.func("GREATEST", value, lo), hi)
