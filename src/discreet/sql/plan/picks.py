"""Picks: aggregates that choose a value instead of adding up (quantiles, minimum, maximum, mode).

A pick chooses one cell of a public grid per group, or one cell for each of several quantiles. If
the grid has at most `FAN` cells, the rows of every cell are counted. On a finer grid only the cells
near each rank are counted (`count_near`), and quantiles are chosen one by one: then the margin of
their ranks holds for all data.
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

FAN = 1 << 17  # the most cells of which every one is counted
MOST_CELLS = 1 << 23  # the most counts of all groups together: 64 MB
# the same for a group by unknown keys, as the number of groups is not public
UNKNOWN_FAN = 1 << 12
# the probability that a maximum is not above the largest value, and a minimum not below the smallest
INSIDE = Fraction(19, 20)

COARSE = 1 << 16  # wide cells of all groups together, and narrower cells of one wide cell
FEWEST = 1 << 8  # wide cells of a group, if there are many groups or unknown ones

PickDomain = Number | Category | Flag | Day | Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One choice per group. `position` is the expression of a row's cell on the finest grid, from 0
    on.
    """

    name: str
    kind: Literal["quantile", "mode"]
    position: Expression
    condition: Expression | None
    domain: PickDomain
    quantiles: tuple[Fraction, ...]  # empty for a mode
    listed: bool  # the question asks for a list, so the answer is one
    rows: int
    groups: int
    neighbors: Neighbors
    unknown: bool = False  # some keys are not public, so the number of groups is not either
    number: int = 0  # the number of the aggregate in the statement
    id: str = ""  # set by `sql.plan.identity`

    @property
    def relation(self) -> Neighbors:
        """Return the relation that the noise of a quantile is made for, with `max_rows`.

        Privacy: with several groups, replacing a person takes a_i rows out of group i and puts b_i
        rows into it; all a_i together are at most m, and so are all b_i. The score of group i moves
        by at most (a_i + b_i) max(q, 1 - q), as if a_i + b_i rows had been added. The loss of a
        choice is linear in that number, so all groups together lose as much as for 2m rows added or
        removed. (With one group m is enough, which is at most 2m max(q, 1 - q).)
        """
        return self.neighbors if self.groups == 1 else "add_remove"

    @property
    def max_rows(self) -> int:
        """Return the number of one person's rows that the noise of a quantile must hide."""
        if self.neighbors == "add_remove" or self.groups == 1:
            return self.rows
        return 2 * self.rows

    @property
    def fan(self) -> int:
        """Return the most cells per group of which every one is counted: fewer for many groups."""
        if self.unknown:
            return UNKNOWN_FAN
        share = MOST_CELLS // self.groups
        return max(16, min(FAN, share // 4 * 4))

    @property
    def fine(self) -> bool:
        """Return True if the grid has too many cells to count every one."""
        return self.domain.size > self.fan

    @property
    def parts(self) -> tuple[Pick, ...]:
        """Return the choices to make one after another, each with an equal share of the amount.

        Three or more quantiles are chosen together if every cell is counted. Two would cost as much
        together as one by one. An extreme is always chosen alone, because it aims at a rank inside
        the data.
        """
        without_extremes = all(0 < q < 1 for q in self.quantiles)
        if len(self.quantiles) > 2 and not self.fine and without_extremes:
            return (self,)
        return tuple(replace(self, quantiles=(q,)) for q in self.quantiles) or (self,)

    @property
    def movement(self) -> PersonRows:
        """Return how far one person moves the counts: by the number of their rows."""
        return PersonRows(most=self.rows, groups=self.groups, neighbors=self.neighbors)

    def mechanisms(self, accountant: AccountantName, amount: Fraction) -> tuple[Selection, ...]:
        """Return the mechanisms of the choices, one for each part; on a fine grid each is `Nearby`."""
        money = currency(accountant)
        if self.kind == "mode":
            return (money.choice(amount=amount, moved=self.movement.scores),)
        parts = self.parts
        share = amount / len(parts)
        return tuple(part._mechanism(money, share) for part in parts)

    def _mechanism(self, money: Currency, amount: Fraction) -> Quantile | FineQuantile | Quantiles:
        if len(self.quantiles) == 1:
            return self._quantile(money, amount)
        return self._several(money, amount)

    def _several(self, money: Currency, amount: Fraction) -> Quantiles:
        rounds = len(self.quantiles).bit_length()
        cells = self.domain.size
        slices = 1
        if not self.unknown:
            most = MOST_CELLS // self.groups // cells
            slices = max(1, min(slices_for(cells), most))
        return Quantiles(
            epsilon=money.choice_epsilon(amount=amount, rounds=rounds),
            quantiles=self.quantiles,
            cells=cells,
            slices=slices,
            max_rows=self.max_rows,
            neighbors=self.relation,
            choice=money.choice_name,
        )

    def _quantile(self, money: Currency, amount: Fraction) -> Quantile | FineQuantile:
        [q] = self.quantiles
        grid: dict[str, Any] = {
            "epsilon": money.choice_epsilon(amount=amount),
            "q": q,
            "cells": self.domain.size,
            "max_rows": self.max_rows,
            "neighbors": self.relation,
        }
        plain: Quantile | FineQuantile
        if self.fine:
            plain = FineQuantile(**grid, reach=reach_for(**grid))
        else:
            plain = Quantile(**grid, choice=money.choice_name)
        if 0 < q < 1:
            return plain
        # All cells beyond the largest value have the same score. So aim at a rank inside the data,
        # at such a distance from the end that with 95 % the choice is nearer to it than those cells.
        inside = plain.margin(INSIDE) + 1
        return replace(plain, shift=inside if q == 0 else -inside)

    def decode(self, positions: Any) -> pa.Array:
        """Return the values at these positions of the finest grid."""
        domain = self.domain
        last = domain.size - 1
        places = [min(max(int(each), 0), last) for each in positions]
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                numbers = [domain.at(domain.lo + place) for place in places]
                return arrow.array([as_written(number, kind) for number in numbers], kind)
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
        # Privacy: a grid may have more than 2^63 cells. Rows beyond them must not raise an error, which
        # would tell that such rows exist.
        return widen(self.position, self.domain.size)


def count_near(counted: Aggregate, choices: Sequence[Nearby], *, groups: int) -> Nearest:
    """Return the query that counts rows in the cells within reach of the rank of each choice.

    It counts in a few steps, from wide cells to the finest.
    """
    return Nearest(counted, _widths(choices[0].cells, groups), tuple(map(_rank, choices)))


def _widths(cells: int, groups: int) -> tuple[int, ...]:
    """Return the width of the cells of each step, in cells of the finest grid; the last width is 1.

    Privacy: each width is a multiple of the next. Otherwise a narrow cell could lie in two wide
    ones, so that its rows would be counted with both, and one person twice.
    """
    widest = -(-cells // max(FEWEST, COARSE // groups))
    steps = 0
    while COARSE ** (steps + 1) <= widest:
        steps += 1
    least = -(-widest // COARSE**steps)
    widths = [least * COARSE**step for step in range(steps, -1, -1)]
    return tuple(dict.fromkeys([*widths, 1]))


def _rank(choice: Nearby) -> Rank:
    reach = None if choice.reach >= FARTHEST else choice.reach
    return Rank(choice.q.numerator, choice.q.denominator, choice.shift, reach)
