"""Several tables of the same people: one charge, one person-level ε, and rows that belong to their
people.
"""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest

import discreet
from discreet.algebra import Aggregate
from discreet.binding import create_ledger
from discreet.cli import run
from discreet.errors import UsageError
from discreet.mechanisms import from_row
from discreet.noise import Stream
from discreet.policy.policy import Policy
from discreet.synthetic import describe
from discreet.synthetic.columns.axis import Intervals
from discreet.synthetic.describe import one_way_error
from discreet.synthetic.linked.description import LinkedDescription
from discreet.synthetic.linked.given import draw_groups
from discreet.synthetic.linked.sources import (
    UNIT,
    LinkedTables,
    counters,
    people_source,
    rows_source,
)
from discreet.synthetic.source import TableSource
from discreet.synthetic.synthesizers.family import SYNTHESIZERS
from discreet.synthetic.synthesizers.graphical import Model, Tree
from discreet.synthetic.synthesizers.independent import Histogram
from test_replay import check, transcripts

COUNT = 3000
POLICY = """\
unit: person
neighbors: {neighbors}
tables:
  people:
    owner: id
    columns:
      id: {{identifier: true}}
      age: {{integer: [18, 98]}}
      male: {{boolean: true}}
  labs:
    owner: id
    max_rows: 40
    columns:
      id: {{identifier: true}}
      test: {{values: [sbp, weight, hdl]}}
      value: {{integer: [0, 300], nullable: true}}
      day: {{date: [2000-01-01, 2020-12-31]}}
budget: {{epsilon: 2000, {budget}}}
limits: {{epsilon: 1000}}
"""
ZCDP = "delta: 1e-6, accountant: zcdp"


def tables(count: int) -> dict[str, pa.Table]:
    """Like a register of patients and their laboratory: older people have more rows, and higher
    pressure.
    """
    draws = np.random.default_rng(6)
    age, male = np.clip(draws.normal(53, 16, count), 18, 98).astype(int), draws.random(count) < 0.47
    times = np.where(draws.random(count) < 0.2, 0, np.minimum(draws.poisson(age / 20), 40))
    who = np.repeat(np.arange(count), times)
    test = draws.integers(0, 3, len(who))
    shift = np.array([(age - 50) * 1.0, 20.0 * male, -20.0 * male])[test, who]
    value = np.clip(np.array([125, 80, 60])[test] + shift + draws.normal(0, 6, len(who)), 0, 300)
    day = np.datetime64("2000-01-01") + draws.integers(0, 7600, len(who)).astype("timedelta64[D]")
    return {
        "people": pa.table({"id": np.arange(count), "age": age, "male": male}),
        "labs": pa.table(
            {
                "id": who,
                "test": np.array(["sbp", "weight", "hdl"])[test],
                "value": pa.array(np.round(value).astype(int), mask=draws.random(len(who)) < 0.02),
                "day": day.astype("datetime64[D]"),
            }
        ),
    }


def opened(
    folder: Path, given: dict[str, pa.Table], *, budget: str = ZCDP, neighbors: str = "add_remove"
) -> discreet.Curator:
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(budget=budget, neighbors=neighbors), encoding="utf-8")
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=given)


@pytest.fixture(scope="module")
def true() -> dict[str, pa.Table]:
    return tables(COUNT)


@pytest.fixture(scope="module")
def made(true: dict[str, pa.Table], tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    return opened(tmp_path_factory.mktemp("linked"), true)


@pytest.fixture(scope="module")
def linked(made: discreet.Curator) -> LinkedDescription:
    return made.describe_together(["people", "labs"], epsilon=50)


def asked(sql: str, given: dict[str, pa.Table]) -> list[tuple[object, ...]]:
    people, labs = given["people"], given["labs"]
    assert people is not None
    assert labs is not None
    return duckdb.sql(sql).fetchall()


def test_people_have_each_kind_as_often_as_true_ones(
    true: dict[str, pa.Table], linked: LinkedDescription
) -> None:
    """Rows drawn one by one would give nearly everybody with several rows one of every kind."""
    made = linked.generate(people=COUNT)
    for kind in ("sbp", "weight", "hdl"):
        for few in (1, 2):
            sql = (
                f"SELECT COUNT(*) FROM (SELECT id FROM labs WHERE test = '{kind}' GROUP BY id "
                f"HAVING COUNT(*) >= {few})"
            )
            (exact,), (drawn,) = asked(sql, true)[0], asked(sql, made)[0]
            assert abs(float(exact) - float(drawn)) < 0.05 * COUNT  # type: ignore[arg-type]


# counts per person, joins, last values; and how near is near where there is little noise
QUESTIONS = (
    ("SELECT AVG(n), AVG((n = 0)::INT) FROM (SELECT COUNT(labs.id) AS n FROM people LEFT JOIN labs USING (id) "
     "GROUP BY people.id)", 0.2),
    ("SELECT AVG(n) FROM (SELECT COUNT(labs.id) AS n FROM people LEFT JOIN labs USING (id) WHERE age >= 60 "
     "GROUP BY people.id)", 0.5),
    ("SELECT AVG(value) FROM labs JOIN people USING (id) WHERE test = 'sbp' AND age >= 60", 6),
    ("SELECT AVG(value) FROM labs JOIN people USING (id) WHERE test = 'sbp' AND age < 45", 6),
    ("SELECT AVG(value) FROM labs JOIN people USING (id) WHERE test = 'weight' AND male", 6),
    ("SELECT AVG(v) FROM (SELECT ARG_MAX(value, day) AS v FROM labs WHERE test = 'hdl' GROUP BY id)", 6),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "near"), QUESTIONS)
def test_joins_counts_and_last_values(
    sql: str, near: float, true: dict[str, pa.Table], linked: LinkedDescription
) -> None:
    exact, synthetic = asked(sql, true), asked(sql, linked.generate(people=COUNT))
    for a, b in zip(exact[0], synthetic[0], strict=True):
        assert abs(float(a) - float(b)) < near  # type: ignore[arg-type]


def test_where_there_is_little_noise_no_column_is_expected_to_err(
    true: dict[str, pa.Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's columns beside a row are as well known as in the people's part; else a description
    would warn of noise that is not there.
    """
    errors = []

    def noted(column: Histogram) -> float:
        errors.append(one_way_error(column))
        return errors[-1]

    monkeypatch.setattr(describe, "one_way_error", noted)
    some = {name: table.slice(0, 2000) for name, table in true.items()}
    opened(tmp_path, some).describe_together(["people", "labs"], epsilon=200)
    assert len(errors) == 5 + 6
    assert max(errors) < 0.1


def test_identifiers_are_fresh_and_link(linked: LinkedDescription) -> None:
    found = linked.generate(people=500)
    assert found["people"]["id"].to_pylist() == list(range(1, 501))
    assert set(found["labs"]["id"].to_pylist()) <= set(range(1, 501))
    assert found["people"].column_names == ["id", "age", "male"]
    assert found["labs"].column_names == ["id", "test", "value", "day"]
    order = list(
        zip(found["labs"]["id"].to_pylist(), found["labs"]["day"].to_pylist(), strict=True)
    )
    assert order == sorted(order)
    times = np.bincount(found["labs"]["id"].to_numpy(), minlength=501)
    assert times.max() <= 40
    assert times.mean() > 1
    assert linked.generate(people=0)["labs"].num_rows == 0
    assert abs(linked.people.rows - COUNT) < 100


@pytest.mark.parametrize("budget", [ZCDP, "accountant: sum"])
@pytest.mark.parametrize(("neighbors", "times"), [("add_remove", 1), ("change_one", 2)])
def test_one_charge_covers_all(
    budget: str, neighbors: str, times: int, true: dict[str, pa.Table], tmp_path: Path
) -> None:
    some = {name: table.slice(0, 200) for name, table in true.items()}
    made = opened(tmp_path, some, budget=budget, neighbors=neighbors)
    made.describe_together(["people", "labs"], epsilon=1, synthesizer="independent")
    charges, post = (
        [row for row in made._ledger.rows() if row["kind"] == kind] for kind in ("charge", "post")
    )
    assert len(charges) == len(post) == 1
    paid = Fraction(post[0]["meta"]["amount"])
    used = [from_row(row) for row in post[0]["mechanisms"]]
    losses = [each.loss().rho if "zcdp" in budget else each.loss().epsilon for each in used]
    assert paid * Fraction(95, 100) < sum(losses) <= paid  # type: ignore[arg-type, operator]
    assert made._ledger.spent().amount == paid
    moved = [each.l2_squared if "zcdp" in budget else each.l1 for each in used]  # type: ignore[attr-defined]
    assert set(moved) == {times, times * (UNIT**2 if "zcdp" in budget else UNIT)}
    again = made.describe_together(["people", "labs"], epsilon=1, synthesizer="independent")
    assert made._ledger.spent().amount == paid
    assert again.certificate["charge"] == charges[0]["number"]


EVERY = [rows for size in range(4) for rows in product(("sbp", "weight", "hdl"), repeat=size)]


def everybody() -> dict[str, pa.Table]:
    """A person for each way to have up to three rows of three kinds, and one with rows alone."""
    ids = np.arange(len(EVERY))
    owners = [*(person for person, rows in enumerate(EVERY) for _ in rows), 999]
    return {
        "people": pa.table({"id": ids, "age": [30] * len(EVERY), "male": [True] * len(EVERY)}),
        "labs": pa.table(
            {
                "id": owners,
                "test": [*(kind for rows in EVERY for kind in rows), "sbp"],
                "value": [100] * len(owners),
                "day": pa.array(["2001-01-01"] * len(owners)).cast(pa.date32()),
            }
        ),
    }


@pytest.mark.parametrize(("neighbors", "times"), [("add_remove", 1), ("change_one", 2)])
def test_no_person_moves_more_than_a_unit(neighbors: str, times: int, tmp_path: Path) -> None:
    """What each person adds, counted by the engine, is one row in the first part, and at most UNIT
    in the second, in l1 and in l2; some reach it. What is claimed is that, or twice that where one
    person replaces another: no two of them are farther apart.
    """
    made = opened(tmp_path, everybody(), neighbors=neighbors)
    policy = made.policy
    labs = policy.tables["labs"]
    work = LinkedTables(people=policy.tables["people"], rows=(labs,), policy=policy)
    source = rows_source(work, labs)
    assert people_source(work).moved.l1 == times
    assert (source.moved.l1, source.moved.l2_squared) == (times * UNIT, times * UNIT**2)
    expected: dict[tuple[int, int], int] = {}
    moves = []
    for each in EVERY:
        held = {kind: each.count(kind) for kind in each}
        weights = {kind: UNIT // (len(held) * n) for kind, n in held.items()}
        move = np.zeros((3, 4), dtype=np.int64)
        for kind, n in held.items():
            place = ("sbp", "weight", "hdl").index(kind)
            move[place, n] = n * weights[kind]
            expected[place, n] = expected.get((place, n), 0) + n * weights[kind]
        moves.append(move)
    assert counted(made, source, ["test", "people.rows of its kind"]) == expected
    assert max(int(move.sum()) for move in moves) == UNIT
    apart = [a - b for a in moves for b in moves] if times == 2 else moves
    assert max(int(np.abs(each).sum()) for each in apart) == source.moved.l1
    assert max(int((each**2).sum()) for each in apart) == source.moved.l2_squared


@pytest.mark.parametrize("budget", [ZCDP, "accountant: sum"])
@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_replay_with_one_person_more(
    neighbors: str, budget: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the same answers, the next noise and the next choice are the same, whether somebody with
    forty rows of three kinds is in the tables or not; or, under `change_one`, has none of them.
    """
    full = tables(150)
    rows = full["labs"].slice(0, 40)
    mine = rows.set_column(0, "id", pa.array(np.full(len(rows), 7)))
    others = full["labs"].filter(pa.compute.not_equal(full["labs"]["id"], 7))
    with_me = {**full, "labs": pa.concat_tables([others, mine])}
    people = full["people"]
    if neighbors == "add_remove":
        people = people.filter(pa.compute.not_equal(people["id"], 7))
    pair = []
    for name, given in (("with", with_me), ("without", {"people": people, "labs": others})):
        (tmp_path / name).mkdir()
        pair.append(opened(tmp_path / name, given, budget=budget, neighbors=neighbors))

    def work(each: discreet.Curator) -> object:
        return each.describe_together(["people", "labs"], epsilon=20, intervals=Intervals(bins=8))

    found = transcripts(pair, work, monkeypatch)
    assert {step.name for step in found[0].steps} >= {"marginal", "farthest"}
    check(found)


def test_a_person_has_one_row_with_a_number_for_each_kind(tmp_path: Path) -> None:
    made = opened(tmp_path, everybody())
    labs = made.policy.tables["labs"]
    work = LinkedTables(people=made.policy.tables["people"], rows=(labs,), policy=made.policy)
    names = list(counters(labs))
    assert names == ["rows of labs: sbp", "rows of labs: weight", "rows of labs: hdl"]
    expected: dict[tuple[int, ...], int] = {}
    for each in EVERY:
        cell = tuple(each.count(kind) for kind in ("sbp", "weight", "hdl"))
        expected[cell] = expected.get(cell, 0) + 1
    assert counted(made, people_source(work), names) == expected


def counted(
    made: discreet.Curator, source: TableSource, names: list[str]
) -> dict[tuple[int, ...], int]:
    """What the engine adds up, by the places of some columns."""
    rows, places = source.placed(names)
    keys = tuple(range(len(names)))
    asked = Aggregate(rows, tuple(places), (source.reading,), known=keys)
    read = made._view.fetch(asked).unwrap().to_pylist()
    return {tuple(row[f"k{key}"] for key in keys): int(row["s0"]) for row in read}


def test_rows_are_drawn_given_what_is_known() -> None:
    """Against the conditional distribution by definition, on a chain and on a clique of three."""
    draws = np.random.default_rng(3)
    joint = draws.random((2, 3, 2, 3)) ** 2
    chain = joint.sum(axis=(2, 3))[:, :, None, None]
    after = joint.sum(axis=(0, 3)) / joint.sum(axis=(0, 2, 3))[:, None]
    last = joint.sum(axis=(0, 1)) / joint.sum(axis=(0, 1, 3))[:, None]
    joint = chain * after[None, :, :, None] * last[None, None, :, :]
    joint /= joint.sum()
    pairs = (joint.sum(axis=(2, 3)), joint.sum(axis=(0, 3)), joint.sum(axis=(0, 1)))
    tree = Tree(sizes=(2, 3, 2, 3), cliques=((0, 1), (1, 2), (2, 3)), parents=(-1, 0, 1))
    small = Tree(sizes=(2, 3, 2, 3), cliques=((0, 1, 2), (2, 3)), parents=(-1, 0))
    models = (
        Model(tree=tree, tables=pairs, total=1.0),
        Model(tree=small, tables=(joint.sum(axis=3), pairs[2]), total=1.0),
    )
    rows = 40_000
    for model in models:
        for a, d in product(range(2), range(3)):
            known = {0: np.full(rows, a), 3: np.full(rows, d)}
            found = draw_groups(model, known, rows, Stream.fresh())
            counts = np.zeros((3, 2))
            np.add.at(counts, (found[1], found[2]), 1)
            exact = joint[a, :, :, d] / joint[a, :, :, d].sum()
            assert np.abs(counts / rows - exact).max() < 0.02  # seven standard deviations
            assert (found[0] == a).all()


def test_a_table_of_kinds_alone(true: dict[str, pa.Table], tmp_path: Path) -> None:
    """Nothing is left to draw but how many rows of each kind a person has."""
    path = tmp_path / "policy.yaml"
    lines = POLICY.format(neighbors="add_remove", budget=ZCDP).splitlines()
    path.write_text(
        "\n".join(each for each in lines if "value:" not in each and "day:" not in each)
    )
    create_ledger(Policy.read(path))
    made = discreet.open(path, tables=true).describe_together(["people", "labs"], epsilon=50)
    drawn = made.generate(people=COUNT)["labs"]
    assert drawn.column_names == ["id", "test"]
    counts = {each["values"]: each["counts"] for each in drawn["test"].value_counts().to_pylist()}
    for each in true["labs"]["test"].value_counts().to_pylist():
        # a few people too many who have forty rows are a tenth of all rows
        assert abs(counts[each["values"]] / each["counts"] - 1) < 0.3


def test_a_file_of_several_tables(linked: LinkedDescription, tmp_path: Path) -> None:
    linked.save(tmp_path / "l.json")
    again = LinkedDescription.load(tmp_path / "l.json")
    assert again.to_bytes() == linked.to_bytes()
    plain = json.loads(linked.to_bytes())
    for change in (
        {"version": 1},
        {"people": {}},
        {"rows": [{"table": "labs"}]},
        {"owners": {}},
        {"rows": [{**plain["rows"][0], "own": 99}]},
        {"rows": [{**plain["rows"][0], "table": "others"}]},
        {"rows": [{**plain["rows"][0], "kind": 1}]},
        {"rows": [{**plain["rows"][0], "kind": 7}]},
        {"rows": [{**plain["rows"][0], "kind": None}]},
    ):
        with pytest.raises(UsageError):
            LinkedDescription.from_bytes(json.dumps({**plain, **change}).encode())
    with pytest.raises(UsageError, match="whole number"):
        linked.generate(people=-1)


def test_what_cannot_be_described_together_is_refused(made: discreet.Curator) -> None:
    spent = made._ledger.spent()
    for names, why in (
        (["people"], "at least two"),
        (["people", "people"], "each of them once"),
        (["labs", "people"], "one row a person"),
        (["people", "nobody"], "not in the policy"),
    ):
        with pytest.raises(UsageError, match=why):
            made.describe_together(names, epsilon=1)
    with pytest.raises(UsageError, match="There is no synthesizer"):
        made.describe_together(["people", "labs"], epsilon=1, synthesizer="gan")
    assert made._ledger.spent() == spent


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_every_synthesizer_describes_several_tables(
    name: str, true: dict[str, pa.Table], tmp_path: Path
) -> None:
    some = {table: rows.slice(0, 300) for table, rows in true.items()}
    found = opened(tmp_path, some).describe_together(
        ["people", "labs"], epsilon=5, synthesizer=name
    )
    assert found.generate(people=50)["people"].num_rows == 50


def test_each_part_is_compared(made: discreet.Curator, linked: LinkedDescription) -> None:
    spent = made._ledger.spent().amount
    people, labs = made.compare_together(linked, epsilon=20)
    assert (people.table, labs.table) == ("people", "labs")
    assert {each.columns for each in people.distances} >= {
        ("rows of labs: hdl",),
        ("age", "rows of labs: hdl"),
    }
    assert max(each.distance for each in people.distances if len(each.columns) == 1) < 0.1
    assert (
        max(each.distance - each.margin for each in labs.distances if each.columns == ("test",))
        < 0.1
    )
    assert made._ledger.spent().amount > spent


def test_the_command_line(
    true: dict[str, pa.Table], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "source: data\n" + POLICY.format(budget=ZCDP, neighbors="add_remove"), encoding="utf-8"
    )
    (tmp_path / "data").mkdir()
    for name, table in true.items():
        pyarrow.parquet.write_table(table.slice(0, 400), tmp_path / "data" / f"{name}.parquet")
    create_ledger(Policy.read(path))
    discreet.open(path).snapshot()
    file, out = str(tmp_path / "l.json"), tmp_path / "made"
    assert (
        run(
            [
                "describe",
                str(path),
                "people",
                "labs",
                "--epsilon",
                "5",
                "--synthesizer",
                "mst",
                "--out",
                file,
            ]
        )
        == 0
    )
    assert (
        run(
            [
                "describe",
                str(path),
                "people",
                "labs",
                "--epsilon",
                "5",
                "--columns",
                "age",
                "--out",
                file,
            ]
        )
        == 2
    )
    assert run(["generate", file, "--rows", "100", "--out", str(out)]) == 0
    assert pyarrow.parquet.read_table(out / "people.parquet").num_rows == 100
    assert (out / "labs.parquet").exists()
    assert run(["generate", file, "--rows", "100", "--out", "x.csv"]) == 2
    assert run(["inspect", file, "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.people.html").exists()
    assert (tmp_path / "page.labs.html").exists()
    assert "rows of labs" in capsys.readouterr().out
    assert run(["compare", str(path), file, "--epsilon", "2"]) == 0
    assert "rows of labs" in capsys.readouterr().out
