"""COUNT(DISTINCT owner), which counts people, and COUNT(DISTINCT x), which counts values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from discreet.algebra import Distinct, Expression, Persons, Reading, call
from discreet.sql.plan import sensitivity
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.requests.readings import RowsRead
from discreet.sql.requests.request import AggregateRequest, Extent, Member, Single, both
from discreet.sql.text.parse import reject
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.unify import as_flag, flag_as_number
from discreet.sql.values.value import Category, Flag, Number, Opaque, Text, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class People(Single):
    """A request for the number of people who have a row."""

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        return Persons(self.condition)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        return sensitivity.of_persons(
            touched=extent.touched, groups=extent.groups, neighbors=extent.neighbors
        )

    def additive(self, touched: int) -> bool:
        """Return True if counts of groups add up: only if nobody is in two of them, because a
        person counts once in each.
        """
        return touched == 1

    def counts_people(self, rows: int) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Single):
    """A request for the number of distinct values; of numbers and categories, at most as many as
    their domain has.
    """

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        value = self.value
        where = self.condition
        match value.domain:
            case Number(lo=lo, hi=hi):
                return Distinct((value.expression,), (lo, hi), where)
            case Category(values=values):
                return Distinct((value.expression,), (0, len(values) - 1), where)
            case Flag():
                return Distinct((flag_as_number(value.expression),), (0, 1), where)
        return Distinct((value.expression,), None, where)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        domain = self.value.domain
        # A timestamp may lie between the steps of its grid, so its domain's size is no bound.
        values = domain.size if isinstance(domain, Number | Category | Flag) else None
        return sensitivity.of_distinct(
            rows=extent.rows, values=values, groups=extent.groups, neighbors=extent.neighbors
        )

    def additive(self, touched: int) -> bool:
        """Return False: a value may be in every group."""
        return False


def read(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    """Read COUNT(DISTINCT ...)."""
    items = node.this.expressions
    if len(items) != 1:
        raise reject(
            node, "COUNT(DISTINCT a, b) counts several columns.", "Write COUNT(DISTINCT (a, b))."
        )
    item = items[0].unnest()
    if isinstance(item, exp.Tuple):
        parts = [translate(part, scope).expression for part in item.expressions]
        row = Value(expression=call("row", *parts), domain=Text())
        return Values(label=label, value=row, condition=condition)
    choice = identifier_if(item, scope)
    value, where = choice if choice is not None else (translate(item, scope), None)
    owner = isinstance(value.domain, Opaque) and value.domain.owner
    kind = People if owner else Values
    return kind(label=label, value=value, condition=both(where, condition))


def identifier_if(node: exp.Expression, scope: Scope) -> tuple[Value, Expression] | None:
    """Read CASE WHEN p THEN owner END, as in COUNT(DISTINCT CASE WHEN p THEN owner END).

    Return the identifier and p; None for other nodes.
    """
    if isinstance(node, exp.Case):
        branches = node.args.get("ifs") or []
        default = node.args.get("default")
        if node.this is not None or len(branches) != 1:
            return None
        branch = branches[0]
    elif isinstance(node, exp.If):
        branch = node
        default = node.args.get("false")
    else:
        return None
    result = branch.args["true"]
    if not isinstance(result, exp.Column) or not isinstance(default, exp.Null | None):
        return None
    value = scope.column(result)
    if not isinstance(value.domain, Opaque):
        return None
    return value, as_flag(translate(branch.this, scope), branch.this).expression


MEMBER = Member(
    tags=("distinct values", "persons"),
    names=("COUNT(DISTINCT)",),
    line=(
        "`COUNT(DISTINCT x)`, `COUNT(DISTINCT (x, y))`",
        "a count of values",
        "m, or the number of public values of x where that is smaller",
    ),
)
