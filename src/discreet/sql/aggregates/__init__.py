"""The family of aggregates: each module has the syntax, the numbers, the estimate and the margin of
one.

`read` finds the member for a node of the syntax tree; `requests.assembly.assemble` collects the
numbers that all requests of one aggregation need.
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
# Aggregates that would show a value of one person.
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


def _with_own_names(hint: str, node: exp.Expression) -> str:
    """Return the hint with the analyst's own column and table, if the aggregate has one of each."""
    if isinstance(node, exp.LogicalOr | exp.LogicalAnd):
        test = show(node.this)
        return f"Count them: COUNT(*) FILTER (WHERE {test}), or AVG(CASE WHEN {test} THEN 1 ELSE 0 END)."
    columns = {quote_if_needed(column.name) for column in node.find_all(exp.Column)}
    select = node.find_ancestor(exp.Select)
    if select is None or select.args.get("joins") or len(columns) != 1:
        return hint
    source = select.args.get("from_")
    if source is None or not isinstance(source.this, exp.Table):
        return hint
    column = columns.pop()
    table = quote_if_needed(source.this.name)
    return hint.replace(
        "SELECT x, COUNT(*) FROM t GROUP BY x",
        f"SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}",
    )


def is_aggregate(node: exp.Expression) -> bool:
    """Return True if a node is an aggregate, whether or not we answer it."""
    kinds = exp.AggFunc | exp.AnyValue | exp.Filter | exp.WithinGroup
    return isinstance(node, kinds) or type(node) in READERS


def aggregates_in(node: exp.Expression) -> bool:
    """Return True if an expression aggregates rows of its own SELECT, apart from subqueries and
    window functions.
    """
    if isinstance(node, exp.Query | exp.Subquery):
        return False
    if isinstance(node, exp.Window):
        function = node.this.this if isinstance(node.this, exp.Filter) else node.this
        parts = list(function.iter_expressions())
        for name, part in node.args.items():
            if name != "this" and isinstance(part, exp.Expression):
                parts.append(part)
        return any(map(aggregates_in, parts))
    return is_aggregate(node) or any(aggregates_in(part) for part in node.iter_expressions())


def read(node: exp.Expression, scope: Scope) -> AggregateRequest:
    """Return the request of an aggregate; raise `Rejected` if we do not answer it."""
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
                raise reject(node, f"{show(inner)} {reason}.", _with_own_names(hint, inner))
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
