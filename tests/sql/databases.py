"""Small databases at the edges of a policy: every value a lowest, a highest, a zero, a NULL, a
constant of a question.

Rows are made in stored form (steps of a grid, codes, owners), in tables of the types that
`engines.prepare` makes. A family is many databases in one: `background + nobody`, `background + one
person` for many persons; databases of the same background are neighbors, by add_remove with the
first, by change_one with each other.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from discreet.algebra import OWNER
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.layout import PUBLIC
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
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Table

from . import policies

BASE = 1_000  # owners of database d are d * BASE + person
Row = tuple[Any, ...]
Person = dict[str, list[Row]]  # rows in each private table, in the order of the policy's columns


@cache
def types(name: str) -> dict[str, dict[str, str]]:
    """The stored types of every private table: those of a real snapshot of an empty source."""
    policy = policies.policy(name)
    empty = {
        table.name: pa.table(
            {column: pa.array([], _source_type(table, column)) for column in table.columns}
        )
        for table in policy.tables.values()
        if not table.public
    } | policies.public(name)
    with tempfile.TemporaryDirectory() as folder:
        prepare(policy, empty, folder, 1)
        connection = duckdb.connect(str(SnapshotFolder(Path(folder)).file(1)))
        rows = connection.sql(
            "SELECT table_name, column_name, data_type FROM duckdb_columns()"
        ).fetchall()
        connection.close()
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        if table in policy.tables:
            found.setdefault(table, {})[column] = kind
    return found


def _source_type(table: Table, column: str) -> pa.DataType:
    match table.columns[column].domain:
        case Integers() | Identifier() | Categories(values=(int(), *_)):
            return pa.int64()
        case Decimals():
            return pa.float64()
        case Booleans():
            return pa.bool_()
        case Dates():
            return pa.date32()
        case Timestamps():
            return pa.timestamp("us")
    return pa.string()


# --- people ---------------------------------------------------------------------------------------


def edges(column: Column, constants: list[Any]) -> list[Any]:
    """The stored values worth trying: ends, around zero, around what questions compare with, and
    NULL.
    """
    domain = column.domain
    found: list[Any]
    match domain:
        case Integers() | Decimals():
            around = [step for value in constants for step in _steps(domain, value)]
            candidates = [
                domain.first,
                domain.last,
                domain.first,
                domain.last,
                0,
                1,
                -1,
                domain.first + 1,
                *around,
            ]
            found = [each for each in candidates if domain.first <= each <= domain.last]
        case Categories():
            found = list(range(domain.size))
        case Booleans():
            found = [True, False]
        case Dates():
            days = [
                domain.lo,
                domain.hi,
                *(domain.lo + timedelta(days=gap) for gap in (31, 180)),
                *_days(constants),
            ]
            found = [day for day in days if domain.lo <= day <= domain.hi]
        case Timestamps():
            step = timedelta(microseconds=domain.step_microseconds)
            found = [
                domain.lo,
                domain.hi,
                *(domain.lo + timedelta(seconds=s) // step * step for s in (3599, 90_000)),
            ]
        case Identifier():
            found = [1, 2]
        case _:
            found = ["a", "b", "Ab", ""]
    return [*found, None]


def _steps(domain: Integers | Decimals, value: Any) -> list[int]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    step = round(value / float(domain.step))
    return [step - 1, step, step + 1]


def _days(constants: list[Any]) -> list[date]:
    return [
        day
        for each in constants
        if isinstance(each, date)
        for day in (each, each - timedelta(days=1))
    ]


def person(policy: Policy, dice: random.Random, constants: list[Any], *, number: int) -> Person:
    """Somebody: no row up to max_rows in each table, often many rows alike, so that they add up in
    one group.
    """
    alike = dice.random() < 0.6
    full = dice.random() < 0.7
    found: Person = {}
    visits: dict[str, list[int]] = {}
    for table in policy.tables.values():
        if table.public:
            continue
        count = table.max_rows if full else dice.randint(0, table.max_rows)
        choices = {column.name: edges(column, constants) for column in table.columns.values()}
        first = {name: dice.choice(values) for name, values in choices.items()}
        rows = []
        for place in range(count):
            row = (
                dict(first)
                if alike
                else {name: dice.choice(values) for name, values in choices.items()}
            )
            for column in table.columns.values():
                if isinstance(column.domain, Identifier):
                    row[column.name] = _key(table, column.name, number, place, visits, dice)
            rows.append(tuple(row.values()))
        found[table.name] = rows
    return found


def _key(
    table: Table,
    column: str,
    number: int,
    place: int,
    keys: dict[str, list[int]],
    dice: random.Random,
) -> Any:
    if isinstance(table.owner, Through) and table.owner.on == column:
        own = keys.get(f"{table.owner.table}.{column}", [])
        return dice.choice(own) if own else number * 10 + 9
    made = number * 10 + place
    keys.setdefault(f"{table.name}.{column}", []).append(made)
    return made


# --- families -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Databases `background * size + place`; place 0 has nobody beside the background."""

    name: str
    backgrounds: int
    size: int
    databases: tuple[tuple[Person, ...], ...]
    connection: Any  # every database at once, owners numbered by database
    single: Any  # the same, one database at a time: SET VARIABLE db


def family(
    name: str, constants: list[Any], *, backgrounds: int, size: int, dice: random.Random
) -> Family:
    policy = policies.policy(name)
    databases: list[tuple[Person, ...]] = []
    number = 1
    for background in range(backgrounds):
        others = []
        for _ in range((0, 2, 3, 5)[min(background, 3)]):
            others.append(person(policy, dice, constants, number=number))
            number += 1
        databases.append(tuple(others))
        for _ in range(size - 1):
            databases.append((*others, person(policy, dice, constants, number=number)))
            number += 1
    connection, single = (
        duckdb.connect(config={"threads": 1}),
        duckdb.connect(config={"threads": 1}),
    )
    load(connection, name, databases)
    load(single, name, databases, one_at_a_time=True)
    return Family(
        name=name,
        backgrounds=backgrounds,
        size=size,
        databases=tuple(databases),
        connection=connection,
        single=single,
    )


def load(
    connection: Any, name: str, databases: list[tuple[Person, ...]], *, one_at_a_time: bool = False
) -> None:
    """Tables as a snapshot has them; with one_at_a_time, views of the rows of the database in the
    variable `db`.
    """
    policy = policies.policy(name)
    connection.execute(f"CREATE SCHEMA {PUBLIC}")
    for table, content in policies.public(name).items():
        connection.register("#public", content)
        connection.execute(f'CREATE TABLE {PUBLIC}."{table}" AS FROM "#public"')
        connection.unregister("#public")
    for table in policy.tables.values():
        if table.public:
            continue
        kinds = types(name)[table.name]
        rows = [
            (number * BASE + place, *row)
            for number, people in enumerate(databases)
            for place, each in enumerate(people)
            for row in each[table.name]
        ]
        listed = [OWNER, *(column for column in table.columns)]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(listed)
        content = pa.table(
            {
                column: pa.array(list(values), _arrow(kinds[column]))
                for column, values in zip(listed, columns, strict=True)
            }
        )
        connection.register("#rows", content)
        stored = f'"#all {table.name}"' if one_at_a_time else f'"{table.name}"'
        casts = ", ".join(f'CAST("{column}" AS {kinds[column]}) AS "{column}"' for column in listed)
        connection.execute(f'CREATE TABLE {stored} AS SELECT {casts} FROM "#rows"')
        connection.unregister("#rows")
        if one_at_a_time:
            connection.execute(
                f'CREATE VIEW "{table.name}" AS FROM {stored} WHERE "{OWNER}" // {BASE} = getvariable(\'db\')'
            )


_ARROW = {
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "VARCHAR": pa.string(),
}


def _arrow(kind: str) -> pa.DataType:
    return _ARROW.get(kind, pa.int64())


def constants_of(sqls: list[str]) -> list[Any]:
    """The constants that questions compare with, around which something may happen."""
    import re

    found: set[Any] = set()
    for sql in sqls:
        found |= {date.fromisoformat(each) for each in re.findall(r"'(\d{4}-\d\d-\d\d)'", sql)}
        found |= {float(each) for each in re.findall(r"(?<![\w.'])\d+(?:\.\d+)?(?![\w'-])", sql)}
    return sorted(found, key=str)
