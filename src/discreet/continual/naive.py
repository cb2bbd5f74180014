"""Compute the cost of the same numbers asked one by one: a new question for each sum of every
period, with the same margins as ours.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.budget import Charge
from discreet.mechanisms.currency import currency

if TYPE_CHECKING:
    from discreet.continual.series import Series


def naive_costs(series: Series, periods: int, points: int = 60) -> list[tuple[int, float]]:
    """Return (periods so far, ε) up to a last period. Data-free: it follows from the schedule."""
    schedule, person = series.schedule, series.schedule.per_person
    design = series.design.covering(periods)
    paid = currency(series.accountant.name)
    amounts = [0.0] * periods
    for publish in schedule.publish:
        deviations = design.strategy.deviations(publish)
        length = {"daily": 1, "cumulative": periods}.get(str(publish), publish)
        assert isinstance(length, int)
        for mechanism, own in zip(design.mechanisms, series.asked.own, strict=True):
            for period in range(length - 1 if isinstance(publish, int) else 0, periods):
                reach = person.most(min(period + 1, length))
                spread = float(mechanism.spread) * float(deviations[period])
                amounts[period] += paid.amount(length=reach * paid.length(own), spread=spread)
    found = []
    total = 0.0
    step = max(1, periods // points)
    for period, amount in enumerate(amounts):
        total += amount
        if (period + 1) % step == 0 or period == periods - 1:
            cost = series.accountant.budget(Charge(amount=Fraction(total).limit_denominator(10**9)))
            found.append((period + 1, float(cost.epsilon)))
    return found
