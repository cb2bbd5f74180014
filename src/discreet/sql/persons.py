"""What is computed within each person's own rows: GROUP BY owner. `windows` has the windows over the owner.

The results are exact per person and stay private rows: one person still changes only that person's rows. Ties are
decided by the rows' content, never by their position (S4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.errors import Rejected
from discreet.sql import work
from discreet.sql.expressions import check_arguments, translate
from discreet.sql.numbers import check_size, grid
from discreet.sql.parse import reject, show, spelt
from discreet.sql.relation import Field, Names, Relation, distinct_values
from discreet.sql.rewrite import meanings_of
from discreet.sql.strings import all_numeric
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
    return Value(sql=f"count(CASE WHEN {flag} THEN 1 END){condition}", domain=Number(step=Fraction(1), lo=0, hi=rows))


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
        if isinstance(value.domain, Coded) and all_numeric(value.domain.values):
            value = as_number(value, node)
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


def is_own(key: Value) -> bool:
    """Whether equal keys are one person's: the owner, or a key that leads to the owner, as of a visit."""
    domain = key.domain
    # Where an outer join left it NULL, it leads to nobody: then the rows of different people would be one group.
    return isinstance(domain, Opaque) and (domain.owner or (domain.link is not None and not key.nullable))


def grouped(node: exp.Select, relation: Relation, keys: list[Value], alias: str, inner_alias: str) -> Relation:
    """SELECT ... GROUP BY owner, keys: one row per person, or per person and key, as many as a person can have.

    A key that leads to the owner, as of a visit, has one owner: GROUP BY visit_id is GROUP BY owner, visit_id, without
    the rows whose visit is unknown.
    """
    names = Names(fields=relation.fields)
    others = [key for key in keys if not (isinstance(key.domain, Opaque) and key.domain.owner)]
    # A number that stands in GROUP BY would be taken for the place of a column.
    if any(key.constant or isinstance(key.domain, Missing) or key.sql.lstrip("-").isdigit() for key in others):
        raise reject(node.args["group"], "a constant key is the same for everybody.", "Leave it out of GROUP BY.")
    stage = {
        key.identity: replace(key, sql=f"{alias}.g{index}", constant=False, numbering=False)
        for index, key in enumerate(others)
    }
    owner = Value(sql=f'{alias}."#owner"', domain=Opaque(owner=True))
    owned = {key.identity: owner for key in keys if key not in others}
    scope = PersonScope(names=names, alias=alias, rows=relation.rows, keys={**stage, **owned})
    parted = [item for item, key in zip(meanings_of(node, names), keys, strict=True) if key in others]
    rows = distinct_values(frozenset().union(*map(names.origins, parted)), relation.rows)
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
    known = () if owned else tuple(f"({key.sql} IS NOT NULL)" for key in keys if is_own(key))
    kept = (*relation.conditions, *known)
    where = f" WHERE {' AND '.join(kept)}" if kept else ""
    # Privacy: S4. The owner is always a key, so that rows of different people are never in one group.
    group = ", ".join([relation.owner, *(key.sql for key in others)])
    inner = f"{work.select(relation.read)} {', '.join(parts)} FROM {relation.source}{where} GROUP BY {group}"
    source = f"({inner}) AS {alias}"
    return Relation(source=source, owner=owner.sql, fields=tuple(fields), rows=rows, read=rows, conditions=conditions)
