"""Quote a release: its cost and its margins, before anything is charged. Free; touches no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.budget import Budget, with_margin

LONG = 365  # periods that are looked at where nobody knows how many there will be


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The margins of one statistic in one kind of publication, period by period: half-widths at 95
    %.
    """

    publish: str
    statistic: str
    margins: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseQuote:
    """The whole horizon: its price, which is charged once, and what it buys."""

    release: str
    strategy: str
    periods: int | None
    cost: Budget
    left: Budget
    lines: tuple[Line, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "release": self.release,
            "strategy": self.strategy,
            "periods": self.periods,
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
            "margins": [
                {
                    "publish": each.publish,
                    "statistic": each.statistic,
                    "margins": list(each.margins),
                }
                for each in self.lines
            ],
        }

    def __str__(self) -> str:
        horizon = (
            f"{self.periods} periods"
            if self.periods
            else f"no known end; here the first {LONG} periods"
        )
        told = [
            f"cost {self.cost}, once, for {horizon}; left {self.left}",
            f"strategy: {self.strategy}",
        ]
        for each in self.lines:
            first, last = (
                with_margin(0, margin).partition(" ± ")[2]
                for margin in (each.margins[0], each.margins[-1])
            )
            most = with_margin(0, max(each.margins)).partition(" ± ")[2]
            kind = f"over {each.publish} periods" if each.publish.isdigit() else each.publish
            same = first == last == most
            margins = (
                f"± {most} in each"
                if same
                else f"± {first} at first, ± {last} at last, ± {most} at most"
            )
            told.append(f"{each.statistic}, {kind}: {margins}")
        return "\n".join(
            [*told, "± is a 95 % margin of the noise. Nothing is charged by this quote."]
        )
