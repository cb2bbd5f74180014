"""A real source, prepared by a real curator, and beside it plain DuckDB on the bounded data.

The source is dirty: values beyond their range, unknown categories, NULLs, rows of nobody, people
with more rows than they may have, duplicates. What a snapshot made of it is decoded into plain
tables, on which the analyst's own SQL runs.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from discreet.algebra import OWNER
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.layout import PUBLIC
from discreet.policy.domain import (
    Booleans,
    Categories,
    Column,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Timestamps,
)
from discreet.policy.owners import Through
from discreet.policy.policy import Policy, Table
from discreet.sql.aggregates import AGGREGATES

from . import policies

Row = tuple[Any, ...]


# --- a dirty source -------------------------------------------------------------------------------


def tidy(policy: Policy, *, people: int, dice: random.Random) -> dict[str, pa.Table]:
    """Source tables as their policy describes them, without ties: NULL only where it is meant, no
    two days alike.
    """
    tables: dict[str, pa.Table] = {}
    keys: dict[tuple[str, str], dict[int, list[int]]] = {}
    for table in policy.tables.values():
        rows: list[dict[str, Any]] = []
        for owner in range(1, people + 1) if not table.public else ():
            own = [
                _row(table, owner, place, keys, dice, _meant)
                for place in range(dice.randint(0, table.max_rows))
            ]
            for column in table.columns.values():
                if isinstance(column.domain, Dates | Timestamps):
                    moments = _different(column.domain, len(own), dice)
                    own = [
                        row if row[column.name] is None else {**row, column.name: moment}
                        for row, moment in zip(own, moments, strict=True)
                    ]
            rows += own
        if not table.public:
            tables[table.name] = _table(rows, table)
    return tables


def _meant(column: Column, dice: random.Random) -> Any:
    if column.nullable and dice.random() < 0.15:
        return None
    match column.domain:
        case Integers() | Decimals() as domain:
            return _inside(domain, dice)[0]
        case Categories(values=values):
            return dice.choice(values)
        case Booleans():
            return dice.random() < 0.5
        case Dates() as domain:
            return domain.lo
        case Timestamps() as domain:
            return domain.lo
        case _:
            return dice.choice(["a", "b", "Ab"])


def _different(domain: Dates | Timestamps, count: int, dice: random.Random) -> list[Any]:
    size = domain.size
    gap = timedelta(days=1) if isinstance(domain, Dates) else timedelta(seconds=float(domain.step))
    return [domain.lo + gap * place for place in dice.sample(range(size), count)]


def dirty(policy: Policy, *, people: int, dice: random.Random) -> dict[str, pa.Table]:
    """Source tables with everything in them that a source should not have."""
    tables: dict[str, pa.Table] = {}
    keys: dict[tuple[str, str], dict[int, list[int]]] = {}
    for table in policy.tables.values():
        if table.public:
            continue
        rows: list[dict[str, Any]] = []
        for owner in range(1, people + 1):
            count = dice.choice([0, 1, table.max_rows, table.max_rows + 2])
            for place in range(count if table.max_rows > 1 else dice.choice([0, 1, 1, 1, 2])):
                rows.append(_row(table, owner, place, keys, dice, _value))
        rows += [dict(dice.choice(rows)) for _ in range(3)]
        rows += [_of_nobody(dice.choice(rows), table) for _ in range(4)]
        dice.shuffle(rows)
        tables[table.name] = _table(rows, table)
    return tables


def _table(rows: list[dict[str, Any]], table: Table) -> pa.Table:
    return pa.table(
        {
            name: _array([row[name] for row in rows], each.domain)
            for name, each in table.columns.items()
        }
    )


def _row(
    table: Table, owner: int, place: int, keys: Any, dice: random.Random, value: Any
) -> dict[str, Any]:
    row = {column.name: value(column, dice) for column in table.columns.values()}
    for column in table.columns.values():
        if isinstance(column.domain, Identifier):
            row[column.name] = owner * 100 + place
            keys.setdefault((table.name, column.name), {}).setdefault(owner, []).append(
                owner * 100 + place
            )
    if isinstance(table.owner, Through):
        own = keys.get((table.owner.table, table.owner.on), {}).get(owner, [-owner])
        row[table.owner.on] = dice.choice(own)
    else:
        row[str(table.owner)] = owner
    return row


def _of_nobody(row: dict[str, Any], table: Table) -> dict[str, Any]:
    key = table.owner.on if isinstance(table.owner, Through) else str(table.owner)
    return {**row, key: None}


def _value(column: Column, dice: random.Random) -> Any:
    if dice.random() < 0.1:
        return None
    domain = column.domain
    match domain:
        case Integers():
            return dice.choice(
                [domain.lo - 7, domain.hi + 7, domain.lo, domain.hi, *_inside(domain, dice)]
            )
        case Decimals():
            lo, hi = float(domain.lo), float(domain.hi)
            return dice.choice(
                [lo - 1.5, hi + 1e6, lo, hi, float("inf"), float("nan"), *_inside(domain, dice)]
            )
        case Categories(values=values):
            return dice.choice([*values, *values, "?" if isinstance(values[0], str) else -99])
        case Booleans():
            return dice.random() < 0.5
        case Dates():
            gap = dice.randint(-40, (domain.hi - domain.lo).days + 40)
            return domain.lo + timedelta(days=gap)
        case Timestamps():
            seconds = int((domain.hi - domain.lo).total_seconds())
            return domain.lo + timedelta(
                seconds=dice.randint(-4000, seconds + 4000), microseconds=123
            )
        case _:
            return dice.choice(["a", "b", "Ab", "", "ab c", "Ünï"])


def _inside(domain: Integers | Decimals, dice: random.Random) -> list[Any]:
    steps = [dice.randint(domain.first, domain.last) for _ in range(6)]
    if isinstance(domain, Integers):
        return steps
    return [float(step * domain.step) for step in steps]


def _array(values: list[Any], domain: Domain) -> pa.Array:
    match domain:
        case Integers() | Identifier() | Categories(values=(int(), *_)):
            return pa.array(values, pa.int64())
        case Decimals():
            return pa.array(values, pa.float64(), from_pandas=False)
        case Booleans():
            return pa.array(values, pa.bool_())
        case Dates():
            return pa.array(values, pa.date32())
        case Timestamps():
            return pa.array(values, pa.timestamp("us"))
    return pa.array(values, pa.string())


def opened(
    folder: Path,
    name: str,
    tables: dict[str, pa.Table],
    *,
    neighbors: str = "add_remove",
    accountant: str = "sum",
) -> Curator:
    """A curator of a policy, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.yaml"
    file.write_text(policies.text(name, neighbors, accountant), encoding="utf-8")
    policy = Policy.read(file)
    create_ledger(policy)
    return Curator(policy, tables={**tables, **policies.public(name)})


# --- plain DuckDB on what the snapshot holds ------------------------------------------------------


def plain(curator: Curator, folder: Path) -> Any:
    """The snapshot's rows as the analyst thinks of them: numbers, names, dates."""
    policy = curator.policy
    newest = SnapshotFolder(Path(policy.store)).snapshots()[-1].number
    copy = folder / "decoded.duckdb"
    shutil.copy(SnapshotFolder(Path(policy.store)).file(newest), copy)
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{copy}' AS snapshot (READ_ONLY)")
    for table in policy.tables.values():
        if table.public:
            connection.execute(
                f'CREATE VIEW "{table.name}" AS FROM snapshot.{PUBLIC}."{table.name}"'
            )
            continue
        owner = table.owner if isinstance(table.owner, str) else None
        columns = {column.name: decoded(column) for column in table.columns.values()}
        if owner is not None:
            columns = {**({} if owner in columns else {owner: ""}), **columns, owner: f'"{OWNER}"'}
        listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
        connection.execute(
            f'CREATE TABLE "{table.name}" AS SELECT {listed} FROM snapshot."{table.name}"'
        )
    connection.execute(
        "CREATE MACRO clamp(x, lo, hi) AS CASE WHEN x IS NULL THEN NULL ELSE least(greatest(x, lo), hi) END"
    )
    for member in AGGREGATES:
        if member.meaning:
            connection.execute(f"CREATE MACRO {member.meaning}")
    return connection


def decoded(column: Column) -> str:
    """SQL from a stored value to the value it stands for."""
    match column.domain:
        case Integers():
            return f"CAST({column.name} AS BIGINT)"
        case Decimals(step=step):
            digits = next(places for places in range(20) if (step * 10**places).denominator == 1)
            return f"CAST(CAST({column.name} AS DECIMAL(18, 0)) * {float(step)} AS DECIMAL(18, {digits}))"
        case Categories(values=values):
            shown = [f"'{value}'" if isinstance(value, str) else str(value) for value in values]
            return f"(CASE {column.name} {' '.join(f'WHEN {i} THEN {each}' for i, each in enumerate(shown))} END)"
    return column.name


# --- comparing ------------------------------------------------------------------------------------


def same(ours: Any, theirs: Any, tolerance: float = 1e-7) -> bool:
    """Equal, but for rounding in the last digits of floats, and for how a date is dressed; NaN is
    none of ours.
    """
    if isinstance(theirs, float) and not math.isfinite(theirs):
        return True
    if ours is None or theirs is None:
        return ours is None and theirs is None
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return bool(ours) == bool(theirs)
    if isinstance(ours, int | float | Decimal | Fraction) and isinstance(
        theirs, int | float | Decimal | Fraction
    ):
        return abs(float(ours) - float(theirs)) <= tolerance * (10 + abs(float(theirs)))
    if isinstance(ours, date | datetime) and isinstance(theirs, date | datetime):
        return _moment(ours) == _moment(theirs)
    return bool(ours == theirs)


def _moment(value: date | datetime) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def differences(
    ours: list[Row], theirs: list[Row], *, measured: list[bool], tolerance: float, blocks: int = 1
) -> list[str]:
    """Rows that are not in both. Groups with nobody in them are answered with zeros, and SUM of
    nothing is zero; groups whose key is a NULL that is not meant are not answered. Of several
    blocks, one may have nobody in a group.
    """
    empty = all if blocks == 1 else any
    found = []
    remaining = list(ours)
    for row in theirs:
        match = next(
            (each for each in remaining if _same_row(each, row, measured, tolerance)), None
        )
        if match is not None:
            remaining.remove(match)
        elif None not in [value for value, number in zip(row, measured, strict=True) if not number]:
            found.append(f"only plain: {row}")
    for row in remaining:
        if not any(measured) or not empty(
            value in (0, None) for value, number in zip(row, measured, strict=True) if number
        ):
            found.append(f"only ours: {row}")
    return found


def _same_row(ours: Row, theirs: Row, measured: list[bool], tolerance: float) -> bool:
    return all(
        same(a, b, tolerance) or (number and b is None and a == 0)
        for a, b, number in zip(ours, theirs, measured, strict=True)
    )


# --- picks ----------------------------------------------------------------------------------------

_PICKS = (
    exp.Median,
    exp.Quantile,
    exp.PercentileCont,
    exp.PercentileDisc,
    exp.Min,
    exp.Max,
    exp.Mode,
)


def with_lists(sql: str) -> tuple[str, list[tuple[str, list[float]]]]:
    """The question with every pick replaced by the list of what it picks from, and what each
    was.
    """
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    wanted: list[tuple[str, list[float]]] = []

    def replaced(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.WithinGroup):
            mode, order = isinstance(node.this, exp.Mode), node.expression.expressions[0]
            asked = [] if mode else _numbers(node.this.this)
            wanted.append(
                (
                    "mode" if mode else "quantile",
                    [1 - q for q in asked] if order.args.get("desc") else asked,
                )
            )
            return exp.func("list", order.this)
        if isinstance(node, _PICKS) and not isinstance(node.parent, exp.WithinGroup):
            kind = "mode" if isinstance(node, exp.Mode) else "quantile"
            fixed = {exp.Median: [0.5], exp.Min: [0.0], exp.Max: [1.0]}.get(type(node))
            q = node.args.get("quantile") or node.args.get("expression")
            wanted.append(
                (kind, fixed if fixed is not None else [] if kind == "mode" else _numbers(q))
            )
            return exp.func("list", node.this)
        return node

    return tree.transform(replaced).sql(dialect="duckdb"), wanted


def _numbers(node: exp.Expression) -> list[float]:
    items = node.expressions if isinstance(node, exp.Array) else [node]
    return [float(item.this) for item in items]


def rank_errors(
    picked: Any, values: list[Any] | None, kind: str, quantiles: list[float]
) -> Iterator[float]:
    """How many ranks each picked value is from where it should be; of a mode, how many rows short
    of the largest.
    """
    known = [value for value in values or [] if value is not None]
    if not known:
        return
    if kind == "mode":
        yield max(known.count(each) for each in known) - known.count(picked)
        return
    for value, q in zip(picked if isinstance(picked, list) else [picked], quantiles, strict=True):
        below, up_to = sum(each < value for each in known), sum(each <= value for each in known)
        yield max(0.0, below - q * len(known), q * len(known) - up_to)
