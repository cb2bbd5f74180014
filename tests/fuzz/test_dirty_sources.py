"""Sources in which one person's rows are as odd as files allow: nobody else's prepared rows may
change for it (S4).

Each trial draws a few people, one of them odd, and writes them as Parquet files, CSV files, Arrow
chunks, a data frame or a DuckDB view, with and without the odd one. Either such a source is
refused, or the rows of all others are the same in both snapshots, to the letter. A refusal is told
to the curator alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.errors import EngineFailure, PolicyError, UsageError
from discreet.policy.policy import Policy

POLICY = """\
source: data
unit: person
budget: {epsilon: 1}
limits: {memory: 500MB}
tables:
  visits:
    owner: person
    max_rows: 3
    columns:
      cost: {integer: [0, 9], nullable: true}
      part: {decimal: [0, 5], step: 0.25, nullable: true}
      kind: {values: [x, y, "2138", "2138.0"], nullable: true}
      word: {text: true, nullable: true}
      day:  {date: [2024-01-01, 2024-12-31], nullable: true}
      well: {boolean: true, nullable: true}
"""
COLUMNS = ("person", "cost", "part", "kind", "word", "day", "well")
ODD = 99
PLAIN = {
    "person": pa.int64(),
    "cost": pa.int64(),
    "part": pa.float64(),
    "kind": pa.string(),
    "word": pa.string(),
    "day": pa.string(),
    "well": pa.bool_(),
}
# Types that one person's file or chunk may have instead, and values that fit them.
STRANGE: tuple[tuple[pa.DataType, tuple[Any, ...]], ...] = (
    (pa.float64(), (1.0, 2.5, float("nan"), float("inf"), -1e300)),
    (pa.string(), ("1", "2138.0", "x", "", "1e400", "NULL", "a" * 3_000, "\x1b[31m", "2024-02-30")),
    (pa.decimal128(38, 10), (Decimal("1.5"), Decimal("-9999999999999999999.5"))),
    (pa.int8(), (1, -128)),
    (pa.uint64(), (1, 2**64 - 1)),
    (pa.bool_(), (True, False)),
    (pa.date32(), (0, 19_800)),
    (pa.timestamp("ns", tz="America/New_York"), (0, 2**60)),
    (pa.dictionary(pa.int8(), pa.string()), ("x", "2138")),
    (pa.binary(), (b"x", b"\xff\xfe", b"\x00")),
    (pa.list_(pa.int64()), ([1], [])),
    (pa.null(), (None,)),
)


def plain_rows(person: int, source: random.Random) -> list[dict[str, Any]]:
    """A person's rows as most people's are: some values outside their domains."""
    return [
        {
            "person": person,
            "cost": source.choice((0, 1, 5, 12, None)),
            "part": source.choice((0.0, 1.25, 1.3, None)),
            "kind": source.choice(("x", "2138", "2138.0", "q", None)),
            "word": source.choice(("a", "2138", "1", "", "ä", None)),
            "day": source.choice(("2024-02-03", "2030-01-01", "no day", None)),
            "well": source.choice((True, False, None)),
        }
        for _ in range(source.choice((1, 2, 3, 7)))
    ]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in PLAIN.items()}
    )


def odd_table(source: random.Random) -> pa.Table:
    """The odd person's rows: strange types, columns that are missing, added, in another order or in
    capitals.
    """
    count = source.choice((1, 5, 40))
    columns: dict[str, pa.Array] = {}
    for name, kind in PLAIN.items():
        chosen, values = kind, tuple(row[name] for row in plain_rows(ODD, source))
        if name != "person" and source.random() < 0.4:
            chosen, values = source.choice(STRANGE)
        if name == "person" and source.random() < 0.3:
            chosen, values = source.choice(
                ((pa.float64(), (99.0,)), (pa.string(), ("99", "99.0")), (pa.int8(), (99,)))
            )
        columns[name] = pa.array([source.choice(values) for _ in range(count)], chosen)
    names = list(columns)
    match source.randrange(6):
        case 0:
            names.remove(source.choice(names[1:]))
        case 1:
            source.shuffle(names)
        case 2:
            columns["more"] = pa.array(range(count))
            names.append("more")
    capitals = source.random() < 0.1
    return pa.table({name.upper() if capitals else name: columns[name] for name in names})


# --- kinds of sources: each is written, or is a mapping of tables ---------------------------------


def parquet_files(parts: list[pa.Table], folder: Path) -> Any:
    for place, part in enumerate(parts):
        path = folder / "visits" / f"{place}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, path)
    return folder


def csv_files(parts: list[pa.Table], folder: Path) -> Any:
    """One file a part; the odd one's may hold bytes that are no text."""
    for place, part in enumerate(parts):
        path = folder / "visits" / f"{place}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [",".join(part.column_names)]
        lines += [
            ",".join("" if value is None else _field(value) for value in row.values())
            for row in part.to_pylist()
        ]
        path.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape") + b"\n")
    return folder


def _field(value: Any) -> str:
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def chunks(parts: list[pa.Table], folder: Path) -> Any:
    """One Arrow table whose chunks are the parts; refused by Arrow itself where types differ."""
    return {"visits": pa.concat_tables(parts)}


def dataset(parts: list[pa.Table], folder: Path) -> Any:
    import pyarrow.dataset as ds

    return {"visits": ds.dataset(parquet_files(parts, folder) / "visits")}


def columns_of_objects(parts: list[pa.Table], folder: Path) -> Any:
    """Python lists of values of any type, as a data frame's object columns hold them."""
    rows = [row for part in parts for row in part.to_pylist()]
    return {"visits": {name: [row.get(name) for row in rows] for name in COLUMNS}}


def view(parts: list[pa.Table], folder: Path) -> Any:
    """A DuckDB file with a view that unites one table a part."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "source.duckdb"
    with duckdb.connect(str(path)) as connection:
        for place, part in enumerate(parts):
            connection.register("#part", part)
            connection.execute(f'CREATE TABLE t{place} AS FROM "#part"')
            connection.unregister("#part")
        united = " UNION ALL BY NAME ".join(
            f"SELECT * FROM t{place}" for place in range(len(parts))
        )
        connection.execute(f"CREATE VIEW visits AS {united}")
    return path


KINDS: tuple[Callable[[list[pa.Table], Path], Any], ...] = (
    parquet_files,
    csv_files,
    chunks,
    dataset,
    columns_of_objects,
)
REFUSED = (PolicyError, UsageError, EngineFailure)


def snapshot(policy: Policy, source: Any, number: int) -> list[tuple[Any, ...]] | str:
    """The prepared rows, or the words of the refusal."""
    try:
        prepare(policy, source, policy.store, number)
    except REFUSED as refusal:
        return str(refusal)
    engine = DuckDB.open(policy, number)
    try:
        rows = engine.read("SELECT * FROM visits ORDER BY ALL", 10).to_pylist()
        return [(str(owner), *values) for owner, *values in (row.values() for row in rows)]
    finally:
        engine.close()


def trial(kind: Callable[[list[pa.Table], Path], Any], folder: Path, source: random.Random) -> str:
    """How a pair of sources was treated; raises AssertionError where others' rows differ."""
    policy = Policy.parse(POLICY, path=folder / "policy.yaml")
    others = [table_of(plain_rows(person, source)) for person in range(3)]
    odd = odd_table(source)
    place = source.randrange(len(others) + 1)
    with_odd = [*others[:place], odd, *others[place:]]
    try:
        before, after = kind(others, folder / "without"), kind(with_odd, folder / "with")
    except (pa.ArrowException, duckdb.Error, TypeError):
        return "cannot be written"
    first, second = snapshot(policy, before, 1), snapshot(policy, after, 2)
    assert not isinstance(first, str), first
    if isinstance(second, str):
        return "refused"
    owners = {row[0] for row in first}
    assert [row for row in second if row[0] in owners] == first, (
        f"others' rows changed for {odd.to_pydict()}"
    )
    counts = Counter(row[0] for row in second)
    assert max(counts.values(), default=0) <= 3
    assert all(row[0] != "None" for row in second)
    return "kept"


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_one_odd_person_changes_nobody_else(kind: Callable[..., Any], tmp_path: Path) -> None:
    source = random.Random(os.urandom(16))
    counts: Counter[str] = Counter()
    for number in range(40):
        counts[trial(kind, tmp_path / str(number), source)] += 1
    assert sum(counts.values()) == 40


def test_a_view_has_the_types_it_says(tmp_path: Path) -> None:
    """A view's own types are the curator's word: they do not move when rows arrive; and others'
    rows stay.
    """
    source = random.Random(os.urandom(16))
    policy = Policy.parse(POLICY, path=tmp_path / "policy.yaml")
    others = [table_of(plain_rows(person, source)) for person in range(3)]
    odd = table_of(plain_rows(ODD, source))
    first = snapshot(policy, view(others, tmp_path / "without"), 1)
    second = snapshot(policy, view([*others, odd], tmp_path / "with"), 2)
    assert not isinstance(first, str)
    assert not isinstance(second, str)
    assert [row for row in second if row[0] != str(ODD)] == first
