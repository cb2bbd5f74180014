"""The last step: rows of people become numbers, which leave the engine exact and get noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal as OneOf

from discreet.algebra.rows import Expression, Source
from discreet.errors import Unproved


@dataclass(frozen=True, slots=True)
class Factor:
    """A number of a row to a power, with lo <= value <= hi: the snapshot holds it to that, or else
    the query does.

    With `clamp`, what is beyond is NULL.
    """

    value: Expression
    lo: int
    hi: int
    power: int
    clamp: bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum over rows of a product of factors; of none, the number of rows. A row with a NULL
    factor adds nothing.
    """

    factors: tuple[Factor, ...] = ()
    where: Expression | None = None
    bits: OneOf[64, 128] = 128  # in which the engine adds up


@dataclass(frozen=True, slots=True)
class Persons:
    """The number of people who have a row."""

    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of distinct combinations of values; of one number that is held to a range, at most
    its length.
    """

    values: tuple[Expression, ...]
    ends: tuple[int, int] | None = None
    where: Expression | None = None


Reading = Sum | Persons | Distinct


def key_column(place: int) -> str:
    """Return the column, of what an engine gives back, of the key at this place. Nobody else writes
    such a name.
    """
    return f"k{place}"


def number_column(place: int) -> str:
    """Return the column, of what an engine gives back, of the reading at this place."""
    return f"s{place}"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row of numbers for each combination of keys: what leaves the engine, exact, to be
    noised.
    """

    source: Source
    keys: tuple[Expression, ...]
    readings: tuple[Reading, ...]
    where: tuple[Expression, ...] = ()
    known: tuple[int, ...] = ()  # keys whose NULL is no group: such rows are left out


@dataclass(frozen=True, slots=True)
class Rank:
    """A wanted rank of each group, share / times of its rows plus shift, and how far from it cells
    are read.
    """

    share: int
    times: int
    shift: int
    reach: int | None  # None: every cell


# What `Nearest` gives beside the keys: the rows of a cell, those in cells before it, and those of
# its group.
ROWS, BEFORE, TOTAL = map(number_column, range(3))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The counted cells near some ranks of their group, with the ranks that they cover.

    `counted` counts rows by its last key, the cell. Wide cells are counted first, then the rows of
    those near a rank by narrower ones, and so on: `widths`, of which the last is 1. It depends on
    the question alone: where the ranks lie is found by the engine and not told.
    """

    counted: Aggregate
    widths: tuple[int, ...]
    ranks: tuple[Rank, ...]

    def __post_init__(self) -> None:
        # Privacy: a narrow cell in two wide ones would be read with both, and its rows would count
        # twice.
        if self.widths[-1] != 1 or any(wide % narrow for wide, narrow in pairwise(self.widths)):
            raise Unproved(f"cells of {self.widths} do not lie within one another")

    @property
    def source(self) -> Source:
        return self.counted.source


Numbers = Aggregate | Nearest
