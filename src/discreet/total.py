"""Expressions that fail on no row: a second wall behind the first, that none is written which could.

Privacy: an engine that fails on one person's row tells that the row is there. Every expression that we write for the
engine is total by its own making. Should one fail all the same, because the engine does not do what we think it does,
the statement is run again with NULL in the place of what fails, row by row. What is claimed of an expression holds of
NULL too, and other people's rows are computed as before: so one person still changes no more than their own rows.
"""

from __future__ import annotations

import re

_MARK = "/*try*/"
_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_MARKED = re.compile(f"{re.escape(_MARK)}|{_QUOTED}")
_SEVERAL_ROWS = re.compile(r" OVER \(|\(SELECT ")


def tried(sql: str) -> str:
    """Engine SQL of an expression, marked. Windows and subqueries, which look at several rows, cannot be."""
    if "(" not in sql:  # a column alone
        return sql
    if _SEVERAL_ROWS.search(sql) and _SEVERAL_ROWS.search(re.sub(_QUOTED, "", sql)):
        return sql
    return f"{_MARK}({sql})"


def null_where_it_fails(sql: str) -> str:
    """The same statement with NULL for whatever marked part fails on a row; what is quoted stays as it is."""
    return _MARKED.sub(lambda found: "TRY" if found[0] == _MARK else found[0], sql)
