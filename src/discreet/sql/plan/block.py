"""A block: one aggregation of private rows, with the statistics and picks of each group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
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
from discreet.sql.values.value import Category

PEOPLE = "people per key"  # the name of a threshold's test if no aggregate counts people


PASSES = 5  # the number of passes in which people are counted for unknown keys


HELD = 64  # bytes for each number of each group: exact, noisy, estimated, and in the answer


# the most bytes, and the most rows, of an exact table with unknown keys that are in memory at once
PART_BYTES = 1 << 24
MOST_PART_ROWS = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Running totals that get noise instead of a statistic's numbers; one person moves them by at
    most `l2_squared`.
    """

    grid: Grid
    l2_squared: int


def places_of(readings: Sequence[Reading]) -> dict[Reading, int]:
    """Return the readings of a query with their places."""
    return {reading: place for place, reading in enumerate(readings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Numbers that get noise of one scale, and what is estimated from them.

    Each number is a combination of readings: `forms` has its factors, in the order of `reads`.
    `sensitivity` says how far one person can move all the numbers in all groups together.
    `estimates` are computed from the noisy numbers; each has the number of its aggregate in the
    statement. A statistic that is `tested` counts people per unknown key: a threshold adds the noise
    to it and decides which keys are shown.
    """

    name: str
    reads: tuple[Reading, ...]
    forms: tuple[tuple[int, ...], ...]
    sensitivity: Sensitivity
    # the numbers of a group are the sums of those of its parts; not true of distinct values
    additive: bool
    estimates: tuple[tuple[int, NoisyColumn], ...] = ()
    tested: bool = False
    # the label of each aggregate computed from the numbers, and the value of 1 in its own units; no
    # part of what is measured (S10)
    units: tuple[tuple[str, Fraction], ...] = field(default=(), repr=False)
    totals: Totals | None = None  # set if its running totals get noise, and not its numbers
    id: str = ""  # set by `sql.plan.identity`

    @property
    def movement(self) -> Sensitivity | Movement:
        """Return how far one person moves the numbers that get noise."""
        if self.totals is None:
            return self.sensitivity
        return Movement(l1=None, l2_squared=self.totals.l2_squared)

    def over(self, readings: Sequence[Reading]) -> tuple[tuple[int, ...], ...]:
        """Return the forms with a factor for each reading of a query, in its order."""
        return self.at_places(places_of(readings))

    def at_places(self, places: Mapping[Reading, int]) -> tuple[tuple[int, ...], ...]:
        """Return the forms with a factor for each reading of a query, which has these places."""
        if not places.keys() >= set(self.reads):
            raise Unproved("A statistic needs a reading that the query lacks: nothing is asked.")
        own = [places[reading] for reading in self.reads]
        rows = []
        for form in self.forms:
            factors = [0] * len(places)
            for place, factor in zip(own, form, strict=True):
                factors[place] = factor
            rows.append(tuple(factors))
        return tuple(rows)

    @property
    def names_by_unit(self) -> dict[Fraction, str]:
        """Return the names of the aggregates by their unit: SUM(age) and SUM(age * 2) are one
        statistic in two units.
        """
        lists: dict[Fraction, list[str]] = {}
        for name, unit in self.units or ((self.name, Fraction(1)),):
            lists.setdefault(unit, []).append(name)
        return {unit: ", ".join(names) for unit, names in lists.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The kind of a block that is measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The kind of a block that reads the same as an earlier one, and takes its noisy numbers."""

    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """The kind of a block whose numbers are sums of another block's noisy numbers. Its picks are its
    own.
    """

    block: int
    keys: tuple[int, ...]  # for each key of this block: its place among that block's keys
    draws: int  # how many noisy numbers are added up to one


Kind = Measured | Shared | RolledUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One aggregation of private rows. It becomes a noisy table of keys, aggregates and margins."""

    source: Source
    rows: int  # the most rows that one person can have
    touched: int  # the most unknown keys that one person can have
    neighbors: Neighbors
    conditions: tuple[Expression, ...]
    keys: tuple[Key | Unknown | Joint, ...]
    # for each key: the expression of its position among public values, or of the value itself
    places: tuple[Expression, ...]
    # if some keys are not public, the first statistic is the one that is tested
    statistics: tuple[Statistic, ...]
    picks: tuple[Pick, ...]
    # expressions over columns of the noisy table whose margins the question asks for
    derived: tuple[str, ...]
    kind: Kind = Measured()

    @property
    def threshold_test(self) -> Statistic | None:
        """Return the statistic that the threshold tests: people per unknown key. None if all keys
        are public.
        """
        return next((each for each in self.statistics if each.tested), None)

    @property
    def own_statistics(self) -> tuple[Statistic, ...]:
        """Return the statistics that are measured in this block with noise of their own. The one that
        is tested has the threshold's noise.
        """
        if isinstance(self.kind, RolledUp):
            return ()
        return tuple(each for each in self.statistics if not each.tested)

    @property
    def every(self) -> tuple[Statistic | Pick, ...]:
        """Return all statistics and picks: everything that has an id."""
        return (*self.statistics, *self.picks)

    @property
    def aggregates(self) -> dict[int, tuple[Statistic, NoisyColumn] | Pick]:
        """Return each aggregate by its number in the statement: a pick, or a statistic with its
        estimate.
        """
        by_number: dict[int, tuple[Statistic, NoisyColumn] | Pick] = {}
        for pick in self.picks:
            by_number[pick.number] = pick
        for statistic in self.statistics:
            for number, estimate in statistic.estimates:
                by_number[number] = (statistic, estimate)
        return dict(sorted(by_number.items()))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Return the readings of the block's own statistics, each once."""
        readings = [reading for each in self.own_statistics for reading in each.reads]
        return tuple(dict.fromkeys(readings))

    @property
    def sizes(self) -> list[int]:
        """Return the number of values of each public key."""
        return [key.size for key in self.keys if isinstance(key, Key | Joint)]

    @property
    def parts(self) -> tuple[Key | Unknown, ...]:
        """Return the keys one by one, as the noisy table has them."""
        parts: list[Key | Unknown] = []
        for key in self.keys:
            if isinstance(key, Joint):
                parts.extend(key.keys)
            else:
                parts.append(key)
        return tuple(parts)

    @property
    def cells(self) -> int:
        """Return the number of groups by the public keys."""
        return math.prod(self.sizes)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Return the places of the keys that are not public."""
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Unknown))

    @property
    def touching(self) -> Keys:
        """Return what one person adds to the people per unknown key: 1 to each of at most `touched`
        keys.
        """
        return Keys(most=self.touched, neighbors=self.neighbors)

    @property
    def key_letters(self) -> int:
        """Return the most letters of one combination of unknown keys (S21); a letter takes at most
        four bytes.
        """
        return sum(key.letters for key in self.keys if isinstance(key, Unknown))

    @property
    def own_letters(self) -> int:
        """Return the most letters that one person's keys can add to what the engine returns."""
        return self.touched * self.key_letters if self.unknown else 0

    @property
    def part_rows(self) -> int:
        """Return how many rows with unknown keys may be in memory at once."""
        row = 4 * self.key_letters + 16 * (len(self.keys) + len(self.readings) + 1)
        return max(1, min(MOST_PART_ROWS, PART_BYTES // row))

    @property
    def bytes_held(self) -> int:
        """Return how many bytes the groups of public keys need: what the engine returns and what is
        made of it (S21).

        The figures were measured, and rounded up. Groups by unknown keys are read in parts. How many
        of them stay in memory depends on the keys that pass the threshold; that has a limit of its
        own (`Allowance`).
        """
        tests = [each for each in self.statistics if each.tested and each.estimates]
        forms = sum(len(each.forms) for each in (*tests, *self.own_statistics))
        numbers = len(self.parts) + len(self.aggregates) + forms
        letters = sum(
            _longest(key.domain) for key in self.parts if isinstance(key.domain, Category)
        )
        whole = [pick for pick in self.picks if not pick.fine and not pick.unknown]
        cells = sum(pick.groups * pick.domain.size for pick in whole)
        parts = 4 * PART_BYTES if self.unknown else 0
        return self.cells * (HELD * numbers + 8 * letters) + 4 * 8 * cells + parts

    @property
    def passes(self) -> int:
        """Return in how many passes over the rows people per unknown key are counted, a part of the
        keys in each.

        To count people, an engine keeps every pair of key and person. With a fifth of the keys at a
        time it needs a fifth of the memory. For stored columns of one table this takes little more
        time. Other sources are read once, because they would be joined again in each pass.
        """
        keys = [self.places[place] for place in self.unknown]
        stored = isinstance(self.source, Scan) and all(isinstance(key, ColumnOf) for key in keys)
        readings = (*self.readings, *self.people.readings)
        people = any(isinstance(each, Persons | Distinct) for each in readings)
        return PASSES if keys and stored and people else 1

    def in_passes(self, query: Aggregate) -> tuple[Aggregate, ...]:
        """Return a query with unknown keys as one query for each part of the keys."""
        passes = self.passes
        if passes == 1:
            return (query,)
        keys = [self.places[place] for place in self.unknown]
        part = call("hash", *keys) % passes
        return tuple(
            replace(query, where=(*query.where, part.equals(number))) for number in range(passes)
        )

    @property
    def people(self) -> Aggregate:
        """Return the query that counts people per unknown key, for the threshold."""
        test = self.threshold_test
        reads = () if test is None else test.reads
        keys = tuple(self.places[place] for place in self.unknown)
        nullable = [self.parts[place].nullable for place in self.unknown]
        without_null = tuple(index for index, each in enumerate(nullable) if not each)
        return Aggregate(self.source, keys, reads, self.conditions, without_null)

    @property
    def sums(self) -> Aggregate:
        """Return the query of all sums: at most one row per group leaves the engine."""
        return Aggregate(
            self.source, self.places, self.readings, self.conditions, self.public_places
        )

    def rows_in(self, pick: Pick) -> Aggregate:
        """Return the query that counts rows per group and cell of a pick's grid."""
        conditions = self.conditions
        if pick.condition is not None:
            conditions = (*conditions, pick.condition)
        keys = (*self.places, pick.cell)
        without_null = (*self.public_places, len(self.places))
        return Aggregate(self.source, keys, (Sum(),), conditions, without_null)

    def near(self, pick: Pick, choices: Sequence[Nearby]) -> Nearest:
        """Return the query that counts rows in the cells near the rank of each choice."""
        return count_near(self.rows_in(pick), choices, groups=pick.groups)

    @property
    def public_places(self) -> tuple[int, ...]:
        """Return the places of the public keys. A row whose position is NULL belongs to no group; a
        NULL that is a key has a position.
        """
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Key | Joint))

    @property
    def queries(self) -> Iterator[Numbers]:
        """Yield every query that the engine may be asked, so that each can be checked before the
        charge.
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
        """Return what is read, without the keys: the rows, and the sums of them."""
        sums = tuple((each.reads, each.forms) for each in self.statistics if each.estimates)
        return self.source, self.conditions, sums


def _longest(domain: Category) -> int:
    """Return the letters of the longest value of a domain."""
    return max((len(str(value)) for value in domain.values), default=0)
