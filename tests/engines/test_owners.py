"""Owners that no single column names: every row somebody else's, or several columns together (S2,
S4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, permutations, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from small_sources import Rows, policy_of

import discreet
from discreet.binding import create_ledger
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.errors import PolicyError
from discreet.policy.owners import EachRow, Together
from discreet.policy.policy import Policy
from discreet.sql.analyze import plan
from discreet.sql.plan.block import Shared
from discreet.sql.plan.prove import prove
from sql import harness

Prepared = Callable[..., dict[str, Rows]]

EACH = "  t: {owner: row, columns: {a: {integer: [0, 2]}, b: {values: [x, y], nullable: true}}}\n"
PAIR = "  t: {owner: [h, n], max_rows: 2, columns: {a: {integer: [0, 2]}}}\n"
QUESTIONS = (
    "SELECT COUNT(*) FROM t",
    "SELECT SUM(a), AVG(a), VARIANCE(a) FROM t",
    "SELECT a, COUNT(*), COUNT(DISTINCT owner) FROM t GROUP BY a",
    "SELECT n, COUNT(*) FROM (SELECT owner, COUNT(*) AS n FROM t GROUP BY owner) GROUP BY n",
    "SELECT COUNT(*) FROM t AS s JOIN t AS u ON s.owner = u.owner WHERE s.a < u.a",
    "SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.owner = t.owner AND u.a = 2)",
    "SELECT COUNT(*) FROM (SELECT a, ROW_NUMBER() OVER (PARTITION BY owner ORDER BY a) AS r FROM t) WHERE r = 1",
)


def source(rows: list[tuple[Any, ...]], names: str) -> dict[str, pa.Table]:
    kinds = {"a": pa.int64(), "b": pa.string(), "h": pa.string(), "n": pa.int64()}
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    arrays = [pa.array(column, kinds[name]) for name, column in zip(names, columns, strict=True)]
    return {"t": pa.table(arrays, names=list(names))}


def tables_of(rows: list[tuple[Any, ...]], most: int) -> Iterator[tuple[tuple[Any, ...], ...]]:
    for count in range(most + 1):
        yield from combinations_with_replacement(rows, count)


ROWS = [(1, "x"), (2, None), (9, "q")]  # the last is clamped and nulled


def test_one_row_more_is_one_person_more(prepared: Prepared) -> None:
    """Every table of up to two rows and every row added to it: everybody else stays, also equal
    rows' owners.
    """
    known = {table: prepared(EACH, source(list(table), "ab"))["t"] for table in tables_of(ROWS, 2)}
    for table, found in known.items():
        owners = Counter(owner for owner, *_ in found)
        assert len(owners) == len(table) == len(found)
        for row in ROWS:
            more = known.get(tuple(sorted((*table, row), key=ROWS.index)))
            if more is not None:
                assert not Counter(found) - Counter(more)
                assert len(more) == len(found) + 1


def test_the_order_of_rows_names_nobody(prepared: Prepared) -> None:
    rows = [(1, "x"), (1, "x"), (2, None), (0, "y")]
    first = prepared(EACH, source(rows, "ab"))["t"]
    for other in list(permutations(rows))[::9]:
        assert prepared(EACH, source(list(other), "ab"), threads=2)["t"] == first


def test_rows_of_which_nothing_is_declared_are_people_too(prepared: Prepared) -> None:
    assert len(prepared("  t: {owner: row}\n", source([(1, "x")] * 5, "ab"))["t"]) == 5


PEOPLE = [("A", 1), ("A", 2), ("B", 1), (None, 1), ("B", None), (" ", 1)]


def test_a_person_less_is_only_their_rows_less(prepared: Prepared) -> None:
    """Tables of people whom two columns name, with rows in common; and everybody gone from them,
    with all rows.
    """
    rows = [(*person, a) for person in PEOPLE[1:4] for a in (0, 2)]
    known: dict[Any, Rows] = {}

    def kept(table: tuple[tuple[Any, ...], ...]) -> Rows:
        if table not in known:
            known[table] = prepared(PAIR, source(list(table), "hna"))["t"]
        return known[table]

    for table in list(tables_of(rows, 3))[::6]:
        found = kept(table)
        for person in {row[:2] for row in table}:
            without = kept(tuple(row for row in table if row[:2] != person))
            assert not Counter(without) - Counter(found)
            assert len({owner for owner, _ in Counter(found) - Counter(without)}) == (
                person[0] is not None
            )


def test_a_part_that_is_missing_names_nobody(prepared: Prepared) -> None:
    rows = [(*person, 1) for person in PEOPLE]
    assert [row[0] for row in prepared(PAIR, source(rows, "hna"))["t"]] == [
        "1:A,1:1",
        "1:A,1:2",
        "1:B,1:1",
    ]


def test_parts_do_not_run_into_each_other(prepared: Prepared) -> None:
    texts = ["a", "1:a", "a,1:a", "1", ",", ":", "1:a,1:a"]
    pairs = list(product(texts, texts))
    table = pa.table(
        {"h": [h for h, _ in pairs], "n": [n for _, n in pairs], "a": [1] * len(pairs)}
    )
    assert len({row[0] for row in prepared(PAIR, {"t": table})["t"]}) == len(pairs)
    long = pa.table({"h": ["x" * 600] * 2, "n": ["y" * 600, "z"], "a": [1, 1]})
    assert len(prepared(PAIR, {"t": long})["t"]) == 1  # of more than 1,000 letters together: nobody


def test_the_same_person_in_two_tables(prepared: Prepared) -> None:
    """Parts are compared place by place, each in one type for all tables: 1, 1.0 and '1' are
    one.
    """
    tables = "  p: {owner: [h, n]}\n  v: {owner: [ward, number], max_rows: 3}\n"
    people = pa.table({"h": ["A", "A", "B"], "n": [1, 2, 1]})
    visits = pa.table({"ward": ["A", "B", "B"], "number": [1.0, 1.0, 1.5]})
    found = prepared(tables, {"p": people, "v": visits})
    assert {row[0] for row in found["v"]} == {"1:A,1:1", "1:B,1:1"} < {row[0] for row in found["p"]}


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
@pytest.mark.parametrize(
    ("tables", "names"), [(EACH, "ab"), (PAIR, "hna")], ids=["each row", "together"]
)
def test_no_neighbor_moves_a_question_further_than_is_proved(
    tmp_path: Path, tables: str, names: str, neighbors: str
) -> None:
    """From files to exact numbers: the largest change over all neighbors against what the checker
    proved.
    """
    text = f"unit: person\nneighbors: {neighbors}\nbudget: {{epsilon: 1}}\ntables:\n{tables}"
    policy = Policy.parse(text, path=tmp_path / "policy.yaml")
    plans = [plan(sql, policy, {}, lambda _: pa.table({})) for sql in QUESTIONS]
    for each in plans:
        prove(each, policy)
    others = [ROWS[0]] if names == "ab" else [("A", 1, 2)]
    if names == "ab":
        persons: list[list[Any]] = [[], *([row] for row in ROWS)]
    else:
        persons = [
            [],
            *(
                [("B", 7, a) for a in picked]
                for picked in ((0,), (2,), (0, 2), (2, 2), (0, 1, 2), (2,) * 9)
            ),
        ]
    databases = [
        numbers(policy, source([*others, *rows], names), plans, place)
        for place, rows in enumerate(persons)
    ]
    pairs = [(0, other) for other in range(1, len(databases))]
    if neighbors == "change_one":
        pairs = [(one, other) for one in range(len(databases)) for other in range(one)]
    for index, (sql, claims) in enumerate(zip(QUESTIONS, claimed(plans), strict=True)):
        for one, other in pairs:
            for place, (l1, linf) in enumerate(claims):
                before, after = databases[one][index][place], databases[other][index][place]
                moved = [
                    abs(before.get(key, 0) - after.get(key, 0))
                    for key in before.keys() | after.keys()
                ]
                assert sum(moved) <= l1, (sql, persons[one], persons[other])
                assert max(moved, default=0) <= linf, (sql, persons[one], persons[other])


def claimed(plans: list[Any]) -> list[list[tuple[int, int]]]:
    return [
        [
            (each.sensitivity.l1, each.sensitivity.linf)
            for block in found.blocks
            if not isinstance(block.kind, Shared)
            for each in block.own_statistics
        ]
        for found in plans
    ]


def numbers(
    policy: Policy, tables: dict[str, pa.Table], plans: list[Any], place: int
) -> list[list[dict[Any, int]]]:
    """Of every plan and measurement its exact numbers on a snapshot of these tables."""
    prepare(policy, tables, policy.store, place + 1)
    engine = DuckDB.open(policy, place + 1)
    found = []
    for each in plans:
        found.append([])
        for block in each.blocks:
            if not isinstance(block.kind, Shared):
                read = engine.read(harness.spelled(block.sums), 60)
                keys = len(block.places)
                rows = [tuple(row.values()) for row in read.to_pylist()]
                vector = {row[:keys]: tuple(map(harness.whole, row[keys:])) for row in rows}
                found[-1] += [
                    harness.forms_of(vector, part.over(block.readings))
                    for part in block.own_statistics
                ]
    engine.close()
    return found


def test_what_is_refused(tmp_path: Path) -> None:
    for tables, why in (
        ("  t: {owner: row}\n  u: {owner: id}\n", "nothing says which of their rows"),
        (
            "  t: {owner: row}\n  u: {owner: {through: t, on: k}}\n",
            "nothing says which of their rows",
        ),
        ("  t: {owner: row, columns: {owner: text}}\n", "is what questions call the owner"),
        ("  t: {owner: [a, b]}\n  u: {owner: [a, b, c]}\n", "different numbers of columns"),
    ):
        with pytest.raises(PolicyError, match=why):
            policy_of(tables, tmp_path)
    assert policy_of(EACH, tmp_path).tables["t"].owner == EachRow()
    assert policy_of(PAIR, tmp_path).tables["t"].owner == Together(columns=("h", "n"))
    assert (
        len({policy_of(each, tmp_path).digest for each in (EACH, EACH.replace("row", "'rows'"))})
        == 2
    )


def test_it_is_said_beside_every_answer(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(
        f"unit: patient\nbudget: {{epsilon: 9}}\nanalysts: {{ann: {{epsilon: 9}}}}\ntables:\n{EACH}"
    )
    create_ledger(Policy.read(path))
    curator = discreet.open(path, tables=source([(1, "x")], "ab"))
    said = "EACH ROW is taken to be one patient"
    assert said in str(curator.ask("SELECT COUNT(*) FROM t", analyst="ann", epsilon=1))
    assert said in curator.explain("SELECT COUNT(*) FROM t", analyst="ann", epsilon=1)
