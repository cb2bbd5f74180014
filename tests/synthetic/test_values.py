"""Reports look at values as well as at cells: a column that lost its spikes cannot pass for a good
one.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.mechanisms import from_row
from discreet.policy.domain import Column, Integers
from discreet.synthetic.columns.axis import Axis, Intervals
from discreet.synthetic.columns.values import QUANTILES, Figure, Spread, exact_figures
from discreet.synthetic.compare import Comparison
from discreet.synthetic.description import Description
from discreet.synthetic.report.inspect import as_json, text
from discreet.synthetic.report.raw import raw_report
from discreet.synthetic.report.reports import comparison_page, description_page, raw_page
from synthetic.test_spikes import opened, spiked

COUNT = 4000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return spiked(COUNT)


@pytest.fixture(scope="module")
def made(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    return opened(tmp_path_factory.mktemp("values"), table)


@pytest.fixture(scope="module")
def equal(made: discreet.Curator) -> Description:
    """Nearly noiseless, and all its spikes are lost within equal intervals."""
    return made.describe(
        "people", epsilon=300, synthesizer="independent", intervals=Intervals(split=False)
    )


@pytest.fixture(scope="module")
def compared(made: discreet.Curator, equal: Description) -> Comparison:
    return made.compare(equal, epsilon=20)


def named(figures: tuple[Figure, ...], column: str, figure: str) -> Figure:
    return next(each for each in figures if (each.column, each.figure) == (column, figure))


def test_a_comparison_sees_what_its_distances_cannot(compared: Comparison) -> None:
    apart = next(each for each in compared.distances if each.columns == ("gain",))
    zeros = named(compared.values, "gain", "share of 0")
    assert apart.distance < 0.05
    assert zeros.true - zeros.margin > 0.8
    assert zeros.synthetic < 0.01
    assert "gain: share of 0" in str(compared)
    assert Comparison.from_bytes(compared.to_bytes()) == compared


def test_margins_of_values_cover(compared: Comparison, table: pa.Table) -> None:
    """Each figure by itself, within twice its 95 % margin: beyond 3.9 standard deviations of noise,
    all of 40.
    """
    gain = table["gain"].to_numpy()
    paid = table["paid"].drop_null().to_numpy(zero_copy_only=False)
    for column, values in (("gain", gain), ("paid", paid)):
        found = named(compared.values, column, "mean")
        assert abs(found.true - values.mean()) <= 2 * found.margin
        assert found.margin < 0.25 * values.mean()
    for each in compared.values:
        if each.column == "gain" and each.figure != "mean":
            what, value = each.figure.rsplit(" ", 1)
            exact = np.mean(gain == int(value) if what == "share of" else gain <= int(value))
            assert abs(each.true - exact) <= 2 * each.margin, each


def test_values_are_paid_from_the_same_lump(made: discreet.Curator, compared: Comparison) -> None:
    paid = compared.certificate["amount"]
    losses = [from_row(row).loss().rho for row in compared.certificate["mechanisms"]]
    assert sum(losses) <= Fraction(paid)  # type: ignore[arg-type]
    # distances, correlations, and for three columns counts and a sum
    assert len(losses) == 1 + 1 + 3 * 2
    assert made._ledger.spent().amount > 0


def test_raw_figures_are_those_of_the_rows(table: pa.Table, equal: Description) -> None:
    found = exact_figures(equal, table)
    gain = table["gain"].to_numpy()
    assert named(found, "gain", "mean").true == pytest.approx(gain.mean())
    # heavy in truth alone
    assert named(found, "gain", "share of 15024").true == pytest.approx(np.mean(gain == 15024))
    assert named(found, "gain", "largest gap of cumulative shares").synthetic > 0.8
    page = raw_page(raw_report(equal, table, target=None, risks=()))
    assert "share of 15024" in page


def test_inspect_tells_values(
    made: discreet.Curator, equal: Description, compared: Comparison
) -> None:
    split = made.describe("people", epsilon=300, synthesizer="independent")
    told = {each["name"]: each["values"] for each in as_json(split)["columns"]}
    assert told["sex"] is None
    assert told["gain"]["heavy"][0]["value"] == "0"
    assert told["gain"]["quantiles"]["0.5"] == "0"
    assert told["since"]["mean"] is None
    assert told["since"]["heavy"][0]["value"] == "1970-01-01"
    assert as_json(equal)["columns"][0]["values"]["heavy"] == []
    assert "0 (8" in text(split)
    assert "Values" in description_page(split)
    assert "share of 0" in comparison_page(compared)


def test_a_spread_is_what_is_drawn(equal: Description) -> None:
    """Quantiles, shares and the mean of a description are those of very many rows."""
    drawn = equal.generate(rows=200_000)["gain"].to_numpy()
    spread = Spread.of(equal, 0)
    assert spread.mean == pytest.approx(drawn.mean(), rel=0.02)
    for rank in QUANTILES:
        place = spread.quantile(rank)
        assert spread.below(place + 1) >= rank - 1e-9
        assert spread.below(place) <= rank + 1e-9
        assert np.mean(drawn <= place) == pytest.approx(spread.below(place + 1), abs=0.01)


def test_quantiles_by_definition() -> None:
    axis = Axis(column=Column(name="x", domain=Integers(lo=5, hi=14)), bins=3, cuts=(0, 1, 5, 10))
    spread = Spread(axis=axis, rows=np.array([50.0, 40.0, 10.0]))
    values = (
        [0] * 50 + [place for place in (1, 2, 3, 4) for _ in range(10)] + list(range(5, 10)) * 2
    )
    for rank in (0.01, 0.5, 0.51, 0.6, 0.61, 0.9, 0.95, 1.0):
        assert spread.quantile(rank) == sorted(values)[int(np.ceil(rank * 100 - 1e-9)) - 1], rank
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.watched == [0, 9]
    assert replace(spread, rows=np.array([0.0, 0.0, 10.0])).quantile(0.5) == 7


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_sums_hide_the_largest_move(neighbors: str, table: pa.Table, tmp_path: Path) -> None:
    """Half of the range for every row of a person; twice that where one is changed."""
    made = opened(tmp_path, table.slice(0, 50), neighbors=neighbors, max_rows=3)
    described = made.describe(
        "people", epsilon=5, synthesizer="independent", columns=["gain", "sex"]
    )
    row = made.compare(described, epsilon=5).certificate["mechanisms"][-1]
    times = 2 if neighbors == "change_one" else 1
    assert int(row["l2_squared"]) == (times * 3 * 50_000) ** 2
