"""What a description should be good at: questions in a file, or those that were asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.description import Description
from discreet.synthetic.workload import statements, workload
from synthetic.small_table import curator

COLUMNS = ["age", "income", "sex", "ill", "smoker"]
FILE = """
-- what the ministry asks for
SELECT sex, COUNT(*) FROM people WHERE age > 30 GROUP BY sex;
SELECT AVG(income) FROM people p WHERE p.SEX = 'F' AND age BETWEEN 1 AND 9;
SELECT COUNT(*) FROM people;
SELECT COUNT(*) FROM visits WHERE ill = 'flu';
WITH old AS (SELECT * FROM people WHERE age > 60) SELECT smoker, COUNT(*) FROM old GROUP BY smoker
"""


def test_questions_become_sets_of_columns() -> None:
    found = workload(statements(FILE, name="q.sql"), table="people", columns=COLUMNS)
    assert dict(found.sets) == {(0, 2): 1, (0, 1, 2): 1, (0, 4): 1}
    assert found.weight((0, 2)) == pytest.approx(2 / 3)
    assert found.candidates(5) == [(0, 1), (0, 2), (0, 4), (1, 2), (0, 1, 2)]
    assert found.column_weight(3) < found.column_weight(4) < found.column_weight(0) == 1


def test_what_is_no_question_is_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"q.sql, line 2: this is not SQL"):
        statements("SELECT 1;\nSELECT FROM WHERE (", name="q.sql")
    with pytest.raises(UsageError, match="No question of the workload asks for a column of people"):
        workload(["SELECT COUNT(*) FROM people"], table="people", columns=COLUMNS)


@pytest.mark.parametrize("name", ["aim", "default"])
def test_only_what_is_asked_is_counted(name: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=2000)
    asked = [
        "SELECT ill, COUNT(*) FROM people WHERE smoker GROUP BY ill",
        "SELECT AVG(income) FROM people",
    ]
    found = made.describe("people", epsilon=20, synthesizer=name, workload=asked)
    assert {each.columns for each in found.measured if len(each.columns) > 1} == {(3, 4)}
    assert found.marginal((3, 4))[1, 1] == pytest.approx(1000, abs=40)


def test_three_columns_that_are_asked_together_are_counted_together(tmp_path: Path) -> None:
    """c is true where a and b differ, which no pair tells."""
    policy = tmp_path / "policy.yaml"
    columns = ", ".join(f"{name}: {{boolean: true}}" for name in "abc")
    policy.write_text(
        f"unit: person\ntables: {{t: {{owner: o, columns: {{o: {{identifier: true}}, {columns}}}}}}}\n"
        "budget: {epsilon: 100, delta: 1e-6, accountant: zcdp}\nlimits: {epsilon: 100}\n"
    )
    create_ledger(Policy.read(policy))
    a, b = np.arange(2000) % 2 > 0, np.arange(2000) // 2 % 2 > 0
    made = discreet.open(
        policy, tables={"t": pa.table({"o": np.arange(2000), "a": a, "b": b, "c": a ^ b})}
    )
    blind = made.describe("t", epsilon=50)
    assert abs(blind.marginal((0, 1, 2))[1, 1, 1] - 250) < 50
    found = made.describe(
        "t", epsilon=50, workload=["SELECT a, b, COUNT(*) FROM t WHERE c GROUP BY a, b"]
    )
    assert found.marginal((0, 1, 2))[1, 1, 1] < 50


def test_another_workload_is_another_question(tmp_path: Path) -> None:
    made = curator(tmp_path, count=50)
    for asked in (None, ["SELECT sex, ill FROM people"], ["SELECT sex, age FROM people"]):
        made.describe("people", epsilon=1, workload=asked)
    assert len(made.ledger()) == 3
    with pytest.raises(
        UsageError, match="mst does not use a workload; independent, aim and default do"
    ):
        made.describe("people", epsilon=1, synthesizer="mst", workload=["SELECT sex FROM people"])


def test_what_was_asked_so_far(tmp_path: Path) -> None:
    """Also from the command line; descriptions in the ledger are no questions."""
    made = curator(tmp_path, count=500)
    made.describe("people", epsilon=1, synthesizer="random")
    sql = "SELECT ill, COUNT(*) AS n FROM people WHERE smoker GROUP BY ill"
    made.ask(sql, analyst="alice", epsilon=1)
    assert made.asked() == (sql,)
    file, questions = tmp_path / "d.json", tmp_path / "q.sql"
    questions.write_text(sql)
    for given in ("asked", str(questions)):
        arguments = [
            "describe",
            str(made.policy.path),
            "people",
            "--epsilon",
            "20",
            "--out",
            str(file),
        ]
        assert run([*arguments, "--workload", given]) == 0
        counted = {
            each.columns for each in Description.load(file).measured if len(each.columns) > 1
        }
        assert counted <= {(3, 4)}
    assert run([*arguments, "--workload", str(tmp_path / "none.sql")]) == 2
