"""Choose whom an audit takes away: people who were named, who move the question most, who are alone
with a key, and others.

A question about one person does not change without anybody else: neighbors drawn at random would
show nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from discreet.algebra import owner_of
from discreet.engines.layout import OWNER
from discreet.engines.quoting import name
from discreet.engines.spelling import Spelling, by_place
from discreet.errors import UsageError
from discreet.policy.policy import Table
from discreet.sql.plan.block import Block

_SUMS = 4  # of a block, each with the people who move it most


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """At most `people`: those of these identifiers, then some of the rows of `matching`, then by
    what is `measured`.
    """

    people: int
    persons: tuple[str, ...]
    matching: tuple[Block, ...] | None
    measured: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody of the snapshot, and why they were chosen."""

    owner: Any
    reason: str


def choose(cursor: Any, tables: Sequence[Table], wanted: Targets) -> list[Person]:
    """Choose the people to take away, each once; `cursor` reads the snapshot's tables by their
    names.
    """
    found: dict[Any, str] = {}
    for owner, reason in _people_named(cursor, tables, wanted):
        found.setdefault(owner, reason)
    lists = [
        [(owner, reason) for owner in _read(cursor, sql)]
        for reason, sql in _searches(tables, wanted)
    ]
    for turn in zip_longest(*lists):
        for each in turn:
            if each is not None and len(found) < wanted.people:
                found.setdefault(*each)
    return [Person(owner=owner, reason=reason) for owner, reason in found.items()]


def _people_named(
    cursor: Any, tables: Sequence[Table], wanted: Targets
) -> Iterator[tuple[Any, str]]:
    for person in wanted.persons:
        sql = f"SELECT {name(OWNER)} FROM ({_owners(tables)}) WHERE CAST({name(OWNER)} AS VARCHAR) = ? LIMIT 1"
        row = cursor.execute(sql, [person]).fetchone()
        if row is None:
            raise UsageError(
                f"Nobody in the snapshot has the identifier {person}: name another --person."
            )
        yield row[0], "named"
    if wanted.matching is None:
        return
    parts = " UNION ALL ".join(
        f"SELECT {_owner(block)} AS o {_from(block)}" for block in wanted.matching
    )
    owners = _read(
        cursor, f"SELECT o FROM ({parts}) GROUP BY 1 ORDER BY random() LIMIT {wanted.people}"
    )
    if not owners:
        raise UsageError("No row of the snapshot meets --where: nobody can be taken away by it.")
    for owner in owners:
        yield owner, "chosen by --where"


def _searches(tables: Sequence[Table], wanted: Targets) -> Iterator[tuple[str, str]]:
    """Yield SELECTs of people, each with the reason to choose them, those who tell most first."""
    most = f"LIMIT {wanted.people}"
    spell = Spelling()
    for block in wanted.measured:
        rows = f"SELECT {_owner(block)} AS o {_from(block)}"
        for reading in block.readings[:_SUMS]:
            moved = spell.reading(reading, block.sums)
            yield (
                "moves it most",
                f"{rows} GROUP BY 1 ORDER BY abs({moved}) DESC NULLS LAST, random() {most}",
            )
        for pick in block.picks:
            place = spell.expression(pick.position)
            yield (
                "largest",
                f"{rows} GROUP BY 1 ORDER BY max({place}) DESC NULLS LAST, random() {most}",
            )
            yield "smallest", f"{rows} GROUP BY 1 ORDER BY min({place}) NULLS LAST, random() {most}"
        if block.places:
            keys = ", ".join(spell.all(block.places))
            each = f"SELECT {keys}, any_value({_owner(block)}) AS o, count(*) AS n {_from(block)}"
            yield (
                "rare key",
                f"SELECT o FROM ({each} {by_place(len(block.places))}) ORDER BY n, random() {most}",
            )
    everybody = f"SELECT {name(OWNER)} FROM ({_owners(tables)}) GROUP BY 1"
    yield "most rows", f"{everybody} ORDER BY count(*) DESC, random() {most}"
    yield "at random", f"{everybody} ORDER BY random() {most}"


def _from(block: Block) -> str:
    spell = Spelling()
    return f"FROM {spell.source(block.source)}{spell.where(block.conditions)}"


def _owner(block: Block) -> str:
    return Spelling().expression(owner_of(block.source))


def _owners(tables: Sequence[Table]) -> str:
    return " UNION ALL ".join(f"SELECT {name(OWNER)} FROM {name(table.name)}" for table in tables)


def _read(cursor: Any, sql: str) -> list[Any]:
    return [row[0] for row in cursor.execute(sql).fetchall() if row[0] is not None]
