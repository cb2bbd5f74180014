"""Results as JSON, for clients that read a column of it: ROW_TO_JSON(t), JSON_AGG(t),
JSON_BUILD_OBJECT('n', COUNT(*)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from discreet.sql.after import error_bars
from discreet.sql.text.parse import reject, show

NAMES = ("row_to_json", "to_json", "to_jsonb", "array_to_json", "json_build_object")


def is_json(node: exp.Expression | None) -> bool:
    """Return True for a call that makes JSON."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in NAMES


def rebuilt(
    node: exp.Anonymous, rewrite: Callable[[exp.Expression], exp.Expression]
) -> exp.Expression:
    """Rebuild TO_JSON(x) and JSON_BUILD_OBJECT('a', x, ...) in the engine's words."""
    parts = node.expressions
    if node.name.lower() == "json_build_object":
        names = parts[::2]
        if len(parts) % 2 or not all(isinstance(each, exp.Literal) for each in names):
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
    """Return a call whose JSON is shown as a text, unless it stands inside of other JSON."""
    made = exp.Anonymous(this=name, expressions=parts)
    above = node.parent
    while isinstance(above, exp.Expression) and not isinstance(above, exp.Query):
        if is_json(above):
            return made
        above = above.parent
    return exp.cast(made, "VARCHAR")


def row(node: exp.Expression, sources: Mapping[str, Any]) -> exp.Expression | None:
    """Return ROW_TO_JSON(t), or t standing for its rows, as an object of the table's columns; None
    for other nodes.

    None where the node is neither.
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
    table, name = sources.get(only.name.lower()), only.name.lower()
    columns = {output.name.lower() for source in sources.values() for output in source.outputs}
    if table is None or name in columns:
        return None
    if any(output.half_width == "late" for output in table.outputs):
        raise error_bars.not_here(node)
    pairs = [
        part
        for output in table.outputs
        for part in (
            exp.Literal.string(output.name),
            exp.column(output.name, table=only.name, quoted=True),
        )
    ]
    return _text("json_object", pairs, node)
