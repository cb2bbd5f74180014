"""SKEWNESS(x) of a sample, as in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.after.estimates import Floats
from discreet.sql.after.standardized import StandardMoment
from discreet.sql.requests.readings import few_steps
from discreet.sql.requests.request import AggregateRequest, Member, Moment, Place, number
from discreet.sql.values.expressions import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ThirdMoment(StandardMoment):
    """√(n (n - 1)) / (n - 2) times the mean of ((x - mean) / deviation)³."""

    power: ClassVar[int] = 3
    fewest: ClassVar[int] = 3

    def of(self, moments: list[Floats], variance: Floats, count: Floats) -> Floats:
        first, second, third = moments
        more = np.sqrt(np.maximum(count * (count - 1), 1.0)) / np.maximum(count - 2, 0.5)
        return more * (third - 3 * first * second + 2 * first**3) / variance**1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Skewness(Moment):
    """A request for a skewness."""

    degree: ClassVar[int] = 3

    def estimate(self, place: Place) -> ThirdMoment:
        return ThirdMoment(degree=place.degree, width=place.width)


def _skewness(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    return Skewness(label=label, value=few_steps(number(node, scope)), condition=condition)


MEMBER = Member(
    tags=("skewness",),
    names=("SKEWNESS",),
    readers={exp.Skewness: _skewness},
    estimates={ThirdMoment: ("third-moment", ("degree", "width"))},
    line=(
        "`SKEWNESS`",
        "four sums that make (hi − lo)³ in every row (on at most 32,768 steps)",
        "m · (hi − lo)³ for all",
    ),
    tolerance=1e-2,
)
