"""Intervals that end at paid quantiles: fine where rows are many, and the same cells in engine,
file and rows.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from discreet.algebra import Column
from discreet.engines.spelling import Spelling
from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.sql.values.value import Value
from discreet.synthetic.columns.axis import Axis, Intervals
from discreet.synthetic.description import Description
from discreet.synthetic.report.raw import cells_of
from synthetic.small_table import curator, rows

COUNT = 2000
COLUMNS = ["age", "income", "smoker", "seen"]
CUT = ["income", "seen"]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Description:
    made = curator(tmp_path_factory.mktemp("cut"), count=COUNT)
    return made.describe(
        "people",
        epsilon=300,
        columns=COLUMNS,
        intervals=Intervals(quantiles=CUT),
        synthesizer="independent",
    )


def test_intervals_are_narrow_where_rows_are(cut: Description) -> None:
    """Seven incomes of 200,000 possible ones: each has an interval of its own; equal ones are 2,000
    wide.
    """
    assert [axis.cuts is not None for axis in cut.axes] == [False, True, False, True]
    made = (
        cut.generate(rows=COUNT)["income"].drop_null().to_numpy(zero_copy_only=False).astype(float)
    )
    near = np.abs(made[:, None] - np.arange(20_000, 90_000, 10_000)).min(axis=1)
    assert np.mean(near <= 200) > 0.8
    assert abs(cut.generate(rows=COUNT)["income"].null_count / COUNT - 0.25) < 0.05


def test_engine_and_file_have_the_same_cells(cut: Description) -> None:
    again = Description.from_bytes(cut.to_bytes())
    assert again.axes == cut.axes
    cells = cells_of(cut, rows(COUNT))
    for each in cut.measured:
        (column,) = each.columns
        counted = np.bincount(cells[:, column], minlength=cut.axes[column].size)
        assert np.abs(counted - each.counts).max() <= 5, cut.axes[column].name


AGE = Column("t", "age")


def test_the_search_halves_and_finds_every_place(cut: Description) -> None:
    column = cut.axes[0].column
    axis = Axis(column=column, bins=5, cuts=(0, 1, 7, 8, 50, 100))
    value = Value(expression=AGE, domain=duckdb_domain(), nullable=False)
    cell = Spelling().expression(axis.position(value))
    found = duckdb.sql(
        f"SELECT {cell} AS c FROM (SELECT unnest(range(100)) AS age) AS t"
    ).fetchall()
    expected = [0, *[1] * 6, 2, *[3] * 42, *[4] * 50]
    assert [row[0] for row in found] == expected
    assert [axis.code(str(age)) for age in range(100)] == expected
    assert duckdb.sql(f"SELECT {cell} FROM (SELECT NULL::BIGINT AS age) AS t").fetchall() == [
        (None,)
    ]


def duckdb_domain():  # type: ignore[no-untyped-def]
    from discreet.sql.values.value import Number

    return Number(step=Fraction(1), lo=0, hi=99)


@pytest.mark.parametrize("budget", ["delta: 1e-6, accountant: zcdp", "accountant: sum"])
@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_quantiles_are_paid_from_the_same_lump(budget: str, neighbors: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=60, budget=budget, neighbors=neighbors, max_rows=2)
    made.describe(
        "people",
        epsilon=1,
        columns=COLUMNS,
        intervals=Intervals(quantiles=["income"]),
        synthesizer="independent",
    )
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    used = [from_row(row) for row in post["mechanisms"]]
    assert type(used[0]).__name__ == "Quantiles"
    assert (used[0].max_rows, used[0].neighbors) == (2, neighbors)  # type: ignore[union-attr]
    paid = Fraction(post["meta"]["amount"])
    losses = [each.loss().rho if "zcdp" in budget else each.loss().epsilon for each in used]
    assert 0 < losses[0] <= paid / 10  # type: ignore[operator]
    assert sum(losses) <= paid  # type: ignore[arg-type]


def test_what_has_no_quantiles_is_refused(tmp_path: Path) -> None:
    made = curator(tmp_path, count=10)
    for name in ("sex", "smoker", "height"):
        with pytest.raises(
            UsageError, match=f"{name} has no quantiles: .* have, age, income, day, seen"
        ):
            made.describe("people", epsilon=1, intervals=Intervals(quantiles=[name]))
    assert made._ledger.spent().amount == 0


@pytest.mark.parametrize(
    "change", [lambda c: c[1:], lambda c: [*c[:-1], c[-1] + 1], lambda c: c[::-1], lambda c: "cuts"]
)
def test_broken_cuts_are_refused(change, cut: Description) -> None:  # type: ignore[no-untyped-def]
    broken = json.loads(cut.to_bytes())
    broken["columns"][1]["cuts"] = change(broken["columns"][1]["cuts"])
    with pytest.raises(UsageError, match="broken"):
        Description.from_bytes(json.dumps(broken).encode())
