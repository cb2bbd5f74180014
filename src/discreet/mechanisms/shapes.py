"""The shapes of mechanisms: how the vault uses one, and how it asks whether it hides a person.

Additive     noise on every number of a vector: counts, sums, distances
Selection    a cell for every group, or several, from the group's row of counts
Nearby       a selection that needs the cells near the wanted rank and no others
Choice       one candidate of a list, by its score
Threshold    of keys that are not public, those that enough people share

Whoever uses a mechanism names the shape it needs and never asks which mechanism it got. Every shape
has `hides`: given how far one person moves a statistic, is that within what the loss of the
mechanism was worked out for?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from discreet.budget import Loss, Neighbors
from discreet.noise import Items, Stream

Integers = NDArray[Any]  # int64, or Python integers where they pass 64 bits
Survivors = tuple[NDArray[np.intp], Integers]
"""The places of the keys that survive, and the noisy value of each."""
Norm = Literal["l1", "l2"]


# --- how far one person moves a statistic ---------------------------------------------------------


class Sensitivity(Protocol):
    """The distance by which one person moves a vector of whole numbers. None is a norm that was not
    derived: no noise hides that.
    """

    @property
    def l1(self) -> Fraction | int | None: ...

    @property
    def l2_squared(self) -> Fraction | int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A movement of numbers by one person, in the norms that their noise needs."""

    l1: Fraction | int | None
    l2_squared: Fraction | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRows:
    """The rows of one person in what a selection chooses from: at most so many, over so many
    groups.
    """

    most: int
    groups: int
    neighbors: Neighbors

    @property
    def scores(self) -> Scores:
        """Return the counts of such rows as the scores of a choice.

        Privacy: the loss of a choice is how far apart its scores move, over its scale. Of a person
        who is replaced, a_i rows out of group i and b_i into it make a_i + b_i, over all groups 2m
        at most: that is what scores that move by m either way allow for. One who is added or
        removed moves all counts one way.
        """
        return Scores(linf=self.most, monotone=self.neighbors == "add_remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One person moves each score by at most `linf`; all of them the same way, if `monotone`."""

    linf: Fraction | int
    monotone: bool

    @property
    def apart(self) -> Fraction:
        """Return the distance by which two scores can move from one another."""
        return Fraction(self.linf if self.monotone else 2 * self.linf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of one person in what a threshold tests: at most so many, and the person adds 1 to
    each.
    """

    most: int
    neighbors: Neighbors


# --- what a selection that looks nearby is given --------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Near:
    """Cells that hold rows, in order of their group and then their number: those near the wanted
    rank, or more.

    `before` are the rows of the group in cells before this one, `total` all of its rows.
    """

    group: NDArray[np.int64]
    cell: Integers
    rows: Integers
    before: Integers
    total: Integers


# --- what a mechanism of each shape does ----------------------------------------------------------


class Mechanism(Protocol):
    """A frozen dataclass whose fields are Fractions, ints, bools, strings, or tuples of Fractions
    or ints.
    """

    def loss(self) -> Loss: ...


class Noise(Mechanism, Protocol):
    """The noise on a number that left: discrete Laplace or Gaussian, which may end."""

    @property
    def spread(self) -> Fraction:
        """Return the scale of Laplace noise, the sigma of Gaussian noise."""

    @property
    def gaussian(self) -> bool: ...

    @property
    def reaches(self) -> tuple[tuple[int, Fraction], ...]:
        """Return the distances at which noise ends, each with its probability. Empty where noise
        has no end.
        """

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest half-width that holds the noise with at least this probability."""


class Additive(Noise, Protocol):
    """Adds independent noise of one spread to every number."""

    @property
    def norm(self) -> Norm:
        """Return the norm that its loss is a function of."""

    @property
    def words(self) -> str:
        """Its name, with the spread to follow: "discrete Laplace noise of scale"."""

    @property
    def deviation(self) -> float:
        """Return the standard deviation, or a little more."""

    def hides(self, moved: Sensitivity) -> bool: ...

    def add_to(self, values: Integers, stream: Stream, items: Items) -> Integers: ...

    def log_mass(self, z: int) -> float: ...


class Selection(Mechanism, Protocol):
    """Chooses cells for every group from its row of counts."""

    @property
    def per_group(self) -> int:
        """Return the number of cells that it chooses in a group."""

    @property
    def slices(self) -> int:
        """Return the number of candidates into which it cuts a cell."""

    @property
    def scale(self) -> Fraction | None:
        """Return the scale of the noise on its scores; None where it chooses several times, by
        different ones.
        """

    def hides(self, moved: PersonRows) -> bool: ...

    def choose_each(self, counts: Integers, stream: Stream, items: Items) -> Integers:
        """Return the cell of each item, or its cells as a row."""

    def ranks(self, confidence: Fraction | float) -> int | None:
        """Return ranks: with this probability no cell is farther from the wanted rank. None without
        one: a mode.
        """

    def beside_ranks(self) -> dict[str, Any]:
        """Return what must be said beside `ranks`; empty where they hold whatever the data."""


@runtime_checkable
class Nearby(Selection, Protocol):
    """Chooses a cell from those near the wanted rank."""

    @property
    def cells(self) -> int: ...

    @property
    def q(self) -> Fraction: ...

    @property
    def reach(self) -> int: ...

    @property
    def shift(self) -> int: ...

    @property
    def most_near(self) -> int: ...

    def choose_near(self, near: Near, stream: Stream, items: Items) -> Integers: ...


def nearby(choices: Sequence[Selection]) -> tuple[Nearby, ...]:
    """Return the choices that need only the cells near their rank: all on a fine grid, none on
    another.
    """
    return tuple(choice for choice in choices if isinstance(choice, Nearby))


class Choice(Mechanism, Protocol):
    """Chooses one of a list of candidates by its score."""

    def hides_scores(self, moved: Scores) -> bool: ...

    def choose(self, scores: Integers, stream: Stream) -> int: ...


class Threshold(Noise, Protocol):
    """Lets the keys leave whose noisy number reaches a threshold."""

    @property
    def threshold(self) -> int: ...

    @property
    def later(self) -> Fraction:
        """Return the probability of the key's own coin that raises its threshold by one."""

    @property
    def neighbors(self) -> Neighbors: ...

    def hides(self, moved: Keys) -> bool: ...

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors: ...

    def log_mass(self, value: int, released: int | None) -> float: ...
