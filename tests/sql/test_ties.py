"""Which of two equal rows of a person comes first is decided by content, or nobody can tell (S4).

Two windows that break one tie in two ways would make a row of it that is first and second: which,
an engine decides by where rows lie, so that one more row in the table moves rows of everybody.
"""

from __future__ import annotations

import duckdb
import pytest

from discreet.algebra import (
    OWNER,
    Column,
    Constant,
    Exists,
    Expression,
    Fold,
    Frame,
    Order,
    Over,
    Scan,
    Select,
    Stage,
    owner_of,
)
from discreet.engines.spelling import Spelling
from discreet.errors import Unproved
from discreet.sql.check.ties import require_no_ties
from discreet.sql.plan.prove import prove
from sql import harness, policies

PEOPLE = 20_000  # with fewer the engine sorts what is tied alike
VISITS = Scan("visits", "v")
COST, CLINIC, DAY = (Column("v", name) for name in ("cost", "clinic", "day"))
BOTH_WAYS = """
    SELECT COUNT(*) FROM (SELECT person_id,
    ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY clinic) AS a,
    ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY clinic DESC) AS b
    FROM (SELECT person_id, clinic FROM visits) AS v) AS t WHERE {condition}
    """


def _counts(sql: str) -> list[int]:
    """Return the exact count over tables that differ by one person, whose rows do not count."""
    policy = policies.policy("hospital")
    found = harness.planned(sql, policy, name="hospital")
    prove(found, policy)
    connection = duckdb.connect(config={"threads": 2, "preserve_insertion_order": "false"})
    connection.execute(
        'CREATE TABLE everybody AS SELECT i // 3 AS "#owner", '
        f"CASE WHEN i // 3 % 2 = 0 THEN 1 ELSE i % 2 END AS clinic FROM range({3 * PEOPLE}) AS t(i)"
    )
    counts = []
    for more in (0, 1, 2):
        connection.execute(
            'CREATE OR REPLACE TABLE visits AS SELECT -1 AS "#owner", NULL::INT AS clinic '
            f"FROM range({more}) UNION ALL FROM everybody"
        )
        [row] = connection.execute(Spelling().numbers(found.blocks[0].sums)).fetchall()
        counts.append(row[0])
    return counts


@pytest.mark.parametrize("a", [1, 2, 3])
@pytest.mark.parametrize("b", [1, 2, 3])
def test_equal_rows_are_told_apart_once(a: int, b: int) -> None:
    known = f"a = {a} AND b = {b} AND clinic IS NOT NULL"
    sql = BOTH_WAYS.replace("person_id,\n", "person_id, clinic,\n").format(condition=known)
    assert len(set(_counts(sql))) == 1


def _window(
    name: str, *order: Expression, partition: tuple[Expression, ...] = (), stage: Scan = VISITS
) -> Over:
    return Over(Fold(name, ()), owner_of(stage), partition, tuple(map(Order, order)))


FIRST, LAST = (
    _window("row_number", COST),
    Over(Fold("row_number", ()), owner_of(VISITS), (), (Order(COST, descending=True),)),
)
SUM = Over(Fold("sum", (COST,)), owner_of(VISITS), (), (Order(CLINIC),))
NUMBERED = Stage(Select(VISITS, (("c", COST), ("n", FIRST))), "s")
C, N = Column("s", "c"), Column("s", "n")
OWN = Column("s", OWNER)
TIED = {
    "two orders": (VISITS, (FIRST, LAST)),
    "one order in two parts": (VISITS, (FIRST, _window("ntile", COST, partition=(COST,)))),
    "a column beside": (VISITS, (CLINIC, FIRST)),
    "what is computed of one": (VISITS, (COST + CLINIC, FIRST)),
    "a column of the function": (
        VISITS,
        (Over(Fold("first_value", (CLINIC,)), owner_of(VISITS), (), (Order(COST),)),),
    ),
    "a frame of rows": (
        VISITS,
        (
            Over(
                SUM.function, SUM.owner, (), SUM.order, Frame("ROWS", "1 PRECEDING", "CURRENT ROW")
            ),
        ),
    ),
    "a window by content over other columns": (VISITS, (SUM, FIRST)),
    "a test of the row": (
        VISITS,
        (FIRST, Exists(Scan("labs", "l"), owner_of(VISITS), (CLINIC.equals(Column("l", "test")),))),
    ),
    "two orders, of which one ends with a number": (
        NUMBERED,
        (
            Over(Fold("row_number", ()), OWN, (), (Order(C), Order(N))),
            Over(Fold("row_number", ()), OWN, (), (Order(C, descending=True),)),
        ),
    ),
}
TOLD_APART = {
    "one order": (VISITS, (COST, COST + 1, FIRST, Constant(1), owner_of(VISITS))),
    "what is ordered by, computed": (
        VISITS,
        (COST + CLINIC, _window("row_number", COST + CLINIC)),
    ),
    "one order, several functions": (VISITS, (FIRST, _window("ntile", COST))),
    "ranks and sums by content": (
        VISITS,
        (CLINIC, SUM, _window("rank", COST), _window("dense_rank", DAY)),
    ),
    "both end with a number": (
        NUMBERED,
        (
            Over(Fold("row_number", ()), OWN, (), (Order(C), Order(N))),
            Over(Fold("row_number", ()), OWN, (), (Order(C, descending=True), Order(N))),
        ),
    ),
}


def _select(source: Scan | Stage, columns: tuple[Expression, ...]) -> Select:
    return Select(source, tuple((f"c{place}", each) for place, each in enumerate(columns)))


@pytest.mark.parametrize("name", TIED)
def test_ties_that_can_be_seen_are_refused(name: str) -> None:
    with pytest.raises(Unproved):
        require_no_ties(_select(*TIED[name]))


@pytest.mark.parametrize("name", TOLD_APART)
def test_what_ties_cannot_change_is_answered(name: str) -> None:
    require_no_ties(_select(*TOLD_APART[name]))


def test_a_number_of_parts_tells_no_rows_apart() -> None:
    parted = _window("row_number", COST, partition=(COST,))
    source = Stage(Select(VISITS, (("c", COST), ("n", parted))), "s")
    orders = (Order(C), Order(N)), (Order(C, descending=True), Order(N))
    columns = tuple(Over(Fold("row_number", ()), OWN, (), order) for order in orders)
    with pytest.raises(Unproved):
        require_no_ties(_select(source, columns))
