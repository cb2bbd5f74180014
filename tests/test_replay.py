"""Record and replay through the door (S14): the same draws on neighbors, the same scale and index of the next.

As long as what has left agrees; after that, unknown keys and later passes of a quantile may differ, and rightly so.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.curator import Curator, create_ledger
from discreet.noise.tape import Draw, recording

POLICY = """\
unit: person
neighbors: NEIGHBORS
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01}
      sex: {values: [F, M]}
      zip: text
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      cost: {decimal: [0, 1000], step: 0.01}
budget: {epsilon: 1000, delta: 1e-6, accountant: ACCOUNTANT}
limits: {epsilon: 100}
analysts:
  alice: {epsilon: 1000}
"""
SHAPES = (
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM visits",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT sex, age, COUNT(*) FROM people GROUP BY sex, age",
    "SELECT SUM(income) FROM people",
    "SELECT AVG(income), COUNT(*) FROM people WHERE age > 30",
    "SELECT sex, STDDEV(income) FROM people GROUP BY sex",
    "SELECT CORR(age, income) FROM people",
    "SELECT MEDIAN(age) FROM people",
    "SELECT sex, QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM people GROUP BY sex",
    "SELECT MEDIAN(income) FROM people",
    "SELECT MODE(sex), MAX(age) FROM people",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT zip, COUNT(*), AVG(income) FROM people GROUP BY zip",
    "SELECT zip, sex, SUM(income) FROM people GROUP BY zip, sex",
    "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    "SELECT COUNT(*) FILTER (WHERE age > 50) / COUNT(*) FROM people",
    "SELECT COUNT(*) FROM (SELECT person_id, SUM(cost) AS c FROM visits GROUP BY person_id) AS t WHERE c > 10",
    "SELECT p.sex, SUM(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex",
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id",
    "SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits)",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 20 ORDER BY 2 LIMIT 1",
)


def town(*, victim: bool) -> dict[str, pa.Table]:
    ids = [i for i in range(60) if victim or i != 7]
    visits = [i for i in ids for _ in range(5 if i == 7 else i % 3)]
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "age": [120 if i == 7 else 20 + i for i in ids],
                "income": [200000.0 if i == 7 else 1000.0 * i for i in ids],
                "sex": ["FM"[i % 2] for i in ids],
                "zip": ["9" if i == 7 else "1" for i in ids],
            }
        ),
        "visits": pa.table({"person_id": visits, "cost": [1000.0 if i == 7 else 5.0 for i in visits]}),
    }


@pytest.fixture(scope="module", params=[("add_remove", "sum"), ("change_one", "zcdp")], ids=lambda each: each[0])
def neighbors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Curator]:
    relation, accountant = request.param
    found = []
    for victim in (True, False):
        path = tmp_path_factory.mktemp("town") / "policy.yaml"
        path.write_text(POLICY.replace("NEIGHBORS", relation).replace("ACCOUNTANT", accountant), encoding="utf-8")
        create_ledger(discreet.Policy.read(path))
        found.append(discreet.open(path, tables=town(victim=victim)))
    return found


def asked(curator: Curator, sql: str, replay: Any) -> tuple[list[Draw], Any]:
    with recording(replay=replay) as tape:
        table = curator.ask(sql, analyst="alice", epsilon=2).table
    private = [draw for draw in tape.draws if any("measurement" in map(str, part) for part in draw.path)]
    return private, (tape, table)


@pytest.mark.parametrize("sql", SHAPES)
def test_same_draws_on_neighbors(neighbors: list[Curator], sql: str) -> None:
    first, (tape, table) = asked(neighbors[0], sql, None)
    second, (_, other) = asked(neighbors[1], sql, tape)
    assert first, "nothing was drawn"
    assert len({(each.path, each.scale, each.ids) for each in first}) == len(first), "two draws share their noise"
    same = table.equals(other)
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        known_keys = "zip" not in sql
        assert (a.path, a.sampler, a.scale) == (b.path, b.sampler, b.scale)
        if index == 0 and known_keys:
            assert (a.count, a.ids) == (b.count, b.ids)  # the first draw cannot depend on anything that left
        if same and known_keys:
            assert (a.count, a.ids) == (b.count, b.ids)
    if same:
        assert len(first) == len(second)


def test_replay_is_a_replay(neighbors: list[Curator]) -> None:
    """On the same data the same draws give the same answer, and another recording another one."""
    sql = "SELECT age, COUNT(*) FROM people GROUP BY age"
    _, (tape, table) = asked(neighbors[0], sql, None)
    with recording(replay=tape):
        again = neighbors[0].ask(sql, analyst="alice", epsilon=2).table  # recalled
    assert table.equals(again)
    _, (_, on_neighbor) = asked(neighbors[1], sql, tape)
    differ = [a != b for a, b in zip(table.column(1).to_pylist(), on_neighbor.column(1).to_pylist(), strict=True)]
    assert sum(differ) == 1  # the noise of every cell is the same: only the victim's cell moved, by one
