"""What a measurement is known by: exact hashes are stored here, so that no refactoring charges
anybody again.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

from discreet import algebra
from discreet.algebra import Column, Constant, Interval, Scan, Select, Stage, Sum
from discreet.asking.parts import parts_of
from discreet.errors import Unproved
from discreet.sql.after import estimates
from discreet.sql.plan import block, identity, keys, picks, plan, sensitivity
from discreet.sql.plan.block import Block, RolledUp, Shared
from discreet.sql.plan.plan import Plan
from discreet.sql.values import value as values
from sql import harness, policies

# Should a hash in this file change, everybody pays again for what was answered before. Where that
# is meant, count up `identity.VERSION`, and write the file anew with `cd tests && python -m
# sql.test_identity`.
KNOWN = Path(__file__).parent / "identities.txt"  # of a question as a whole, then of its statistics
# What never stands in a block: it is made of one, or tells of all of them.
OUTSIDE = {
    *(algebra.Aggregate, algebra.Nearest, algebra.Rank),
    *(values.Opaque, values.Missing, values.Value),
    *(plan.Plan, plan.AnswerColumn, plan.Way, plan.TotalOf),
}


def asked(sql: str) -> Plan:
    return harness.planned(sql, policies.policy("hospital"), name="hospital")


def known_by(block: Block) -> list[str]:
    """The ids of what is measured for a block itself, but for what is there to be tested alone."""
    shown = [each for each in block.statistics if each.tested and each.estimates]
    return [each.id for each in (*shown, *block.own_statistics, *block.picks)]


def told(sql: str) -> str:
    found = asked(sql)
    names = [name[:16] for block in found.blocks for name in known_by(block)]
    return f"{identity.question(found)} {','.join(names)} {sql}"


@pytest.mark.parametrize("known", KNOWN.read_text().splitlines())
def test_statistics_keep_their_identity(known: str) -> None:
    assert told(known.split(" ", 2)[2]) == known


@pytest.mark.parametrize(
    "module",
    [algebra.rows, algebra.totals, block, keys, plan, picks, estimates, values, sensitivity],
)
def test_every_class_has_a_line(module: object) -> None:
    own = [
        each
        for _, each in inspect.getmembers(module, inspect.isclass)
        if each.__module__ == module.__name__
    ]
    classes = {each for each in own if is_dataclass(each)}
    assert classes
    assert classes - OUTSIDE <= set(identity.TABLE)


@pytest.mark.parametrize("kind", identity.TABLE)
def test_every_line_has_every_field(kind: type) -> None:
    """A field that nobody listed would make one question of two."""
    tag, listed = identity.TABLE[kind]
    assert set(listed) | identity.UNTOLD.get(kind, frozenset()) == {
        each.name for each in fields(kind) if each.init
    }
    assert len(set(listed)) == len(listed)
    assert [tag for tag, _ in identity.TABLE.values()].count(tag) == 1


def test_a_class_without_a_line_is_refused() -> None:
    @dataclass(frozen=True)
    class Skewed:
        pass

    found = asked("SELECT COUNT(*) FROM people")
    [statistic] = found.blocks[0].statistics
    skewed = replace(statistic, estimates=((0, Skewed()),))  # type: ignore[arg-type]
    other = replace(found, blocks=(replace(found.blocks[0], statistics=(skewed,)),))
    with pytest.raises(Unproved, match="no line for Skewed"):
        identity.question(other)


def test_constants_are_told_apart_by_type() -> None:
    same_looking = (
        1,
        1.0,
        True,
        "1",
        "true",
        Fraction(1),
        None,
        "null",
        date(2024, 1, 1),
        datetime(2024, 1, 1),
    )
    same_looking += (
        "@2024-01-01",
        -0.0,
        0.0,
        0,
        False,
        Interval(1, "day"),
        Interval(1, "month"),
        (1,),
        ((1,),),
        (),
    )
    texts = [identity._Writer().text(each) for each in same_looking]
    assert len(set(texts)) == len(texts)


def test_lists_and_texts_do_not_run_into_each_other() -> None:
    lists = (("a", "b"), ("a b",), ('a" "b',), (("a",), "b"), ("a", ("b",)), ('["a"', '"b"]'))
    assert len({identity._Writer().text(each) for each in lists}) == len(lists)


def test_names_of_stages_do_not_count_and_which_is_which_does() -> None:
    def read(first: str, second: str, column: str) -> str:
        inner = Select(Scan("people", first), (("a", Column(first, "age")),))
        return identity._Writer().text((Stage(inner, second), Sum(where=Column(column, "a"))))

    assert read("x", "y", "y") == read("t0", "t1", "t1")
    assert read("x", "y", "y") != read("x", "y", "x")


def test_the_matrix_is_told_apart_as_by_all_that_python_writes_of_it() -> None:
    """Two questions have one identity exactly when their blocks, without names, are written alike
    by Python.
    """
    seen = set()
    for case in harness.cases():
        found = harness.planned(case.sql, policies.policy(case.policy), name=case.policy)
        blocks = tuple(repr(_unnamed(each)) for each in found.blocks)
        names = tuple(each.name for each in found.columns)
        seen.add((identity.question(found), (blocks, found.after, names)))
    assert len(seen) == len({one for one, _ in seen}) == len({other for _, other in seen}) > 100


def _unnamed(block: Block) -> Block:
    stages: dict[str, str] = {}
    statistics = tuple(replace(each, name="", units=(), id="") for each in block.statistics)
    named = replace(
        block,
        statistics=statistics,
        picks=tuple(replace(each, name="", id="") for each in block.picks),
    )
    return algebra.with_stages(named, lambda stage: stages.setdefault(stage, str(len(stages))))


def test_a_field_of_any_node_counts() -> None:
    """Change each place of a block by itself: the identity changes, or the place is a name."""
    found = asked(
        "SELECT diagnosis, SUM(age), MEDIAN(income) FROM people WHERE age > 30 GROUP BY diagnosis"
    )
    block = found.blocks[0]
    [statistic] = block.statistics
    others = [
        replace(block, rows=block.rows + 1),
        replace(block, touched=block.touched + 1),
        replace(block, neighbors="change_one"),
        replace(block, conditions=()),
        replace(block, conditions=(*block.conditions, Constant(True))),
        replace(block, keys=()),
        replace(block, places=(Constant(0),)),
        replace(block, statistics=(replace(statistic, reads=(Sum(),)),)),
        replace(block, statistics=(replace(statistic, forms=((2,),)),)),
        replace(block, statistics=(replace(statistic, additive=False),)),
        replace(block, statistics=()),
        replace(block, picks=()),
        replace(block, statistics=(replace(statistic, tested=True),)),
        replace(block, statistics=(replace(statistic, estimates=()),)),
        replace(block, kind=Shared(block=0)),
        replace(block, kind=RolledUp(block=0, keys=(0,), draws=1)),
        replace(block, derived=("a0 + 1",)),
    ]
    texts = [identity.question(replace(found, blocks=(each,))) for each in (block, *others)]
    assert all(one != other for one, other in combinations(texts, 2))
    statistics = tuple(replace(each, name="another", units=()) for each in block.statistics)
    named = replace(
        block,
        statistics=statistics,
        picks=tuple(replace(each, name="another") for each in block.picks),
    )
    assert identity.question(replace(found, blocks=(named,))) == texts[0]


def test_a_statistic_is_known_by_what_is_read_of_whom_and_by_nothing_else() -> None:
    """Change each place that its numbers depend on: another statistic. What stands beside it
    changes nothing.
    """
    found = asked(
        "SELECT diagnosis, SUM(age), MEDIAN(income) FROM people WHERE age > 30 GROUP BY diagnosis"
    )
    block = found.blocks[0]
    [measured], [pick] = block.statistics, block.picks
    more = replace(
        measured, sensitivity=replace(measured.sensitivity, l1=measured.sensitivity.l1 + 1)
    )
    others = [
        replace(block, rows=block.rows + 1),
        replace(block, touched=block.touched + 1),
        replace(block, neighbors="change_one"),
        replace(block, conditions=()),
        replace(block, keys=()),
        replace(block, places=(Constant(0),)),
        replace(block, source=Scan("visits", "t0")),
        replace(
            block,
            statistics=(replace(measured, reads=(Sum(),)),),
            picks=(replace(pick, quantiles=(Fraction(1, 3),)),),
        ),
        replace(block, statistics=(more,), picks=(replace(pick, condition=Constant(True)),)),
        replace(
            block,
            statistics=(replace(measured, forms=((2,),)),),
            picks=(replace(pick, position=Constant(1)),),
        ),
    ]
    names = [name for each in identity.add_ids((block, *others)) for name in known_by(each)]
    assert len(names) == 2 * len(set(names)) / 2 == 2 * (1 + len(others))
    alike = [
        replace(block, derived=("a0 + 1",), statistics=(replace(measured, estimates=()),)),
        replace(
            block,
            statistics=(replace(measured, name="x", units=()),),
            picks=(replace(pick, listed=True),),
        ),
    ]
    assert {tuple(known_by(each)) for each in identity.add_ids((block, *alike))} == {
        tuple(names[:2])
    }
    for sql in (
        "SELECT MEDIAN(income) FROM people",
        "SELECT MEDIAN(income), SUM(age), COUNT(DISTINCT zip) FROM people",
    ):
        [first, *_] = asked(sql).blocks
        [other] = asked("SELECT 2 * MEDIAN(income) AS x FROM people").blocks
        assert first.picks[-1].id == other.picks[0].id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SUM(age) AS a, SUM(income) AS b", "SUM(income), SUM(age)"),
        ("COUNT(*), AVG(age), AVG(income)", "AVG(income), COUNT(*), AVG(age)"),
        (
            "MEDIAN(age), COUNT(DISTINCT zip), STDDEV(age)",
            "STDDEV(age), COUNT(DISTINCT zip), MEDIAN(age)",
        ),
        ("CORR(age, income), COUNT(*)", "COUNT(*), CORR(age, income)"),
        ("COUNT_IF(sex = 'F'), COUNT_IF(sex = 'M')", "COUNT_IF(sex = 'M'), COUNT_IF(sex = 'F')"),
    ],
)
@pytest.mark.parametrize("keys", ["", "sex", "zip"])
def test_the_order_of_columns_changes_no_statistic(one: str, other: str, keys: str) -> None:
    groups = f" GROUP BY {keys}" if keys else ""
    found = [parts_of(asked(f"SELECT {columns} FROM people{groups}")) for columns in (one, other)]
    assert {part.id for part in found[0]} == {part.id for part in found[1]}


if __name__ == "__main__":
    questions = [line.split(" ", 2)[2] for line in KNOWN.read_text().splitlines()]
    KNOWN.write_text("".join(f"{told(sql)}\n" for sql in questions))
