"""A block: one aggregation of private rows, with the statistics and picks made in each of its
groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from discreet.algebra import (
    Aggregate,
    Distinct,
    Expression,
    Nearest,
    Numbers,
    Persons,
    Reading,
    Scan,
    Source,
    Sum,
    call,
)
from discreet.algebra import Column as ColumnOf
from discreet.budget import Neighbors
from discreet.errors import Unproved
from discreet.mechanisms.running import Grid
from discreet.mechanisms.shapes import Keys, Movement, Nearby, nearby
from discreet.sql.after.estimates import NoisyColumn
from discreet.sql.plan.keys import Joint, Key, Unknown
from discreet.sql.plan.picks import Pick, count_near
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.values.value import (
    Category,
)

PEOPLE = "people per key"  # what a threshold tests where no aggregate counts people


PASSES = 5  # in which people are counted for unknown keys


HELD = 64  # bytes for each number of each group: exact, noisy, estimated, and in the answer


# of exact rows with unknown keys that are held at once
PART_BYTES, MOST_PART_ROWS = (1 << 24, 1 << 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Running totals that get the noise in the place of a statistic's numbers; one person moves
    them by `l2_squared`.
    """

    grid: Grid
    l2_squared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Numbers that share one scale of noise: what is read, how far one person moves it, and what is
    estimated from it.

    `forms` are the numbers: factors of what is read, in the order of `reads`. `sensitivity` says
    how far one person moves all of them in all groups together. `estimates` are computed of the
    noisy numbers, each under the number that its aggregate has in the statement. A statistic that
    is `tested` counts people per unknown key: a threshold adds its noise, and decides which keys
    are shown.
    """

    name: str
    reads: tuple[Reading, ...]
    forms: tuple[tuple[int, ...], ...]
    sensitivity: Sensitivity
    # the numbers of a coarser group are the sums of its parts'; not so of distinct values
    additive: bool
    estimates: tuple[tuple[int, NoisyColumn], ...] = ()
    tested: bool = False
    # Each aggregate that is computed from them, and what 1 is in its own units; no part of what is
    # measured (S10).
    units: tuple[tuple[str, Fraction], ...] = field(default=(), repr=False)
    totals: Totals | None = None  # where its running totals are measured, and not its numbers
    id: str = ""  # what it is known by (`sql.plan.identity`)

    @property
    def movement(self) -> Sensitivity | Movement:
        """Return how far one person moves what gets noise."""
        if self.totals is None:
            return self.sensitivity
        return Movement(l1=None, l2_squared=self.totals.l2_squared)

    def over(self, readings: Sequence[Reading]) -> tuple[tuple[int, ...], ...]:
        """Return the forms as factors of all that a query reads, in its order."""
        own = [dict(zip(self.reads, form, strict=True)) for form in self.forms]
        if not set(self.reads) <= set(readings):
            raise Unproved("A statistic was to be made of what is not read: nothing is asked.")
        return tuple(tuple(form.get(reading, 0) for reading in readings) for form in own)

    @property
    def names_by_unit(self) -> dict[Fraction, str]:
        """Return the names of the aggregates by their unit: SUM(age) and SUM(age * 2) are one
        statistic in two units.
        """
        found: dict[Fraction, list[str]] = {}
        for name, unit in self.units or ((self.name, Fraction(1)),):
            found.setdefault(unit, []).append(name)
        return {unit: ", ".join(names) for unit, names in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A block that is measured itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A block that reads the same as an earlier one, and takes its noisy numbers."""

    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """A block whose numbers are sums of another block's noisy numbers; its picks are its own."""

    block: int
    keys: tuple[int, ...]  # which of that block's keys are this one's, in this one's order
    draws: int  # noisy numbers that are added up to one


Kind = Measured | Shared | RolledUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One aggregation of private rows, from which a noisy table of keys, aggregates and margins is
    made.
    """

    source: Source
    rows: int
    touched: int  # unknown keys that one person can have
    neighbors: Neighbors
    conditions: tuple[Expression, ...]
    keys: tuple[Key | Unknown | Joint, ...]
    # of each key: its position among public values, or the value itself
    places: tuple[Expression, ...]
    # where some keys are not public, the first is the one that is tested
    statistics: tuple[Statistic, ...]
    picks: tuple[Pick, ...]
    # expressions over the noisy table's columns whose margins are asked for
    derived: tuple[str, ...]
    kind: Kind = Measured()

    @property
    def threshold_test(self) -> Statistic | None:
        """Return the statistic that the threshold tests, people per unknown key; None where all
        keys are public.
        """
        return next((each for each in self.statistics if each.tested), None)

    @property
    def own_statistics(self) -> tuple[Statistic, ...]:
        """Return the statistics that are measured in this block and get noise of their own; a
        threshold's test has its noise.
        """
        rolled = isinstance(self.kind, RolledUp)
        return () if rolled else tuple(each for each in self.statistics if not each.tested)

    @property
    def every(self) -> tuple[Statistic | Pick, ...]:
        """Return all statistics and picks: whatever has an id."""
        return (*self.statistics, *self.picks)

    @property
    def aggregates(self) -> dict[int, tuple[Statistic, NoisyColumn] | Pick]:
        """Return each aggregate of the statement by its number: a statistic with its estimate, or a
        pick.
        """
        found: dict[int, tuple[Statistic, NoisyColumn] | Pick] = {
            pick.number: pick for pick in self.picks
        }
        found |= {
            number: (each, estimate)
            for each in self.statistics
            for number, estimate in each.estimates
        }
        return dict(sorted(found.items()))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Return what is read for the block's own statistics, each once."""
        return tuple(
            dict.fromkeys(reading for each in self.own_statistics for reading in each.reads)
        )

    @property
    def sizes(self) -> list[int]:
        """Return how many values each public key has."""
        return [key.size for key in self.keys if isinstance(key, Key | Joint)]

    @property
    def parts(self) -> tuple[Key | Unknown, ...]:
        """Return the keys one by one, as the noisy table has them."""
        parts = ((each.keys if isinstance(each, Joint) else (each,)) for each in self.keys)
        return tuple(key for each in parts for key in each)

    @property
    def cells(self) -> int:
        """Return how many groups the public keys make."""
        return math.prod(self.sizes)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Return the places of the keys that are not public."""
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Unknown))

    @property
    def touching(self) -> Keys:
        """Return the vector of unknown keys that one person touches: 1 in each of at most
        `touched`.
        """
        return Keys(most=self.touched, neighbors=self.neighbors)

    @property
    def key_letters(self) -> int:
        """Return how many letters one combination of unknown keys has at most (S21); a letter is up
        to four bytes.
        """
        return sum(key.letters for key in self.keys if isinstance(key, Unknown))

    @property
    def own_letters(self) -> int:
        """Return how many letters of keys one person can add to what the engine gives back: those
        of `touched` keys.
        """
        return self.touched * self.key_letters if self.unknown else 0

    @property
    def part_rows(self) -> int:
        """Return how many rows may be held at once, of those that come back with unknown keys."""
        row = 4 * self.key_letters + 16 * (len(self.keys) + len(self.readings) + 1)
        return max(1, min(MOST_PART_ROWS, PART_BYTES // row))

    @property
    def bytes_held(self) -> int:
        """Return how many bytes the groups of public keys take at once: what comes back and what is
        made of it (S21).

        Measured, and rounded up. What there is of unknown keys is read in parts; how much of it
        stays follows from the keys that have left, and has a limit of its own (`Allowance`).
        """
        shown = (each for each in self.statistics if each.tested and each.estimates)
        forms = sum(len(each.forms) for each in (*shown, *self.own_statistics))
        numbers = len(self.parts) + len(self.aggregates) + forms
        coded = [key.domain.values for key in self.parts if isinstance(key.domain, Category)]
        letters = sum(max((len(str(value)) for value in values), default=0) for values in coded)
        cells = sum(
            pick.groups * pick.domain.size
            for pick in self.picks
            if not pick.fine and not pick.unknown
        )
        parts = 4 * PART_BYTES if self.unknown else 0
        return self.cells * (HELD * numbers + 8 * letters) + 4 * 8 * cells + parts

    @property
    def passes(self) -> int:
        """Return how many times the rows are read to count people per unknown key, a part of the
        keys each time.

        To count people, an engine holds every pair of key and person. A fifth of the keys at a time
        takes a fifth of that memory. Of a table's own columns it takes little more time; what must
        be joined first is read at once.
        """
        keys = [self.places[place] for place in self.unknown]
        plain = isinstance(self.source, Scan) and all(isinstance(key, ColumnOf) for key in keys)
        people = any(
            isinstance(each, Persons | Distinct) for each in (*self.readings, *self.people.readings)
        )
        return PASSES if keys and plain and people else 1

    def in_passes(self, query: Aggregate) -> tuple[Aggregate, ...]:
        """Return a query with unknown keys as one query for each part of the keys."""
        if self.passes == 1:
            return (query,)
        part = call("hash", *(self.places[place] for place in self.unknown)) % self.passes
        return tuple(
            replace(query, where=(*query.where, part.equals(place))) for place in range(self.passes)
        )

    @property
    def people(self) -> Aggregate:
        """Return the query that counts people per unknown key, for the threshold."""
        reads = () if self.threshold_test is None else self.threshold_test.reads
        keys = tuple(self.places[place] for place in self.unknown)
        known = tuple(
            index for index, place in enumerate(self.unknown) if not self.parts[place].nullable
        )
        return Aggregate(self.source, keys, reads, self.conditions, known)

    @property
    def sums(self) -> Aggregate:
        """Return the query of all sums: at most one row per group leaves the engine."""
        return Aggregate(
            self.source, self.places, self.readings, self.conditions, self.public_places
        )

    def rows_in(self, pick: Pick) -> Aggregate:
        """Return the query that counts rows per group and cell of a pick's grid."""
        conditions = (
            self.conditions if pick.condition is None else (*self.conditions, pick.condition)
        )
        known = (*self.public_places, len(self.places))
        return Aggregate(self.source, (*self.places, pick.cell), (Sum(),), conditions, known)

    def near(self, pick: Pick, choices: Sequence[Nearby]) -> Nearest:
        """Return the query that counts rows in the cells near the wanted rank of each choice."""
        return count_near(self.rows_in(pick), choices, groups=pick.groups)

    @property
    def public_places(self) -> tuple[int, ...]:
        """Return the places of the public keys: a NULL that is not meant belongs to no group of
        theirs.
        """
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Key | Joint))

    @property
    def queries(self) -> Iterator[Numbers]:
        """Yield every query that the engine may be asked, so that each can be tried before it is
        paid.
        """
        if self.unknown:
            yield self.in_passes(self.people)[0]
        if self.own_statistics:
            yield self.in_passes(self.sums)[0]
        for pick in self.picks:
            near = nearby(pick.mechanisms("sum", Fraction(1)))
            yield self.near(pick, near) if near else self.rows_in(pick)

    @property
    def read(self) -> tuple[object, ...]:
        """Return what is read, whatever it is grouped by: the rows, and the sums of them."""
        made = tuple((each.reads, each.forms) for each in self.statistics if each.estimates)
        return self.source, self.conditions, made
