"""No file and no row decides how others are read (S23), whatever kind of source it stands in."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from small_sources import Rows, kept, policy_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing import prepare as prepare_module
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.errors import PolicyError, UsageError

PEOPLE = """\
  people:
    owner: id
    columns:
      id: identifier
      zip: text
      age: {integer: [0, 120]}
      pay: {decimal: [0, 100], step: 0.5}
      at: {timestamp: [2024-01-01, 2025-01-01], step: 1s}
      sex: {values: [F, M]}
"""
NOON = datetime.datetime(2024, 5, 6, 12)
MANY = {
    "id": [1, 2, 3],
    "zip": [2138, 2139, 2140],
    "age": [30, 40, 50],
    "pay": [1, 2, 3],
    "at": [NOON] * 3,
}
MANY |= {"sex": ["F", "M", "F"]}


def rows_of(tables: str, source: object, folder: Path, *, store: str = "store") -> Rows:
    policy = policy_of(f"{tables}", folder)
    prepare(policy, source, folder / store, 1)
    engine = DuckDB(folder / store / "1.duckdb", memory=10**9)
    try:
        return kept(engine, "people")
    finally:
        engine.close()


def one(**changed: Any) -> pa.Table:
    """One person's file, with columns as this person writes them."""
    plain: dict[str, Any] = {
        "id": [9],
        "zip": [2141],
        "age": [60],
        "pay": [4],
        "at": [NOON],
        "sex": ["M"],
    }
    return pa.table({key: value for key, value in (plain | changed).items() if value is not None})


ODD = {
    "floats": one(zip=[2141.0], age=[60.0], pay=[4.0]),
    "decimals": one(
        zip=[decimal.Decimal("2141.00")],
        age=[decimal.Decimal("60.0")],
        pay=[decimal.Decimal("4.000")],
    ),
    "text": one(zip=["2141"], age=["60"], pay=["4"], at=["2024-05-06 12:00"]),
    "small types": one(age=pa.array([60], pa.int8()), pay=pa.array([4], pa.uint16())),
    "an owner that is a float": one(id=None).append_column("id", pa.array([9], pa.int32())),
    "a zone": one(at=pa.array([NOON], pa.timestamp("us", tz="Europe/Paris"))),
    "nanoseconds": one(at=pa.array([NOON], pa.timestamp("ns"))),
    "a dictionary": one(sex=pa.array(["M"]).dictionary_encode()),
    "other columns": one(more=[1], age=None, pay=None),
    "another order": one().select(["sex", "at", "pay", "age", "zip", "id"]),
    "another case": one(age=None, AGE=[60], sex=None, Sex=["M"]),
    "nothing but NULL": one(age=pa.nulls(1), sex=pa.nulls(1)),
    "no rows": one().slice(0, 0),
    "no owner": one(id=None),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
@pytest.mark.parametrize("place", ["a.parquet", "z.parquet"])
def test_a_file_of_one_person_changes_nobody_else(
    tmp_path: Path, odd: pa.Table, place: str
) -> None:
    """Types unified across files made 19,998 of 20,000 ages NULL, and '2138.0' of the key
    '2138'.
    """
    folder = tmp_path / "data" / "people"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.table(MANY), folder / "m.parquet")
    before = rows_of(PEOPLE, tmp_path / "data", tmp_path, store="before")
    assert [row[2:4] for row in before] == [("2138", 30), ("2139", 40), ("2140", 50)]
    pyarrow.parquet.write_table(odd, folder / place)
    after = rows_of(PEOPLE, tmp_path / "data", tmp_path, store="after")
    assert [row for row in after if row[0] != 9] == before
    for row in after:
        assert row in before or row[2] in (None, "2141")


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (
            one(id=["9"]),
            r"people\.id is whole numbers in the file people/m\.parquet and text in the file people/o",
        ),
        (
            one(id=[decimal.Decimal("9.0")]),
            r"people\.id is whole numbers in the file .* and decimals in the file",
        ),
        (
            one(id=pa.array([9], pa.uint64())),
            "whole numbers in the file .* and huge numbers in the file",
        ),
        (
            one(id=[9.0]),
            r"people\.id is BIGINT in the file people/m\.parquet and VARCHAR in the file people/o",
        ),
        (
            one(age=[[60]]),
            r"people\.age is declared integer, and the file people/o\.parquet has BIGINT\[\] there",
        ),
        (
            one(sex=[1.0]),
            r"people\.sex is declared values, and the file people/o\.parquet has DOUBLE there",
        ),
        (one(Age=[61]), "The file people/o.parquet has two columns Age"),
        (None, "The file people/o.parquet cannot be read as Parquet"),
    ],
)
def test_files_that_cannot_be_read_by_themselves(
    tmp_path: Path, odd: pa.Table | None, reason: str
) -> None:
    folder = tmp_path / "data" / "people"
    folder.mkdir(parents=True)
    pyarrow.parquet.write_table(pa.table(MANY), folder / "m.parquet")
    if odd is None:
        (folder / "o.parquet").touch()
    else:
        pyarrow.parquet.write_table(odd, folder / "o.parquet")
    with pytest.raises(PolicyError, match=reason):
        rows_of(PEOPLE, tmp_path / "data", tmp_path)


TEXTS = "  people: {owner: id, columns: {s: text, n: {integer: [0, 9]}}}\n"


@pytest.mark.parametrize(
    "odd", [[2.5], ["x"], [True], [decimal.Decimal("7.00")], [None], [b"\xff"], ["\ud800"], [{}]]
)
def test_one_object_decides_nothing(tmp_path: Path, odd: list[Any]) -> None:
    """A column of objects has no type: were it found in the values, one of them would decide it for
    all.
    """
    pandas = pytest.importorskip("pandas")
    found = []
    for place, more in enumerate(([], odd)):
        values = pandas.Series([1, 2, 3, *more], dtype=object)
        frame = pandas.DataFrame({"id": list(range(3 + len(more))), "s": values, "n": values})
        found.append(rows_of(TEXTS, {"people": frame}, tmp_path, store=str(place)))
        lists = {"id": pa.array(frame["id"]), "s": list(values), "n": list(values)}
        assert rows_of(TEXTS, {"people": lists}, tmp_path, store=f"{place} as lists") == found[-1]
    before, after = found
    assert before == [(0, "1", 1), (1, "2", 2), (2, "3", 3)]
    assert after[:3] == before
    assert after[3][1] in ("2.5", "x", "true", "7", None)


def test_names_and_categories_of_frames(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"s": pandas.Categorical(["b", None, "a"]), "n": [1.0, 2.0, float("nan")]}
    )
    frame.index = pandas.Index([7, 8, 9], name="id")
    assert rows_of(TEXTS, {"people": frame}, tmp_path) == [
        (7, "b", 1),
        (8, None, 2),
        (9, "a", None),
    ]
    twice = pandas.DataFrame([[1, 2]], columns=["id", "ID"])
    with pytest.raises(UsageError, match="two columns ID"):
        rows_of("  people: {owner: id}\n", {"people": twice}, tmp_path, store="twice")


def test_datasets_whose_files_differ(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    pyarrow.parquet.write_table(
        pa.table({"id": [1], "n": [1], "s": ["a"]}), tmp_path / "d" / "a.parquet"
    )
    dataset = pyarrow.dataset.dataset(tmp_path / "d")
    assert rows_of(TEXTS, {"people": dataset}, tmp_path) == [(1, "a", 1)]
    for name, table in {
        "types": pa.table({"id": [2], "n": [2.5], "s": ["b"]}),
        "less": pa.table({"id": [2]}),
    }.items():
        pyarrow.parquet.write_table(table, tmp_path / "d" / "b.parquet")
        with pytest.raises(PolicyError, match=r"its file b\.parquet has"):
            rows_of(
                TEXTS, {"people": pyarrow.dataset.dataset(tmp_path / "d")}, tmp_path, store=name
            )
    (tmp_path / "c.csv").write_text("id,n,s\n1,1,a\n")
    with pytest.raises(PolicyError, match="guesses its types from the rows"):
        rows_of(
            TEXTS,
            {"people": pyarrow.dataset.dataset(tmp_path / "c.csv", format="csv")},
            tmp_path,
            store="csv",
        )


def test_views_of_a_database(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"id": [1], "s": [2138]}), tmp_path / "a.parquet")
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE base AS SELECT range AS id, 'x' AS s, 5 AS n FROM range(3)"
        )
        connection.execute("CREATE VIEW people AS SELECT id, upper(s) AS s, n FROM base")
        connection.execute(
            f"CREATE VIEW files AS FROM read_parquet('{tmp_path}/*.parquet', union_by_name = true)"
        )
    assert rows_of(TEXTS, tmp_path / "town.duckdb", tmp_path) == [
        (0, "X", 5),
        (1, "X", 5),
        (2, "X", 5),
    ]
    with pytest.raises(PolicyError, match="The view files reads files"):
        rows_of(
            "  files: {owner: id, columns: {s: text}}\n",
            tmp_path / "town.duckdb",
            tmp_path,
            store="files",
        )


# --- texts that are no UTF-8 ----------------------------------------------------------------------

BAD = [
    b"fine",
    b"\xff\xfebad",
    b"caf\xc3\xa9",
    None,
    b"\xed\xa0\x80",
    b"what? \xef\xbf\xbd",
    b"\xc0\xaf",
    b"\xc3",
]
BAD += [b"SECRET\x80"]
GOOD = {0: "fine", 2: "café", 5: "what? \ufffd"}


def bad_texts() -> pa.Table:
    binary = pa.array(BAD, pa.binary())
    texts = pa.Array.from_buffers(pa.string(), len(BAD), binary.buffers())
    return pa.table({"id": pa.array(range(len(BAD))), "s": texts, "n": pa.array([7] * len(BAD))})


def bad_source(folder: Path, kind: str) -> object:
    folder.mkdir()
    if kind == "parquet":
        pyarrow.parquet.write_table(bad_texts(), folder / "people.parquet")
    elif kind == "parquets":
        (folder / "people").mkdir()
        for place in range(len(BAD)):
            pyarrow.parquet.write_table(
                bad_texts().slice(place, 1), folder / "people" / f"{place}.parquet"
            )
    elif kind == "csv":
        lines = [b"id,s,n", *(b"%d,%s,7" % (place, text or b"") for place, text in enumerate(BAD))]
        (folder / "people.csv").write_bytes(b"\n".join(lines) + b"\n")
    else:
        table = bad_texts()
        encoded = (
            table["s"].combine_chunks().dictionary_encode() if kind == "dictionary" else table["s"]
        )
        return {"people": table.set_column(1, "s", encoded)}
    return folder


@pytest.mark.parametrize("kind", ["parquet", "parquets", "csv", "arrow", "dictionary"])
def test_texts_that_are_no_utf8_become_null(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = bad_source(tmp_path / "data", kind)
    policy = policy_of(TEXTS, tmp_path)
    snapshot = prepare(policy, source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    found = engine.read(
        'SELECT CAST(n AS INT) AS n, s FROM people ORDER BY CAST("#owner" AS INT)', 10
    ).to_pylist()
    engine.close()
    assert found == [{"n": 7, "s": GOOD.get(place)} for place in range(len(BAD))]
    assert (snapshot.tables[0].columns[0].missing, snapshot.tables[0].columns[0].nulled) == (1, 5)
    assert "SECRET" not in caplog.text
    assert not list(policy.store.glob(".building*"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_an_owner_that_is_no_utf8_is_nobody(tmp_path: Path, kind: str) -> None:
    tables = "  people: {owner: s, columns: {n: {integer: [0, 9]}}}\n"
    found = rows_of(tables, bad_source(tmp_path / "data", kind), tmp_path)
    assert found == [(text, 7) for text in sorted(GOOD.values())]


# --- one scan -------------------------------------------------------------------------------------


def test_a_view_that_is_another_each_time(tmp_path: Path) -> None:
    """Owners counted in one scan and rows kept in another gave people more rows than max_rows."""
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute(
            "CREATE VIEW people AS SELECT CAST(random() * 4000 AS INT) AS id, 5 AS n FROM range(5000)"
        )
        connection.execute(
            "CREATE VIEW parts AS SELECT CAST(random() * 4000 AS INT) AS id, 5 AS n FROM range(5000)"
        )
    tables = "  people: {owner: id}\n  parts: {owner: {through: people, on: id}, max_rows: 2}\n"
    policy = policy_of(tables, tmp_path)
    for number in range(1, 6):
        prepare(policy, tmp_path / "town.duckdb", policy.store, number)
        engine = DuckDB.open(policy, number)
        for table, most in (("people", 1), ("parts", 2)):
            counts = engine.read(f'SELECT count(*) AS n FROM {table} GROUP BY "#owner"', 10)[
                "n"
            ].to_pylist()
            assert max(counts) <= most
        engine.close()


def test_a_file_that_is_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when nobody notices that it was: at whatever moment, nobody has more than max_rows
    rows.
    """
    (tmp_path / "data").mkdir()
    file, tables = (
        tmp_path / "data" / "people.csv",
        "  people: {owner: id, columns: {n: {integer: [0, 9]}}}\n",
    )
    monkeypatch.setattr(prepare_module, "find_changes", lambda *_: ())
    run = prepare_module._Work._run
    for moment in range(6):
        file.write_text("id,n\n1,5\n2,5\n")
        told: list[str] = []

        def disturbed(
            work: Any, sql: str, *rest: Any, at: int = moment, told: list[str] = told
        ) -> Any:
            if len(told) == at:
                file.write_text("id,n\n" + "1,5\n" * 5001)
            told.append(sql)
            return run(work, sql, *rest)

        monkeypatch.setattr(prepare_module._Work, "_run", disturbed)
        found = rows_of(tables, file.parent, tmp_path, store=f"{moment}")
        assert len({row[0] for row in found}) == len(found)
