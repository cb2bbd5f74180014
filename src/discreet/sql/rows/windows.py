"""Windows over each person's own rows: PARTITION BY must name the owner.

The results stay private rows, as those of `persons` do: one person changes only that person's rows.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import Constant, Expression, Fold, Frame, Order, Over, case
from discreet.sql.rows.persons import AGGREGATES, Folding
from discreet.sql.rows.relation import Names, Relation
from discreet.sql.text.parse import reject, show, whole
from discreet.sql.values.arguments import check_arguments
from discreet.sql.values.categories import rank_by_text
from discreet.sql.values.expressions import translate
from discreet.sql.values.unify import among_others, as_flag, join_domains, unify
from discreet.sql.values.value import Category, Missing, Number, Opaque, Value

ROW_NUMBER = Fold("row_number", ())
MOST_PLACES = 1_000_000  # of a frame, an offset, a number of tiles
_ANSWERED = (
    "ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE with ORDER BY, "
    "and COUNT, SUM, AVG, MIN, MAX, also running and in frames of ROWS"
)


def names_owner(node: exp.Window, names: Names) -> bool:
    """Return True if a window is over each person's own rows."""
    parts = [
        names.column(part)
        for part in node.args.get("partition_by") or []
        if isinstance(part, exp.Column)
    ]
    return any(isinstance(part.domain, Opaque) and part.domain.owner for part in parts)


def window(node: exp.Window, names: Names, relation: Relation) -> Value:
    """Return what a window over each person's rows gives."""
    if any(
        part
        for name, part in node.args.items()
        if name not in ("this", "partition_by", "order", "over", "spec")
    ):
        raise reject(
            node, f"{show(node)} is not answered in this form.", f"Within each person: {_ANSWERED}."
        )
    partition = _partition(node, names)
    ordering = _ordering(node, names)
    # Privacy: S4. All columns break ties, so that which row comes first never depends on where it
    # is stored.
    total = (
        *ordering,
        *(
            Order(each)
            for each in dict.fromkeys(field.value.expression for field in relation.fields)
        ),
    )
    frame, by_place = _frame(node)
    inner, rows = node.this, max(relation.rows, 1)
    by_content = Over(ROW_NUMBER, relation.owner, partition, ordering, frame)
    in_order = replace(by_content, order=total)
    if type(inner.this if isinstance(inner, exp.Filter) else inner) in AGGREGATES:
        # Rows with equal places in the order are in RANGE frames together; only ROWS tells them
        # apart.
        return _aggregate(inner, names, rows, in_order if by_place else by_content)
    if isinstance(inner, exp.FirstValue | exp.LastValue) and (
        by_place or isinstance(inner, exp.FirstValue)
    ):
        check_arguments(inner)
        function = "first_value" if isinstance(inner, exp.FirstValue) else "last_value"
        value = _show(translate(inner.this, names), node)
        fold = Fold(function, (value.expression,))
        return replace(value, expression=replace(in_order, function=fold), nullable=True)
    if frame is not None:
        raise reject(
            node,
            f"{show(node)} has a frame.",
            f"Leave it out; within each person there are {_ANSWERED}.",
        )
    if isinstance(inner, exp.Lag | exp.Lead):
        return _shift(inner, names, in_order, node)
    if isinstance(inner, exp.LastValue):
        raise reject(
            node,
            f"{show(node)} ends at the row itself.",
            "Write FIRST_VALUE with the opposite order, or ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.",
        )
    return _place_in_order(node, rows, by_content, in_order)


def _aggregate(inner: exp.Expression, names: Names, rows: int, over: Over) -> Value:
    """Return an aggregate over the rows of a window, also of those only that meet a FILTER."""
    kind, where = inner, None
    if isinstance(inner, exp.Filter):
        check_arguments(inner)
        kind, where = inner.this, as_flag(translate(inner.expression.this, names), inner).expression
    whole_of_it = AGGREGATES[type(kind)](kind, names, rows, Folding())
    found = AGGREGATES[type(kind)](kind, names, rows, Folding(where=where, window=over))
    fewer = where is not None or over.frame is not None
    return replace(
        found,
        nullable=whole_of_it.nullable or (fewer and not isinstance(kind, exp.Count | exp.CountIf)),
    )


def _place_in_order(node: exp.Window, rows: int, by_content: Over, in_order: Over) -> Value:
    """ROW_NUMBER, NTILE, RANK and DENSE_RANK: whole numbers, up to as many as a person has rows."""
    inner = node.this
    if isinstance(inner, exp.RowNumber | exp.Rank | exp.DenseRank) and any(inner.args.values()):
        raise reject(
            node, f"{show(inner)} takes no argument.", "Write the order inside OVER (...)."
        )
    if isinstance(inner, exp.RowNumber):
        domain = Number(step=Fraction(1), lo=1, hi=rows)
        return Value(expression=in_order, domain=domain, numbering=not in_order.partition)
    if isinstance(inner, exp.Ntile):
        tiles = _places(inner.this, node, least=1)
        fold = Fold("ntile", (Constant(tiles),))
        domain = Number(step=Fraction(1), lo=1, hi=min(tiles, rows))
        return Value(expression=replace(in_order, function=fold), domain=domain)
    if isinstance(inner, exp.Rank | exp.DenseRank):
        if not by_content.order:
            raise reject(
                node, f"{show(node)} needs an ORDER BY.", "Add ORDER BY inside OVER (...)."
            )
        fold = Fold("rank" if isinstance(inner, exp.Rank) else "dense_rank", ())
        domain = Number(step=Fraction(1), lo=1, hi=rows)
        return Value(expression=replace(by_content, function=fold), domain=domain)
    raise reject(
        node,
        f"{show(node)} is not answered within each person.",
        f"Within each person: {_ANSWERED}.",
    )


def _partition(node: exp.Window, names: Names) -> tuple[Expression, ...]:
    """Return what parts a person's rows further; Over itself adds the owner."""
    parts = [translate(part, names) for part in node.args.get("partition_by") or []]
    if not any(isinstance(part.domain, Opaque) and part.domain.owner for part in parts):
        raise reject(
            node,
            f"{show(node)} looks at other people's rows.",
            "Add the owner to PARTITION BY, or aggregate first and use the window on the result.",
        )
    if any(isinstance(part.domain, Opaque) and not part.domain.owner for part in parts):
        raise reject(
            node,
            "an identifier other than the owner cannot part a window.",
            "Partition by the owner and plain columns.",
        )
    return tuple(part.expression for part in parts if not isinstance(part.domain, Opaque))


def _ordering(node: exp.Window, names: Names) -> tuple[Order, ...]:
    order, found = node.args.get("order"), []
    for item in order.expressions if order else []:
        value = translate(item.this, names)
        if isinstance(value.domain, Category):
            value = rank_by_text(value)
        found.append(
            Order(value.expression, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
        )
    return tuple(found)


def _frame(node: exp.Window) -> tuple[Frame | None, bool]:
    """Return the frame, and whether it counts rows, whose order must then be complete."""
    spec = node.args.get("spec")
    if spec is None:
        return None, False
    if spec.args.get("exclude") or str(spec.args.get("kind")) not in ("ROWS", "RANGE"):
        raise reject(
            node,
            f"{show(node)} has a frame that is not answered.",
            "Write ROWS BETWEEN 2 PRECEDING AND ...",
        )
    by_place = spec.args["kind"] == "ROWS"
    ends = []
    for end, side in (("start", "start_side"), ("end", "end_side")):
        bound = spec.args.get(end) or "CURRENT ROW"
        if isinstance(bound, exp.Expression):
            if not by_place:
                raise reject(
                    node,
                    f"{show(node)} has a frame of values.",
                    "Count rows: ROWS BETWEEN 2 PRECEDING ...",
                )
            bound = str(_places(bound, node))
        ends.append(f"{bound} {spec.args.get(side) or ''}".strip())
    return Frame("ROWS" if by_place else "RANGE", ends[0], ends[1]), by_place


def _places(node: exp.Expression | None, window: exp.Window, *, least: int = 0) -> int:
    found = None if node is None else whole(node)
    if found is None or not least <= found <= MOST_PLACES:
        raise reject(
            window,
            f"{show(window)} needs a whole number, from {least} to {MOST_PLACES:,}.",
            "Write it out.",
        )
    return found


def _show(value: Value, node: exp.Expression) -> Value:
    """Return a value that may be taken from another of the person's rows."""
    if isinstance(value.domain, Opaque):
        raise reject(node, "an identifier cannot be computed with.", "Use another column.")
    return replace(value, constant=False, numbering=False)


def _shift(inner: exp.Expression, names: Names, over: Over, node: exp.Window) -> Value:
    offset = 1 if inner.args.get("offset") is None else _places(inner.args["offset"], node)
    value = _show(translate(inner.this, names), node)
    function, side = ("lag", "PRECEDING") if isinstance(inner, exp.Lag) else ("lead", "FOLLOWING")
    if inner.args.get("default") is None:
        fold = Fold(function, (value.expression, Constant(offset)))
        return replace(value, expression=replace(over, function=fold), nullable=True)
    default = translate(inner.args["default"], names)
    if not default.constant and not isinstance(default.domain, Missing):
        raise reject(node, f"{show(node)} has a default that is not a constant.", "Write it out.")
    both = unify((value, default), node)
    # The engine would cast its own default to the column's type, which fails where there is a row
    # and it does not fit.
    there = replace(
        over,
        function=Fold("count", ()),
        frame=Frame("ROWS", f"{offset} {side}", f"{offset} {side}"),
    )
    shifted = replace(over, function=Fold(function, (both[0].expression, Constant(offset))))
    found = case((there.equals(0), among_others(both[1])), otherwise=shifted)
    return replace(value, expression=found, domain=join_domains(both), nullable=True)
