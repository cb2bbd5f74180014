"""COUNT(*), COUNT(x), COUNT_IF(p): how many rows there are, and how many have a value."""

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
    """Rows, whatever is in them; beside a moment over the same rows, a further part of it."""

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
    """Rows that have a value."""

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
    chosen = distinct.identifier_if(node.this, scope)
    if chosen is not None:
        return Count(label=label, value=chosen[0], condition=both(chosen[1], condition))
    value = argument(node, scope)
    if isinstance(value.domain, Missing):
        raise reject(node, "COUNT(NULL) is zero for everybody.", "Write COUNT(*).")
    if value.constant or _is_everybody(value):
        return AllRows(label=label, condition=condition)
    return Count(label=label, value=value, condition=condition)


def _is_everybody(value: Value) -> bool:
    """Return True of the owner, whom every row has: a snapshot holds no rows of nobody."""
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
