"""SHOW TABLES, SHOW COLUMNS FROM t, DESCRIBE t: each is a SELECT from information_schema."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from discreet.errors import Rejected

_TABLES = "SELECT table_name AS name, table_comment AS comment FROM information_schema.tables"
_COLUMNS = (
    'SELECT column_name, data_type AS column_type, is_nullable AS "null", column_key AS "key",'
    " column_comment AS comment FROM information_schema.columns WHERE table_name = {} ORDER BY ordinal_position"
)


def in_words_of_select(tree: exp.Expression, tables: Collection[str]) -> str | None:
    """Return the SELECT that a statement means, where it asks for tables or for the columns of one
    of `tables`.
    """
    if isinstance(tree, exp.Describe) and isinstance(tree.this, exp.Table):
        return _columns(tree.this.name, tables)
    words = _show(tree)
    match [each.upper() for each in words]:
        case ["TABLES"] | ["ALL" | "FULL", "TABLES"]:
            return _TABLES
        case ["COLUMNS" | "FIELDS", "FROM" | "IN", _]:
            return _columns(words[2], tables)
        case [name] if name.lower() in {each.lower() for each in tables}:
            return _columns(words[0], tables)
    return None


def _show(tree: exp.Expression) -> list[str]:
    """Return what stands behind SHOW, word by word."""
    if isinstance(tree, exp.Show):
        return [] if tree.args.get("from_") else str(tree.this).split()
    if not isinstance(tree, exp.Command) or str(tree.this).upper() != "SHOW":
        return []
    rest = tree.expression
    return str(rest.this if isinstance(rest, exp.Expression) else rest).rstrip("; ").split()


def _columns(name: str, tables: Collection[str]) -> str:
    bare = name.rpartition(".")[2].strip('"')
    known = next((each for each in tables if each.lower() == bare.lower()), None)
    if known is None:
        raise Rejected(f"there is no table {bare}.", hint=f"Tables are {', '.join(tables)}.")
    return _COLUMNS.format(exp.Literal.string(known).sql(dialect="duckdb"))
