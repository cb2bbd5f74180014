"""Each rule of S3 and S4 taken away: the checks that hold every pair of plans.sql must then fail.

What these tests test are the tests. Databases are drawn without a seed: a missing rule goes unseen
on all of 900 of them with a probability below 1e-9.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import duckdb
import pytest

import test_every_aggregate as every
from discreet.algebra import Constant, PerPerson, owner_of
from discreet.engines.spelling import Spelling
from discreet.errors import Rejected
from discreet.sql import analysis, blocks
from discreet.sql.analysis import Analysis
from discreet.sql.plan import sensitivity
from discreet.sql.plan.sensitivity import Sensitivity
from discreet.sql.rows import joins, sets, windows
from discreet.sql.rows.relation import Relation
from sql import databases, harness, policies
from sql.harness import Case

BY_ID = {case.id: case for case in harness.cases()}


@cache
def family(name: str) -> databases.Family:
    constants = databases.constants_of([case.sql for case in BY_ID.values() if case.policy == name])
    return databases.family(name, constants, backgrounds=3, size=300, dice=random.Random())


@pytest.fixture(autouse=True)
def fresh_plans() -> Any:
    """Plans are remembered; not those of a mutilated analysis."""
    harness.plan_of.cache_clear()
    yield
    harness.plan_of.cache_clear()


def caught(id: str) -> bool:
    """Whether the brute force finds that a question moves by more than is claimed."""
    case = BY_ID[id]
    try:
        every.check_sums(case, family(case.policy))
        every.check_keys(case, family(case.policy))
    except AssertionError:
        return True
    return False


# --- sensitivities --------------------------------------------------------------------------------


def test_a_replaced_sum_of_both_signs_needs_its_span(monkeypatch: pytest.MonkeyPatch) -> None:
    """√2 m max|x| alone, as if a person could only change cells, is too little in l2 on both sides
    of zero.
    """

    def narrow(*, rows: int, lo: int, hi: int, groups: int, neighbors: str) -> Sensitivity:
        largest = rows * max(abs(lo), abs(hi))
        factor = 1 if neighbors == "add_remove" else 2
        return Sensitivity(
            l0=factor * rows,
            l1=factor * largest,
            l2_squared=factor * largest**2,
            linf=factor * largest,
        )

    question = "hospital: sum, both signs / several rows / group category"  # pain is in [-5, 5]
    assert not caught(question)
    monkeypatch.setattr(sensitivity, "of_sum", narrow)
    harness.plan_of.cache_clear()
    assert caught(question)


def test_a_replaced_sum_may_lose_all_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """hi - lo is too little: lessons are in [1, 8], and a person may have no absence at all."""

    def present(*, rows: int, lo: int, hi: int, groups: int, neighbors: str) -> Sensitivity:
        span = rows * (hi - lo if neighbors == "change_one" else max(abs(lo), abs(hi)))
        return Sensitivity(l0=1, l1=span, l2_squared=span**2, linf=span)

    assert not caught("school: sum / absences / plain")
    monkeypatch.setattr(sensitivity, "of_sum", present)
    harness.plan_of.cache_clear()
    assert caught("school: sum / absences / plain")


@pytest.mark.parametrize(
    "question",
    [
        "hospital: count / join on owner / plain",
        "hospital: count / left join on owner / plain",
        "hospital: count / join public, several each / group public",
        "isp: count / sessions and tickets / plain",
    ],
)
def test_joins_multiply(monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    original = analysis.join

    def single(*arguments: Any) -> Relation:
        return replace(original(*arguments), rows=1)

    monkeypatch.setattr(analysis, "join", single)
    assert caught(question)


def test_unions_add(monkeypatch: pytest.MonkeyPatch) -> None:
    original = sets._union
    monkeypatch.setattr(
        sets,
        "_union",
        lambda node, left, right, alias: replace(
            original(node, left, right, alias), rows=left.rows
        ),
    )
    assert caught("hospital: count / UNION ALL / plain")


def test_people_are_in_as_many_groups_as_they_have_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "distinct_values", lambda origins, rows: 1)
    assert caught("hospital: persons / several rows / group category")
    assert caught("hospital: count / several rows / group text")


# --- whose row is it ------------------------------------------------------------------------------


@pytest.fixture
def shared_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A WITH name means the same stage wherever it is used."""
    monkeypatch.setattr(
        Analysis, "reference", lambda self, relation, alias: relation.with_name(alias)
    )


def test_two_uses_of_a_name_are_two_stages(shared_names: None) -> None:
    assert caught("hospital: persons / WITH twice / group two keys")


CORRELATED = ("hospital: count / WITH twice / owner IN", "hospital: count / WITH twice / EXISTS")


def moved_by_a_newcomer(case: Case) -> tuple[int, int]:
    """How far one more person moves a count, and what is claimed: to three with cheap visits comes
    one who paid.
    """
    policy, dice = policies.policy("hospital"), random.Random()
    place = list(policy.tables["visits"].columns).index("cost")
    people = []
    for number, costs in enumerate([(0, 1, 0), (0, 0, 0), (0, 0, 0), (0, 1, 100_000)], start=1):
        each = databases.person(policy, dice, [], number=number)
        row = (number, number, None, None, 0, None, 0, None)
        each["visits"] = [(*row[:place], cost, *row[place + 1 :]) for cost in costs]
        people.append(each)
    block = harness.plan_of(case).blocks[0]
    counts = []
    for present in (people[:3], people):
        connection = duckdb.connect(config={"threads": 1})
        databases.load(connection, "hospital", [tuple(present)])
        counts.append(harness.whole(connection.sql(harness.spelled(block.sums)).fetchall()[0][0]))
    return abs(counts[1] - counts[0]), block.statistics[0].sensitivity.l1


def test_a_name_correlated_with_itself_compares_owners(shared_names: None) -> None:
    """Without a stage of its own, IN holds for everybody as soon as it holds for one person."""
    moved, claimed = moved_by_a_newcomer(BY_ID[CORRELATED[0]])
    assert moved > claimed


@pytest.mark.parametrize("id", CORRELATED)
def test_a_name_correlated_with_itself_is_kept_apart(id: str) -> None:
    moved, claimed = moved_by_a_newcomer(BY_ID[id])
    assert 0 < moved <= claimed


def test_joins_need_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT COUNT(*) FROM people a JOIN visits b ON a.age = b.pain"
    with pytest.raises(Rejected, match="joined on the owner only"):
        harness.planned(sql, policies.policy("hospital"), name="hospital")
    monkeypatch.setattr(joins, "same_owner", lambda left, right: True)
    monkeypatch.setattr(joins, "matches_owners", lambda *_: Constant(True))
    plan = harness.planned(sql, policies.policy("hospital"), name="hospital")
    run = harness.spelled(plan.blocks[0].sums)
    assert '."#owner" = ' in run, "rows of different people never meet, whatever the condition says"


@pytest.fixture
def shared_keys(monkeypatch: pytest.MonkeyPatch) -> databases.Family:
    """Against all that is assumed, different people have visits of the same identifier, or of
    none.
    """
    monkeypatch.setattr(
        databases,
        "_key",
        lambda table, column, number, place, visits, dice: dice.choice([1, 2, None]),
    )
    return databases.family("hospital", [], backgrounds=3, size=100, dice=random.Random())


KEYED = [case for case in BY_ID.values() if "visit_id" in case.sql]


def moved_too_far(found: databases.Family) -> list[str]:
    moved = []
    for case in KEYED:
        try:
            every.check_sums(case, found)
        except AssertionError:
            moved.append(case.id)
    return moved


def test_keys_that_people_share_let_nobody_meet(shared_keys: databases.Family) -> None:
    """Whoever else has the key of my visit, my rows move no more than is claimed."""
    assert len(KEYED) > 20
    assert not moved_too_far(shared_keys)


def test_a_visit_is_grouped_within_its_person(
    shared_keys: databases.Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GROUP BY visit_id without the owner, one of whom is shown as the owner of all."""
    original = Spelling.query

    def across(self: Spelling, node: Any) -> str:
        text = original(self, node)
        if not isinstance(node, PerPerson) or not node.keys:
            return text
        owner = self.expression(owner_of(node.source))
        return text.replace(f"SELECT {owner} AS", f"SELECT min({owner}) AS", 1).replace(
            "GROUP BY 1, ", "GROUP BY "
        )

    monkeypatch.setattr(every, "family", lambda name: shared_keys)
    every.test_databases_by_themselves_give_the_same("hospital")
    monkeypatch.setattr(Spelling, "query", across)
    # How far it moves is still held to its range by the query itself; that people meet is seen all
    # the same.
    with pytest.raises(AssertionError):
        every.test_databases_by_themselves_give_the_same("hospital")


# --- ties -----------------------------------------------------------------------------------------

TIED = "SELECT clinic, COUNT(*) FROM (SELECT clinic, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY day) AS n FROM visits) AS t WHERE n = 1 GROUP BY clinic"  # noqa: E501


def by_order(sql: str, times: int = 6) -> int:
    """How many different results a question has when the rows are stored in other orders."""
    dice, name = random.Random(), "hospital"
    people = [
        databases.person(policies.policy(name), dice, [], number=number) for number in range(1, 300)
    ]
    query = harness.spelled(harness.planned(sql, policies.policy(name), name=name).blocks[0].sums)
    results = set()
    for attempt in range(times):
        shuffled = []
        for each in people:
            rows = {
                table: [(None, *row[1:]) if table == "visits" else row for row in content]
                for table, content in each.items()
            }
            for content in rows.values():
                dice.shuffle(content)
            shuffled.append(rows)
        connection = duckdb.connect(config={"threads": 1 + attempt % 2})
        databases.load(connection, name, [tuple(shuffled)])
        results.add(tuple(sorted(connection.sql(query).fetchall(), key=str)))
    return len(results)


def test_ties_are_decided_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_order(TIED) == 1
    original = windows.window
    monkeypatch.setattr(
        windows,
        "window",
        lambda node, names, relation: original(node, names, replace(relation, fields=())),
    )
    assert by_order(TIED) > 1
