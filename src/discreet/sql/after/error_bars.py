"""MARGIN(x): the half-width of x as a column, for tools that draw error bars. It costs nothing,
because it depends on the noise alone (S11).

If x is an aggregate, or computed from aggregates of its own row, its half-width is a column of the
noisy table, and MARGIN(x) may stand in any expression. Otherwise `joint` finds the half-width at the
end, by computing the statement again. Until then the column holds x itself; a statement can pass
such a "late" column on, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

from discreet.sql.text.parse import reject, show

NAME = "margin"
# a column that MARGIN made holds half-widths ("here"), or until the end, their numbers ("late")
HalfWidth = Literal["here", "late"]
_MARK = "half_width"  # the key in a node's meta that holds its `HalfWidth`


class _AnswerColumn(Protocol):
    """A column of the answer, as `plan.AnswerColumn`."""

    @property
    def half_width(self) -> HalfWidth | None: ...


def argument(node: exp.Expression) -> exp.Expression | None:
    """Return x if the node is MARGIN(x), else None."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != NAME:
        return None
    if len(node.expressions) != 1 or node.expressions[0].is_star:
        raise reject(
            node, "MARGIN has one argument, a number of the answer.", "Write MARGIN(COUNT(*))."
        )
    inner: exp.Expression = node.expressions[0]
    return inner


def half_width(value: exp.Expression, margin: exp.Expression) -> exp.Expression:
    """Return the half-width of a value; NULL where the value is NULL."""
    there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
    width = exp.Case(ifs=[exp.If(this=there, true=margin.copy())])
    width.meta[_MARK] = "here"
    return width


def late(value: exp.Expression) -> exp.Expression:
    """Return a value whose margins take its place at the end."""
    number = exp.Paren(this=value.copy())
    number.meta[_MARK] = "late"
    return number


def is_half_width(node: exp.Expression) -> bool:
    """Return True if a node is a half-width."""
    return bool(node.meta.get(_MARK) == "here")


def nothing() -> exp.Expression:
    """Return NULL in place of a half-width, for statements that run on redrawn noise: a margin has
    no margin.
    """
    null = exp.Null()
    null.meta[_MARK] = "here"
    return null


def inside(node: exp.Expression) -> HalfWidth | None:
    """Return the kind of half-width that is in an item of a SELECT list, if any."""
    if node.meta.get(_MARK) == "late":
        return "late"
    return "here" if any(is_half_width(part) for part in node.walk()) else None


def not_here(node: exp.Expression) -> Exception:
    """Return the refusal to compute with a MARGIN(x) that is known at the end only."""
    return reject(
        node,
        f"{show(node)} is found after all else, so that nothing can be computed, chosen or put in order by it.",
        "Leave it as a column of the SELECT list by itself.",
    )


def check_unused(tree: exp.Select, node: exp.Select) -> None:
    """Refuse ORDER BY, GROUP BY, HAVING, QUALIFY and DISTINCT over a "late" column."""
    items = tree.expressions
    places = [place for place, item in enumerate(items) if inside(item.unalias()) == "late"]
    if not places:
        return
    if node.args.get("distinct"):
        raise not_here(node.expressions[places[0]].unalias())
    names = {items[place].alias.lower(): place for place in places}
    for clause in ("group", "order", "having", "qualify"):
        part = tree.args.get(clause)
        if part is None:
            continue
        for child in _own_nodes(part.expressions or [part.this]):
            place = None
            if isinstance(child, exp.Column) and not child.table:
                place = names.get(child.name.lower())
            elif _is_place(child) and int(child.name) - 1 in places:
                place = int(child.name) - 1
            if place is not None:
                raise not_here(node.expressions[place].unalias())


def _own_nodes(parts: Iterable[exp.Expression]) -> Iterable[exp.Expression]:
    """Yield the nodes of expressions, but not those of subqueries."""
    for part in parts:
        yield from part.walk(prune=lambda node: isinstance(node, exp.Query))


def _is_place(node: exp.Expression) -> bool:
    """Return True if a node is a number that stands for a column, as in ORDER BY 2."""
    if not isinstance(node, exp.Literal) or not node.name.isdigit():
        return False
    return isinstance(node.parent, exp.Ordered | exp.Group)


def take_places(
    table: pa.Table, margins: pa.Table, columns: Sequence[_AnswerColumn]
) -> tuple[pa.Table, pa.Table]:
    """Return the answer and its margins, with the margins of "late" columns in place of values."""
    for place, column in enumerate(columns):
        if column.half_width == "late":
            name = table.column_names[place]
            table = table.set_column(place, name, margins.column(place))
            margins = margins.set_column(place, name, pa.nulls(table.num_rows, pa.float64()))
    return table, margins
