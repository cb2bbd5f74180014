"""Suggest a range for a column: two noisy quantiles, rounded outward to short numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.budget import Budget

BEYOND = Fraction(1, 100)  # the part of the rows that is wanted on either side of the range


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """A suggested range, with its guarantee and its cost.

    With 95 % confidence, at most 1 % of the rows that have a value, and `ranks` more rows, are
    below `low`, and at most as many are above `high`. Both hold at once, and for all data.
    """

    low: int | float | Decimal | date | datetime
    high: int | float | Decimal | date | datetime
    ranks: int
    cost: Budget

    def __str__(self) -> str:
        beyond = f"{float(100 * BEYOND):g} % of the rows"
        few = int(self.ranks / BEYOND)
        return (
            f"[{self.low}, {self.high}]: with 95 % confidence at most {beyond} and {self.ranks:,} more lie below it, "
            f"and at most as many above; they would be clamped to it. With fewer than {few:,} rows the "
            f"{self.ranks:,} are more than the {beyond}; a larger epsilon makes them fewer. This cost {self.cost}."
        )


def round_outward(low: Any, high: Any, *, ranks: int, cost: Budget) -> Bounds:
    """Round the range outward: numbers to one digit of its width, dates as they are."""
    if isinstance(low, date):
        return Bounds(low=low, high=high, ranks=ranks, cost=cost)
    least = Fraction(str(low))
    most = Fraction(str(high))
    if most <= least:
        return Bounds(low=low, high=high, ranks=ranks, cost=cost)
    unit = Fraction(10) ** math.floor(math.log10(most - least))
    unit = unit / 2 if most - least < 5 * unit else unit
    ends = math.floor(least / unit) * unit, math.ceil(most / unit) * unit
    whole = all(end.denominator == 1 for end in ends)
    start, stop = (int(end) if whole else float(end) for end in ends)
    return Bounds(low=start, high=stop, ranks=ranks, cost=cost)
