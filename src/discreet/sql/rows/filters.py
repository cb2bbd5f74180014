"""JOIN b ON a.owner = b.owner, where b only decides which rows of a are seen and nobody counts how
often: planned as EXISTS.

SELECT DISTINCT, COUNT(DISTINCT x), MIN and MAX are the same whether a row stands once or several
times. So of a row of a they need to know whether it meets some row of b. That is EXISTS (SELECT 1
FROM b WHERE a.owner = b.owner AND ...). As a join, one person may have as many rows as both tables
allow; as EXISTS no more than a allows (S4).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from discreet.sql.rows.antijoins import Columns, columns_of, condition_of, is_used, side_of
from discreet.sql.rows.owners import conjuncts


def without_filters(node: exp.Select, private: Columns) -> exp.Select:
    """Return the SELECT with EXISTS in the place of joins that only filter, if it sees rows
    once.
    """
    joins = node.args.get("joins") or []
    if not joins or not _sees_once(node):
        return node
    for place, join in enumerate(joins):
        condition = _where_with(node, join, private)
        if condition is not None:
            copy = node.copy()
            copy.set(
                "joins", [each for index, each in enumerate(copy.args["joins"]) if index != place]
            )
            copy.set("where", exp.Where(this=condition))
            return without_filters(copy, private)
    return node


def _sees_once(node: exp.Select) -> bool:
    """Return True if rows that stand several times change nothing."""
    distinct = node.args.get("distinct")
    parts = [each for each in node.walk() if _belongs_to(each, node)]
    if any(isinstance(each, exp.Window | exp.Star) for each in parts):
        return False
    aggregates = [each for each in parts if isinstance(each, exp.AggFunc)]
    if not aggregates:
        return distinct is not None and not distinct.args.get("on") and not node.args.get("group")
    return all(map(_ignores_copies, aggregates))


def _belongs_to(part: exp.Expression, node: exp.Select) -> bool:
    return part is not node and part.parent_select is node


def _ignores_copies(aggregate: exp.Expression) -> bool:
    if isinstance(aggregate, exp.Count):
        return isinstance(aggregate.this, exp.Distinct)
    return type(aggregate) in (exp.Min, exp.Max)


def _counts_people(node: exp.Select, keys: set[str]) -> bool:
    """Return True if only what rows are joined by is counted: how many rows a person has makes no
    difference there.
    """
    aggregates = list(node.find_all(exp.AggFunc))
    return bool(aggregates) and all(
        isinstance(each, exp.Count)
        and any(column.name.lower() in keys for column in each.find_all(exp.Column))
        for each in aggregates
    )


def _where_with(node: exp.Select, join: exp.Join, private: Columns) -> exp.Expression | None:
    """Return what WHERE says with the join as EXISTS; None where the join is more than a test."""
    columns, where = columns_of(join.this, private), node.args.get("where")
    if side_of(join) != "INNER" or columns is None:
        return None
    alias = join.this.alias_or_name.lower()
    own = set(columns) - {each.name.lower() for each in join.args.get("using") or []}
    said = conjuncts(None if where is None else where.this)
    tests = [part for part in said if _looks_at(part, alias, own)]
    parts = condition_of(node, join, alias)
    keys = set(_keys(parts))
    plain = keys and not any(part.find(exp.Query) for part in tests)
    if not plain or _counts_people(node, keys) or is_used(node, join, alias, tests, columns):
        return None
    if not _only_private(node, join, tests, own, private):
        return None
    inner = exp.select("1").from_(join.this.copy())
    inner = inner.where(*(part.copy() for part in (*parts, *tests)))
    rest = [part.copy() for part in said if not any(part is test for test in tests)]
    return exp.and_(*rest, exp.Exists(this=inner))


def _keys(parts: list[exp.Expression]) -> Iterator[str]:
    """Yield the columns that ON compares for equality."""
    for part in parts:
        if isinstance(part, exp.EQ):
            yield from (column.name.lower() for column in part.find_all(exp.Column))


def _looks_at(part: exp.Expression, alias: str, columns: set[str]) -> bool:
    return any(
        column.table.lower() == alias if column.table else column.name.lower() in columns
        for column in part.find_all(exp.Column)
    )


def _only_private(
    node: exp.Select,
    join: exp.Join,
    tests: list[exp.Expression],
    own: set[str],
    private: Columns,
) -> bool:
    """Return True if the rows that stay are people's, and each name without a table in the tests is
    a column of the joined one.
    """
    sources = [node.args["from_"].this, *(each.this for each in node.args["joins"])]
    known = [columns_of(source, private) for source in sources if source is not join.this]
    if known[0] is None:
        return False
    columns = (column for part in tests for column in part.find_all(exp.Column))
    bare = {column.name.lower() for column in columns if not column.table} & own
    return not bare or not any(each is None or bare & set(each) for each in known)
