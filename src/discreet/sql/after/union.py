"""Plan UNION, INTERSECT and EXCEPT of tables that may be shown; `rows.sets` has those of private
rows.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.sql.after.after import finish, leaves_out_rows
from discreet.sql.after.rebuild import rebuild
from discreet.sql.after.released import (
    Output,
    OutputTable,
    require_distinct_names,
    shadow,
    shadowing,
)
from discreet.sql.text.parse import reject, show
from discreet.sql.text.postgres import common_kind


def union(node: exp.SetOperation, left: OutputTable, right: OutputTable) -> OutputTable:
    """UNION, UNION ALL, INTERSECT, EXCEPT of released tables; margins are handed on where both
    sides have them.
    """
    if len(left.outputs) != len(right.outputs):
        raise reject(
            node,
            "both sides of a UNION need the same number of columns.",
            "Name them on both sides.",
        )
    if node.args.get("by_name"):
        raise reject(node, "UNION BY NAME is not answered.", "Write the columns in the same order.")
    require_distinct_names(left, node)
    _check_half_widths(node, left, right)
    kept = (
        type(node) is exp.Union
        and not node.args.get("distinct")
        and not left.distinct
        and not right.distinct
    )
    both = [
        kept and None not in (a.margin, b.margin)
        for a, b in zip(left.outputs, right.outputs, strict=True)
    ]
    sides = [_uniform(side, both) for side in (left, right)]
    tree = type(node)(this=sides[0], expression=sides[1], distinct=node.args.get("distinct"))
    alias = exp.TableAlias(this=exp.to_identifier("u"))
    names = [output.name for output in left.outputs]
    outer = exp.select(*(exp.column(name, table="u", quoted=True) for name in names)).from_(
        exp.Subquery(this=tree, alias=alias)
    )

    def rewrite(part: exp.Expression) -> exp.Expression:
        if isinstance(part, exp.Column):
            if part.name.lower() not in {name.lower() for name in names}:
                raise reject(
                    part,
                    f"there is no column {show(part)} in this UNION.",
                    f"Columns are {', '.join(names)}.",
                )
            return exp.column(part.name, table="u", quoted=True)
        return rebuild(part, rewrite)

    finish(outer, _with_items(node, outer), rewrite)
    pairs = zip(both, left.outputs, right.outputs, strict=True)
    outputs = tuple(_of_both(a, b) if has else _without_margin(a, b) for has, a, b in pairs)
    selected = (
        left.selected or right.selected or leaves_out_rows(node) or type(node) is not exp.Union
    )
    return OutputTable(
        tree=outer, outputs=outputs, selected=selected, noisy=left.noisy or right.noisy
    )


def _check_half_widths(node: exp.SetOperation, left: OutputTable, right: OutputTable) -> None:
    """Refuse to compare what MARGIN holds until the end, or to put other numbers beside it."""
    late = False
    for a, b in zip(left.outputs, right.outputs, strict=True):
        if a.half_width != b.half_width and "late" in (a.half_width, b.half_width):
            raise reject(
                node, "MARGIN stands on one side of a UNION.", "Write MARGIN(x) on both sides."
            )
        late = late or a.half_width == "late"
    if late and (
        type(node) is not exp.Union or node.args.get("distinct") or node.args.get("order")
    ):
        raise reject(
            node,
            "MARGIN is found after all else, so that rows cannot be compared or put in order by it.",
            "Write UNION ALL without ORDER BY.",
        )


def _of_both(a: Output, b: Output) -> Output:
    """Return a column of a UNION whose rows have their margins from either side."""
    return Output(
        name=a.name,
        margin=shadowing("u", a.name),
        estimate=a.estimate,
        also=(*a.also, *([b.estimate] if b.estimate else []), *b.also),
        forms=(*a.forms, *b.forms) if a.forms and b.forms else (),
        kind=common_kind([a.kind, b.kind]),
    )


def _without_margin(a: Output, b: Output) -> Output:
    kind, both = (
        common_kind([a.kind, b.kind]),
        a.half_width if a.half_width == b.half_width else None,
    )
    return Output(name=a.name, margin=None, estimate=None, kind=kind, half_width=both)


def _uniform(side: OutputTable, margins: list[bool]) -> exp.Expression:
    """One side of a UNION: its columns, then the margins that both sides have."""
    tree = side.tree.copy()
    for output, wanted in zip(side.outputs, margins, strict=True):
        if wanted and output.margin is not None:
            tree.select(
                exp.alias_(output.margin.copy(), shadow(output.name), quoted=True), copy=False
            )
    return exp.Subquery(this=tree)


def _with_items(node: exp.Union, outer: exp.Select) -> exp.Select:
    """Return a stand-in that has the UNION's ORDER BY and LIMIT and the outer SELECT's columns, for
    ORDER BY 2.
    """
    clauses = {name: node.args.get(name) for name in ("order", "limit", "offset")}
    return exp.Select(expressions=outer.expressions, **clauses)
