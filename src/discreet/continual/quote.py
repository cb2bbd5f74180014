"""Quote a release: its cost and its margins, before anything is charged. A quote reads no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from discreet.budget import Budget, with_margin

LONG = 365  # a quote shows so many periods if the release has no known end


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The 95 % margins of one statistic and one kind of sum, period by period."""

    publish: str
    statistic: str
    margins: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseQuote:
    """The price of a whole release, which is charged once, and its margins."""

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
        for line in self.lines:
            first = _rounded(line.margins[0])
            last = _rounded(line.margins[-1])
            most = _rounded(max(line.margins))
            kind = f"over {line.publish} periods" if line.publish.isdigit() else line.publish
            if first == last == most:
                margins = f"± {most} in each"
            else:
                margins = f"± {first} at first, ± {last} at last, ± {most} at most"
            told.append(f"{line.statistic}, {kind}: {margins}")
        told.append("± is a 95 % margin of the noise. Nothing is charged by this quote.")
        return "\n".join(told)


def _rounded(margin: float) -> str:
    """Return a margin as text, with the digits that `with_margin` gives it."""
    return with_margin(0, margin).partition(" ± ")[2]
