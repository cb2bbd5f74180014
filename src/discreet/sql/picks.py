"""Aggregates that are chosen and not added up: quantiles, minimum, maximum, mode.

A pick chooses one cell of a public grid per group, or one for each of several quantiles. Grids of up to `FAN` cells are
looked at in one pass. A finer one is in several, each of a fixed number of cells: a coarse grid; then that grid and, in
a window around what was chosen, cells that are finer; and so on, until they are the finest. Every pass chooses among
cells of the whole range: where a window has missed, the last choice is a little coarser, not wrong. So the passes
before the last need only a small part of the amount.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet.budget import AccountantName, Neighbors
from discreet.mechanisms import Mechanism
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip, root_below, selection
from discreet.mechanisms.quantile import Quantile, Quantiles, slices_for
from discreet.sql.estimates import as_written, number_type
from discreet.sql.values import Coded, Day, Flag, Moment, Number

FAN = 1 << 17  # cells of one pass
MOST_CELLS = 1 << 23  # cells of one pass over all groups together: 64 MB of counts
COARSE_SHARE = Fraction(1, 20)  # of the amount, for each pass but the last; half of it at most for all of them
UNKNOWN_FAN = 1 << 12  # cells where keys are not public: one pass, so a finer grid is made coarser
SHORTEST = 64  # cells of a window; where there is no room for so many, quantiles are chosen one by one

PickDomain = Number | Coded | Flag | Day | Moment
Places = npt.NDArray[Any]  # of the finest grid, a row for each group; Python's integers where 64 bits may not do
Laid = list[tuple[int, Places]]  # windows: their width, and where they begin in each group


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where finer cells of some width begin, in each group; counted in cells of the finest grid."""

    width: int
    starts: tuple[int, ...]


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
    unknown: bool = False  # groups of keys that are not public: how many is known only once they are found

    @property
    def relation(self) -> Neighbors:
        """What the noise of a quantile is made for, with `max_rows`.

        Privacy: over several groups, replacing a person takes a_i of at most m rows from group i and puts b_i of at
        most m into it. There the score moves by at most (a_i + b_i) max(q, 1 - q), as if so many rows had been added;
        the loss of a choice is linear in that, so together it is that of 2m rows added or removed. (Within one group m
        alone would do, which is no more than 2m max(q, 1 - q).)
        """
        return self.neighbors if self.groups == 1 else "add_remove"

    @property
    def max_rows(self) -> int:
        """Rows of one person that a quantile's noise must hide."""
        return self.rows if self.neighbors == "add_remove" or self.groups == 1 else 2 * self.rows

    @property
    def fan(self) -> int:
        """Cells of one pass, fewer where there are many groups."""
        if self.unknown:
            return UNKNOWN_FAN
        return max(16, min(FAN, MOST_CELLS // self.groups // 4 * 4))

    @property
    def parts(self) -> tuple[Pick, ...]:
        """Choices made one after another: quantiles between 0 and 1 together, where there is room for their windows."""
        room = len(self.widths) == 1 or self.fan >= 2 * SHORTEST * len(self.quantiles)
        if room and all(0 < q < 1 for q in self.quantiles):
            return (self,)
        return tuple(replace(self, quantiles=(q,)) for q in self.quantiles)

    @property
    def reach(self) -> int:
        """Cells of a window. Each quantile has one in every pass after the first; they share half of a pass's cells."""
        return max(1, self.fan // 2 // max(1, len(self.quantiles)))

    @property
    def widths(self) -> tuple[int, ...]:
        """The width of the finest cells of each pass, in cells of the finest grid; the last is 1, but of unknown keys.

        A window covers several of the cells that the pass before it chose among: 8 or more, but where there are few.
        """
        if self.domain.size <= self.fan or self.unknown:
            return (-(-self.domain.size // self.fan),)
        return _widths(self.domain.size, self.fan, self.reach)

    def cells(self, index: int) -> int:
        """How many cells pass `index` chooses among: coarse ones, those of its windows and of the windows before."""
        return -(-self.domain.size // self.widths[0]) + min(index, 2) * len(self.quantiles) * (self.reach + 1)

    def mechanisms(self, accountant: AccountantName, amount: Fraction) -> tuple[Mechanism, ...]:
        """The choices, part by part and pass by pass."""
        if self.kind == "mode":
            return (self._mode(accountant, amount),)
        found: list[Mechanism] = []
        for part in self.parts:
            share, coarse = amount / len(self.parts), len(part.widths) - 1
            small = min(COARSE_SHARE, Fraction(1, 2 * max(1, coarse)))
            for index in range(coarse + 1):
                each = share * (small if index < coarse else 1 - coarse * small)
                if len(part.quantiles) == 1:
                    found.append(part._quantile(accountant, each, part.quantiles[0], part.cells(index)))
                else:
                    found.append(part._several(accountant, each, part.cells(index)))
        return tuple(found)

    def _several(self, accountant: AccountantName, amount: Fraction, cells: int) -> Quantiles:
        depths = len(self.quantiles).bit_length()
        return Quantiles(
            epsilon=amount if accountant == "sum" else root_below(8 * amount / depths) * depths,
            quantiles=self.quantiles,
            cells=cells,
            slices=1 if self.unknown else max(1, min(slices_for(cells), MOST_CELLS // self.groups // cells)),
            max_rows=self.max_rows,
            neighbors=self.relation,
            choice=_choice(accountant),
        )

    def _quantile(self, accountant: AccountantName, amount: Fraction, q: Fraction, cells: int) -> Quantile:
        plain = Quantile(
            epsilon=amount if accountant == "sum" else root_below(8 * amount),
            q=q,
            cells=cells,
            max_rows=self.max_rows,
            neighbors=self.relation,
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
        # Privacy: the loss of a choice is how far apart its scores move, over its scale: a_i rows out of group i and
        # b_i into it make a_i + b_i, over all groups 2m at most: what a choice that moves by m either way allows.
        monotone = self.neighbors == "add_remove"
        return selection(accountant, amount=amount, linf=Fraction(self.rows), monotone=monotone)

    def decode(self, positions: Any) -> pa.Array:
        """The values at positions of the finest grid."""
        domain, places = self.domain, [min(max(int(each), 0), self.domain.size - 1) for each in positions]
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                return pa.array([as_written(domain.at(domain.lo + place), kind) for place in places], kind)
            case Coded(values=values):
                return pa.array([values[place] for place in places], pa.array(values).type)
            case Flag():
                return pa.array([bool(place) for place in places], pa.bool_())
            case Day():
                return pa.array([domain.at(place) for place in places], pa.date32())
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        return pa.array([domain.lo + step * place for place in places], pa.timestamp("us"))

    # A window adds nothing to the cell of a row before it, to one within it the place there counted from 1, and to one
    # behind it all of its cells and one. So the coarse cell and what the windows add is a number that never falls from
    # left to right and rises wherever one of the grids has a border: it numbers the cells of all of them together.

    def key_column(self, windows: Sequence[Window], cell_of_group: str) -> str:
        """The SQL of a row's cell, given the windows of a pass; the first has none."""
        # Privacy: a grid of more than 2^63 cells must not make an error of the rows that lie beyond them.
        kind = "BIGINT" if self.domain.size < 2**62 else "HUGEINT"
        position = f"CAST({self.position} AS {kind})"
        parts = [position if self.widths[0] == 1 else f"({position} // {self.widths[0]})"]
        for each in windows:
            before = [start - each.width for start in each.starts]  # whose cell in the window is the one counted 0
            # One constant: of a list of thousands of numbers, DuckDB would bind each by itself.
            group = f"list_extract(CAST('{before}' AS {kind}[]), CAST({cell_of_group} AS BIGINT) + 1)"
            inside = f"({position} - {f'({before[0]})' if len(before) == 1 else group}) // {each.width}"
            # Of a NULL it is the last cell, but then the coarse cell is NULL, or the key is: such rows are left out.
            parts.append(f"greatest(least({inside}, {self.reach + 1}), 0)")
        return " + ".join(parts)

    def around(self, index: int, places: Places, before: tuple[Window, ...]) -> tuple[Window, ...]:
        """The windows of pass `index`, in the middle of which are the places just chosen, behind those before them."""
        length = self.reach * self.widths[index]
        found: list[Places] = []
        for column in places.T:
            starts = np.clip(column.astype(self._integer) - length // 2, 0, max(0, self.domain.size - length))
            found.append(np.maximum(starts, found[-1] + length) if found else starts)  # none lies within another
        windows = tuple(Window(width=self.widths[index], starts=tuple(starts.tolist())) for starts in found)
        return (*before[-len(windows) :], *windows)

    def places(self, cells: Places, windows: Sequence[Window]) -> Places:
        """The middle of each chosen cell."""
        kind = self._integer
        low: Places = np.zeros(cells.shape, dtype=kind)
        high: Places = np.full(cells.shape, self.domain.size, dtype=kind)
        laid = _laid(windows, kind)
        for _ in range(self.domain.size.bit_length() + 1):  # the first place whose cell is at least this one
            middle = low + (high - low) // 2
            short = self._numbered(middle, laid) < cells
            low, high = np.where(short, np.minimum(middle + 1, high), low), np.where(short, high, middle)
        # It ends before the next border of any grid, for the number rises at each; or, if it was left out, at once.
        length = np.minimum(self.widths[0] - low % self.widths[0], self.domain.size - low)
        for width, starts in laid:
            offset = low - starts
            inside = np.where(offset // width < self.reach, width - offset % width, length)
            length = np.minimum(length, np.where(offset < 0, -offset, inside))
        length = np.where(self._numbered(low, laid) > cells, 0, length)
        return np.asarray(np.maximum(low + (length - 1) // 2, 0))

    @property
    def _integer(self) -> type:
        """What places are counted in: 64 bits where they hold the end of the last window too."""
        farthest = self.domain.size + len(self.quantiles) * self.reach * self.widths[min(1, len(self.widths) - 1)]
        return np.int64 if farthest < 2**63 - 1 else object

    def _cells_of(self, places: Places, windows: Sequence[Window]) -> Places:
        return self._numbered(places, _laid(windows, places.dtype.type))

    def _numbered(self, places: Places, laid: Laid) -> Places:
        total, behind = places // self.widths[0], self.reach + 1
        for width, starts in laid:
            offset = places - starts
            total = total + np.where(offset < 0, 0, np.minimum(offset // width + 1, behind))
        return np.asarray(total)


def _laid(windows: Sequence[Window], kind: type) -> Laid:
    return [(each.width, np.array(each.starts, dtype=kind)[:, None]) for each in windows]


@lru_cache
def _widths(size: int, fan: int, reach: int) -> tuple[int, ...]:
    widths = [-(-size // (fan // 2))]
    covered = max(1, min(64, reach // 64))
    while widths[-1] > 1:
        finer = min(-(-widths[-1] * covered // reach), widths[-1] // 2)  # also where a window is one cell
        widths.append(1 if 8 * widths[-1] <= reach else finer)
    return tuple(widths)


def _choice(accountant: AccountantName) -> Literal["permute_and_flip", "exponential"]:
    return "permute_and_flip" if accountant == "sum" else "exponential"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """A column of the noisy table that was picked."""

    pick: int
