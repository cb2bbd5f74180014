"""Preparing a snapshot: whose rows, which rows, as what; and that nobody else can change it
(S4).
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from small_sources import Rows, kept, policy_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.snapshot import ColumnReport, TableReport
from discreet.engines.stores import changes_since_snapshot
from discreet.errors import EngineFailure, PolicyError, SnapshotFailure, UsageError
from discreet.policy.policy import Policy
from small_disk import small_disk

Prepared = Callable[..., dict[str, Rows]]

VISITS = "  visits: {owner: person, max_rows: 3, columns: {a: {integer: [0, 9]}, b: text, c: {values: [x, y, z]}}}\n"


def visits(rows: list[tuple[Any, ...]]) -> dict[str, pa.Table]:
    person, a, b, c = (list(column) for column in zip(*rows, strict=True))
    schema = pa.schema(
        [("person", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("c", pa.string())]
    )
    return {"visits": pa.table([person, a, b, c], schema=schema)}


def crowd(people: int) -> list[tuple[Any, ...]]:
    """People with 0 to 7 rows each, many of them equal, some with values outside the domain."""
    generator = Random()
    return [
        (
            person,
            generator.choice([None, -5, 1, 2, 99]),
            generator.choice(["u", "v", None]),
            generator.choice("xyq"),
        )
        for person in range(people)
        for _ in range(generator.randrange(8))
    ]


def test_order_threads_and_other_people_change_nothing(prepared: Prepared) -> None:
    rows = crowd(400)
    first = prepared(VISITS, visits(rows))["visits"]
    for threads in (1, 2, 4):
        Random().shuffle(rows)
        assert prepared(VISITS, visits(rows), threads=threads)["visits"] == first
    newcomer = [(1000, 1, "u", "x")] * 50 + [(1000, 2, "v", "y")] * 50
    mixed = rows + newcomer
    Random().shuffle(mixed)
    after = prepared(VISITS, visits(mixed))["visits"]
    assert [row for row in after if row[0] != 1000] == first
    assert len(after) == len(first) + 3
    gone = [row for row in rows if row[0] != 7]
    assert prepared(VISITS, visits(gone))["visits"] == [row for row in first if row[0] != 7]


def test_many_rows_in_many_pieces_are_kept_alike(prepared: Prepared) -> None:
    """Enough rows that DuckDB works in parallel: 200,000 rows of 20,000 people, every one
    truncated.
    """
    person = np.repeat(np.arange(20_000), 10)
    columns = {"person": person, "a": np.arange(200_000) % 10, "b": None, "c": None}
    table = pa.table(
        {**columns, "b": (person * 7919 % 1000).astype(str), "c": pa.nulls(200_000, pa.string())}
    )
    shuffled = table.take(np.random.default_rng().permutation(200_000))
    first = prepared(VISITS, {"visits": table}, threads=1)["visits"]
    assert first == prepared(VISITS, {"visits": shuffled}, threads=4)["visits"]
    assert Counter(row[0] for row in first) == dict.fromkeys(range(20_000), 3)


def test_at_most_max_rows_of_the_persons_own_rows(prepared: Prepared) -> None:
    rows = crowd(300)
    found = prepared(VISITS, visits(rows))["visits"]
    code = {"x": 0, "y": 1, "z": 2}
    own = Counter(
        (p, None if a is None else max(0, min(9, a)), b, code.get(c)) for p, a, b, c in rows
    )
    assert not Counter(found) - own
    expected = {person: min(3, count) for person, count in Counter(row[0] for row in rows).items()}
    assert Counter(row[0] for row in found) == expected


def test_the_choice_prefers_no_value(prepared: Prepared) -> None:
    """Of two rows one is kept: by a hash, so that small values do not win. False alarm below
    1e-9.
    """
    rows = [(person, a, None, None) for person in range(4000) for a in (person % 5, 9 - person % 5)]
    table = "  visits: {owner: person, columns: {a: {integer: [0, 9]}}}\n"
    found = prepared(table, visits(rows))["visits"]
    small = sum(row[1] < 5 for row in found)
    assert len(found) == 4000
    assert abs(small - 2000) < 6.2 * (4000**0.5) / 2
    assert {sum(row[0] % 5 == pair and row[1] < 5 for row in found) for pair in range(5)} & {
        0,
        800,
    } == set()
    distinct = [(person, None, f"{person} {side}", side) for person in range(4000) for side in "xy"]
    table = "  visits: {owner: person, columns: {b: text, c: {values: [x, y]}}}\n"
    picked = Counter(row[2] for row in prepared(table, visits(distinct))["visits"])
    assert abs(picked[0] - 2000) < 6.2 * (4000**0.5) / 2


def test_rows_without_an_owner_are_dropped(prepared: Prepared) -> None:
    rows = [(None, 1, "u", "x"), (1, 1, "u", "x"), (None, 2, "v", "y")]
    assert prepared(VISITS, visits(rows))["visits"] == [(1, 1, "u", 0)]
    table = pa.table(
        {"person": ["", " ", None, "7"], "a": [1, 2, 3, 4], "b": ["u"] * 4, "c": ["x"] * 4}
    )
    assert prepared(VISITS, {"visits": table})["visits"] == [("7", 4, "u", 0)]
    table = pa.table(
        {
            "person": [1.0, 1.5, float("nan"), None],
            "a": [1, 2, 3, 4],
            "b": ["u"] * 4,
            "c": ["x"] * 4,
        }
    )
    assert prepared(VISITS, {"visits": table})["visits"] == [(1, 1, "u", 0)]


CHAIN = """\
  visits: {owner: person, max_rows: 9, columns: {visit: identifier}}
  labs: {owner: {through: visits, on: visit}, max_rows: 2, columns: {lab: identifier}}
  notes: {owner: {through: labs, on: lab}, max_rows: 9, columns: {text: text}}
"""


def chain(
    visit: list[Any], person: list[Any], labs: list[tuple[Any, Any]], notes: list[tuple[Any, Any]]
) -> dict[str, Any]:
    return {
        "visits": pa.table({"visit": visit, "person": person}),
        "labs": pa.table({"visit": [each[0] for each in labs], "lab": [each[1] for each in labs]}),
        "notes": pa.table(
            {"lab": [each[0] for each in notes], "text": [each[1] for each in notes]}
        ),
    }


def test_owners_through_other_tables(prepared: Prepared) -> None:
    labs = [(10, 100), (10, 101), (11, 102), (12, 103), (13, 104), (None, 105), (99, 106)]
    notes = [(100, "a"), (102, "b"), (103, "c"), (106, "d"), (None, "e")]
    # visit 12 has two owners, visit 13 has none, visit 11 is listed twice with one owner
    tables = chain([10, 11, 11, 12, 12, 13, None], [1, 2, 2, 3, 4, None, 5], labs, notes)
    found = prepared(CHAIN, tables)
    assert found["labs"] == [(1, 100), (1, 101), (2, 102)]
    assert found["notes"] == [(1, "a"), (2, "b")]
    assert len(found["visits"]) == 6


def test_a_lab_of_a_dropped_visit_keeps_its_owner(prepared: Prepared) -> None:
    tables = chain([10, 11, 12], [1, 1, 1], [(12, 100)], [(100, "a")])
    policy = CHAIN.replace("max_rows: 9, columns: {visit", "max_rows: 1, columns: {visit")
    found = prepared(policy, tables)
    assert (len(found["visits"]), found["labs"], found["notes"]) == (1, [(1, 100)], [(1, "a")])


@pytest.mark.parametrize(
    "kinds", [(pa.int64(), pa.string()), (pa.float64(), pa.int32()), (pa.uint64(), pa.int8())]
)
def test_keys_of_different_types_meet(
    prepared: Prepared, kinds: tuple[pa.DataType, pa.DataType]
) -> None:
    tables = chain([10, 11], [1, 2], [(10, 100)], [(100, "a")])
    tables["visits"] = tables["visits"].cast(pa.schema([("visit", kinds[0]), ("person", kinds[0])]))
    tables["labs"] = tables["labs"].cast(pa.schema([("visit", kinds[1]), ("lab", kinds[1])]))
    found = prepared(CHAIN, tables)
    assert [(int(owner), int(lab)) for owner, lab in found["labs"]] == [(1, 100)]
    owners = {type(row[0]) for rows in found.values() for row in rows}
    assert len(owners) == 1


def test_owners_of_all_tables_have_one_type(prepared: Prepared) -> None:
    tables = "  a: {owner: person}\n  b: {owner: person}\n"
    found = prepared(
        tables, {"a": pa.table({"person": ["1", "x"]}), "b": pa.table({"person": [1, 2]})}
    )
    assert found == {"a": [("1",), ("x",)], "b": [("1",), ("2",)]}


def test_long_lists_of_values_in_several_tables(prepared: Prepared) -> None:
    values = [f"v{place}" for place in range(500)]
    table = "  {}: {{owner: person, columns: {{v: {{values: [" + ", ".join(values) + "]}}}}}}\n"
    source = pa.table({"person": [1, 2], "v": ["v499", "other"]})
    found = prepared(table.format("a") + table.format("b"), {"a": source, "b": source})
    assert found["a"] == found["b"] == [(1, 499), (2, None)]


def test_columns_may_be_called_what_we_call_ours(prepared: Prepared) -> None:
    """A source's column named like one of our aliases is still the source's."""
    words = [f"v{place}" for place in range(20)]
    names = ("value", "code", "key", "owner", "s", "o", "r", "h", "v", "range")
    listed = ", ".join(f"{name}: {{values: [{', '.join(words)}]}}" for name in names)
    tables = f"  a: {{owner: id}}\n  b: {{owner: {{through: a, on: key}}, columns: {{{listed}}}}}\n"
    a = pa.table({"id": [1, 2], "key": words[:2], "owner": [5, 6]})
    b = pa.table({name: [words[0], words[1]] for name in names})
    expected = [(1, *[0] * len(names)), (2, *[1] * len(names))]
    assert prepared(tables, {"a": a, "b": b})["b"] == expected
    twice = pa.concat_tables([b, b])
    assert prepared(tables, {"a": a, "b": twice})["b"] == expected


# --- sources --------------------------------------------------------------------------------------

TOWN = """\
  people:
    owner: id
    columns:
      id: identifier
      age: {integer: [0, 120]}
      pay: {decimal: [0, 100], step: 0.5}
      day: {date: [2024-01-01, 2024-12-31]}
      town: {values: [v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17]}
  states: {public: true}
"""


def town() -> dict[str, pa.Table]:
    people = {
        "id": [1, 2, 3, 4, 4],
        "age": [30, -1, None, 200, 200],
        "pay": [0.75, float("nan"), float("inf"), 50.0, 50.0],
        "day": ["2024-02-03", "2023-01-01", "never", None, None],
        "town": ["v17", "v0", "v18", None, None],
    }
    return {
        "people": pa.table(people),
        "states": pa.table({"code": ["MA", "NY"], "people": [7, 20]}),
    }


def write(folder: Path, kind: str) -> Path:
    folder.mkdir()
    if kind == "duckdb":
        with duckdb.connect(str(folder / "town.duckdb")) as connection:
            for name, table in town().items():
                connection.register("given", table)
                connection.execute(f"CREATE TABLE {name} AS FROM given")
        return folder / "town.duckdb"
    for name, table in town().items():
        if kind == "csv":
            pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        elif kind == "parquet":
            pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        else:
            (folder / name / "part=1").mkdir(parents=True)
            pyarrow.parquet.write_table(table.slice(0, 1), folder / name / "a [1].parquet")
            pyarrow.parquet.write_table(table.slice(1), folder / name / "part=1" / "b.parquet")
    return folder


@pytest.mark.parametrize("kind", ["parquet", "csv", "duckdb", "folders", "python"])
def test_every_kind_of_source_gives_the_same_snapshot(tmp_path: Path, kind: str) -> None:
    policy = policy_of(TOWN, tmp_path)
    source = town() if kind == "python" else write(tmp_path / "data", kind)
    snapshot = prepare(policy, source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    found = [tuple(str(part) for part in row) for row in kept(engine, "people")]
    assert found == [
        ("1", "1", "30", "2", "2024-02-03", "17"),
        ("2", "2", "0", "None", "2024-01-01", "0"),
        ("3", "3", "None", "200", "None", "None"),
        ("4", "4", "120", "100", "None", "None"),
    ]
    assert (
        engine.public_table("states").select(["code", "people"]).to_pylist()
        == town()["states"].to_pylist()
    )
    assert engine.columns("people")["town"] == "UTINYINT"
    assert snapshot.tables[0] == TableReport(
        name="people",
        rows=5,
        kept=4,
        ownerless=0,
        truncated=1,
        columns=(
            ColumnReport(name="id", missing=0, nulled=0, clamped=0),
            ColumnReport(name="age", missing=1, nulled=0, clamped=3),
            ColumnReport(name="pay", missing=0, nulled=1, clamped=1, rounded=1),
            ColumnReport(name="day", missing=2, nulled=1, clamped=1),
            ColumnReport(name="town", missing=2, nulled=1, clamped=0),
        ),
    )
    engine.close()


def test_the_source_has_not_what_is_declared(tmp_path: Path) -> None:
    tables = (
        "  people: {owner: id, columns: {age: {integer: [0, 1]}, day: {date: [2024-01-01, 2024-01-02]}}}\n"
        "  visits: {owner: id}\n  labs: {owner: {through: people, on: visit}}\n"
    )
    source = {"people": pa.table({"id": [1], "day": [1]}), "labs": pa.table({"visit": [[1]]})}
    policy = policy_of(tables, tmp_path)
    with pytest.raises(PolicyError) as caught:
        prepare(policy, source, policy.store, 1)
    messages = [problem.message for problem in caught.value.problems]
    assert messages == [
        "people.visit leads to the owner, and the source has no such column of a simple type.",
        "people.age: the source has no such column.",
        "people.day is declared date, and the source has BIGINT there.",
        "The source has no table visits. It has labs, people.",
        "labs.visit leads to the owner, and the source has no such column of a simple type.",
    ]
    assert str(caught.value.problems[1]).startswith(f"{tmp_path / 'policy.yaml'}:6:")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "names no source"),
        ("nowhere", "does not exist"),
        ("postgresql://127.0.0.1:1/data", "cannot be reached"),
        (
            Path(__file__),
            "neither a folder nor a .duckdb, .sqlite, .xlsx, .sav, .dta or .sas7bdat file",
        ),
        ({"people": pa.table({"a": [1]}).to_reader()}, "can be read once"),
        ({"people": 7}, "The table people from Python cannot be read"),
        ({"people": {"id": [1, 2], "x": [1]}}, "The table people from Python cannot be read"),
    ],
)
def test_sources_that_are_none(tmp_path: Path, source: object, reason: str) -> None:
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    with pytest.raises(UsageError, match=reason):
        prepare(policy, source, policy.store, 1)


@pytest.mark.parametrize(
    ("suffix", "delimiter"), [(".csv", ";"), (".tsv", "\t"), (".csv.gz", ","), (".csv", "|")]
)
def test_csv_is_cut_as_its_header_is(tmp_path: Path, suffix: str, delimiter: str) -> None:
    rows = ['1|"a,b;c"|2', "2|x y|3", '3|"say ""no"""|4', "4||5", '5|"two\nlines"|6', "6|'|7"]
    text = "\n".join(["id|word|n", *rows]).replace("|", delimiter) + "\n"
    (tmp_path / "data").mkdir()
    opened = gzip.open if suffix.endswith("gz") else open
    with opened(tmp_path / "data" / f"people{suffix}", "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    policy = policy_of(
        "  people: {owner: id, columns: {word: text, n: {integer: [0, 9]}}}\n", tmp_path
    )
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "people") == [
        ("1", "a,b;c".replace("|", delimiter), 2),
        ("2", "x y", 3),
        ("3", 'say "no"', 4),
        ("4", None, 5),
        ("5", "two\nlines", 6),
        ("6", "'", 7),
    ]
    engine.close()


ODD = {
    "lines that begin as comments do": ([f"#{i},a,{i % 10}" for i in range(300)], "7,b,3"),
    "rows of a lone word": ([f"{i},,{i % 10}" for i in range(300)], "id,s,3"),
    "numbers, and a word": ([f"{i},1,{i % 10}" for i in range(300)], "word,word,word"),
    "other delimiters": ([f"{i},a;b;c;d,{i % 10}" for i in range(300)], "999,a|b|c|d|e,3"),
    "other quotes": ([f"{i},'a,{i % 10}" for i in range(300)], "999,'b,3"),
    "another escape": ([f"{i},a,{i % 10}" for i in range(300)], r"999,\,3"),
}


@pytest.mark.parametrize("rows", ODD.values(), ids=ODD.keys())
def test_one_line_does_not_decide_how_others_are_read(
    tmp_path: Path, rows: tuple[list[str], str]
) -> None:
    """Were the dialect guessed, one line without a # would make comments of all others."""
    many, one = rows
    (tmp_path / "data").mkdir()
    policy = policy_of(
        "  people: {owner: id, columns: {s: text, x: {integer: [0, 9]}}}\n", tmp_path
    )
    found = []
    for number, lines in enumerate((many, [*many, one], [one, *many])):
        (tmp_path / "data" / "people.csv").write_text("\n".join(["id,s,x", *lines]) + "\n")
        prepare(policy, policy.source, policy.store, number + 1)
        engine = DuckDB.open(policy, number + 1)
        found.append(sorted(map(repr, kept(engine, "people"))))
        engine.close()
    before, last, first = found
    assert len(before) == 300
    assert last == first
    assert len(set(last) - set(before)) == 1
    assert set(before) < set(last)


def test_texts_are_equal_when_their_bytes_are(tmp_path: Path) -> None:
    """A database may say that 'a' and 'A' are one: then a row meets both, and one person's spelling
    names a group.
    """
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE people(id VARCHAR COLLATE NOCASE, s VARCHAR COLLATE NOCASE, c VARCHAR COLLATE NOCASE)"
        )
        connection.execute(
            "INSERT INTO people VALUES ('a', 'x', 'x'), ('A', 'X', 'X'), ('b', 'x', 'x')"
        )
        connection.execute("CREATE TABLE codes(code VARCHAR COLLATE NOACCENT, n UHUGEINT)")
        connection.execute(
            "INSERT INTO codes VALUES ('e', 1), ('é', 340282366920938463463374607431768211455)"
        )
    tables = (
        "  people: {owner: id, columns: {s: text, c: {values: [X, x]}}}\n  codes: {public: true}\n"
    )
    policy = policy_of(tables, tmp_path)
    prepare(policy, tmp_path / "town.duckdb", policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "people") == [("A", "X", 0), ("a", "x", 1), ("b", "x", 1)]
    found = engine.read("SELECT s, count(*) AS n FROM people GROUP BY s ORDER BY s", 10)
    assert found.to_pylist() == [{"s": "X", "n": 1}, {"s": "x", "n": 2}]
    assert engine.read(
        "SELECT count(*) AS n FROM public_tables.codes WHERE code = 'e'", 10
    ).to_pylist() == [{"n": 1}]
    assert engine.public_table("codes")["n"].to_pylist() == [
        "1",
        "340282366920938463463374607431768211455",
    ]
    engine.close()


def test_one_person_whose_number_is_text(prepared: Prepared) -> None:
    tables = "  people: {owner: id}\n  visits: {owner: id}\n"
    sources = {
        "people": pa.table({"id": [1.0, 2.0, 3.5]}),
        "visits": pa.table({"id": ["3.50", "1.0", "2"]}),
    }
    found = prepared(tables, sources)
    assert found["people"] == found["visits"] == [("1",), ("2",), ("3.5",)]


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.float64(), pa.decimal128(10, 2), pa.string(), pa.decimal128(20, 4)]
)
@pytest.mark.parametrize("other", [pa.int32(), pa.float64(), pa.decimal128(10, 2), pa.string()])
def test_one_person_is_one_in_every_table(
    prepared: Callable[..., dict[str, Rows]], kind: pa.DataType, other: pa.DataType
) -> None:
    """1, 1.0, 1.00 and '1' name the same person, whatever types the tables have."""
    tables = "  people: {owner: id}\n  visits: {owner: id}\n"
    found = prepared(
        tables,
        {
            "people": pa.table({"id": pa.array([1, 2, 3], pa.int16()).cast(kind)}),
            "visits": pa.table({"id": pa.array([3, 1, 2], pa.int16()).cast(other)}),
        },
    )
    assert found["people"] == found["visits"]
    assert len(found["people"]) == 3


def test_folders_are_no_columns(tmp_path: Path) -> None:
    """One person's file in a folder of its own would change what the others' folders are read as,
    or hide them all.
    """
    folder = tmp_path / "data" / "people"
    (folder / "id=1").mkdir(parents=True)
    (folder / "id=2").mkdir()
    policy = policy_of("  people: {owner: id, columns: {s: text}}\n", tmp_path)
    table = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"]})
    pyarrow.parquet.write_table(table, folder / "id=1" / "a.parquet")
    pyarrow.parquet.write_table(pa.table({"id": [4], "s": ["d"]}), folder / "id=2" / "b.parquet")
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "people") == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]
    engine.close()
    for each in ("id=1", "id=2"):
        (folder / each).rename(folder / each.replace("id", "day"))
    declared = policy_of("  people: {owner: id, columns: {s: text, day: text}}\n", tmp_path)
    with pytest.raises(PolicyError, match="no such column"):
        prepare(declared, declared.source, declared.store, 2)


@pytest.mark.parametrize("place", [7_999_800, 15_999_950])
def test_a_line_in_the_middle_of_a_long_file(tmp_path: Path, place: int) -> None:
    """Several threads begin in the middle of it: what stands there is read right, or all is
    refused.
    """
    (tmp_path / "data").mkdir()
    lines, size = ["id,s,x"], 7
    while size < place:
        lines.append(
            f"{len(lines)},somebody else with a rather long name of some eighty letters so as to fill,1"
        )
        size += len(lines[-1]) + 1
    before = len(lines) - 1
    quoted = "\n".join(f"{10**9 + i},made up,9" for i in range(20))
    lines += [f'{10**8},"{quoted}",1', *(f"{10**7 + i},x,1" for i in range(1000))]
    (tmp_path / "data" / "people.csv").write_text("\n".join(lines) + "\n")
    policy = policy_of(
        "  people: {owner: id, columns: {s: text, x: {integer: [0, 9]}}}\n", tmp_path
    )
    with suppress(EngineFailure):
        prepare(policy, policy.source, policy.store, 1)
        engine = DuckDB.open(policy, 1)
        found = engine.read("SELECT count(*) AS n, max(x) AS x FROM people", 10)
        assert found.to_pylist() == [{"n": before + 1001, "x": 1}]
        engine.close()


def numbers_of(folder: Path, *, rows: int) -> Policy:
    """A policy over a Parquet file of numbers that hardly compress."""
    folder.joinpath("data").mkdir()
    dice = Random("numbers")
    numbers = pa.table({each: [dice.randrange(2**62) for _ in range(rows)] for each in ("id", "x")})
    pyarrow.parquet.write_table(numbers, folder / "data" / "t.parquet")
    return policy_of("  t: {owner: id, columns: {x: {integer: [0, 9000000000000000]}}}\n", folder)


def test_a_damaged_file_fails_the_snapshot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And the sentence says what failed and what to do; nothing else changes."""
    policy = numbers_of(tmp_path, rows=20_000)
    prepare(policy, policy.source, policy.store, 1)
    file = tmp_path / "data" / "t.parquet"
    content = bytearray(file.read_bytes())
    content[4:5004] = bytes(5000)  # where the first column begins
    file.write_bytes(content)
    with pytest.raises(SnapshotFailure) as caught:
        prepare(policy, policy.source, policy.store, 2)
    assert str(caught.value).startswith(
        "The snapshot was not made: preparing t failed in the engine. "
    )
    assert "Is a file of the source damaged?" in str(caught.value)
    assert "Nothing was charged" in str(caught.value)
    assert "Preparing t failed in the engine: " in caplog.text
    assert SnapshotFolder(policy.store).numbers() == [1]


def test_a_full_disk_fails_the_snapshot(tmp_path: Path) -> None:
    policy = numbers_of(tmp_path, rows=300_000)
    with small_disk(tmp_path / "disk", "2m") as disk:
        with pytest.raises(SnapshotFailure, match=r"preparing t failed .* is the disk full"):
            prepare(policy, policy.source, disk, 1)
        assert SnapshotFolder(disk).numbers() == []


def test_too_little_memory_fails_the_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = numbers_of(tmp_path, rows=10)

    def too_much(*_: object) -> str:
        raise duckdb.OutOfMemoryException("SECRET")

    monkeypatch.setattr("discreet.engines.duckdb.preparing.prepare._Work._kept", too_much)
    with pytest.raises(SnapshotFailure, match=r"raise limits\.memory in the policy") as caught:
        prepare(policy, policy.source, policy.store, 1)
    assert "SECRET" not in str(caught.value)


def test_files_of_one_table_with_other_columns(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "people"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("id,s,x\n1,a,1\n")
    (folder / "b.csv").write_text("\ufeffx;id\n2;2\n", encoding="utf-8")
    (folder / "c.csv").write_text(",id , s\n0,3,c\n")
    policy = policy_of(
        "  people: {owner: id, columns: {s: text, x: {integer: [0, 9]}}}\n", tmp_path
    )
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "people") == [("1", "a", 1), ("2", None, 2), ("3", "c", None)]
    engine.close()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "has no header"),
        ("\n\n", "has no header"),
        ("id,ID\n", "two columns"),
        ("id," + "x" * 200_000 + "\n", "has no header"),
        ("\nid,x\n1,5\n", "has no header"),
        ('id,"x\n1,5\n', "has no header"),
        ('id,"a\rb"\n1,5\n', "has no header"),
        ("id,x\r1,5\r", "has no header"),
    ],
)
def test_headers_that_are_none(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text(text)
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    with pytest.raises(PolicyError, match=reason):
        prepare(policy, policy.source, policy.store, 1)


def test_a_file_that_is_not_compressed(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv.gz").write_text("id\n1\n")
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    with pytest.raises(PolicyError, match="not compressed"):
        prepare(policy, policy.source, policy.store, 1)


def test_a_table_that_is_there_twice_or_in_two_kinds(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "parquet")
    (folder / "people.csv").write_text("id\n1\n")
    policy = policy_of(TOWN, tmp_path)
    with pytest.raises(PolicyError, match="the table people twice"):
        prepare(policy, folder, policy.store, 1)


@pytest.mark.parametrize(
    ("text", "logged", "told"),
    [
        (
            'id,age,pay,day,town\n1,2,3,4,5\n1,"SECRET,2,3,4,5\n1,2\n',
            "at line 3 of the file.",
            "The file people.csv, line 3: a quote begins here that does not end as quotes do. Mend it.",
        ),
        (
            "id,age,pay,day,town\n" + "1,2,3,4,5\n" * 30000 + "1,SECRET\n",
            "at line 30002 of the file.",
            "The file people.csv, line 30002: there are 2 fields, and the header has 5. Mend it, or quote the field.",
        ),
    ],
)
def test_broken_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, logged: str, told: str
) -> None:
    folder = write(tmp_path / "data", "csv")
    (folder / "people.csv").write_text(text)
    policy = policy_of(TOWN, tmp_path)
    with pytest.raises(UsageError) as caught:
        prepare(policy, folder, policy.store, 1)
    assert str(caught.value) == told
    assert caught.value.__suppress_context__
    assert "SECRET" not in caplog.text
    assert logged in caplog.text
    assert not list(policy.store.glob("*.duckdb"))


def test_a_text_file_that_calls_itself_a_database(tmp_path: Path) -> None:
    (tmp_path / "data.duckdb").write_text("no database")
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    with pytest.raises(UsageError, match="cannot be opened"):
        prepare(policy, tmp_path / "data.duckdb", policy.store, 1)


# --- the store ------------------------------------------------------------------------------------


def test_private_files(tmp_path: Path) -> None:
    policy = policy_of(TOWN, tmp_path)
    prepare(policy, town(), policy.store, 1)
    assert policy.store.stat().st_mode & 0o777 == 0o700
    assert {file.name: file.stat().st_mode & 0o777 for file in policy.store.iterdir()} == {
        "1.duckdb": 0o600,
        "1.json": 0o600,
        "lock": 0o600,
        "order.key": 0o600,
    }


def test_a_failure_leaves_the_store_as_it_was(tmp_path: Path) -> None:
    policy = policy_of(TOWN, tmp_path)
    prepare(policy, town(), policy.store, 1)
    before = {file.name: file.read_bytes() for file in policy.store.iterdir()}

    def stop(table: str, fraction: float) -> None:
        if table == "states":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(policy, town(), policy.store, 2, stop)
    assert {file.name: file.read_bytes() for file in policy.store.iterdir()} == before
    # what a crash leaves behind
    for left in (".building.duckdb", ".building.duckdb.wal", ".building.json"):
        (policy.store / left).write_text("torn")
    assert prepare(policy, town(), policy.store, 2).number == 2
    assert not list(policy.store.glob(".building*"))


def test_numbers_are_taken_once(tmp_path: Path) -> None:
    policy = policy_of(TOWN, tmp_path)
    prepare(policy, town(), policy.store, 1)
    for number in (1, 0, -1):
        with pytest.raises(UsageError, match="there already, or is no number"):
            prepare(policy, town(), policy.store, number)


def test_one_builder_at_a_time(tmp_path: Path) -> None:
    policy = policy_of(TOWN, tmp_path)
    refused = []

    def nested(table: str, fraction: float) -> None:
        with pytest.raises(UsageError, match="Another snapshot is being taken"):
            prepare(policy, town(), policy.store, 2)
        refused.append(table)

    prepare(policy, town(), policy.store, 1, nested)
    assert refused


def test_progress_goes_up_to_one(tmp_path: Path) -> None:
    policy = policy_of(TOWN, tmp_path)
    told: dict[str, list[float]] = {}
    prepare(
        policy,
        town(),
        policy.store,
        1,
        lambda table, share: told.setdefault(table, []).append(share),
    )
    assert list(told) == ["people", "states"]
    for shares in told.values():
        assert shares == sorted(shares)
        assert shares[-1] == 1
        assert shares[0] >= 0


def test_moved_on(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "csv")
    policy = policy_of(TOWN, tmp_path)
    assert changes_since_snapshot(policy) == ()
    prepare(policy, policy.source, policy.store, 1)
    assert changes_since_snapshot(policy) == ()
    (folder / "people.csv").touch()
    (folder / "unrelated.csv").write_text("a\n")
    assert changes_since_snapshot(policy) == ()
    with (folder / "people.csv").open("a") as file:
        file.write("9,9,9,,\n")
    assert changes_since_snapshot(policy) == ("people.csv",)
    prepare(policy, policy.source, policy.store, 2)
    assert changes_since_snapshot(policy) == ()
    (folder / "states.csv").unlink()
    assert changes_since_snapshot(policy) == ("states.csv",)


def test_a_source_that_changes_meanwhile(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", "csv")
    policy = policy_of(TOWN, tmp_path)

    def disturb(table: str, fraction: float) -> None:
        with (folder / "people.csv").open("a") as file:
            file.write("9,9,9,,\n")

    with pytest.raises(UsageError, match="changed while it was read"):
        prepare(policy, folder, policy.store, 1, disturb)
    assert not list(policy.store.glob("*.duckdb"))
