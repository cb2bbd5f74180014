"""A Plan: what will be read, what will be noised, what runs after. A value; printable; it has seen no data.

Block         one exact SELECT over private rows: keys, sums
Measurement   integer combinations of those sums that get noise of one scale, with their sensitivities
Estimate      a column of the noisy table, computed from noisy numbers (post-processing, free)
after         SQL over the noisy tables and the public ones, for everything that stands above the aggregation
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pyarrow as pa

from discreet import arrow
from discreet.budget import Neighbors
from discreet.declaration import HIDDEN
from discreet.mechanisms.fine_quantile import FineQuantile
from discreet.sql import work
from discreet.sql.estimates import Estimate, as_written, number_type
from discreet.sql.linear import Form
from discreet.sql.nearest import nearest, steps
from discreet.sql.picks import Pick, Picked
from discreet.sql.sensitivity import Sensitivity
from discreet.sql.values import Coded, Day, Flag, Moment, Number, Text
from discreet.total import tried

MOST_DIGITS = 40  # of the position of a key in its domain
HALF_WIDTHS = f"{HIDDEN}half_widths"  # the table, of one row, of half-widths that are the same in every row
PublicDomain = Number | Coded | Flag | Day | Moment
PASSES = 5  # in which people are counted for unknown keys
PART_BYTES, MOST_PART_ROWS = 1 << 26, 1 << 17  # of exact rows with unknown keys that are held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A group key whose values are public: the engine gives its position, `labels` says what stands there."""

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
                    [as_written(domain.at(units), kind) for units in range(domain.lo, domain.hi + 1)] + null, kind
                )
            case Coded(values=values):
                return arrow.array([*values, *null])
            case Flag():
                return arrow.array([False, True, *null])
            case Day():
                days = [domain.at(index) for index in range(domain.size)]
                if domain.stamp:
                    return arrow.array(
                        [datetime(day.year, day.month, day.day) for day in days] + null, pa.timestamp("us")
                    )
                return arrow.array(days + null, pa.date32())
        step = timedelta(microseconds=int(domain.step * 1_000_000))
        return arrow.array([domain.lo + step * index for index in range(domain.size)] + null, pa.timestamp("us"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A group key whose values are not public: text, or more public values than the policy allows as groups.

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
                [None if v is None or v == size else as_written(known.at(known.lo + v), kind) for v in labels], kind
            )
        if isinstance(known, Moment):
            step = timedelta(microseconds=int(known.step * 1_000_000))
            return arrow.array(
                [None if v is None or v == size else known.lo + step * v for v in labels], pa.timestamp("us")
            )
        places = arrow.array([size if place is None else place for place in labels], pa.int64())
        return Key(domain=known, nullable=True).labels().take(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Numbers that get noise of one scale: `forms[i]` are the factors of the block's sums in the i-th of them."""

    name: str
    forms: tuple[tuple[int, ...], ...]
    sensitivity: Sensitivity
    additive: bool  # the numbers of a coarser group are the sums of its parts'; not so of distinct values
    # Each aggregate that is computed from them, and what 1 is in its own units; no part of what is measured (S10).
    units: tuple[tuple[str, Fraction], ...] = field(default=(), repr=False)

    @property
    def told(self) -> dict[Fraction, str]:
        """The aggregates by what 1 is in their units: SUM(age) and SUM(age * 2) are one number, told twice."""
        found: dict[Fraction, list[str]] = {}
        for name, unit in self.units or ((self.name, Fraction(1)),):
            found.setdefault(unit, []).append(name)
        return {unit: ", ".join(names) for unit, names in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    """Where a block's numbers come from that are not measured: sums over the cells of another block, after noise."""

    block: int
    keys: tuple[int, ...]  # which of that block's keys are this one's, in this one's order
    draws: int  # noisy numbers that are added up to one


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One aggregation of private rows. Its noisy table has columns k0, k1, ... and a0, a1, ... with margins m0, ..."""

    source: str
    owner: str
    rows: int
    touched: int  # unknown keys that one person can have
    neighbors: Neighbors
    conditions: tuple[str, ...]
    keys: tuple[Key | Unknown, ...]
    key_sql: tuple[str, ...]
    sums: tuple[str, ...]
    measurements: tuple[Measurement, ...]
    picks: tuple[Pick, ...]
    estimates: tuple[Estimate | Picked, ...]
    read: int = field(repr=False)  # rows of one person in `source`, before the conditions
    derived: tuple[str, ...]  # expressions over the noisy table's columns whose margins are asked for: d0, d1, ...
    one_shot: bool  # the first measurement counts people per unknown key, which is also what is tested
    same_as: int | None = None  # an earlier block that reads the same: measured once, used twice
    rolled: Rolled | None = None  # then sums and measurements are those of another block

    @property
    def sizes(self) -> list[int]:
        """How many values each public key has."""
        return [key.size for key in self.keys if isinstance(key, Key)]

    @property
    def cells(self) -> int:
        """The groups of public keys."""
        return math.prod(self.sizes)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Which keys are not public."""
        return tuple(index for index, key in enumerate(self.keys) if isinstance(key, Unknown))

    @property
    def key_letters(self) -> int:
        """How many letters one combination of unknown keys has at most (S21); a letter is up to four bytes."""
        return sum(key.letters for key in self.keys if isinstance(key, Unknown))

    @property
    def own_letters(self) -> int:
        """How many letters of keys one person can add to what the engine gives back: those of `touched` keys."""
        return self.touched * self.key_letters if self.unknown else 0

    @property
    def part_rows(self) -> int:
        """How many rows of what comes back with unknown keys may be held at once."""
        row = 4 * self.key_letters + 16 * (len(self.keys) + len(self.sums) + 1)
        return max(1, min(MOST_PART_ROWS, PART_BYTES // row))

    @property
    def passes(self) -> tuple[str, ...]:
        """Conditions that part what is read with unknown keys, by a hash of the keys: "" for all of it at once.

        To count people, an engine holds every pair of key and person. A fifth of the keys at a time takes a fifth of
        that memory. Of a table's own columns it takes little more time; what must be joined first is read at once.
        """
        plain = not any("(" in sql or "JOIN" in sql for sql in (self.source, *self.key_sql))
        if not self.unknown or not plain or not any("count(DISTINCT" in sql for sql in (*self.sums, self._tested)):
            return ("",)
        keys = ", ".join(self.key_sql[key] for key in self.unknown)
        return tuple(f"hash({keys}) % {PASSES} = {place}" for place in range(PASSES))

    @property
    def _tested(self) -> str:
        """People, for the threshold; where a person has one row, rows are people."""
        if self.one_shot:
            return self.sums[self.measurements[0].forms[0].index(1)]
        return "count(*)" if self.rows == 1 else f"count(DISTINCT {self.owner})"

    @property
    def people_query(self) -> str:
        """People per unknown key."""
        return self.people_in("")

    def people_in(self, part: str) -> str:
        """People per unknown key, in one of the passes."""
        keys = [f"{self.key_sql[key]} AS u{index}" for index, key in enumerate(self.unknown)]
        conditions = (*self.conditions, part) if part else self.conditions
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        missing = [f"u{i} IS NOT NULL" for i, key in enumerate(self.unknown) if not self.keys[key].nullable]
        select = work.select(self.read)
        inner = f"{select} {', '.join(keys)}, {self._tested} AS s0 FROM {self.source}{where}{_by_place(keys)}"
        return f"{select} * FROM ({inner}) WHERE {' AND '.join(missing)}" if missing else inner

    @property
    def query(self) -> str:
        """The exact SELECT: at most one row per group leaves the engine."""
        return self.query_in("")

    def query_in(self, part: str) -> str:
        """The exact SELECT, in one of the passes."""
        keys = [f"{sql} AS k{index}" for index, sql in enumerate(self.key_sql)]
        conditions = (*self.conditions, part) if part else self.conditions
        return self._select(keys, [f"{sql} AS s{index}" for index, sql in enumerate(self.sums)], conditions)

    def pick_query(self, pick: Pick) -> str:
        """Rows per group and cell of a pick's grid."""
        keys = [f"{sql} AS k{index}" for index, sql in enumerate((*self.key_sql, pick.cell))]
        return self._select(keys, ["count(*) AS s0"], self._conditions(pick))

    def near_query(self, pick: Pick, choices: Sequence[FineQuantile]) -> str:
        """The same of the cells near the wanted rank of each of these choices, with the ranks that they cover."""
        keys = [f"k{index}" for index in range(len(self.key_sql))]
        listed = [f"{sql} AS {key}" for sql, key in zip(self.key_sql, keys, strict=True)]
        conditions = self._conditions(pick)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        required = ["p", *(key for index, key in enumerate(keys) if index not in self.unknown)]
        select = work.select(self.read)
        inner = f"{select} {', '.join([*listed, f'{pick.cell} AS p'])} FROM {self.source}{where}"
        return nearest(
            f"{select} * FROM ({inner}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in required)}",
            keys=keys,
            nullable=[keys[index] for index in self.unknown],
            choices=choices,
            groups=pick.groups,
            read=self.read,
        )

    def _conditions(self, pick: Pick) -> tuple[str, ...]:
        return self.conditions if pick.condition is None else (*self.conditions, pick.condition)

    @property
    def queries(self) -> Iterator[str]:
        """Every SELECT that the engine may be asked for, at some epsilon: what can be tried before it is paid."""
        if self.unknown:
            yield self.people_in(self.passes[0])
        if self.measurements[self.one_shot :]:
            yield self.query_in(self.passes[0])
        for pick in self.picks:
            if pick.fine:
                choices = pick.mechanisms("sum", Fraction(1))
                yield self.near_query(pick, choices)  # type: ignore[arg-type]
            else:
                yield self.pick_query(pick)

    def seconds(self, letters: Mapping[str, int]) -> float:
        """How long the engine works on one person's rows at most, over all that this block reads (S21)."""
        times = max((steps(pick.domain.size, pick.groups) for pick in self.picks if pick.fine), default=1)
        return times * len(self.passes) * sum(work.seconds(sql, letters) for sql in self.queries)

    def _select(self, keys: list[str], sums: list[str], conditions: tuple[str, ...]) -> str:
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        select = work.select(self.read)
        if not keys:
            return f"{select} {', '.join(sums)} FROM {self.source}{where}"
        names = [f"k{index}" for index in range(len(keys))]
        inner = f"{select} {', '.join(keys + sums)} FROM {self.source}{where}{_by_place(keys)}"
        # Keys outside the public list (a NULL that is not meant) belong to no group; an unknown key may be NULL.
        required = [name for index, name in enumerate(names) if index not in self.unknown]
        return f"{select} * FROM ({inner}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in required) or 'TRUE'}"


def _by_place(keys: Sequence[str]) -> str:
    """GROUP BY of the first columns of a SELECT."""
    # Privacy: never by their names. A column of the rows that is called k0 would be grouped by instead of the key.
    return f" GROUP BY {', '.join(str(place + 1) for place in range(len(keys)))}"


def sharing(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks, with those that read the same as an earlier one marked; the margins they want may still differ."""
    seen: dict[str, int] = {}
    result = []
    for index, block in enumerate(blocks):
        first = seen.setdefault(_renumbered(block), index)
        result.append(block if first == index else replace(block, same_as=first))
    return tuple(result)


QUOTED_OR_ALIAS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\bt\d+\b""")


def _renumbered(block: Block) -> str:
    """What tells a block from others. Engine aliases are numbered through the statement; numbered from a block's own
    first, they compare equal. A 't5' in quotes is the analyst's, and no alias.
    """
    aliases: dict[str, str] = {}

    def renumbered(match: re.Match[str]) -> str:
        return match[0] if match[0][0] in "'\"" else aliases.setdefault(match[0], f"t{len(aliases)}")

    picks = [part for pick in block.picks for part in (pick.position, str(pick.condition))]
    parts = (block.source, block.owner, *block.conditions, "", *block.key_sql, "", *block.sums, "", *picks)
    bare = tuple(replace(pick, name="", position="", condition=None) for pick in block.picks)
    unnamed = tuple(replace(each, name="") for each in block.measurements)
    rest = replace(
        block, source="", owner="", conditions=(), key_sql=(), sums=(), measurements=unnamed, picks=bare, derived=()
    )
    return QUOTED_OR_ALIAS.sub(renumbered, "\0".join(parts)) + repr(rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of the answer; `measured` says that its margins come behind all columns of the final table."""

    name: str
    measured: bool
    estimate: tuple[int, int] | None  # (block, estimate) where the column is an aggregate as it was measured
    also: tuple[tuple[int, int], ...] = ()  # further ones that stand in the same column, as of grouping sets
    forms: tuple[Form, ...] = ()  # of computed ones that are linear in noise: one, or one for each grouping

    simulated: bool = False  # computed, and not linear in noise: its margins are simulated

    @property
    def told(self) -> bool:
        """Whether its margin can be told beforehand, for a number of rows if need be."""
        return self.measured and (self.estimate is not None or bool(self.forms))


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How several groupings of the same rows are had: which blocks they are, and what was weighed (S3).

    `together` and `apart` are mean margins over the groupings, up to a factor that depends on the amount: when some are
    added up from others' noisy numbers, and when each is measured. None where there was no choice: `why` tells.
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
    listed: tuple[str, ...] | None  # the columns of the only noisy table, where `after` does nothing but list them
    columns: tuple[Column, ...]
    selected: bool  # rows may have been left out after noise (HAVING, LIMIT, ...): coverage holds before that
    public: tuple[str, ...]  # public tables that `after` reads
    combined: tuple[Form, ...] = ()  # of several numbers: their half-widths are columns of `HALF_WIDTHS`
    ways: tuple[Way, ...] = ()
    max_rows: tuple[tuple[str, int], ...] = ()  # of the private tables that are read: what is beyond is in no answer

    def canonical(self) -> str:
        """The same for questions that mean the same: what is read, what is noised, what is shown (S10).

        What a statistic is called, after the words of the question, is no part of that.
        """
        unnamed = [
            replace(
                block,
                source=work.bare(block.source),
                conditions=tuple(map(work.bare, block.conditions)),
                key_sql=tuple(map(work.bare, block.key_sql)),
                sums=tuple(map(work.bare, block.sums)),
                measurements=tuple(replace(each, name="") for each in block.measurements),
                picks=tuple(_unmarked(each) for each in block.picks),
            )
            for block in self.blocks
        ]
        text = "\n".join([*map(repr, unnamed), self.after, *(column.name for column in self.columns)])
        return hashlib.sha256(text.encode()).hexdigest()


def _unmarked(pick: Pick) -> Pick:
    condition = None if pick.condition is None else work.bare(pick.condition)
    return replace(pick, name="", position=work.bare(pick.position), condition=condition)


def key_position(sql: str, domain: PublicDomain, *, nullable: bool) -> str:
    """Engine SQL of a key's position among its public values; NULL comes last where it is meant."""
    match domain:
        case Number(lo=0) | Coded():
            position = sql
        case Number(lo=lo):
            wide = "BIGINT" if domain.largest < 2**62 else "HUGEINT"
            position = tried(f"CAST({sql} AS {wide}) - ({lo})")
        case Flag():
            position = f"(CASE WHEN {sql} THEN 1 WHEN NOT {sql} THEN 0 END)"
        case Day(lo=first, grain=grain):
            position = tried(f"date_diff('{grain}', DATE '{first.isoformat()}', {sql})")
        case Moment(lo=start, step=step):
            passed = f"epoch_us({sql}) - epoch_us(TIMESTAMP '{start.isoformat(sep=' ')}')"
            position = tried(f"({passed}) // {int(step * 1_000_000)}")
    return f"coalesce({position}, {domain.size})" if nullable else position


def table_name(block: int) -> str:
    """What runs after noise calls the block's noisy table: a name that no table of a policy can have."""
    return f"{HIDDEN}{block}"
