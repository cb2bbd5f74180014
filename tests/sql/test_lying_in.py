"""Columns of a declared hierarchy make only the combinations that its public table lists."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.sql.rows.keys.lying_in import Combinations, combinations
from sql import bounded, harness, policies

POLICY, PUBLIC = policies.policy("land"), policies.public("land")
PLACES = PUBLIC["places"]


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """A land where half of the people say that they live in a county of another state."""
    tables = bounded.tidy(POLICY, people=60, dice=random.Random("land"))
    dice, known = random.Random("places"), PLACES.to_pylist()
    for name in ("voters", "ballots"):
        rows = tables[name].to_pylist()
        for row in rows:
            if dice.random() < 0.5:
                row.update(
                    {level: value for level, value in dice.choice(known).items() if level in row}
                )
        tables[name] = pa.Table.from_pylist(rows, schema=tables[name].schema)
    return bounded.opened(tmp_path_factory.mktemp("land"), "land", tables)


CASES = [
    (
        "SELECT state, county, COUNT(*) AS n FROM voters GROUP BY state, county",
        [30],
    ),  # 20, and 10 with NULL
    ("SELECT state, county, COUNT(*) AS n FROM ballots GROUP BY state, county", [20]),
    (
        "SELECT state, county, ward, COUNT(*) AS n FROM voters WHERE county IS NOT NULL GROUP BY 1, 2, 3",
        [40],
    ),
    ("SELECT state, ward, COUNT(*) AS n FROM voters GROUP BY state, ward", [40]),
    ("SELECT county, COUNT(*) AS n FROM ballots WHERE state = 's3' GROUP BY county", [2]),
    (
        "SELECT county, COUNT(*) AS n FROM (SELECT * FROM ballots WHERE state = 's3') AS s GROUP BY county",
        [2],
    ),
    (
        "SELECT state, COUNT(*) AS n FROM ballots WHERE county IN ('c0', 'c1', 'c2') GROUP BY state",
        [2],
    ),
    ("SELECT state, county, day, COUNT(*) AS n FROM ballots GROUP BY state, county, day", [100]),
    (
        "SELECT state, county, COUNT(*) AS n FROM ballots GROUP BY ROLLUP (state, county)",
        [20, 10, 1],
    ),
    ("SELECT state, COUNT(*) AS n FROM ballots GROUP BY state", [10]),
    # Where people live says nothing about where they vote.
    (
        "SELECT v.state, b.county, COUNT(*) AS n FROM voters v JOIN ballots b USING (voter_id) GROUP BY 1, 2",
        [200],
    ),
]


@pytest.mark.parametrize(("sql", "groups"), CASES)
def test_only_combinations_that_are_listed_are_groups(sql: str, groups: list[int]) -> None:
    assert [block.cells for block in harness.planned(sql, POLICY, name="land").blocks] == groups


def test_counts_are_of_those_who_are_where_a_place_is(curator: Curator, tmp_path: Any) -> None:
    """Those who say that a county lies in another state are in no group, and move no other
    number.
    """
    plain = bounded.plain(curator, tmp_path)
    sql = "SELECT state, county, COUNT(*) AS n FROM ballots GROUP BY state, county"
    answer = curator.ask(sql, analyst="ann", epsilon="1e45").table
    listed = set(zip(PLACES["state"].to_pylist(), PLACES["county"].to_pylist(), strict=True))
    found = {(row["state"], row["county"]): row["n"] for row in answer.to_pylist()}
    exact = {(state, county): n for state, county, n in plain.sql(sql).fetchall()}
    assert found == {place: exact.get(place, 0) for place in listed}
    assert not exact.keys() <= listed  # some are where no place is


def test_a_rollup_adds_up_what_is_there(curator: Curator) -> None:
    sql = "SELECT state, county, COUNT(*) AS n FROM ballots GROUP BY ROLLUP (state, county)"
    rows = curator.ask(sql, analyst="ann", epsilon="1e45").table.to_pylist()
    total = (
        curator.ask("SELECT COUNT(*) AS n FROM ballots", analyst="ann", epsilon="1e45")
        .table["n"][0]
        .as_py()
    )
    assert len(rows) == 31
    assert sum(row["n"] for row in rows if row["state"] and not row["county"]) == total


def test_values_that_are_not_declared_make_no_combination() -> None:
    stranger = pa.table(
        {"state": ["s0", "s99", None], "county": ["c0", "c0", "c1"], "ward": [1, 2, 3]}
    )
    found = combinations(
        POLICY, {"places": stranger}, POLICY.tables["ballots"], {"state", "county"}
    )
    assert found == Combinations(
        columns=("state", "county"), rows=((0, 0), (0, None), (None, 0), (None, None))
    )


def test_without_one_table_that_lists_the_places_every_combination_can_be() -> None:
    ballots, wanted = POLICY.tables["ballots"], {"state", "county"}
    assert combinations(POLICY, {}, ballots, wanted) is None
    assert combinations(POLICY, {"places": PLACES, "again": PLACES}, ballots, wanted) is None
    assert combinations(POLICY, PUBLIC, ballots, {"state", "day"}) is None
    named = {name: replace(each, table="again") for name, each in POLICY.hierarchies.items()}
    policy = replace(POLICY, hierarchies=named)
    assert combinations(policy, {"places": PLACES, "again": PLACES}, ballots, wanted) is not None
