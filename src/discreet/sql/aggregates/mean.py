"""AVG(x), and the base of aggregates that are functions of a mean."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from discreet import arrow
from discreet.algebra import Expression
from discreet.mechanisms.tails.simulate import Noise
from discreet.sql.after.estimates import Components, Floats, NoisyColumn, reach
from discreet.sql.after.widths.margins import ratio_quantile
from discreet.sql.requests.request import AggregateRequest, Member, Moment, Place, number
from discreet.sql.values.expressions import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The estimate of AVG, from the noisy sums A of x - lo and B of hi - x over the rows that have
    x, in units of `step`.

    mean = lo + width * A / (A + B), clamped to [lo, hi]. A group with a noisy count of zero or less
    has no mean. With a higher degree, A and B are computed from the parts that a variance and the
    like measure.
    """

    lo: int
    width: int
    step: Fraction
    degree: int

    def values(self, components: Components) -> pa.Array:
        means, missing = self.means(components)
        return arrow.array(means, mask=missing)

    def means(self, components: Components) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the means, and the groups without one."""
        a, b = self._sides(tuple(numbers.astype(np.float64) for numbers in components))
        return (self.lo + self.width * _share(a, b)) * float(self.step), a + b <= 0

    def quotients(self, components: Components) -> Floats:
        """Return the means, not clamped to their range; NaN for the groups without one."""
        a, b = self._sides(tuple(numbers.astype(np.float64) for numbers in components))
        share = np.divide(a, a + b, out=np.full_like(a, np.nan), where=a + b > 0)
        return (self.lo + self.width * share) * float(self.step)

    def _sides(self, parts: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        """Return A and B."""
        if self.degree == 1:
            return parts[0], parts[1]
        whole = float(self.width ** (self.degree - 1))
        places = range(self.degree + 1)
        up = sum(
            (parts[place] * (place / self.degree) for place in places),
            start=np.zeros_like(parts[0]),
        )
        down = sum(
            (parts[place] * (1 - place / self.degree) for place in places),
            start=np.zeros_like(parts[0]),
        )
        return up / whole, down / whole

    def _place(self, parts: Floats) -> tuple[Floats, Floats]:
        """Return the place of the mean in its range, not clamped, and the noisy count."""
        a, b = self._sides(tuple(parts))
        return a / np.maximum(a + b, 1.0), a + b

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        parts = tuple(numbers.astype(np.float64) for numbers in components)
        a, b = self._sides(parts)
        if self.degree == 1:
            within = _fieller(a, b, mechanism)
        else:
            within = reach(self._place, np.stack(parts[: self.degree + 1]), mechanism)
        share = _share(a, b)
        farthest = np.maximum(share, 1 - share)
        half_width = np.where(a + b > 0, np.minimum(within, farthest), farthest)
        return half_width * self.width * float(self.step)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        # Half of the rows at each end, or all of them at one end: take the wider margin.
        total = float(assuming) * self.width**self.degree
        between = (0.0,) * (self.degree - 1)
        widths = []
        for shares in ((0.5, *between, 0.5), (1.0, *between, 0.0)):
            parts = tuple(np.array([total * share]) for share in shares)
            widths.append(float(self.margins(parts, mechanism)[0]))
        return max(widths)


def _share(a: Floats, b: Floats) -> Floats:
    """Return A / (A + B), clamped to [0, 1]; a half if A + B is not above zero."""
    total = a + b
    half = np.full_like(a, 0.5)
    return np.clip(np.divide(a, total, out=half, where=total > 0), 0.0, 1.0)


def _fieller(a: Floats, b: Floats, mechanism: Noise) -> Floats:
    """Return the half-width of Fieller's interval for p = A / (A + B).

    It holds the p for which |A (1 - p) - B p| is within its noise.
    """
    # The noise is at least 1, so with a smaller total the interval is everything.
    share = _share(a, b)
    total = np.maximum(a + b, 1.0)
    farthest = np.zeros_like(a)
    for side in (-1.0, 1.0):
        within = np.zeros_like(a)
        for _ in range(6):
            edge = np.clip(share + side * within, 0.0, 1.0)
            within = np.maximum(np.minimum(ratio_quantile(mechanism, edge) / total, 1.0), within)
        farthest = np.maximum(farthest, within)
    return farthest


@dataclass(frozen=True, slots=True, kw_only=True)
class Average(Moment):
    """A request for a mean."""

    degree: ClassVar[int] = 1

    def estimate(self, place: Place) -> NoisyColumn:
        return Mean(lo=place.lo, width=place.width, step=place.step, degree=place.degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfMean(Mean):
    """The estimate of a monotone function of a mean.

    The mean is clamped to its range. The ends of the mean's interval give those of the function's.
    """

    def function(self, mean: Floats) -> Floats:
        """Return the function of a mean."""
        raise NotImplementedError

    def values(self, components: Components) -> pa.Array:
        means, missing = self.means(components)
        return arrow.array(self.function(means), mask=missing)

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        return self._around(self.means(components)[0], Mean.margins(self, components, mechanism))

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the margin for a mean in the middle of its range."""
        within = Mean.margin(self, mechanism, assuming=assuming)
        if within is None:
            return None
        low, high = self._ends
        return float(self._around(np.array([(low + high) / 2]), np.array([within]))[0])

    def _around(self, means: Floats, within: Floats) -> Floats:
        """Return how far the function of a mean within this distance can be."""
        low = self.function(np.clip(means + -1 * within, *self._ends))
        high = self.function(np.clip(means + 1 * within, *self._ends))
        middle = self.function(means)
        return np.maximum(np.abs(low - middle), np.abs(high - middle))

    @property
    def _ends(self) -> tuple[float, float]:
        return float(self.lo * self.step), float((self.lo + self.width) * self.step)


def _mean(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    return Average(label=label, value=number(node, scope), condition=condition)


MEMBER = Member(
    tags=("mean",),
    names=("AVG",),
    readers={exp.Avg: _mean},
    estimates={Mean: ("mean", ("lo", "width", "step", "degree"))},
    line=(
        "`AVG(x)`; `SUM(x)` beside `COUNT(x)` or `COUNT(*)`",
        "the sums of x − lo and of hi − x, together",
        "m · (hi − lo) for both",
    ),
)
