"""The generated town: always the same, believable, and its policy fits it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc

from discreet.engines.advice import check
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.examples.town import GOVERNOR, KARRIE, STATES, build, tables
from discreet.policy.domain import DOMAINS
from discreet.policy.policy import Policy


def test_the_town_is_always_the_same() -> None:
    first, second = tables(500), tables(500)
    assert all(first[name].equals(second[name]) for name in first)
    assert (
        first["people"].slice(100).to_pylist() == tables(1000)["people"].slice(100, 400).to_pylist()
    )
    assert first["people"]["income"].to_pylist()[2] == 56274.0


def test_the_policy_fits_and_uses_every_kind_of_domain(tmp_path: Path) -> None:
    policy = Policy.read(build(tmp_path, people=500))
    assert check(policy).problems == ()
    used = {
        type(column.domain) for table in policy.tables.values() for column in table.columns.values()
    }
    assert used == set(DOMAINS)
    snapshot = prepare(policy, policy.source, policy.store, 1)
    for table in snapshot.tables:
        assert table.kept > 0
        assert table.ownerless == 0
        assert all(column.nulled == 0 for column in table.columns)
    assert {table.name: table.kept for table in snapshot.tables}["states"] == len(STATES) == 50
    assert next(table for table in snapshot.tables if table.name == "visits").truncated > 0


def test_two_residents_are_known() -> None:
    people = tables(10_000)["people"].to_pylist()
    assert [person["income"] for person in people if person["name"] == KARRIE["name"]] == [
        KARRIE["income"]
    ]
    alike = [
        person
        for person in people
        if all(person[key] == GOVERNOR[key] for key in ("born", "zip", "sex"))
    ]
    assert [person["name"] for person in alike] == [GOVERNOR["name"]]


def test_believable_shapes() -> None:
    town = tables(10_000)
    people, visits = town["people"], town["visits"]
    assert 40 < pc.mean(people["age"]).as_py() < 43
    assert 3000 < people["diagnosis"].null_count < 7000
    assert pc.quantile(people["income"], 0.5)[0].as_py() < pc.mean(people["income"]).as_py()
    assert 1.5 < visits.num_rows / people.num_rows < 3
    assert len(pc.unique(people["zip"])) > 15
    assert set(people["sex"].to_pylist()) == {"F", "M", "X"}
    assert set(town["labs"]["visit_id"].to_pylist()) <= set(visits["visit_id"].to_pylist())
