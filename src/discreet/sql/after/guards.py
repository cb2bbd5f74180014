"""Guard a statement that runs after noise against errors: write NULL where a value would be one."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from discreet.sql.after.rebuild import AGGREGATES, as_sql


def guard_with_try(sql: str) -> str:
    """Return the statement with TRY around every part that can fail, so that it is NULL instead.

    Use it if a statement failed on noisy numbers although it did not fail on made-up ones, as
    COALESCE(NULLIF(n, 11), 'eleven') fails at 11. The answer is paid for, so show the rest of it.
    """
    tree = sqlglot.parse_one(sql, read="duckdb")
    for node in list(tree.find_all(exp.Select)):
        for name in ("expressions", "where", "group", "having", "qualify", "order"):
            _try_parts(node.args.get(name))
        for join in node.args.get("joins") or []:
            _try_parts(join.args.get("on"))
    return as_sql(tree)


def _try_parts(part: Any) -> None:
    if isinstance(part, list):
        for item in part:
            _try_parts(item)
    elif not isinstance(part, exp.Expression) or isinstance(part, exp.Query):
        return
    elif _triable(part):
        part.replace(exp.Try(this=part.copy()))
    else:
        for child in list(part.args.values()):
            _try_parts(child)


def _triable(node: exp.Expression) -> bool:
    """Return True if the engine can TRY a node and the node can fail."""
    plain = exp.Column | exp.Literal | exp.Null | exp.Boolean | exp.Star | exp.Identifier | exp.If
    can_fail = isinstance(node, exp.Condition) and not isinstance(node, plain)
    return can_fail and not node.find(exp.Query, exp.Window, *AGGREGATES)
