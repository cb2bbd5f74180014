"""Amounts so small or so large that no description could be made of what they buy: refused before
they are paid; just within, everything works.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.errors import UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.describe import LEAST_NOISE, MOST_NOISE
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from discreet.synthetic.synthesizers.smooth import smoothed

POLICY = """\
unit: person
neighbors: {neighbors}
tables:
  people:
    owner: id
    columns:
      id: {{identifier: true}}
      age: {{integer: [0, 999], nullable: true}}
      male: {{boolean: true}}
  rows:
    owner: id
    max_rows: 3
    columns:
      id: {{identifier: true}}
      kind: {{values: [a, b]}}
      value: {{integer: [0, 999999]}}
budget: {{epsilon: 1e300, {budget}}}
limits: {{epsilon: 1e300}}
"""
BEYOND = r"too small|too large"
TABLES = {
    "people": pa.table({"id": [1, 2], "age": [30, None], "male": [True, None]}),
    "rows": pa.table({"id": [1, 1, 2], "kind": ["a", "b", None], "value": [1, 2, 7]}),
}


def opened(
    folder: Path, *, neighbors: str = "add_remove", budget: str = "accountant: sum"
) -> discreet.Curator:
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(neighbors=neighbors, budget=budget), encoding="utf-8")
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=TABLES)


def ordered(made: discreet.Curator, tables: list[str], epsilon: Fraction) -> None:
    """Describe one table, or several together."""
    if len(tables) > 1:
        made.describe_together(tables, epsilon=epsilon)
    else:
        made.describe(tables[0], epsilon=epsilon)


@pytest.mark.parametrize(("neighbors", "times"), [("add_remove", 1), ("change_one", 2)])
def test_what_is_beyond_the_ends_is_refused_and_costs_nothing(
    neighbors: str, times: int, tmp_path: Path
) -> None:
    made = opened(tmp_path, neighbors=neighbors)
    for max_rows, tables in ((1, ["people"]), (3, ["rows"]), (1, ["people", "rows"])):
        # Laplace noise of scale times * max_rows / epsilon
        small, large = (times * max_rows / each for each in (MOST_NOISE, LEAST_NOISE))
        little, much = Fraction(999, 1000), Fraction(1001, 1000)
        for epsilon, words in ((small * little, "too small"), (large * much, "too large")):
            with pytest.raises(UsageError, match=words):
                ordered(made, tables, epsilon)
    description = made.describe("people", epsilon=1)
    together = made.describe_together(["people", "rows"], epsilon=1)
    spent = made._ledger.spent()
    for epsilon in ("1e-10", "1e12", "1e-300", "1e299"):
        with pytest.raises(UsageError, match=BEYOND):
            made.compare(description, epsilon=epsilon)
        with pytest.raises(UsageError, match=BEYOND):
            made.compare_together(together, epsilon=epsilon)
    assert made._ledger.spent() == spent


@pytest.mark.parametrize(
    ("budget", "epsilon"),
    [
        ("accountant: sum", "1e-20"),
        ("accountant: sum", "1e-300"),
        ("accountant: sum", "1e299"),
        ("delta: 1e-6, accountant: zcdp", "1e20"),  # where a small one buys ρ of about δ squared
    ],
)
def test_any_other_amount_is_refused_in_one_sentence(
    budget: str, epsilon: str, tmp_path: Path
) -> None:
    made = opened(tmp_path, budget=budget)
    with pytest.raises(UsageError, match=BEYOND):
        made.describe("people", epsilon=epsilon)
    assert made._ledger.spent().amount == 0


@pytest.mark.parametrize("synthesizer", SYNTHESIZERS)
def test_at_the_ends_all_is_made(synthesizer: str, tmp_path: Path) -> None:
    made = opened(tmp_path)
    for epsilon in (1 / MOST_NOISE, 1 / LEAST_NOISE):
        description = made.describe("people", epsilon=epsilon, synthesizer=synthesizer)
        assert description.generate(rows=3).num_rows == 3
        assert made.compare(description, epsilon=epsilon).distances
        pair = ["people", "rows"]
        together = made.describe_together(pair, epsilon=epsilon, synthesizer=synthesizer)
        assert together.generate(people=3)["people"].num_rows == 3


@pytest.mark.parametrize("std", [1e-9, 1e-3, 0.1, 1.0, 1e9])
@pytest.mark.parametrize("most", [0, 1, 10**6, 10**12])
@pytest.mark.parametrize("ordered", [True, False])
def test_smoothed_counts_are_numbers(std: float, most: int, ordered: bool) -> None:
    """Cells that hold next to nothing beside cells that hold nearly all, in every order."""
    empty, full = np.zeros(40), np.full(40, float(most))
    alternating = np.column_stack([empty, full]).ravel()
    for counts in (np.append(empty, full), np.append(full, empty), alternating):
        found = smoothed(counts, std=std, ordered=ordered, total=100.0)
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(100)
