"""Beginning a policy: from names, types, constraints and codebooks, and never from a value."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import psycopg
import pyarrow as pa
import pyarrow.parquet
import pyreadstat
import pytest
from sas_files import write_catalog, write_sas
from small_sources import kept

from discreet.cli import run
from discreet.engines.advice import check
from discreet.engines.drafts.codebook import Codebook
from discreet.engines.drafts.draft import draft
from discreet.engines.drafts.suggest import UNKNOWN, of_checks, of_name, owner_among
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.readers.postgres import Postgres
from discreet.errors import PolicyError, UsageError
from discreet.policy.policy import Policy

PEOPLE = pa.table(
    {
        "id": [1, 2],
        "name": ["SECRET", "HIDDEN"],
        "pay": [31337.5, 2.0],
        "smoker": [True, False],
        "born": pa.array([0, 1], pa.date32()),
        "seen": pa.array([0, 1], pa.timestamp("us")),
        "kind": pa.array(["SECRET", "HIDDEN"]).dictionary_encode(),
        "marks": [[1], [2]],
        "a column": [1, 2],
        "email": ["SECRET", "HIDDEN"],
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    pyarrow.parquet.write_table(PEOPLE, data / "people.parquet")
    (data / "visits.csv").write_text("id,note,age\n1,SECRET,31337\n")
    return data


def test_a_draft_is_a_policy_of_no_value(folder: Path) -> None:
    text = draft(folder, beside=folder.parent).text()
    assert "source: data\n" in text
    for value in ("SECRET", "HIDDEN", "31337"):
        assert value not in text
    for line in (
        "    owner: id  # from the name: check that one id is one person\n",
        "      # pay: {decimal: [lo, hi], step: 0.01}  # DOUBLE\n",
        "      smoker: boolean  # from the name: check\n",
        "      born: {date: [1900-01-01, 2030-12-31]}  # from the name: check\n",
        "      seen: {timestamp: [2000-01-01, 2031-01-01], step: 1s}  # from the type: check\n",
        "      # 'a column': {integer: [lo, hi]}, {values: [1, 2, 3]} or {identifier: true}  # BIGINT\n",
        "      # marks: BIGINT[] cannot be asked about\n",
        "      # email: left out: identifies people: nobody needs to ask about it\n",
        "      age: {integer: [0, 120]}  # from the name: check\n",
        "      # note: {integer: [lo, hi]}, {values: [a, b]}, text, ...  # CSV\n",
    ):
        assert line in text
    policy = Policy.parse(text, path=folder.parent / "policy.yaml")
    assert check(policy).problems == ()
    assert prepare(policy, policy.source, policy.store, 1).tables[0].kept == 2


def test_other_values_give_the_same_draft(folder: Path) -> None:
    """Whatever the data holds, and however much of it: only names and types are looked at."""
    first = draft(folder, beside=folder.parent).text()
    for table in (PEOPLE.slice(0, 0), pa.concat_tables([PEOPLE] * 50)):
        pyarrow.parquet.write_table(table, folder / "people.parquet")
        (folder / "visits.csv").write_text("id,note,age\n" + "2024-01-01,7,x\n" * table.num_rows)
        assert draft(folder, beside=folder.parent).text() == first


def test_names_that_break_a_line_stay_in_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    names = ["id", "two\nlines", "\x1b[2J", "\u202ex", "\x85y"]
    table = pa.table([[1]] * len(names), names).append_column("list\n  of", [[[1]]])
    pyarrow.parquet.write_table(table, tmp_path / "data" / "people.parquet")
    text = draft(tmp_path / "data", beside=tmp_path).text()
    assert all(character.isprintable() for line in text.split("\n") for character in line)
    Policy.parse(text, path="new.yaml")


def test_whose_rows_is_asked_where_no_name_says_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_text("age,x\n1,2\n")
    with pytest.raises(
        PolicyError, match=r"t.owner is still open: instead of \?\?\? write a column, row"
    ):
        Policy.parse(draft(tmp_path / "data").text(), path="new.yaml")


@pytest.mark.parametrize(
    ("name", "declaration"),
    [
        ("age", "{integer: [0, 120]}"),
        ("Sex", "{values: [female, male, other]}"),
        ("birthDate", "{date: [1900-01-01, 2030-12-31]}"),
        ("date_of_birth", "{date: [1900-01-01, 2030-12-31]}"),
        ("zip", "text"),
        ("annual_income", "{decimal: [0, 200000], step: 1}"),
        ("unit_price", "{decimal: [0, 1000], step: 0.01}"),
        ("patient_id", "{identifier: true}"),
        ("patientNo", "{identifier: true}"),
        ("email", None),
        ("last_name", None),
        ("latitude", None),
        ("clinic_name", "text"),
        ("visit_date", "{date: [2000-01-01, 2030-12-31]}"),
        ("is_active", "boolean"),
        ("hours-per-week", "{integer: [0, 168]}"),
        ("yrs.since.phd", "{integer: [0, 120]}"),
        ("Geburtsdatum", "{date: [1900-01-01, 2030-12-31]}"),
        ("Größe", "{decimal: [0, 250], step: 0.1}"),
        ("Patienten-Nr", "{identifier: true}"),
        ("idNum", "{identifier: true}"),
        ("rownames", None),
        ("Unnamed: 0", None),
    ],
)
def test_names_suggest(name: str, declaration: str | None) -> None:
    found = of_name(name, UNKNOWN)
    assert found is not None
    assert found.declaration == declaration
    assert of_name("whatever", UNKNOWN) is None
    assert of_name("page", UNKNOWN) is None  # not an age


def test_every_suggestion_is_a_declaration(tmp_path: Path) -> None:
    from discreet.engines.drafts.suggest import _BY_TYPE, _NAMES

    for declaration in {each for *_, each in _NAMES if each} | set(_BY_TYPE.values()):
        text = f"unit: p\nbudget: {{epsilon: 1}}\ntables: {{t: {{owner: o, columns: {{x: {declaration}}}}}}}\n"
        Policy.parse(text, path=tmp_path / "p.yaml")


def test_owners_by_name() -> None:
    assert owner_among(["id", "patient_id", "visit_id"]) == "patient_id"
    assert owner_among(["visit_id", "id"]) == "id"
    assert owner_among(["visit_id", "age", "paid"]) is None
    assert owner_among(["idNum", "Patienten-Nr"]) == "Patienten-Nr"


def test_a_guessed_list_is_found_however_it_is_written(tmp_path: Path) -> None:
    """A name says which values there are, and not how they are written; a codebook says both."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "t.csv").write_text("id,sex\n1, Male\n2,FEMALE\n")
    text = draft(data, beside=tmp_path).text()
    assert "    read: {trim: true, fold: case}  # blanks around texts" in text
    policy = Policy.parse(text, path=tmp_path / "p.yaml")
    (table,) = prepare(policy, policy.source, policy.store, 1).tables
    assert [column.nulled for column in table.columns] == [0, 0]
    (tmp_path / "book.csv").write_text("column,values\nsex,m|w\n")
    known = Codebook.read(tmp_path / "book.csv")
    assert "read:" not in draft(data, beside=tmp_path, codebook=known).text()


def test_constraints_become_declarations() -> None:
    families = {
        "age": "whole",
        "pay": "decimal",
        "sex": "text",
        "n": "whole",
        "m": "whole",
        "free": "text",
    }
    checks = (
        "CHECK (((age >= 0) AND (age <= 120)))",  # as PostgreSQL writes them
        "CHECK ((sex = ANY (ARRAY['F'::text, 'M'::text, 'it''s'::text])))",
        "pay BETWEEN 0 AND 99.5",
        "n IN (1, 2, 3)",
        "m >= 0",
        "free <> 'SELECT'",
    )
    found = {column: each.declaration for column, each in of_checks(checks, families).items()}
    assert found == {
        "age": "{integer: [0, 120]}",
        "pay": "{decimal: [0, 99.5], step: 0.01}",
        "sex": "{values: [F, M, 'it''s']}",
        "n": "{values: [1, 2, 3]}",
    }


CODEBOOKS = {
    "book.csv": "column,type,min,max,values\nage,integer,18,99,\nsex,,,,F|M\npay,decimal,0,1000,\n"
    "born,date,1920-01-01,2010-12-31,\n",
    "book.json": json.dumps(
        {
            "age": {"range": [18, 99]},
            "sex": {"values": ["F", "M"]},
            "pay": {"type": "decimal", "range": "0..1000"},
            "born": {"type": "date", "min": "1920-01-01", "max": "2010-12-31"},
        }
    ),
}


@pytest.mark.parametrize("name", CODEBOOKS)
def test_codebooks(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(CODEBOOKS[name])
    (tmp_path / "t.csv").write_text("id,age,sex,pay,born,other\n")
    (tmp_path / "data").mkdir()
    shutil.move(tmp_path / "t.csv", tmp_path / "data" / "t.csv")
    text = draft(tmp_path / "data", codebook=Codebook.read(tmp_path / name)).text()
    for declaration in (
        "age: {integer: [18, 99]}",
        "sex: {values: [F, M]}",
        "pay: {decimal: [0, 1000], step: 0.01}",
        "born: {date: [1920-01-01, 2010-12-31]}",
    ):
        assert f"      {declaration}  # from the codebook\n" in text


def test_a_codebook_of_ddi(tmp_path: Path) -> None:
    book = tmp_path / "book.xml"
    book.write_text(
        '<codeBook xmlns="ddi:codebook:2_5"><dataDscr><var name="age"><valrng><range min="18" max="99"/></valrng></var>'
        '<var name="sex"><catgry><catValu>1</catValu></catgry><catgry><catValu>2</catValu></catgry></var>'
        "</dataDscr></codeBook>"
    )
    found = Codebook.read(book)
    age, sex = found.get("any", "AGE"), found.get("any", "sex")
    assert (age and age.declaration, sex and sex.declaration) == (
        "{integer: [18, 99]}",
        "{values: [1, 2]}",
    )
    assert found.get("any", "other") is None


@pytest.mark.parametrize(
    ("name", "content"),
    [("b.json", b"[1"), ("b.json", b"[1]"), ("b.csv", b"name of it\nx\n"), ("b.xml", b"<a"), ("b.csv", b"\xff\xfe"),
     ("b.xml", b'<!DOCTYPE a [<!ENTITY b "c">]><a/>')],
)  # fmt: skip
def test_codebooks_that_are_none(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="codebook"):
        Codebook.read(tmp_path / name)
    with pytest.raises(UsageError, match="cannot be read"):
        Codebook.read(tmp_path / "nowhere.csv")


def test_beginning_from_a_file_or_a_database(folder: Path, tmp_path: Path) -> None:
    assert draft(folder / "visits.csv") == draft(folder)
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, kind ENUM ('SECRET'))")
    text = draft(tmp_path / "town.duckdb").text()
    assert "      kind: text  # from the type: check" in text
    assert "SECRET" not in text
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no Parquet or CSV files"):
        draft(tmp_path / "empty")
    with pytest.raises(UsageError, match="does not exist"):
        draft(tmp_path / "nowhere")


def test_beginning_from_data_frames() -> None:
    text = draft({"people": pd.DataFrame({"id": [1], "age": [31337], "city": ["SECRET"]})}).text()
    assert "source:" not in text
    assert "age: {integer: [0, 120]}" in text
    assert "SECRET" not in text
    assert "31337" not in text


# --- SQLite, Excel, PostgreSQL --------------------------------------------------------------------

ROWS = [(1, 40, "F", "a"), (1, 40, "F", "b"), (2, 300, "q", None), (None, 5, "M", "c")]
COLUMNS = "{age: {integer: [0, 120]}, sex: {values: [F, M]}, note: text}"
TABLES = f"  visits: {{owner: person_id, max_rows: 2, columns: {COLUMNS}}}\n"
KEPT = [("1", 40, 0, "a"), ("1", 40, 0, "b"), ("2", 120, None, None)]


def prepared(tmp_path: Path, source: str) -> Any:
    text = f"source: {source}\nunit: person\nbudget: {{epsilon: 1}}\ntables:\n{TABLES}"
    policy = Policy.parse(text, path=tmp_path / "policy.yaml")
    assert check(policy).problems == ()
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    try:
        return kept(engine, "visits")
    finally:
        engine.close()


@pytest.mark.parametrize("suffix", [".sqlite", ".db"])
def test_sqlite(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"town{suffix}"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE people (person_id INTEGER PRIMARY KEY, born DATE);"
        "CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES people(person_id),"
        " age INTEGER CHECK (age BETWEEN 0 AND 130), sex TEXT CHECK (sex IN ('F', 'M')), note TEXT, free);"
        "CREATE TABLE labs (visit_id INTEGER REFERENCES visits(visit_id), value REAL);"
    )
    rows = [(*row, "SECRET") for row in ROWS]
    connection.executemany(
        "INSERT INTO visits (person_id, age, sex, note, free) VALUES (?, ?, ?, ?, ?)",
        [(p, min(a, 130), s if s != "q" else "F", n, f) for p, a, s, n, f in rows],
    )
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute("UPDATE visits SET age = 300, sex = 'q' WHERE person_id = 2")
    connection.commit()
    connection.close()
    text = draft(file, beside=tmp_path).text()
    for line in (
        f"source: town{suffix}\n",
        "    owner: person_id  # from the name",
        "age: {integer: [0, 130]}  # from CHECK",
        "sex: {values: [F, M]}  # from CHECK",
        "born: {date: [1900-01-01, 2030-12-31]}",
        "owner: {through: visits, on: visit_id}  # from the keys: check",
        "      # free: ",
    ):
        assert line in text
    assert "SECRET" not in text
    assert prepared(tmp_path, file.name) == KEPT


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", bytes(3000)])
def test_a_broken_file_is_named(folder: Path, content: bytes) -> None:
    """Of several files, and with its name as it is written."""
    (folder / "Many").mkdir()
    pyarrow.parquet.write_table(PEOPLE, folder / "Many" / "A.parquet")
    (folder / "Many" / "B.parquet").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        draft(str(folder))
    assert str(refused.value) == (
        "The file Many/B.parquet cannot be read as Parquet. Is it whole, and may you read it? "
        "Copy it again, or take it out of the source."
    )


def test_excel(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "visits"
    sheet.append(["person_id", "age", "sex", "note", None])
    for row in ROWS:
        sheet.append(list(row))
    sheet.append([None] * 4)
    book.save(tmp_path / "town.xlsx")
    text = draft(tmp_path / "town.xlsx", beside=tmp_path).text()
    assert "    owner: person_id  # from the name" in text
    assert "31337" not in text
    assert prepared(tmp_path, "town.xlsx") == KEPT
    broken = tmp_path / "broken.xlsx"
    broken.write_bytes(b"no workbook")
    with pytest.raises(UsageError, match="cannot be read as a workbook"):
        draft(broken)
    sheet.cell(1, 2).value = "Person_ID"
    book.save(tmp_path / "twice.xlsx")
    with pytest.raises(UsageError, match="two columns Person_ID"):
        draft(tmp_path / "twice.xlsx")


def labelled(tmp_path: Path, write: Callable[..., None], name: str, **options: Any) -> Path:
    frame = pd.DataFrame(
        {
            "person_id": [1, 2, 3],
            "sex": [1.0, 2.0, 9.0],
            "score": [1.0, 2.5, 31337.0],
            "note": ["SECRET", "b", "c"],
        }
    )
    labels = {"sex": {1: "Male", 2: "Female\n# x", 9: "No answer"}, "score": {1: "low"}}
    write(frame, str(tmp_path / name), variable_value_labels=labels, **options)
    return tmp_path / name


def test_spss_labels_are_read_and_no_row(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "missing_ranges": {"sex": [9]},
        "variable_measure": {"score": "scale"},
    }
    file = labelled(tmp_path, pyreadstat.write_sav, "town.sav", **options)
    text = draft(file, beside=tmp_path).text()
    assert "    owner: person_id  # from the name" in text
    assert (
        "sex: {values: [1, 2]}  # from the labels (1 Male, 2 Female # x): check that every value has one\n"
        in text
    )
    assert "      # score: " in text  # on a scale: a label of one value says nothing of the others
    assert "SECRET" not in text
    assert "31337" not in text
    found = Codebook.read(file).get("any", "sex")
    assert found is not None
    assert found.declaration == "{values: [1, 2]}"
    columns = "{sex: {values: [1, 2]}, score: {decimal: [0, 100], step: 0.1}, note: text}"
    policy = policy_for(str(file), tmp_path, f"town: {{owner: person_id, columns: {columns}}}")
    assert check(policy).problems == ()
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "town") == [
        ("1", 0, 10, "SECRET"),
        ("2", 1, 25, "b"),
        ("3", None, 1000, "c"),
    ]
    engine.close()


def test_sas_labels_of_a_catalog_and_values_as_they_are(tmp_path: Path) -> None:
    """What codes mean is in a second file; the codes stay what they are."""
    file = tmp_path / "town.sas7bdat"
    columns: dict[str, Any] = {
        "person_id": [1, 2, 3],
        "sex": [1.0, 2.0, None],
        "score": [1.0, 2.5, 31337.0],
        "note": ["SECRET", "b", "c"],
        "day": [0, 23741, 1],
        "seen": [0, 2051229601, 5],
    }
    write_sas(file, columns, {"sex": "SEXF", "day": "DATE9", "seen": "DATETIME"})
    plain = draft(file, beside=tmp_path).text()
    assert "    owner: person_id  # from the name" in plain
    assert "sex: {values: [female, male, other]}  # from the name" in plain
    assert "seen: {timestamp: [2000-01-01, 2031-01-01], step: 1s}  # from the type" in plain
    write_catalog(tmp_path / "town.sas7bcat", {"SEXF": {1: "Male", 2: "Female"}})
    text = draft(file, beside=tmp_path).text()
    assert "sex: {values: [1, 2]}  # from the labels (1 Male, 2 Female): check" in text
    assert "SECRET" not in text + plain
    assert "31337" not in text + plain
    declared = (
        "{sex: {values: [1, 2]}, score: {decimal: [0, 100], step: 0.1}, note: text, "
        "day: {date: [1960-01-01, 2030-12-31]}, seen: {timestamp: [1960-01-01, 2030-01-01], step: 1s}}"
    )
    policy = policy_for(str(file), tmp_path, f"town: {{owner: person_id, columns: {declared}}}")
    assert check(policy).problems == ()
    for number in (1, 2):
        prepare(policy, policy.source, policy.store, number)
        engine = DuckDB.open(policy, number)
        assert kept(engine, "town") == [
            ("1", 0, 10, "SECRET", date(1960, 1, 1), datetime(1960, 1, 1)),
            ("2", 1, 25, "b", date(2024, 12, 31), datetime(2024, 12, 31, 2, 0, 1)),
            ("3", None, 1000, "c", date(1960, 1, 2), datetime(1960, 1, 1, 0, 0, 5)),
        ]
        engine.close()
        (tmp_path / "town.sas7bcat").unlink(missing_ok=True)


def test_a_catalog_that_is_none(tmp_path: Path) -> None:
    write_sas(tmp_path / "t.sas7bdat", {"id": [1]})
    (tmp_path / "t.sas7bcat").write_bytes(b"no catalog")
    with pytest.raises(UsageError, match=r"catalog t\.sas7bcat cannot be read"):
        draft(tmp_path / "t.sas7bdat")


def test_stata_labels(tmp_path: Path) -> None:
    text = draft(labelled(tmp_path, pyreadstat.write_dta, "town.dta")).text()
    assert (
        "sex: {values: [1, 2, 9]}  # from the labels (1 Male, 2 Female # x, 9 No answer): check"
        in text
    )


@pytest.mark.parametrize(
    ("suffix", "write", "options"),
    [
        (".zsav", pyreadstat.write_sav, {"compress": True}),
        (".por", pyreadstat.write_por, {}),
        (".dta", pyreadstat.write_dta, {}),
        (".xpt", pyreadstat.write_xport, {}),
    ],
)
def test_other_labelled_files_are_sources(
    tmp_path: Path, suffix: str, write: Callable[..., None], options: dict[str, Any]
) -> None:
    frame = pd.DataFrame({"ID": [1.0, 2.0, 3.0], "SCORE": [1.0, 2.5, 7.0], "NOTE": ["a", "b", "c"]})
    write(frame, str(tmp_path / f"town{suffix}"), **options)
    columns = "{SCORE: {decimal: [0, 10], step: 0.1}, NOTE: text}"
    policy = policy_for(
        str(tmp_path / f"town{suffix}"), tmp_path, f"town: {{owner: ID, columns: {columns}}}"
    )
    prepare(policy, policy.source, policy.store, 1)
    engine = DuckDB.open(policy, 1)
    assert kept(engine, "town") == [("1", 10, "a"), ("2", 25, "b"), ("3", 70, "c")]
    engine.close()


def test_a_labelled_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "t.sav").write_bytes(b"no such file")
    with pytest.raises(UsageError, match=r"cannot be read as \.sav"):
        draft(tmp_path / "t.sav")


@pytest.mark.parametrize("suffix", [".sqlite", ".duckdb"])
def test_columns_that_refer_to_codes(
    tmp_path: Path, suffix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Keys of a table are listed only where the curator says that everybody may know it."""
    file = tmp_path / f"town{suffix}"
    script = (
        "CREATE TABLE states (code VARCHAR PRIMARY KEY, label VARCHAR);"
        "CREATE TABLE people (person_id INTEGER PRIMARY KEY, state VARCHAR REFERENCES states(code),"
        " height INTEGER CHECK (height BETWEEN 40 AND 230));"
        "CREATE TABLE visits (visit_id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES people(person_id));"
        "CREATE TABLE labs (visit_id INTEGER REFERENCES visits(visit_id), value DOUBLE);"
        "INSERT INTO states VALUES ('N', 'North'), ('S', 'South');"
    )
    if suffix == ".sqlite":
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(script)
    else:
        with duckdb.connect(str(file)) as database:
            database.execute(script)
    before = draft(file).text()
    assert (
        "      # state: left out: it refers to states; if everybody may know that table" in before
    )
    assert "N, S" not in before
    assert "height: {integer: [40, 230]}  # from CHECK" in before
    assert "owner: {through: visits, on: visit_id}  # from the keys: check" in before
    out = tmp_path / "p.yaml"
    assert run(["init", str(file), "--out", str(out), "--public", "States"]) == 0
    text = out.read_text()
    assert "  states: {public: true}  # you said so\n" in text
    assert "      state: {values: [N, S]}  # from the public table states\n" in text
    assert run(["check", str(out)]) == 0
    assert run(["init", str(file), "--out", str(tmp_path / "q.yaml"), "--public", "nowhere"]) == 2
    assert "There is no table nowhere to be public" in capfd.readouterr().err


def test_files_that_only_call_themselves_so(tmp_path: Path) -> None:
    (tmp_path / "town.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(UsageError, match="no SQLite file"):
        draft(tmp_path / "town.sqlite")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of our own, on a socket in a folder of ours."""
    tools = [shutil.which(tool) or next(iter(sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{tool}")))), None)
             for tool in ("initdb", "pg_ctl")]  # fmt: skip
    if None in tools:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "PostgreSQL is not installed"
        )
    folder = Path("/tmp") / f"discreet-{os.getpid()}"  # the path of a socket is short
    folder.mkdir(mode=0o700)
    account = {"user": "nobody"} if os.getuid() == 0 else {}
    if account:
        shutil.chown(folder, "nobody")
    data = folder / "data"
    log = tmp_path_factory.mktemp("log")
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 120,
                             "cwd": folder, **account}  # fmt: skip
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    try:
        subprocess.run(
            [str(tools[0]), "-D", str(data), "-U", "curator", "-A", "trust", "-N"], **quiet
        )
        subprocess.run(
            [
                str(tools[1]),
                "-D",
                str(data),
                "-w",
                "-o",
                options,
                "-l",
                str(folder / "log"),
                "start",
            ],
            **quiet,
        )
    except (OSError, subprocess.SubprocessError):
        shutil.rmtree(folder, ignore_errors=True)
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            f"PostgreSQL does not start: {log}"
        )
    try:
        yield f"postgresql://curator@/postgres?host={folder}"
    finally:
        subprocess.run(
            [str(tools[1]), "-D", str(data), "-m", "immediate", "stop"], **{**quiet, "check": False}
        )
        shutil.rmtree(folder, ignore_errors=True)


def test_postgres(server: str, tmp_path: Path) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE TYPE sexes AS ENUM ('F', 'M', 'q')")
        connection.execute(
            "CREATE TABLE visits (visit_id serial PRIMARY KEY, person_id int, age int CHECK (age BETWEEN 0 AND 300),"
            " sex sexes, note text, seen timestamptz, paid numeric(10,2), day date, tags text[])"
        )
        connection.execute("CREATE TABLE labs (visit_id int REFERENCES visits, value float8)")
        for row in ROWS:
            connection.execute(
                "INSERT INTO visits (person_id, age, sex, note) VALUES (%s, %s, %s, %s)", row
            )
        connection.execute(
            "UPDATE visits SET seen = '2024-07-01 10:00+02', paid = 1234.55, day = 'infinity', tags = '{SECRET}'"
        )
        connection.execute("CREATE ROLE reader LOGIN; GRANT SELECT ON visits TO reader")
    text = draft(server).text()
    for line in (
        f"source: '{server}'\n",
        "    owner: person_id  # from the name",
        "age: {integer: [0, 300]}  # from CHECK",
        "sex: {values: [F, M, q]}  # from ENUM",
        "owner: {through: visits, on: visit_id}  # from the keys: check",
    ):
        assert line in text
    assert "SECRET" not in text
    assert "hidden" not in draft(server.replace("curator@", "curator:hidden@")).text()
    found = prepared(tmp_path, f"'{server}'")
    assert found == [(int(person), *rest) for person, *rest in KEPT]
    more = "{seen: {timestamp: [2024-01-01, 2025-01-01], step: 1s}, paid: {decimal: [0, 2000], step: 0.01}, "
    more += "day: {date: [2024-01-01, 2024-12-31]}}"
    policy = policy_for(server, tmp_path, f"visits: {{owner: visit_id, columns: {more}}}")
    prepare(policy, policy.source, policy.store, 7)
    engine = DuckDB.open(policy, 7)
    assert {row[1:] for row in kept(engine, "visits")} == {
        (pd.Timestamp("2024-07-01 08:00"), 123455, date(2024, 12, 31))
    }
    engine.close()
    reader = server.replace("curator@", "reader@")
    with pytest.raises(UsageError, match="its role lacks SELECT"):
        prepare(policy_for(reader, tmp_path, "labs: {owner: visit_id}"), reader, tmp_path / "s", 1)
    with pytest.raises(UsageError, match="cannot be reached"):
        draft("postgresql://nobody@/none?host=/nowhere")


def test_postgres_is_read_as_of_one_moment(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody writes between the reading of two tables is in neither of them."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(
            "CREATE SCHEMA moment; CREATE TABLE moment.a (n int); CREATE TABLE moment.b (n int)"
        )
        reader = Postgres(address=f"{server}&options=-csearch_path%3Dmoment")
        one_table = Postgres._stream

        def then_write(self: Postgres, opened: Any, table: str, wanted: Any, errors: Any) -> Any:
            found = one_table(self, opened, table, wanted, errors)
            connection.execute("INSERT INTO moment.a VALUES (1); INSERT INTO moment.b VALUES (1)")
            return found

        def counts(*rows: str) -> dict[str, int]:
            with reader.read(dict.fromkeys(rows)) as tables:
                return {table: pa.table(found).num_rows for table, found in tables.items()}

        monkeypatch.setattr(Postgres, "_stream", then_write)
        assert counts("a", "b") == {"a": 0, "b": 0}
        assert counts("a", "b") == {"a": 2, "b": 2}
        assert counts("a") == {"a": 4, "b": 0}


def policy_for(source: str, tmp_path: Path, table: str) -> Policy:
    text = f"source: '{source}'\nunit: p\nbudget: {{epsilon: 1}}\ntables: {{{table}}}\n"
    return Policy.parse(text, path=tmp_path / "p.yaml")


# --- the command ----------------------------------------------------------------------------------


def test_the_dialogue(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Column by column: Enter takes a suggestion, - leaves it out, what is no declaration is asked
    again.
    """
    (folder / "people.parquet").unlink()
    answers = iter(["nobody", "", "0", "3", "", "{integer: [9, 0]}", "{values: [a, b]}", "-"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    out = folder.parent / "p.yaml"
    assert run(["init", str(folder), "--out", str(out), "--ask"]) == 0
    told = capfd.readouterr().out
    assert "There is no column nobody here. There are id, note, age." in told
    assert "max_rows must be a whole number, 1 or more, not 0." in told
    assert "A count at ε = 0.1 is right to ± 90." in told
    assert "the range ends (0) before it begins (9)" in told
    assert "2 public groups; a count of each at ε = 0.1 is right to ± 30." in told
    assert "A sum at ε = 0.1 is right to ± 3,595" in told
    text = out.read_text()
    assert "    owner: id  # you said so\n    max_rows: 3  #" in text
    assert "      id: {identifier: true}  # you said so\n" in text
    assert "      note: {values: [a, b]}  # you said so\n" in text
    assert "age:" not in text.split("columns:")[1].split("# age")[0]
    assert run(["check", str(out)]) == 0
    assert "Next: discreet ledger" in capfd.readouterr().out


def test_each_step_names_the_next(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = str(folder.parent / "p.yaml")
    assert run(["init", str(folder), "--out", out]) == 0
    assert "Then: discreet check" in capfd.readouterr().out

    def following() -> str:
        assert run(["check", out, "--format", "json"]) == 0
        return str(json.loads(capfd.readouterr().out)["next"])

    assert following() == f"discreet ledger {out} --create"
    assert run(["ledger", out, "--create"]) == 0
    capfd.readouterr()
    assert following() == f"discreet snapshot {out}"
    assert run(["snapshot", out, "--quiet"]) == 0
    assert capfd.readouterr().out == ""
    assert (
        following()
        == f'discreet ask {out} "SELECT COUNT(*) FROM people" --analyst alice --epsilon 0.1'
    )
    Path(out).write_text(Path(out).read_text().replace("max_rows: 1", "max_rows: 2"))
    assert following().startswith(f"discreet snapshot {out}  (the tables are declared otherwise")


def test_missing_readers_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("psycopg", "openpyxl", "pyreadstat"):
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / "t.xlsx").write_bytes(b"")
    with pytest.raises(UsageError, match=r"pip install 'discreet\[excel\]'"):
        draft(tmp_path / "t.xlsx")
    with pytest.raises(UsageError, match=r"pip install 'discreet\[postgres\]'"):
        draft("postgresql://x@/y")
    (tmp_path / "t.sav").write_bytes(b"")
    with pytest.raises(
        UsageError, match=r"A .sav file needs pyreadstat: pip install 'discreet\[spss\]'"
    ):
        draft(tmp_path / "t.sav")


def test_sheets_that_are_no_tables_and_views_that_are(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "people"
    for row in (["person_id", "age"], [1, 30], [2, 40]):
        book.active.append(row)
    book.create_sheet("Sheet2")
    book.save(tmp_path / "people.xlsx")
    assert [table.name for table in draft(str(tmp_path / "people.xlsx")).tables] == ["people"]
    book.create_sheet("notes").append([None, "what this is"])
    book.save(tmp_path / "people.xlsx")
    text = "people: {owner: person_id, columns: {age: {integer: [0, 120]}}}"
    policy = policy_for(str(tmp_path / "people.xlsx"), tmp_path, text)
    assert prepare(policy, policy.source, policy.store, 1).tables[0].kept == 2
    with sqlite3.connect(tmp_path / "clinic.sqlite") as connection:
        connection.executescript(
            "CREATE TABLE people (person_id INTEGER, age INT); INSERT INTO people VALUES (1, 30), (2, 9);"
            "CREATE VIEW adults AS SELECT * FROM people WHERE age >= 18"
        )
    connection.close()
    source = str(tmp_path / "clinic.sqlite")
    assert [table.name for table in draft(source).tables] == ["adults", "people"]
    policy = policy_for(source, tmp_path, text.replace("people:", "adults:"))
    assert prepare(policy, policy.source, policy.store, 2).tables[0].kept == 1
