"""Quotes: the price of a question and the margins of its answer, told before anything is paid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting import Accountant
from discreet.asking.offer import Offer
from discreet.budget import Budget, Charge

AT_ROWS = (100, 1_000, 10_000)  # a margin that depends on the number of rows is told for these


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The price of a question and the margins of its answer, found without touching data.

    `margins` has an entry for every aggregate, and for sums and multiples of aggregates: its
    half-width at 95 %. If that depends on the number of rows, the entry has half-widths for several
    numbers of rows. If groupings have different half-widths, it has the least and the most. The
    margin of a quantile is in ranks.
    """

    statistics: tuple[dict[str, Any], ...]
    columns: tuple[str, ...]
    margins: dict[str, float | dict[str, Any]]
    cost: Budget
    left: Budget
    max_rows: dict[str, int]  # `max_rows` of each private table that the question reads
    # for columns with noise on running totals: the margin, and the margin of noise on each number
    instead: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # about how many people must share a value of an unknown key for the answer to show it
    shared_by: tuple[int, ...] = ()
    savings: tuple[str, ...] = ()  # sentences: how to ask for less, and what that would save
    unlisted: tuple[str, ...] = ()  # sentences: texts that no listed value of their column is

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "statistics": list(self.statistics),
            "columns": list(self.columns),
            "margins": self.margins,
            "max_rows": self.max_rows,
        }
        if self.instead:
            told["instead"] = self.instead
        if self.shared_by:
            told["shared_by"] = list(self.shared_by)
        if self.savings:
            told["savings"] = list(self.savings)
        if self.unlisted:
            told["unlisted"] = list(self.unlisted)
        told["cost"] = self.cost.as_json()
        told["left"] = self.left.as_json()
        return told

    def __str__(self) -> str:
        from discreet.display.show import quote_text

        return quote_text(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Show the quote in a notebook as the command line prints it."""
        printer.text(str(self))


def quote_of(
    offered: Offer,
    accountant: Accountant,
    *,
    left: Charge,
    assuming: int | None,
    savings: tuple[str, ...] = (),
    unlisted: tuple[str, ...] = (),
) -> Quote:
    """Return the quote of an offer."""
    beside = offered.beside_ranks()
    margins: dict[str, float | dict[str, Any]] = {}
    for name, ranks in offered.ranks().items():
        margins[name] = {"ranks": ranks} | beside.get(name, {})
    for index, column in enumerate(offered.plan.columns):
        if column.tells_margin:
            margins[column.name] = _margin(offered, index, assuming)
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
        unlisted=unlisted,
    )


def _margin(offered: Offer, index: int, assuming: int | None) -> float | dict[str, Any]:
    """Return the entry of a column in `Quote.margins`."""
    known = offered.margin(index, assuming=assuming)
    if known is None:
        told = [offered.margin(index, assuming=rows) for rows in AT_ROWS]
        margins = [margin for margin in told if margin is not None]
        return {"at_rows": list(AT_ROWS), "margin": margins}
    least = min(offered.margins(index, assuming=assuming) or (known,))
    return known if least == known else {"least": least, "most": known}
