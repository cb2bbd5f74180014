"""Questions about several tables: what they ask of each part, and what that does to what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import discreet
from discreet.audit.replay import find_shared_noise
from discreet.cli import run
from discreet.errors import UsageError
from discreet.synthetic.columns.axis import Intervals
from discreet.synthetic.linked.description import LinkedDescription
from discreet.synthetic.linked.needs import WEIGHT, LinkedNames, TableNames, needs
from synthetic.test_linked import ZCDP, opened, tables
from test_replay import check, transcripts

TABLES = LinkedNames(
    name="people",
    columns=("age", "male"),
    rows={
        "labs": TableNames(
            columns=("test", "value", "day"),
            kind=0,
            counters={"sbp": "rows of labs: sbp", "hdl": "rows of labs: hdl", "bmi": "rows: bmi"},
        ),
        "visits": TableNames(columns=("cost",), kind=None, counters={None: "rows of visits"}),
    },
)
STROKE = (
    "SELECT AVG(value) FROM labs JOIN people AS p USING (id) WHERE test = 'sbp' AND p.age >= 60"
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # of the people's part: age is 0, male 1, then the numbers of sbp, hdl, bmi and visits
        (STROKE, {"people": [(0, 2)], "labs": [(0, 1, 3)]}),
        ("SELECT COUNT(*) FROM people WHERE Male", {"people": [(1,)]}),
        ("SELECT AVG(v.cost) FROM Visits AS v", {"people": [(5,)], "visits": [(0,)]}),
        (
            "SELECT COUNT(*) FROM visits JOIN people USING (id) WHERE male",
            {"people": [(1, 5)], "visits": [(2,)]},
        ),
        # no kind: every kind beside the person's columns, and each two kinds
        (
            "SELECT COUNT(*) FROM labs JOIN people USING (id) WHERE male",
            {"people": [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)], "labs": [(0, 4)]},
        ),
        (
            "SELECT COUNT(*) FROM labs WHERE test IN ('hdl', 'bmi')",
            {"people": [(3, 4)], "labs": [(0,)]},
        ),
        (
            "SELECT id FROM labs WHERE nothing = 1 AND test = 'sbp'",
            {"people": [(2,)], "labs": [(0,)]},
        ),
    ],
)
def test_what_a_question_needs(sql: str, expected: dict[str, list[tuple[int, ...]]]) -> None:
    found = needs([sql], TABLES)
    assert {name: [columns for columns, _ in each.sets] for name, each in found.items()} == expected
    assert WEIGHT * 0.98 <= sum(weight for _, weight in found["people"].sets) <= WEIGHT


def test_questions_about_other_things_are_refused() -> None:
    for questions in (["SELECT 1"], ["SELECT x FROM elsewhere"], []):
        with pytest.raises(UsageError, match="No question of the workload"):
            needs(questions, TABLES)
    with pytest.raises(UsageError, match="Question 2"):
        needs(["SELECT 1", "SELECT (("], TABLES)


def some() -> dict[str, pa.Table]:
    return {name: rows.slice(0, 400) for name, rows in tables(400).items()}


def test_what_is_asked_for_is_counted_together(tmp_path: Path) -> None:
    """The day of a laboratory value is needed by nobody, so it is counted roughly, and alone."""
    made = opened(tmp_path, some())
    told = made.describe_together(["people", "labs"], epsilon=20, workload=[STROKE])
    sets = {each.columns for each in told.people.measured if len(each.columns) > 1}
    assert sets <= {(0, 2)}
    counted = told.rows[0].description.measured
    noise = {each.columns: each.std for each in counted if each.columns in ((0, 1), (0, 2))}
    assert noise[0, 2] > noise[0, 1]
    spent = made._ledger.spent()
    again = made.describe_together(["people", "labs"], epsilon=20, workload=[STROKE])
    assert again.to_bytes() == told.to_bytes()
    assert made._ledger.spent() == spent
    made.describe_together(["people", "labs"], epsilon=20)  # another description
    assert made._ledger.spent().amount == 2 * spent.amount


def test_a_question_that_the_rows_need_nothing_for(tmp_path: Path) -> None:
    """Counts of a kind by a person's column are in the people's part: no pair of the rows is needed."""
    made = opened(tmp_path, some())
    question = "SELECT COUNT(*) FROM labs JOIN people USING (id) WHERE test = 'hdl' AND male"
    told = made.describe_together(["people", "labs"], epsilon=20, workload=[question])
    assert set(told.generate(people=20)) == {"people", "labs"}


def test_a_synthesizer_that_looks_at_no_questions_is_refused(tmp_path: Path) -> None:
    made = opened(tmp_path, some())
    with pytest.raises(UsageError, match="mst does not use a workload"):
        made.describe_together(["people", "labs"], epsilon=1, synthesizer="mst", workload=[STROKE])
    assert made._ledger.spent().amount == 0


def test_a_file_of_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = opened(tmp_path, some())
    seen: list[Any] = []
    described = discreet.Curator.describe_together

    def noted(self: discreet.Curator, *given: Any, **named: Any) -> LinkedDescription:
        seen.append(named["workload"])
        return described(made, *given, **named)

    monkeypatch.setattr(discreet.Curator, "describe_together", noted)
    (tmp_path / "questions.sql").write_text(STROKE + ";\n", encoding="utf-8")
    out = tmp_path / "out.json"
    line = ["describe", tmp_path / "policy.yaml", "people", "labs", "--epsilon", "5", "--out", out]
    assert run([str(part) for part in (*line, "--workload", tmp_path / "questions.sql")]) == 0
    assert len(seen[0]) == 1
    assert LinkedDescription.load(out).tables == ("people", "labs")


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_replayed_on_neighbors(
    neighbors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is counted follows from the questions alone, and from what was released."""
    full = some()
    keep = pa.compute.not_equal(full["labs"]["id"], 7)
    others = {**full, "labs": full["labs"].filter(keep)}
    if neighbors == "add_remove":
        others["people"] = full["people"].filter(pa.compute.not_equal(full["people"]["id"], 7))
    pair = []
    for name, given in (("with", full), ("without", others)):
        (tmp_path / name).mkdir()
        pair.append(opened(tmp_path / name, given, budget=ZCDP, neighbors=neighbors))

    def work(each: discreet.Curator) -> object:
        return each.describe_together(
            ["people", "labs"], epsilon=20, intervals=Intervals(bins=8), workload=[STROKE]
        )

    found = transcripts(pair, work, monkeypatch)
    check(found)
    assert not find_shared_noise(found[0])
