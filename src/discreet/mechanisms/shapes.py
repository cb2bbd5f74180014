"""The shapes of mechanisms: protocols by which the vault uses a mechanism and asks whether it hides
a person.

Additive     adds noise to every number of a vector: counts, sums, distances
Selection    chooses one or several cells for every group, from the group's row of counts
Nearby       a selection that needs only the cells near the wanted rank
Choice       chooses one candidate of a list by its score
Threshold    releases, of keys that are not public, those that enough people share

Code that uses a mechanism names the shape that it needs, and never asks which mechanism it got.
Every shape has `hides`. It takes how far one person moves a statistic, and says whether the loss of
the mechanism was proved for a move that large.
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
"""The places of the keys that a threshold releases, and the noisy value of each."""
Norm = Literal["l1", "l2"]


# --- how far one person moves a statistic ---------------------------------------------------------


class Sensitivity(Protocol):
    """The largest distance by which one person moves a vector of whole numbers.

    None stands for a norm that was not derived: noise that needs this norm hides nothing.
    """

    @property
    def l1(self) -> Fraction | int | None: ...

    @property
    def l2_squared(self) -> Fraction | int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """A sensitivity, given by its norms."""

    l1: Fraction | int | None
    l2_squared: Fraction | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonRows:
    """What one person adds to the counts of a selection: at most `most` rows in at most `groups`
    groups.
    """

    most: int
    groups: int
    neighbors: Neighbors

    @property
    def scores(self) -> Scores:
        """Return how far one person moves the counts, read as the scores of a choice.

        Privacy: the loss of a choice is how far apart two of its scores move, divided by its scale.
        Let m be `most`. A person who is replaced takes a_i rows out of group i and puts b_i rows
        into it, so two of its scores move apart by at most a_i + b_i. Over all groups this is at
        most 2m, which is what scores that move by m either way allow for. A person who is added or
        removed moves all counts the same way.
        """
        return Scores(linf=self.most, monotone=self.neighbors == "add_remove")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One person moves each score by at most `linf`. If `monotone`, all move the same way."""

    linf: Fraction | int
    monotone: bool

    @property
    def apart(self) -> Fraction:
        """Return how far apart one person can move two scores."""
        return Fraction(self.linf if self.monotone else 2 * self.linf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What one person adds to the counts of a threshold: 1 to each of at most `most` keys."""

    most: int
    neighbors: Neighbors


# --- the input of a selection that needs only nearby cells ----------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Near:
    """The cells with rows near the wanted rank (or more cells), ordered by group, then by cell.

    `before` is the number of the group's rows in cells before this one, `total` of all its rows.
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
    """The noise on a released number: discrete Laplace or Gaussian, in some mechanisms
    truncated.
    """

    @property
    def spread(self) -> Fraction:
        """Return the scale of Laplace noise, the sigma of Gaussian noise."""

    @property
    def gaussian(self) -> bool: ...

    @property
    def reaches(self) -> tuple[tuple[int, Fraction], ...]:
        """Return the distances at which the noise ends, each with its probability. Empty if the
        noise is not truncated.
        """

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest half-width that holds the noise with at least this probability."""


class Additive(Noise, Protocol):
    """Adds independent noise of one spread to every number."""

    @property
    def norm(self) -> Norm:
        """Return the norm of the sensitivity that decides the loss."""

    @property
    def words(self) -> str:
        """Return its name, to be followed by the spread: "discrete Laplace noise of scale"."""

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
        """Return how many cells it chooses for a group."""

    @property
    def slices(self) -> int:
        """Return the number of candidates into which it divides each cell."""

    @property
    def scale(self) -> Fraction | None:
        """Return the scale of the noise on its scores; None if it chooses several times, with
        different scales.
        """

    def hides(self, moved: PersonRows) -> bool: ...

    def choose_each(self, counts: Integers, stream: Stream, items: Items) -> Integers:
        """Return the chosen cell of each item, or a row of cells if it chooses several."""

    def ranks(self, confidence: Fraction | float) -> int | None:
        """Return the margin in ranks: with this probability, no chosen cell is farther from the
        wanted rank. None if no rank is wanted: a mode.
        """

    def beside_ranks(self) -> dict[str, Any]:
        """Return what to print beside `ranks`: when it holds. Empty if it holds for all data."""


@runtime_checkable
class Nearby(Selection, Protocol):
    """Chooses a cell, and needs only the cells near the wanted rank."""

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
    """Return those of the selections that need only the cells near their rank.

    They are all of them on a fine grid, and none on a coarse one.
    """
    return tuple(choice for choice in choices if isinstance(choice, Nearby))


class Choice(Mechanism, Protocol):
    """Chooses one of a list of candidates by its score."""

    def hides_scores(self, moved: Scores) -> bool: ...

    def choose(self, scores: Integers, stream: Stream) -> int: ...


class Threshold(Noise, Protocol):
    """Releases the keys whose noisy number reaches a threshold."""

    @property
    def threshold(self) -> int: ...

    @property
    def later(self) -> Fraction:
        """Return the probability that a key's own coin raises its threshold by one."""

    @property
    def neighbors(self) -> Neighbors: ...

    def hides(self, moved: Keys) -> bool: ...

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors: ...

    def log_mass(self, value: int, released: int | None) -> float: ...
