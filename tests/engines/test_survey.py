"""Checking a policy against its source, and beginning one: from schemas alone."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest
from small_sources import policy_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.prepare import prepare
from discreet.engines.survey import check, init
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
    }
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    pyarrow.parquet.write_table(PEOPLE, data / "people.parquet")
    (data / "visits.csv").write_text("id,note\n1,SECRET\n")
    return data


def test_a_good_policy_has_notes_only(folder: Path) -> None:
    tables = """\
  people:
    owner: id
    columns:
      id: identifier
      name: text
      pay: {decimal: [0, 100000], step: 0.01}
  visits: {owner: id}
"""
    policy = policy_of(tables, folder.parent)
    findings = check(policy)
    assert findings.problems == ()
    notes = "\n".join(findings.notes)
    assert "The budget has no δ" in notes
    assert "No analyst is declared" in notes
    assert "people.id is an identifier" in notes
    assert "people.name is text" in notes
    assert "people.pay has 10,000,001 possible values, more than limits.keys" in notes
    assert "visits declares no columns" in notes
    assert "not declared, so no question can use them: smoker, born, seen, kind, marks, a column." in notes
    assert "SECRET" not in notes
    assert "moved on" not in notes
    prepare(policy, policy.source, policy.store, 1)
    (folder / "visits.csv").write_text("id,note\n2,b\n")
    assert "moved on since the last snapshot (visits.csv)" in check(policy).notes[-1]


def test_what_would_stop_a_snapshot_has_its_place(folder: Path) -> None:
    tables = (
        "  people:\n    owner: nobody\n    columns:\n      pay: {date: [2024-01-01, 2024-01-02]}\n      age: boolean\n"
    )
    findings = check(policy_of(tables + "  labs: {owner: id}\n", folder.parent))
    assert [f"{problem.line}:{problem.column}: {problem.message}" for problem in findings.problems] == [
        "7:5: people.nobody leads to the owner, and the source has no such column of a simple type.",
        "9:7: people.pay is declared date, and the file people.parquet has DOUBLE there.",
        "10:7: people.age: the source has no such column.",
        "11:3: The source has no table labs. It has people, visits.",
    ]


def test_large_budgets_are_cautioned_about(folder: Path) -> None:
    text = "unit: person\nsource: data\ntables: {visits: {owner: id}}\nbudget: {epsilon: 20, delta: 0.001}\n"
    notes = "\n".join(check(Policy.parse(text, path=folder.parent / "policy.yaml")).notes)
    assert "ε = 20: above 10" in notes
    assert "δ = 0.001" in notes


def test_tables_from_python_can_be_checked(tmp_path: Path) -> None:
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    assert check(policy, {"people": PEOPLE}).problems == ()


def test_a_policy_to_begin_with(folder: Path) -> None:
    text = init(folder, beside=folder.parent)
    assert "source: data\n" in text
    for value in ("SECRET", "HIDDEN", "31337"):
        assert value not in text
    assert "      pay: ???  # DOUBLE: {decimal: [lo, hi], step: 0.01}\n" in text
    assert "      'a column': ???  # BIGINT: " in text
    assert "      kind: ???  # " in text
    assert "      # marks: BIGINT[] cannot be asked about\n" in text
    assert "      note: ???  # CSV: " in text
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, path="new.yaml")
    assert all("is still open: instead of ??? write" in problem.message for problem in caught.value.problems)
    assert len(caught.value.problems) == text.count(": ???  #")


def test_names_that_break_a_line_stay_in_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    names = ["id", "two\nlines", "\x1b[2J", "\u202ex", "\x85y"]
    table = pa.table([[1]] * len(names), names).append_column("list\n  of", [[[1]]])
    pyarrow.parquet.write_table(table, tmp_path / "data" / "people.parquet")
    text = init(tmp_path / "data", beside=tmp_path)
    assert all(character.isprintable() for line in text.split("\n") for character in line)
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, path="new.yaml")
    assert not any("not YAML" in problem.message for problem in caught.value.problems)
    assert text.count(": ???  #") == len(names) + 3  # and the unit, the owner and the budget


def test_a_row_with_a_field_too_many_is_no_header(tmp_path: Path) -> None:
    """Were the header looked for, it would be found in somebody's values."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("id,x\n" + "1,2\n" * 50 + "77,31337,9\n")
    text = init(tmp_path / "data", beside=tmp_path)
    assert "      x: ???  # CSV: " in text
    assert "31337" not in text


def test_once_filled_in_it_is_a_policy(folder: Path) -> None:
    text = init(folder, beside=folder.parent)
    text = (
        text.replace("unit: ???", "unit: person")
        .replace("owner: ???", "owner: id")
        .replace("epsilon: ???", "epsilon: 1")
    )
    policy = Policy.parse(text.replace(": ???", ": text"), path=folder.parent / "policy.yaml")
    assert list(policy.tables["people"].columns) == [name for name in PEOPLE.column_names if name != "marks"]
    assert check(policy).problems == ()
    assert prepare(policy, policy.source, policy.store, 1).tables[0].kept == 2


def test_beginning_from_a_file_or_a_database(folder: Path, tmp_path: Path) -> None:
    assert init(folder / "visits.csv") == init(folder)
    with duckdb.connect(str(tmp_path / "town.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id INTEGER, kind ENUM ('SECRET'))")
    text = init(tmp_path / "town.duckdb")
    assert "      kind: ???  # ENUM: " in text
    assert "SECRET" not in text
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no Parquet or CSV files"):
        init(tmp_path / "empty")
    with pytest.raises(UsageError, match="does not exist"):
        init(tmp_path / "nowhere")


def test_a_snapshot_of_an_earlier_version_is_told(tmp_path: Path) -> None:
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "people.csv").write_text("id\n1\n")
    prepare(policy, policy.source, policy.store, 1)
    assert not any("earlier version" in note for note in check(policy).notes)
    notes = policy.store / "1.json"
    notes.write_text(notes.read_text().replace(', "rules": 2', ""))
    assert any("Snapshot 1 was made by an earlier version" in note for note in check(policy).notes)
    DuckDB.open(policy, 1).close()
