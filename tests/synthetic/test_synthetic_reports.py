"""What people are shown: pages that load nothing, a secret one that says so, and questions to
released rows.
"""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import Rejected, UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.description import Description
from discreet.synthetic.released import ask
from discreet.synthetic.report.digits import as_exact_as, few_digits
from discreet.synthetic.report.inspect import as_json, text
from discreet.synthetic.report.raw import cells_of, raw_report
from discreet.synthetic.report.reports import description_page
from synthetic.small_table import curator, rows

COUNT = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy, a description, and the true rows beside other people's."""
    home = tmp_path_factory.mktemp("reports")
    made = curator(home, count=COUNT, more="      notes: {text: true, nullable: true}")
    made.describe("people", epsilon=100, synthesizer="mst").save(home / "d.json")
    for name, table in (("true", rows(COUNT)), ("others", rows(2 * COUNT).slice(COUNT))):
        pyarrow.parquet.write_table(table, home / f"{name}.parquet")
    return home


def valid(page: str) -> bool:
    """Every tag that is opened is closed; nothing is loaded or run."""
    assert not re.search(r"https?:|<script|<link|<img|@import|url\(", page)
    tags = re.findall(r"<(/?)(\w+)[^>]*?(/?)>", page.replace("<!doctype html>", ""))
    open_tags: list[str] = []
    for closing, name, alone in tags:
        if closing:
            assert open_tags.pop() == name
        elif not alone and name != "meta":
            open_tags.append(name)
    return not open_tags


def cells_below(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table below a heading, without its head."""
    table = page.split(f"<h2>{heading}</h2>")[1].split("<tbody>")[1].split("</tbody>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("</tr>")[:-1]]
    return [[re.sub("<.*?>", "", cell).strip() for cell in row] for row in cells]


def decimals(number: str) -> int:
    return len(number.partition(".")[2])


def test_a_comparison_is_paid_and_may_be_published(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "q.sql").write_text("SELECT sex, COUNT(*) FROM people WHERE smoker GROUP BY sex;")
    arguments = ["compare", str(folder / "policy.yaml"), str(folder / "d.json"), "--epsilon", "20"]
    wanted = ["--workload", str(folder / "q.sql"), "--target", "smoker"]
    assert run([*arguments, *wanted, "--html", str(folder / "c.html"), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"distances", "asked", "correlations", "classifier", "certificate"} <= set(told)
    page = (folder / "c.html").read_text()
    assert valid(page)
    values = cells_below(page, "Values")
    assert len(values) == len(told["values"]) > 10
    for _, _, true, synthetic in values:
        assert re.fullmatch(r"-?[\d,]+(\.\d+)?", synthetic), synthetic
        assert decimals(synthetic) == decimals(true.split(" ± ")[1]), (true, synthetic)
    assert "NOT FOR RELEASE" not in page
    assert run([*arguments, *wanted]) == 0
    assert "AUC" in capsys.readouterr().out
    assert run([*arguments, "--target", "ill"]) == 2
    assert (
        run(["compare", str(folder / "policy.yaml"), str(folder / "d.json"), "--epsilon", "2000"])
        == 2
    )


def test_what_is_computed_on_raw_rows_goes_to_a_second_report(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.cli.synthetic.TRIALS", 60)
    spent = discreet.open(folder / "policy.yaml")._ledger.spent()
    public, secret = folder / "d.html", folder / "d.NOT-FOR-RELEASE.html"
    raw = ["--raw", str(folder / "true.parquet"), "--control", str(folder / "others.parquet")]
    assert (
        run(["inspect", str(folder / "d.json"), "--html", str(public), *raw, "--target", "smoker"])
        == 0
    )
    assert "NOT FOR RELEASE" in capsys.readouterr().err
    assert valid(public.read_text())
    assert valid(secret.read_text())
    assert "NOT FOR RELEASE" in secret.read_text()[:300]
    assert "NOT FOR RELEASE" not in public.read_text()
    for attack in ("single out", "link two halves", "infer smoker", "tell members"):
        assert attack in secret.read_text()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert discreet.open(folder / "policy.yaml")._ledger.spent() == spent
    assert run(["inspect", str(folder / "d.json"), "--target", "smoker"]) == 2
    assert run(["inspect", str(folder / "d.json"), "--raw", str(folder / "d.json")]) == 2


def test_the_page_of_a_description_draws_rows_per_unit(folder: Path) -> None:
    page = description_page(Description.load(folder / "d.json"))
    assert valid(page)
    for said in ("rows per day", "rows per 1,000", "rows per value", "Apr 2024"):
        assert said in page


def test_each_value_of_a_description_has_a_cell_or_a_line(folder: Path) -> None:
    description = Description.load(folder / "d.json")
    rows = cells_below(description_page(description), "Values")
    told = {each["name"]: each["values"] for each in as_json(description)["columns"]}
    assert [name for name, *_ in rows] == [name for name, values in told.items() if values]
    lines = [line.split(maxsplit=1) for line in text(description).splitlines()]
    for name, mean, *quantiles, heavy in rows:
        assert quantiles == [*told[name]["quantiles"].values()]
        assert heavy.count("(") == len(told[name]["heavy"])
        assert (mean == "") == (told[name]["mean"] is None)
        for shown in filter(None, (mean, heavy)):
            assert any(shown in line[-1] for line in lines if line), shown
        assert ["99", f"% {' ' * 10}{quantiles[-1]}"] in lines
    assert "%" not in rows[0][1]


def test_numbers_have_the_digits_that_mean_something() -> None:
    numbers = (0.0, 0.0274745, 4.44871e-05, 1.0, 44.9625, -24631.72, 123_456_789.5)
    shown = ["0", "0.0275", "0.000044", "1.000", "44.96", "-24,632", "123,456,790"]
    assert [few_digits(each) for each in numbers] == shown
    assert as_exact_as(0.0043, 0.0274745) == "0.0275"
    assert as_exact_as(0.0, 0.0274745) == "0.0275"
    assert as_exact_as(0.0043, 4.44871e-05) == "0.0000"
    assert as_exact_as(540.0, 24631.72) == "24,632"


def test_raw_figures_are_exact(folder: Path) -> None:
    description = Description.load(folder / "d.json")
    found = raw_report(description, rows(COUNT), target="smoker", risks=())
    assert found.rows == COUNT
    assert max(value for columns, value in found.distances.items() if len(columns) == 1) < 0.15
    assert found.classifier is not None
    assert min(found.classifier.true, found.classifier.synthetic) > 0.95
    with pytest.raises(UsageError, match="no column age"):
        raw_report(description, rows(10).drop(["age"]), target=None, risks=())


def test_cells_of_raw_rows_are_those_that_the_engine_counts(tmp_path: Path) -> None:
    """Every kind of column: what a nearly noiseless description counted, the raw rows' cells give
    too.
    """
    made = curator(tmp_path, count=COUNT, more="      notes: {text: true, nullable: true}")
    description = made.describe("people", epsilon=900, synthesizer="independent")
    cells = cells_of(description, rows(COUNT))
    assert len(cells) == COUNT
    for each in description.measured:
        (column,) = each.columns
        counted = np.bincount(cells[:, column], minlength=description.axes[column].size)
        assert np.abs(counted - each.counts).max() <= 3, description.axes[column].name


QUESTIONS = {
    "SELECT COUNT(*) AS n FROM people": [{"n": COUNT}],
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n DESC LIMIT 1": [
        {"sex": "F", "n": 400}
    ],
    "SELECT SUM(CLAMP(age, 0, 25)) AS s FROM people WHERE smoker AND age < 25": None,
    "SELECT MEDIAN(age) AS m, COUNT(DISTINCT ill) AS k FROM people": None,
}


@pytest.mark.parametrize("sql", QUESTIONS)
def test_released_rows_answer_the_same_sql_exactly(sql: str) -> None:
    found = ask(sql, {"people": rows(COUNT)})
    assert found.num_rows == 1
    assert QUESTIONS[sql] in (None, found.to_pylist())


def test_what_is_refused_of_private_tables_is_refused_alike() -> None:
    for sql in (
        "DROP TABLE people",
        "SELECT * FROM read_csv('x')",
        "SELECT nothing FROM people",
        "COPY people TO 'x'",
    ):
        with pytest.raises(Rejected):
            ask(sql, {"people": rows(4)})


def test_query_asks_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "people.parquet"
    assert run(["generate", str(folder / "d.json"), "--rows", "500", "--out", str(out)]) == 0
    capsys.readouterr()
    sql = "SELECT COUNT(*) AS n FROM people"
    assert run(["query", str(out), sql, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"columns": ["n"], "rows": [[500]]}
    assert run(["query", str(out), "SELECT COUNT(*) AS n FROM town", "--table", "town"]) == 0
    assert "500" in capsys.readouterr().out
    assert run(["query", str(out), "SELECT COUNT(*) AS n FROM town"]) == 4
    assert run(["query", str(folder / "none.parquet"), sql]) == 2


def test_a_curator_publishes_it_as_a_table_that_costs_nothing(tmp_path: Path) -> None:
    description = curator(tmp_path / "first", count=200).describe(
        "people", epsilon=5, columns=["age", "sex"]
    )
    policy = tmp_path / "policy.yaml"
    text = (tmp_path / "first" / "policy.yaml").read_text()
    policy.write_text(text.replace("  states: {public: true}", "  like_people: {public: true}"))
    create_ledger(Policy.read(policy))
    made = description.generate(rows=300)
    opened = discreet.open(policy, tables={"people": rows(200), "like_people": made})
    sql = "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM like_people GROUP BY sex ORDER BY sex"
    answer = opened.ask(sql, analyst="alice", epsilon=1)
    assert answer.cost.epsilon == 0
    assert opened._ledger.spent().amount == 0
    assert answer.table.column("n").to_pylist() == [
        count
        for _, count in sorted(
            zip(*np.unique(made["sex"].to_pylist(), return_counts=True), strict=True)
        )
    ]
    assert isinstance(answer.table, pa.Table)
