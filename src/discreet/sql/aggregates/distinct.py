"""COUNT(DISTINCT owner) and COUNT(DISTINCT x): people, and values."""

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
    """People who have a row."""

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        return Persons(self.condition)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        return sensitivity.of_persons(
            touched=extent.touched, groups=extent.groups, neighbors=extent.neighbors
        )

    def additive(self, touched: int) -> bool:
        """A person is counted once in every group: only where nobody is in two do people add up."""
        return touched == 1

    def counts_people(self, rows: int) -> bool:
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Single):
    """Distinct values: of numbers and categories, at most as many as are public."""

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        value, where = self.value, self.condition
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
        # Moments may lie between their steps: how many there are is not known.
        values = domain.size if isinstance(domain, Number | Category | Flag) else None
        return sensitivity.of_distinct(
            rows=extent.rows, values=values, groups=extent.groups, neighbors=extent.neighbors
        )

    def additive(self, touched: int) -> bool:
        """A value may be in every group."""
        return False


def read(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    """Read COUNT(DISTINCT ...)."""
    listed = node.this.expressions
    only = listed[0].unnest() if len(listed) == 1 else None
    if only is None:
        raise reject(
            node, "COUNT(DISTINCT a, b) counts several columns.", "Write COUNT(DISTINCT (a, b))."
        )
    if isinstance(only, exp.Tuple):
        parts = (translate(part, scope).expression for part in only.expressions)
        return Values(
            label=label,
            value=Value(expression=call("row", *parts), domain=Text()),
            condition=condition,
        )
    chosen = identifier_if(only, scope)
    value, where = chosen if chosen is not None else (translate(only, scope), None)
    owner = isinstance(value.domain, Opaque) and value.domain.owner
    kind = People if owner else Values
    return kind(label=label, value=value, condition=both(where, condition))


def identifier_if(node: exp.Expression, scope: Scope) -> tuple[Value, Expression] | None:
    """Read CASE WHEN p THEN owner END, as in COUNT(DISTINCT CASE WHEN p THEN owner END); return the
    identifier and p.
    """
    branches = (
        node.args.get("ifs")
        if isinstance(node, exp.Case)
        else [node]
        if isinstance(node, exp.If)
        else []
    )
    if len(branches or ()) != 1 or (isinstance(node, exp.Case) and node.this is not None):
        return None
    [branch], default = (
        branches or [],
        node.args.get("default" if isinstance(node, exp.Case) else "false"),
    )
    if not isinstance(branch.args["true"], exp.Column) or not (
        default is None or isinstance(default, exp.Null)
    ):
        return None
    value = scope.column(branch.args["true"])
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
