"""REGR_SLOPE(y, x), REGR_INTERCEPT(y, x) and REGR_R2(y, x): the line of y over x, as DuckDB has
it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from discreet import arrow
from discreet.algebra import Expression
from discreet.mechanisms.tails.simulate import Noise
from discreet.sql.after.estimates import Components, Floats, NoisyColumn, floats, reach
from discreet.sql.aggregates.covariance import Together
from discreet.sql.requests.request import AggregateRequest, Corner, Member, Pair, Reader
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.numbers import grid
from discreet.sql.values.unify import as_number

_DEGREES = (1, 2)  # of y and of x


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Slope or intercept, from products of 2 parts of y and 3 of x: component 3 i + j goes with
    parts i and j.

    With u, w the places of y, x in their ranges: the mean of u is that of i, of w that of j / 2, of
    u w that of i j / 2, and the mean of w² is the share of j = 2. Neither has a bound that is
    public, so where noise may halve the variance of x there is no margin.
    """

    widths: tuple[int, int]
    steps: tuple[Fraction, Fraction]
    starts: tuple[Fraction, Fraction]  # the low ends of y and of x
    slope: bool

    def values(self, components: Components) -> pa.Array:
        found, _, more = self._line(floats(components))
        return arrow.array(found, mask=(more <= 0.5) | ~np.isfinite(found))

    def _line(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """It, what it was divided by, and how many rows more than one; parts along the first
        axis.
        """
        total = parts.sum(axis=0)
        count = total / float(self.widths[0] * self.widths[1] ** 2)
        shares = np.divide(parts, total, out=np.full_like(parts, np.nan), where=total > 0)
        table = shares.reshape((2, 3, *shares.shape[1:]))
        of_x = table.sum(axis=0)
        mean_y, mean_x = table[1].sum(axis=0), of_x[1] / 2 + of_x[2]
        variance = of_x[2] - mean_x**2
        spread = np.where(variance > 0, variance, np.nan)
        slope = (table[1, 1] / 2 + table[1, 2] - mean_y * mean_x) / spread
        high, wide = (
            float(width * step) for width, step in zip(self.widths, self.steps, strict=True)
        )
        start_y, start_x = (float(start) for start in self.starts)
        found = slope * high / wide
        if not self.slope:
            found = start_y + mean_y * high - found * (start_x + mean_x * wide)
        return found, np.nan_to_num(spread) * count, count - 1

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise around the noisy sums (S11)."""
        parts = floats(components)
        return np.where(self._line(parts)[2] > 1, reach(self._line, parts, mechanism), np.inf)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the margin for values that lie evenly in their ranges."""
        if assuming is None:
            return None
        even = float(assuming) * float(self.widths[0] * self.widths[1] ** 2) / 6
        found = float(self.margins(tuple(np.array([even]) for _ in range(6)), mechanism)[0])
        return found if np.isfinite(found) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RSquared(Together):
    """R²: the square of a correlation, whose margin is that of the squares of the ends of its
    margin.
    """

    def values(self, components: Components) -> pa.Array:
        found, missing = self.solve(components)
        return arrow.array(found**2, mask=missing)

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        found = np.nan_to_num(self.solve(components)[0])
        return self._around(found, Together.margins(self, components, mechanism))

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the widest: that of a correlation of almost 1."""
        within = Together.margin(self, mechanism, assuming=assuming)
        return (
            None if within is None else float(self._around(np.array([1.0]), np.array([within]))[0])
        )

    def _around(self, center: Floats, within: Floats) -> Floats:
        size = np.abs(center)
        low, high = np.maximum(size - within, 0.0), np.minimum(size + within, 1.0)
        return np.asarray(np.maximum(high**2 - size**2, size**2 - low**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Pair):
    """Slope or intercept of y, the first value, over x."""

    slope: bool

    @property
    def degrees(self) -> tuple[int, int]:
        return _DEGREES

    def estimate(self, corner: Corner) -> NoisyColumn:
        y, x = grid(self.value), grid(self.other)
        return Line(
            widths=corner.widths,
            steps=corner.steps,
            starts=(y.at(y.lo), x.at(x.lo)),
            slope=self.slope,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Determination(Pair):
    """R²."""

    @property
    def degrees(self) -> tuple[int, int]:
        return (2, 2)

    def estimate(self, corner: Corner) -> NoisyColumn:
        return RSquared(
            degree=2,
            widths=corner.widths,
            steps=corner.steps,
            sample=False,
            correlation=True,
        )


def _line(*, slope: bool) -> Reader:
    def apply(
        node: exp.Expression, scope: Scope, label: str, condition: Expression | None
    ) -> AggregateRequest:
        y, x = (as_number(translate(part, scope), node) for part in (node.this, node.expression))
        return Regression(label=label, value=y, other=x, condition=condition, slope=slope)

    return apply


def _explain(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    y, x = (as_number(translate(part, scope), node) for part in (node.this, node.expression))
    return Determination(label=label, value=y, other=x, condition=condition)


MEMBER = Member(
    tags=("regression",),
    names=("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2"),
    readers={
        exp.RegrSlope: _line(slope=True),
        exp.RegrIntercept: _line(slope=False),
        exp.RegrR2: _explain,
    },
    estimates={
        Line: ("line", ("widths", "steps", "starts", "slope")),
        RSquared: ("explained", ("degree", "widths", "steps", "sample", "correlation")),
    },
    line=(
        "`REGR_SLOPE(y, x)`, `REGR_INTERCEPT(y, x)`; `REGR_R2(y, x)`",
        "products of two parts of y and three of x; those of `CORR`",
        "m · (the width of y) · (the width of x)²; that of `CORR`",
    ),
    tolerance=1e-2,
)
