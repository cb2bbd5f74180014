"""Checking a policy against its source, and beginning one: from schemas alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from small_sources import policy_of

from discreet.engines.advice import check
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
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
    assert "people.id (identifier): can be joined on" in notes
    assert "people.name (text): no public values" in notes
    assert "people.pay has 10,000,001 possible values, more than limits.keys" in notes
    assert "visits declares no columns" in notes
    assert (
        "not declared, so no question can use them: smoker, born, seen, kind, marks, a column."
        in notes
    )
    assert "SECRET" not in notes
    assert "moved on" not in notes
    prepare(policy, policy.source, policy.store, 1)
    (folder / "visits.csv").write_text("id,note\n2,b\n")
    assert "moved on since the last snapshot (visits.csv)" in check(policy).notes[-1]


def test_what_would_stop_a_snapshot_has_its_place(folder: Path) -> None:
    tables = (
        "  people:\n    owner: nobody\n    columns:\n"
        "      pay: {date: [2024-01-01, 2024-01-02]}\n      age: boolean\n"
    )
    findings = check(policy_of(tables + "  labs: {owner: id}\n", folder.parent))
    assert [
        f"{problem.line}:{problem.column}: {problem.message}" for problem in findings.problems
    ] == [
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


def test_findings_are_grouped_by_what_they_are_about(folder: Path) -> None:
    policy = policy_of("  visits: {owner: row, columns: {note: text}}\n", folder.parent)
    groups = check(policy).groups
    assert list(groups) == [
        "Whom it protects",
        "The budget",
        "What can be asked",
        "What is left out",
    ]
    assert groups["Whom it protects"][0].startswith("EACH ROW of visits is taken to be one person.")
    assert [note for found in groups.values() for note in found] == list(check(policy).notes)


def test_an_owner_that_cannot_be_one_is_told_before_and_after_the_snapshot(folder: Path) -> None:
    (folder / "people.csv").unlink(missing_ok=True)
    tables = "  people: {owner: age, columns: {age: {integer: [0, 120]}}}\n"
    (folder / "people.parquet").unlink()
    (folder / "people.csv").write_text("age\n" + "40\n41\n" * 50)
    policy = policy_of(tables, folder.parent)
    before = check(policy).groups
    assert (
        "is declared to have 121 values: at most so many people can be told apart"
        in before["Whom it protects"][0]
    )
    assert "The snapshot" not in before
    prepare(policy, policy.source, policy.store, 1)
    (said,) = check(policy).groups["The snapshot"]
    assert said.startswith(
        "Only 2 % of the rows of people are in the snapshot. Does age tell people apart?"
    )
