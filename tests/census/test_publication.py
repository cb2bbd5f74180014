"""A publication from its quote to its files: one charge, the same bytes again, and numbers that add
up.
"""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tiny_country import opened, policy_text, require_consistent, tables

import discreet
from discreet import cli
from discreet.accounting import Accountant
from discreet.census import running
from discreet.census.measure import measure
from discreet.census.plan import PublicationPlan
from discreet.census.publication import Publication
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, EngineFailure, Unproved, UsageError
from discreet.mechanisms.shapes import Movement
from discreet.vault.allowance import _count_cells, _places_of

LAW = "    invariants: [{level: state, values: known, because: two laws}]\n"
ZEROS = "    zeros: [{sex: M, age: [2, 3]}]\n"


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return opened(tmp_path, policy_text())


@pytest.mark.parametrize("epsilon", [0.01, 4, 900])
@pytest.mark.parametrize(
    ("neighbors", "accountant"), [("add_remove", "zcdp"), ("change_one", "sum")]
)
def test_it_adds_up(tmp_path: Path, epsilon: float, neighbors: str, accountant: str) -> None:
    text = policy_text(epsilon=epsilon, neighbors=neighbors, accountant=accountant, more=ZEROS)
    require_consistent(opened(tmp_path, text).publication("census").run())


def test_nobody_at_all(tmp_path: Path) -> None:
    given = tables()
    given["people"] = given["people"].slice(0, 0)
    require_consistent(
        opened(tmp_path, policy_text(epsilon=0.1), given).publication("census").run()
    )


def test_one_charge_and_the_same_bytes(curator: Curator) -> None:
    first = curator.publication("census").run()
    again = curator.publication("census").run()
    shown = curator.publication("census").show()
    assert first.to_bytes() == again.to_bytes() == shown.to_bytes()
    [entry] = curator.ledger()
    assert entry.analyst == "curator"
    assert "publish census" in entry.text


def test_the_charge_is_the_sum_of_all_levels_and_tables(curator: Curator) -> None:
    """A level that is not paid for would be missing here, or refused by the allowance."""
    run = curator.publication("census")
    noises = [noise for row in run.plan.noises for noise in row if noise is not None]
    assert len(noises) == sum(len(row) for row in run.plan.noises)
    cost = sum(noise.loss().rho for noise in noises)
    before = run.quote().left
    published = run.run()
    assert published.certificate["cost"]["exact"]["rho"] is not None
    assert run.plan.cost.amount >= cost
    assert run.plan.cost.amount <= run.accountant.allot(epsilon=run.plan.terms.epsilon)
    after = run.quote().left
    assert before.rho is not None
    assert after.rho is not None
    assert before.rho - after.rho >= cost * (1 - 10**-6)
    assert len([each for row in published.certificate["mechanisms"] for each in row]) == len(noises)


@pytest.mark.parametrize("where", ["measure", "make_whole", "simulate", "pack"])
def test_interrupted_anywhere_it_goes_on_with_the_same_noise(
    curator: Curator, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    seen: list[Any] = []
    measured = running.measure

    def witnessed(*given: Any) -> Any:
        seen.append({key: counts.copy() for key, counts in measured(*given).items()})
        return {key: counts.copy() for key, counts in seen[-1].items()}

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "measure", witnessed)
    with monkeypatch.context() as patch:
        if where == "pack":
            patch.setattr(Publication, "to_bytes", stopped)
        else:
            patch.setattr(
                running,
                where,
                lambda *given: (witnessed(*given) if where == "measure" else None, stopped()),
            )
        with pytest.raises(KeyboardInterrupt):
            curator.publication("census").run()
    with pytest.raises(UsageError, match="was not published yet"):
        curator.publication("census").show()
    published = curator.publication("census").run()
    assert len(seen) == 2
    assert seen[0].keys() == seen[1].keys() == published.noisy.keys()
    assert all(np.array_equal(seen[0][key], published.noisy[key]) for key in seen[0])
    assert len(curator.ledger()) == 1
    require_consistent(published)


def test_what_fails_after_the_charge_is_one_sentence(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("17 people in block e")

    with monkeypatch.context() as patch:
        patch.setattr(running, "make_whole", broken)
        with pytest.raises(EngineFailure) as failed:
            curator.publication("census").run()
    assert "17" not in str(failed.value)
    assert len(curator.ledger()) == 1


def test_over_budget(tmp_path: Path) -> None:
    text = policy_text(epsilon=4).replace("budget: {epsilon: 1000", "budget: {epsilon: 5")
    curator = opened(tmp_path, text)
    curator.publication("census").run()
    curator.snapshot()
    with pytest.raises(BudgetExceeded):
        curator.publication("census").run()


def test_an_invariant_is_exact_named_and_from_the_public_table(tmp_path: Path) -> None:
    """A table that says something else than the data does wins: nothing exact comes from private
    rows.
    """
    curator = opened(tmp_path, policy_text(more=LAW))
    published = curator.publication("census").run()
    require_consistent(published)
    assert published.tables["state", "total"].column("count").to_pylist() == [90, 210]
    assert published.tables["all", "total"].column("count").to_pylist() == [300]
    assert "two laws" in published.certificate["invariants"]
    other = {**tables(), "known": pa.table({"state": ["A", "B"], "count": [5, 0]})}
    (tmp_path / "other").mkdir()
    changed = opened(tmp_path / "other", policy_text(more=LAW), other).publication("census").run()
    require_consistent(changed)
    assert changed.tables["state", "total"].column("count").to_pylist() == [5, 0]


def test_without_invariants_it_says_so(curator: Curator) -> None:
    published = curator.publication("census").run()
    assert (
        published.certificate["invariants"]
        == "No number is exact: every level and table has noise."
    )
    assert published.as_json()["invariants"] == published.certificate["invariants"]


def test_places_from_columns_alone(tmp_path: Path) -> None:
    """Without a public table every combination of declared values is a place."""
    text = policy_text().replace("{levels: [state, tract, block], table: blocks}", "[sex, age]")
    text = text.replace("[[], [sex], [sex, age], {columns: [age, ill], weight: 2}]", "[[], [ill]]")
    published = (
        opened(tmp_path, text.replace("epsilon: 4", "epsilon: 900")).publication("census").run()
    )
    require_consistent(published)
    assert published.plan.places.sizes == (1, 2, 8)
    people = tables()["people"].to_pylist()
    counted = [
        sum(row["sex"] == s and row["age"] == a for row in people) for s in "FM" for a in range(4)
    ]
    assert (
        np.abs(
            np.array(published.tables["age", "total"].column("count").to_pylist()) - counted
        ).max()
        <= 3
    )


def test_rows_without_a_place_or_a_value_are_in_no_table(tmp_path: Path) -> None:
    given = tables()
    rows = given["people"].to_pylist()
    for row in rows[:100]:
        row["block"] = "nowhere"
    for row in rows[100:150]:
        row["age"] = None
    given["people"] = pa.Table.from_pylist(rows, given["people"].schema)
    published = opened(tmp_path, policy_text(epsilon=900), given).publication("census").run()
    assert abs(published.tables["all", "total"].column("count")[0].as_py() - 150) <= 5


def test_values_and_codes_meet(tmp_path: Path) -> None:
    """At a large ε the tables are those of the data: maps of places and cells are right, for listed
    blocks too.
    """
    people = tables()["people"].to_pylist()
    for listed in (False, True):
        folder = tmp_path / str(listed)
        folder.mkdir()
        text = policy_text(epsilon=990)
        text = (
            text.replace("block: text", "block: {values: [f, b, x, a, e, d, c]}")
            if listed
            else text
        )
        published = opened(folder, text).publication("census").run()
        for row in published.tables["block", "sex_age"].to_pylist():
            exact = sum(
                all(each[key] == row[key] for key in ("block", "sex", "age")) for each in people
            )
            assert abs(row["count"] - exact) <= 3
        for row in published.measurements["tract", "age_ill"].to_pylist():
            blocks = {"1": "ab", "2": "cd", "3": "ef"}[row["tract"]]
            exact = sum(
                each["block"] in blocks and (each["age"], each["ill"]) == (row["age"], row["ill"])
                for each in people
            )
            assert abs(row["count"] - exact) <= 3


# --- sensitivity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_no_person_moves_more_than_claimed(tmp_path: Path, neighbors: str) -> None:
    """All that one person can be, by brute force: two rows, anywhere, at every level and table."""
    plan = opened(tmp_path, policy_text(neighbors=neighbors, rows=2)).publication("census").plan
    assert (
        plan.moved == Movement(l1=2, l2_squared=4)
        if neighbors == "add_remove"
        else Movement(l1=4, l2_squared=8)
    )
    # block (6: elsewhere), sex, age, ill
    rows = list(itertools.product((0, 1, 5, 6), (0, 1), (0, 3), (0, 2)))
    admissible = [(), *((row,) for row in rows), *itertools.combinations_with_replacement(rows, 2)]
    names = [axis.name for axis in plan.axes]
    assert names == ["sex", "age", "ill"]

    def counts(person: tuple[Any, ...], level: int, at: int) -> np.ndarray:
        columns = {
            f"k{place}": pa.array([row[place] for row in person], pa.int64()) for place in range(4)
        }
        rows = pa.table({**columns, "s0": pa.array([1] * len(person), pa.int64())})
        maps, sizes = plan.maps(level, plan.grid.tables[at])
        return _count_cells(*_places_of(rows, maps, sizes), 0, math.prod(sizes))

    for level in range(len(plan.places.levels)):
        for at in range(len(plan.names)):
            vectors = np.array([counts(person, level, at) for person in admissible])
            if neighbors == "add_remove":
                l1, l2 = np.abs(vectors).sum(axis=1).max(), (vectors**2).sum(axis=1).max()
            else:
                apart = [np.abs(vectors - each) for each in np.unique(vectors, axis=0)]
                l1 = max(int(each.sum(axis=1).max()) for each in apart)
                l2 = max(int((each**2).sum(axis=1).max()) for each in apart)
            assert (l1, l2) == (plan.moved.l1, plan.moved.l2_squared) or (
                plan.grid.tables[at] == () and level == 0
            )
            assert l1 <= plan.moved.l1
            assert l2 <= plan.moved.l2_squared
            noise = plan.noises[level][at]
            assert noise is not None
            assert noise.hides(plan.moved)


def test_noise_for_less_is_refused(tmp_path: Path) -> None:
    """The vault holds every noise against how far a person moves what it is added to."""
    run = opened(tmp_path, policy_text(rows=3)).publication("census")
    weak = opened_plan(tmp_path, run.accountant)
    with pytest.raises(Unproved):
        measure(_with_noise(run.plan, weak), _allowed(run.accountant), lambda _: None)  # type: ignore[arg-type, return-value]


def opened_plan(folder: Path, accountant: Accountant) -> PublicationPlan:
    (folder / "weak").mkdir()
    return opened(folder / "weak", policy_text(rows=1)).publication("census").plan


def _with_noise(plan: PublicationPlan, other: PublicationPlan) -> PublicationPlan:
    from dataclasses import replace

    return replace(plan, noises=other.noises)


def _allowed(accountant: Accountant) -> Any:
    from fractions import Fraction

    from discreet.budget import Charge
    from discreet.door import make_allowance

    return make_allowance(bytes(32), accountant, Charge(amount=Fraction(10**6)))


# --- errors ---------------------------------------------------------------------------------------


def test_a_quote_is_free_and_says_what_to_expect(curator: Curator) -> None:
    quote = curator.publication("census").quote()
    assert curator.ledger() == ()
    assert [each.level for each in quote.errors[::4]] == ["all", "state", "tract", "block"]
    for each in quote.errors:
        assert each.margin is not None
        # least squares is no worse than what was measured
        assert 0 < 1.96 * each.deviation <= each.margin + 1
    assert abs(sum(each.share for each in quote.errors) - 1) < 1e-6
    said = str(quote)
    assert "No number is exact" in said
    assert json.dumps(quote.as_json())


def test_files_and_sql(curator: Curator, tmp_path: Path) -> None:
    published = curator.publication("census").run()
    files = published.save(tmp_path / "out")
    assert {each.name for each in files} >= {
        "microdata.parquet",
        "block_sex_age.parquet",
        "block_total_noisy.parquet",
    }
    total = published.tables["all", "total"].column("count")[0].as_py()
    assert (
        pa.parquet.read_table(tmp_path / "out" / "block_sex_age.parquet")
        .column("count")
        .to_numpy()
        .sum()
        == total
    )
    # of what was stored: the same bytes
    for path in curator.publication("census").show().save(tmp_path / "again"):
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()
    published.save(tmp_path / "csv", csv=True)
    assert pa.csv.read_csv(tmp_path / "csv" / "microdata.csv").num_rows == total
    asked = [
        "query",
        str(tmp_path / "out" / "microdata.parquet"),
        "SELECT COUNT(*) AS n FROM microdata",
        "--format",
        "json",
    ]
    assert cli.run(asked) == 0


def test_unknown_tables(curator: Curator) -> None:
    published = curator.publication("census").run()
    assert len(published.tables) == len(published.measurements) == 16
    with pytest.raises(KeyError):
        published.tables["block", "race"]
    estimate = published.estimates["tract", "sex"]
    assert estimate.num_rows == 6
    assert estimate.column("estimate").type == pa.float64()


def test_a_generated_country(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "country"
    assert cli.run(["publish", "demo", str(folder), "--people", "3000"]) == 0
    assert cli.run(["publish", "demo", str(folder)]) == 2
    assert cli.run(["publish", "demo", str(tmp_path / "other"), "--people", "3"]) == 2
    capsys.readouterr()
    people = pa.parquet.read_table(folder / "data" / "people.parquet")
    blocks = pa.parquet.read_table(folder / "data" / "blocks.parquet")
    assert (people.num_rows, blocks.num_rows) == (3000, 30)
    lived = people.group_by("block").aggregate([([], "count_all")]).column("count_all").to_numpy()
    assert len(lived) < 30  # some are empty
    assert lived.max() > 4 * np.median(lived)
    require_consistent(discreet.open(folder / "country.yaml").publication("census_2030").run())


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name, table in tables().items():
        pa.parquet.write_table(table, folder / f"{name}.parquet")
    opened(tmp_path, "source: data/\n" + policy_text())
    policy = str(tmp_path / "policy.yaml")
    assert cli.run(["publish", "quote", policy, "census"]) == 0
    assert "measured ±" in capsys.readouterr().out
    assert cli.run(["publish", "show", policy, "census"]) == 2
    assert "was not published yet" in capsys.readouterr().err
    page, out = tmp_path / "census.html", tmp_path / "out"
    assert (
        cli.run(
            [
                "publish",
                "run",
                policy,
                "census",
                "--html",
                str(page),
                "--out",
                str(out),
                "--files",
                "csv",
            ]
        )
        == 0
    )
    assert "people, total, sex, sex_age, age_ill" in capsys.readouterr().out
    assert (out / "tract_sex.csv").exists()
    written = page.read_text(encoding="utf-8")
    assert "<script" not in written
    assert "No number is exact" in written
    assert cli.run(["publish", "show", policy, "census", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["tables"] == ["total", "sex", "sex_age", "age_ill"]
    assert cli.run(["publish", "run", policy, "censsus"]) == 2
    assert "Did you mean census?" in capsys.readouterr().err
    assert (
        cli.run(["publish", "run", policy, "census", "--html", str(tmp_path / "no" / "page.html")])
        == 2
    )
