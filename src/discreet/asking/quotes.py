"""Quotes: the price of a question and the margins of its answer, as an analyst is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting import Accountant
from discreet.asking.offer import Offer
from discreet.budget import Budget, Charge

AT_ROWS = (100, 1_000, 10_000)  # numbers of rows for which a quote tells margins that depend on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price of a question and the margins of its answer, found without touching data.

    `margins` has an entry for every aggregate, and for sums and multiples of them: a half-width at
    95 %, or, where it depends on how many rows there are, half-widths for some numbers of rows.
    That of a quantile is in ranks. Of groupings whose half-widths differ it has the least and the
    most.
    """

    statistics: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    margins: dict[str, float | dict[str, Any]]
    cost: Budget
    left: Budget
    max_rows: dict[str, int]  # of the private tables that are read
    # columns whose noise is on running totals: their margins, and those of noise on each number
    instead: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # people who must share a value of a key that is not public, about, to be shown
    shared_by: tuple[int, ...] = ()
    savings: tuple[str, ...] = ()  # what the asker could write otherwise, and what it would save

    def as_json(self) -> dict[str, Any]:
        return {
            "statistics": list(self.statistics),
            "columns": list(self.columns),
            "margins": self.margins,
            "max_rows": self.max_rows,
            **({"instead": self.instead} if self.instead else {}),
            **({"shared_by": list(self.shared_by)} if self.shared_by else {}),
            **({"savings": list(self.savings)} if self.savings else {}),
            "cost": self.cost.as_json(),
            "left": self.left.as_json(),
        }

    def __str__(self) -> str:
        from discreet.display.show import quote_text

        return quote_text(self)


def quote_of(
    offered: Offer,
    accountant: Accountant,
    *,
    left: Charge,
    assuming: int | None,
    savings: tuple[str, ...] = (),
) -> Quote:
    """Return the quote of an offer."""
    beside = offered.beside_ranks()
    margins: dict[str, float | dict[str, Any]] = {
        name: {"ranks": ranks} | beside.get(name, {}) for name, ranks in offered.ranks().items()
    }
    for index, column in enumerate(offered.plan.columns):
        if not column.tells_margin:
            continue
        known = offered.margin(index, assuming=assuming)
        if known is None:
            told = [offered.margin(index, assuming=rows) for rows in AT_ROWS]
            margins[column.name] = {
                "at_rows": list(AT_ROWS),
                "margin": [each for each in told if each is not None],
            }
        else:
            each = offered.margins(index, assuming=assuming) or (known,)
            margins[column.name] = (
                known if min(each) == known else {"least": min(each), "most": known}
            )
    return Quote(
        statistics=tuple(offered.statistics()),
        columns=tuple(column.name for column in offered.plan.columns),
        margins=margins,
        cost=accountant.budget(offered.cost),
        left=accountant.left(left),
        max_rows=dict(offered.plan.max_rows),
        instead=offered.instead(),
        shared_by=offered.shared_by(),
        savings=savings,
    )
