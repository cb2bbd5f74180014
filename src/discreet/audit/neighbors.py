"""A snapshot and its neighbors, to be asked the same exact questions: for the curator's own eyes.

Neighbors are views over the snapshot's file, which stays as it is: without one of its people (see
`chosen`), and with one person more, who has as many rows as the policy allows, each at an end of
its range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from discreet.algebra import Numbers
from discreet.audit.chosen import Person, Targets, choose
from discreet.engines.duckdb.locked import connect
from discreet.engines.layout import OWNER, PUBLIC, private, public, snapshot_columns, snapshot_file
from discreet.engines.limits.watch import interrupt_after
from discreet.engines.quoting import literal, name
from discreet.engines.source import engine_errors
from discreet.engines.spelling import Spelling
from discreet.errors import UsageError
from discreet.policy.domain import (
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Identifier,
    Integers,
    Timestamps,
)
from discreet.policy.policy import Policy, Table

HERE = "the data"
SHAPES = ("low", "high", "spread")
_INTEGERS = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighborhood:
    """Databases by name, `pairs` of neighbors among them, and their exact answers, each read
    once.
    """

    pairs: tuple[tuple[str, str], ...]
    seconds: float
    cursors: Mapping[str, Any] = field(repr=False)
    read: dict[tuple[str, Numbers], pa.Table] = field(default_factory=dict, repr=False)

    def fetch(self, database: str, query: Numbers) -> pa.Table:
        if (database, query) not in self.read:
            if len(self.read) > 128:  # tables that need not all stay in memory
                self.read.clear()
            cursor = self.cursors[database]
            with engine_errors("An audit"), interrupt_after(self.seconds, cursor.interrupt):
                self.read[database, query] = cursor.sql(Spelling().numbers(query)).to_arrow_table()
        return self.read[database, query]


@contextmanager
def neighborhood(policy: Policy, number: int, *, wanted: Targets) -> Iterator[Neighborhood]:
    """Yield the neighbors of snapshot `number`: some of its persons taken away, and a few put
    in.
    """
    if policy.engine.name != "duckdb":
        raise UsageError(
            "An audit of a question needs the embedded engine: leave `engine` out of the policy."
        )
    with engine_errors("An audit"), connect(files=True, memory=policy.limits.memory) as connection:
        file = snapshot_file(policy.store, number)
        connection.execute(f"ATTACH {literal(str(file))} AS snapshot (READ_ONLY)")
        connection.execute(f"CREATE SCHEMA {PUBLIC}")
        private = [table for table in policy.tables.values() if not table.public]
        for table in policy.tables.values():
            if table.public:
                relation = public(table.name)
                connection.execute(f"CREATE VIEW {relation} AS FROM snapshot.{relation}")
        here = _database(connection, private, 0, "")
        with interrupt_after(float(policy.limits.seconds), here.interrupt):
            chosen = choose(here, private, wanted)
        _keep(connection, private, chosen)
        added = _add(connection, private)
        databases = {f"with one more, {shape}": (0, shape) for shape in added}
        databases |= {
            f"without person {at}, {each.reason}": (at, "")
            for at, each in enumerate(chosen, start=1)
        }
        if policy.neighbors == "change_one":
            databases |= {f"person 1 now {shape}": (1, shape) for shape in added if chosen}
        cursors = {HERE: here}
        cursors |= {
            each: _database(connection, private, *parts) for each, parts in databases.items()
        }
        pairs = [(HERE, each) for each in databases]
        if policy.neighbors == "change_one":
            pairs += (
                [("with one more, low", "with one more, high")]
                if "low" in added and "high" in added
                else []
            )
        yield Neighborhood(
            pairs=tuple(pairs), seconds=float(policy.limits.seconds), cursors=cursors
        )


def _keep(connection: Any, tables: list[Table], chosen: Sequence[Person]) -> None:
    """Copy the people who will be taken away into a table of their own."""
    owner = name(OWNER)
    connection.execute(
        f"CREATE TABLE main.chosen AS SELECT 0 AS place, {owner} FROM snapshot.{private(tables[0].name)} LIMIT 0"
    )
    for place, person in enumerate(chosen, start=1):
        connection.execute("INSERT INTO main.chosen VALUES (?, ?)", [place, person.owner])


def _database(connection: Any, tables: list[Table], without: int, with_: str) -> Any:
    """Create a schema of views: the snapshot without one of the chosen, with one of the added."""
    schema = name(f"database {without} {with_}")
    connection.execute(f"CREATE SCHEMA {schema}")
    for table in tables:
        rows = f"FROM snapshot.{private(table.name)}"
        if without:
            owner = name(OWNER)
            rows += (
                f" WHERE {owner} NOT IN (SELECT {owner} FROM main.chosen WHERE place = {without})"
            )
        if with_:
            rows += f" UNION ALL BY NAME FROM main.{_more(table, with_)}"
        connection.execute(f"CREATE VIEW {schema}.{name(table.name)} AS {rows}")
    cursor = connection.cursor()
    cursor.execute(f"SET schema = {literal(schema)}")
    return cursor


# --- people at the ends of every range ------------------------------------------------------------


def _more(table: Table, shape: str) -> str:
    return name(f"more {shape} {table.name}")


def _add(connection: Any, tables: list[Table]) -> tuple[str, ...]:
    """Create tables of the rows of each added person; none if nobody new can be named in the
    owner's type.
    """
    stored = {table.name: _types(connection, table) for table in tables}
    kinds = {types[OWNER] for types in stored.values()}
    if len(kinds) != 1 or not kinds <= {"VARCHAR", *_INTEGERS}:
        return ()
    owner = _new(connection, tables, OWNER, stored)
    for table in tables:
        rows = f"snapshot.{private(table.name)}"
        common = {
            column.name: connection.execute(
                f"SELECT mode({name(column.name)}) FROM {rows}"
            ).fetchone()[0]
            for column in table.columns.values()
            if stored[table.name][column.name] == "VARCHAR"
        }
        keys = {
            column.name: _new(connection, [table], column.name, stored)
            for column in table.columns.values()
            if isinstance(column.domain, Identifier)
        }
        for shape in SHAPES:
            connection.execute(f"CREATE TABLE {_more(table, shape)} AS FROM {rows} LIMIT 0")
            listed = ", ".join(name(each) for each in snapshot_columns(table))
            for place in range(table.max_rows):
                values = [
                    owner,
                    *(_value(each, shape, place, keys, common) for each in table.columns.values()),
                ]
                marks = ", ".join("?" for _ in values)
                connection.execute(
                    f"INSERT INTO {_more(table, shape)} ({listed}) VALUES ({marks})", values
                )
    return SHAPES


def _types(connection: Any, table: Table) -> dict[str, str]:
    rows = connection.execute(f"DESCRIBE snapshot.{private(table.name)}").fetchall()
    return {row[0]: row[1] for row in rows}


def _new(
    connection: Any, tables: list[Table], column: str, stored: dict[str, dict[str, str]]
) -> Any:
    """Return a value of an identifier that nobody has; NULL where its type has no obvious one."""
    kind = stored[tables[0].name][column]
    if kind == "VARCHAR":
        return "discreet audit"
    if kind not in _INTEGERS:
        return None
    largest = [
        connection.execute(
            f"SELECT max({name(column)}) FROM snapshot.{private(table.name)}"
        ).fetchone()[0]
        for table in tables
    ]
    return max((int(each) for each in largest if each is not None), default=0) + 1


def _value(
    column: Column, shape: str, place: int, keys: Mapping[str, Any], common: Mapping[str, Any]
) -> Any:
    domain = column.domain
    high = shape == "high" or (shape == "spread" and place % 2 == 1)
    match domain:
        case Integers() | Decimals():
            return domain.last if high else domain.first
        case Categories():
            return place % domain.size if shape == "spread" else (domain.size - 1) * high
        case Booleans():
            return high
        case Dates() | Timestamps():
            return domain.hi if high else domain.lo
        case Identifier():
            new = keys[column.name]
            if isinstance(new, int):
                return new + place
            if new is None:
                return None
            return f"{new} {place}"
    return common.get(column.name) if high else f"discreet audit {place}"
