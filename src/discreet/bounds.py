"""Help with ranges: two noisy quantiles, widened to numbers that a person would have written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from discreet.budget import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A suggested range, and what it cost to find."""

    low: int | float | Decimal | date | datetime
    high: int | float | Decimal | date | datetime
    cost: Budget

    def __str__(self) -> str:
        return (
            f"[{self.low}, {self.high}] holds about 98 % of the values; the rest would be clamped to it. "
            f"This cost {self.cost}."
        )


def suggested(low: Any, high: Any, *, cost: Budget) -> Bounds:
    """The range rounded outward: numbers to one digit of its width, dates as they are."""
    if isinstance(low, date):
        return Bounds(low=low, high=high, cost=cost)
    width = float(high) - float(low)
    if width <= 0:
        return Bounds(low=low, high=high, cost=cost)
    unit = 10.0 ** math.floor(math.log10(width))
    unit = unit / 2 if width / unit < 5 else unit
    ends = (math.floor(float(low) / unit) * unit, math.ceil(float(high) / unit) * unit)
    whole = all(end == int(end) for end in ends)
    return Bounds(low=int(ends[0]) if whole else ends[0], high=int(ends[1]) if whole else ends[1], cost=cost)
