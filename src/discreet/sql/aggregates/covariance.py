"""COVAR_POP(x, y), COVAR_SAMP(x, y) and CORR(x, y)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from discreet import arrow
from discreet.algebra import Expression
from discreet.mechanisms.tails.simulate import Noise
from discreet.sql.after.estimates import (
    Components,
    Floats,
    NoisyColumn,
    floats,
    possible,
    reach,
    sample_factor,
)
from discreet.sql.requests.request import AggregateRequest, Corner, Member, Pair, Reader
from discreet.sql.values.expressions import Scope, translate
from discreet.sql.values.unify import as_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """The estimate of COVAR and CORR, from products of parts of two columns: component
    i * (degree + 1) + j is that of parts i and j.

    Let u and w be the places of x and y in their ranges. The mean of u is the mean of i / degree,
    that of u w is the mean of (i j) / degree². With degree 2, the mean of u² is the share of i = 2.
    """

    degree: int
    widths: tuple[int, int]
    steps: tuple[Fraction, Fraction]
    sample: bool
    correlation: bool

    def values(self, components: Components) -> pa.Array:
        answers, missing = self.solve(components)
        return arrow.array(answers, mask=missing)

    def solve(self, components: Components) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the answers, and the groups without one."""
        answers, count, _ = self._joint(floats(components))
        return self._nearest(answers, count), (count <= 1.5) | ~np.isfinite(answers)

    def _joint(self, parts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the covariance or correlation, not clamped, the noisy count, and the divisor.

        Parts are along the first axis.
        """
        degree = self.degree
        total = parts.sum(axis=0)
        count = total / float((self.widths[0] * self.widths[1]) ** degree)
        shares = np.divide(parts, total, out=np.full_like(parts, np.nan), where=total > 0)
        table = shares.reshape((degree + 1, degree + 1, *shares.shape[1:]))
        place = np.arange(degree + 1) / degree
        mean_x = np.tensordot(place, table.sum(axis=1), 1)
        mean_y = np.tensordot(place, table.sum(axis=0), 1)
        product = np.tensordot(place, np.tensordot(place, table, (0, 0)), (0, 0))
        covariance = product - mean_x * mean_y
        if self.correlation:
            spread_x = np.clip(table[2].sum(axis=0) - mean_x**2, 0, 0.25)
            spread_y = np.clip(table[:, 2].sum(axis=0) - mean_y**2, 0, 0.25)
            root = np.sqrt(spread_x * spread_y)
            unknown = np.full_like(root, np.nan)
            correlation = np.divide(covariance, root, out=unknown, where=root > 0)
            return correlation, count, count * root
        factor = sample_factor(count) if self.sample else 1.0
        return covariance * self._unit * factor, count, count

    def _nearest(self, answers: Floats, count: Floats) -> Floats:
        """Return the nearest answers that this number of rows can have."""
        if self.correlation:
            return np.clip(answers, -1.0, 1.0)
        factor = sample_factor(count) if self.sample else 1.0
        most = factor * self._unit / 4
        return np.clip(answers, -most, most)

    @property
    def _unit(self) -> float:
        return float(self.steps[0] * self.steps[1]) * self.widths[0] * self.widths[1]

    def margins(self, components: Components, mechanism: Noise) -> Floats:
        """Return margins by redrawing the declared noise around the noisy sums (S11)."""
        parts = floats(components)
        center, count, _ = self._joint(parts)
        within = np.where(count > 2, reach(self._joint, parts, mechanism), np.inf)
        most = 1.0 if self.correlation else self._unit / (2 if self.sample else 4)
        answer = np.nan_to_num(self._nearest(center, count))
        low, high = possible(answer, np.nan_to_num(within, nan=np.inf), least=-most, most=most)
        return np.maximum(answer - low, high - answer)

    def margin(self, mechanism: Noise, *, assuming: int | None) -> float | None:
        if assuming is None:
            return None
        size = (self.degree + 1) ** 2
        even = float(assuming) * float((self.widths[0] * self.widths[1]) ** self.degree) / size
        parts = tuple(np.array([even]) for _ in range(size))
        return float(self.margins(parts, mechanism)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariance(Pair):
    """A request for a covariance or a correlation."""

    sample: bool
    correlation: bool

    @property
    def degrees(self) -> tuple[int, int]:
        return (2, 2) if self.correlation else (1, 1)

    def estimate(self, corner: Corner) -> NoisyColumn:
        return Together(
            degree=self.degrees[0],
            widths=corner.widths,
            steps=corner.steps,
            sample=self.sample,
            correlation=self.correlation,
        )


def _pair(*, sample: bool, correlation: bool) -> Reader:
    def apply(
        node: exp.Expression, scope: Scope, label: str, condition: Expression | None
    ) -> AggregateRequest:
        x = as_number(translate(node.this, scope), node)
        y = as_number(translate(node.expression, scope), node)
        return Covariance(
            label=label,
            value=x,
            other=y,
            condition=condition,
            sample=sample,
            correlation=correlation,
        )

    return apply


MEMBER = Member(
    tags=("covariance", "correlation"),
    names=("COVAR_POP", "COVAR_SAMP", "CORR"),
    readers={
        exp.CovarPop: _pair(sample=False, correlation=False),
        exp.CovarSamp: _pair(sample=True, correlation=False),
        exp.Corr: _pair(sample=False, correlation=True),
    },
    estimates={Together: ("together", ("degree", "widths", "steps", "sample", "correlation"))},
    line=(
        "`COVAR_POP`, `COVAR_SAMP`, `CORR`",
        "products of such parts of two columns (each on at most 32,768 steps)",
        "m · the product of the widths",
    ),
    tolerance=1e-2,
)
