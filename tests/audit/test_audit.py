"""The auditor's verbs: true claims hold, too little noise and too small charges are found out."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.audit import cases, epsilon, ledger, report
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import UsageError
from discreet.local import PROTOCOLS
from discreet.mechanisms import MECHANISMS

POLICY = """\
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      zip: text
budget: {epsilon: 10, delta: 1e-6, accountant: ACCOUNTANT}
limits: {epsilon: 5}
analysts:
  alice: {epsilon: 10}
"""
SURE = 1 - 1e-9


WEAK = {
    "Quantiles": 0.2,
    "AboveThreshold": 0.3,
    "GaussianThreshold": 0.3,
    "TopK": 0.4,
    "DiscreteGaussian": 0.4,
}
MORE = {  # their events are rare
    "AboveThreshold": 1_000_000,
    "ExponentialMechanism": 400_000,
    "PermuteAndFlip": 400_000,
    "Quantile": 200_000,
    "FineQuantile": 200_000,
}


def test_every_mechanism_and_protocol_has_a_case() -> None:
    wanted = {kind.__name__ for kind in (*MECHANISMS, *PROTOCOLS)}
    assert set(cases.cases()) == wanted


@pytest.mark.parametrize("name", cases.cases())
def test_claims_hold_and_are_nearly_proved(name: str) -> None:
    found = cases.audit_case(name, runs=MORE.get(name, 100_000), confidence=SURE)
    assert found.sound
    assert found.proved > WEAK.get(name, 0.5) * found.claimed


@pytest.mark.parametrize("name", ["DiscreteLaplace", "DiscreteGaussian", "LaplaceThreshold"])
def test_too_little_noise_is_found_out(name: str) -> None:
    case = cases.cases()[name]
    field = "sigma" if name == "DiscreteGaussian" else "scale"
    quiet: Any = replace(case.subject, **{field: getattr(case.subject, field) / 4})
    outcomes = replace(case, subject=quiet).outcomes(100_000)
    assert not epsilon.finding(name, {}, outcomes, loss=case.loss, confidence=SURE).sound


def test_bounds_of_coins() -> None:
    """Randomized response at ε = log 3: no more than that is proved, and most of it."""
    draws = np.random.default_rng()
    first, second = (draws.random(10**6) < p for p in (0.75, 0.25))
    bound = epsilon.lower_bound(
        first.astype(np.int64), second.astype(np.int64), delta=0, confidence=SURE
    )
    assert 0.9 * np.log(3) < bound.proved <= np.log(3)
    alike = epsilon.lower_bound(
        first.astype(np.int64), first.astype(np.int64), delta=0, confidence=SURE
    )
    assert alike.proved == 0


def test_refusals() -> None:
    for arguments in ({"runs": 10, "confidence": 0.9}, {"runs": 10**4, "confidence": 1.0}):
        with pytest.raises(UsageError):
            cases.audit_case("DiscreteLaplace", **arguments)
    with pytest.raises(UsageError):
        cases.audit_case("Laplace", runs=10**4, confidence=0.9)


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_a_ledger_recomputed(
    tmp_path: Path, accountant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY.replace("ACCOUNTANT", accountant), encoding="utf-8")
    policy = discreet.Policy.read(path)
    create_ledger(policy)
    people = pa.table({"person_id": range(30), "age": range(30), "zip": ["1"] * 30})
    curator = discreet.open(path, tables={"people": people})
    asked = (
        "SELECT COUNT(*) FROM people",
        "SELECT AVG(age), MEDIAN(age) FROM people",
        "SELECT zip, COUNT(*) FROM people GROUP BY 1",
    )
    for sql in asked:
        curator.ask(sql, analyst="alice", epsilon="0.5")
    found = ledger.audit_ledger(policy)
    assert found.sound
    assert len(found.charges) == 3
    assert found.added == found.spent
    assert all(each.due is not None and each.due.amount > 0 for each in found.charges)
    if accountant == "sum":
        assert found.batch is not None
        assert found.batch.epsilon is not None
        assert found.batch.epsilon <= found.spent.amount
    page = report.ledger_page(found, currency="ε")
    assert re.search(r'class="line" d="M[\d. ]+(L[\d. ]+L[\d. ]+){3}"', page), (
        "a step for each charge"
    )
    assert "holds" in page
    assert "BROKEN" not in page
    short = replace(
        found.charges[0], charged=replace(found.charges[0].charged, amount=Fraction(1, 10**6))
    )
    wrong = replace(found, charges=(short, *found.charges[1:]))
    assert not wrong.sound
    assert "BROKEN" in report.ledger_page(wrong, currency="ε")
    assert run(["audit", "ledger", str(path), "--out", str(tmp_path / "report.html")]) == 0
    assert "Sound." in capsys.readouterr().out
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_description_that_spent_rho_of_a_sum_budget_is_recomputed(tmp_path: Path) -> None:
    """One (ε, δ) row of the ledger, of Gaussian noise within ρ: due is what that ρ converts to, and
    no more.
    """
    path = tmp_path / "policy.yaml"
    columns = "\n".join(f"      x{place}: {{boolean: true}}" for place in range(6))
    path.write_text(
        f"unit: person\ntables:\n  people:\n    owner: person_id\n    columns:\n{columns}\n"
        "budget: {epsilon: 4, delta: 1e-6}\nanalysts: {}\n",
        encoding="utf-8",
    )
    policy = discreet.Policy.read(path)
    create_ledger(policy)
    people = {"person_id": range(30), **{f"x{place}": [True, False] * 15 for place in range(6)}}
    discreet.open(path, tables={"people": pa.table(people)}).describe(
        "people", epsilon=1, synthesizer="default"
    )
    found = ledger.audit_ledger(policy)
    (charge,) = found.charges
    assert found.sound
    assert charge.due is not None
    assert 0 < charge.due.amount <= charge.charged.amount
    assert 0 < charge.due.delta <= charge.charged.delta
    short = replace(charge, charged=replace(charge.charged, amount=charge.charged.amount / 10**6))
    assert not short.covered


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, sure = tmp_path / "page.html", ["--runs", "2000", "--confidence", str(SURE)]
    assert run(["audit", "mechanism", *sure, "--out", str(page)]) == 0
    assert capsys.readouterr().out.count("holds") == len(cases.cases())
    assert page.read_text(encoding="utf-8").count('<rect class="fill" x=') == 2 * len(cases.cases())
    assert run(["audit", "mechanism", "DiscreteLaplace", *sure, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"][0]["sound"]
    assert run(["audit", "mechanism", "nothing"]) == 2
