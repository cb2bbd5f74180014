"""Plan UNION, INTERSECT and EXCEPT of released tables; `rows.sets` has those of private rows."""

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
    """Return the UNION, INTERSECT or EXCEPT of two released tables.

    A column of a UNION ALL has margins if both sides have them.
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
    union_all = type(node) is exp.Union and not node.args.get("distinct")
    all_rows = union_all and not left.distinct and not right.distinct
    both = [
        all_rows and None not in (a.margin, b.margin)
        for a, b in zip(left.outputs, right.outputs, strict=True)
    ]
    tree = type(node)(
        this=_with_margins(left, both),
        expression=_with_margins(right, both),
        distinct=node.args.get("distinct"),
    )
    alias = exp.TableAlias(this=exp.to_identifier("u"))
    names = [output.name for output in left.outputs]
    columns = [exp.column(name, table="u", quoted=True) for name in names]
    outer = exp.select(*columns).from_(exp.Subquery(this=tree, alias=alias))

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
    """Refuse to compare a MARGIN that we find at the end, or to put other numbers in its column."""
    late = False
    for a, b in zip(left.outputs, right.outputs, strict=True):
        if a.half_width != b.half_width and "late" in (a.half_width, b.half_width):
            raise reject(
                node, "MARGIN stands on one side of a UNION.", "Write MARGIN(x) on both sides."
            )
        late = late or a.half_width == "late"
    compares = type(node) is not exp.Union or node.args.get("distinct") or node.args.get("order")
    if late and compares:
        raise reject(
            node,
            "MARGIN is found after all else, so that rows cannot be compared or put in order by it.",
            "Write UNION ALL without ORDER BY.",
        )


def _of_both(a: Output, b: Output) -> Output:
    """Return a column of a UNION with the margins of both sides."""
    other = [b.estimate] if b.estimate else []
    return Output(
        name=a.name,
        margin=shadowing("u", a.name),
        estimate=a.estimate,
        also=(*a.also, *other, *b.also),
        forms=(*a.forms, *b.forms) if a.forms and b.forms else (),
        kind=common_kind([a.kind, b.kind]),
    )


def _without_margin(a: Output, b: Output) -> Output:
    kind = common_kind([a.kind, b.kind])
    both = a.half_width if a.half_width == b.half_width else None
    return Output(name=a.name, margin=None, estimate=None, kind=kind, half_width=both)


def _with_margins(side: OutputTable, margins: list[bool]) -> exp.Expression:
    """Return one side of a UNION: its columns, then the margins that both sides have."""
    tree = side.tree.copy()
    for output, in_both in zip(side.outputs, margins, strict=True):
        if in_both and output.margin is not None:
            margin = exp.alias_(output.margin.copy(), shadow(output.name), quoted=True)
            tree.select(margin, copy=False)
    return exp.Subquery(this=tree)


def _with_items(node: exp.Union, outer: exp.Select) -> exp.Select:
    """Return a SELECT with the UNION's ORDER BY and LIMIT and the outer SELECT's columns: ORDER BY
    2 then means the second of them.
    """
    clauses = {name: node.args.get(name) for name in ("order", "limit", "offset")}
    return exp.Select(expressions=outer.expressions, **clauses)
