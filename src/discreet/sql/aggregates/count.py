"""COUNT(*), COUNT(x), COUNT_IF(p): the number of all rows, or of those with a value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from discreet.algebra import Expression, Reading, Sum
from discreet.sql.after.estimates import Linear
from discreet.sql.aggregates import distinct
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.requests.readings import RowsRead
from discreet.sql.requests.request import (
    AggregateRequest,
    Alone,
    Extent,
    Member,
    Moment,
    Place,
    argument,
    both,
    constant_width,
)
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.unify import as_flag
from discreet.sql.values.value import Missing, Opaque, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class AllRows(Alone):
    """A request for the number of rows; beside a moment over the same rows, one more part of it."""

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        return Sum(where=self.condition)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        return constant_width(extent, width=1, parts=1)

    def counts_people(self, rows: int) -> bool:
        return rows == 1

    def estimate(self, place: Place) -> Linear:
        return place.count(rest=place.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Moment, Alone):
    """A request for the number of rows that have a value."""

    degree: ClassVar[int] = 0

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        return rows.present(self.value, self.condition)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        return constant_width(extent, width=1, parts=1)

    def estimate(self, place: Place) -> Linear:
        return place.count(rest=Fraction(0))


def _count(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    if node.expressions:
        raise reject(node, f"{show(node)} counts several columns at once.", "Count one.")
    if node.this is None or isinstance(node.this, exp.Star):
        return AllRows(label=label, condition=condition)
    if isinstance(node.this, exp.Distinct):
        return distinct.read(node, scope, label, condition)
    choice = distinct.identifier_if(node.this, scope)
    if choice is not None:
        identifier, where = choice
        return Count(label=label, value=identifier, condition=both(where, condition))
    value = argument(node, scope)
    if isinstance(value.domain, Missing):
        raise reject(node, "COUNT(NULL) is zero for everybody.", "Write COUNT(*).")
    if value.constant or _is_everybody(value):
        return AllRows(label=label, condition=condition)
    return Count(label=label, value=value, condition=condition)


def _is_everybody(value: Value) -> bool:
    """Return True for the owner: every row of a snapshot has one."""
    return isinstance(value.domain, Opaque) and value.domain.owner and not value.nullable


def _count_if(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    flag = as_flag(translate(node.this, scope), node).expression
    return AllRows(label=label, condition=both(flag, condition))


MEMBER = Member(
    tags=("count", "count of x", "count if"),
    names=("COUNT",),
    readers={exp.Count: _count, exp.CountIf: _count_if},
    line=(
        "`COUNT(*)`, `COUNT(x)`, `COUNT_IF(p)`",
        "a count",
        "m",
    ),
)
