"""MARGIN(x): the half-width of x as a column, for tools that draw error bars. Free: noise alone
decides it (S11).

Where x is an aggregate, or computed from those of its own row, its half-width is a column of the
noisy table, and MARGIN(x) may stand in any expression. Where it is found by computing the statement
again (`joint`), the column carries x itself to the end, and there its margins take its place. Such
a `LATE` column can be handed on, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import pyarrow as pa
from sqlglot import exp

from discreet.sql.text.parse import reject, show

NAME = "margin"
# what a column that MARGIN made holds: half-widths, or what they will be of
HalfWidth = Literal["here", "late"]
_MARK = "half_width"  # in the meta of a node: it is a half-width, or will be one


class _AnswerColumn(Protocol):
    """A column of the answer, as `plan.AnswerColumn`."""

    @property
    def half_width(self) -> HalfWidth | None: ...


def argument(node: exp.Expression) -> exp.Expression | None:
    """Return what stands in MARGIN(x), where this is one."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() != NAME:
        return None
    if len(node.expressions) != 1 or node.expressions[0].is_star:
        raise reject(
            node, "MARGIN has one argument, a number of the answer.", "Write MARGIN(COUNT(*))."
        )
    inner: exp.Expression = node.expressions[0]
    return inner


def half_width(value: exp.Expression, margin: exp.Expression) -> exp.Expression:
    """Return the half-width of a value; NULL where the value is."""
    there = exp.Not(this=exp.Is(this=exp.Paren(this=value.copy()), expression=exp.Null()))
    found = exp.Case(ifs=[exp.If(this=there, true=margin.copy())])
    found.meta[_MARK] = "here"
    return found


def late(value: exp.Expression) -> exp.Expression:
    """Return a value whose margins take its place at the end."""
    found = exp.Paren(this=value.copy())
    found.meta[_MARK] = "late"
    return found


def is_half_width(node: exp.Expression) -> bool:
    return bool(node.meta.get(_MARK) == "here")


def nothing() -> exp.Expression:
    """Return NULL for a half-width where noise is drawn again: no margin is made of margins."""
    found = exp.Null()
    found.meta[_MARK] = "here"
    return found


def inside(node: exp.Expression) -> HalfWidth | None:
    """Return the kind of half-width that an item of a SELECT list is made of, if any."""
    if node.meta.get(_MARK) == "late":
        return "late"
    return "here" if any(is_half_width(part) for part in node.walk()) else None


def not_here(node: exp.Expression) -> Exception:
    """Return the refusal to use MARGIN(x), where it is known at the end only, for anything but to
    show it.
    """
    return reject(
        node,
        f"{show(node)} is found after all else, so that nothing can be computed, chosen or put in order by it.",
        "Leave it as a column of the SELECT list by itself.",
    )


def check_unused(tree: exp.Select, node: exp.Select) -> None:
    """Refuse ORDER BY, GROUP BY and DISTINCT over a column that is only known at the end."""
    items = tree.expressions
    places = [place for place, item in enumerate(items) if inside(item.unalias()) == "late"]
    if places and node.args.get("distinct"):
        raise not_here(node.expressions[places[0]].unalias())
    names = {items[place].alias.lower(): place for place in places}
    for clause in ("group", "order", "having", "qualify"):
        part = tree.args.get(clause)
        for each in _own(part.expressions or [part.this]) if part is not None and places else ():
            place = (
                names.get(each.name.lower())
                if isinstance(each, exp.Column) and not each.table
                else None
            )
            if (
                isinstance(each, exp.Literal)
                and _alone(each)
                and each.name.isdigit()
                and int(each.name) - 1 in places
            ):
                place = int(each.name) - 1
            if place is not None:
                raise not_here(node.expressions[place].unalias())


def _own(parts: Iterable[exp.Expression]) -> Iterable[exp.Expression]:
    for part in parts:
        yield from part.walk(prune=lambda each: isinstance(each, exp.Query))


def _alone(node: exp.Expression) -> bool:
    """Return True if a number in ORDER BY or GROUP BY means a column."""
    return isinstance(node.parent, exp.Ordered | exp.Group)


def take_places(
    table: pa.Table, margins: pa.Table, columns: Sequence[_AnswerColumn]
) -> tuple[pa.Table, pa.Table]:
    """Return the answer and its margins, with the margins of `late` columns in the place of their
    values.
    """
    for place, column in enumerate(columns):
        if column.half_width == "late":
            name = table.column_names[place]
            table = table.set_column(place, name, margins.column(place))
            margins = margins.set_column(place, name, pa.nulls(table.num_rows, pa.float64()))
    return table, margins
