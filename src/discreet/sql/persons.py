"""What is computed within each person's own rows: GROUP BY owner, and windows over the owner.

The results are exact per person and stay private rows: one person still changes only that person's rows. Ties are
decided by the rows' content, never by their position (S4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql.expressions import check_arguments, translate
from discreet.sql.numbers import check_size, grid
from discreet.sql.parse import reject, show, spelt
from discreet.sql.relation import Field, Names, Relation
from discreet.sql.unify import as_flag, as_number
from discreet.sql.values import Coded, Flag, Missing, Number, Opaque, Text, Value, integer_sql

MEAN_STEPS = 1_000  # a mean per person is kept to a thousandth of the column's step


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonScope:
    """Names inside a SELECT that groups by the owner: keys and aggregates become columns of the grouped stage."""

    names: Names
    alias: str
    rows: int
    keys: dict[str, Value]
    columns: list[str] = field(default_factory=list)

    def column(self, node: exp.Column) -> Value:
        value = self.names.column(node)
        if value.identity in self.keys:
            return self.keys[value.identity]
        raise reject(
            node, f"{show(node)} is neither aggregated nor in GROUP BY.", "Aggregate it, or add it to GROUP BY."
        )

    def special(self, node: exp.Expression) -> Value | None:
        kind = node.this if isinstance(node, exp.Filter) else node
        if isinstance(kind, exp.AggFunc):
            return self.aggregate(node)
        if node.find(exp.Column) and not node.find(exp.AggFunc) and not isinstance(node, exp.Column):
            try:
                value = translate(node, self.names)
            except Rejected:
                return None
            return self.keys.get(value.identity)
        return None

    def aggregate(self, node: exp.Expression) -> Value:
        condition, inner = "", node
        if isinstance(node, exp.Filter):
            check_arguments(node)
            condition = f" FILTER (WHERE {as_flag(translate(node.expression.this, self.names), node).sql})"
            inner = node.this
        function = AGGREGATES.get(type(inner))
        if function is None:
            raise reject(
                node, f"{show(inner)} is not answered within each person.", f"Within each person: {PERSON_NAMES}."
            )
        value = function(inner, self.names, self.rows, condition)
        if value.sql not in self.columns:
            self.columns.append(value.sql)
        return replace(value, sql=f"{self.alias}.p{self.columns.index(value.sql)}")


def _argument(node: exp.Expression, names: Names) -> Value:
    if isinstance(node.this, exp.Distinct | exp.Order):
        raise reject(
            node, f"{show(node)} is not answered within each person.", "Leave DISTINCT and ORDER BY out of it."
        )
    check_arguments(node)
    return translate(node.this, names)


def _count(node: exp.Count, names: Names, rows: int, condition: str) -> Value:
    domain = Number(step=Fraction(1), lo=0, hi=rows)
    if node.expressions:
        raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
    if node.this is None or isinstance(node.this, exp.Star):
        return Value(sql=f"count(*){condition}", domain=domain)
    if isinstance(node.this, exp.Distinct):
        if len(node.this.expressions) != 1:
            raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
        return Value(sql=f"count(DISTINCT {translate(node.this.expressions[0], names).sql}){condition}", domain=domain)
    return Value(sql=f"count({translate(node.this, names).sql}){condition}", domain=domain)


def _count_if(node: exp.CountIf, names: Names, rows: int, condition: str) -> Value:
    flag = as_flag(translate(node.this, names), node).sql
    inner = condition.removeprefix(" FILTER (WHERE ").removesuffix(")") if condition else "TRUE"
    return Value(sql=f"count(*) FILTER (WHERE {flag} AND {inner})", domain=Number(step=Fraction(1), lo=0, hi=rows))


def _sum(node: exp.Sum, names: Names, rows: int, condition: str) -> Value:
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    lo, hi = rows * min(domain.lo, 0), rows * max(domain.hi, 0)
    if domain.lo > 0:
        lo = domain.lo  # a sum that is not NULL has at least one row
    if domain.hi < 0:
        hi = domain.hi
    check_size(lo, hi, node)
    sql = f"CAST(sum({value.sql}){condition} AS {'BIGINT' if max(abs(lo), abs(hi)) < 2**62 else 'HUGEINT'})"
    return Value(sql=sql, domain=Number(step=domain.step, lo=lo, hi=hi), nullable=value.nullable or bool(condition))


def _mean(node: exp.Avg, names: Names, rows: int, condition: str) -> Value:
    """The mean on a grid a thousand times finer than the column's, rounded half away from zero."""
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    bound = domain.largest * rows * MEAN_STEPS * 2 + rows
    check_size(0, bound, node)
    n = f"({integer_sql(f'sum({value.sql}){condition}', bound)} * {MEAN_STEPS})"
    d = f"NULLIF(count({value.sql}){condition}, 0)"
    sql = f"(CASE WHEN {n} >= 0 THEN (2 * {n} + {d}) // (2 * {d}) ELSE -((-2 * {n} + {d}) // (2 * {d})) END)"
    scaled = Number(step=domain.step / MEAN_STEPS, lo=domain.lo * MEAN_STEPS, hi=domain.hi * MEAN_STEPS)
    return Value(sql=sql, domain=scaled, nullable=value.nullable or bool(condition))


def _extreme(function: str) -> Function:
    def apply(node: exp.Expression, names: Names, rows: int, condition: str) -> Value:
        value = _argument(node, names)
        if node.expressions:
            raise reject(node, f"{show(node)} is not answered.", f"Write {function.upper()}(x).")
        if isinstance(value.domain, Coded | Opaque):
            raise reject(node, f"{show(node)} needs numbers or dates.", "Use a number or a date.")
        return Value(
            sql=f"{function}({value.sql}){condition}", domain=value.domain, nullable=value.nullable or bool(condition)
        )

    return apply


def _logical(function: str) -> Function:
    def apply(node: exp.Expression, names: Names, rows: int, condition: str) -> Value:
        value = as_flag(_argument(node, names), node)
        return Value(
            sql=f"{function}({value.sql}){condition}", domain=Flag(), nullable=value.nullable or bool(condition)
        )

    return apply


def _at_extreme(function: str) -> Function:
    """arg_max(x, y): x in the row of the largest y; of several such rows, the one with the largest x."""

    def apply(node: exp.Expression, names: Names, rows: int, condition: str) -> Value:
        if node.args.get("count"):
            raise reject(node, f"{show(node)} lists several values.", "Leave the number out.")
        value, key = translate(node.this, names), translate(node.expression, names)
        if isinstance(key.domain, Coded | Opaque | Text) or isinstance(value.domain, Opaque):
            raise reject(node, f"{show(node)} needs a number or a date to order by.", "Order by a number or a date.")
        # Privacy: S4. The pair is ordered by content alone, so equal keys cannot make the choice depend on position.
        pair = (
            f"CASE WHEN {key.sql} IS NOT NULL AND {value.sql} IS NOT NULL THEN {{'k': {key.sql}, 'v': {value.sql}}} END"
        )
        sql = f"struct_extract({function}({pair}){condition}, 'v')"
        return Value(sql=sql, domain=value.domain, nullable=True)

    return apply


Function = Callable[[exp.Expression, Names, int, str], Value]

AGGREGATES: dict[type[exp.Expression], Function] = {
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Sum: _sum,
    exp.Avg: _mean,
    exp.Min: _extreme("min"),
    exp.Max: _extreme("max"),
    exp.LogicalOr: _logical("bool_or"),
    exp.LogicalAnd: _logical("bool_and"),
    exp.ArgMax: _at_extreme("max"),
    exp.ArgMin: _at_extreme("min"),
}
PERSON_NAMES = "COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, BOOL_OR, BOOL_AND, ARG_MAX, ARG_MIN"


def grouped(node: exp.Select, relation: Relation, keys: list[Value], alias: str, inner_alias: str) -> Relation:
    """SELECT ... GROUP BY owner, keys: one row per person, or per person and key."""
    names = Names(fields=relation.fields)
    others = [key for key in keys if not (isinstance(key.domain, Opaque) and key.domain.owner)]
    # A number that stands in GROUP BY would be taken for the place of a column.
    if any(key.constant or isinstance(key.domain, Missing) or key.sql.lstrip("-").isdigit() for key in others):
        raise reject(node.args["group"], "a constant key is the same for everybody.", "Leave it out of GROUP BY.")
    if any(isinstance(key.domain, Opaque) for key in others):
        raise reject(
            node.args["group"],
            "an identifier other than the owner cannot be a key.",
            "Group by the owner and plain columns.",
        )
    stage = {
        key.identity: replace(key, sql=f"{alias}.g{index}", constant=False, numbering=False)
        for index, key in enumerate(others)
    }
    owner = Value(sql=f'{alias}."#owner"', domain=Opaque(owner=True))
    owned = {key.identity: owner for key in keys if key not in others}
    scope = PersonScope(names=names, alias=alias, rows=relation.rows, keys={**stage, **owned})
    rows = relation.rows if others else 1
    origins = frozenset({(alias, rows)})
    fields = []
    for item in node.expressions:
        if isinstance(item, exp.Star):
            raise reject(item, "* cannot be grouped.", "List the owner and the aggregates.")
        value = translate(item.unalias(), scope)
        fields.append(Field(table="", name=item.output_name or spelt(item), value=value, origins=origins))
    conditions: tuple[str, ...] = ()
    if node.args.get("having"):
        conditions = (as_flag(translate(node.args["having"].this, scope), node.args["having"]).sql,)
    parts = [f'{relation.owner} AS "#owner"', *(f"{key.sql} AS g{index}" for index, key in enumerate(others))]
    parts += [f"{sql} AS p{index}" for index, sql in enumerate(scope.columns)]
    where = f" WHERE {' AND '.join(relation.conditions)}" if relation.conditions else ""
    group = ", ".join([relation.owner, *(key.sql for key in others)])
    source = f"(SELECT {', '.join(parts)} FROM {relation.source}{where} GROUP BY {group}) AS {alias}"
    return Relation(source=source, owner=owner.sql, fields=tuple(fields), rows=rows, conditions=conditions)


# --- windows ----------------------------------------------------------------------------------------------------------


def names_owner(node: exp.Window, names: Names) -> bool:
    """Whether a window is over each person's own rows."""
    parts = [names.column(part) for part in node.args.get("partition_by") or [] if isinstance(part, exp.Column)]
    return any(isinstance(part.domain, Opaque) and part.domain.owner for part in parts)


def window(node: exp.Window, names: Names, relation: Relation) -> Value:
    """A window over each person's own rows: PARTITION BY must name the owner."""
    if any(part for name, part in node.args.items() if name not in ("this", "partition_by", "order", "over")):
        raise reject(node, f"{show(node)} has a frame, or is named.", "Leave frames and named windows out.")
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
    partition = ", ".join(part.sql for part in parts)
    order = node.args.get("order")
    ordering = []
    for item in order.expressions if order else []:
        value = translate(item.this, names)
        nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
        ordering.append(f"{value.sql} {'DESC' if item.args.get('desc') else 'ASC'} NULLS {nulls}")
    inner, rows = node.this, relation.rows
    counted = Number(step=Fraction(1), lo=1, hi=max(rows, 1))
    if isinstance(inner, exp.RowNumber | exp.Lag | exp.Lead):
        # Privacy: S4. All columns break ties, so that which row comes first never depends on where it is stored.
        total = [*ordering, *dict.fromkeys(each.value.sql for each in relation.fields)]
        over = f"OVER (PARTITION BY {partition} ORDER BY {', '.join(total)})"
        if isinstance(inner, exp.RowNumber):
            return Value(sql=f"row_number() {over}", domain=counted, numbering=len(parts) == 1)
        return _shifted(inner, names, over, node)
    if isinstance(inner, exp.Rank | exp.DenseRank):
        if not ordering:
            raise reject(node, f"{show(node)} needs an ORDER BY.", "Add ORDER BY inside OVER (...).")
        function = "rank" if isinstance(inner, exp.Rank) else "dense_rank"
        return Value(sql=f"{function}() OVER (PARTITION BY {partition} ORDER BY {', '.join(ordering)})", domain=counted)
    if type(inner) in (exp.Count, exp.Sum, exp.Min, exp.Max) and not ordering:
        value = AGGREGATES[type(inner)](inner, names, rows, "")
        over = f"OVER (PARTITION BY {partition})"
        sql = value.sql
        if sql.startswith("CAST("):  # a sum, whose cast goes outside the window
            function, _, kind = sql.removeprefix("CAST(").removesuffix(")").rpartition(" AS ")
            return replace(value, sql=f"CAST({function} {over} AS {kind})", nullable=True)
        return replace(value, sql=f"{sql} {over}", nullable=value.nullable)
    raise reject(
        node,
        f"{show(node)} is not answered within each person.",
        "Use ROW_NUMBER, RANK, DENSE_RANK, LAG, LEAD with ORDER BY, or COUNT, SUM, MIN, MAX without.",
    )


def _shifted(inner: exp.Expression, names: Names, over: str, node: exp.Expression) -> Value:
    check = inner.args.get("offset")
    if inner.args.get("default") is not None or (
        check is not None and not (isinstance(check, exp.Literal) and check.this.isdigit())
    ):
        raise reject(
            node, f"{show(node)}: LAG and LEAD take a column and a whole number.", "Write LAG(x) or LAG(x, 2)."
        )
    value = translate(inner.this, names)
    if isinstance(value.domain, Opaque):
        raise reject(node, "an identifier cannot be computed with.", "Use another column.")
    offset = 1 if check is None else int(check.this[:6])
    function = "lag" if isinstance(inner, exp.Lag) else "lead"
    return replace(
        value, sql=f"{function}({value.sql}, {offset}) {over}", nullable=True, constant=False, numbering=False
    )
