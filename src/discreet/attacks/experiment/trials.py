"""An attack with a control: tried on people in the data and on people who are not, until the
interval is narrow.

The control tells what the release gives away about everybody, in it or not; only what goes beyond
is risk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.experiment.finding import Finding, Rate, Risk
from discreet.errors import UsageError

Attempt = Callable[[NDArray[np.int64]], NDArray[np.bool_]]
"""Tries the attack on some rows (by position); says on which it succeeded. It may give up on some.
"""

FIRST = 500
WIDTH = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskFinding:
    """`finding` is the attack on people in the data; `risk` its excess over the control."""

    finding: Finding
    control: Rate | None
    risk: Risk | None

    def as_json(self) -> dict[str, object]:
        control = (
            None if self.control is None else {"success": self.control.value, "n": self.control.n}
        )
        risk = (
            None
            if self.risk is None
            else {"value": self.risk.value, "interval": list(self.risk.interval)}
        )
        return {**self.finding.as_json(), "control": control, "risk": risk}


def compare(attack: str, *, on: Rate, control: Rate | None, chance: float) -> RiskFinding:
    return RiskFinding(
        finding=on.finding(attack, chance=chance),
        control=control,
        risk=None if control is None else Risk.of(on, control),
    )


def until_narrow(
    attack: str,
    attempt: Attempt,
    people: int,
    control: tuple[Attempt, int] | None,
    *,
    chance: float,
    width: float = WIDTH,
    trials: int | None = None,
) -> RiskFinding:
    """Try random people, doubling their number, until the risk's interval is at most `width` wide
    or all were tried.
    """
    if people == 0:
        raise UsageError("There is nobody to attack: the original table is empty.")
    dice = Dice()
    order = dice.order(people)
    others = dice.order(control[1]) if control else np.zeros(0, dtype=np.int64)
    inside = Rate(hits=0, n=0)
    outside = Rate(hits=0, n=0)
    start = 0
    end = FIRST if trials is None else trials
    while True:
        inside = _more(inside, attempt, order[start:end])
        outside = _more(outside, control[0], others[start:end]) if control else outside
        found = compare(attack, on=inside, control=outside if control else None, chance=chance)
        low, high = found.risk.interval if found.risk else found.finding.interval
        if trials is not None or high - low <= width or end >= max(people, len(others)):
            return found
        start = end
        end = 2 * end


def _more(rate: Rate, attempt: Attempt, rows: NDArray[np.int64]) -> Rate:
    if not len(rows):
        return rate
    results = attempt(rows)
    return Rate(hits=rate.hits + int(results.sum()), n=rate.n + len(results))
