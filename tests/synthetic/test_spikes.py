"""Values that many share have cells of their own, found at a price that is paid from the same
lump.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.policy.domain import Column, Integers
from discreet.policy.policy import Policy
from discreet.synthetic.columns.axes import axes_of
from discreet.synthetic.columns.axis import Axis, Intervals, Unsplit
from discreet.synthetic.columns.grids import shares_of_grids
from discreet.synthetic.columns.split import Level, count_parts, levels
from discreet.synthetic.columns.values import exact_figures
from discreet.synthetic.description import Description
from discreet.synthetic.report.inspect import as_json
from discreet.synthetic.report.raw import cells_of
from discreet.synthetic.source import TableSource, source_of
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from synthetic.small_table import curator

COUNT = 20_000
POLICY = """\
unit: person
neighbors: {neighbors}
tables:
  people:
    owner: person_id
    max_rows: {max_rows}
    columns:
      person_id: {{identifier: true}}
      gain: {{integer: [0, 99999]}}
      paid: {{decimal: [0, 50000], step: 0.01, nullable: true}}
      since: {{date: [1950-01-01, 2024-12-31]}}
      sex: {{values: [F, M]}}
budget: {{epsilon: 1000, {budget}}}
limits: {{epsilon: 1000}}
"""


def spiked(count: int) -> pa.Table:
    """Gains of which nine of ten are 0 and some are cut off at the top; pay at round numbers; a day
    for "unknown".
    """
    draws = np.random.default_rng(27)
    gain = np.where(draws.random(count) < 0.9, 0, draws.integers(1, 20_000, count))
    gain[draws.random(count) < 0.02] = 99_999
    gain[draws.random(count) < 0.03] = 15_024
    paid = np.clip(np.round(draws.gamma(4, 600, count), 2), 0, 50_000)
    paid = np.where(draws.random(count) < 0.3, 1500.0, paid)
    since = np.datetime64("1950-01-01") + draws.integers(0, 27_000, count).astype("timedelta64[D]")
    since[draws.random(count) < 0.2] = np.datetime64("1970-01-01")
    return pa.table(
        {
            "person_id": np.arange(count),
            "gain": gain,
            "paid": pa.array(paid, mask=draws.random(count) < 0.1),
            "since": since.astype("datetime64[D]"),
            "sex": ["FM"[i % 2] for i in range(count)],
        }
    )


def opened(
    folder: Path,
    table: pa.Table,
    *,
    budget: str = "delta: 1e-9, accountant: zcdp",
    neighbors: str = "add_remove",
    max_rows: int = 1,
) -> discreet.Curator:
    path = folder / "policy.yaml"
    path.write_text(
        POLICY.format(budget=budget, neighbors=neighbors, max_rows=max_rows), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    return discreet.open(path, tables={"people": table})


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return spiked(COUNT)


@pytest.fixture(scope="module")
def described(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Description:
    return opened(tmp_path_factory.mktemp("spiked"), table).describe(
        "people", epsilon=2, synthesizer="default"
    )


def numbers(table: pa.Table, name: str) -> np.ndarray:
    return table[name].drop_null().to_numpy(zero_copy_only=False)


def test_spikes_stay_where_they_are(table: pa.Table, described: Description) -> None:
    """Of whole numbers, decimals and days. Noise of 100 rows in 20,000 is half a point; the bounds
    are ten times that and still a tenth of what equal intervals lose.
    """
    made = described.generate(rows=COUNT)
    for name, value in (
        ("gain", 0),
        ("gain", 99_999),
        ("gain", 15_024),
        ("paid", 1500),
        ("since", "1970-01-01"),
    ):
        value = np.datetime64(value) if isinstance(value, str) else value
        true, synthetic = (float(np.mean(numbers(each, name) == value)) for each in (table, made))
        assert abs(true - synthetic) < 0.05, (name, value, true, synthetic)
    assert abs(np.mean(numbers(made, "gain")) / np.mean(numbers(table, "gain")) - 1) < 0.5
    assert np.median(numbers(made, "gain")) == 0


def test_equal_intervals_lose_them(table: pa.Table, tmp_path: Path) -> None:
    """What the test above would see if nothing were split."""
    equal = Intervals(split=False)
    made = opened(tmp_path, table).describe(
        "people", epsilon=2, synthesizer="independent", intervals=equal
    )
    assert np.mean(numbers(made.generate(rows=COUNT), "gain") == 0) < 0.01


def test_engine_and_file_have_the_same_cells(table: pa.Table, tmp_path: Path) -> None:
    made = opened(tmp_path, table).describe("people", epsilon=300, synthesizer="independent")
    cells = cells_of(made, table)
    for each in made.measured:
        (column,) = each.columns
        exact = np.bincount(cells[:, column], minlength=made.axes[column].size)
        assert np.abs(exact - each.counts).max() <= 40, made.axes[column].name
    assert Description.from_bytes(made.to_bytes()).axes == made.axes


@pytest.mark.parametrize("budget", ["delta: 1e-6, accountant: zcdp", "accountant: sum"])
@pytest.mark.parametrize(("neighbors", "times"), [("add_remove", 1), ("change_one", 2)])
def test_it_is_paid_from_the_same_lump(
    budget: str, neighbors: str, times: int, table: pa.Table, tmp_path: Path
) -> None:
    made = opened(tmp_path, table.slice(0, 400), budget=budget, neighbors=neighbors, max_rows=3)
    made.describe("people", epsilon=1, synthesizer="independent", columns=["gain", "sex"])
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    used = [from_row(row) for row in post["mechanisms"]]
    paid = Fraction(post["meta"]["amount"])
    losses = [each.loss().rho if "zcdp" in budget else each.loss().epsilon for each in used]
    assert losses[0] <= paid / 50 / levels(100_000, 100)  # type: ignore[operator]
    assert sum(losses) <= paid  # type: ignore[arg-type]
    assert sum(losses) > paid * Fraction(99, 100)  # what the search left over counts columns # type: ignore[arg-type]
    for each in used:
        hidden = each.l2_squared / 9 if "zcdp" in budget else each.l1 / 3  # type: ignore[union-attr]
        assert hidden == times


def test_random_looks_for_nothing(table: pa.Table, tmp_path: Path) -> None:
    made = opened(tmp_path, table.slice(0, 100))
    made.describe("people", epsilon=1, synthesizer="random")
    post = next(row for row in made._ledger.rows() if row["kind"] == "post")
    assert len(post["mechanisms"]) == 1


def test_many_columns_share_a_tenth() -> None:
    axes = [
        Unsplit(column=Column(name=f"c{i}", domain=Integers(lo=0, hi=999)), bins=100)
        for i in range(20)
    ]
    assert sum(shares_of_grids(axes)) == Fraction(1, 10)
    assert shares_of_grids(axes[:2]) == [Fraction(1, 50)] * 2


def test_levels_reach_single_values_in_any_domain() -> None:
    assert [levels(size, 100) for size in (101, 100_000, 10**8, 2**62)] == [2, 2, 3, 7]


# --- brute force ----------------------------------------------------------------------------------


LEVELS = (
    Level(starts=(0, 3, 6), ends=(3, 6, 8), width=3),
    Level(starts=(0, 3, 6), ends=(3, 6, 8), width=1),
    Level(starts=(3,), ends=(6,), width=2),
)


def level_counts(rows: list[int | None], level: Level) -> np.ndarray:
    """By definition, row by row."""
    found = np.zeros(len(level.starts) * level.parts, dtype=int)
    for value in rows:
        for number, (start, end) in enumerate(zip(level.starts, level.ends, strict=True)):
            if value is not None and start <= value - 5 < end:
                found[number * level.parts + (value - 5 - start) // level.width] += 1
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_no_person_moves_a_level_by_more_than_its_rows(level: Level) -> None:
    """All of a person's two rows in every combination, against nobody and against every other
    person.
    """
    moved, changed = (
        TableSource(scan=None, max_rows=2, neighbors=each, values={}).moved  # type: ignore[arg-type]
        for each in ("add_remove", "change_one")
    )
    values = [None, *range(5, 13)]
    people = [level_counts(list(rows), level) for rows in product(values, repeat=2)]
    assert max(np.abs(each).sum() for each in people) == moved.l1 == 2
    assert max((each**2).sum() for each in people) == moved.l2_squared == 4
    apart = [a - b for a in people for b in people]
    assert max(np.abs(each).sum() for each in apart) == changed.l1 == 4
    assert max((each**2).sum() for each in apart) == changed.l2_squared == 8


@pytest.mark.parametrize("level", LEVELS)
def test_the_engine_counts_a_level_as_defined(level: Level, tmp_path: Path) -> None:
    rows = [None, *range(5, 13), 7, 7, 12]
    path = tmp_path / "policy.yaml"
    path.write_text(
        "unit: person\ntables:\n  people:\n    owner: who\n    columns:\n"
        "      who: {identifier: true}\n      place: {integer: [5, 12], nullable: true}\nbudget: {epsilon: 1}\n",
        encoding="utf-8",
    )
    create_ledger(Policy.read(path))
    made = discreet.open(
        path, tables={"people": pa.table({"who": list(range(len(rows))), "place": rows})}
    )
    table = made.policy.tables["people"]
    axis = Unsplit(column=table.columns["place"], bins=3)
    read = (
        made._view.fetch(count_parts(source_of(made.policy, table), axis, level))
        .unwrap()
        .to_pydict()
    )
    names = list(read)
    found = np.zeros(len(level.starts) * level.parts, dtype=int)
    found[[int(cell) for cell in read[names[0]]]] = [int(each) for each in read[names[1]]]
    assert found.tolist() == level_counts(rows, level).tolist()


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_every_synthesizer_takes_split_columns(name: str, tmp_path: Path) -> None:
    made = curator(tmp_path, count=200)
    found = made.describe("people", epsilon=20, synthesizer=name, columns=["income", "sex"])
    assert found.generate(rows=50).num_rows == 50


GAIN, SINCE = "gain: {{integer: [0, 99999]", "since: {{date: [1950-01-01, 2024-12-31]"
DECLARED = (
    (GAIN, GAIN + ", cuts: [1, 5000, 20000], single: [0, 15024, 99999]"),
    (SINCE, SINCE + ", cuts: [1970-01-01, 1970-01-02]"),
)


def declared(folder: Path, table: pa.Table) -> discreet.Curator:
    text = POLICY
    for old, new in DECLARED:
        assert old in text
        text = text.replace(old, new)
    path = folder / "policy.yaml"
    path.write_text(
        text.format(neighbors="add_remove", max_rows=1, budget="delta: 1e-9, accountant: zcdp"),
        encoding="utf-8",
    )
    create_ledger(Policy.read(path))
    return discreet.open(path, tables={"people": table})


def test_cells_of_the_policy_cost_nothing_and_are_used(tmp_path: Path) -> None:
    """Only `paid` is still searched for; what the policy cuts is described, drawn, told and compared
    by these cells.
    """
    table = spiked(COUNT)
    made = declared(tmp_path, table)
    found = made.describe("people", epsilon=2, synthesizer="independent")
    gain, since = (
        next(axis for axis in found.axes if axis.name == name) for name in ("gain", "since")
    )
    assert gain.cuts == (0, 1, 5000, 15_024, 15_025, 20_000, 99_999, 100_000)
    assert since.bins == 3
    policy = made.policy.tables["people"]
    axes = axes_of(policy, columns=None)
    assert [type(axis) for axis in axes] == [Axis, Unsplit, Axis, Axis]
    drawn = np.asarray(found.generate(rows=COUNT).column("gain").to_numpy())
    true = table.column("gain").to_numpy()
    for value in (0, 15_024, 99_999):
        assert abs((drawn == value).mean() - (true == value).mean()) < 0.02
    told = as_json(found)
    [shown] = [each for each in told["columns"] if each["name"] == "gain"]
    assert {each["value"] for each in shown["values"]["heavy"]} == {"0", "15024", "99999"}
    compared = made.compare(found, epsilon=5)
    figures = {each.figure for each in compared.values if each.column == "gain"}
    assert {"share of 0", "share of 15024", "share of 99999", "mean"} <= figures


def test_a_value_that_the_policy_names_is_told_of_also_where_a_model_lost_it(
    tmp_path: Path,
) -> None:
    """`random` draws every cell alike: the report on raw rows and a comparison tell the share of each
    value that stands alone.
    """
    table = spiked(2000)
    found = declared(tmp_path, table).describe("people", epsilon=2, synthesizer="random")
    figures = {each.figure: each for each in exact_figures(found, table) if each.column == "gain"}
    for value, share in (("0", 0.8), ("15024", 0.02), ("99999", 0.01)):
        told = figures[f"share of {value}"]
        assert told.true > share
        assert told.true != pytest.approx(told.synthetic, rel=0.2)


def test_quantiles_of_a_column_that_the_policy_cuts_are_refused(tmp_path: Path) -> None:
    made = declared(tmp_path, spiked(100))
    with pytest.raises(UsageError, match="The policy says where"):
        made.describe("people", epsilon=1, intervals=Intervals(quantiles=["gain"]))
