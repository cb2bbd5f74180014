"""Translate windows over each person's own rows: PARTITION BY must have the owner.

The results are private rows, like those of `persons`: one person changes only that person's rows.
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
MOST_PLACES = 1_000_000  # the most rows of a frame or an offset, and the most tiles
_MOST_BORDERS = 20  # of NTILE, that a hint writes out
_ANSWERED = (
    "ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE with ORDER BY, "
    "and COUNT, SUM, AVG, MIN, MAX, also running and in frames of ROWS"
)


def names_owner(node: exp.Window, names: Names) -> bool:
    """Return True if a window is over each person's own rows."""
    parts = node.args.get("partition_by") or []
    values = [names.column(part) for part in parts if isinstance(part, exp.Column)]
    return any(map(_is_owner, values))


def _is_owner(value: Value) -> bool:
    return isinstance(value.domain, Opaque) and value.domain.owner


def window(node: exp.Window, names: Names, relation: Relation) -> Value:
    """Return the value of a window over each person's rows."""
    plain = ("this", "partition_by", "order", "over", "spec")
    if any(part for name, part in node.args.items() if name not in plain):
        raise reject(
            node, f"{show(node)} is not answered in this form.", f"Within each person: {_ANSWERED}."
        )
    partition = _partition(node, names)
    ordering = _ordering(node, names)
    # Privacy: S4. All columns break ties, so the first row never depends on where rows are stored.
    columns = dict.fromkeys(field.value.expression for field in relation.fields)
    total = (*ordering, *map(Order, columns))
    frame, by_place = _frame(node)
    inner = node.this
    rows = max(relation.rows, 1)
    by_content = Over(ROW_NUMBER, relation.owner, partition, ordering, frame)
    in_order = replace(by_content, order=total)
    if type(inner.this if isinstance(inner, exp.Filter) else inner) in AGGREGATES:
        # Rows that are tied are in the same RANGE frames. Only frames of ROWS separate them.
        return _aggregate(inner, names, rows, in_order if by_place else by_content)
    if isinstance(inner, exp.FirstValue | exp.LastValue) and (
        by_place or isinstance(inner, exp.FirstValue)
    ):
        check_arguments(inner)
        function = "first_value" if isinstance(inner, exp.FirstValue) else "last_value"
        value = _take(translate(inner.this, names), node)
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
    """Return an aggregate over the rows of a window, with or without a FILTER."""
    node = inner
    where = None
    if isinstance(inner, exp.Filter):
        check_arguments(inner)
        node = inner.this
        where = as_flag(translate(inner.expression.this, names), inner).expression
    function = AGGREGATES[type(node)]
    over_all = function(node, names, rows, Folding())
    over_window = function(node, names, rows, Folding(where=where, window=over))
    # With a FILTER or a frame there may be no row: then a count is 0, and others are NULL.
    may_be_empty = where is not None or over.frame is not None
    is_count = isinstance(node, exp.Count | exp.CountIf)
    nullable = over_all.nullable or (may_be_empty and not is_count)
    return replace(over_window, nullable=nullable)


def _place_in_order(node: exp.Window, rows: int, by_content: Over, in_order: Over) -> Value:
    """Return ROW_NUMBER, NTILE, RANK or DENSE_RANK: a whole number, at most the person's rows."""
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
    """Return the values of PARTITION BY without the owner, which `Over` itself adds."""
    parts = [translate(part, names) for part in node.args.get("partition_by") or []]
    if not any(map(_is_owner, parts)):
        raise reject(
            node,
            f"{show(node)} looks at other people's rows.",
            _borders(node)
            or "Add the owner to PARTITION BY, or aggregate first and use the window on the result.",
        )
    if any(isinstance(part.domain, Opaque) and not part.domain.owner for part in parts):
        raise reject(
            node,
            "a window cannot be partitioned by an identifier other than the owner.",
            "Partition by the owner and plain columns.",
        )
    return tuple(part.expression for part in parts if not isinstance(part.domain, Opaque))


def _borders(node: exp.Window) -> str:
    """Return the hint to ask for quantiles in place of NTILE over everybody, if there is one."""
    select = node.find_ancestor(exp.Select)
    source = None if select is None else select.args.get("from_")
    order = node.args.get("order")
    if not isinstance(node.this, exp.Ntile) or node.args.get("partition_by") or order is None:
        return ""
    if select is None or source is None or not isinstance(source.this, exp.Table):
        return ""
    tiles = _places(node.this.this, node, least=1)
    if select.args.get("joins") or len(order.expressions) != 1 or not 2 <= tiles <= _MOST_BORDERS:
        return ""
    borders = ", ".join(f"{place / tiles:.4g}" for place in range(1, tiles))
    value = order.expressions[0].this.sql(dialect="duckdb", comments=False)
    return (
        "Ask for the borders, and group by them with CASE:"
        f" SELECT QUANTILE_CONT({value}, [{borders}]) FROM {source.this.sql(dialect='duckdb')}."
    )


def _ordering(node: exp.Window, names: Names) -> tuple[Order, ...]:
    """Return ORDER BY of a window; categories are ordered by their texts."""
    clause = node.args.get("order")
    orders = []
    for item in clause.expressions if clause else []:
        value = translate(item.this, names)
        if isinstance(value.domain, Category):
            value = rank_by_text(value)
        descending = bool(item.args.get("desc"))
        nulls_first = bool(item.args.get("nulls_first"))
        orders.append(Order(value.expression, descending, nulls_first))
    return tuple(orders)


def _frame(node: exp.Window) -> tuple[Frame | None, bool]:
    """Return the frame, and True if it is a frame of ROWS: then no rows may be tied."""
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
    """Return a whole number of the question, such as an offset, or refuse it."""
    count = None if node is None else whole(node)
    if count is None or not least <= count <= MOST_PLACES:
        raise reject(
            window,
            f"{show(window)} needs a whole number, from {least} to {MOST_PLACES:,}.",
            "Write it out.",
        )
    return count


def _take(value: Value, node: exp.Expression) -> Value:
    """Return a value as it is taken from another row of the person."""
    if isinstance(value.domain, Opaque):
        raise reject(node, "an identifier cannot be computed with.", "Use another column.")
    return replace(value, constant=False, numbering=False)


def _shift(inner: exp.Expression, names: Names, over: Over, node: exp.Window) -> Value:
    """Return LAG or LEAD."""
    offset = 1 if inner.args.get("offset") is None else _places(inner.args["offset"], node)
    value = _take(translate(inner.this, names), node)
    function, side = ("lag", "PRECEDING") if isinstance(inner, exp.Lag) else ("lead", "FOLLOWING")
    if inner.args.get("default") is None:
        fold = Fold(function, (value.expression, Constant(offset)))
        return replace(value, expression=replace(over, function=fold), nullable=True)
    default = translate(inner.args["default"], names)
    if not default.constant and not isinstance(default.domain, Missing):
        raise reject(node, f"{show(node)} has a default that is not a constant.", "Write it out.")
    both = unify((value, default), node)
    # Do not use the engine's own default: it casts the default to the column's type, and raises if
    # it does not fit. Count the rows at the offset instead: 0 or 1.
    at_offset = f"{offset} {side}"
    rows_there = replace(
        over, function=Fold("count", ()), frame=Frame("ROWS", at_offset, at_offset)
    )
    other_row = replace(over, function=Fold(function, (both[0].expression, Constant(offset))))
    result = case((rows_there.equals(0), among_others(both[1])), otherwise=other_row)
    return replace(value, expression=result, domain=join_domains(both), nullable=True)
