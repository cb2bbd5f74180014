"""HARMONIC_MEAN(x): 1 over the mean of 1 / x, for a column above 0. DuckDB does not have it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.after.estimates import Floats, NoisyColumn
from discreet.sql.aggregates.mean import OfMean
from discreet.sql.requests.request import AggregateRequest, Member, Moment, Place
from discreet.sql.requests.request import number as argument
from discreet.sql.text.parse import reject, show
from discreet.sql.values.expressions import Scope
from discreet.sql.values.numbers import divide, grid
from discreet.sql.values.value import Number, Value, careful, number


@dataclass(frozen=True, slots=True, kw_only=True)
class Reciprocal(OfMean):
    """The estimate of `whole` over a mean."""

    whole: int

    def function(self, mean: Floats) -> Floats:
        return np.asarray(self.whole / mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonicMean(Moment):
    """A request for a harmonic mean; `value` is `whole` over x."""

    whole: int
    degree: ClassVar[int] = 1

    def estimate(self, place: Place) -> NoisyColumn:
        return Reciprocal(
            lo=place.lo,
            width=place.width,
            step=place.step,
            degree=place.degree,
            whole=self.whole,
        )


def _harmonic(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    value = argument(node, scope)
    domain = grid(value)
    if domain.lo <= 0:
        raise reject(
            node,
            f"{show(node)} is of numbers above 0 only.",
            "Hold them to a range: HARMONIC_MEAN(GREATEST(x, 1)).",
        )
    low = domain.at(domain.lo)
    high = domain.at(domain.hi)
    whole = 1
    # A quotient is rounded to a millionth, so the smallest must not be far below 1.
    while whole < high:
        whole *= 10
    quotient = divide(number(whole), value, node)
    step = grid(quotient).step
    bounds = Number(step=step, lo=_nearest(whole / high / step), hi=_nearest(whole / low / step))
    inverse = Value(expression=careful(quotient.expression), domain=bounds, nullable=value.nullable)
    return HarmonicMean(label=label, value=inverse, condition=condition, whole=whole)


def _nearest(value: Fraction) -> int:
    """Return the nearest integer; a half goes up, as in `divide` for numbers above 0."""
    return int(value + Fraction(1, 2))


MEMBER = Member(
    tags=("harmonic mean",),
    names=("HARMONIC_MEAN",),
    named={"harmonic_mean": _harmonic},
    estimates={Reciprocal: ("reciprocal", ("lo", "width", "step", "degree", "whole"))},
    line=(
        "`HARMONIC_MEAN(x)`, lo > 0",
        "1 over the mean of 1 / x",
        "m · (1 / lo − 1 / hi) for both parts",
    ),
    tolerance=1e-5,
    meaning="harmonic_mean(x) AS 1 / avg(1 / x)",
)
