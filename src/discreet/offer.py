"""What a plan would cost and how wrong it would be: mechanisms chosen, nothing read, nothing charged.

`sum` budgets get discrete Laplace noise, `zcdp` budgets discrete Gaussian noise (S6). The amount is split evenly among
the measurements; statistics that share rows have already been put together into one measurement by `sql.aggregates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting import Accountant
from discreet.accounting.calibrate import cheapest, gaussian_sigma, laplace_scale
from discreet.budget import Budget, Charge
from discreet.errors import UsageError
from discreet.mechanisms import Mechanism
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.sql.plan import Block, Measurement, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plan with its noise: one mechanism per measurement, in the plan's order."""

    plan: Plan
    mechanisms: tuple[Mechanism, ...]
    cost: Charge

    def blocks(self) -> Iterator[tuple[Block, tuple[Mechanism, ...]]]:
        """Each block with the mechanisms of its measurements."""
        remaining = iter(self.mechanisms)
        for block in self.plan.blocks:
            yield block, tuple(next(remaining) for _ in block.measurements)

    def statistics(self) -> list[dict[str, Any]]:
        """What will be noised, with which sensitivities and which noise, as JSON holds it."""
        return [
            {
                "name": measurement.name,
                "l0": measurement.sensitivity.l0,
                "l1": measurement.sensitivity.l1,
                "l2": math.sqrt(measurement.sensitivity.l2_squared),
                "linf": measurement.sensitivity.linf,
                "mechanism": type(mechanism).__name__,
                "scale": float(mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma),  # type: ignore[attr-defined]
            }
            for measurement, mechanism in zip(self.plan.measurements, self.mechanisms, strict=True)
        ]

    def margin(self, column: int, *, assuming: int | None) -> float | None:
        """The half-width of an output column, where it can be told beforehand."""
        place = self.plan.columns[column].estimate
        if place is None:
            return None
        block, index = place
        estimate = self.plan.blocks[block].estimates[index]
        first = sum(len(each.measurements) for each in self.plan.blocks[:block])
        return estimate.margin(self.mechanisms[first + estimate.measurement], assuming=assuming)


def offer(plan: Plan, accountant: Accountant, *, amount: Fraction) -> Offer:
    """The noise that this amount buys for a plan."""
    measurements = plan.measurements
    if not measurements:
        return Offer(plan=plan, mechanisms=(), cost=Charge(amount=Fraction(0)))
    share = amount / len(measurements)
    mechanisms = tuple(_mechanism(measurement, accountant, share) for measurement in measurements)
    return Offer(plan=plan, mechanisms=mechanisms, cost=accountant.price(each.loss() for each in mechanisms))


def _mechanism(measurement: Measurement, accountant: Accountant, share: Fraction) -> Mechanism:
    sensitivity = measurement.sensitivity
    if accountant.name == "sum":
        l1 = Fraction(sensitivity.l1)
        return DiscreteLaplace(scale=laplace_scale(l1=l1, epsilon=share), l1=l1)
    l2_squared = Fraction(sensitivity.l2_squared)
    return DiscreteGaussian(sigma=gaussian_sigma(l2_squared=l2_squared, rho=share), l2_squared=l2_squared)


def amount_for_margin(
    plan: Plan, accountant: Accountant, *, margin: Fraction, assuming: int | None, most: Fraction
) -> Fraction:
    """The cheapest amount at which every aggregate's margin is at most `margin` (S11)."""
    columns = [index for index, column in enumerate(plan.columns) if column.estimate is not None]
    if not columns:
        raise UsageError(
            "A margin can be asked for counts, sums and means that are shown as they are; give epsilon instead."
        )

    def widest(amount: Fraction) -> float:
        priced = offer(plan, accountant, amount=amount)
        margins = [priced.margin(column, assuming=assuming) for column in columns]
        known = [each for each in margins if each is not None]
        if len(known) < len(margins):
            raise UsageError(
                "The margin of a mean, variance or quantile depends on how many rows there are: give assuming=N."
            )
        return max(known)

    return cheapest(_memory(widest), wanted=margin, most=most)


def _memory(function: Callable[[Fraction], float]) -> Callable[[Fraction], float]:
    known: dict[Fraction, float] = {}

    def remembered(amount: Fraction) -> float:
        if amount not in known:
            known[amount] = function(amount)
        return known[amount]

    return remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """What a question would cost and how wrong the answer would be, told without touching data.

    `margins` has an entry for every aggregate that is shown as it is: a half-width at 95 %, or, where it depends on
    how many rows there are, half-widths for some numbers of rows.
    """

    statistics: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    margins: dict[str, float | dict[str, list[float]]]
    cost: Budget
    left: Budget

    def as_json(self) -> dict[str, Any]:
        return {
            "statistics": list(self.statistics),
            "columns": list(self.columns),
            "margins": self.margins,
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
        }

    def __str__(self) -> str:
        from discreet.show import quote_text

        return quote_text(self)


AT_ROWS = (100, 1_000, 10_000)


def quoted(offered: Offer, accountant: Accountant, *, left: Charge, assuming: int | None) -> Quote:
    """An offer as it is shown to an analyst."""
    margins: dict[str, float | dict[str, list[float]]] = {}
    for index, column in enumerate(offered.plan.columns):
        if column.estimate is None:
            continue
        known = offered.margin(index, assuming=assuming)
        if known is None:
            told = [offered.margin(index, assuming=rows) for rows in AT_ROWS]
            margins[column.name] = {"at_rows": list(AT_ROWS), "margin": [each for each in told if each is not None]}
        else:
            margins[column.name] = known
    return Quote(
        statistics=tuple(offered.statistics()),
        columns=tuple(column.name for column in offered.plan.columns),
        margins=margins,
        cost=accountant.budget(offered.cost),
        left=accountant.left(left),
    )
