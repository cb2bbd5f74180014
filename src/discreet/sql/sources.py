"""Read parts of a FROM clause: check names of tables, write out series, rename columns."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from discreet.sql.after.released import OutputTable, require_distinct_names
from discreet.sql.after.tables import constants
from discreet.sql.rows.relation import Relation
from discreet.sql.text.parse import (
    columns_of,
    quote_if_needed,
    reject,
    show,
)
from discreet.sql.text.rules import explode

WRITTEN_OUT = "Write its rows out: (VALUES (1), (2), (3)) AS t(n)."


def check_without_from(node: exp.Select, tables: Iterable[str]) -> None:
    """Refuse what only a FROM clause can mean."""
    if node.args.get("joins"):
        raise reject(node, "JOIN stands without FROM.", "Write FROM and a table before it.")
    if any(item.is_star for item in node.expressions):
        table = next(map(quote_if_needed, tables), "t")
        raise reject(
            node,
            "* means the columns of a table, and there is no FROM.",
            f"Write FROM and a table: SELECT COUNT(*) FROM {table}.",
        )


def check_table(node: exp.Table, tables: Iterable[str]) -> None:
    """Refuse a table with a part that is not understood."""
    if node.args.get("db"):
        raise reject(
            node,
            f"there is no schema {node.text('db')}.",
            f"Tables are {', '.join(tables)}.",
        )
    if node.args.get("pivots"):
        raise reject(
            node,
            "PIVOT is not answered.",
            "Write one column each: COUNT(*) FILTER (WHERE sex = 'F') AS f.",
        )
    for name, part in node.args.items():
        if name not in ("this", "alias") and part not in (None, False, []):
            raise reject(
                node,
                f"{show(node)} has a part that is not understood ({name}).",
                "Write the name of a table.",
            )


def check_name(node: exp.Table, tables: Iterable[str]) -> None:
    """Refuse a table that is not a plain name."""
    if columns_of(node):
        raise reject(
            node,
            f"{show(node)} names columns by their places.",
            "Use their own names, as in p.age.",
        )
    if not isinstance(node.this, exp.Identifier):
        raise reject(
            node,
            f"{show(node)} is not a table.",
            f"Tables are {', '.join(tables)}.",
        )


def series(node: exp.Table | exp.Unnest) -> OutputTable:
    """Return GENERATE_SERIES(1, 10) AS t(n) or UNNEST([1, 2]) AS t(n) as a public table of
    constants.
    """
    function = _function(node)
    values = explode.list_rows(function)
    if not values:
        raise reject(node, f"{show(function)} is not a table.", WRITTEN_OUT)
    rows = [exp.Tuple(expressions=[each]) for each in values]
    name = "generate_series" if function.find(exp.GenerateSeries) else "unnest"
    names = columns_of(node) or [node.alias or name]
    return constants(exp.Values(expressions=rows)).rename(names[:1])


def _function(node: exp.Table | exp.Unnest) -> exp.Expression:
    return node.this if isinstance(node, exp.Table) else node


def name_columns(result: Relation | OutputTable, node: exp.Expression) -> Relation | OutputTable:
    """Rename the first columns of a result, as in WITH t(a, b) and (SELECT ...) AS t(a, b)."""
    names = columns_of(node)
    if not names:
        return result
    columns = result.fields if isinstance(result, Relation) else result.outputs
    count = len(columns)
    if len(names) > count:
        raise reject(
            node, f"{len(names)} names are given for {count} columns.", "Name each column once."
        )
    if isinstance(result, Relation):
        return result.rename(names)
    return require_distinct_names(result, node).rename(names)
