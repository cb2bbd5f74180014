"""Rows of constants: SELECT GENERATE_SERIES(1, 12), SELECT UNNEST([20, 30]), FROM UNNEST([20, 30])."""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.text import constants

_EXPLODING = exp.Explode | exp.Unnest


def rewrite_select(node: exp.Expression) -> exp.Expression:
    """Rewrite SELECT GENERATE_SERIES(1, 12) AS n to SELECT n FROM (VALUES (1), ...) AS series(n)."""
    if not isinstance(node, exp.Select) or node.args.get("from_"):
        return node
    found = [
        part
        for part in node.find_all(_EXPLODING)
        if part.find_ancestor(exp.Select) is node and not isinstance(part.parent, exp.From)
    ]
    rows = list_rows(found[0]) if len(found) == 1 else None
    if rows is None:
        return node
    name = "generate_series" if found[0].find(exp.GenerateSeries) else "unnest"
    for item in node.expressions:
        if not isinstance(item, exp.Alias) and item.find(_EXPLODING) is found[0]:
            item.replace(exp.alias_(item.copy(), name))
    values = exp.Values(
        expressions=[exp.Tuple(expressions=[each]) for each in rows],
        alias=exp.TableAlias(this=exp.to_identifier("series"), columns=[exp.to_identifier("n")]),
    )
    made = node.copy()
    [series] = [
        part for part in made.find_all(_EXPLODING) if part.find_ancestor(exp.Select) is made
    ]
    series.replace(exp.column("n", table="series"))
    made.set("from_", exp.From(this=values))
    return made


def list_rows(node: exp.Expression) -> list[exp.Expression] | None:
    """Return the constants that a series or a written list stands for; None of anything else."""
    if isinstance(node, exp.Explode):
        return list_rows(node.this)
    if isinstance(node, exp.Unnest):
        return list_rows(node.expressions[0]) if len(node.expressions) == 1 else None
    if isinstance(node, exp.GenerateSeries):
        return constants.series_rows(node)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Array):
        kind = node.args["to"].expressions
        inner = list_rows(node.this)
        if inner is None or len(kind) != 1:
            return inner
        return [exp.Cast(this=each, to=kind[0].copy()) for each in inner]
    if not isinstance(node, exp.Array) or not 0 < len(node.expressions) <= constants.MOST_SERIES:
        return None
    known = all(_is_constant(each) for each in node.expressions)
    return [each.unnest().copy() for each in node.expressions] if known else None


def _is_constant(node: exp.Expression) -> bool:
    inner = node.this if isinstance(node, exp.Cast | exp.Neg | exp.Paren) else node
    return isinstance(inner, exp.Literal | exp.Boolean) or (
        inner is not node and _is_constant(inner)
    )
