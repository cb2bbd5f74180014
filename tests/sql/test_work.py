"""S21: rows a person may have, bits of sums, and what one person can cost the engine, all told
before data is read.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.algebra import Sum
from discreet.continual.strategies.tree import BinaryTree, SubtractionTree
from discreet.errors import Rejected
from discreet.policy.domain import MOST_PEOPLE, MOST_ROWS
from discreet.sql import work
from discreet.sql.check.counts import PersonCounts
from discreet.sql.plan.plan import Plan
from discreet.sql.rows.relation import scan
from discreet.vault.exact import Exact
from discreet.vault.integers import cells_of
from sql import bounded, harness, policies

CASES = harness.cases()
HOSPITAL = policies.policy("hospital")


def planned(sql: str, *, seconds: int = 60, deadline: Fraction | None = None) -> Plan:
    limits = replace(HOSPITAL.limits, seconds=Fraction(seconds), deadline=deadline)
    return harness.planned(sql, replace(HOSPITAL, limits=limits), name="hospital")


def written_out(rows: int, name: str) -> str:
    return f"(VALUES {', '.join(f'({n})' for n in range(rows))}) AS {name}(n{name})"


# --- bits of sums ---------------------------------------------------------------------------------


def sums_of(plan: Plan) -> list[tuple[int, int, int]]:
    """The largest number, the rows and the bits of every sum that is planned."""
    return [
        (
            math.prod(max(abs(each.lo), abs(each.hi)) ** each.power for each in reading.factors),
            block.rows,
            reading.bits,
        )
        for block in plan.blocks
        for reading in block.readings
        if isinstance(reading, Sum) and any(each.power for each in reading.factors)
    ]


@pytest.mark.parametrize("times", [1, 300])
def test_no_sum_of_the_language_can_overflow(times: int) -> None:
    """Every question of plans.sql, and the same with each row of one table several times."""
    seen = set()
    for case in CASES:
        policy = policies.policy(case.policy)
        tables = {
            name: table if table.public else replace(table, max_rows=table.max_rows * times)
            for name, table in policy.tables.items()
        }
        try:
            plan = harness.planned(case.sql, replace(policy, tables=tables), name=case.policy)
        except Rejected as error:
            # too many rows; or people who are in several groups, since they have several rows
            refused = "rows" in error.reason or "cannot be added up" in error.reason
            if times == 1 or not refused:
                raise
            continue
        for largest, rows, bits in sums_of(plan):
            seen.add(bits)
            assert rows >= 1
            assert largest * rows * MOST_PEOPLE < min(2 ** (bits - 1), 10**38), case.id
            assert bits == 64 or largest * rows * MOST_PEOPLE >= 2**63, "64 bits would do"
    assert seen == {64, 128}


@pytest.mark.parametrize(("rows", "bits"), [(1, 64), (6, 64), (7, 128), (1000, 128)])
def test_rows_that_an_analyst_makes_widen_the_sum(rows: int, bits: int) -> None:
    """Income is up to 2 * 10^7 cents: 6 rows of it a person are under 2^63 for 2^36 people, 7 are
    not.
    """
    joined = planned(f"SELECT SUM(income) FROM people CROSS JOIN {written_out(rows, 'v')}")
    stacked = planned(
        f"SELECT SUM(income) FROM ({' UNION ALL '.join(['SELECT income FROM people'] * min(rows, 40))}) AS s"
    )
    for plan, own in ((joined, rows), (stacked, min(rows, 40))):
        [reading] = plan.blocks[0].readings
        assert isinstance(reading, Sum)
        assert plan.blocks[0].rows == own
        assert (reading.bits == 64) == (20_000_000 * own * MOST_PEOPLE < 2**63) == (bits == 64)


def test_sums_that_128_bits_cannot_hold_are_refused() -> None:
    large = "income * income * income"  # 8 * 10^21
    assert planned(f"SELECT SUM({large}) FROM people")
    with pytest.raises(Rejected, match=r"too large for 1000000 rows a person|can become too large"):
        planned(
            f"SELECT SUM({large} * y) FROM (SELECT income, age * age AS y FROM people) AS s"
            f" CROSS JOIN {written_out(1000, 'v')} CROSS JOIN {written_out(1000, 'w')}",
            seconds=10**6,
        )


def test_sums_of_38_digits_arrive_exactly(tmp_path: Path) -> None:
    """The largest sum that is planned goes through the engine and the decimals without loss."""
    people = bounded.tidy(HOSPITAL, people=2, dice=random.Random())
    engine = bounded.opened(tmp_path, "hospital", people)._view.engine
    for total in (10**38 - 1, -(10**38) + 1, 2**63, -(2**63) - 1):
        table = engine.read(
            f"SELECT sum(x) AS s0 FROM (VALUES ({total - 5}::HUGEINT), (5::HUGEINT)) AS v(x)", 60
        )
        [values] = cells_of(Exact(table).unwrap(), [], [(3,)])
        assert values.tolist() == [3 * total]


@pytest.mark.parametrize(
    "tree",
    [BinaryTree(periods=7), SubtractionTree(periods=7, arity=2, height=4)],
    ids=lambda tree: type(tree).__name__,
)
def test_totals_over_periods_do_not_wrap(tree: BinaryTree | SubtractionTree) -> None:
    """Periods that each fit into 64 bits, and totals that do not."""
    encoder, most, total = tree.encoder(), 0, 2**62
    for _ in range(7):
        step = encoder.add(pa.array([total]).to_numpy())
        most = max(most, *(int(value) for value in step.values.ravel()))
        assert all(int(value) > 0 for value in step.values.ravel())
    assert most >= 2**64


# --- rows a person may have -----------------------------------------------------------------------

_DOUBLED = "".join(
    f", s{n} AS (SELECT * FROM s{n - 1} UNION ALL SELECT * FROM s{n - 1})" for n in range(1, 6)
)
_STACKS = (
    f"WITH s0 AS (SELECT person_id, age FROM people CROSS JOIN {written_out(50, 'v')}){_DOUBLED}"
)
_PAIRS = "FROM s5 a JOIN s5 b ON a.person_id = b.person_id"  # 1,600 rows with 1,600
_BOX = "SELECT age FROM people " + " ".join(
    f"CROSS JOIN {written_out(90, f'v{n}')}" for n in range(3)
)
_CUBE = " ".join(f"CROSS JOIN {written_out(200, f'v{n}')}" for n in range(3))
_MATCHED = " ".join(f"JOIN {written_out(101, f'v{n}')} ON v{n}.nv{n} >= 0" for n in range(3))
_NUMBERED = (
    f"SELECT a.age, ROW_NUMBER() OVER (PARTITION BY a.person_id ORDER BY a.age) AS n {_PAIRS}"
)
_COUNTED = f"SELECT a.person_id, COUNT(*) AS n {_PAIRS} GROUP BY a.person_id"
TOO_MANY = {
    "joins of written-out rows": f"SELECT COUNT(*) FROM people {_CUBE}",
    "joins with a condition": f"SELECT COUNT(*) FROM people {_MATCHED}",
    "stacked joins": f"SELECT COUNT(*) FROM ({_BOX} UNION ALL {_BOX}) AS s",
    "stacked rows joined": f"{_STACKS} SELECT COUNT(*) {_PAIRS}",
    "filtered later": f"{_STACKS} SELECT COUNT(*) FROM ({_NUMBERED}) AS s WHERE n = 1",
    "in a subquery of owners": f"{_STACKS} SELECT COUNT(*) FROM people"
    f" WHERE person_id IN (SELECT a.person_id {_PAIRS})",
    "under EXISTS": f"{_STACKS} SELECT COUNT(*) FROM people p"
    f" WHERE EXISTS (SELECT 1 {_PAIRS} WHERE a.person_id = p.person_id)",
    "grouped by the owner": f"{_STACKS} SELECT AVG(n) FROM ({_COUNTED}) AS s",
    "only owners": f"{_STACKS} SELECT COUNT(*) FROM (SELECT DISTINCT a.person_id, b.person_id {_PAIRS}) AS s",
}


@pytest.mark.parametrize("name", TOO_MANY)
def test_every_way_to_make_rows_is_held_to_the_limit(name: str) -> None:
    with pytest.raises(
        Rejected, match=rf"gives one person up to \d+ rows, and {MOST_ROWS} are allowed"
    ):
        planned(TOO_MANY[name], seconds=10**9)


def test_no_relation_is_made_without_the_limit() -> None:
    """Whoever makes a Relation, by whatever way, meets the check."""
    rows = scan(HOSPITAL.tables["people"], "people", "t1", frozenset())
    with pytest.raises(Rejected):
        replace(rows, rows=MOST_ROWS + 1)


# --- one person's work ----------------------------------------------------------------------------


def test_usual_questions_are_far_below_the_limit() -> None:
    """Also at a deadline of two seconds: 2 ms for one person, of up to 4 rows."""
    for case in CASES:
        policy = policies.policy(case.policy)
        limits = replace(policy.limits, deadline=Fraction(2))
        assert harness.planned(case.sql, replace(policy, limits=limits), name=case.policy), case.id


_MANY = f"people CROSS JOIN {written_out(900, 'v')}"
_MORE = f"people CROSS JOIN {written_out(200, 'v')} CROSS JOIN {written_out(200, 'w')}"
_OWN = f"(SELECT person_id, age FROM {_MANY})"
_FRAME = "PARTITION BY person_id ORDER BY age ROWS BETWEEN 9 PRECEDING AND CURRENT ROW"
HOSTILE = {
    "rows": f"SELECT COUNT(*) FROM people CROSS JOIN {written_out(999, 'v')} CROSS JOIN {written_out(999, 'w')}",
    "letters": f"SELECT COUNT(*) FROM {_MANY} WHERE LOWER(zip || zip) LIKE '%a_a%'",
    "pairs": f"SELECT COUNT(*) FROM {_OWN} AS a"
    f" WHERE EXISTS (SELECT 1 FROM {_OWN} AS b WHERE b.person_id = a.person_id AND b.age > a.age)",
    "windows": f"SELECT SUM(s) FROM (SELECT SUM(age) OVER ({_FRAME}) AS s FROM {_MORE}) AS t",
    "grown": f"SELECT COUNT(*) FROM {_MANY} WHERE CONTAINS(REPLACE(RPAD(zip, 1000, 'a'), 'a', '{'b' * 100}'), 'bx')",
    "keys": f"SELECT zip, COUNT(*) FROM {_MORE} GROUP BY zip",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_one_person_makes_slow_is_refused(name: str) -> None:
    """Ten thousand rows of a thousand letters, frames, pairs: refused at the usual limits, answered
    at longer ones.
    """
    sql = HOSTILE[name]
    with pytest.raises(
        Rejected, match=r"one person alone could keep the engine busy for [\d,]+ ms"
    ) as caught:
        planned(sql)
    assert "GROUP BY the owner" in caught.value.hint
    assert planned(sql, seconds=10**6)
    with pytest.raises(Rejected, match="one person alone"):
        planned(sql, seconds=10**6, deadline=Fraction(5))


def test_work_grows_with_rows_letters_and_functions() -> None:
    told = work.Work(
        rows=PersonCounts(policy=HOSPITAL).rows,
        letters=lambda table, column: 1000 * (column == "zip"),
    )

    def said(sql: str) -> float:
        plan = planned(sql, seconds=10**6)
        return sum(told.seconds(query) for block in plan.blocks for query in block.queries)

    once = said("SELECT COUNT(*) FROM people WHERE LOWER(zip) = 'a'")
    many = said(
        f"SELECT COUNT(*) FROM people CROSS JOIN {written_out(50, 'v')} WHERE LOWER(zip) = 'a'"
    )
    assert 50 * once <= many <= 80 * once
    assert said("SELECT COUNT(*) FROM people WHERE LOWER(LOWER(zip)) = 'a'") > 1.7 * once
    assert said("SELECT COUNT(*) FROM people WHERE LOWER(zip || zip) = 'a'") > 2 * once
