"""Ways to write a question that are planned as another one: the same statistics, the same numbers,
free afterwards.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.errors import Rejected

POLICY = """\
unit: person
neighbors: add_remove
tables:
  people:
    owner: id
    columns: {id: {identifier: true}, age: {integer: [0, 99]}, sex: {values: [F, M]}}
  labs:
    owner: id
    max_rows: 50
    columns: {id: {identifier: true}, test: {values: [hdl, ldl]}, value: {integer: [0, 99], nullable: true}}
budget: {epsilon: 100000}
limits: {epsilon: 1000}
analysts:
  bob: {epsilon: 100000}
"""
ALIKE = {
    "who has none": (
        "SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL",
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id)",
    ),
    "by the key's one name": (
        "SELECT sex, COUNT(*) FROM people LEFT JOIN labs USING (id) WHERE labs.id IS NULL AND age > 30 GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people WHERE age > 30 AND"
        " NOT EXISTS (SELECT 1 FROM labs WHERE people.id = labs.id) GROUP BY sex",
    ),
    "with more conditions": (
        "SELECT SUM(age) FROM people p LEFT JOIN labs l ON p.id = l.id AND l.test = 'hdl' WHERE l.id IS NULL",
        "SELECT SUM(age) FROM people p WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id AND l.test = 'hdl')",
    ),
    "kept from the right": (
        "SELECT COUNT(*) FROM labs l RIGHT JOIN people p ON p.id = l.id WHERE l.id IS NULL",
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id)",
    ),
    "none of a subquery": (
        "SELECT sex, COUNT(*) FROM people p LEFT JOIN (SELECT id FROM labs WHERE value > 1) AS l ON p.id = l.id"
        " WHERE l.id IS NULL GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people p WHERE"
        " NOT EXISTS (SELECT 1 FROM (SELECT id FROM labs WHERE value > 1) AS l WHERE p.id = l.id) GROUP BY sex",
    ),
    "none of a name": (
        "WITH l AS (SELECT id FROM labs WHERE value > 2)"
        " SELECT COUNT(*) FROM people p LEFT JOIN l ON p.id = l.id WHERE l.id IS NULL",
        "WITH l AS (SELECT id FROM labs WHERE value > 2)"
        " SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM l WHERE p.id = l.id)",
    ),
    "a join that filters": (
        "SELECT COUNT(DISTINCT p.age) FROM people p JOIN labs l ON p.id = l.id WHERE l.test = 'hdl' AND p.sex = 'F'",
        "SELECT COUNT(DISTINCT p.age) FROM people p WHERE p.sex = 'F' AND"
        " EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id AND l.test = 'hdl')",
    ),
    "a join below an extreme": (
        "SELECT sex, MAX(p.age) FROM people p JOIN labs l ON p.id = l.id AND l.value < p.age GROUP BY sex",
        "SELECT sex, MAX(p.age) FROM people p"
        " WHERE EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id AND l.value < p.age) GROUP BY sex",
    ),
    "a join under DISTINCT": (
        "SELECT sex, AVG(age) FROM"
        " (SELECT DISTINCT people.id, age, sex FROM people JOIN labs USING (id) WHERE value > 1) AS t GROUP BY sex",
        "SELECT sex, AVG(age) FROM (SELECT DISTINCT people.id, age, sex FROM people"
        " WHERE EXISTS (SELECT 1 FROM labs WHERE people.id = labs.id AND value > 1)) AS t GROUP BY sex",
    ),
    "a semi join": (
        "SELECT sex, COUNT(*) FROM people p SEMI JOIN labs l ON p.id = l.id AND l.value > 3 WHERE age > 9 GROUP BY sex",
        "SELECT sex, COUNT(*) FROM people p WHERE age > 9 AND"
        " EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id AND l.value > 3) GROUP BY sex",
    ),
    "a semi join by one name": (
        "SELECT COUNT(*) FROM people SEMI JOIN labs USING (id)",
        "SELECT COUNT(*) FROM people WHERE people.id IN (SELECT labs.id FROM labs)",
    ),
    "an anti join": (
        "SELECT COUNT(*) FROM people ANTI JOIN labs USING (id)",
        "SELECT COUNT(*) FROM people WHERE NOT EXISTS (SELECT 1 FROM labs WHERE people.id = labs.id)",
    ),
    "a count of none": (
        "SELECT COUNT(*) FROM people p WHERE (SELECT COUNT(*) FROM labs l WHERE p.id = l.id) = 0",
        "SELECT COUNT(*) FROM people p WHERE NOT EXISTS (SELECT 1 FROM labs l WHERE p.id = l.id)",
    ),
    "an owner among others": (
        "SELECT COUNT(*) FROM people WHERE id = ANY (SELECT id FROM labs WHERE value > 3)",
        "SELECT COUNT(*) FROM people WHERE id IN (SELECT id FROM labs WHERE value > 3)",
    ),
    "bounds of a bucket": (
        "SELECT WIDTH_BUCKET(age, [18, 65]) AS b, COUNT(*) FROM people GROUP BY b",
        "SELECT CASE WHEN age < 18 THEN 0 WHEN age < 65 THEN 1 WHEN age >= 65 THEN 2 END AS b, COUNT(*)"
        " FROM people GROUP BY b",
    ),
    "an earlier name of rows": (
        "SELECT SUM(c) FROM (SELECT age * 2 AS b, b + 1 AS c FROM people) AS t",
        "SELECT SUM(age * 2 + 1) FROM people",
    ),
    "a column goes before an earlier name": (
        "SELECT SUM(c) FROM (SELECT 1 AS age, age + 1 AS c FROM people) AS t",
        "SELECT SUM(age + 1) FROM people",
    ),
    "an earlier name above noise": (
        "SELECT n * 2 AS b, b + 1 AS c FROM (SELECT COUNT(*) AS n FROM people) AS t",
        "SELECT n * 2 AS b, n * 2 + 1 AS c FROM (SELECT COUNT(*) AS n FROM people) AS t",
    ),
}
JOINED = {  # where more than the test looks at what is joined: as many rows as both tables allow
    "a column beside": "SELECT COUNT(l.value) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL",
    "without its table": "SELECT COUNT(test) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL",
    "what may be NULL itself": "SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.value IS NULL",
    "or": "SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NULL OR p.age > 3",
    "not": "SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.id = l.id WHERE l.id IS NOT NULL",
    "a filter": "SELECT COUNT(*) FILTER (WHERE l.test = 'hdl') FROM people p LEFT JOIN labs l ON p.id = l.id"
    " WHERE l.id IS NULL",
    "from the right, and a column beside": (
        "SELECT COUNT(l.value) FROM labs l RIGHT JOIN people p ON p.id = l.id WHERE l.id IS NULL"
    ),
    "a join that counts": "SELECT COUNT(*) FROM people p JOIN labs l ON p.id = l.id WHERE l.value > 1",
    "a join that counts values": (
        "SELECT COUNT(p.age) FROM people p JOIN labs l ON p.id = l.id WHERE l.value > 1"
    ),
    "a join whose columns are shown": (
        "SELECT COUNT(*) FROM (SELECT DISTINCT p.id, l.value FROM people p JOIN labs l ON p.id = l.id) AS t"
    ),
    "a mean beside": "SELECT MAX(p.age), AVG(p.age) FROM people p JOIN labs l ON p.id = l.id",
    "a window below DISTINCT": (
        "SELECT COUNT(*) FROM (SELECT DISTINCT p.id, ROW_NUMBER() OVER (PARTITION BY p.id ORDER BY p.age) AS n"
        " FROM people p JOIN labs l ON p.id = l.id) AS t"
    ),
    "another join on it": "SELECT COUNT(*) FROM people p LEFT JOIN labs l ON p.id = l.id"
    " LEFT JOIN labs k ON k.id = p.id AND k.test = l.test WHERE l.id IS NULL",
}


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    path = tmp_path_factory.mktemp("alike") / "policy.yaml"
    path.write_text(POLICY)
    people = pa.table(
        {"id": list(range(40)), "age": [i * 2 for i in range(40)], "sex": ["F", "M"] * 20}
    )
    labs = [(i, ["hdl", "ldl"][k % 2], k) for i in range(40) for k in range(i % 4)]
    names = ("id", "test", "value")
    tables = {
        "people": people,
        "labs": pa.table(dict(zip(names, map(list, zip(*labs, strict=True)), strict=True))),
    }
    create_ledger(discreet.Policy.read(path))
    return discreet.open(path, tables=tables)


@pytest.mark.parametrize("case", ALIKE)
def test_is_planned_as_the_other(curator: Any, case: str) -> None:
    first, second = ALIKE[case]
    answer = curator.ask(first, analyst="bob", epsilon=900)
    again = curator.ask(second, analyst="bob", epsilon=900)
    assert again.cost.epsilon == 0
    assert answer.table.columns == again.table.columns
    assert answer.margins.columns == again.margins.columns


def test_means_what_it_says(curator: Any) -> None:
    """At a large ε: who has no lab at all, and who has none of a kind."""
    counts = [
        curator.ask(ALIKE[case][0], analyst="bob", epsilon=900).table for case in list(ALIKE)[:3]
    ]
    assert counts[0].column(0)[0].as_py() == sum(i % 4 == 0 for i in range(40))
    by_sex = {"F": sum(i % 4 == 0 and i * 2 > 30 and i % 2 == 0 for i in range(40)), "M": 0}
    assert dict(zip(*(column.to_pylist() for column in counts[1].columns), strict=True)) == by_sex
    assert counts[2].column(0)[0].as_py() == sum(i * 2 for i in range(40) if i % 4 == 0)


@pytest.mark.parametrize("case", JOINED)
def test_stays_a_join(curator: Any, case: str) -> None:
    quote = curator.quote(JOINED[case], analyst="bob", epsilon=1)
    assert quote.as_json()["statistics"][0]["l1"] >= 50


def test_names_that_grow_without_end_are_refused(curator: Any) -> None:
    names = ", ".join(f"a{i} + a{i} AS a{i + 1}" for i in range(40))
    with pytest.raises(Rejected):
        curator.quote(
            f"SELECT SUM(a40) FROM (SELECT age AS a0, {names} FROM people) AS t",
            analyst="bob",
            epsilon=1,
        )
