"""The dialect `postgres`: what its words mean there, carried in our trees."""

from __future__ import annotations

import random
from typing import Any

import pytest

from discreet.curator import Curator
from discreet.errors import Rejected, UsageError
from sql import bounded, policies


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    tables = bounded.tidy(policies.policy("hospital"), people=30, dice=random.Random("same"))
    return bounded.opened(tmp_path_factory.mktemp("postgres"), "hospital", tables)


def ask(curator: Curator, sql: str, dialect: str = "postgres") -> Any:
    return curator.ask(sql, analyst="ann", epsilon="1e45", dialect=dialect).table


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ("COUNT(*), SUM(age), AVG(age)", ["count", "sum", "avg"]),
        ("COUNT(*) + 1, -COUNT(*), COUNT(*)::int", ["?column?", "?column?", "count"]),
        ("CASE WHEN COUNT(*) > 1 THEN 1 END, COALESCE(SUM(age), 0)", ["case", "coalesce"]),
        (
            "COUNT(*) FILTER (WHERE age > 1), 1, TRUE, 'a'",
            ["count", "?column?", "bool", "?column?"],
        ),
        ('COUNT(*) AS Total, ROUND(AVG(age)) AS "Mean"', ["total", "Mean"]),
        (
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), 2::numeric",
            ["percentile_cont", "numeric"],
        ),
    ],
)
def test_columns_have_postgres_names(curator: Curator, items: str, names: list[str]) -> None:
    assert ask(curator, f"SELECT {items} FROM people").column_names == names


def test_whole_numbers_are_divided_without_a_fraction(curator: Curator) -> None:
    by_decade = "SELECT age / 10 * 10 AS decade, COUNT(*) FROM people GROUP BY 1 ORDER BY 1"
    assert ask(curator, by_decade).num_rows == 13
    assert ask(curator, by_decade, "duckdb").num_rows == 121
    (row,) = ask(
        curator,
        "SELECT 7 / 2 AS a, 7 / 2.0 AS b, SUM(age) / COUNT(*) AS c, AVG(age) AS d, COUNT(*) / 4 AS e,"
        " COUNT(*) AS f FROM people",
    ).to_pylist()
    assert (row["a"], row["b"]) == (3, 3.5)
    assert row["c"] == int(row["d"])
    assert row["e"] == row["f"] // 4 > 0
    assert ask(curator, "SELECT n / 2 AS h FROM (SELECT COUNT(*) AS n FROM people) AS s")[
        "h"
    ].to_pylist() == [row["f"] // 2]


def test_what_is_divided_must_be_known(curator: Curator) -> None:
    with pytest.raises(Rejected, match="cannot be told"):
        ask(curator, "SELECT (SELECT SUM(age) FROM people) / 2 AS half FROM people GROUP BY half")


def test_nulls_are_larger_than_everything(curator: Curator) -> None:
    ordered = "SELECT diagnosis, COUNT(*) AS n FROM people GROUP BY diagnosis ORDER BY diagnosis"
    assert ask(curator, f"{ordered} DESC")["diagnosis"][0].as_py() is None
    assert ask(curator, ordered)["diagnosis"][-1].as_py() is None
    assert ask(curator, f"{ordered} DESC", "duckdb")["diagnosis"][-1].as_py() is None


def test_concat_writes_t_and_f(curator: Curator) -> None:
    keys = "SELECT CONCAT('s', smoker) AS k, COUNT(*) FROM people GROUP BY 1 ORDER BY 1"
    assert ask(curator, keys)["k"].to_pylist() == ["s", "sf", "st"]
    assert ask(curator, keys, "duckdb")["k"].to_pylist() == ["s", "sfalse", "strue"]


def test_a_backslash_escapes_in_like(curator: Curator) -> None:
    sql = r"SELECT COUNT(*) AS n FROM people WHERE diagnosis LIKE 'f\%' OR diagnosis LIKE 'fl\u'"
    plain = ask(curator, "SELECT COUNT(*) AS n FROM people WHERE diagnosis = 'flu'")[
        "n"
    ].to_pylist()
    assert ask(curator, sql)["n"].to_pylist() == plain != [0]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres"])
def test_the_schema_is_public(curator: Curator, dialect: str) -> None:
    for table in ("people", "public.people", '"hospital"."public"."people"'):
        assert (
            ask(
                curator, f"SELECT COUNT(*) AS n FROM {table} WHERE people.age > 0", dialect
            ).num_rows
            == 1
        )
    with pytest.raises(Rejected, match="no schema private"):
        ask(curator, "SELECT COUNT(*) FROM private.people", dialect)


def test_a_dialect_has_a_name(curator: Curator) -> None:
    with pytest.raises(UsageError, match="duckdb, postgres"):
        curator.quote("SELECT COUNT(*) FROM people", analyst="ann", epsilon=1, dialect="oracle")
