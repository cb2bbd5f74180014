"""The last step: rows of people become numbers. They leave the engine exactly, and then get noise."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal as OneOf

from discreet.algebra.rows import Expression, Source
from discreet.errors import Unproved


@dataclass(frozen=True, slots=True)
class Factor:
    """A power of a row's number, with lo <= value <= hi. Either the snapshot or the query enforces
    the range.

    With `clamp` the query does: a value beyond the range is NULL.
    """

    value: Expression
    lo: int
    hi: int
    power: int
    clamp: bool


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a product of factors over rows; without factors, the number of rows. A row in which
    a factor is NULL adds nothing.
    """

    factors: tuple[Factor, ...] = ()
    where: Expression | None = None
    bits: OneOf[64, 128] = 128  # of the integers in which the engine adds


@dataclass(frozen=True, slots=True)
class Persons:
    """The number of people who have a row."""

    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class Distinct:
    """The number of distinct combinations of values."""

    values: tuple[Expression, ...]
    ends: tuple[int, int] | None = None  # for one number: its range, which limits the result
    where: Expression | None = None


Reading = Sum | Persons | Distinct


def key_column(place: int) -> str:
    """Return the name of the column of a key in the table that an engine returns. Nobody else writes
    such names.
    """
    return f"k{place}"


def number_column(place: int) -> str:
    """Return the name of the column of a reading in the table that an engine returns."""
    return f"s{place}"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One row of exact numbers for each combination of keys: it leaves the engine and gets noise."""

    source: Source
    keys: tuple[Expression, ...]
    readings: tuple[Reading, ...]
    where: tuple[Expression, ...] = ()
    known: tuple[int, ...] = ()  # places of keys whose NULL is no group: such rows are left out


@dataclass(frozen=True, slots=True)
class Rank:
    """A rank to look for in each group: share / times of its rows, plus shift."""

    share: int
    times: int
    shift: int
    reach: int | None  # how far from the rank cells are read; None for every cell


# The columns of a `Nearest` beside the keys: the rows of a cell, the rows in cells before it, and
# the rows of its group.
ROWS, BEFORE, TOTAL = map(number_column, range(3))


@dataclass(frozen=True, slots=True)
class Nearest:
    """The cells near some ranks of their group, with the rows in each and the rows before it.

    `counted` counts rows by its last key, the cell. The engine counts wide cells first, then
    narrower cells inside the wide cells near a rank, and so on down to width 1, as `widths` says.
    The query depends on the question alone; only the engine knows where the ranks are.
    """

    counted: Aggregate
    widths: tuple[int, ...]
    ranks: tuple[Rank, ...]

    def __post_init__(self) -> None:
        # Privacy: a narrow cell inside two wide ones would be read with both, so its rows would count
        # twice.
        if self.widths[-1] != 1 or any(wide % narrow for wide, narrow in pairwise(self.widths)):
            raise Unproved(f"cells of {self.widths} do not lie within one another")

    @property
    def source(self) -> Source:
        return self.counted.source


Numbers = Aggregate | Nearest
