"""At large epsilon every answer equals plain DuckDB on the bounded data: the analyst's own SQL on
the decoded snapshot.

A real source, prepared, asked through a real curator. At ε = 1e45 the noise is zero but with
probability e^-1000, which is the false-alarm rate. The people are the same every time, so that what
fails is a change's own; `make slow` draws others.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from discreet.curator import Curator
from discreet.sql.aggregates import AGGREGATES
from sql import bounded, harness, policies
from sql.harness import Case

CASES = harness.cases()
Setup = tuple[Curator, Any]


POLICIES = ("hospital", "census", "isp", "school")
SAME = [pytest.param((name, "same"), id=name) for name in POLICIES]
OTHERS = [
    pytest.param((name, None), id=f"{name}, others", marks=pytest.mark.slow) for name in POLICIES
]


@pytest.fixture(scope="module", params=[*SAME, *OTHERS])
def tidy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    name, seed = request.param
    return setup(name, tmp_path_factory.mktemp("tidy"), bounded.tidy, seed)


def setup(name: str, folder: Path, source: Any, seed: str | None, **terms: str) -> Setup:
    tables = source(policies.policy(name), people=40, dice=random.Random(seed))
    curator = bounded.opened(folder, name, tables, **terms)
    return curator, bounded.plain(curator, folder)


def of(curator: Curator) -> list[Case]:
    return [case for case in CASES if case.policy == curator.policy.path.stem]


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]


def tolerance(case: Case) -> float:
    """What the aggregate allows itself; a person's own mean is kept to a thousandth of a step."""
    own = (
        1e-3
        if any(words in case.words for words in ("own mean", "everybody's mean", "pupils' means"))
        else 1e-7
    )
    return max([own, *(member.tolerance for member in AGGREGATES if case.aggregate in member.tags)])


def compared(case: Case, curator: Curator, plain: Any) -> list[str]:
    """What differs, in words."""
    answer = curator.ask(case.sql, analyst="ann", epsilon="1e45")
    plan = harness.plan_of(case, curator.policy.neighbors)
    assert answer.table.column_names == [column.name for column in plan.columns]
    assert answer.selected == (plan.selected,) * answer.table.num_rows
    ours = rows_of(answer.table)
    if any(block.picks for block in plan.blocks):
        return picked(case, ours, plain)
    theirs = plain.sql(case.sql).fetchall()
    found = bounded.differences(
        ours,
        theirs,
        measured=[column.measured for column in plan.columns],
        tolerance=tolerance(case),
        blocks=len(plan.blocks),
    )
    # keys that one person has are not shown, at any epsilon
    if any(block.unknown for block in plan.blocks):
        found = [each for each in found if not each.startswith("only plain")]
    found += [] if in_order(case, answer.table) else ["not in the order asked for"]
    return [f"{case.id}: {each}" for each in found]


def in_order(case: Case, table: Any) -> bool:
    """Whether the first column of ORDER BY goes one way."""
    order = sqlglot.parse_one(case.sql, dialect="duckdb").args.get("order")
    if order is None:
        return True
    first = order.expressions[0]
    values = [value for value in table.column(first.this.name).to_pylist() if value is not None]
    return values == sorted(values, reverse=bool(first.args.get("desc")))


def picked(case: Case, ours: list[Any], plain: Any) -> list[str]:
    """Quantiles and modes: at most a rank from where they should be; extremes aim a few ranks
    inside.
    """
    listed, wanted = bounded.with_lists(case.sql)
    if len(wanted) != 1:
        return []
    # a total and the group of a NULL have the same keys
    truth: dict[tuple[Any, ...], list[Any]] = {}
    for row in plain.sql(listed).fetchall():
        keys = tuple(value for value in row if not isinstance(value, list))
        truth.setdefault(keys, []).extend([value for value in row if isinstance(value, list)][:1])
    allowed = 3 if case.aggregate in ("minimum", "maximum") else 1
    found = []
    for mine in ours:
        choices = truth.get(mine[:-1], [])
        error = min(
            (max(bounded.rank_errors(mine[-1], each, *wanted[0]), default=0) for each in choices),
            default=0,
        )
        found += [f"{case.id}: {mine} is {error} ranks off"] if error > allowed else []
    return found


def bounded_keys(case: Case) -> bool:
    """Whether max_groups leaves out rows of people with many keys, which plain DuckDB knows nothing
    of.
    """
    return any(
        block.unknown and "dense_rank" in repr(block.source)
        for block in harness.plan_of(case).blocks
    )


def test_answers_are_right(tidy: Setup) -> None:
    curator, plain = tidy
    found = [
        each
        for case in of(curator)
        if not bounded_keys(case)
        for each in compared(case, curator, plain)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "order",
    [
        "GROUPING(sex), sex",
        "GROUPING(sex) DESC, people, sex",
        "COUNT(*) DESC, sex",
        "SUM(age) - 7 * COUNT(*)",
        "GROUPING(people.sex), people.sex DESC",
        "people.sex NULLS FIRST",
    ],
)
def test_grouping_sets_in_the_order_of_what_is_not_shown(order: str, tmp_path: Path) -> None:
    curator, plain = setup("hospital", tmp_path, bounded.tidy, "same")
    groups = "SELECT COALESCE(sex, 'nobody') AS sex, COUNT(*) AS people FROM people GROUP BY ROLLUP (sex)"
    statement = f"{groups} ORDER BY {order} LIMIT 3"
    answer = curator.ask(statement, analyst="ann", epsilon="1e45")
    assert answer.table.column_names == ["sex", "people"]
    assert rows_of(answer.table) == plain.sql(statement).fetchall()


ORDERED = (
    "SELECT COALESCE(diagnosis, 'healthy') AS diagnosis, COUNT(*) AS n FROM people GROUP BY diagnosis "
    "ORDER BY diagnosis",
    "SELECT -age AS age, COUNT(*) AS n FROM people GROUP BY age HAVING COUNT(*) > 0 ORDER BY age LIMIT 3",
    "SELECT sex AS diagnosis, diagnosis AS sex, COUNT(*) AS n FROM people GROUP BY sex, diagnosis HAVING n > 0 "
    "ORDER BY diagnosis, SEX NULLS FIRST LIMIT 3",
    "SELECT smoker, sex, COUNT(*) AS n FROM people GROUP BY (smoker, sex) HAVING n > 0 ORDER BY ALL",
    "SELECT COUNT(*) AS n FROM people GROUP BY (smoker, sex), diagnosis HAVING n > 0 ORDER BY n",
    "SELECT SUM(age) AS age FROM people WHERE CAST(CAST(age AS DECIMAL(4,1)) AS VARCHAR) LIKE '%.0'",
    "SELECT age, COUNT(*) AS n FROM people WHERE age > '30' AND age <= 40 GROUP BY age HAVING n > 0 ORDER BY 1",
    "SELECT SUM(age) AS age FROM (SELECT p.person_id, p.age + v.pain AS age, ROW_NUMBER() OVER (PARTITION BY "
    "p.person_id ORDER BY CASE v.clinic WHEN 'Hill' THEN 'z' WHEN 'Market' THEN 'a' ELSE 'M' END, v.pain, v.cost) AS r "
    "FROM people AS p JOIN visits AS v USING (person_id)) AS t WHERE r = 1",
    "SELECT SUM(r) AS r FROM (SELECT person_id, RANK() OVER (PARTITION BY person_id ORDER BY CASE clinic "
    "WHEN 'Hill' THEN 'z' WHEN 'Market' THEN 'a' ELSE 'M' END DESC) * pain AS r FROM visits) AS t",
)


@pytest.mark.parametrize("sql", ORDERED)
def test_the_order_that_is_asked_for(sql: str, tmp_path: Path) -> None:
    """Of an alias that is also a column, of keys in brackets, of categories by their values."""
    curator, plain = setup("hospital", tmp_path, bounded.tidy, "same")
    answer = curator.ask(sql, analyst="ann", epsilon="1e45")
    theirs = plain.sql(sql)
    assert answer.table.column_names == theirs.columns
    assert rows_of(answer.table) == theirs.fetchall()


def test_what_is_rounded_already_keeps_its_steps(tmp_path: Path) -> None:
    """CAST(FLOOR(x / 25000) * 25000 AS INTEGER) has a group for each 25000, and not for each
    number.
    """
    curator, _ = setup("hospital", tmp_path, bounded.tidy, "same")
    for key in (
        "CAST(FLOOR(income / 25000) * 25000 AS INTEGER)",
        "ROUND(FLOOR(income / 25000) * 25000, 1)",
    ):
        answer = curator.ask(
            f"SELECT {key} AS x, COUNT(*) FROM people GROUP BY x", analyst="ann", epsilon=1
        )
        assert answer.table.column(0).to_pylist() == [*range(0, 200_001, 25_000), None]
    narrow = "SELECT CAST(FLOOR(income / 25000) * 25000 AS SMALLINT) AS x, COUNT(*) FROM people GROUP BY x"
    assert curator.ask(narrow, analyst="ann", epsilon=1).table.column(0).to_pylist() == [
        0,
        25_000,
        None,
    ]


# With dirty data, other rows than plain DuckDB's are kept of equal ones, and groups of a NULL that
# is not meant are left out, which shows in whatever is computed from all groups.
_NOT_WITH_DIRT = (
    "outer select",
    "arithmetic outside",
    "percent of all",
    "distinct after",
    "order and limit",
    "window over groups",
)


_BY_PLACE = (
    exp.RowNumber,
    exp.Ntile,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
)


def decided_by_ties(sql: str) -> bool:
    """Whether plain DuckDB may give several answers, where a person's rows have equal places in an
    order.

    Dirty data has such rows: what is beyond a range goes to its end. Plain DuckDB takes any of
    them; ours takes the first by content (S4).
    """
    tree = sqlglot.parse_one(sql, dialect="duckdb")
    for window in tree.find_all(exp.Window):
        function, spec, order = window.this, window.args.get("spec"), window.args.get("order")
        if isinstance(function, _BY_PLACE):
            return True
        # what is equal in the order may be added in any
        if spec is not None and spec.args.get("kind") == "ROWS":
            ordered = [each.this for each in order.expressions] if order else []
            if any(column not in ordered for column in function.find_all(exp.Column)):
                return True
    if any(each.args.get("on") for each in tree.find_all(exp.Distinct)):
        return True
    return tree.find(exp.ArgMax, exp.ArgMin) is not None


def test_which_answers_ties_decide() -> None:
    over = "SELECT {} OVER (PARTITION BY person_id ORDER BY day, cost {}) FROM visits"
    rows = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    for function in (
        "ROW_NUMBER()",
        "NTILE(2)",
        "LAG(clinic)",
        "LEAD(clinic)",
        "FIRST_VALUE(clinic)",
    ):
        assert decided_by_ties(over.format(function, ""))
    assert decided_by_ties(over.format("LAST_VALUE(clinic)", rows))
    assert decided_by_ties(over.format("SUM(pain)", rows))
    assert not decided_by_ties(over.format("SUM(cost)", rows))
    assert not decided_by_ties(over.format("RANK()", ""))
    assert decided_by_ties("SELECT ARG_MAX(note, day) FROM visits GROUP BY person_id")
    assert decided_by_ties("SELECT DISTINCT ON (person_id) person_id, cost FROM visits")
    assert not decided_by_ties("SELECT DISTINCT person_id, cost FROM visits")
    assert not decided_by_ties("SELECT COUNT(*) FROM visits")
    assert 3 * sum(decided_by_ties(case.sql) for case in CASES) < len(CASES)


def test_ours_are_decided_by_content(tmp_path: Path) -> None:
    """All of a person's rows on one day, at one cost, in whatever order they are stored: the same
    answers.
    """
    dice, answers = random.Random(), []
    tables = bounded.tidy(policies.policy("hospital"), people=40, dice=dice)
    visits = tables["visits"]
    for column in ("day", "cost"):
        same = [visits[column].drop_null()[0].as_py()] * visits.num_rows
        place = visits.column_names.index(column)
        visits = visits.set_column(place, column, pa.array(same, visits.schema.field(column).type))
    for turn in range(2):
        mixed = visits.take(dice.sample(range(visits.num_rows), visits.num_rows))
        curator = bounded.opened(tmp_path / str(turn), "hospital", {**tables, "visits": mixed})
        asked = [case.sql for case in of(curator) if decided_by_ties(case.sql)]
        found = [rows_of(curator.ask(sql, analyst="ann", epsilon="1e45").table) for sql in asked]
        answers.append([sorted(each, key=repr) for each in found])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("neighbors", "accountant", "seed"),
    [
        ("change_one", "zcdp", "same"),
        pytest.param("add_remove", "sum", None, marks=pytest.mark.slow),
        pytest.param("add_remove", "zcdp", None, marks=pytest.mark.slow),
        pytest.param("change_one", "sum", None, marks=pytest.mark.slow),
        pytest.param("change_one", "zcdp", None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("name", POLICIES)
def test_answers_on_dirty_data_are_right(
    name: str, neighbors: str, accountant: str, seed: str | None, tmp_path: Path
) -> None:
    curator, plain = setup(
        name, tmp_path, bounded.dirty, seed, neighbors=neighbors, accountant=accountant
    )
    found = []
    for case in of(curator):
        if (
            not decided_by_ties(case.sql)
            and not bounded_keys(case)
            and not case.clause.startswith(_NOT_WITH_DIRT)
        ):
            found += compared(case, curator, plain)
    assert not found, "\n".join(found)
