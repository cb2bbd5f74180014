"""Rewrite a join that only filters as EXISTS: JOIN b ON a.owner = b.owner, if b only decides which
rows of a are read, and no copies are counted.

SELECT DISTINCT, COUNT(DISTINCT x), MIN and MAX give the same if a row appears several times. So they
only need to know whether a row of a meets some row of b. That is EXISTS (SELECT 1 FROM b WHERE
a.owner = b.owner AND ...). With the join one person may have as many rows as both tables allow
together; with EXISTS no more than a allows (S4).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.sql.rows.owners import conjuncts
from discreet.sql.rows.rewrites.antijoins import (
    Columns,
    columns_of,
    condition_of,
    is_used,
    side_of,
    without_join,
)


def without_filters(node: exp.Select, private: Columns) -> exp.Select:
    """Return the SELECT with EXISTS instead of joins that only filter, if copies of rows do not
    change its result.
    """
    joins = node.args.get("joins") or []
    if not joins or not _ignores_row_copies(node):
        return node
    for place, join in enumerate(joins):
        condition = _where_with(node, join, private)
        if condition is not None:
            return without_filters(without_join(node, place, condition), private)
    return node


def _ignores_row_copies(node: exp.Select) -> bool:
    """Return True if copies of rows do not change the result of a SELECT."""
    distinct = node.args.get("distinct")
    parts = [each for each in node.walk() if _belongs_to(each, node)]
    if any(isinstance(each, exp.Window | exp.Star) for each in parts):
        return False
    aggregates = [each for each in parts if isinstance(each, exp.AggFunc)]
    if not aggregates:
        return distinct is not None and not distinct.args.get("on") and not node.args.get("group")
    return all(map(_ignores_copies, aggregates))


def _belongs_to(part: exp.Expression, node: exp.Select) -> bool:
    """Return True if a part is of this SELECT, not of a subquery in it."""
    return part is not node and part.parent_select is node


def _ignores_copies(aggregate: exp.Expression) -> bool:
    """Return True if copies of rows do not change an aggregate."""
    if isinstance(aggregate, exp.Count):
        return isinstance(aggregate.this, exp.Distinct)
    return type(aggregate) in (exp.Min, exp.Max)


def _counts_people(node: exp.Select, keys: set[str]) -> bool:
    """Return True if all aggregates count the columns of the join condition: then the number of a
    person's rows makes no difference.
    """
    aggregates = list(node.find_all(exp.AggFunc))
    return bool(aggregates) and all(_counts_key(each, keys) for each in aggregates)


def _counts_key(aggregate: exp.Expression, keys: set[str]) -> bool:
    if not isinstance(aggregate, exp.Count):
        return False
    return any(column.name.lower() in keys for column in aggregate.find_all(exp.Column))


def _where_with(node: exp.Select, join: exp.Join, private: Columns) -> exp.Expression | None:
    """Return the WHERE condition with the join as EXISTS; None if the join does more than filter."""
    columns = columns_of(join.this, private)
    where = node.args.get("where")
    if side_of(join) != "INNER" or columns is None:
        return None
    alias = join.this.alias_or_name.lower()
    own = set(columns) - {each.name.lower() for each in join.args.get("using") or []}
    conditions = conjuncts(None if where is None else where.this)
    tests = [part for part in conditions if _looks_at(part, alias, own)]
    parts = condition_of(node, join, alias)
    keys = set(_keys(parts))
    if not keys or any(part.find(exp.Query) for part in tests):
        return None
    if _counts_people(node, keys) or is_used(node, join, alias, tests, columns):
        return None
    if not _only_private(node, join, tests, own, private):
        return None
    inner = exp.select("1").from_(join.this.copy())
    inner = inner.where(*(part.copy() for part in (*parts, *tests)))
    rest = [part.copy() for part in conditions if not any(part is test for test in tests)]
    return exp.and_(*rest, exp.Exists(this=inner))


def _keys(parts: list[exp.Expression]) -> Iterator[str]:
    """Yield the columns in equalities of the join condition."""
    for part in parts:
        if isinstance(part, exp.EQ):
            yield from (column.name.lower() for column in part.find_all(exp.Column))


def _looks_at(part: exp.Expression, alias: str, columns: set[str]) -> bool:
    """Return True if a condition reads a column of the joined table."""
    for column in part.find_all(exp.Column):
        if column.table.lower() == alias:
            return True
        if not column.table and column.name.lower() in columns:
            return True
    return False


def _only_private(
    node: exp.Select,
    join: exp.Join,
    tests: list[exp.Expression],
    own: set[str],
    private: Columns,
) -> bool:
    """Return True if the other rows are private, and each name without a table in the tests can only
    be a column of the joined table.
    """
    sources = [node.args["from_"].this, *(each.this for each in node.args["joins"])]
    others = [columns_of(source, private) for source in sources if source is not join.this]
    if others[0] is None:
        return False
    columns = (column for part in tests for column in part.find_all(exp.Column))
    without_table = {column.name.lower() for column in columns if not column.table} & own
    if not without_table:
        return True
    return not any(each is None or without_table & set(each) for each in others)
