"""The default synthesizer: what it sees that pairs do not show, and how it spends."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.policy.policy import Policy
from discreet.synthetic.synthesizers.smooth import fair, in_groups

POLICY = """
unit: person
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      a: {boolean: true}
      b: {boolean: true}
      c: {boolean: true}
budget: {epsilon: 100, delta: 1e-6, accountant: zcdp, keys: 0}
limits: {epsilon: 100}
"""


def test_three_columns_that_pairs_do_not_explain_are_counted_together(tmp_path: Path) -> None:
    """Pairs agree more often than not, and besides, all three together say more than that."""
    signs = list(product((-1, 1), repeat=3))
    chances = (
        np.array([1 + 0.3 * (a * b + a * c + b * c) + 0.5 * a * b * c for a, b, c in signs]) / 8
    )
    rows = [
        sign
        for sign, chance in zip(signs, chances, strict=True)
        for _ in range(round(4000 * chance))
    ]
    columns = {name: [sign[place] > 0 for sign in rows] for place, name in enumerate("abc")}
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    create_ledger(Policy.read(path))
    table = pa.table({"person_id": list(range(len(rows))), **columns})
    curator = discreet.open(path, tables={"people": table})
    made = curator.describe("people", epsilon=20)
    assert any(len(each.columns) == 3 for each in made.measured)
    found = made.marginal((0, 1, 2)).ravel() / made.model.total
    assert np.abs(found - chances).sum() / 2 < 0.05  # without the triple 0.25


def test_levels_divide_what_is_not_in_a_spike() -> None:
    """Most have nothing of it: four groups are nothing and three parts of the rest, not nothing and
    the rest.
    """
    counts = np.array([920.0, *([1.0] * 80)])
    groups = in_groups(counts, least=fair(counts, 4) / 2, most=4, ordered=True)
    assert groups[0] == 0
    assert list(np.bincount(groups)[:1]) == [1]
    assert groups.max() == 3
