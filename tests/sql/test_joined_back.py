"""Private rows that meet noisy results: the same as DuckDB's at large ε, added up where groups meet
several rows, and refused where numbers cannot be added up.

At ε = 1e45 the noise is zero but with probability e^-1000.
"""

from __future__ import annotations

from typing import Any

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import Rejected
from discreet.examples import town
from discreet.policy.policy import Policy
from sql import bounded

TOP = "(SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic ORDER BY n DESC, clinic LIMIT 2)"
STATES = "(SELECT state, COUNT(*) AS n FROM people GROUP BY state)"

STATEMENTS = (
    # each group meets one row, and stays as it is
    (
        f"SELECT v.clinic, COUNT(*) AS n, t.n AS of, AVG(v.cost) AS m FROM visits v JOIN {TOP}"
        " t ON t.clinic = v.clinic GROUP BY v.clinic, t.n"
    ),
    (
        f"SELECT v.clinic, COUNT(DISTINCT v.person_id) AS p FROM visits v, {TOP} t WHERE "
        "t.clinic = v.clinic GROUP BY v.clinic HAVING COUNT(*) > 1"
    ),
    (
        "SELECT p.state, MIN(t.n) AS a, SUM(t.n) AS b, AVG(t.n) AS c, COUNT(t.n) AS d FROM "
        f"people p LEFT JOIN {STATES} t USING (state) GROUP BY p.state"
    ),
    (
        "SELECT p.sex, COUNT(*) AS n, COUNT(*) / t.n AS share FROM people p CROSS JOIN "
        "(SELECT COUNT(*) AS n FROM people) t GROUP BY p.sex, t.n"
    ),
    # groups are added up
    (
        "SELECT CASE WHEN t.n IS NULL THEN 'other' ELSE v.clinic END AS c, COUNT(*) AS n, "
        "SUM(v.cost) AS s, AVG(v.cost) AS m, COUNT(*) FILTER (WHERE v.cost > 100) AS f FROM "
        f"visits v LEFT JOIN {TOP} t ON t.clinic = v.clinic GROUP BY 1"
    ),
    (
        "SELECT COUNT(*) AS n, SUM(p.income) AS s, COUNT(DISTINCT p.person_id) AS p FROM "
        f"people p JOIN {STATES} t ON t.state = p.state WHERE t.n > 2"
    ),
    (
        "SELECT t.n > 4 AS big, AVG(p.income) AS m, SUM(t.n) AS s, AVG(t.n) AS a, COUNT(t.n) "
        f"AS c, MAX(t.n) AS x FROM people p JOIN {STATES} t ON t.state = p.state GROUP BY 1"
    ),
    (
        "SELECT CASE WHEN state IN (SELECT state FROM people GROUP BY state ORDER BY COUNT(*)"
        " DESC, state LIMIT 3) THEN state ELSE 'other' END AS s, COUNT(*) AS n FROM people "
        "GROUP BY 1"
    ),
    (
        "SELECT sex, COUNT(*) AS n FROM people WHERE state NOT IN (SELECT state FROM people "
        "GROUP BY state ORDER BY COUNT(*) DESC, state LIMIT 3) GROUP BY sex"
    ),
    (
        "SELECT COUNT(*) AS n FROM people WHERE state = (SELECT state FROM people GROUP BY "
        "state ORDER BY COUNT(*) DESC, state LIMIT 1)"
    ),
    # a noisy result that is grouped again
    (
        "SELECT s.region, COUNT(*) AS n, t.m FROM people p JOIN states s USING (state) JOIN "
        "(SELECT region, SUM(n) AS m FROM (SELECT s.region, p.state, COUNT(*) AS n FROM "
        "people p JOIN states s USING (state) GROUP BY 1, 2) u GROUP BY region) t ON t.region"
        " = s.region GROUP BY 1, 3"
    ),
    # the noisy result stands first, and between the tables of the rows
    (
        f"SELECT t.clinic, p.sex, COUNT(*) AS n FROM {TOP} t JOIN visits v ON v.clinic = "
        "t.clinic JOIN people p ON p.person_id = v.person_id GROUP BY 1, 2"
    ),
    # two of them, and windows and order above
    (
        "SELECT v.clinic, COUNT(*) AS n, t.n AS a, u.n AS b, RANK() OVER (ORDER BY COUNT(*) "
        f"DESC, v.clinic) AS r FROM visits v JOIN {TOP} t ON t.clinic = v.clinic CROSS JOIN "
        "(SELECT COUNT(*) AS n FROM visits) u GROUP BY v.clinic, t.n, u.n ORDER BY n DESC"
    ),
)


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    path = town.build(tmp_path_factory.mktemp("town"), people=200)
    text = path.read_text("utf-8").replace("{epsilon: 4,", "{epsilon: 1e48,")
    text = text.replace("limits: {epsilon: 1,", "limits: {epsilon: 1e46,")
    path.write_text(text.replace("bob:   {epsilon: 1}", "bob: {epsilon: 1e48}"), "utf-8")
    create_ledger(Policy.read(path))
    return discreet.open(path)


@pytest.fixture(scope="module")
def plain(curator: Curator, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return bounded.plain(curator, tmp_path_factory.mktemp("plain"))


def differences(curator: Curator, plain: Any, sql: str) -> list[str]:
    answer = curator.ask(sql, analyst="bob", epsilon="1e45")
    plan = curator._view.plan(sql, "duckdb")
    ours = list(zip(*(column.to_pylist() for column in answer.table.columns), strict=True))
    return bounded.differences(
        ours,
        plain.sql(sql).fetchall(),
        measured=[column.measured or column.noisy for column in plan.columns],
        tolerance=1e-7,
        blocks=len(plan.blocks),
    )


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_answer_is_that_of_the_rows(curator: Curator, plain: Any, sql: str) -> None:
    assert differences(curator, plain, sql) == []


@pytest.mark.parametrize(
    "noisy",
    [
        "(SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY sex, smoker)",
        "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex, smoker)",
        "(SELECT sex, n FROM (SELECT sex, smoker, COUNT(*) AS n FROM people GROUP BY 1, 2) u)",
        (
            "(SELECT sex, COUNT(*) AS n FROM people GROUP BY sex UNION ALL SELECT 'F', COUNT(*) "
            "FROM people)"
        ),
    ],
)
def test_a_row_meets_one_row_of_a_noisy_result(curator: Curator, noisy: str) -> None:
    """Otherwise a group that nobody is in would count the rows twice."""
    sql = f"SELECT p.sex, COUNT(*) FROM people p JOIN {noisy} t ON t.sex = p.sex GROUP BY p.sex"
    with pytest.raises(Rejected) as caught:
        curator.quote(sql, analyst="bob", epsilon="1")
    assert "a row may meet several rows of the noisy result t" in caught.value.reason


def test_people_in_several_groups_are_not_added_up(curator: Curator) -> None:
    sql = f"SELECT COUNT(DISTINCT v.person_id) FROM visits v JOIN {TOP} t ON t.clinic = v.clinic"
    with pytest.raises(Rejected) as caught:
        curator.quote(sql, analyst="bob", epsilon="1")
    assert "cannot be added up over the groups of v.clinic" in caught.value.reason


def test_the_remedy_works(curator: Curator) -> None:
    sql = f"SELECT COUNT(DISTINCT v.person_id) FROM visits v JOIN {TOP} t ON t.clinic = v.clinic"
    curator.quote(f"{sql} GROUP BY v.clinic", analyst="bob", epsilon="1")


def test_the_same_noisy_result_is_measured_once(curator: Curator) -> None:
    """WITH names it twice, and the groups of the rows are those of its own."""
    sql = (
        f"WITH t AS {STATES} SELECT p.state, COUNT(*) AS n, t.n AS m FROM people p JOIN t ON "
        "t.state = p.state GROUP BY p.state, t.n"
    )
    answer = curator.ask(sql, analyst="bob", epsilon="1")
    rows = answer.table.to_pylist()
    assert rows
    assert all(row["n"] == row["m"] for row in rows)


@pytest.mark.parametrize(
    ("sql", "selected"),
    [
        ((
            f"SELECT p.state, COUNT(*) FROM people p JOIN {STATES} t ON t.state = p.state GROUP BY"
            " p.state"
        ), False),
        ((
            f"SELECT v.clinic, COUNT(*) FROM visits v JOIN {TOP} t ON t.clinic = v.clinic GROUP BY"
            " v.clinic"
        ), True),
    ],
)  # fmt: skip
def test_rows_are_marked_where_noise_chose_them(curator: Curator, sql: str, selected: bool) -> None:
    assert curator._view.plan(sql, "duckdb").selected is selected


@pytest.mark.parametrize(
    ("sql", "has"),
    [
        (f"SELECT AVG(t.n) AS x FROM people p JOIN {STATES} t ON t.state = p.state", True),
        (f"SELECT COUNT(*) AS x FROM people p JOIN {STATES} t ON t.state = p.state", True),
        # which groups are added up is chosen by their noise
        (f"SELECT COUNT(*) AS x FROM visits v JOIN {TOP} t ON t.clinic = v.clinic", False),
        ((
            "SELECT CASE WHEN t.n IS NULL THEN 'other' END AS c, COUNT(*) AS x FROM visits v LEFT"
            f" JOIN {TOP} t ON t.clinic = v.clinic GROUP BY 1"
        ), False),
    ],
)  # fmt: skip
def test_sums_over_groups_have_margins_unless_noise_chose_them(
    curator: Curator, sql: str, has: bool
) -> None:
    answer = curator.ask(sql, analyst="bob", epsilon="1")
    told = answer.margins.column("x").null_count == 0
    reasons = answer.certificate.get("without_margin", {})
    assert told is has
    assert ("groups that these choose" in reasons.get("x", "")) is not has


@pytest.mark.parametrize("same", ["v.clinic = p.person_id", "v.person_id = p.zip"])
def test_rows_of_others_are_not_joined_to_a_row(curator: Curator, same: str) -> None:
    """A subquery is a join on the owner only where both sides are owners."""
    sql = f"SELECT COUNT(*) FROM people p WHERE (SELECT SUM(v.cost) FROM visits v WHERE {same}) > 9"
    with pytest.raises(Rejected) as caught:
        curator.quote(sql, analyst="bob", epsilon="1")
    assert "a subquery beside each row is not answered" in caught.value.reason
