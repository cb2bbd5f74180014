"""Guard a statement that runs after noise against errors: a value that would be an error is
NULL.
"""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp

from discreet.sql.after.rebuild import AGGREGATES, as_sql


def guard_with_try(sql: str) -> str:
    """Return the statement with NULL wherever a value would be an error, as far as the engine can
    try.

    For when a noisy number met what no made-up one did: COALESCE(NULLIF(n, 11), 'eleven') at 11. It
    has been paid for.
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
        for each in part:
            _try_parts(each)
    elif not isinstance(part, exp.Expression) or isinstance(part, exp.Query):
        return
    elif _triable(part):
        part.replace(exp.Try(this=part.copy()))
    else:
        for each in list(part.args.values()):
            _try_parts(each)


def _triable(node: exp.Expression) -> bool:
    """Return True if TRY can hold it, and it can fail."""
    plain = exp.Column | exp.Literal | exp.Null | exp.Boolean | exp.Star | exp.Identifier | exp.If
    holds = not node.find(exp.Query, exp.Window, *AGGREGATES)
    return isinstance(node, exp.Condition) and not isinstance(node, plain) and holds
