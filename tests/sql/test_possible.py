"""Only the groups that can be: as many as the allowed values of the keys' columns make, and what a
person can touch.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pytest

from discreet.algebra import Column, Scan
from discreet.curator import Curator
from discreet.engines.duckdb.workbench import WorkbenchSpelling
from discreet.engines.spelling import Spelling
from discreet.sql.analyze import plan
from discreet.sql.plan.keys import Joint
from discreet.sql.rows.keys import possible
from discreet.sql.rows.keys.places import place_among
from sql import bounded, harness, policies


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    tables = bounded.tidy(policies.policy("hospital"), people=30, dice=random.Random("same"))
    return bounded.opened(tmp_path_factory.mktemp("possible"), "hospital", tables)


CASES = [
    (
        "SELECT age, smoker, COUNT(*) AS n FROM people WHERE age = CASE WHEN smoker THEN 20 ELSE 30 END"
        " GROUP BY age, smoker",
        2,
    ),
    (
        "SELECT DATE_TRUNC('day', seen) AS d, clinic, COUNT(*) AS n FROM visits WHERE seen >= '2024-01-02'"
        " AND seen < '2024-01-04' GROUP BY d, clinic",
        6,
    ),
    (
        "SELECT age // 60 AS a, sex, smoker, COUNT(*) AS n FROM people WHERE sex <> 'X' AND age > 60 GROUP BY ALL",
        8,
    ),
    (
        "SELECT CAST(seen AS DATE) AS d, COUNT(*) AS n FROM visits"
        " WHERE seen BETWEEN '2024-01-01 00:00:00.250' AND '2024-01-02 00:00:00.750' GROUP BY d",
        2,
    ),
    (
        "SELECT s.size, COUNT(*) AS n FROM people AS p JOIN (VALUES ('F', 39000000), ('M', 77)) AS s(sex, size)"
        " ON s.sex = p.sex GROUP BY s.size",
        2,
    ),
    ("SELECT age // 10 AS d, COUNT(*) AS n FROM people WHERE age >= 80 GROUP BY d", 5),
    (
        "SELECT CAST(seen AS DATE) AS d, COUNT(*) AS n FROM visits WHERE seen < '2024-01-03' GROUP BY d",
        2,
    ),
    (
        "SELECT d, COUNT(*) AS n FROM (SELECT age // 10 AS d FROM people WHERE age >= 80) AS s GROUP BY d",
        5,
    ),
    (
        "WITH s AS (SELECT * FROM people WHERE sex <> 'X') SELECT sex, COUNT(*) AS n FROM s GROUP BY sex",
        2,
    ),
    ("SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY y, m", 12),
    (
        "SELECT MONTH(born) AS m, born, COUNT(*) AS n FROM people WHERE born < '1990-03-01' GROUP BY m, born",
        59,
    ),
    (
        "SELECT c.town, c.clinic, COUNT(*) AS n FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY 1, 2",
        3,
    ),
    (
        "SELECT CASE WHEN age < 18 THEN 'a' ELSE 'b' END AS k, COUNT(*) AS n FROM people WHERE age > 20 GROUP BY k",
        1,
    ),
    ("SELECT LAST_DAY(day) AS l, COUNT(*) AS n FROM visits GROUP BY l", 12),
    ("SELECT zip, COUNT(*) AS n FROM people WHERE zip IN ('a', 'b', 'c') GROUP BY zip", 3),
    ("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", 3),
]


TWICE = (
    "WITH s AS (SELECT person_id, seen, day FROM visits) SELECT {key} AS d, COUNT(*) AS n"
    " FROM s AS a JOIN s AS b ON a.person_id = b.person_id WHERE b.seen < '2024-01-01 00:01:00' GROUP BY d"
)


def test_a_condition_on_one_use_of_a_table_does_not_narrow_the_other(curator: Curator) -> None:
    every = (
        curator._view.plan("SELECT CAST(seen AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY d")
        .blocks[0]
        .cells
    )
    (block,) = curator._view.plan(TWICE.format(key="CAST(a.seen AS DATE)")).blocks
    assert block.cells == every


def test_rows_of_a_table_that_stands_twice_are_counted_before_they_are_made(
    curator: Curator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values of one table, joined with all values of itself, were made: 44 seconds of
    planning.
    """
    monkeypatch.setattr(possible, "MOST_VALUES", 1000)
    (block,) = curator._view.plan(TWICE.format(key="LAST_DAY(a.day)")).blocks
    assert not isinstance(block.keys[0], Joint)


@pytest.mark.parametrize(("sql", "groups"), CASES)
def test_only_groups_that_can_be(curator: Curator, sql: str, groups: int) -> None:
    (block,) = curator._view.plan(sql).blocks
    assert block.cells == groups
    answer = curator.ask(sql, analyst="ann", epsilon="1e45")
    assert answer.table.num_rows == groups


def test_rows_beside_the_listed_groups_are_left_out(curator: Curator) -> None:
    """What is listed is all that is counted: the sum over groups is the count of what WHERE
    leaves.
    """
    for condition in ("age >= 80", "age BETWEEN 17 AND 43", "age < 35"):
        sql = f"SELECT age // 10 AS d, COUNT(*) AS n FROM people WHERE {condition} GROUP BY d"
        total = curator.ask(
            f"SELECT COUNT(*) AS n FROM people WHERE {condition}", analyst="ann", epsilon="1e45"
        )
        parts = curator.ask(sql, analyst="ann", epsilon="1e45").table["n"].to_pylist()
        assert sum(parts) == total.table["n"][0].as_py()


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_a_person_is_in_no_more_groups_than_are_left(neighbors: Any) -> None:
    policy = policies.policy("hospital", neighbors)
    sql = "SELECT clinic, COUNT(DISTINCT person_id) AS n FROM visits WHERE clinic IN ('Hill', 'Market') GROUP BY clinic"
    (block,) = harness.planned(sql, policy, name="hospital").blocks
    assert isinstance(block.keys[0], Joint)
    assert block.statistics[0].sensitivity.l1 == 2


def test_grouping_sets_keep_their_grid(curator: Curator) -> None:
    """They are added up from one another, key by key."""
    sql = "SELECT sex, age // 50 AS a, COUNT(*) AS n FROM people WHERE age < 50 GROUP BY ROLLUP (sex, a)"
    assert not any(
        isinstance(key, Joint) for block in curator._view.plan(sql).blocks for key in block.keys
    )


@pytest.mark.parametrize("cells", [(13, 14, 15), (13, 15, 27)])
def test_a_row_beside_the_listed_groups_is_in_none(cells: tuple[int, ...]) -> None:
    """Nothing rests on the list being right: a row that should not be there is left out, and moves
    nothing else.
    """
    place = place_among([Column("t", "x"), Column("t", "y")], [3, 10], cells)
    sql = Spelling().expression(place)
    every = "(SELECT x, y FROM range(3) AS a(x), range(10) AS b(y)) AS t"
    rows = duckdb.sql(f"SELECT x * 10 + y, {sql} FROM {every}").fetchall()
    assert len(rows) == 30
    assert {flat: found for flat, found in rows if found is not None} == {
        cell: i for i, cell in enumerate(cells)
    }
    assert duckdb.sql(f"SELECT {sql} FROM (SELECT NULL::INT AS x, 1 AS y) AS t").fetchall() == [
        (None,)
    ]


def test_places_of_narrow_columns_do_not_overflow() -> None:
    """A place has its column's type: 120 * 2 is more than a TINYINT holds, and failed where
    somebody is 120.
    """
    place = place_among([Column("t", "x"), Column("t", "y")], [121, 3], (7, 300))
    sql = Spelling().expression(place)
    rows = duckdb.sql(
        f"SELECT {sql} FROM (SELECT CAST(100 AS TINYINT) AS x, CAST(0 AS TINYINT) AS y) AS t"
    ).fetchall()
    assert rows == [(1,)]


def test_a_grid_beyond_64_bits_is_not_numbered(curator: Curator) -> None:
    finder = possible.Possible(
        policy=curator.policy, public={}, spell=lambda tree: "", evaluate=pytest.fail
    )
    assert finder.cells(Scan("people", "t"), (), [Column("t", "age")], [2**62]) is None


def test_a_public_table_is_read_by_its_name(curator: Curator) -> None:
    """Its rows are not written into the statement, which took a minute for 26,000 of them."""
    view, asked = curator._view, []

    def evaluate(text: str) -> Any:
        asked.append(text)
        return view.of_public(text)

    sql = "SELECT c.town, COUNT(*) AS n FROM visits v JOIN clinics c ON v.clinic = c.clinic GROUP BY 1"
    plan(sql, view.policy, view.public, evaluate, spell=WorkbenchSpelling().numbers)
    assert " clinics AS " in asked[-1].replace('"', "")
