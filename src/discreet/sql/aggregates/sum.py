"""SUM(x)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from discreet.algebra import Expression, Reading
from discreet.sql.after.estimates import Linear
from discreet.sql.plan import sensitivity
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.requests.readings import RowsRead
from discreet.sql.requests.request import (
    AggregateRequest,
    Alone,
    Extent,
    Member,
    Moment,
    Place,
    number,
)
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope
from discreet.sql.values.numbers import grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(Moment, Alone):
    """A request for a sum."""

    degree: ClassVar[int] = 1

    @property
    def step(self) -> Fraction | None:
        return grid(self.value).step

    def reading(self, rows: RowsRead, node: exp.Expression) -> Reading:
        return rows.total(self.value, 1, self.condition, node)

    def sensitivity(self, extent: Extent) -> Sensitivity:
        domain = grid(self.value)
        return sensitivity.of_sum(
            rows=extent.rows,
            lo=domain.lo,
            hi=domain.hi,
            groups=extent.groups,
            neighbors=extent.neighbors,
        )

    def estimate(self, place: Place) -> Linear:
        """Return the estimate from the parts of degree d.

        x = lo + W * place, and the place of part i in the range is i / d.
        """
        parts = range(place.degree + 1)
        distances = [Fraction(part * place.width, place.degree) for part in parts]
        factors = tuple(place.unit * (place.lo + distance) for distance in distances)
        in_order = factors[::-1] if place.degree == 1 else factors
        return place.linear(in_order, rest=Fraction(0), step=place.step)


def _sum(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    value = number(node, scope)
    if not grid(value).largest:
        raise reject(node, f"{show(node)} is zero for everybody.", "Add up something that is not.")
    return Total(label=label, value=value, condition=condition)


MEMBER = Member(
    tags=("sum", "sum, both signs"),
    names=("SUM",),
    readers={exp.Sum: _sum},
    line=(
        r"`SUM(x)`, x in [lo, hi]",
        r"a sum",
        r"m · max(\|lo\|, \|hi\|): a row may also be absent",
    ),
)
