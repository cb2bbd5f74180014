"""What is told: the two failures by hand, errors of counts by hand, and a page that needs nothing
else.
"""

from __future__ import annotations

import re
from io import StringIO

import pyarrow as pa
import pytest
from rich.console import Console

from discreet.anonymity import Demand, anonymize, risk
from discreet.anonymity.failures import failures
from discreet.anonymity.publish import Anonymized
from discreet.anonymity.report.page import page
from discreet.anonymity.report.terminal import print_anonymized, print_risk
from discreet.anonymity.report.words import count, instead, level, levels, share
from discreet.anonymity.source import open_table

GRADES = pa.table(
    {
        "year": ["1"] * 5 + ["2"] * 5 + ["3"] * 5,
        "grade": ["F"] * 5 + ["A", "B", "A", "A", "A"] + ["A", "B", "C", "D", "F"],
        "<b>": list(range(15)),
    }
)


@pytest.fixture(scope="module")
def made() -> Anonymized:
    return anonymize(GRADES, Demand(quasi=["year"], k=5, sensitive="grade"), report=True)


def test_the_two_failures() -> None:
    with open_table(GRADES) as source:
        found = failures(source, quasi=["year"], secret="grade")
    assert found is not None
    assert (found.homogeneous, found.homogeneous_classes) == (5, 1)
    assert found.agreeing is not None
    assert (found.agreeing.shows, found.agreeing.values) == ({"year": "1"}, (("F", 5),))
    assert (found.k, found.left) == (5, 3)
    assert found.nearly == 4  # the A's of year 2: who knows the B knows them
    assert found.thinned is not None
    assert found.thinned.shows == {"year": "2"}


def test_without_a_secret_the_worst_column_is_shown() -> None:
    with open_table(GRADES) as source:
        found = failures(source, quasi=["year"], secret=None)
        none = failures(source, quasi=["year", "grade", "<b>"], secret=None)
    assert found is not None
    assert found.secret == "grade"
    assert none is None


def test_errors_of_counts_are_those_of_a_reader() -> None:
    table = pa.table({"q": ["a", "a", "a", "b"], "r": ["x", "x", "y", "y"]})
    made = anonymize(table, Demand(quasi=["q", "r"], k=4, recoding="global"), report=True)
    assert made.report is not None
    single, paired = made.report.utility.kinds
    assert made.report.utility.by_column == {"q": pytest.approx(1 / 4), "r": 0}
    assert (single.tables, single.counts, single.worst) == (2, 4, 1)
    assert (paired.tables, paired.counts, paired.worst) == (1, 4, 1)
    assert single.margins["2"] < single.margins["0.5"] < single.margins["0.1"]


def test_the_page_stands_alone_and_escapes(made: Anonymized) -> None:
    text = page(made, title="<grades>")
    assert text.startswith("<!doctype html>")
    assert not re.search(r"<script|https?://|@import|url\(", text)
    assert "&lt;grades&gt;" in text
    assert "<grades>" not in text
    for said in (
        "not differential privacy",
        "Everybody in the class has the same grade",
        "3 are left",
        "ε = 0.1",
    ):
        assert said in text


def test_the_terminal_says_the_same(made: Anonymized) -> None:
    told = StringIO()
    console = Console(file=told, width=100)
    print_anonymized(made, where="out.csv", console=console)
    print_risk(
        risk(GRADES, quasi=["year"], sensitive="grade", fraction=0.1), reveal=True, console=console
    )
    text = " ".join(told.getvalue().split())
    for said in (
        "Wrote out.csv",
        "3 are left",
        "not differential privacy",
        "k = 5",
        "l = 1",
        "The most exposed",
    ):
        assert said in text


def test_one_table_is_no_plural() -> None:
    table = pa.table({"age": [1, 1, 2, 2], "grade": ["A", "A", "B", "A"]})
    made = anonymize(table, Demand(quasi=["age"], k=2, sensitive="grade"), report=True)
    told = StringIO()
    print_anonymized(made, where="out.csv", console=Console(file=told, width=100))
    for text in (page(made, title="grades"), " ".join(told.getvalue().split())):
        assert "1 other; there are 2 classes" in text
        assert "its 1 quasi-identifier with" in text
        assert "1 class that agrees on grade" in text
        assert not re.search(r"\b1 (others|tables|counts|classes|people|rows|are)\b", text)
    assert "(1 table, 2 counts)" in page(made, title="grades")
    assert "(1 table, 2 counts)" in instead(made)[0]
    assert [count(n, "class", "classes") for n in (0, 1, 1000)] == [
        "0 classes",
        "1 class",
        "1,000 classes",
    ]


def test_levels_are_told_in_words() -> None:
    ages = pa.table({"age": [20, 21, 22, 40, 43, 46, 80, 81, 120], "x": list("aabbabbab")})
    told = StringIO()
    for recoding in ("local", "global"):
        made = anonymize(ages, Demand(quasi=["age"], k=3, recoding=recoding), report=True)
        print_anonymized(made, where="out.csv", console=Console(file=told, width=200))
        assert levels(made.transformation["age"]) in told.getvalue()
        assert levels(made.transformation["age"]) in page(made, title="ages")
        assert "in bands of" in told.getvalue()
        assert "width " not in told.getvalue()
    assert levels({"exact": 0.9, "width 10": 0.03, "*": 0.07}) == (
        "90 % exact, 3 % in bands of 10, 7 % not shown (*)"
    )
    assert [
        level(name) for name in ("2 cuts", "1 cuts", "first 3", "month", "group", "group 2")
    ] == [
        "cut at 2 points",
        "cut at 1 point",
        "by the first 3 characters",
        "by month",
        "in groups",
        "in groups of level 2",
    ]


@pytest.mark.parametrize(
    ("part", "said"),
    [(0, "none"), (1, "under 1 %"), (400, "40 %"), (999, "over 99 %"), (1000, "all")],
)
def test_shares_are_never_rounded_to_nothing(part: int, said: str) -> None:
    assert share(part, 1000) == said
