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
from discreet.sql.picks import Pick, Picked
from discreet.sql.plan import Block, Measurement, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A plan with its noise: one mechanism per measurement, in the plan's order."""

    plan: Plan
    mechanisms: tuple[Mechanism, ...]
    passes: tuple[int, ...]  # how many mechanisms each pick has
    cost: Charge

    def blocks(self) -> Iterator[tuple[Block, tuple[Mechanism, ...], tuple[tuple[Mechanism, ...], ...]]]:
        """Each block with the mechanisms of its measurements, and those of each of its picks, pass by pass."""
        remaining = iter(self.mechanisms)
        passes = iter(self.passes)
        for block in self.plan.blocks:
            measured = tuple(next(remaining) for _ in block.measurements)
            yield block, measured, tuple(tuple(next(remaining) for _ in range(next(passes))) for _ in block.picks)

    def statistics(self) -> list[dict[str, Any]]:
        """What will be noised, with which sensitivities and which noise, as JSON holds it."""
        found = []
        for block, measured, picked in self.blocks():
            found += [_statistic(each, noise) for each, noise in zip(block.measurements, measured, strict=True)]
            found += [
                _choice(pick, mechanism)
                for pick, mechanisms in zip(block.picks, picked, strict=True)
                for mechanism in mechanisms
            ]
        return found

    def margin(self, column: int, *, assuming: int | None) -> float | None:
        """The half-width of an output column, where it can be told beforehand."""
        place = self.plan.columns[column].estimate
        if place is None:
            return None
        for index, (block, measured, _) in enumerate(self.blocks()):
            estimate = block.estimates[place[1]]
            if index == place[0] and not isinstance(estimate, Picked):
                return estimate.margin(measured[estimate.measurement], assuming=assuming)
        return None


def _statistic(measurement: Measurement, mechanism: Any) -> dict[str, Any]:
    sensitivity = measurement.sensitivity
    return {
        "name": measurement.name,
        "l0": sensitivity.l0,
        "l1": sensitivity.l1,
        "l2": math.sqrt(sensitivity.l2_squared),
        "linf": sensitivity.linf,
        "mechanism": type(mechanism).__name__,
        "scale": float(mechanism.scale if isinstance(mechanism, DiscreteLaplace) else mechanism.sigma),
    }


def _choice(pick: Pick, mechanism: Any) -> dict[str, Any]:
    """A choice by rank or by count: one person moves the scores of all groups together by at most `max_rows`."""
    rows, selection = pick.max_rows, getattr(mechanism, "mechanism", mechanism)
    scale = float(selection.scale) if hasattr(selection, "scale") else None
    return {
        "name": pick.name,
        "l0": min(rows, pick.groups),
        "l1": rows,
        "l2": float(rows),
        "linf": rows,
        "mechanism": type(mechanism).__name__,
        "scale": scale,
    }


def offer(plan: Plan, accountant: Accountant, *, amount: Fraction) -> Offer:
    """The noise that this amount buys for a plan."""
    picks = [pick for block in plan.blocks for pick in block.picks]
    count = len(plan.measurements) + len(picks)
    if not count:
        return Offer(plan=plan, mechanisms=(), passes=(), cost=Charge(amount=Fraction(0)))
    share, mechanisms, passes = amount / count, list[Mechanism](), list[int]()
    for block in plan.blocks:
        mechanisms += [_mechanism(measurement, accountant, share) for measurement in block.measurements]
        for pick in block.picks:
            chosen = pick.mechanisms(accountant.name, share)
            passes.append(len(chosen))
            mechanisms += chosen
    cost = accountant.price(each.loss() for each in mechanisms)
    return Offer(plan=plan, mechanisms=tuple(mechanisms), passes=tuple(passes), cost=cost)


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
    columns = [index for index, column in enumerate(plan.columns) if column.estimate is not None and column.measured]
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
        if column.estimate is None or not column.measured:
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
