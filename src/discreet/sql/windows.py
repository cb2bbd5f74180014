"""Windows over each person's own rows: PARTITION BY must name the owner.

The results stay private rows, as those of `persons` do: one person changes only that person's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from discreet.sql.expressions import check_arguments, translate
from discreet.sql.parse import reject, show, whole
from discreet.sql.persons import AGGREGATES
from discreet.sql.relation import Names, Relation
from discreet.sql.strings import ranked
from discreet.sql.unify import as_flag, join_domains, unify
from discreet.sql.values import Coded, Missing, Number, Opaque, Value

MOST_PLACES = 1_000_000  # of a frame, an offset, a number of tiles
_ANSWERED = (
    "ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE with ORDER BY, "
    "and COUNT, SUM, AVG, MIN, MAX, also running and in frames of ROWS"
)


def names_owner(node: exp.Window, names: Names) -> bool:
    """Whether a window is over each person's own rows."""
    parts = [names.column(part) for part in node.args.get("partition_by") or [] if isinstance(part, exp.Column)]
    return any(isinstance(part.domain, Opaque) and part.domain.owner for part in parts)


def window(node: exp.Window, names: Names, relation: Relation) -> Value:
    if any(part for name, part in node.args.items() if name not in ("this", "partition_by", "order", "over", "spec")):
        raise reject(node, f"{show(node)} is not answered in this form.", f"Within each person: {_ANSWERED}.")
    partition = _partition(node, names)
    ordering = _ordering(node, names)
    # Privacy: S4. All columns break ties, so that which row comes first never depends on where it is stored.
    total = [*ordering, *dict.fromkeys(each.value.sql for each in relation.fields)]
    frame, by_place = _frame(node)
    inner, rows = node.this, max(relation.rows, 1)
    by_content = f"OVER (PARTITION BY {', '.join(partition)}{_by(ordering)}{frame})"
    in_order = f"OVER (PARTITION BY {', '.join(partition)}{_by(total)}{frame})"
    kind = inner.this if isinstance(inner, exp.Filter) else inner
    if type(kind) in AGGREGATES:
        condition = ""
        if isinstance(inner, exp.Filter):
            check_arguments(inner)
            condition = f" FILTER (WHERE {as_flag(translate(inner.expression.this, names), inner).sql})"
        # Rows with equal places in the order are in RANGE frames together; only ROWS tells them apart.
        over = in_order if by_place else by_content
        whole_of_it = AGGREGATES[type(kind)](kind, names, rows, "")
        found = AGGREGATES[type(kind)](kind, names, rows, f"{condition} {over}")
        counts = isinstance(kind, exp.Count | exp.CountIf)
        return replace(found, nullable=whole_of_it.nullable or (bool(condition or frame) and not counts))
    if isinstance(inner, exp.FirstValue | exp.LastValue) and (by_place or isinstance(inner, exp.FirstValue)):
        check_arguments(inner)
        function = "first_value" if isinstance(inner, exp.FirstValue) else "last_value"
        value = _shown(translate(inner.this, names), node)
        return replace(value, sql=f"{function}({value.sql}) {in_order}", nullable=True)
    if frame:
        raise reject(node, f"{show(node)} has a frame.", f"Leave it out; within each person there are {_ANSWERED}.")
    if isinstance(inner, exp.RowNumber | exp.Rank | exp.DenseRank) and any(inner.args.values()):
        raise reject(node, f"{show(inner)} takes no argument.", "Write the order inside OVER (...).")
    if isinstance(inner, exp.RowNumber):
        domain = Number(step=Fraction(1), lo=1, hi=rows)
        return Value(sql=f"row_number() {in_order}", domain=domain, numbering=len(partition) == 1)
    if isinstance(inner, exp.Lag | exp.Lead):
        return _shifted(inner, names, in_order, node)
    if isinstance(inner, exp.Ntile):
        tiles = _places(inner.this, node, least=1)
        return Value(sql=f"ntile({tiles}) {in_order}", domain=Number(step=Fraction(1), lo=1, hi=min(tiles, rows)))
    if isinstance(inner, exp.Rank | exp.DenseRank):
        if not ordering:
            raise reject(node, f"{show(node)} needs an ORDER BY.", "Add ORDER BY inside OVER (...).")
        function = "rank" if isinstance(inner, exp.Rank) else "dense_rank"
        return Value(sql=f"{function}() {by_content}", domain=Number(step=Fraction(1), lo=1, hi=rows))
    if isinstance(inner, exp.LastValue):
        raise reject(
            node,
            f"{show(node)} ends at the row itself.",
            "Write FIRST_VALUE with the opposite order, or ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.",
        )
    raise reject(node, f"{show(node)} is not answered within each person.", f"Within each person: {_ANSWERED}.")


def _partition(node: exp.Window, names: Names) -> list[str]:
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
    return [part.sql for part in parts]


def _ordering(node: exp.Window, names: Names) -> list[str]:
    order, found = node.args.get("order"), []
    for item in order.expressions if order else []:
        value = translate(item.this, names)
        if isinstance(value.domain, Coded):
            value = ranked(value)
        nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
        found.append(f"{value.sql} {'DESC' if item.args.get('desc') else 'ASC'} NULLS {nulls}")
    return found


def _by(ordering: Sequence[str]) -> str:
    return f" ORDER BY {', '.join(ordering)}" if ordering else ""


def _frame(node: exp.Window) -> tuple[str, bool]:
    """The frame as SQL, and whether it counts rows, whose order must then be complete."""
    spec = node.args.get("spec")
    if spec is None:
        return "", False
    if spec.args.get("exclude") or str(spec.args.get("kind")) not in ("ROWS", "RANGE"):
        raise reject(node, f"{show(node)} has a frame that is not answered.", "Write ROWS BETWEEN 2 PRECEDING AND ...")
    by_place = spec.args["kind"] == "ROWS"
    ends = []
    for end, side in (("start", "start_side"), ("end", "end_side")):
        bound = spec.args.get(end) or "CURRENT ROW"
        if isinstance(bound, exp.Expression):
            if not by_place:
                raise reject(node, f"{show(node)} has a frame of values.", "Count rows: ROWS BETWEEN 2 PRECEDING ...")
            bound = str(_places(bound, node))
        ends.append(f"{bound} {spec.args.get(side) or ''}".strip())
    return f" {spec.args['kind']} BETWEEN {ends[0]} AND {ends[1]}", by_place


def _places(node: exp.Expression | None, window: exp.Window, *, least: int = 0) -> int:
    found = None if node is None else whole(node)
    if found is None or not least <= found <= MOST_PLACES:
        raise reject(window, f"{show(window)} needs a whole number, from {least} to {MOST_PLACES:,}.", "Write it out.")
    return found


def _shown(value: Value, node: exp.Expression) -> Value:
    """A value that may be taken from another of the person's rows."""
    if isinstance(value.domain, Opaque):
        raise reject(node, "an identifier cannot be computed with.", "Use another column.")
    return replace(value, constant=False, numbering=False)


def _shifted(inner: exp.Expression, names: Names, over: str, node: exp.Window) -> Value:
    offset = 1 if inner.args.get("offset") is None else _places(inner.args["offset"], node)
    value = _shown(translate(inner.this, names), node)
    function, side = ("lag", "PRECEDING") if isinstance(inner, exp.Lag) else ("lead", "FOLLOWING")
    if inner.args.get("default") is None:
        return replace(value, sql=f"{function}({value.sql}, {offset}) {over}", nullable=True)
    default = translate(inner.args["default"], names)
    if not default.constant and not isinstance(default.domain, Missing):
        raise reject(node, f"{show(node)} has a default that is not a constant.", "Write it out.")
    both = unify((value, default), node)
    # The engine would cast its own default to the column's type, which fails where there is a row and it does not fit.
    there = f"count(*) {over.removesuffix(')')} ROWS BETWEEN {offset} {side} AND {offset} {side})"
    sql = f"CASE WHEN {there} = 0 THEN {both[1].sql} ELSE {function}({both[0].sql}, {offset}) {over} END"
    return replace(value, sql=f"({sql})", domain=join_domains(both), nullable=True)
