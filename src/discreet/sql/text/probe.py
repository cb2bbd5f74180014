"""Probes: statements that no row can come of, by which clients learn names and types. They are
free.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.aggregates import aggregates_in
from discreet.sql.text.parse import whole


def without_empty_clauses(tree: exp.Query) -> exp.Query | None:
    """Return the statement without what rules all rows out, where something does: LIMIT 0, WHERE 1
    = 0, WHERE FALSE.
    """
    if not isinstance(tree, exp.Select) or not _is_empty(tree):
        return None
    made = tree.copy()
    for select in made.find_all(exp.Select):
        if _is_zero(select):
            select.set("limit", None)
        if _is_ruled_out(select):
            select.set("where", None)
    for clause in ("order", "limit", "offset"):
        made.set(clause, None)
    return made


def _is_empty(select: exp.Select) -> bool:
    """Return True if a SELECT has no rows, whatever the tables hold."""
    if _is_zero(select):
        return True
    alone = not select.args.get("group") and any(aggregates_in(item) for item in select.expressions)
    source = select.args["from_"].this if select.args.get("from_") else None
    inner = source.this if isinstance(source, exp.Subquery) else None
    nothing = isinstance(inner, exp.Select) and not select.args.get("joins") and _is_empty(inner)
    return not alone and (nothing or _is_ruled_out(select))


def _is_zero(select: exp.Select) -> bool:
    limit = select.args.get("limit")
    return isinstance(limit, exp.Limit) and whole(limit.expression) == 0


def _is_ruled_out(select: exp.Select) -> bool:
    where = select.args.get("where")
    return where is not None and _truth(where.this) is False


def _truth(node: exp.Expression) -> bool | None:
    """Return True or False for a condition of constants; None where it is none."""
    match node:
        case exp.Paren():
            return _truth(node.this)
        case exp.Boolean():
            return bool(node.this)
        case exp.Not():
            inner = _truth(node.this)
            return None if inner is None else not inner
        case exp.And():
            parts = [_truth(node.this), _truth(node.expression)]
            return False if False in parts else None if None in parts else True
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.GT():
            sides = [
                part.this if isinstance(part, exp.Literal) else None
                for part in (node.this, node.expression)
            ]
            numbers = [
                int(side)
                for side in sides
                if isinstance(side, str) and side.isdigit() and len(side) < 10
            ]
            if len(numbers) != 2:
                return None
            left, right = numbers
            holds = {
                exp.EQ: left == right,
                exp.NEQ: left != right,
                exp.LT: left < right,
                exp.GT: left > right,
            }
            return holds[type(node)]
    return None
