"""Rewrite WITH TIES and DISTINCT ON as QUALIFY.

ORDER BY n DESC FETCH FIRST 3 ROWS WITH TIES      QUALIFY RANK() OVER (ORDER BY n DESC) <= 3
DISTINCT ON (id) ... ORDER BY id, day DESC        QUALIFY ROW_NUMBER() OVER (PARTITION BY id ...) = 1
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.text.parse import whole


def rewrite_ties(node: exp.Expression) -> exp.Expression:
    """FETCH FIRST n ROWS WITH TIES: all whose rank is at most n."""
    fetch = node.args.get("limit") if isinstance(node, exp.Select) else None
    options = fetch.args.get("limit_options") if isinstance(fetch, exp.Fetch) else None
    if fetch is None or options is None or options.args.get("percent"):
        return node
    if not options.args.get("with_ties"):
        return node
    order, count = node.args.get("order"), whole(fetch.args.get("count"))
    if order is None or count is None or not _is_free(node):
        return node
    rank = exp.Window(this=exp.Rank(), order=_resolve_order(order, node), over="OVER")
    node.set("limit", None)
    few = exp.LTE(this=rank, expression=exp.Literal.number(count))
    node.set("qualify", exp.Qualify(this=few))
    return node


def rewrite_distinct_on(node: exp.Expression) -> exp.Expression:
    """DISTINCT ON (k) ... ORDER BY k, n: the first row of each k."""
    distinct = node.args.get("distinct") if isinstance(node, exp.Select) else None
    on, order = (distinct.args.get("on"), node.args.get("order")) if distinct else (None, None)
    if on is None or order is None or not _is_free(node):
        return node
    keys = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
    meant = _resolve_order(order, node)
    place = exp.Window(
        this=exp.RowNumber(), partition_by=[_resolve_name(key, node) for key in keys], order=meant
    )
    place.set("over", "OVER")
    node.set("distinct", None)
    first = exp.EQ(this=place, expression=exp.Literal.number(1))
    node.set("qualify", exp.Qualify(this=first))
    if isinstance(node.parent, exp.Subquery | exp.CTE) and not node.args.get("limit"):
        node.set("order", None)  # the order of rows in a subquery means nothing
    return node


def _is_free(node: exp.Expression) -> bool:
    """Return True if a SELECT has no QUALIFY and no OFFSET, with which these would mix."""
    return not node.args.get("qualify") and not node.args.get("offset")


def _resolve_order(order: exp.Order, node: exp.Expression) -> exp.Order:
    """ORDER BY 2 DESC, n as an order of expressions."""
    copy = order.copy()
    for item in copy.expressions:
        item.set("this", _resolve_name(item.this, node))
    return copy


def _resolve_name(key: exp.Expression, node: exp.Expression) -> exp.Expression:
    """Return what a place or a name of the SELECT list stands for."""
    place = whole(key)
    if place and place <= len(node.expressions):
        return node.expressions[place - 1].unalias().copy()
    if isinstance(key, exp.Column) and not key.table:
        for item in node.expressions:
            if isinstance(item, exp.Alias) and item.alias.lower() == key.name.lower():
                return item.this.copy()
    return key.copy()
