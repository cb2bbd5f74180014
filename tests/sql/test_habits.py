"""What tools write: probes and lists of public keys are free, formats and zones are read, clocks
are a day.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from discreet.curator import Curator
from discreet.errors import Rejected
from sql import bounded, policies


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    tables = bounded.tidy(policies.policy("hospital"), people=30, dice=random.Random("same"))
    return bounded.opened(tmp_path_factory.mktemp("habits"), "hospital", tables)


def ask(curator: Curator, sql: str, dialect: str = "duckdb") -> Any:
    return curator.ask(sql, analyst="ann", epsilon="1e45", dialect=dialect)


@pytest.mark.parametrize(
    ("probe", "question"),
    [
        ("SELECT sex, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY sex LIMIT 0", None),
        (
            "SELECT * FROM (SELECT sex, SUM(age) AS s FROM people GROUP BY sex) AS q WHERE 1 = 0",
            None,
        ),
        ("SELECT clinic, SUM(cost) FROM visits WHERE ( 0 = 1 ) GROUP BY clinic", None),
        ("SELECT * FROM clinics LIMIT 0", None),
        ("SELECT age, sex, born, smoker, zip, person_id FROM people WHERE FALSE", "rows"),
        ("SELECT * FROM people LIMIT 0", "rows"),
        ("SELECT TRUE AS x FROM people WHERE 1 <> 1 LIMIT 0", "rows"),
    ],
)
def test_probes_are_free_and_typed(curator: Curator, probe: str, question: str | None) -> None:
    answer = ask(curator, probe)
    assert answer.table.num_rows == 0
    assert float(answer.cost.epsilon) == 0
    if question is None:
        full = (
            probe.replace("LIMIT 0", "").replace("WHERE 1 = 0", "").replace("WHERE ( 0 = 1 )", "")
        )
        assert answer.table.schema == ask(curator, full).table.schema


def test_types_of_rows_come_from_the_policy(curator: Curator) -> None:
    schema = ask(
        curator, "SELECT age, income, sex, born, smoker, zip, person_id FROM people WHERE 0=1"
    ).table.schema
    kinds = [
        pa.int64(),
        pa.decimal128(38, 2),
        pa.string(),
        pa.date32(),
        pa.bool_(),
        pa.string(),
        pa.string(),
    ]
    assert schema.types == kinds


def test_an_aggregate_of_no_rows_is_a_row(curator: Curator) -> None:
    """SELECT COUNT(*) ... WHERE FALSE has one row wherever it is asked: it is no probe."""
    assert ask(curator, "SELECT COUNT(*) AS n FROM people WHERE 1 = 0").table.to_pylist() == [
        {"n": 0}
    ]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("SELECT sex FROM people GROUP BY sex ORDER BY sex", ["F", "M", "X"]),
        ("SELECT DISTINCT sex FROM people ORDER BY 1 DESC", ["X", "M", "F"]),
        ("SELECT DISTINCT sex AS s FROM people WHERE sex <> 'X' ORDER BY s", ["F", "M"]),
        ("SELECT age // 100 AS c FROM people GROUP BY c", [0, 1]),
        (
            "SELECT diagnosis FROM people GROUP BY 1 ORDER BY 1 NULLS FIRST LIMIT 2",
            [None, "asthma"],
        ),
    ],
)
def test_lists_of_public_keys_are_free(curator: Curator, sql: str, values: list[Any]) -> None:
    answer = ask(curator, sql)
    assert answer.table.column(0).to_pylist() == values
    assert float(answer.cost.epsilon) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TO_CHAR(day, 'YYYY-MM')", "STRFTIME(day, '%Y-%m')"),
        ("TO_CHAR(day, 'Dy DD \"of\" FMMonth')", "STRFTIME(day, '%a %d of %B')"),
        ("TO_CHAR(day, 'YYYY-\"Q\"Q')", "YEAR(day) || '-Q' || QUARTER(day)"),
        (
            "TO_CHAR(day, 'IYYY-IW')",
            "ISOYEAR(day) || '-' || LPAD(CAST(WEEK(day) AS VARCHAR), 2, '0')",
        ),
        ("day > TO_DATE('01.06.2024', 'DD.MM.YYYY')", "day > DATE '2024-06-01'"),
        (
            "seen > TO_TIMESTAMP('2024-01-02 03:04', 'YYYY-MM-DD HH24:MI')",
            "seen > TIMESTAMP '2024-01-02 03:04:00'",
        ),
        ("seen > '2024-01-02T00:00:00+02:00'", "seen > TIMESTAMP '2024-01-01 22:00:00'"),
        (
            "CAST(seen AS TIMESTAMPTZ) AT TIME ZONE 'UTC' > TIMESTAMP '2024-01-02'",
            "seen > TIMESTAMP '2024-01-02'",
        ),
        ("TO_TIMESTAMP(FLOOR(EXTRACT(EPOCH FROM seen) / 3600) * 3600)", "DATE_TRUNC('hour', seen)"),
        ("clinic = ANY('{Hill,Market}')", "clinic IN ('Hill', 'Market')"),
        ("clinic ~ '^Ha'", "clinic LIKE 'Ha%'"),
        ("clinic ILIKE ('%' || LOWER('AR') || '%')", "clinic LIKE '%ar%'"),
        ("clinic ILIKE ('%' || REPLACE('a', '_', '!_') || '%') ESCAPE '!'", "clinic LIKE '%a%'"),
    ],
)
def test_other_words_for_the_same(curator: Curator, one: str, other: str) -> None:
    first, second = (
        ask(
            curator, f"SELECT {part} AS k, COUNT(*) AS n FROM visits GROUP BY k ORDER BY k"
        ).table.to_pylist()
        for part in (one, other)
    )
    there = [[row for row in rows if row["n"]] for rows in (first, second)]
    assert there[0] == there[1] != []


def test_clocks_are_the_day_of_asking(curator: Curator) -> None:
    today = datetime.now(UTC).date()
    row, written = (
        ask(
            curator,
            f"SELECT COUNT(*) AS n FROM people WHERE born > {day} - INTERVAL 35 YEAR AND born <= {moment}"
            f" AND born < DATE_TRUNC('month', {moment})",
        )
        for day, moment in (("CURRENT_DATE", "NOW()"), (f"DATE '{today}'", f"TIMESTAMP '{today}'"))
    )
    assert row.table == written.table
    assert row.certificate["today"] == today.isoformat()
    assert "today" not in written.certificate


def test_whole_years_since_birth(curator: Curator) -> None:
    """AGE counts years that have passed, not New Years."""
    sql = "SELECT DATE_PART('year', AGE(DATE '2020-01-01', born)) AS a, COUNT(*) AS n FROM people GROUP BY a ORDER BY a"
    found = {row["a"] for row in ask(curator, sql, "postgres").table.to_pylist()}
    assert found == {28, 29, 30}


def test_rows_as_json(curator: Curator) -> None:
    sql = "SELECT ROW_TO_JSON(t) AS r FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY sex) AS t"
    assert ask(curator, sql).table["r"][0].as_py().startswith('{"sex":"F","n":')


def test_columns_beside_are_computed_in_place(curator: Curator) -> None:
    inner = "(SELECT sex, COUNT(*) AS c FROM people GROUP BY sex) AS p"
    sql = f"SELECT p.sex, v.n FROM {inner} CROSS JOIN LATERAL (SELECT p.c * 2 AS n) AS v ORDER BY p.sex"
    plain = f"SELECT p.sex, p.c * 2 AS n FROM {inner} ORDER BY p.sex"
    assert ask(curator, sql).table == ask(curator, plain).table


def test_a_threshold_is_told_in_people(curator: Curator) -> None:
    sql = "SELECT zip, COUNT(*) AS n FROM people GROUP BY zip"
    quote = curator.quote(sql, analyst="ann", epsilon="0.01")
    (people,) = quote.as_json()["shared_by"]
    assert people > 100
    assert f"a value is shown if about {people:,} people share it" in str(quote)
    assert f"about {people:,} people share it" in curator.explain(
        sql, analyst="ann", epsilon="0.01"
    )
    answer = curator.ask(sql, analyst="ann", epsilon="0.01")
    assert answer.table.num_rows == 0
    assert f"No value passed the test: a value is shown if about {people:,} people share it" in str(
        answer
    )
    assert (
        "shared_by"
        not in curator.quote("SELECT COUNT(*) FROM people", analyst="ann", epsilon="1").as_json()
    )


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "SELECT DISTINCT zip FROM people LIMIT 10",
            "SELECT zip, COUNT(*) FROM people GROUP BY zip",
        ),
        (
            "SELECT smoker FROM people LIMIT 10",
            "SELECT smoker, COUNT(*) FROM people GROUP BY smoker",
        ),
        ("SELECT STRING_AGG(DISTINCT sex, ',') FROM people", "STRING_AGG(DISTINCT sex, ',') lists"),
        (
            "SELECT COUNT(*) FROM people WHERE sex = Male",
            "Texts stand between single quotes: 'Male'",
        ),
        (
            "SELECT COUNT(*) FROM people WHERE sex IN (F, 'M')",
            "Texts stand between single quotes: 'F'",
        ),
    ],
)
def test_remedies_name_what_was_meant(curator: Curator, sql: str, says: str) -> None:
    with pytest.raises(Rejected) as refused:
        curator.quote(sql, analyst="ann", epsilon="1")
    assert says in str(refused.value)
