"""Aggregate each person's own rows: GROUP BY owner. For windows over the owner read `windows`.

The results are exact for each person, and are private rows again: one person still changes only
that person's rows. The content of rows decides ties, never their position (S4).
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
from discreet.sql.rows.relation import (
    Field,
    Names,
    Origins,
    Relation,
    distinct_values,
    rows_of_stage,
)
from discreet.sql.text.parse import reject, show, spell
from discreet.sql.text.postgres import Kind, kind_of
from discreet.sql.values.arguments import check_arguments
from discreet.sql.values.categories import all_numeric
from discreet.sql.values.expressions import translate
from discreet.sql.values.numbers import check_size, grid
from discreet.sql.values.unify import as_flag, as_number
from discreet.sql.values.value import (
    Category,
    Day,
    Domain,
    Flag,
    Identity,
    Missing,
    Number,
    Opaque,
    Text,
    Value,
    widen,
)

MEAN_STEPS = 1_000  # a mean per person is rounded to a thousandth of the column's step


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """The rows of one person that a fold reads: those that satisfy a condition and are in a window,
    if there is one.
    """

    where: Expression | None = None
    window: Over | None = None

    @property
    def partial(self) -> bool:
        """Return True if the condition may leave out rows, so that none may be left."""
        return self.where is not None

    def __call__(self, name: str, *arguments: Operand) -> Expression:
        """Return the fold of these arguments over the rows."""
        fold = Fold(name, tuple(expression(each) for each in arguments), self.where)
        return fold if self.window is None else replace(self.window, function=fold)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonScope:
    """Resolves names in a SELECT that groups by the owner: keys and aggregates become columns of a
    stage.
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
        """Return the column of the stage for an aggregate, or for an expression that is a key."""
        kind = node.this if isinstance(node, exp.Filter) else node
        if isinstance(kind, exp.AggFunc):
            return self.aggregate(node)
        if isinstance(node, exp.Column) or not node.find(exp.Column) or node.find(exp.AggFunc):
            return None
        try:
            value = translate(node, self.names)
        except Rejected:
            return None
        return self.keys.get(value.identity)

    def aggregate(self, node: exp.Expression) -> Value:
        """Add an aggregate to the columns of the stage; return its column."""
        fold = Folding()
        inner = node
        if isinstance(node, exp.Filter):
            check_arguments(node)
            condition = as_flag(translate(node.expression.this, self.names), node)
            fold = Folding(where=condition.expression)
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
        place = self.columns.index(value.expression)
        return replace(value, expression=Column(self.alias, f"p{place}"))


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
        # A group has a row; a frame of a window, or what FILTER leaves, may have none.
        least = int(fold.window is None and not fold.partial)
        return Value(expression=fold("count"), domain=replace(domain, lo=least))
    if isinstance(node.this, exp.Distinct):
        if len(node.this.expressions) != 1:
            raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
        value = translate(node.this.expressions[0], names)
        most = min(rows, _values_of(value.domain, rows))
        counted = fold("count distinct", value.expression)
        return Value(expression=counted, domain=replace(domain, hi=most))
    return Value(expression=fold("count", translate(node.this, names).expression), domain=domain)


def _values_of(domain: Domain, rows: int) -> int:
    """Return how many values a domain has; `rows` if they are not public."""
    match domain:
        case Number(lo=lo, hi=hi):
            return hi - lo + 1
        case Category(values=values):
            return len(set(values))
        case Flag():
            return 2
        case Day(lo=first, hi=last):
            return (last - first).days + 1
    return rows


def _count_if(node: exp.CountIf, names: Names, rows: int, fold: Folding) -> Value:
    flag = as_flag(translate(node.this, names), node).expression
    domain = Number(step=Fraction(1), lo=0, hi=rows)
    return Value(expression=fold("count", case((flag, 1))), domain=domain)


def _sum(node: exp.Sum, names: Names, rows: int, fold: Folding) -> Value:
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    lo = rows * min(domain.lo, 0)
    hi = rows * max(domain.hi, 0)
    # A sum that is not NULL has at least one row.
    if domain.lo > 0:
        lo = domain.lo
    if domain.hi < 0:
        hi = domain.hi
    check_size(lo, hi, node)
    total = widen(fold("sum", value.expression), max(abs(lo), abs(hi)))
    bounds = Number(step=domain.step, lo=lo, hi=hi)
    return Value(expression=total, domain=bounds, nullable=value.nullable or fold.partial)


def _mean(node: exp.Avg, names: Names, rows: int, fold: Folding) -> Value:
    """Return the mean, rounded half away from zero to a step a thousand times finer than the
    column's.
    """
    value = as_number(_argument(node, names), node)
    domain = grid(value)
    bound = domain.largest * rows * MEAN_STEPS * 2 + rows
    check_size(0, bound, node)
    n = widen(fold("sum", value.expression), bound) * MEAN_STEPS
    d = call("nullif", fold("count", value.expression), 0)
    positive = (2 * n + d) // (2 * d)
    negative = -((-2 * n + d) // (2 * d))
    mean = case((n >= 0, positive), otherwise=negative)
    finer = Number(
        step=domain.step / MEAN_STEPS, lo=domain.lo * MEAN_STEPS, hi=domain.hi * MEAN_STEPS
    )
    return Value(expression=mean, domain=finer, nullable=value.nullable or fold.partial)


def _extreme(function: str) -> Function:
    def apply(node: exp.Expression, names: Names, rows: int, fold: Folding) -> Value:
        value = _argument(node, names)
        if node.expressions:
            raise reject(node, f"{show(node)} is not answered.", f"Write {function.upper()}(x).")
        if isinstance(value.domain, Category) and all_numeric(value.domain.values):
            value = as_number(value, node)
        if isinstance(value.domain, Category | Opaque):
            raise reject(node, f"{show(node)} needs numbers or dates.", "Use a number or a date.")
        nullable = value.nullable or fold.partial
        extreme = fold(function, value.expression)
        return Value(expression=extreme, domain=value.domain, nullable=nullable)

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
        # Privacy: S4. Pairs are ordered by their content alone. So if two keys are equal, the choice
        # does not depend on the position of rows.
        not_null = call("AND", key.expression.is_known, value.expression.is_known)
        pair = case((not_null, call("pair", key.expression, value.expression)))
        second = call("second of pair", fold(function, pair))
        return Value(expression=second, domain=value.domain, nullable=True)

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
    """Return True if rows with equal keys belong to one person: for the owner, and for a key that
    leads to the owner, such as visit_id.
    """
    domain = key.domain
    if not isinstance(domain, Opaque):
        return False
    # A key that an outer join made NULL leads to nobody: rows of several people would be one group.
    return domain.owner or (domain.link is not None and not key.nullable)


def _field(item: exp.Expression, scope: PersonScope, origins: Origins) -> Field:
    """Return the column of an item of the SELECT list."""
    if isinstance(item, exp.Star):
        raise reject(item, "* cannot be grouped.", "List the owner and the aggregates.")
    value = replace(translate(item.unalias(), scope), kind=kind_of(item, scope.kind))
    return Field(table="", name=item.output_name or spell(item), value=value, origins=origins)


def group_rows_by_owner(
    node: exp.Select, relation: Relation, keys: list[Value], alias: str, inner_alias: str
) -> Relation:
    """Return the rows of SELECT ... GROUP BY owner, keys: one row for each person, or for each
    person and combination of keys.

    A key that leads to the owner, such as visit_id, has one owner. So GROUP BY visit_id is GROUP BY
    owner, visit_id without the rows whose visit_id is NULL.
    """
    names = Names(fields=relation.fields)
    others = [key for key in keys if not (isinstance(key.domain, Opaque) and key.domain.owner)]
    # The engine would read a number in GROUP BY as the place of a column.
    if any(map(_is_constant, others)):
        raise reject(
            node.args["group"],
            "a constant key is the same for everybody.",
            "Leave it out of GROUP BY.",
        )
    columns: dict[Identity, Value] = {}
    for index, key in enumerate(others):
        column = Column(alias, f"g{index}")
        columns[key.identity] = replace(key, expression=column, constant=False, numbering=False)
    owner = Value(expression=Column(alias, OWNER), domain=Opaque(owner=True))
    owners = {key.identity: owner for key in keys if key not in others}
    scope = PersonScope(names=names, alias=alias, rows=relation.rows, keys={**columns, **owners})
    items = zip(meanings_of(node, names), keys, strict=True)
    origins = [names.origins(item) for item, key in items if key in others]
    rows = distinct_values(Origins().union(*origins), relation.rows)
    fields = [_field(item, scope, rows_of_stage(alias, rows)) for item in node.expressions]
    conditions: tuple[Expression, ...] = ()
    having = node.args.get("having")
    if having:
        conditions = (as_flag(translate(having.this, scope), having).expression,)
    not_null: list[Expression] = []
    if not owners:
        not_null += [key.expression.is_known for key in keys if is_own(key)]
    group_by = tuple((f"g{index}", key.expression) for index, key in enumerate(others))
    folds = tuple((f"p{index}", each) for index, each in enumerate(scope.columns))
    query = PerPerson(relation.source, group_by, folds, (*relation.conditions, *not_null))
    return Relation(
        source=Stage(query, alias), fields=tuple(fields), rows=rows, conditions=conditions
    )


def _is_constant(key: Value) -> bool:
    if key.constant or isinstance(key.domain, Missing):
        return True
    return isinstance(key.expression, Constant)
