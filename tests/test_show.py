"""How values look outside of Python: in JSON, in tables and in CSV."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.budget import Budget
from discreet.cli import run
from discreet.display.show import cell, printable
from discreet.policy.policy import Policy
from discreet.vault.answer import Answer, plain

NOTHING = Budget(epsilon=Fraction(0), delta=Fraction(0))
SPAN = pa.MonthDayNano([3, 2, 10**9])

SHOWN: list[tuple[Any, Any, str]] = [  # a value, as JSON, in a table
    ([Decimal("83.69"), Decimal("794.34")], ["83.69", "794.34"], "[83.69, 794.34]"),
    ([[1, None], []], [[1, None], []], "[[1, NULL], []]"),
    (
        [date(2024, 1, 2), float("nan"), 2**60],
        ["2024-01-02", None, str(2**60)],
        f"[2024-01-02, NULL, {2**60}]",
    ),
    ({"a": Decimal("1.50"), "b": [True]}, {"a": "1.50", "b": [True]}, "{a: 1.50, b: [True]}"),
    ([("key", 1)], [["key", 1]], "[[key, 1]]"),  # a map
    (SPAN, "3 months 2 days 00:00:01", "3 months 2 days 00:00:01"),
    ([SPAN], ["3 months 2 days 00:00:01"], "[3 months 2 days 00:00:01]"),
    (b"ab\xff", "6162ff", "6162ff"),
]


def test_spaces_of_every_width_stay_and_what_a_terminal_obeys_is_marked() -> None:
    for spaces in ("95\u00a0%", "12\u202f345", "a\u2009b\u3000c", "two\nlines"):
        assert printable(spaces) == spaces
    for obeyed in "\x1b\x07\x9b\r\b\x00\x7f\u202e\u2066\u2028\u2029\u200b\ud800":
        assert printable(f"a{obeyed}b") == "a\ufffdb"


@pytest.mark.parametrize(("value", "simple", "text"), SHOWN, ids=[text for _, _, text in SHOWN])
def test_no_value_is_shown_as_python_writes_it(value: Any, simple: Any, text: str) -> None:
    assert plain(value) == simple
    assert json.loads(json.dumps(plain(value))) == simple
    assert cell(value, None) == text


@pytest.mark.parametrize(
    "interval",
    [
        *(
            "0 days",
            "1 month",
            "14 months 2 days 1.5 seconds",
            "-14 months -1 days -1 seconds",
            "100 hours",
        ),
        *(
            "1 microsecond",
            "-1 microsecond",
            "12 months",
            "3 months -2 days 61 minutes",
            "-36 months 59.999999 seconds",
        ),
    ],
)
def test_intervals_are_written_as_duckdb_writes_them(interval: str) -> None:
    found = (
        duckdb.connect()
        .sql(f"SELECT INTERVAL '{interval}' AS value, value::VARCHAR AS text")
        .to_arrow_table()
    )
    assert plain(found["value"][0].as_py()) == found["text"][0].as_py()


def test_a_page_shows_lists_and_labels_without_python() -> None:
    table = pa.table({"day": [SPAN, None], "n": [1, 2]})
    lists = pa.table({"q": [[Decimal("83.69")], None], "n": [1, 2]})
    margins = pa.array([None, None], pa.float64()), pa.array([1.0, 1.0])
    for each in (table, lists):
        page = Answer(
            table=each,
            margins=pa.table(margins, names=each.column_names),
            selected=(False, False),
            cost=NOTHING,
            left=NOTHING,
            certificate={},
            id="",
        )._repr_html_()
        shown = "3 months 2 days 00:00:01" if each is table else "[83.69]"
        assert f"<td>{shown}</td>" in page
        assert f'<div class="name">{shown}</div>' in page
        assert not any(word in page for word in ("Decimal", "MonthDayNano", "None"))


def test_released_rows_with_lists(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = pa.table(
        {
            "q": [[Decimal("83.69"), Decimal("794.34")], None],
            "s": [{"a": 1}, {"a": None}],
            "b": [b"a", None],
        }
    )
    pyarrow.parquet.write_table(rows, tmp_path / "rows.parquet")
    sql, found = "SELECT q, s, b FROM rows", {}
    for form in ("json", "csv", "table"):
        assert run(["query", str(tmp_path / "rows.parquet"), sql, "--format", form]) == 0
        found[form] = capfd.readouterr().out
    assert json.loads(found["json"])["rows"] == [
        [["83.69", "794.34"], {"a": 1}, "61"],
        [None, {"a": None}, None],
    ]
    assert list(csv.reader(io.StringIO(found["csv"])))[1:] == [
        ["[83.69, 794.34]", "{a: 1}", "61"],
        ["", "{a: NULL}", ""],
    ]
    assert "[83.69, 794.34]" in found["table"]


def test_every_answer_says_that_further_rows_are_not_in_it(tmp_path: Path) -> None:
    """By the policy, not by the data: nobody here has more rows than allowed."""
    path = tmp_path / "town.yaml"
    path.write_text(
        "unit: person\ntables:\n  visits: {owner: id, max_rows: 10, columns: {x: {integer: [0, 9]}}}\n"
        "  people: {owner: id}\nbudget: {epsilon: 100}\nanalysts: {ann: {epsilon: 100}}\n"
    )
    create_ledger(Policy.read(path))
    visits, people = pa.table({"id": [1, 1], "x": [1, 2]}), pa.table({"id": [1]})
    curator = discreet.open(path, tables={"visits": visits, "people": people})
    most = "each person counts with at most 1 row of people, 10 rows of visits (max_rows)"
    said = f"{most}; ± covers the noise, not the rows left out"
    sql = "SELECT COUNT(*) FROM visits JOIN people ON visits.id = people.id"
    answer, quote = (
        curator.ask(sql, analyst="ann", epsilon=1),
        curator.quote(sql, analyst="ann", epsilon=1),
    )
    assert (
        answer.certificate["max_rows"] == quote.as_json()["max_rows"] == {"people": 1, "visits": 10}
    )
    assert said in str(answer).splitlines()
    assert said in str(quote).splitlines()
    assert f"1. In a snapshot, {said}." in curator.explain(sql, analyst="ann", epsilon=1)
    assert curator.ask("SELECT COUNT(*) AS n FROM people", analyst="ann", epsilon=1).certificate[
        "max_rows"
    ] == {"people": 1}
