"""Aggregates that are chosen and not added up: quantiles, minimum, maximum, mode.

A pick chooses one cell of a public grid per group. Grids of up to `FAN` cells are looked at in one pass; a finer one
in several: each pass chooses a cell of a coarser grid with a small part of the amount, and the next looks only at the
cells around it, so that the number of cells read is fixed and nearly all of the amount goes into the last choice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from discreet.budget import AccountantName, Neighbors
from discreet.mechanisms import Mechanism
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip, root_below
from discreet.mechanisms.quantile import Quantile, Quantiles, slices_for
from discreet.sql.estimates import as_written, number_type
from discreet.sql.values import Coded, Day, Flag, Moment, Number

FAN = 1 << 17  # cells of one pass
MOST_CELLS = 1 << 23  # cells of one pass over all groups together: 64 MB of counts
COARSE_SHARE = Fraction(1, 20)  # of the amount, for each pass but the last

PickDomain = Number | Coded | Flag | Day | Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One choice per group: `position` is the SQL of a row's cell on the finest grid, counted from 0."""

    name: str
    kind: Literal["quantile", "mode"]
    position: str
    condition: str | None
    domain: PickDomain
    quantiles: tuple[Fraction, ...]  # of a mode: none
    listed: bool  # asked for as a list, so given as one
    rows: int
    groups: int
    neighbors: Neighbors

    @property
    def max_rows(self) -> int:
        """Rows of one person that the choice must hide.

        The loss of a choice is linear in how far its scores move, so over disjoint groups one person's losses add up
        to that of all rows in one. Replacing a person moves two groups: twice the rows cover both.
        """
        return self.rows if self.neighbors == "add_remove" or self.groups == 1 else 2 * self.rows

    @property
    def fan(self) -> int:
        """Cells of one pass, fewer where there are many groups."""
        return max(16, min(FAN, MOST_CELLS // self.groups // 4 * 4))

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of a cell in each pass, in cells of the finest grid; the last is 1."""
        widths = [1]
        while -(-self.domain.size // widths[0]) > self.fan:
            widths.insert(0, widths[0] * (self.fan // 2))
        return tuple(widths)

    def cells(self, index: int) -> int:
        """How many cells pass `index` chooses among; later passes have one more at each end, for all the rest."""
        return -(-self.domain.size // self.widths[0]) if index == 0 else self.fan + 2

    def mechanisms(self, accountant: AccountantName, amount: Fraction) -> tuple[Mechanism, ...]:
        """The choices, pass by pass. Several quantiles on a fine grid are chosen one by one."""
        passes = len(self.widths)
        if self.kind == "mode":
            return (self._mode(accountant, amount),)
        if passes == 1 and len(self.quantiles) > 1 and self.quantiles[0] > 0 and self.quantiles[-1] < 1:
            epsilon = amount if accountant == "sum" else root_below(8 * amount / self._depths)
            several = Quantiles(
                epsilon=epsilon if accountant == "sum" else epsilon * self._depths,
                quantiles=self.quantiles,
                cells=self.cells(0),
                slices=max(1, min(slices_for(self.cells(0)), MOST_CELLS // self.groups // self.cells(0))),
                max_rows=self.max_rows,
                neighbors=self.neighbors,
                choice=_choice(accountant),
            )
            return (several,)
        chosen = []
        for quantile in self.quantiles:
            part = amount / len(self.quantiles)
            for index in range(passes):
                share = part * COARSE_SHARE if index < passes - 1 else part * (1 - (passes - 1) * COARSE_SHARE)
                chosen.append(self._quantile(accountant, share, quantile, self.cells(index)))
        return tuple(chosen)

    @property
    def _depths(self) -> int:
        return len(self.quantiles).bit_length()

    def _quantile(self, accountant: AccountantName, amount: Fraction, q: Fraction, cells: int) -> Quantile:
        plain = Quantile(
            epsilon=amount if accountant == "sum" else root_below(8 * amount),
            q=q,
            cells=cells,
            max_rows=self.max_rows,
            neighbors=self.neighbors,
            choice=_choice(accountant),
        )
        if 0 < q < 1:
            return plain
        # The extremes aim a little inside the data: all cells beyond the largest value have one score.
        inside = math.ceil(plain.margin(Fraction(1, 2)) / 2) + 1
        return Quantile(
            epsilon=plain.epsilon,
            q=q,
            cells=cells,
            max_rows=plain.max_rows,
            neighbors=plain.neighbors,
            choice=plain.choice,
            shift=inside if q == 0 else -inside,
        )

    def _mode(self, accountant: AccountantName, amount: Fraction) -> PermuteAndFlip | ExponentialMechanism:
        monotone = self.neighbors == "add_remove"
        if accountant == "sum":
            return PermuteAndFlip(epsilon=amount, linf=Fraction(self.max_rows), monotone=monotone)
        return ExponentialMechanism(epsilon=root_below(8 * amount), linf=Fraction(self.max_rows), monotone=monotone)

    def decode(self, positions: Any) -> pa.Array:
        """The values at positions of the finest grid."""
        domain, places = self.domain, [min(max(int(each), 0), self.domain.size - 1) for each in positions]
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                return pa.array([as_written(domain.at(domain.lo + place), kind) for place in places], kind)
            case Coded(values=values):
                return pa.array([values[place] for place in places])
            case Flag():
                return pa.array([bool(place) for place in places])
            case _:
                from discreet.sql.plan import Key

                if isinstance(domain, Day):
                    return pa.array([domain.at(place) for place in places], pa.date32())
                return Key(domain=domain, nullable=False).labels().take(pa.array(places))

    def key_column(self, index: int, starts: list[int] | None, cell_of_group: str) -> str:
        """The SQL of a row's cell in pass `index`; `starts` are where each group's window begins."""
        width = self.widths[index]
        # Privacy: a grid of more than 2^63 cells must not make an error of the rows that lie beyond them.
        position = f"CAST({self.position} AS {'BIGINT' if self.domain.size < 2**62 else 'HUGEINT'})"
        if starts is None:
            return position if width == 1 else f"({position} // {width})"
        begin = str(starts[0]) if len(starts) == 1 else f"list_extract({starts}, CAST({cell_of_group} AS BIGINT) + 1)"
        offset = f"({position} - ({begin}))"
        inside = f"least({offset} // {width} + 1, {self.fan + 1})"  # which of a NULL would be the last cell
        return f"(CASE WHEN {offset} < 0 THEN 0 WHEN {offset} >= 0 THEN {inside} END)"

    def windows(self, index: int, chosen: Any) -> list[int]:
        """Where each group's window of pass `index` begins: half a cell below the cell just chosen."""
        width = self.widths[index - 1]
        return [int(place) * width - width // 2 for place in chosen]

    def absolute(self, index: int, chosen: Any, starts: list[int] | None) -> Any:
        """Cells chosen in pass `index`, as cells of that width counted from 0."""
        if starts is None:
            return [int(place) for place in chosen]
        width = self.widths[index]
        return [max(start // width + int(place) - 1, 0) for start, place in zip(starts, chosen, strict=True)]


def _choice(accountant: AccountantName) -> Literal["permute_and_flip", "exponential"]:
    return "permute_and_flip" if accountant == "sum" else "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A column of the noisy table that was picked."""

    pick: int
