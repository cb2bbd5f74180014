"""Picks: aggregates that choose a value instead of adding up (quantiles, minimum, maximum, mode).

A pick chooses one cell of a public grid per group, or one for each of several quantiles. Of a grid
of up to `FAN` cells all counts are read. Of a finer one only the cells near each wanted rank are
(`count_near`), and quantiles are chosen one by one: what is told about their ranks then holds
whatever the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Literal

import pyarrow as pa

from discreet import arrow
from discreet.algebra import Aggregate, Expression, Nearest, Rank
from discreet.budget import AccountantName, Neighbors
from discreet.mechanisms.currency import Currency, currency
from discreet.mechanisms.fine_quantile import FARTHEST, FineQuantile, reach_for
from discreet.mechanisms.quantile import Quantile, Quantiles, slices_for
from discreet.mechanisms.shapes import Nearby, PersonRows, Selection
from discreet.sql.after.estimates import as_written, number_type
from discreet.sql.values.value import Category, Day, Flag, Moment, Number, widen

FAN = 1 << 17  # cells of which all counts are read
MOST_CELLS = 1 << 23  # counts of all groups together: 64 MB
# cells where keys are not public, so that there is no telling how many groups there are
UNKNOWN_FAN = 1 << 12
# how often a maximum must not lie above the largest value, or a minimum below the smallest
INSIDE = Fraction(19, 20)

COARSE = 1 << 16  # wide cells of all groups together, and narrower ones of one wide cell
FEWEST = 1 << 8  # wide cells of a group, where there are many groups or no telling how many

PickDomain = Number | Category | Flag | Day | Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One choice per group. `position` is the SQL of a row's cell on the finest grid, counted from
    0.
    """

    name: str
    kind: Literal["quantile", "mode"]
    position: Expression
    condition: Expression | None
    domain: PickDomain
    quantiles: tuple[Fraction, ...]  # of a mode: none
    listed: bool  # asked for as a list, so given as one
    rows: int
    groups: int
    neighbors: Neighbors
    # groups of keys that are not public: how many is known only once they are found
    unknown: bool = False
    number: int = 0  # of the aggregate in the statement
    id: str = ""  # what it is known by (`sql.plan.identity`)

    @property
    def relation(self) -> Neighbors:
        """Return the relation that the noise of a quantile is made for, with `max_rows`.

        Privacy: over several groups, replacing a person takes a_i of at most m rows from group i
        and puts b_i of at most m into it. There the score moves by at most (a_i + b_i) max(q, 1 -
        q), as if so many rows had been added; the loss of a choice is linear in that, so together
        it is that of 2m rows added or removed. (Within one group m alone would do, which is no more
        than 2m max(q, 1 - q).)
        """
        return self.neighbors if self.groups == 1 else "add_remove"

    @property
    def max_rows(self) -> int:
        """Return how many rows of one person a quantile's noise must hide."""
        return self.rows if self.neighbors == "add_remove" or self.groups == 1 else 2 * self.rows

    @property
    def fan(self) -> int:
        """Return how many cells may be counted one by one, fewer where there are many groups."""
        return (
            UNKNOWN_FAN if self.unknown else max(16, min(FAN, MOST_CELLS // self.groups // 4 * 4))
        )

    @property
    def fine(self) -> bool:
        """Return True if the grid has more cells than may be counted one by one."""
        return self.domain.size > self.fan

    @property
    def parts(self) -> tuple[Pick, ...]:
        """Return the choices to make one after another, each with an equal share of the amount.

        Three quantiles or more are chosen together, on a grid whose counts are all read: two would
        cost as much together as one by one. The extremes aim inside the data, which only a choice
        of its own can.
        """
        if len(self.quantiles) > 2 and not self.fine and all(0 < q < 1 for q in self.quantiles):
            return (self,)
        return tuple(replace(self, quantiles=(q,)) for q in self.quantiles) or (self,)

    @property
    def movement(self) -> PersonRows:
        """Return how far one person moves the counts: the rows that they have in them."""
        return PersonRows(most=self.rows, groups=self.groups, neighbors=self.neighbors)

    def mechanisms(self, accountant: AccountantName, amount: Fraction) -> tuple[Selection, ...]:
        """Return the mechanisms of its choices, part by part; on a fine grid each is `Nearby`."""
        paid = currency(accountant)
        if self.kind == "mode":
            return (paid.choice(amount=amount, moved=self.movement.scores),)
        share = amount / len(self.parts)
        return tuple(
            part._quantile(paid, share) if len(part.quantiles) == 1 else part._several(paid, share)
            for part in self.parts
        )

    def _several(self, paid: Currency, amount: Fraction) -> Quantiles:
        depths, cells = len(self.quantiles).bit_length(), self.domain.size
        return Quantiles(
            epsilon=paid.choice_epsilon(amount=amount, rounds=depths),
            quantiles=self.quantiles,
            cells=cells,
            slices=1
            if self.unknown
            else max(1, min(slices_for(cells), MOST_CELLS // self.groups // cells)),
            max_rows=self.max_rows,
            neighbors=self.relation,
            choice=paid.choice_name,
        )

    def _quantile(self, paid: Currency, amount: Fraction) -> Quantile | FineQuantile:
        [q] = self.quantiles
        grid: dict[str, Any] = {
            "epsilon": paid.choice_epsilon(amount=amount),
            "q": q,
            "cells": self.domain.size,
            "max_rows": self.max_rows,
            "neighbors": self.relation,
        }
        plain: Quantile | FineQuantile
        plain = (
            FineQuantile(**grid, reach=reach_for(**grid))
            if self.fine
            else Quantile(**grid, choice=paid.choice_name)
        )
        if 0 < q < 1:
            return plain
        # All cells beyond the largest value have one score. The wanted rank is so far inside the
        # data that each of them is farther from it than the choice is with 95 %.
        inside = plain.margin(INSIDE) + 1
        return replace(plain, shift=inside if q == 0 else -inside)

    def decode(self, positions: Any) -> pa.Array:
        """Return the values at positions of the finest grid."""
        domain, places = (
            self.domain,
            [min(max(int(each), 0), self.domain.size - 1) for each in positions],
        )
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                return arrow.array(
                    [as_written(domain.at(domain.lo + place), kind) for place in places], kind
                )
            case Category(values=values):
                return arrow.array([values[place] for place in places], arrow.array(values).type)
            case Flag():
                return arrow.array([bool(place) for place in places], pa.bool_())
            case Day():
                return arrow.array([domain.at(place) for place in places], pa.date32())
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        return arrow.array([domain.lo + step * place for place in places], pa.timestamp("us"))

    @property
    def cell(self) -> Expression:
        """Return the expression of a row's cell."""
        # Privacy: a grid of more than 2^63 cells must not make an error of the rows that lie beyond
        # them.
        return widen(self.position, self.domain.size)


def count_near(counted: Aggregate, choices: Sequence[Nearby], *, groups: int) -> Nearest:
    """Return the query that counts the cells which hold rows within the reach of a choice.

    Cells are counted in a few steps, from wide ones to the finest.
    """
    return Nearest(counted, _widths(choices[0].cells, groups), tuple(map(_rank, choices)))


def _widths(cells: int, groups: int) -> tuple[int, ...]:
    """Return the widths of the cells counted at each step, in cells of the finest grid; the last is
    1.

    Each is a multiple of the next. Privacy: were they not, a narrow cell could lie in two wide
    ones, its rows would be read with both, and one person would count twice.
    """
    widest = -(-cells // max(FEWEST, COARSE // groups))
    steps = 0
    while COARSE ** (steps + 1) <= widest:
        steps += 1
    least = -(-widest // COARSE**steps)
    return tuple(dict.fromkeys([*(least * COARSE**step for step in range(steps, -1, -1)), 1]))


def _rank(choice: Nearby) -> Rank:
    reach = None if choice.reach >= FARTHEST else choice.reach
    return Rank(choice.q.numerator, choice.q.denominator, choice.shift, reach)
