"""What aggregates ask for: `REQUESTS` reads the syntax of each, and refuses what would show single people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from sqlglot import exp

from discreet.algebra import Expression, call
from discreet.sql.expressions import Scope, check_arguments, translate
from discreet.sql.numbers import grid
from discreet.sql.parse import reject, show, spelt
from discreet.sql.strings import all_numeric
from discreet.sql.unify import as_flag, as_number
from discreet.sql.values import Coded, Day, Flag, Missing, Moment, Number, Opaque, Text, Value

Kind = Literal["rows", "count", "distinct", "persons", "sum", "mean", "variance", "quantile", "mode", "pair"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One aggregate that was asked for, over the rows that satisfy `condition`."""

    kind: Kind
    label: str
    value: Value | None = None
    condition: Expression | None = None
    sample: bool = True
    root: bool = False
    quantiles: tuple[Fraction, ...] = ()
    listed: bool = False
    other: Value | None = None  # the second column of a covariance or correlation
    correlation: bool = False


def is_aggregate(node: exp.Expression) -> bool:
    return isinstance(node, exp.AggFunc | exp.AnyValue | exp.Filter | exp.WithinGroup) or type(node) in REQUESTS


def aggregates_in(node: exp.Expression) -> bool:
    """Whether an expression aggregates rows of its own SELECT: not those of a subquery, nor over a window."""
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


def read(node: exp.Expression, scope: Scope) -> Request:
    """The request that an aggregate's syntax makes, or `Rejected`."""
    condition = None
    inner = node
    if isinstance(node, exp.Filter):
        check_arguments(node)
        condition = as_flag(translate(node.expression.this, scope), node).expression
        inner = node.this
    reader = REQUESTS.get(type(inner))
    if reader is None:
        for kinds, reason, hint in _REFUSED:
            if isinstance(inner, kinds):
                raise reject(node, f"{show(inner)} {reason}.", hint)
        raise reject(node, f"{show(inner)} is not an aggregate that can be answered.", f"Aggregates are {NAMES}.")
    own = (inner, inner.this) if isinstance(inner, exp.WithinGroup) else (inner,)
    if any(part not in own for part in inner.find_all(exp.AggFunc)):
        raise reject(node, f"{show(inner)} is an aggregate of an aggregate.", "Aggregate in a subquery first.")
    for name, part in inner.args.items():
        if name not in _READ and part not in (None, False, []):
            raise reject(node, f"{show(inner)} has a part that is not understood ({name}).", "Leave it out.")
    return reader(inner, scope, spelt(node), condition)


_READ = ("this", "expression", "expressions", "big_int", "quantile")


def _argument(node: exp.Expression, scope: Scope) -> Value:
    if isinstance(node.this, exp.Distinct):
        raise reject(
            node, f"{show(node)}: DISTINCT is answered in COUNT only.", f"Write {show(node).replace('DISTINCT ', '')}."
        )
    if isinstance(node.this, exp.Order):
        raise reject(
            node, f"{show(node)}: the order of rows has no meaning here.", "Leave ORDER BY out of the aggregate."
        )
    return translate(node.this, scope)


def _count(node: exp.Count, scope: Scope, label: str, condition: Expression | None) -> Request:
    if node.expressions:
        raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
    argument = node.this
    if argument is None or isinstance(argument, exp.Star):
        return Request(kind="rows", label=label, condition=condition)
    if isinstance(argument, exp.Distinct):
        return _count_distinct(argument, node, scope, label, condition)
    chosen = _identifier_if(argument, scope)
    if chosen is not None:
        return Request(kind="count", label=label, value=chosen[0], condition=_both(chosen[1], condition))
    value = _argument(node, scope)
    if isinstance(value.domain, Missing):
        raise reject(node, "COUNT(NULL) is zero for everybody.", "Write COUNT(*).")
    if value.constant:
        return Request(kind="rows", label=label, condition=condition)
    return Request(kind="count", label=label, value=value, condition=condition)


def _count_distinct(
    distinct: exp.Distinct, node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> Request:
    only = distinct.expressions[0].unnest() if len(distinct.expressions) == 1 else None
    if only is None:
        raise reject(node, "COUNT(DISTINCT a, b) counts several columns.", "Write COUNT(DISTINCT (a, b)).")
    if isinstance(only, exp.Tuple):
        parts = (translate(part, scope).expression for part in only.expressions)
        value = Value(expression=call("row", *parts), domain=Text())
        return Request(kind="distinct", label=label, value=value, condition=condition)
    chosen = _identifier_if(only, scope)
    value, where = chosen if chosen is not None else (translate(only, scope), None)
    owner = isinstance(value.domain, Opaque) and value.domain.owner
    kind: Kind = "persons" if owner else "distinct"
    return Request(kind=kind, label=label, value=value, condition=_both(where, condition))


def _identifier_if(node: exp.Expression, scope: Scope) -> tuple[Value, Expression] | None:
    """CASE WHEN p THEN owner END, as in COUNT(DISTINCT CASE WHEN p THEN owner END): the identifier, and p."""
    branches = node.args.get("ifs") if isinstance(node, exp.Case) else [node] if isinstance(node, exp.If) else []
    if len(branches or ()) != 1 or (isinstance(node, exp.Case) and node.this is not None):
        return None
    [branch], default = branches or [], node.args.get("default" if isinstance(node, exp.Case) else "false")
    if not isinstance(branch.args["true"], exp.Column) or not (default is None or isinstance(default, exp.Null)):
        return None
    value = scope.column(branch.args["true"])
    if not isinstance(value.domain, Opaque):
        return None
    return value, as_flag(translate(branch.this, scope), branch.this).expression


def _both(one: Expression | None, other: Expression | None) -> Expression | None:
    return call("AND", one, other) if one is not None and other is not None else one if other is None else other


def _count_if(node: exp.CountIf, scope: Scope, label: str, condition: Expression | None) -> Request:
    flag = as_flag(translate(node.this, scope), node).expression
    return Request(kind="rows", label=label, condition=_both(flag, condition))


def _number(node: exp.Expression, scope: Scope) -> Value:
    return as_number(_argument(node, scope), node)


def _sum(node: exp.Sum, scope: Scope, label: str, condition: Expression | None) -> Request:
    value = _number(node, scope)
    if not grid(value).largest:
        raise reject(node, f"{show(node)} is zero for everybody.", "Add up something that is not.")
    return Request(kind="sum", label=label, value=value, condition=condition)


def _mean(node: exp.Avg, scope: Scope, label: str, condition: Expression | None) -> Request:
    return Request(kind="mean", label=label, value=_number(node, scope), condition=condition)


def _variance(*, sample: bool, root: bool) -> Reader:
    def apply(node: exp.Expression, scope: Scope, label: str, condition: Expression | None) -> Request:
        return Request(
            kind="variance", label=label, value=_number(node, scope), condition=condition, sample=sample, root=root
        )

    return apply


def _fractions(node: exp.Expression | None, owner: exp.Expression) -> tuple[tuple[Fraction, ...], bool]:
    """The wanted quantiles, and whether they were written as a list."""
    items = node.expressions if isinstance(node, exp.Array) else [node]
    try:
        # 1e999999999 is short, and must not be computed
        written = [item.this for item in items if isinstance(item, exp.Literal) and len(item.this) < 20]
        found = tuple(Fraction(text) for text in written if "e" not in text.lower())
    except ValueError:
        found = ()
    if not found or len(found) != len(items) or not all(0 <= each <= 1 for each in found):
        raise reject(
            owner, f"{show(owner)} needs numbers between 0 and 1, written out.", "Write QUANTILE_CONT(x, 0.5)."
        )
    if list(found) != sorted(set(found)) or len(found) > 32:
        raise reject(
            owner, "several quantiles must increase, and be 32 at most.", "Write QUANTILE_CONT(x, [0.25, 0.5, 0.75])."
        )
    return found, isinstance(node, exp.Array)


def _pickable(value: Value, node: exp.Expression) -> Value:
    if isinstance(value.domain, Number | Day | Moment):
        return value
    if isinstance(value.domain, Coded) and all_numeric(value.domain.values):
        return as_number(value, node)
    raise reject(
        node, f"{show(node)} needs numbers or dates with a public range.", "Use a number, a date or a timestamp."
    )


def _quantile_of(
    value: Value, quantiles: tuple[Fraction, ...], listed: bool, label: str, condition: Expression | None
) -> Request:
    return Request(kind="quantile", label=label, value=value, condition=condition, quantiles=quantiles, listed=listed)


def _fixed_quantile(quantile: Fraction) -> Reader:
    def apply(node: exp.Expression, scope: Scope, label: str, condition: Expression | None) -> Request:
        value = _pickable(_argument(node, scope), node)
        return _quantile_of(value, (quantile,), False, label, condition)

    return apply


def _quantile(node: exp.Expression, scope: Scope, label: str, condition: Expression | None) -> Request:
    wanted = node.args.get("quantile") if isinstance(node, exp.Quantile) else node.expression
    quantiles, listed = _fractions(wanted, node)
    return _quantile_of(_pickable(_argument(node, scope), node), quantiles, listed, label, condition)


def _within_group(node: exp.WithinGroup, scope: Scope, label: str, condition: Expression | None) -> Request:
    """PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)."""
    order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
    if not isinstance(node.this, exp.PercentileCont | exp.PercentileDisc) or len(order) != 1:
        raise reject(node, f"{show(node)} is not answered.", "Write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x).")
    quantiles, listed = _fractions(node.this.this, node)
    if order[0].args.get("desc"):
        quantiles = tuple(1 - each for each in reversed(quantiles))
        if listed:
            raise reject(node, "a list of quantiles in descending order is not answered.", "Leave DESC out.")
    return _quantile_of(_pickable(translate(order[0].this, scope), node), quantiles, listed, label, condition)


def _mode(node: exp.Mode, scope: Scope, label: str, condition: Expression | None) -> Request:
    value = _argument(node, scope)
    if isinstance(value.domain, Text | Opaque):
        raise reject(
            node,
            f"{show(node)} is one of the texts that people have, and those are not public.",
            "Write SELECT x, COUNT(*) AS n FROM t GROUP BY x ORDER BY n DESC LIMIT 1, which shows what many share.",
        )
    if not isinstance(value.domain, Coded | Flag | Number | Day) or value.domain.size > MOST_MODES:
        raise reject(node, f"{show(node)} needs a column with at most {MOST_MODES} public values.", "Round it first.")
    return Request(kind="mode", label=label, value=value, condition=condition)


def _pair(*, sample: bool, correlation: bool) -> Reader:
    def apply(node: exp.Expression, scope: Scope, label: str, condition: Expression | None) -> Request:
        values = [as_number(translate(part, scope), node) for part in (node.this, node.expression)]
        return Request(
            kind="pair",
            label=label,
            value=values[0],
            other=values[1],
            condition=condition,
            sample=sample,
            correlation=correlation,
        )

    return apply


MOST_MODES = 65_536

Reader = Callable[[exp.Expression, Scope, str, Expression | None], Request]

REQUESTS: dict[type[exp.Expression], Reader] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _mean,
    exp.Variance: _variance(sample=True, root=False),
    exp.VariancePop: _variance(sample=False, root=False),
    exp.Stddev: _variance(sample=True, root=True),
    exp.StddevSamp: _variance(sample=True, root=True),
    exp.StddevPop: _variance(sample=False, root=True),
    exp.Min: _fixed_quantile(Fraction(0)),
    exp.Max: _fixed_quantile(Fraction(1)),
    exp.Median: _fixed_quantile(Fraction(1, 2)),
    exp.Quantile: _quantile,
    exp.PercentileCont: _quantile,
    exp.PercentileDisc: _quantile,
    exp.WithinGroup: _within_group,
    exp.Mode: _mode,
    exp.CovarPop: _pair(sample=False, correlation=False),
    exp.CovarSamp: _pair(sample=True, correlation=False),
    exp.Corr: _pair(sample=False, correlation=True),
}
_SINGLE: tuple[type[exp.Expression], ...] = (exp.First, exp.Last, exp.AnyValue, exp.ArgMax, exp.ArgMin)
_LISTS: tuple[type[exp.Expression], ...] = (exp.ArrayAgg, exp.GroupConcat, exp.ArrayUniqueAgg)
_REFUSED: tuple[tuple[tuple[type[exp.Expression], ...], str, str], ...] = (
    (
        _SINGLE,
        "shows what stands in one person's row",
        "Ask what many share: MODE(x), MEDIAN(x), or SELECT x, COUNT(*) FROM t GROUP BY x.",
    ),
    (
        (exp.RegrSlope, exp.RegrIntercept, exp.RegrR2),
        "is not answered",
        "The slope is COVAR_POP(y, x) / VAR_POP(x), the intercept AVG(y) - slope * AVG(x), R² is CORR(y, x) squared.",
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
NAMES = (
    "COUNT, COUNT(DISTINCT), SUM, AVG, VARIANCE, STDDEV, MIN, MAX, MEDIAN, QUANTILE_CONT, MODE,"
    " COVAR_POP, COVAR_SAMP and CORR"
)
