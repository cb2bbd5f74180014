"""Text columns: what enough people share is listed, at a price in δ; what few share is nobody's to
see.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.algebra import Aggregate, Column, Persons, Scan, Sum
from discreet.asking.view import View
from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.synthetic.columns.axis import OTHER
from discreet.synthetic.description import Description
from synthetic.small_table import curator

NULLABLE = "      notes: {text: true, nullable: true}"
PLAIN = "      notes: text"
COLUMNS = ["age", "smoker", "notes"]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, Description]:
    # of 200 rare texts each is listed with a probability of some of it
    budget = "delta: 1e-12, accountant: zcdp"
    made = curator(tmp_path_factory.mktemp("texts"), count=2000, more=NULLABLE, budget=budget)
    return made, made.describe("people", epsilon=50, columns=COLUMNS, synthesizer="mst")


def test_frequent_values_are_listed_and_rare_ones_are_not(
    described: tuple[object, Description],
) -> None:
    description = described[1]
    assert [axis.name for axis in description.axes] == COLUMNS
    assert description.axes[2].column.domain.values == ("it's 0", "it's 1", "it's 2", OTHER)  # type: ignore[union-attr]
    made = description.generate(rows=2000)["notes"].to_pylist()
    for value, share in (("it's 0", 0.8 / 3), ("it's 2", 0.8 / 3), (OTHER, 0.1), (None, 0.1)):
        assert abs(made.count(value) / 2000 - share) < 0.03, value
    assert b"rare" not in description.to_bytes()


def test_the_threshold_is_charged_with_its_delta(described: tuple[object, Description]) -> None:
    made, description = described
    spent = made._ledger.spent()  # type: ignore[attr-defined]
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")  # type: ignore[attr-defined]
    used = [from_row(row) for row in post["mechanisms"]]
    assert type(used[0]).__name__ == "GaussianThreshold"
    assert (
        0
        < sum(each.loss().delta for each in used)
        <= Fraction(post["meta"]["delta"])
        == spent.delta
    )
    assert sum(each.loss().rho for each in used) <= spent.amount
    assert description.certificate["mechanisms"] == post["mechanisms"]


def test_a_list_that_was_released_is_compared_without_a_threshold(
    described: tuple[object, Description],
) -> None:
    made, description = described
    found = made.compare(description, epsilon=5)  # type: ignore[attr-defined]
    assert found.mean < 0.1
    assert all(row["mechanism"] == "DiscreteGaussian" for row in found.certificate["mechanisms"])


@pytest.mark.parametrize(("neighbors", "rows"), [("add_remove", 4), ("change_one", 3)])
@pytest.mark.parametrize(
    "budget", ["delta: 1e-6, accountant: zcdp", "delta: 1e-6, accountant: sum"]
)
def test_every_text_of_a_person_counts(
    neighbors: str, rows: int, budget: str, tmp_path: Path
) -> None:
    made = curator(
        tmp_path, count=40, more=PLAIN, neighbors=neighbors, max_rows=rows, budget=budget
    )
    made.describe("people", epsilon=1, columns=["notes", "smoker"], synthesizer="independent")
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    first = from_row(post["mechanisms"][0])
    assert (first.max_groups, first.linf, first.neighbors) == (rows, 1, neighbors)  # type: ignore[union-attr]
    assert made._accountant.budget(made._ledger.spent()).epsilon <= 1


def test_nothing_but_people_per_text_and_counts_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, seen = curator(tmp_path, count=50, more=PLAIN, max_rows=2), []
    fetch = View.fetch

    def noted(self: View, query: Any, **named: Any) -> object:
        seen.append(query)
        return fetch(self, query, **named)

    monkeypatch.setattr(View, "fetch", noted)
    made.describe("people", epsilon=1, columns=["notes", "smoker"])
    assert seen[0] == Aggregate(
        Scan("people", "t0"), (Column("t0", "notes"),), (Persons(),), known=(0,)
    )
    assert all(query.readings == (Sum(),) for query in seen[1:])


def test_without_a_delta_it_is_refused_with_what_to_declare(tmp_path: Path) -> None:
    made = curator(tmp_path, count=10, more=PLAIN, budget="accountant: sum")
    with pytest.raises(
        UsageError, match=r"notes is text.*budget.delta.*values: \[\.\.\.\].*--columns"
    ):
        made.describe("people", epsilon=1)
    assert made._ledger.spent().amount == 0
    assert made.describe("people", epsilon=1, columns=["age", "sex"]).generate(rows=3).num_rows == 3


def test_few_people_have_no_texts(tmp_path: Path) -> None:
    made = curator(tmp_path, count=12, more=PLAIN)
    found = made.describe("people", epsilon=1, columns=["notes"], synthesizer="independent")
    assert set(found.generate(rows=20)["notes"].to_pylist()) == {OTHER}
