"""One run is enough to doubt a claim: what is true is never exceeded, what has too little noise is
found out.

Each synthesizer is audited so: hundreds of people, each alone with a value, put in by a coin, and
guessed by the count that the description gives that value.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.accounting.zcdp import epsilon_of
from discreet.audit.one_run import epsilon_proved, one_run, probability
from discreet.binding import create_ledger
from discreet.errors import UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.columns.axis import Axis, Intervals
from discreet.synthetic.marginals import Marginals
from discreet.synthetic.synthesizers import totals
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from discreet.vault.allowance import Allowance

SURE = 1 - 1e-9
POLICY = """\
unit: person
neighbors: add_remove
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      code: {integer: [0, PEOPLE]}
      sex: {values: [F, M]}
      ill: {boolean: true}
budget: {epsilon: 1000, DELTA}
limits: {epsilon: 1000}
"""


def audited(
    name: str,
    folder: Path,
    *,
    people: int,
    asked: float,
    budget: str,
    seed: int | None = None,
    bins: int | None = None,
) -> Any:
    """One description of people put in by coins, and what the guesses prove beside the claim.

    With fewer `bins` than people, intervals are split first, and people guessed by the cell that
    they are in.
    """
    included = np.random.default_rng(seed).random(people) < 0.5
    ids = np.flatnonzero(included)
    table = pa.table(
        {
            "person_id": ids,
            "code": ids,
            "sex": ["FM"[i % 2] for i in ids],
            "ill": [i % 3 == 0 for i in ids],
        }
    )
    path = folder / "policy.yaml"
    path.write_text(
        POLICY.replace("PEOPLE", str(people - 1)).replace("DELTA", budget), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    curator = discreet.open(path, tables={"people": table})
    described = curator.describe(
        "people", epsilon=asked, synthesizer=name, intervals=Intervals(bins=bins or people)
    )
    cells = described.axes[0].codes(pa.chunked_array([np.arange(people)]))
    scores = np.asarray(described.counts[0], dtype=np.float64)[cells]
    epsilon, delta, rho = (described.cost[name] for name in ("epsilon", "delta", "rho"))
    if rho:  # told at a δ that leaves room for so much confidence
        delta = 1e-13
        epsilon = epsilon_of(rho=Fraction(rho), delta=Fraction(delta))
    found = one_run(included, scores, guesses=people // 2 // 2 * 2, delta=delta, confidence=SURE)
    return found, float(epsilon)


@pytest.mark.parametrize("name", ["independent", "mst"])
def test_a_description_keeps_its_claim(name: str, tmp_path: Path) -> None:
    found, claimed = audited(name, tmp_path, people=200, asked=2, budget="delta: 0")
    assert found.proved <= claimed


def test_a_description_that_splits_intervals_keeps_its_claim(tmp_path: Path) -> None:
    found, claimed = audited(
        "independent", tmp_path, people=400, asked=900, budget="delta: 0", bins=100
    )
    assert 0 < found.proved <= claimed


def test_a_description_that_asks_for_totals_keeps_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here they are asked for although no noise blurs them."""
    monkeypatch.setattr(totals, "BLURRED", -1.0)
    asked, total = [], Marginals.total

    def noted(self: Marginals, axis: Axis, **named: Any) -> float:
        asked.append(axis.name)
        return total(self, axis, **named)

    monkeypatch.setattr(Marginals, "total", noted)
    monkeypatch.setattr(Marginals, "total_std", lambda *given, **named: 0.1)
    found, claimed = audited(
        "default", tmp_path, people=400, asked=900, budget="delta: 0", bins=100
    )
    assert asked == ["code"]
    assert 0 < found.proved <= claimed


def test_a_description_of_several_tables_keeps_its_claim(tmp_path: Path) -> None:
    """Each person is alone with three rows of a value of her own, and is guessed by the weight that
    this value has.
    """
    people = 400
    included = np.random.default_rng(4).random(people) < 0.5
    ids = np.flatnonzero(included)
    path = tmp_path / "policy.yaml"
    visits = "  visits:\n    owner: person_id\n    max_rows: 5\n    columns:\n      person_id: {identifier: true}\n"
    text = POLICY.replace("PEOPLE", "9").replace("DELTA", "delta: 0")
    path.write_text(
        text.replace("budget", f"{visits}      of: {{integer: [0, {people - 1}]}}\nbudget"),
        encoding="utf-8",
    )
    create_ledger(Policy.read(path))
    rows = np.repeat(ids, 3)
    person = {
        "person_id": ids,
        "code": ids % 10,
        "sex": ["FM"[i % 2] for i in ids],
        "ill": [i % 3 == 0 for i in ids],
    }
    tables = {"people": pa.table(person), "visits": pa.table({"person_id": rows, "of": rows})}
    linked = discreet.open(path, tables=tables).describe_together(
        ["people", "visits"],
        epsilon=100,
        synthesizer="independent",
        intervals=Intervals(bins=people),
    )
    scores = np.asarray(linked.rows[0].description.counts[0], dtype=np.float64)[:people]
    found = one_run(included, scores, guesses=people // 2, delta=0.0, confidence=SURE)
    assert 0 < found.proved <= 100


def test_too_little_noise_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marginal = Allowance.marginal

    def quiet(self: Any, mechanism: Any, *arguments: Any, **named: Any) -> Any:
        field = "scale" if hasattr(mechanism, "scale") else "sigma"
        self._accountant = type("Free", (), {"price": lambda *_: self._paid})()
        return marginal(
            self,
            replace(mechanism, **{field: getattr(mechanism, field) / 100}),
            *arguments,
            **named,
        )

    monkeypatch.setattr(Allowance, "marginal", quiet)
    # Smoothing hides some people of some crowds, up to a twentieth; of this crowd nobody.
    found, claimed = audited(
        "independent", tmp_path, people=400, asked=1, budget="delta: 0", seed=2
    )
    assert found.proved > claimed


@pytest.mark.slow
@pytest.mark.parametrize("budget", ["delta: 0", "delta: 1e-6", "delta: 1e-6, accountant: zcdp"])
@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_every_synthesizer(
    name: str, budget: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, claimed = audited(name, tmp_path, people=1000, asked=8, budget=budget)
    with capsys.disabled():
        print(
            f"\n{name}, {budget}: claimed ε {claimed:.3g}, proved {found.proved:.3g}; {found.right} of {found.guessed}"
        )
    assert found.proved <= claimed
    if name == "random":
        assert found.proved < 0.5
    if name == "independent":
        assert found.proved > 0.02 * claimed, "the audit has no power"


def test_coins_with_a_known_epsilon() -> None:
    """Randomized response of each person's own coin is ε-DP, and nearly all of ε is proved."""
    draws = np.random.default_rng()
    for epsilon in (0.5, 1.0, 3.0):
        included = draws.random(200_000) < 0.5
        told = included ^ (draws.random(200_000) < 1 / (1 + np.exp(epsilon)))
        found = one_run(included, told.astype(float), guesses=100_000, delta=0, confidence=SURE)
        assert 0.7 * epsilon < found.proved <= epsilon


def test_delta_weakens_what_is_proved() -> None:
    exact = [
        epsilon_proved(1000, 500, 450, delta=delta, confidence=0.999)
        for delta in (0, 1e-6, 1e-4, 1e-2)
    ]
    assert exact == sorted(exact, reverse=True)
    assert exact[-1] < exact[0]
    assert probability(10, 10, 0, epsilon=1, delta=0.1) == 1
    assert epsilon_proved(100, 100, 50, delta=0, confidence=0.99) == 0


def test_delta_is_needed() -> None:
    """With probability δ somebody's coin is published: (0, δ)-DP, and no ε above 0 may be
    proved.
    """
    draws, people = np.random.default_rng(), 20_000
    included = draws.random(people) < 0.5
    seen = draws.random(people) < 0.01
    scores = np.where(seen, np.where(included, 1.0, -1.0), 0.0)
    assert one_run(included, scores, guesses=60, delta=0, confidence=0.99).proved > 0
    assert one_run(included, scores, guesses=60, delta=0.01, confidence=0.99).proved == 0


def test_refusals() -> None:
    coins, scores = np.ones(10, dtype=bool), np.zeros(10)
    for named in (
        {"guesses": 3},
        {"guesses": 12},
        {"guesses": 0},
        {"confidence": 1.0},
        {"delta": 1.0},
    ):
        with pytest.raises(UsageError):
            one_run(coins, scores, **{"guesses": 4, "delta": 0.0, "confidence": 0.9} | named)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        one_run(coins, np.zeros(9), guesses=4, delta=0, confidence=0.9)
