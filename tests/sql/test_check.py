"""The checker derives the sensitivities of hand-made trees, and refuses trees that look at other
people's rows.
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from pathlib import Path

import pytest

import discreet.algebra.exclusive
from discreet.algebra import (
    OWNER,
    Aggregate,
    Column,
    Constant,
    Distinct,
    Exists,
    Factor,
    Fold,
    Order,
    Over,
    OwnerJoin,
    PerPerson,
    Persons,
    PublicJoin,
    PublicScan,
    Reading,
    Scan,
    Select,
    Source,
    Stage,
    Sum,
    UnionAll,
    call,
    owner_of,
)
from discreet.errors import Unproved
from discreet.policy.policy import Policy
from discreet.sql import check
from discreet.sql.check.checker import Checker
from discreet.sql.check.norms import Norms, control, extremes
from discreet.sql.plan.sensitivity import of_parts, of_persons, of_sum

POLICY = Policy.parse(
    """\
unit: person
budget: {epsilon: 1}
tables:
  people: {owner: person, columns: {age: {integer: [18, 90]}, sex: {values: [F, M]}}}
  visits: {owner: person, max_rows: 3, columns: {cost: {integer: [-4, 9]}, clinic: {values: [a, b]}}}
  labs: {owner: person, max_rows: 12, columns: {test: {values: [x, y]}, value: {integer: [0, 99]}}}
  states: {public: true}
""",
    path=Path("policy.yaml"),
)
CHECKER = Checker(policy=POLICY)
PEOPLE, VISITS = Scan("people", "p"), Scan("visits", "v")
AGE, COST, CLINIC = Column("p", "age"), Column("v", "cost"), Column("v", "clinic")
BOTH = OwnerJoin(PEOPLE, VISITS)
RELATIONS = ("add_remove", "change_one")


def cost(power: int) -> Factor:
    return Factor(COST, -4, 9, power, False)


def derive(
    source: Source,
    readings: tuple[Reading, ...],
    forms: list[list[int]],
    neighbors: str,
    groups: int | None,
) -> Norms:
    keys = () if groups == 1 else (Column("v", "clinic"),)
    sizes = () if groups == 1 else (groups,)
    return CHECKER.derive(
        Aggregate(source, keys, readings), forms, neighbors=neighbors, sizes=sizes
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(("neighbors", "groups"), list(itertools.product(RELATIONS, (1, 2, None))))
def test_counts_and_sums(neighbors: str, groups: int | None) -> None:
    claimed = of_parts(rows=3, width=1, parts=1, groups=groups or 2**31, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (Sum(),), [[1]], neighbors, groups) == _norms(claimed)
    claimed = of_sum(rows=3, lo=-4, hi=9, groups=groups or 2**31, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (Sum((cost(1),)),), [[1]], neighbors, groups) == _norms(claimed)


def _norms(claimed: object) -> Norms:
    return Norms(l1=claimed.l1, l2_squared=claimed.l2_squared, linf=claimed.linf)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("neighbors", "groups"), list(itertools.product(RELATIONS, (1, 2))))
def test_the_parts_of_a_mean_and_a_variance_cost_what_one_number_does(
    neighbors: str, groups: int
) -> None:
    count, total, square = Sum((cost(0),)), Sum((cost(1),)), Sum((cost(2),))
    lo, width = -4, 13
    mean = [[-lo, 1], [lo + width, -1]]
    claimed = of_parts(rows=3, width=width, parts=2, groups=groups, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (count, total), mean, neighbors, groups) == _norms(claimed)
    # (W - v)^2, 2 v (W - v), v^2 of v = x - lo
    v, v2 = [-lo, 1, 0], [lo * lo, -2 * lo, 1]
    first = [width * width - 2 * width * v[0] + v2[0], -2 * width * v[1] + v2[1], v2[2]]
    second = [2 * width * a - 2 * b for a, b in zip(v, v2, strict=True)]
    claimed = of_parts(rows=3, width=width**2, parts=3, groups=groups, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (count, total, square), [first, second, v2], neighbors, groups) == _norms(
        claimed
    )
    # rows without a value are a width of their own
    rows = [[-lo, 1, 0], [lo + width, -1, 0], [-width, 0, width]]
    claimed = of_parts(rows=3, width=width, parts=3, groups=groups, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (count, total, Sum()), rows, neighbors, groups) == _norms(claimed)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_no_contribution_is_larger_than_the_bound(neighbors: str) -> None:
    """Brute force: random forms of a value, its square and counts, over all values of two rows."""
    source = random.Random(7)
    readings = (Sum(), Sum((cost(0),)), Sum((cost(1),)), Sum((cost(2),)))
    rows: list[tuple[int, ...]] = [
        (1, 0, 0, 0),
        *((1, 1, x, x * x) for x in range(-4, 10)),
        (0, 0, 0, 0),
    ]
    for _ in range(20):
        forms = [[source.randint(-3, 3) for _ in readings] for _ in range(source.randint(1, 3))]
        found = derive(VISITS, readings, forms, neighbors, 1)
        single = [
            tuple(sum(f * x for f, x in zip(form, row, strict=True)) for form in forms)
            for row in rows
        ]
        others = single if neighbors == "change_one" else [(0,) * len(forms)]
        moved = [
            [abs(a - b) for a, b in zip(one, other, strict=True)]
            for one in single
            for other in others
        ]
        assert 3 * max(map(sum, moved)) <= found.l1
        assert 9 * max(sum(each * each for each in one) for one in moved) <= found.l2_squared
        assert 3 * max(max(each) for each in moved) <= found.linf


@pytest.mark.parametrize("forms", [[[1, 2], [-1, 1]], [[1, -1]]])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_a_value_may_be_added_up_in_two_ranges(neighbors: str, forms: list[list[int]]) -> None:
    """SUM(CASE WHEN p THEN x END) and SUM(CASE WHEN q THEN x ELSE 0 END): one value, two ranges."""
    narrow = Factor(COST, 0, 3, 1, True)
    found = derive(VISITS, (Sum((cost(1),)), Sum((narrow,))), forms, neighbors, 1)
    rows = [(0, 0), *((x, x if 0 <= x <= 3 else 0) for x in range(-4, 10))]
    single = [[a * x + b * y for a, b in forms] for x, y in rows]
    others = single if neighbors == "change_one" else single[:1]
    for one, other in itertools.product(single, others):
        moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
        assert 3 * sum(moved) <= found.l1
        assert 9 * sum(each * each for each in moved) <= found.l2_squared
        assert 3 * max(moved) <= found.linf
    apart = Sum((cost(1),), CLINIC.equals("a")), Sum((narrow,), CLINIC.equals("b"))
    claimed = derive(VISITS, apart, [[1, 0], [0, 1]], "add_remove", 1)
    assert claimed == Norms(l1=27, l2_squared=729, linf=27)


def test_sums_of_many_values_that_exclude_each_other_are_looked_at_one_by_one() -> None:
    """All choices for all values at once would be 3^48."""
    sums = [
        Sum((Factor(COST + place, 0, 9, 1, True),), call("=", AGE, place)) for place in range(48)
    ]
    forms = [[int(one == other) for other in sums] for one in sums]
    assert sum(1 for _ in itertools.islice(extremes(sums, forms), 1000)) == 2 + 48 * 3


def test_control_values_are_the_blossom() -> None:
    factor = Factor(COST, -4, 9, 2, False)
    assert [control(factor, place, 2) for place in range(3)] == [16, -36, 81]
    assert [control(Factor(COST, 0, 1, 1, False), place, 2) for place in range(3)] == [
        0,
        Fraction(1, 2),
        1,
    ]


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_people_and_distinct_values(neighbors: str) -> None:
    claimed = of_persons(touched=3, groups=2**31, neighbors=neighbors)  # type: ignore[arg-type]
    assert derive(VISITS, (Persons(),), [[1]], neighbors, None) == _norms(claimed)
    assert derive(VISITS, (Persons(),), [[1]], neighbors, 1) == Norms(l1=1, l2_squared=1, linf=1)
    few = derive(VISITS, (Distinct((Column("v", "clinic"),), ends=(0, 1)),), [[1]], neighbors, 1)
    assert few == Norms(l1=2, l2_squared=4, linf=2)


def test_rows_of_one_person() -> None:
    numbered = Stage(
        Select(
            VISITS,
            (
                ("c0", COST),
                ("n", Over(Fold("row_number", ()), owner_of(VISITS), (), (Order(COST),))),
            ),
        ),
        "s",
    )
    assert CHECKER.counts.rows(BOTH) == 3
    assert CHECKER.counts.rows(OwnerJoin(VISITS, Scan("visits", "w"), outer=True)) == 9
    assert CHECKER.counts.rows(PublicJoin(VISITS, PublicScan("states", "q"), 5)) == 15
    assert CHECKER.counts.rows(Stage(UnionAll((Select(VISITS, ()), Select(PEOPLE, ()))), "u")) == 4
    assert CHECKER.counts.rows(Stage(PerPerson(VISITS, (), (("n", Fold("count", ())),)), "g")) == 1
    assert CHECKER.counts.rows(numbered, (call("<=", Column("s", "n"), 2),)) == 2
    assert CHECKER.counts.rows(numbered, (call("=", Column("s", "n"), 2),)) == 1
    first = (call("<=", Column("s", "n"), 1),)
    assert CHECKER.counts.rows(OwnerJoin(numbered, Scan("visits", "w")), first) == 3, (
        "one row of the one, three of the other"
    )
    assert CHECKER.counts.rows(PublicJoin(numbered, PublicScan("states", "q"), 5), first) == 5


def test_values_that_one_person_can_have() -> None:
    """No more than the policy lists, and NULL; in several sources, of each as many."""
    kind = (("c0", Column("l", "test")),)
    labs = Scan("labs", "l")
    kinds = Stage(Select(labs, kind, distinct=True), "d")
    assert CHECKER.counts.rows(labs) == 12
    assert CHECKER.counts.rows(kinds) == 2 + 1
    assert CHECKER.counts.rows(Stage(PerPerson(labs, kind, ()), "g")) == 2 + 1
    assert (
        CHECKER.counts.rows(
            Stage(Select(labs, (("c0", Column("l", "value")),), distinct=True), "w")
        )
        == 12
    )
    both = Select(OwnerJoin(labs, VISITS), (*kind, ("c1", Column("v", "clinic"))), distinct=True)
    assert CHECKER.counts.rows(Stage(both, "b")) == (2 + 1) * 3
    outer = Select(OwnerJoin(VISITS, labs, outer=True), kind, distinct=True)
    assert CHECKER.counts.rows(Stage(outer, "o")) == 2 + 1 + 1


def test_row_numbers_limit_both_sides_of_a_join() -> None:
    def numbered(stage: str, name: str) -> Stage:
        visits = Scan("visits", stage)
        number = Over(Fold("row_number", ()), owner_of(visits), (), (Order(Column(stage, "cost")),))
        return Stage(Select(visits, (("n", number),)), name)

    a, b = numbered("x", "a"), numbered("y", "b")
    first, second = call("=", Column("a", "n"), 1), call("=", Column("b", "n"), 2)
    assert CHECKER.counts.rows(OwnerJoin(a, b)) == 9
    assert CHECKER.counts.rows(OwnerJoin(a, b), (first,)) == 3
    assert CHECKER.counts.rows(OwnerJoin(a, b), (first, second)) == 1
    assert CHECKER.counts.rows(OwnerJoin(a, b, (first, second))) == 1
    assert CHECKER.counts.rows(OwnerJoin(a, b, (first, second), outer=True)) == 3, (
        "an outer join keeps each row of the left side, whatever ON says of it"
    )


def test_groups_that_one_person_can_be_in() -> None:
    assert CHECKER.counts.groups((Column("p", "sex"),), BOTH, ()) == 1
    assert CHECKER.counts.groups((Column("p", "sex"), Column("v", "clinic")), BOTH, ()) == 3
    assert (
        CHECKER.counts.groups((Column("v", "clinic"),), OwnerJoin(PEOPLE, VISITS, outer=True), ())
        == 3
    )
    one = Stage(Select(PEOPLE, (("one", Constant(1)),)), "o")
    assert CHECKER.counts.groups((Column("o", "one"),), OwnerJoin(VISITS, one, outer=True), ()) == 2
    ranked = Over(Fold("dense_rank", ()), owner_of(VISITS), (), (Order(Column("v", "clinic")),))
    limited = Stage(Select(VISITS, (("k", Column("v", "clinic")), ("c", COST), ("r", ranked))), "s")
    where = (call("<=", Column("s", "r"), 2),)
    assert CHECKER.counts.groups((Column("s", "k"),), limited, where) == 2
    assert CHECKER.counts.groups((Column("s", "c"),), limited, where) == 3


@pytest.mark.parametrize("name", [f"s{place}" for place in range(12)])
def test_a_constant_with_the_name_of_a_source_limits_no_other_column(name: str) -> None:
    """NULL for the lack of a row is a second value of the constant, and not of the cost."""
    columns = ((name, Constant(1)), ("cost", Column(name, "cost")))
    visits = Stage(Select(Scan("visits", name), columns), "o")
    keys = (Column("o", name), Column("o", "cost"))
    assert CHECKER.counts.groups(keys, OwnerJoin(PEOPLE, visits, outer=True), ()) == 3


def test_a_public_row_met_by_an_exists_may_be_another_for_each_row() -> None:
    """The columns of the row that an EXISTS reads are inside it."""
    older = Exists(PEOPLE, owner_of(VISITS), (AGE < COST,))
    flags = PublicScan("states", "q")
    pinned = PublicJoin(VISITS, flags, 1, ((older, Column("q", "flag")),))
    chosen = PublicJoin(VISITS, flags, 1, on=(older,), outer=True)
    for source in (pinned, chosen):
        assert CHECKER.counts.groups((Column("q", "name"),), source, ()) == 3


WRONG = {
    "a window over everybody": Stage(
        Select(VISITS, (("n", Over(Fold("row_number", ()), Column("p", OWNER))),)), "s"
    ),
    "exists of others": Stage(Select(VISITS, (), (Exists(PEOPLE, Column("p", OWNER), ()),)), "s"),
    "exists under the name of the rows": Stage(
        Select(VISITS, (), (Exists(Scan("people", "v"), Column("v", OWNER), ()),)), "s"
    ),
    "two columns of one name to the engine": Stage(Select(VISITS, (("c", COST), ("C", COST))), "s"),
    "a key and a number of one name": Stage(
        PerPerson(VISITS, (("c", COST),), (("c", Fold("count", ())),)), "s"
    ),
    "a column in the place of the owner": Stage(Select(VISITS, ((OWNER, COST),)), "s"),
    "a column from outside": Stage(Select(VISITS, (("c", AGE),)), "s"),
    "a public table as a private one": Scan("states", "q"),
    "a private table as a public one": PublicJoin(PEOPLE, PublicScan("visits", "v"), 1),
    "a table that is not there": Scan("nothing", "q"),
    "a fold outside of a person": Stage(
        Select(VISITS, (("c", COST),), (Fold("max", (COST,)) > 3,)), "s"
    ),
    "a fold over everybody where windows may stand": Stage(
        Select(VISITS, (("c", Fold("max", (COST,))),)), "s"
    ),
}


@pytest.mark.parametrize("source", WRONG.values(), ids=WRONG)
def test_a_tree_that_looks_at_others_is_stopped(source: Source) -> None:
    with pytest.raises(Unproved):
        CHECKER.derive(Aggregate(source, (), (Sum(),)), [[1]], neighbors="add_remove", sizes=())


HELD = {
    "a stored column": Factor(COST, -4, 9, 1, False),
    "a computed one that the query clamps": Factor(COST + 1, -3, 10, 1, True),
    "a count of a computed one": Factor(COST + 1, -3, 10, 0, False),
}
NOT_HELD = {
    "a smaller range than the stored one": Factor(COST, 0, 9, 1, False),
    "a computed one": Factor(COST + 1, -3, 10, 1, False),
}


def summed(factor: Factor) -> Norms:
    return CHECKER.derive(
        Aggregate(VISITS, (), (Sum((factor,)),)), [[1]], neighbors="add_remove", sizes=()
    )


@pytest.mark.parametrize("factor", HELD.values(), ids=HELD)
def test_a_range_is_the_snapshots_or_the_querys(factor: Factor) -> None:
    assert summed(factor)


@pytest.mark.parametrize("factor", NOT_HELD.values(), ids=NOT_HELD)
def test_a_range_that_nothing_enforces_is_no_range(factor: Factor) -> None:
    with pytest.raises(Unproved, match="nothing keeps the values of a sum in their range"):
        summed(factor)


def test_sums_of_all_people_fit() -> None:
    many = PublicJoin(VISITS, PublicScan("states", "q"), 2**20)
    aggregate = Aggregate(many, (), (Sum((cost(2),), bits=64), Sum((cost(2),), bits=128)))
    assert CHECKER.derive(aggregate, [[0, 1]], neighbors="add_remove", sizes=())
    with pytest.raises(Unproved, match="pass 64 bits"):
        CHECKER.derive(aggregate, [[1, 0]], neighbors="add_remove", sizes=())


def test_a_reviewer_reads_it_in_an_hour() -> None:
    """Each module is short, and nothing of the analysis is imported."""
    folder = Path(check.__file__).parent
    texts = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    exclusive = Path(discreet.algebra.exclusive.__file__).read_text(encoding="utf-8")
    lines = [len(text.splitlines()) for text in (*texts.values(), exclusive)]
    assert sum(lines) < 1200
    assert max(lines) < 250
    own = {f"sql.check.{name}" for name in texts}
    trees = {"algebra", "algebra.exclusive"}
    ground = {*trees, "budget", "errors", "policy.domain", "policy.policy", *own}
    for name, text in texts.items():
        ours = {line.split()[1] for line in text.splitlines() if line.startswith("from discreet")}
        assert ours <= {f"discreet.{each}" for each in ground}, name
        assert "import discreet" not in text
