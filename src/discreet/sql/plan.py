"""A Plan: what will be read, what will be noised, what runs after. A value; printable; it has seen
no data.

Block       one aggregation of private rows: its keys, and the statistics and picks that are made in
            each group
Statistic   numbers that get noise of one scale: what is read, how far one person moves it, what is
            computed of it
Pick        a value that is chosen (`sql.picks`)
after       SQL over the noisy tables and the public ones, for everything that stands above the
            aggregation
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrow
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
from discreet.mechanisms.shapes import Keys, Nearby, nearby
from discreet.policy.policy import Policy
from discreet.sql.after.again import Again
from discreet.sql.after.error_bars import HalfWidth
from discreet.sql.after.estimates import Estimate, as_written, number_type
from discreet.sql.after.linear import Form
from discreet.sql.check.checker import Checker
from discreet.sql.check.norms import Bound
from discreet.sql.nearest import nearest
from discreet.sql.picks import Pick
from discreet.sql.sensitivity import Sensitivity
from discreet.sql.text.parse import quoted
from discreet.sql.values.unify import flag_as_number
from discreet.sql.values.value import (
    Coded,
    Day,
    Domain,
    Flag,
    Moment,
    Number,
    Text,
    careful,
    widened,
)

MOST_DIGITS = 40  # of the position of a key in its domain
PublicDomain = Number | Coded | Flag | Day | Moment
PEOPLE = "people per key"  # what a threshold tests where no aggregate counts people
PASSES = 5  # in which people are counted for unknown keys
HELD = 64  # bytes for each number of each group: exact, noisy, estimated, and in the answer
# of exact rows with unknown keys that are held at once
PART_BYTES, MOST_PART_ROWS = (1 << 24, 1 << 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A group key whose values are public: the engine gives its position, `labels` says what stands
    there.
    """

    domain: PublicDomain
    nullable: bool

    @property
    def size(self) -> int:
        return self.domain.size + self.nullable

    def labels(self) -> pa.Array:
        domain = self.domain
        null: list[Any] = [None] if self.nullable else []
        match domain:
            case Number():
                kind = number_type(domain.step, domain.largest)
                return arrow.array(
                    [
                        as_written(domain.at(units), kind)
                        for units in range(domain.lo, domain.hi + 1)
                    ]
                    + null,
                    kind,
                )
            case Coded(values=values):
                return arrow.array([*values, *null])
            case Flag():
                return arrow.array([False, True, *null])
            case Day():
                days = [domain.at(index) for index in range(domain.size)]
                if domain.stamp:
                    return arrow.array(
                        [datetime(day.year, day.month, day.day) for day in days] + null,
                        pa.timestamp("us"),
                    )
                return arrow.array(days + null, pa.date32())
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        return arrow.array(
            [domain.lo + step * index for index in range(domain.size)] + null, pa.timestamp("us")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Public keys taken together: `cells` are the places of their grid that can be, and no other
    group is noised.
    """

    keys: tuple[Key, ...]
    cells: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.cells)

    def labels(self) -> list[pa.Array]:
        """What stands in each of the keys, group by group."""
        places = np.unravel_index(
            np.array(self.cells, dtype=np.int64), [key.size for key in self.keys]
        )
        return [
            key.labels().take(arrow.array(place))
            for key, place in zip(self.keys, places, strict=True)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A group key whose values are not public: text, or more public values than the policy allows
    as groups.

    The engine gives the value itself (for numbers and dates its position in `domain`).
    """

    domain: PublicDomain | Text
    nullable: bool

    @property
    def letters(self) -> int:
        """How many letters a key has at most, as text."""
        return self.domain.letters if isinstance(self.domain, Text) else MOST_DIGITS

    def labels(self, values: pa.ChunkedArray) -> pa.Array:
        """What surviving keys look like to people."""
        if isinstance(self.domain, Text):
            short = values.nbytes < 2**30 and pa.types.is_large_string(values.type)
            return (values.cast(pa.string()) if short else values).combine_chunks()
        labels = [None if value is None else int(value) for value in values.to_pylist()]
        size = self.domain.size
        known = self.domain
        if isinstance(known, Number):
            kind = number_type(known.step, known.largest)
            return arrow.array(
                [
                    None if v is None or v == size else as_written(known.at(known.lo + v), kind)
                    for v in labels
                ],
                kind,
            )
        if isinstance(known, Moment):
            step = timedelta(microseconds=int(known.step * 1_000_000))
            return arrow.array(
                [None if v is None or v == size else known.lo + step * v for v in labels],
                pa.timestamp("us"),
            )
        places = arrow.array([size if place is None else place for place in labels], pa.int64())
        return Key(domain=known, nullable=True).labels().take(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """Numbers that get noise of one scale, with all that belongs to them; what noise that is, an
    offer says by `id`.

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
    estimates: tuple[tuple[int, Estimate], ...] = ()
    tested: bool = False
    # Each aggregate that is computed from them, and what 1 is in its own units; no part of what is
    # measured (S10).
    units: tuple[tuple[str, Fraction], ...] = field(default=(), repr=False)
    id: str = ""  # what it is known by (`sql.identity`)

    def over(self, readings: Sequence[Reading]) -> tuple[tuple[int, ...], ...]:
        """The forms as factors of all that a query reads."""
        own = [dict(zip(self.reads, form, strict=True)) for form in self.forms]
        if not set(self.reads) <= set(readings):
            raise Unproved("A statistic was to be made of what is not read: nothing is asked.")
        return tuple(tuple(form.get(reading, 0) for reading in readings) for form in own)

    @property
    def told(self) -> dict[Fraction, str]:
        """The aggregates by what 1 is in their units: SUM(age) and SUM(age * 2) are one number,
        told twice.
        """
        found: dict[Fraction, list[str]] = {}
        for name, unit in self.units or ((self.name, Fraction(1)),):
            found.setdefault(unit, []).append(name)
        return {unit: ", ".join(names) for unit, names in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A block whose numbers are measured for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """A block that reads the same as an earlier one: measured once, used twice."""

    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledUp:
    """A block whose statistics are sums over the cells of another block's, after noise; picks are
    its own.
    """

    block: int
    keys: tuple[int, ...]  # which of that block's keys are this one's, in this one's order
    draws: int  # noisy numbers that are added up to one


Kind = Measured | Shared | RolledUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One aggregation of private rows, of which a noisy table of keys, aggregates and margins is
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
    def tested(self) -> Statistic | None:
        """What the threshold tests: people per unknown key. None where all keys are public."""
        return next((each for each in self.statistics if each.tested), None)

    @property
    def measured(self) -> tuple[Statistic, ...]:
        """The statistics that get noise by themselves: neither by a threshold nor in another
        block.
        """
        rolled = isinstance(self.kind, RolledUp)
        return () if rolled else tuple(each for each in self.statistics if not each.tested)

    @property
    def every(self) -> tuple[Statistic | Pick, ...]:
        """All that has an id of its own."""
        return (*self.statistics, *self.picks)

    @property
    def aggregates(self) -> dict[int, tuple[Statistic, Estimate] | Pick]:
        """What each aggregate of the statement is, by its number: an estimate of a statistic, or a
        pick.
        """
        found: dict[int, tuple[Statistic, Estimate] | Pick] = {
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
        """What is read for the statistics that are measured, each once."""
        return tuple(dict.fromkeys(reading for each in self.measured for reading in each.reads))

    @property
    def sizes(self) -> list[int]:
        """How many values each public key has."""
        return [key.size for key in self.keys if isinstance(key, Key | Joint)]

    @property
    def parts(self) -> tuple[Key | Unknown, ...]:
        """The keys one by one, as the noisy table has them."""
        parts = ((each.keys if isinstance(each, Joint) else (each,)) for each in self.keys)
        return tuple(key for each in parts for key in each)

    @property
    def cells(self) -> int:
        """The groups of public keys."""
        return math.prod(self.sizes)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Which keys are not public."""
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Unknown))

    @property
    def touching(self) -> Keys:
        """What one person has of the unknown keys: 1 in each of at most `touched`."""
        return Keys(most=self.touched, neighbors=self.neighbors)

    @property
    def key_letters(self) -> int:
        """How many letters one combination of unknown keys has at most (S21); a letter is up to
        four bytes.
        """
        return sum(key.letters for key in self.keys if isinstance(key, Unknown))

    @property
    def own_letters(self) -> int:
        """How many letters of keys one person can add to what the engine gives back: those of
        `touched` keys.
        """
        return self.touched * self.key_letters if self.unknown else 0

    @property
    def part_rows(self) -> int:
        """How many rows of what comes back with unknown keys may be held at once."""
        row = 4 * self.key_letters + 16 * (len(self.keys) + len(self.readings) + 1)
        return max(1, min(MOST_PART_ROWS, PART_BYTES // row))

    @property
    def held(self) -> int:
        """Bytes of what comes back, and of what is made of it, that are held at once in groups of
        public keys (S21).

        Measured, and rounded up. What there is of unknown keys is read in parts; how much of it
        stays follows from the keys that have left, and has a limit of its own (`Allowance`).
        """
        shown = (each for each in self.statistics if each.tested and each.estimates)
        forms = sum(len(each.forms) for each in (*shown, *self.measured))
        numbers = len(self.parts) + len(self.aggregates) + forms
        coded = [key.domain.values for key in self.parts if isinstance(key.domain, Coded)]
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
        """How many times the rows are read where people are counted for unknown keys, a part of the
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
        """A query with unknown keys, part by part of the keys."""
        if self.passes == 1:
            return (query,)
        part = call("hash", *(self.places[place] for place in self.unknown)) % self.passes
        return tuple(
            replace(query, where=(*query.where, part.equals(place))) for place in range(self.passes)
        )

    @property
    def people(self) -> Aggregate:
        """People per unknown key, for the threshold."""
        reads = () if self.tested is None else self.tested.reads
        keys = tuple(self.places[place] for place in self.unknown)
        known = tuple(
            index for index, place in enumerate(self.unknown) if not self.parts[place].nullable
        )
        return Aggregate(self.source, keys, reads, self.conditions, known)

    @property
    def sums(self) -> Aggregate:
        """What is added up: at most one row per group leaves the engine."""
        return Aggregate(
            self.source, self.places, self.readings, self.conditions, self.public_places
        )

    def rows_in(self, pick: Pick) -> Aggregate:
        """Rows per group and cell of a pick's grid."""
        conditions = (
            self.conditions if pick.condition is None else (*self.conditions, pick.condition)
        )
        known = (*self.public_places, len(self.places))
        return Aggregate(self.source, (*self.places, pick.cell), (Sum(),), conditions, known)

    def near(self, pick: Pick, choices: Sequence[Nearby]) -> Nearest:
        """The same of the cells near the wanted rank of each of these choices, with the ranks that
        they cover.
        """
        return nearest(self.rows_in(pick), choices, groups=pick.groups)

    @property
    def public_places(self) -> tuple[int, ...]:
        """The public keys: a NULL that is not meant belongs to no group of theirs."""
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Key | Joint))

    @property
    def queries(self) -> Iterator[Numbers]:
        """Everything that the engine may be asked for, at some epsilon: what can be tried before it
        is paid.
        """
        if self.unknown:
            yield self.in_passes(self.people)[0]
        if self.measured:
            yield self.in_passes(self.sums)[0]
        for pick in self.picks:
            near = nearby(pick.mechanisms("sum", Fraction(1)))
            yield self.near(pick, near) if near else self.rows_in(pick)

    @property
    def read(self) -> tuple[object, ...]:
        """The rows and what is made of them for estimates, whatever they are grouped by."""
        made = tuple((each.reads, each.forms) for each in self.statistics if each.estimates)
        return self.source, self.conditions, made


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the answer; `measured` says that its margins come behind all columns of the final
    table.
    """

    name: str
    measured: bool
    # (block, aggregate) where the column is an aggregate as it was measured
    estimate: tuple[int, int] | None
    # further ones that stand in the same column, as of grouping sets
    also: tuple[tuple[int, int], ...] = ()
    # of computed ones that are linear in noise: one, or one for each grouping
    forms: tuple[Form, ...] = ()

    simulated: bool = False  # computed, and not linear in noise: its margins are simulated
    noisy: bool = False  # computed from noisy numbers, in whatever way
    # where MARGIN made it: it has no margin itself, and needs none
    half_width: HalfWidth | None = None

    @property
    def told(self) -> bool:
        """Whether its margin can be told beforehand, for a number of rows if need be."""
        return self.measured and (self.estimate is not None or bool(self.forms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How several groupings of the same rows are had: which blocks they are, and what was weighed
    (S3).

    `together` and `apart` are mean margins over the groupings, up to a factor that depends on the
    amount: when some are added up from others' noisy numbers, and when each is measured. None where
    there was no choice: `why` tells.
    """

    blocks: tuple[int, ...]
    together: float | None
    apart: float
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that will happen to answer one question."""

    blocks: tuple[Block, ...]
    after: str
    # the columns of the only noisy table, where `after` does nothing but list them
    listed: tuple[str, ...] | None
    columns: tuple[Column, ...]
    # rows may have been left out after noise (HAVING, LIMIT, ...): coverage holds before that
    selected: bool
    public: tuple[str, ...]  # public tables that `after` reads
    # of several numbers: their half-widths are columns of `HALF_WIDTHS`
    combined: tuple[Form, ...] = ()
    ways: tuple[Way, ...] = ()
    # of the private tables that are read: what is beyond is in no answer
    max_rows: tuple[tuple[str, int], ...] = ()
    # the same statement on changed numbers, for margins of what is made of several rows
    again: Again | None = None
    today: date | None = None  # what CURRENT_DATE meant, where it was asked for
    probe: bool = False  # no row can come of it: only names and types are asked for


def empty_plan(columns: Sequence[tuple[str, pa.DataType]]) -> Plan:
    """A plan that reads nothing and costs nothing: no rows, under these names and of these
    types.
    """
    listed = ", ".join(
        f"CAST(NULL AS {_sql_type(kind)}) AS {quoted(name)}" for name, kind in columns
    )
    return Plan(
        blocks=(),
        after=f"SELECT {listed} WHERE FALSE",
        listed=None,
        columns=tuple(Column(name=name, measured=False, estimate=None) for name, _ in columns),
        selected=False,
        public=(),
        probe=True,
    )


def _sql_type(kind: pa.DataType) -> str:
    """The type of what runs after noise that gives this type of Arrow."""
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    named = {
        pa.bool_(): "BOOLEAN",
        pa.int32(): "INTEGER",
        pa.int64(): "BIGINT",
        pa.date32(): "DATE",
    }
    named |= {pa.float64(): "DOUBLE", pa.timestamp("us"): "TIMESTAMP"}
    return named.get(kind, "VARCHAR")


def arrow_type(domain: Domain) -> pa.DataType:
    """The type in which values of a domain are shown; of an identifier, text."""
    match domain:
        case Number():
            return number_type(domain.step, domain.largest)
        case Flag():
            return pa.bool_()
        case Day():
            return pa.timestamp("us") if domain.stamp else pa.date32()
        case Moment():
            return pa.timestamp("us")
        case Coded(values=values) if values and all(isinstance(each, int) for each in values):
            return pa.int64()
    return pa.string()


def prove(plan: Plan, policy: Policy) -> None:
    """Raise Unproved where a plan claims less than `check` derives from what will run (S24)."""
    checker = Checker(policy=policy)
    for block in plan.blocks:
        sizes = [None if isinstance(key, Unknown) else key.size for key in block.keys]
        checker.require_neighbors(block.neighbors, *(pick.neighbors for pick in block.picks))
        for each in block.measured:
            forms = each.over(block.sums.readings)
            checker.require(_claim(each), block.sums, forms, neighbors=block.neighbors, sizes=sizes)
        if block.unknown:
            if block.tested is None:
                raise Unproved(
                    "Keys that are not public were to be shown untested: nothing is asked."
                )
            people, keys = block.people, [None] * len(block.unknown)
            checker.require(
                _claim(block.tested),
                people,
                block.tested.forms,
                neighbors=block.neighbors,
                sizes=keys,
            )
            checker.require_touched(block.touched, people)
        for pick in block.picks:
            checker.require_rows(pick.rows, pick.groups, block.rows_in(pick), sizes=sizes)


def _claim(statistic: Statistic) -> Bound:
    far = statistic.sensitivity
    return Bound(l1=far.l1, l2_squared=far.l2_squared, linf=far.linf)


def key_position(value: Expression, domain: PublicDomain, *, nullable: bool) -> Expression:
    """A key's position among its public values; NULL comes last where it is meant."""
    match domain:
        case Number(lo=0) | Coded():
            position = value
        case Number(lo=lo):
            position = careful(widened(value, domain.largest) - lo)
        case Flag():
            position = flag_as_number(value)
        case Day(lo=first, grain="week") if (
            first.weekday()
        ):  # weeks that begin on another day than Monday
            position = careful(call("date_diff", "day", first, value) // 7)
        case Day(lo=first, grain=grain):
            position = careful(call("date_diff", grain, first, value))
        case Moment(lo=start, step=step):
            passed = call("epoch_us", value) - call("epoch_us", start)
            position = careful(passed // int(step * 1_000_000))
    return call("coalesce", position, domain.size) if nullable else position
