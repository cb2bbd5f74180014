"""The family of aggregates, one module each: its syntax, its numbers, its estimate and its margin.

`read` finds the member that reads a node; `requests.assembly.assemble` measures what all
requests of one aggregation need.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.aggregates import (
    count,
    covariance,
    distinct,
    extreme,
    geometric,
    harmonic,
    kurtosis,
    mean,
    mode,
    quantile,
    regression,
    skewness,
    variance,
)
from discreet.sql.aggregates import sum as total
from discreet.sql.requests.request import AggregateRequest, Member, Reader
from discreet.sql.text.parse import quote_if_needed, reject, show, spell
from discreet.sql.values.arguments import check_arguments
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.unify import as_flag

AGGREGATES: tuple[Member, ...] = (
    count.MEMBER,
    distinct.MEMBER,
    total.MEMBER,
    mean.MEMBER,
    variance.MEMBER,
    extreme.MEMBER,
    quantile.MEMBER,
    mode.MEMBER,
    covariance.MEMBER,
    skewness.MEMBER,
    kurtosis.MEMBER,
    regression.MEMBER,
    geometric.MEMBER,
    harmonic.MEMBER,
)
READERS: dict[type[exp.Expression], Reader] = {
    node: read for each in AGGREGATES for node, read in each.readers.items()
}
NAMED: dict[str, Reader] = {name: read for each in AGGREGATES for name, read in each.named.items()}
_NAMES = [name for member in AGGREGATES for name in member.names]
NAMES = f"{', '.join(_NAMES[:-1])} and {_NAMES[-1]}"
# Aggregates that would show single people, or that have another name here.
_SINGLE: tuple[type[exp.Expression], ...] = (
    exp.First,
    exp.Last,
    exp.AnyValue,
    exp.ArgMax,
    exp.ArgMin,
)
_LISTS: tuple[type[exp.Expression], ...] = (exp.ArrayAgg, exp.GroupConcat, exp.ArrayUniqueAgg)
REFUSED: tuple[tuple[tuple[type[exp.Expression], ...], str, str], ...] = (
    (
        _SINGLE,
        "shows what stands in one person's row",
        "Ask what many share: MODE(x), MEDIAN(x), or SELECT x, COUNT(*) FROM t GROUP BY x.",
    ),
    (
        (exp.ApproxQuantiles,),
        "is not answered",
        "Write QUANTILE_CONT(x, [0.25, 0.5, 0.75]), and MIN(x) and MAX(x) for the ends.",
    ),
    (_LISTS, "lists the values of people", "Count them: SELECT x, COUNT(*) FROM t GROUP BY x."),
    (
        (exp.LogicalOr, exp.LogicalAnd),
        "is decided by one person",
        "Count them: COUNT_IF(p), or AVG(CASE WHEN p THEN 1 ELSE 0 END).",
    ),
    (
        (exp.ApproxTopK,),
        "lists the values of people",
        "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 3.",
    ),
)
_READ = ("this", "expression", "expressions", "big_int", "quantile")


def _of_this(hint: str, node: exp.Expression) -> str:
    """Return the hint with the column and the table that were meant, where an aggregate is of one
    of each.
    """
    columns = {quote_if_needed(column.name) for column in node.find_all(exp.Column)}
    select = node.find_ancestor(exp.Select)
    source = (
        select.args.get("from_") if select is not None and not select.args.get("joins") else None
    )
    if len(columns) != 1 or source is None or not isinstance(source.this, exp.Table):
        return hint
    column, table = columns.pop(), quote_if_needed(source.this.name)
    return hint.replace(
        "SELECT x, COUNT(*) FROM t GROUP BY x",
        f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}",
    )


def is_aggregate(node: exp.Expression) -> bool:
    return (
        isinstance(node, exp.AggFunc | exp.AnyValue | exp.Filter | exp.WithinGroup)
        or type(node) in READERS
    )


def aggregates_in(node: exp.Expression) -> bool:
    """Return True if an expression aggregates rows of its own SELECT, not of a subquery or
    window.
    """
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        over = node.this.this if isinstance(node.this, exp.Filter) else node.this
        return any(aggregates_in(part) for part in over.iter_expressions()) or any(
            aggregates_in(part)
            for name, part in node.args.items()
            if name != "this" and isinstance(part, exp.Expression)
        )
    return is_aggregate(node) or any(aggregates_in(part) for part in node.iter_expressions())


def read(node: exp.Expression, scope: Scope) -> AggregateRequest:
    """Return the request that an aggregate's syntax makes, or `Rejected`."""
    condition = None
    inner = node
    if isinstance(node, exp.Filter):
        check_arguments(node)
        condition = as_flag(translate(node.expression.this, scope), node).expression
        inner = node.this
    named = isinstance(inner, exp.AnonymousAggFunc)
    reader = NAMED.get(inner.name.lower()) if named else READERS.get(type(inner))
    if reader is None:
        for kinds, reason, hint in REFUSED:
            if isinstance(inner, kinds):
                raise reject(node, f"{show(inner)} {reason}.", _of_this(hint, inner))
        raise reject(
            node,
            f"{show(inner)} is not an aggregate that can be answered.",
            f"Aggregates are {NAMES}.",
        )
    own = (inner, inner.this) if isinstance(inner, exp.WithinGroup) else (inner,)
    if any(part not in own for part in inner.find_all(exp.AggFunc)):
        raise reject(
            node,
            f"{show(inner)} is an aggregate of an aggregate.",
            "Aggregate in a subquery first.",
        )
    for name, part in inner.args.items():
        if name not in _READ and part not in (None, False, []):
            raise reject(
                node, f"{show(inner)} has a part that is not understood ({name}).", "Leave it out."
            )
    return reader(inner, scope, spell(node), condition)
