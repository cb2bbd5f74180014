"""Results as JSON: ROW_TO_JSON(t), JSON_AGG(t), JSON_BUILD_OBJECT('n', COUNT(*)). Some clients read
one column of JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from discreet.sql.after import error_bars
from discreet.sql.text.parse import reject, show

NAMES = ("row_to_json", "to_json", "to_jsonb", "array_to_json", "json_build_object")


def is_json(node: exp.Expression | None) -> bool:
    """Return True if a node is a call that makes JSON."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in NAMES


def rebuild_json(
    node: exp.Anonymous, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Return TO_JSON(x) or JSON_BUILD_OBJECT('a', x, ...) as the engine writes it."""
    parts = node.expressions
    if node.name.lower() == "json_build_object":
        names = parts[::2]
        if len(parts) % 2 or not all(isinstance(name, exp.Literal) for name in names):
            raise reject(
                node,
                f"{show(node)} needs a name before each value, written out.",
                "Write JSON_BUILD_OBJECT('n', COUNT(*)).",
            )
        return _text("json_object", [rewrite(part) for part in parts], node)
    if node.name.lower() == "row_to_json" or len(parts) != 1:
        raise reject(
            node, f"{show(node)} is not answered.", "Write ROW_TO_JSON(t), of a table in FROM."
        )
    return _text("to_json", [rewrite(parts[0])], node)


def _text(name: str, parts: list[exp.Expression], node: exp.Expression) -> exp.Expression:
    """Return a call whose JSON is a text, unless the call is inside other JSON."""
    json = exp.Anonymous(this=name, expressions=parts)
    above = node.parent
    while isinstance(above, exp.Expression) and not isinstance(above, exp.Query):
        if is_json(above):
            return json
        above = above.parent
    return exp.cast(json, "VARCHAR")


def row(node: exp.Expression, sources: Mapping[str, Any]) -> exp.Expression | None:
    """Return ROW_TO_JSON(t), or t inside JSON, as an object with the table's columns; None for
    other nodes.
    """
    only = node
    if isinstance(node, exp.Anonymous):
        if node.name.lower() not in NAMES[:3] or len(node.expressions) != 1:
            return None
        only = node.expressions[0]
    elif not is_json(node.find_ancestor(exp.Anonymous, exp.Query)):
        return None
    if not isinstance(only, exp.Column) or only.table:
        return None
    table = sources.get(only.name.lower())
    name = only.name.lower()
    columns = {output.name.lower() for source in sources.values() for output in source.outputs}
    if table is None or name in columns:
        return None
    if any(output.half_width == "late" for output in table.outputs):
        raise error_bars.not_here(node)
    pairs: list[exp.Expression] = []
    for output in table.outputs:
        pairs.append(exp.Literal.string(output.name))
        pairs.append(exp.column(output.name, table=only.name, quoted=True))
    return _text("json_object", pairs, node)
