"""GEOMEAN(x), also named GEOMETRIC_MEAN(x): exp of the mean of ln x, for a column above 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.after.estimates import Floats, NoisyColumn
from discreet.sql.aggregates.mean import OfMean
from discreet.sql.requests.request import (
    AggregateRequest,
    Member,
    Moment,
    Place,
    argument_node,
    number,
)
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.numbers import grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(OfMean):
    """The estimate of exp of a mean."""

    def function(self, mean: Floats) -> Floats:
        return np.asarray(np.exp(mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometricMean(Moment):
    """A request for a geometric mean; `value` is the logarithm."""

    degree: ClassVar[int] = 1

    def estimate(self, place: Place) -> NoisyColumn:
        return Exponential(lo=place.lo, width=place.width, step=place.step, degree=place.degree)


def _geomean(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    if grid(number(node, scope)).lo <= 0:
        raise reject(
            node,
            f"{show(node)} is of numbers above 0 only.",
            "Hold them to a range: GEOMEAN(GREATEST(x, 1)).",
        )
    logarithm = translate(exp.Ln(this=argument_node(node).copy()), scope)
    return GeometricMean(label=label, value=logarithm, condition=condition)


MEMBER = Member(
    tags=("geometric mean",),
    names=("GEOMEAN",),
    named={"geomean": _geomean, "geometric_mean": _geomean},
    estimates={Exponential: ("exponential", ("lo", "width", "step", "degree"))},
    line=(
        "`GEOMEAN(x)`, lo > 0",
        "exp of the mean of ln x, to a millionth",
        "m · (ln hi − ln lo) for both parts",
    ),
    tolerance=1e-5,
)
