"""Leave out words that tools add and that change nothing: OFFSET 0, LIMIT ALL, brackets around a
column, LIMIT 1 inside EXISTS, (SELECT x) without a table, a schema before a function.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.aggregates import aggregates_in
from discreet.sql.text.parse import is_bare, whole


def without_cut(node: exp.Expression) -> exp.Expression:
    """OFFSET 0, LIMIT ALL and LIMIT NULL leave every row."""
    if not isinstance(node, exp.Query):
        return node
    offset, limit = node.args.get("offset"), node.args.get("limit")
    if isinstance(offset, exp.Offset) and whole(offset.expression) == 0:
        node.set("offset", None)
    count = limit.expression if isinstance(limit, exp.Limit) else None
    is_all = isinstance(count, exp.Var) and count.name.upper() == "ALL"
    if is_all or isinstance(count, exp.Null):
        node.set("limit", None)
    return node


def without_first_row(node: exp.Expression) -> exp.Expression:
    """EXISTS (SELECT ... ORDER BY ... LIMIT 1): whether there is a row does not depend on these."""
    select = node.this.unnest() if isinstance(node, exp.Exists) else None
    if not isinstance(select, exp.Select) or select.args.get("offset"):
        return node
    limit = select.args.get("limit")
    count = whole(limit.expression) if isinstance(limit, exp.Limit) else None
    if limit is None or count:  # LIMIT 0 leaves no row
        select.set("limit", None)
        select.set("order", None)
    return node


def without_brackets(node: exp.Expression) -> exp.Expression:
    """(a.owner) = (b.owner): brackets around a column."""
    is_column = isinstance(node, exp.Paren) and isinstance(node.this, exp.Column)
    return node.this if is_column else node


def without_select(node: exp.Expression) -> exp.Expression:
    """(SELECT x) without a FROM clause is x, where one value stands."""
    if not isinstance(node, exp.Subquery) or not is_bare(node) or node.args.get("alias"):
        return node
    select = node.this
    is_plain = isinstance(select, exp.Select) and not _clauses(select) - {"expressions"}
    if not is_plain or len(select.expressions) != 1 or not isinstance(node.parent, _VALUES):
        return node
    item = select.expressions[0].unalias()
    many = item.is_star or aggregates_in(item) or item.find(exp.Window, exp.UDTF, exp.Explode)
    return node if many else exp.Paren(this=item)


# Where a query in brackets stands for its one value, and not for its rows.
_VALUES = exp.Binary | exp.Paren | exp.Alias | exp.Cast | exp.Between | exp.Case | exp.If | exp.Neg


def without_schema(node: exp.Expression) -> exp.Expression:
    """pg_catalog.lower(x) is lower(x)."""
    if not isinstance(node, exp.Dot) or not isinstance(node.this, exp.Identifier):
        return node
    call = node.expression
    is_call = isinstance(call, exp.Anonymous) and node.this.name.lower() == "pg_catalog"
    if not is_call:
        return node
    return exp.func(call.name, *call.expressions, dialect="postgres")


def same_or_missing(node: exp.Expression) -> exp.Expression:
    """ON a = b OR a IS NULL AND b IS NULL is ON a IS NOT DISTINCT FROM b.

    With one NULL the first is NULL and the second false: to ON and WHERE the same, to NOT not.
    """
    if not isinstance(node, exp.Or) or not _must_hold(node):
        return node
    for equal, missing in ((node.this, node.expression), (node.expression, node.this)):
        equal, missing = equal.unnest(), missing.unnest()
        if type(equal) is not exp.EQ or not isinstance(missing, exp.And):
            continue
        absent = [_null_test(part) for part in (missing.this, missing.expression)]
        sides = [equal.this.unnest(), equal.expression.unnest()]
        if absent in (sides, sides[::-1]):
            return exp.Paren(this=exp.NullSafeEQ(this=sides[0], expression=sides[1]))
    return node


def _must_hold(node: exp.Expression) -> bool:
    """Return True if a condition is one of those that ON or WHERE asks for, all together."""
    above = node.parent
    while isinstance(above, exp.Paren | exp.And):
        above = above.parent
    return isinstance(above, exp.Join | exp.Where)


def _null_test(node: exp.Expression) -> exp.Expression | None:
    """Return x, of x IS NULL."""
    inner = node.unnest()
    is_test = isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null)
    return inner.this.unnest() if is_test and not inner.args.get("negate") else None


def _clauses(select: exp.Select) -> set[str]:
    return {name for name, part in select.args.items() if part}


RULES = (
    without_cut,
    without_first_row,
    without_brackets,
    without_select,
    without_schema,
    same_or_missing,
)
