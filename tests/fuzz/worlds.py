"""Policies to fuzz, and for each a few databases in stored form: empty, a background, and neighbors
of the background.

One in-memory engine holds all of a world's databases, each in a schema of its own; a question's
exact SELECTs, which name no schema, run on each through a cursor that looks there. Extreme values,
NULLs and full rows are common.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from discreet.engines.duckdb.locked import OUTER_JOINS, STATISTICS
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.duckdb.workbench import Workbench
from discreet.examples.town import POLICY, STATES
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

EMPTY, BACKGROUND = "nobody", "background"

# Few keys, so that no question is about a million groups: what takes long is then long for its
# size.
TOWN = POLICY.replace("STATES", ", ".join(f'"{code}"' for code, _, _ in STATES[:6])).replace(
    "memory: 2GB}", "memory: 2GB, keys: 2000}"
)
SHOP = """\
unit: person
neighbors: NEIGHBORS
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age:       {integer: [-3, 7]}
      income:    {decimal: [-50.5, 20], step: 0.5, nullable: true}
      sex:       {values: [F, M], nullable: true}
      level:     {values: [1, 2, 10]}
      smoker:    {boolean: true, nullable: true}
      born:      {date: [1969-12-20, 1970-02-03]}
      name:      {text: true, nullable: true}
      zip:       text
  visits:
    owner: person_id
    max_rows: 3
    max_groups: 2
    columns:
      visit_id:  {identifier: true}
      person_id: {identifier: true}
      day:       {date: [2023-12-30, 2024-03-01], nullable: true}
      seen:      {timestamp: ["1969-12-31 22:30:00", "1970-01-01 01:30:00"], step: 1s}
      cost:      {integer: [1, 9]}
      clinic:    {values: [Hill, Harbor]}
      note:      text
      big:       {integer: [-4000000000000000000, 4500000000000000000]}
  labs:
    owner: {through: visits, on: visit_id}
    max_rows: 4
    columns:
      visit_id:  {identifier: true}
      test:      {values: [a, b, c]}
      value:     {decimal: [-1, 1], step: 0.25}
  states: {public: true}
  days: {public: true}
budget: {epsilon: 4, delta: 1e-6, accountant: ACCOUNTANT}
limits: {epsilon: 1, seconds: 60, memory: 1GB, keys: KEYS}
analysts:
  alice: {epsilon: 4}
"""


def shop(neighbors: str, accountant: str, keys: int) -> str:
    return (
        SHOP.replace("NEIGHBORS", neighbors)
        .replace("ACCOUNTANT", accountant)
        .replace("KEYS", str(keys))
    )


def drawn(source: random.Random) -> str:
    """The shop with other ranges, steps, numbers of rows, and nullable columns."""
    low, money, rows = (
        source.choice((-(10**6), -3, 0, 1, 17)),
        source.choice((-20, 0, 5)),
        source.randint(1, 5),
    )
    text = shop(
        source.choice(("add_remove", "change_one")),
        source.choice(("sum", "zcdp")),
        source.choice((3, 50, 2000)),
    )
    for old, new in {
        "[-3, 7]": f"[{low}, {low + source.choice((1, 2, 30, 10**7))}]",
        "[-50.5, 20], step: 0.5": f"[{money}, {money + source.choice((1, 10, 999))}], step: {source.choice((0.01, 1))}",
        "[-1, 1], step: 0.25": source.choice(
            ("[0, 1], step: 1", "[-10, 0], step: 0.1", "[0, 5], step: 2.5")
        ),
        "[1969-12-20, 1970-02-03]": source.choice(
            ("[1900-01-01, 2030-12-31]", "[2024-02-28, 2024-03-01]")
        ),
        "max_rows: 3\n    max_groups: 2": f"max_rows: {rows}\n    max_groups: {source.randint(1, rows)}",
        "max_rows: 4\n    columns": f"max_rows: {source.randint(1, 9)}\n    columns",
    }.items():
        assert old in text
        text = text.replace(old, new)
    return re.sub(", nullable: true", lambda _: source.choice(("", ", nullable: true")), text)


POLICIES: dict[str, str | Callable[[random.Random], str]] = {
    "town": TOWN,
    "town, change_one, zcdp": TOWN.replace("add_remove", "change_one").replace(
        "{epsilon: 4, delta: 1e-9}", "{epsilon: 4, delta: 1e-9, accountant: zcdp}"
    ),
    "shop": shop("add_remove", "sum", 5000),
    "shop, change_one": shop("change_one", "sum", 5000),
    "shop, zcdp": shop("add_remove", "zcdp", 5000),
    "shop, zcdp, few keys": shop("add_remove", "zcdp", 20),
    "shop, drawn": drawn,
}

PUBLIC = {
    "states": pa.table(
        {
            "state": [code for code, _, _ in STATES[:6]],
            "region": [region for _, region, _ in STATES[:6]],
            "population": [int(each) * 1000 for _, _, each in STATES[:6]],
            "level": [1, 2, 2, None, 10, 7],
            "share": [0.5, 0.25, 0.25, None, 1e6, -1.5],
        }
    ),
    "days": pa.table(
        {
            "day": pa.array([datetime(2024, 1, d).date() for d in (1, 2, 2, 3)]),
            "holiday": [True, False, True, None],
            "clinic": ["Hill", "Harbor", "Hill", None],
            "cost": [1, 2, 3, 3],
        }
    ),
}


@dataclass(frozen=True, kw_only=True)
class World:
    """A policy with its public tables and databases; `pairs` are the neighbors to be compared."""

    name: str
    text: str
    policy: Policy
    public: dict[str, pa.Table]
    evaluate: Callable[[str], pa.Table]
    workbench: Workbench
    cursors: dict[str, Any]
    literal: Any  # the background's, for statements as they are written: nothing is optimized
    pairs: tuple[tuple[str, str], ...]


def world(name: str, source: random.Random) -> World:
    """A policy's world with fresh databases."""
    given = POLICIES[name]
    text = given if isinstance(given, str) else given(source)
    policy = Policy.parse(text, path=Path(tempfile.gettempdir()) / "fuzz.yaml")
    public = {each: PUBLIC[each] for each, table in policy.tables.items() if table.public}
    workbench = Workbench()
    types, stored = _stored(policy, public)
    people = {f"p{index}": source.choice(_SHAPES) for index in range(3)}
    other = [{"q": shape} for shape in source.sample(_SHAPES, 3)]
    rows = {
        who: _person(policy, index, shape, source)
        for index, (who, shape) in enumerate(people.items())
    }
    extra = [_person(policy, 50, each["q"], source) for each in other]
    databases: dict[str, list[dict[str, list[dict[str, Any]]]]] = {
        EMPTY: [],
        BACKGROUND: list(rows.values()),
    }
    databases |= {f"with {index}": [*rows.values(), each] for index, each in enumerate(extra)}
    databases["without one"] = list(rows.values())[1:]
    databases["alone"] = [extra[0]]
    config = {
        "disabled_optimizers": f"{OUTER_JOINS},{STATISTICS}",
        "threads": 1,
        "memory_limit": "1GB",
        "preserve_insertion_order": "false",
    }
    connection = duckdb.connect(config=config)
    connection.execute("CREATE SCHEMA public_tables")
    for table, content in stored.items():
        connection.register("#stored", content)
        connection.execute(f'CREATE TABLE public_tables."{table}" AS FROM "#stored"')
        connection.unregister("#stored")
    cursors = {}
    for database, persons in databases.items():
        schema = database.replace(" ", "_")
        connection.execute(f"CREATE SCHEMA {schema}")
        for table, columns in types.items():
            listed = ", ".join(f'"{column}" {kind}' for column, kind in columns.items())
            connection.execute(f'CREATE TABLE {schema}."{table}" ({listed})')
            content = [
                [row[column] for column in columns] for person in persons for row in person[table]
            ]
            source.shuffle(content)
            if content:
                marks = ", ".join("?" for _ in columns)
                connection.executemany(f'INSERT INTO {schema}."{table}" VALUES ({marks})', content)
        cursors[database] = connection.cursor()
        cursors[database].execute(f"SET schema = '{schema}'")
    literal = connection.cursor()
    literal.execute(f"SET schema = '{BACKGROUND.replace(' ', '_')}'")
    literal.execute("PRAGMA disable_optimizer")
    pairs = [(EMPTY, "alone"), (BACKGROUND, "without one")]
    pairs += [(BACKGROUND, f"with {index}") for index in range(3)]
    if policy.neighbors == "change_one":
        pairs += [("with 0", "with 1"), ("with 0", "with 2"), ("with 1", "with 2")]
    return World(
        name=name,
        text=text,
        policy=policy,
        public=stored,
        evaluate=lambda sql: workbench.run(sql, stored, seconds=60),
        workbench=workbench,
        cursors=cursors,
        literal=literal,
        pairs=tuple(pairs),
    )


def _stored(
    policy: Policy, public: dict[str, pa.Table]
) -> tuple[dict[str, dict[str, str]], dict[str, pa.Table]]:
    """The types of stored columns, and public tables as stored: those of a snapshot of nobody."""
    empty: dict[str, Any] = dict(public)
    for table in policy.tables.values():
        if not table.public:
            names = {
                *table.columns,
                table.owner.on if isinstance(table.owner, Through) else str(table.owner),
            }
            empty[table.name] = pa.table(
                {name: pa.array([], _source_type(table, name)) for name in sorted(names)}
            )
    with tempfile.TemporaryDirectory() as folder:
        prepare(policy, empty, Path(folder) / "store", 1)
        with duckdb.connect(
            str(SnapshotFolder(Path(folder) / "store").file(1)), read_only=True
        ) as connection:
            types = {
                table: {
                    row[0]: row[1] for row in connection.sql(f'DESCRIBE main."{table}"').fetchall()
                }
                for table in policy.tables
                if table not in public
            }
            tables = {
                table: connection.sql(
                    f'SELECT * FROM public_tables."{table}" ORDER BY ALL'
                ).to_arrow_table()
                for table in public
            }
    return types, tables


def _source_type(table: Table, name: str) -> pa.DataType:
    domain = table.columns[name].domain if name in table.columns else Identifier()
    match domain:
        case Integers() | Identifier():
            return pa.int64()
        case Decimals():
            return pa.decimal128(20, 2)
        case Booleans():
            return pa.bool_()
        case Dates():
            return pa.date32()
        case Timestamps():
            return pa.timestamp("us")
    return pa.string()


# --- people ---------------------------------------------------------------------------------------

_SHAPES = ("low", "high", "any", "any", "ends", "ends", "nulls", "spread", "spread")
_TEXTS = (
    "",
    "a",
    "b",
    "Karrie Ames",
    "02138",
    "%",
    "ä",
    "a" * 300,
    "ab " * 400,
    "t1",
    "it's",
    "\t",
    "12",
    "-0",
)


def _person(
    policy: Policy, number: int, shape: str, source: random.Random
) -> dict[str, list[dict[str, Any]]]:
    """All rows of one person, in stored form."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in policy.tables.values():
        if table.public:
            continue
        full = shape in ("low", "high", "spread", "ends")
        count = table.max_rows if full else source.choice((0, 1, 1, table.max_rows))
        rows[table.name] = []
        for index in range(count):
            row = {
                name: _value(column, shape, index, source) for name, column in table.columns.items()
            }
            row |= {"#owner": number, **_identifiers(table, number, index)}
            rows[table.name].append(row)
    return rows


def _identifiers(table: Table, number: int, index: int) -> dict[str, int]:
    """Keys that lead to their owner: visits of one person have numbers that nobody else's have."""
    through = isinstance(table.owner, Through)
    own = {
        name: 100 * number + index % 3
        for name, each in table.columns.items()
        if isinstance(each.domain, Identifier)
    }
    return own if through or not isinstance(table.owner, str) else {**own, table.owner: number}


def _value(column: Column, shape: str, index: int, source: random.Random) -> Any:
    if shape == "nulls" and source.random() < 0.7:
        return None
    if shape in ("any", "ends", "spread") and source.random() < 0.08:
        return None
    domain = column.domain
    match domain:
        case Integers() | Decimals():
            ends = (domain.first, domain.last)
            inside = [min(max(each, ends[0]), ends[1]) for each in (0, 1, -1)] + [
                source.randint(*ends)
            ]
            return _pick(ends, inside, shape, index, source)
        case Categories():
            return _pick(
                (0, len(domain.values) - 1), range(len(domain.values)), shape, index, source
            )
        case Booleans():
            return _pick((False, True), (False, True), shape, index, source)
        case Dates():
            gap = (domain.hi - domain.lo).days
            days = [domain.lo + timedelta(days=source.randint(0, gap)) for _ in range(3)]
            return _pick((domain.lo, domain.hi), days, shape, index, source)
        case Timestamps():
            gap = int((domain.hi - domain.lo).total_seconds())
            moments = [domain.lo + timedelta(seconds=source.randint(0, gap)) for _ in range(3)]
            return _pick((domain.lo, domain.hi), moments, shape, index, source)
    return source.choice(_TEXTS) if shape != "spread" else _TEXTS[index % len(_TEXTS)]


def _pick(ends: tuple[Any, Any], inside: Any, shape: str, index: int, source: random.Random) -> Any:
    match shape:
        case "low":
            return ends[0]
        case "high":
            return ends[1]
        case "ends":
            return source.choice(ends)
        case "spread":
            return [*ends, *inside][index % (2 + len(inside))]
    return source.choice([*ends, *inside])
