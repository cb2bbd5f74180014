"""Every question of rejected.sql is refused, with its place, a reason and a way out, before
anything is charged.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.errors import Rejected
from discreet.policy.policy import Policy
from discreet.sql.analyze import plan
from sql import bounded, harness, policies
from sql.harness import Refusal

REFUSALS = harness.refusals()


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    tables = bounded.dirty(policies.policy("hospital"), people=10, dice=random.Random())
    return bounded.opened(tmp_path_factory.mktemp("rejected"), "hospital", tables)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """The same policy, with nobody in it."""
    tables = bounded.tidy(policies.policy("hospital"), people=2, dice=random.Random())
    return bounded.opened(
        tmp_path_factory.mktemp("empty"),
        "hospital",
        {name: table.slice(0, 0) for name, table in tables.items()},
    )


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.words)
def test_refusals_teach(refusal: Refusal, curator: Curator, empty: Curator) -> None:
    with pytest.raises(Rejected) as caught:
        curator.ask(refusal.sql, analyst="ann", epsilon="1")
    error = caught.value
    assert refusal.says in f"{error.reason} {error.hint}"
    assert error.hint.endswith((".", "..."))
    lines = refusal.sql.split("\n")
    assert 1 <= error.line <= len(lines)
    assert 1 <= error.column <= len(lines[error.line - 1]) + 1
    with pytest.raises(Rejected) as again:
        empty.quote(refusal.sql, analyst="ann", epsilon="1")
    assert str(again.value) == str(error), "a refusal depends on the question and the policy alone"


def test_nothing_is_charged_for_a_refusal(curator: Curator) -> None:
    for refusal in random.Random().sample(REFUSALS, 20):
        with pytest.raises(Rejected):
            curator.ask(refusal.sql, analyst="ann", epsilon="1")
    assert curator.ledger() == ()


def test_there_are_enough_refusals() -> None:
    assert len({refusal.sql for refusal in REFUSALS}) == len(REFUSALS) >= 150


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM people WHERE " + "NOT " * 15_000 + "TRUE",
        "SELECT COUNT(*) FROM people WHERE " + "- " * 30_000 + "1 > 0",
        "SELECT COUNT(*) FROM people WHERE 1" + "+1" * 20_000 + " > 0",
        "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join(["1"] * 30_000) + ")",
        "SELECT COUNT(*) FROM people WHERE " + "(" * 20_000 + "TRUE" + ")" * 20_000,
        "SELECT COUNT(*) FROM people " + "JOIN visits " * 4_000,
        "SELECT COUNT(*) FROM people" + " UNION ALL SELECT COUNT(*) FROM people" * 1_500,
        "SELECT COUNT(*) FROM people WHERE age" + "::INT" * 9_000 + " > 0",
        "SELECT COUNT(*) FROM people WHERE "
        + "CASE WHEN " * 3_000
        + "TRUE"
        + " THEN TRUE END" * 2_000,
        "SELECT SUM(" + "age / (" * 40 + "age" + ")" * 40 + ") FROM people",
        "SELECT SUM(" + "SIGN(" * 60 + "age" + ")" * 60 + ") FROM people",
        "SELECT SUM(" + "NULLIF(" * 60 + "age" + ", 1)" * 60 + ") FROM people",
        "SELECT COUNT(*) FROM people WHERE sex = '" + "x" * 70_000 + "'",
        "WITH a0 AS (SELECT person_id, age AS x FROM people), "
        + ", ".join(
            f"a{i} AS (SELECT * FROM a{i - 1} UNION ALL SELECT * FROM a{i - 1})"
            for i in range(1, 40)
        )
        + " SELECT SUM(x) FROM a39",
        "WITH a0 AS (SELECT COUNT(*) AS x FROM people), "
        + ", ".join(
            f"a{i} AS (SELECT p.x FROM a{i - 1} p JOIN a{i - 1} q ON p.x = q.x)"
            for i in range(1, 40)
        )
        + " SELECT SUM(x) FROM a39",
        "SELECT COUNT(*) FROM people WHERE "
        + " AND ".join(
            f"person_id IN (SELECT person_id FROM visits WHERE cost > {i})" for i in range(60)
        ),
        "SELECT COUNT(*) FROM people WHERE zip = '\ud800'",
        "SELECT COUNT(*) FROM people WHERE zip = '\x00'",
        "SELECT age, COUNT(*) FROM people GROUP BY " + "1" * 5_000,
        "SELECT age, COUNT(*) FROM people GROUP BY age LIMIT " + "1" * 5_000,
        "SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (PARTITION BY person_id) AS n FROM visits) AS t WHERE n <= '²'",
        "SELECT SUM(CAST(age AS DECIMAL(38, 999999999))) FROM people",
        "",
        "   \n  ",
        "\ufeff",
    ],
    ids=lambda sql: repr(sql[:40]),
)
def test_what_is_too_large_or_odd_is_refused_at_once(sql: str, curator: Curator) -> None:
    with pytest.raises(Rejected):
        curator.quote(sql, analyst="ann", epsilon="1")


def test_a_long_pattern_on_a_long_constant_takes_no_time(curator: Curator) -> None:
    """A regular expression would take for ever."""
    sql = f"SELECT COUNT(*) FROM people WHERE '{'a' * 3_000}' LIKE '{'%a' * 500}%b'"
    assert curator.quote(sql, analyst="ann", epsilon="1").cost.epsilon == 1


def test_the_same_refusal_wherever_the_store_is(curator: Curator, tmp_path: Path) -> None:
    """No path of the machine and nothing of the engine shows in a refusal."""
    for refusal in REFUSALS:
        with pytest.raises(Rejected) as caught:
            curator.explain(refusal.sql, analyst="ann", epsilon="1")
        text = str(caught.value)
        assert not any(
            word in text for word in ("Error:", "Traceback", "duckdb.", "sqlglot", "/tmp", "LINE 1")
        )


RESERVED = Policy.parse(
    "unit: person\nbudget: {epsilon: 1}\n"
    "tables: {t: {owner: id, columns: {union: {integer: [0, 9]}, age: {integer: [0, 9]}}}}\n",
    path=Path("policy.yaml"),
)
QUOTED = 'is a word of SQL here. If the column is meant, write "'


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT union, COUNT(*) FROM t GROUP BY union",
        "SELECT AVG(Union) FROM t",
        "SELECT COUNT(*) FROM t\n  WHERE union > 3",
        "SELECT COUNT(*) FROM t GROUP BY age, union",
    ],
)
def test_a_column_that_is_a_word_of_sql_is_to_be_quoted(sql: str) -> None:
    word = "Union" if "Union" in sql else "union"
    with pytest.raises(Rejected) as caught:
        plan(sql, RESERVED, {}, evaluate=_nothing)
    assert caught.value.hint == f'{word} {QUOTED}{word}".'
    plan(sql.replace(word, f'"{word}"'), RESERVED, {}, evaluate=_nothing)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM t GROUP BY except",  # no column of the policy
        'SELECT COUNT(* FROM t WHERE "union" > 3',  # elsewhere, and quoted
        "SELECT COUNT(*) FROM t WHERE 'union' age",  # a text
        "SELECT COUNT(*) FROM t WHERE age age > 3",  # a column that need not be quoted
    ],
)
def test_other_words_are_not_told_to_be_quoted(sql: str) -> None:
    with pytest.raises(Rejected, match="not SQL that can be read") as caught:
        plan(sql, RESERVED, {}, evaluate=_nothing)
    assert QUOTED not in caught.value.hint


def _nothing(sql: str) -> pa.Table:
    raise AssertionError(sql)
