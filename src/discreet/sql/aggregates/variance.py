"""VARIANCE(x), STDDEV(x), and those of populations."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet import arrow
from discreet.algebra import Expression
from discreet.mechanisms.tails.simulate import Noise
from discreet.sql.after.estimates import (
    Components,
    Floats,
    floats,
    possible,
    raw_moments,
    reach,
    sample_factor,
)
from discreet.sql.requests.request import AggregateRequest, Member, Moment, Place, Reader, number
from discreet.sql.values.expressions import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The estimate of VARIANCE and STDDEV, from the noisy sums of (W - v)², 2 v (W - v) and v².

    v = x - lo in units, and W is the width. For one row the three terms add up to W², so the noise
    of all costs no more than that of one. Beside a skewness or a kurtosis there are more sums, of a
    higher degree.
    """

    lo: int
    width: int
    step: Fraction
    sample: bool
    root: bool
    degree: int = 2  # the degree of the sums

    def values(self, components: Components) -> pa.Array:
        spread, count = self._spread(floats(components[: self.degree + 1]))
        variance = self._nearest(spread, count)
        least = 1.5 if self.sample else 0
        return arrow.array(np.sqrt(variance) if self.root else variance, mask=count <= least)

    def _spread(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return the variance in the column's own unit, not clamped, and the noisy count.

        Sums are along the first axis.
        """
        count = sums.sum(axis=0) / float(self.width**self.degree)
        mean, square = raw_moments(sums, count, width=self.width, most=2)
        factor = sample_factor(count) if self.sample else 1.0
        return (square - mean**2) * factor * self._unit, count

    def _nearest(self, variance: Floats, count: Floats) -> Floats:
        """Return the nearest variance that this number of rows can have.

        The largest is that of rows of which half are at each end.
        """
        factor = sample_factor(count) if self.sample else 1.0
        return np.clip(variance, 0.0, factor * self._unit / 4)

    @property
    def _unit(self) -> float:
        return (self.width * float(self.step)) ** 2

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise (S11).

        The ends of a deviation are the roots of the ends of the variance.
        """
        sums = floats(components[: self.degree + 1])
        center, count = self._spread(sums)
        within = np.where(count > 2, reach(self._spread, sums, mechanism), np.inf)
        answer = self._nearest(center, count)
        most = self._unit / (2 if self.sample else 4)
        low, high = possible(answer, within, least=0.0, most=most)
        if self.root:
            low = np.sqrt(low)
            answer = np.sqrt(answer)
            high = np.sqrt(high)
        return np.maximum(answer - low, high - answer)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        count = np.array([float(assuming)])
        # the largest variance: half of the rows at each end
        shares = (0.5, *(0.0,) * (self.degree - 1), 0.5)
        sums = tuple(np.round(count * share * float(self.width**self.degree)) for share in shares)
        return float(self.margins(sums, mechanism)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(Moment):
    """A request for a variance or a standard deviation."""

    sample: bool
    root: bool
    degree: ClassVar[int] = 2

    def estimate(self, place: Place) -> Spread:
        return Spread(
            lo=place.lo,
            width=place.width,
            step=place.step,
            sample=self.sample,
            root=self.root,
            degree=place.degree,
        )


def _variance(*, sample: bool, root: bool) -> Reader:
    def apply(
        node: exp.Expression, scope: Scope, label: str, condition: Expression | None
    ) -> AggregateRequest:
        value = number(node, scope)
        return Variance(label=label, value=value, condition=condition, sample=sample, root=root)

    return apply


MEMBER = Member(
    tags=("variance", "deviation", "population variance", "population deviation"),
    names=("VARIANCE", "STDDEV"),
    readers={
        exp.Variance: _variance(sample=True, root=False),
        exp.VariancePop: _variance(sample=False, root=False),
        exp.Stddev: _variance(sample=True, root=True),
        exp.StddevSamp: _variance(sample=True, root=True),
        exp.StddevPop: _variance(sample=False, root=True),
    },
    estimates={Spread: ("spread", ("lo", "width", "step", "sample", "root"))},
    line=(
        "`VARIANCE`, `VAR_SAMP`, `VAR_POP`, `STDDEV`, `STDDEV_SAMP`, `STDDEV_POP`",
        "three sums that make (hi − lo)² in every row",
        "m · (hi − lo)² for all",
    ),
)
