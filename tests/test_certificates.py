"""What a certificate, a quote and an explanation say of the noise is what was drawn, statistic by
statistic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.mechanisms import from_row, to_row
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from small_town import POLICY, town

QUESTIONS = (
    "SELECT COUNT(*) FROM people",
    "SELECT sex, COUNT(*), SUM(income), SUM(age) FROM people GROUP BY sex",
    # one-shot: the count is what is tested
    "SELECT zip, COUNT(*), SUM(income), SUM(age) FROM people GROUP BY zip",
    "SELECT zip, SUM(age), COUNT(DISTINCT person_id), SUM(income) FROM people GROUP BY zip",
    # people per key are a statistic of their own
    "SELECT zip, SUM(income), SUM(age) FROM people GROUP BY zip",
    "SELECT zip, COUNT(*), SUM(age) FILTER (WHERE sex = 'F'), MEDIAN(age), MODE(sex) FROM people GROUP BY zip",
    "SELECT SUM(age), SUM(age * 2), SUM(income / 2) FROM people",
    "SELECT AVG(income), VARIANCE(age), CORR(age, income), QUANTILE_CONT(age, [0.25, 0.5]) FROM people",
    "SELECT sex, COUNT(*), SUM(age) FROM people GROUP BY ROLLUP (sex)",
    "SELECT SUM(cost), COUNT(DISTINCT person_id), COUNT(*) FILTER (WHERE cost > 5) FROM visits",
    "SELECT (SELECT COUNT(*) FROM people) AS n, (SELECT SUM(cost) FROM visits) AS c, (SELECT COUNT(*) FROM people)",
)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str, str], Curator]:
    def open_town(neighbors: str, accountant: str) -> Curator:
        path = tmp_path / "policy.yaml"
        path.write_text(
            POLICY.replace("NEIGHBORS", neighbors).replace("ACCOUNTANT", accountant),
            encoding="utf-8",
        )
        create_ledger(Policy.read(path))
        return discreet.open(path, tables=town(victim=True))

    return open_town


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_the_ledger_the_draws_and_the_certificate_agree(
    opened: Callable[[str, str], Curator],
    monkeypatch: pytest.MonkeyPatch,
    neighbors: str,
    accountant: str,
) -> None:
    """The noise is recomputed from the ledger's row, which is what was drawn with, and every one is
    told once.
    """
    curator, drawn = opened(neighbors, accountant), list[dict[str, str]]()
    spend = Allowance._spend
    monkeypatch.setattr(
        Allowance, "_spend", lambda self, each: drawn.append(to_row(each)) or spend(self, each)
    )
    for sql in QUESTIONS:
        curator.snapshot()  # else what was measured for an earlier question is recalled
        drawn.clear()
        answer = curator.ask(sql, analyst="alice", epsilon=2)
        certificate = json.loads(json.dumps(answer.certificate))
        row = next(row for row in curator._ledger.rows() if str(row["number"]) == answer.id)
        assert row["mechanisms"] == drawn
        assert sorted(certificate["mechanisms"], key=str) == sorted(drawn, key=str)
        noises = [from_row(each) for each in certificate["mechanisms"]]
        assert _kinds(certificate["statistics"]) == [_kind(each) for each in noises]
        price = curator._accountant.price(noise.loss() for noise in noises)
        assert curator._accountant.budget(price).as_json() == certificate["cost"]


def _kinds(statistics: list[dict[str, Any]]) -> list[tuple[str, float | None]]:
    """Mechanisms and their scales in steps of the grid; a number that is told in several units is
    one.
    """
    found: list[tuple[str, float | None, float]] = []
    for each in statistics:
        steps = None if each["scale"] is None else float(f"{each['scale'] / each['step']:.9g}")
        again = (
            found and found[-1][:2] == (each["mechanism"], steps) and found[-1][2] != each["step"]
        )
        if not again:
            found.append((each["mechanism"], steps, each["step"]))
    return [each[:2] for each in found]


def _kind(mechanism: Any) -> tuple[str, float | None]:
    chosen = getattr(mechanism, "mechanism", mechanism)
    size = getattr(chosen, "scale", None) or getattr(chosen, "sigma", None)
    return type(mechanism).__name__, None if size is None else float(f"{float(size):.9g}")


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_every_statistic_has_its_own_sensitivity_and_scale(
    opened: Callable[[str, str], Curator], neighbors: str
) -> None:
    """By hand, in the columns' own units: incomes up to 200,000, ages up to 120, at ε 3 for three
    statistics.
    """
    curator, times = opened(neighbors, "sum"), 1 if neighbors == "add_remove" else 2
    wanted = {"SUM(income)": 200_000, "SUM(age)": 120, "COUNT(DISTINCT person_id)": 1}
    for order in permutations(wanted):
        sql = f"SELECT zip, {', '.join(order)} FROM people GROUP BY zip"
        found = {
            each["name"]: each for each in curator.quote(sql, analyst="alice", epsilon=3).statistics
        }
        assert set(found) == set(order)
        for name, each in found.items():
            assert each["l1"] == each["scale"] == times * wanted[name]
            assert each["step"] == (0.01 if name == "SUM(income)" else 1)
            assert each["l2"] == pytest.approx(math.sqrt(times) * wanted[name])


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT SUM(income) FROM people", {"SUM(income)": (200_000, 0.01)}),
        ("SELECT SUM(age * 2) FROM people", {"SUM(age * 2)": (240, 2)}),
        (
            "SELECT SUM(age), SUM(age * 2) FROM people",
            {"SUM(age)": (120, 1), "SUM(age * 2)": (240, 2)},
        ),
        ("SELECT AVG(income) FROM people", {"AVG(income)": (200_000, 0.01)}),
        ("SELECT AVG(income), COUNT(*) FROM people", {"AVG(income), COUNT(*)": (200_000, 0.01)}),
        ("SELECT SUM(income / 4) FROM people", {"SUM(income / 4)": (50_000, None)}),
        ("SELECT VARIANCE(income) FROM people", {"VARIANCE(income)": (200_000**2, 0.0001)}),
        ("SELECT COVAR_POP(age, age) FROM people", {"COVAR_POP(age, age)": (120**2, 1)}),
        ("SELECT SUM(cost) FROM visits", {"SUM(cost)": (3_000, 0.01)}),
    ],
)
def test_sensitivities_are_told_in_the_columns_units(
    opened: Callable[[str, str], Curator], sql: str, told: dict[str, tuple[float, float | None]]
) -> None:
    curator = opened("add_remove", "sum")
    quote = curator.quote(sql, analyst="alice", epsilon=1)
    assert {each["name"] for each in quote.statistics} == set(told)
    for each in quote.statistics:
        l1, step = told[each["name"]]
        assert each["l1"] == pytest.approx(l1)
        assert each["scale"] == pytest.approx(l1)
        assert step is None or each["step"] == pytest.approx(step)
    explained = curator.explain(sql, analyst="alice", epsilon=1)
    for l1, step in told.values():
        assert f"{discreet.budget.number(Fraction(str(l1)))} (l1)" in explained
        assert step in (1, None) or f"in steps of {discreet.budget.number(step)}" in explained
        assert f"l1 {discreet.budget.number(Fraction(str(l1)))}" in str(quote)
