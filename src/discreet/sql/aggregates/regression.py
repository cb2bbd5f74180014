"""REGR_SLOPE(y, x), REGR_INTERCEPT(y, x) and REGR_R2(y, x): the line of y over x, as in DuckDB."""

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
    """The estimate of a slope or an intercept, from products of 2 parts of y and 3 of x: component
    3 i + j is that of parts i and j.

    Let u and w be the places of y and x in their ranges. The mean of u is the mean of i, that of w
    is the mean of j / 2, that of u w is the mean of i j / 2, and the mean of w² is the share of
    j = 2. Slope and intercept have no public bound, so where noise may halve the variance of x
    there is no margin.
    """

    widths: tuple[int, int]
    steps: tuple[Fraction, Fraction]
    starts: tuple[Fraction, Fraction]  # the low ends of y and of x
    slope: bool

    def values(self, components: Components) -> pa.Array:
        answers, _, enough = self._line(floats(components))
        return arrow.array(answers, mask=(enough <= 0.5) | ~np.isfinite(answers))

    def _line(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the slope or intercept, its divisor, and the number of rows less one.

        Parts are along the first axis.
        """
        total = parts.sum(axis=0)
        count = total / float(self.widths[0] * self.widths[1] ** 2)
        shares = np.divide(parts, total, out=np.full_like(parts, np.nan), where=total > 0)
        table = shares.reshape((2, 3, *shares.shape[1:]))
        of_x = table.sum(axis=0)
        mean_y = table[1].sum(axis=0)
        mean_x = of_x[1] / 2 + of_x[2]
        variance = of_x[2] - mean_x**2
        spread = np.where(variance > 0, variance, np.nan)
        slope = (table[1, 1] / 2 + table[1, 2] - mean_y * mean_x) / spread
        range_y = float(self.widths[0] * self.steps[0])
        range_x = float(self.widths[1] * self.steps[1])
        start_y = float(self.starts[0])
        start_x = float(self.starts[1])
        answer = slope * range_y / range_x
        if not self.slope:
            answer = start_y + mean_y * range_y - answer * (start_x + mean_x * range_x)
        return answer, np.nan_to_num(spread) * count, count - 1

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise around the noisy sums (S11)."""
        parts = floats(components)
        _, _, enough = self._line(parts)
        return np.where(enough > 1, reach(self._line, parts, mechanism), np.inf)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the margin for values that are spread evenly over their ranges."""
        if assuming is None:
            return None
        even = float(assuming) * float(self.widths[0] * self.widths[1] ** 2) / 6
        parts = tuple(np.array([even]) for _ in range(6))
        width = float(self.margins(parts, mechanism)[0])
        return width if np.isfinite(width) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RSquared(Together):
    """The estimate of R², the square of a correlation.

    The ends of its interval are the squares of the ends of the correlation's.
    """

    def values(self, components: Components) -> pa.Array:
        correlations, missing = self.solve(components)
        return arrow.array(correlations**2, mask=missing)

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        correlations, _ = self.solve(components)
        within = Together.margins(self, components, mechanism)
        return self._around(np.nan_to_num(correlations), within)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        """Return the widest margin: that of a correlation of almost 1."""
        within = Together.margin(self, mechanism, assuming=assuming)
        if within is None:
            return None
        return float(self._around(np.array([1.0]), np.array([within]))[0])

    def _around(self, center: Floats, within: Floats) -> Floats:
        """Return how far the square of a correlation within this distance can be."""
        size = np.abs(center)
        low = np.maximum(size - within, 0.0)
        high = np.minimum(size + within, 1.0)
        return np.asarray(np.maximum(high**2 - size**2, size**2 - low**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Pair):
    """A request for the slope or intercept of y, the first value, over x."""

    slope: bool

    @property
    def degrees(self) -> tuple[int, int]:
        return _DEGREES

    def estimate(self, corner: Corner) -> NoisyColumn:
        y = grid(self.value)
        x = grid(self.other)
        return Line(
            widths=corner.widths,
            steps=corner.steps,
            starts=(y.at(y.lo), x.at(x.lo)),
            slope=self.slope,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Determination(Pair):
    """A request for R²."""

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
        y = as_number(translate(node.this, scope), node)
        x = as_number(translate(node.expression, scope), node)
        return Regression(label=label, value=y, other=x, condition=condition, slope=slope)

    return apply


def _explain(
    node: exp.Expression, scope: Scope, label: str, condition: Expression | None
) -> AggregateRequest:
    y = as_number(translate(node.this, scope), node)
    x = as_number(translate(node.expression, scope), node)
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
