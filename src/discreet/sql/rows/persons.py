"""Fold each person's own rows: GROUP BY owner. `windows` has the windows over the owner.

The results are exact per person and stay private rows: one person still changes only that person's
rows. Ties are decided by the rows' content, never by their position (S4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sqlglot import exp

from discreet.algebra import (
    OWNER,
    Column,
    Constant,
    Expression,
    Fold,
    Operand,
    Over,
    PerPerson,
    Stage,
    call,
    case,
    expression,
)
from discreet.errors import Rejected
from discreet.sql.after.rewrite import meanings_of
from discreet.sql.rows.relation import Field, Names, Origins, Relation, distinct_values
from discreet.sql.text.parse import reject, show, spell
from discreet.sql.text.postgres import Kind, kind_of
from discreet.sql.values.arguments import check_arguments
from discreet.sql.values.categories import all_numeric
from discreet.sql.values.expressions import translate
from discreet.sql.values.numbers import check_size, grid
from discreet.sql.values.unify import as_flag, as_number
from discreet.sql.values.value import (
    Category,
    Flag,
    Identity,
    Missing,
    Number,
    Opaque,
    Text,
    Value,
    widen,
)

MEAN_STEPS = 1_000  # a mean per person is kept to a thousandth of the column's step


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """The rows of one person that a fold reads: those that satisfy a condition, and those in a
    window, if there is one.
    """

    where: Expression | None = None
    window: Over | None = None

    @property
    def partial(self) -> bool:
        """True if some of the rows may be left out, so that there may be none."""
        return self.where is not None

    def __call__(self, name: str, *arguments: Operand) -> Expression:
        fold = Fold(name, tuple(expression(each) for each in arguments), self.where)
        return fold if self.window is None else replace(self.window, function=fold)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonScope:
    """Names inside a SELECT that groups by the owner: keys and aggregates become columns of the
    grouped stage.
    """

    names: Names
    alias: str
    rows: int
    keys: Mapping[Identity, Value]
    columns: list[Expression] = field(default_factory=list)

    def column(self, node: exp.Column) -> Value:
        value = self.names.column(node)
        if value.identity in self.keys:
            return self.keys[value.identity]
        raise reject(
            node,
            f"{show(node)} is neither aggregated nor in GROUP BY.",
            "Aggregate it, or add it to GROUP BY.",
        )

    def kind(self, node: exp.Column) -> Kind | None:
        return self.names.kind(node)

    def special(self, node: exp.Expression) -> Value | None:
        kind = node.this if isinstance(node, exp.Filter) else node
        if isinstance(kind, exp.AggFunc):
            return self.aggregate(node)
        if (
            node.find(exp.Column)
            and not node.find(exp.AggFunc)
            and not isinstance(node, exp.Column)
        ):
            try:
                value = translate(node, self.names)
            except Rejected:
                return None
            return self.keys.get(value.identity)
        return None

    def aggregate(self, node: exp.Expression) -> Value:
        fold, inner = Folding(), node
        if isinstance(node, exp.Filter):
            check_arguments(node)
            fold = Folding(
                where=as_flag(translate(node.expression.this, self.names), node).expression
            )
            inner = node.this
        function = AGGREGATES.get(type(inner))
        if function is None:
            raise reject(
                node,
                f"{show(inner)} is not answered within each person.",
                f"Within each person: {PERSON_NAMES}.",
            )
        value = function(inner, self.names, self.rows, fold)
        if value.expression not in self.columns:
            self.columns.append(value.expression)
        return replace(
            value, expression=Column(self.alias, f"p{self.columns.index(value.expression)}")
        )


def _argument(node: exp.Expression, names: Names) -> Value:
    if isinstance(node.this, exp.Distinct | exp.Order):
        raise reject(
            node,
            f"{show(node)} is not answered within each person.",
            "Leave DISTINCT and ORDER BY out of it.",
        )
    check_arguments(node)
    return translate(node.this, names)


def _count(node: exp.Count, names: Names, rows: int, fold: Folding) -> Value:
    domain = Number(step=Fraction(1), lo=0, hi=rows)
    if node.expressions:
        raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
    if node.this is None or isinstance(node.this, exp.Star):
        return Value(expression=fold("count"), domain=domain)
    if isinstance(node.this, exp.Distinct):
        if len(node.this.expressions) != 1:
            raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
        value = translate(node.this.expressions[0], names)
        return Value(expression=fold("count distinct", value.expression), domain=domain)
    return Value(expression=fold("count", translate(node.this, names).expression), domain=domain)


def _count_if(node: exp.CountIf, names: Names, rows: int, fold: Folding) -> Value:
    flag = as_flag(translate(node.this, names), node).expression
    return Value(
        expression=fold("count", case((flag, 1))), domain=Number(step=Fraction(1), lo=0, hi=rows)
    )


def _sum(node: exp.Sum, names: Names, rows: int, fold: Folding) -> Value:
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    lo, hi = rows * min(domain.lo, 0), rows * max(domain.hi, 0)
    if domain.lo > 0:
        lo = domain.lo  # a sum that is not NULL has at least one row
    if domain.hi < 0:
        hi = domain.hi
    check_size(lo, hi, node)
    found = widen(fold("sum", value.expression), max(abs(lo), abs(hi)))
    bounds = Number(step=domain.step, lo=lo, hi=hi)
    return Value(expression=found, domain=bounds, nullable=value.nullable or fold.partial)


def _mean(node: exp.Avg, names: Names, rows: int, fold: Folding) -> Value:
    """Return the mean on a grid a thousand times finer than the column's, rounded half away from
    zero.
    """
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    bound = domain.largest * rows * MEAN_STEPS * 2 + rows
    check_size(0, bound, node)
    n = widen(fold("sum", value.expression), bound) * MEAN_STEPS
    d = call("nullif", fold("count", value.expression), 0)
    found = case((n >= 0, (2 * n + d) // (2 * d)), otherwise=-((-2 * n + d) // (2 * d)))
    scaled = Number(
        step=domain.step / MEAN_STEPS, lo=domain.lo * MEAN_STEPS, hi=domain.hi * MEAN_STEPS
    )
    return Value(expression=found, domain=scaled, nullable=value.nullable or fold.partial)


def _extreme(function: str) -> Function:
    def apply(node: exp.Expression, names: Names, rows: int, fold: Folding) -> Value:
        value = _argument(node, names)
        if node.expressions:
            raise reject(node, f"{show(node)} is not answered.", f"Write {function.upper()}(x).")
        if isinstance(value.domain, Category) and all_numeric(value.domain.values):
            value = as_number(value, node)
        if isinstance(value.domain, Category | Opaque):
            raise reject(node, f"{show(node)} needs numbers or dates.", "Use a number or a date.")
        found = fold(function, value.expression)
        return Value(expression=found, domain=value.domain, nullable=value.nullable or fold.partial)

    return apply


def _logical(function: str) -> Function:
    def apply(node: exp.Expression, names: Names, rows: int, fold: Folding) -> Value:
        value = as_flag(_argument(node, names), node)
        found = fold(function, value.expression)
        return Value(expression=found, domain=Flag(), nullable=value.nullable or fold.partial)

    return apply


def _at_extreme(function: str) -> Function:
    """arg_max(x, y): x in the row of the largest y; of several such rows, the one with the largest
    x.
    """

    def apply(node: exp.Expression, names: Names, rows: int, fold: Folding) -> Value:
        if node.args.get("count"):
            raise reject(node, f"{show(node)} lists several values.", "Leave the number out.")
        value, key = translate(node.this, names), translate(node.expression, names)
        if isinstance(key.domain, Category | Opaque | Text) or isinstance(value.domain, Opaque):
            raise reject(
                node,
                f"{show(node)} needs a number or a date to order by.",
                "Order by a number or a date.",
            )
        # Privacy: S4. The pair is ordered by content alone, so equal keys cannot make the choice
        # depend on position.
        known = call("AND", key.expression.is_known, value.expression.is_known)
        pair = case((known, call("pair", key.expression, value.expression)))
        found = call("second of pair", fold(function, pair))
        return Value(expression=found, domain=value.domain, nullable=True)

    return apply


Function = Callable[[exp.Expression, Names, int, Folding], Value]

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
    """Return True if equal keys are one person's: the owner, or a key that leads to the owner, as
    of a visit.
    """
    domain = key.domain
    # Where an outer join left it NULL, it leads to nobody: then the rows of different people would
    # be one group.
    return isinstance(domain, Opaque) and (
        domain.owner or (domain.link is not None and not key.nullable)
    )


def _field(item: exp.Expression, scope: PersonScope, origins: Origins) -> Field:
    """Return what an item of the SELECT list is for each person."""
    if isinstance(item, exp.Star):
        raise reject(item, "* cannot be grouped.", "List the owner and the aggregates.")
    value = replace(translate(item.unalias(), scope), kind=kind_of(item, scope.kind))
    return Field(table="", name=item.output_name or spell(item), value=value, origins=origins)


def group_rows_by_owner(
    node: exp.Select, relation: Relation, keys: list[Value], alias: str, inner_alias: str
) -> Relation:
    """SELECT ... GROUP BY owner, keys: one row per person, or per person and key, as many as a
    person can have.

    A key that leads to the owner, as of a visit, has one owner: GROUP BY visit_id is GROUP BY
    owner, visit_id, without the rows whose visit is unknown.
    """
    names = Names(fields=relation.fields)
    others = [key for key in keys if not (isinstance(key.domain, Opaque) and key.domain.owner)]
    # A number that stands in GROUP BY would be taken for the place of a column.
    if any(
        key.constant or isinstance(key.domain, Missing) or isinstance(key.expression, Constant)
        for key in others
    ):
        raise reject(
            node.args["group"],
            "a constant key is the same for everybody.",
            "Leave it out of GROUP BY.",
        )
    stage = {
        key.identity: replace(
            key, expression=Column(alias, f"g{index}"), constant=False, numbering=False
        )
        for index, key in enumerate(others)
    }
    owner = Value(expression=Column(alias, OWNER), domain=Opaque(owner=True))
    owned = {key.identity: owner for key in keys if key not in others}
    scope = PersonScope(names=names, alias=alias, rows=relation.rows, keys={**stage, **owned})
    parted = [
        item for item, key in zip(meanings_of(node, names), keys, strict=True) if key in others
    ]
    rows = distinct_values(frozenset().union(*map(names.origins, parted)), relation.rows)
    fields = [_field(item, scope, frozenset({(alias, rows)})) for item in node.expressions]
    conditions: tuple[Expression, ...] = ()
    if node.args.get("having"):
        conditions = (
            as_flag(translate(node.args["having"].this, scope), node.args["having"]).expression,
        )
    known = () if owned else tuple(key.expression.is_known for key in keys if is_own(key))
    parted_by = tuple((f"g{index}", key.expression) for index, key in enumerate(others))
    folded = tuple((f"p{index}", each) for index, each in enumerate(scope.columns))
    query = PerPerson(relation.source, parted_by, folded, (*relation.conditions, *known))
    return Relation(
        source=Stage(query, alias), fields=tuple(fields), rows=rows, conditions=conditions
    )
