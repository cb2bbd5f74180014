"""Attacks through a live curator: the same questions, in SQL, against a budget of ε = 1 in all."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.attacks import difference
from discreet.attacks.reconstruct import against
from discreet.binding import create_ledger
from discreet.errors import BudgetExceeded
from discreet.policy.policy import Policy

POLICY = """\
source: data/
unit: person
tables:
  staff:
    owner: person_id
    columns:
      person_id: {{identifier: true}}
      number: {{integer: [0, {last}]}}
      ill: {{boolean: true}}
budget: {{epsilon: 1}}
limits: {{epsilon: 1}}
analysts:
  eve: {{epsilon: 1}}
"""


def sure(n):
    """A rate over n independent trials exceeds its expectation by more than this once in 1e9."""
    return math.sqrt(math.log(1e9) / (2 * n))


@pytest.fixture
def staffed(tmp_path):
    """A curator over n people with one bit each, and the bits."""

    def make(n):
        bits = np.random.default_rng().random(n) < 0.5
        table = pa.table({"person_id": np.arange(n), "number": np.arange(n), "ill": bits})
        policy = tmp_path / "staff.yaml"
        policy.write_text(POLICY.format(last=n - 1))
        create_ledger(Policy.read(policy))
        return discreet.open(policy, tables={"staff": table}), table, bits

    return make


def counted(curator, sql, epsilon):
    return curator.ask(sql, analyst="eve", epsilon=epsilon).table.column(0)[0].as_py()


def test_the_budget_ends_the_attack(staffed):
    curator, _, bits = staffed(20)
    asked = []

    def ask(mask):
        chosen = ", ".join(map(str, np.flatnonzero(mask)))
        asked.append(chosen)
        return counted(
            curator, f"SELECT COUNT(*) FROM staff WHERE ill AND number IN ({chosen})", "0.05"
        )

    with pytest.raises(BudgetExceeded):
        against(ask, 20, questions=80, truth=bits)
    assert len(set(asked)) == 21  # twenty answers at 0.05 are all that ε = 1 pays for


@pytest.mark.slow
def test_reconstruction_stays_near_chance(staffed):
    n, questions = 150, 600
    curator, _, bits = staffed(n)

    def ask(mask):
        chosen = ", ".join(map(str, np.flatnonzero(mask)))
        sql = f"SELECT COUNT(*) FROM staff WHERE ill AND number IN ({chosen})"
        return counted(curator, sql, f"1/{questions}")

    private = against(ask, n, questions=questions, truth=bits).finding
    exact = against(
        lambda mask: float(bits[mask].sum()), n, questions=questions, truth=bits
    ).finding
    assert exact.success == 1.0
    assert private.success < 0.55 + sure(n) < 1.0


@pytest.mark.slow
def test_differencing_stays_near_chance(staffed):
    """Everybody, and everybody but one, for 100 people: 101 answers share ε = 1."""
    n = 100
    curator, table, _ = staffed(n)
    log = ["SELECT COUNT(*) FROM staff WHERE ill"]
    log += [f"SELECT COUNT(*) FROM staff WHERE ill AND number <> {i}" for i in range(n)]
    exact = difference(log, table, name="staff", secrets=["ill"])
    assert len(exact.exposed) == n
    assert exact.finding.success == 1.0
    private = difference(
        log,
        table,
        name="staff",
        secrets=["ill"],
        answers=lambda sql: curator.ask(sql, analyst="eve", epsilon="1/101").table,
    )
    assert private.finding.success < 0.52 + sure(n) < 1.0
