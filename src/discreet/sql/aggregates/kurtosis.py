"""KURTOSIS(x), which is that of a sample, and KURTOSIS_POP(x); both less 3, as in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sqlglot import exp

from discreet.algebra import Expression
from discreet.sql.after.estimates import Floats
from discreet.sql.after.standardized import StandardMoment
from discreet.sql.requests.readings import few_steps
from discreet.sql.requests.request import AggregateRequest, Member, Moment, Place, Reader, number
from discreet.sql.values.expressions import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class FourthMoment(StandardMoment):
    """The mean of ((x - mean) / deviation)⁴, less 3; that of a sample is corrected for its size."""

    sample: bool
    power: ClassVar[int] = 4
    fewest: ClassVar[int] = 4

    def of(self, moments: list[Floats], variance: Floats, count: Floats) -> Floats:
        first, second, third, fourth = moments
        ratio = (fourth - 4 * third * first + 6 * second * first**2 - 3 * first**4) / variance**2
        if not self.sample:
            return np.asarray(ratio - 3)
        fewer = np.maximum(count - 2, 0.5) * np.maximum(count - 3, 0.5)
        return np.asarray((count - 1) * ((count + 1) * ratio - 3 * (count - 1)) / fewer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kurtosis(Moment):
    """A request for a kurtosis."""

    sample: bool
    degree: ClassVar[int] = 4

    def estimate(self, place: Place) -> FourthMoment:
        return FourthMoment(degree=place.degree, width=place.width, sample=self.sample)


def _kurtosis(*, sample: bool) -> Reader:
    def apply(
        node: exp.Expression, scope: Scope, label: str, condition: Expression | None
    ) -> AggregateRequest:
        value = few_steps(number(node, scope))
        return Kurtosis(label=label, value=value, condition=condition, sample=sample)

    return apply


MEMBER = Member(
    tags=("kurtosis",),
    names=("KURTOSIS",),
    readers={exp.Kurtosis: _kurtosis(sample=True)},
    named={"kurtosis_pop": _kurtosis(sample=False)},
    estimates={FourthMoment: ("fourth-moment", ("degree", "width", "sample"))},
    line=(
        "`KURTOSIS`, `KURTOSIS_POP`",
        "five sums that make (hi − lo)⁴ in every row (on at most 32,768 steps)",
        "m · (hi − lo)⁴ for all",
    ),
    tolerance=1e-2,
)
