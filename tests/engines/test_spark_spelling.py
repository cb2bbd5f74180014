"""Spark's spelling, run on Sail: the values and rows of test_spelling; letters, dates and patterns
as DuckDB's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from spark_servers import sail
from test_spelling import ROWS, VALUES, VISITS

from discreet.algebra import (
    Aggregate,
    Call,
    Cast,
    Column,
    Constant,
    Expression,
    Nearest,
    Rank,
    Sum,
    call,
)
from discreet.engines.layout import PUBLIC as SCHEMA
from discreet.engines.spark.letters import text_literal
from discreet.engines.spark.session import connect
from discreet.engines.spark.spelling import PRIVATE, PUBLIC, SparkSpelling, view
from discreet.engines.spelling import Spelling
from discreet.engines.words import Unspelled

PLAIN, CAREFUL = SparkSpelling(), SparkSpelling(careful=True)


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    made = connect(sail())
    yield made
    made.stop()


def values(session: Any, sql: str) -> list[Any]:
    (row,) = session.sql(sql).toArrow().to_pylist()
    return list(row.values())


@pytest.mark.parametrize("spelling", [PLAIN, CAREFUL], ids=["plain", "careful"])
def test_values(session: Any, spelling: SparkSpelling) -> None:
    """Every word of the vocabulary, all in one statement."""
    listed = ", ".join(
        f"{spelling.expression(node)} AS x{place}" for place, (node, _) in enumerate(VALUES)
    )
    found = values(session, f"SELECT {listed}")
    assert [
        (node, each) for (node, value), each in zip(VALUES, found, strict=True) if each != value
    ] == []


@pytest.fixture(scope="module")
def tables(session: Any) -> Any:
    days = [date(2024, 1, 5), date(2024, 2, 5), date(2024, 2, 5), date(2024, 3, 1)]
    costs = pa.array([10, -7, None, 4], pa.int64())
    visits = pa.table(
        {"#owner": ["a", "a", "a", "b"], "day": days, "cost": costs, "town": ["x", "y", "x", None]}
    )
    pets = pa.table({"#owner": ["a", "a", "c"], "kind": ["cat", "dog", "cat"]})
    towns = pa.table({"town": ["x", "x", "y"], "people": [100, 100, 7]})
    for kind, name, table in (
        (PRIVATE, "visits", visits),
        (PRIVATE, "pets", pets),
        (PUBLIC, "towns", towns),
    ):
        session.createDataFrame(table).createOrReplaceTempView(view(kind, name))
    return session


@pytest.mark.parametrize("name", ROWS)
def test_rows(name: str, tables: Any) -> None:
    query, expected = ROWS[name]
    found = [tuple(row.values()) for row in tables.sql(PLAIN.query(query)).toArrow().to_pylist()]
    assert sorted(found, key=lambda row: [(each is None, str(each)) for each in row]) == expected


@pytest.mark.parametrize("widths", [(1,), (9, 3, 1)])
def test_cells_near_a_rank(session: Any, widths: tuple[int, ...]) -> None:
    """Of 0 to 99, each once, those near the median."""
    session.createDataFrame(
        pa.table({"g": ["g"] * 100, "cell": range(100)})
    ).createOrReplaceTempView("private_cells")
    counted = Aggregate(VISITS, (Column("v", "g"), Column("v", "cell")), (Sum(),), known=(1,))
    sql = PLAIN.numbers(Nearest(counted, widths, (Rank(1, 2, 0, 3),))).replace(
        "private_visits", "private_cells"
    )
    found = [tuple(row.values()) for row in session.sql(sql).toArrow().to_pylist()]
    assert all(row == ("g", row[1], 1, row[1], 100) for row in found)
    assert {48, 49, 50, 51} <= {row[1] for row in found} <= set(range(46, 54))


def compare(session: Any, column: pa.Array, *nodes: Expression) -> None:
    """The same values as DuckDB's for every row of a column, which the nodes call x of r."""
    kind = "TIMESTAMP_NTZ" if pa.types.is_timestamp(column.type) else None
    table, listed = pa.table({"x": column}), list(enumerate(nodes))
    frame = session.createDataFrame(table)
    if kind is not None:
        frame = frame.selectExpr(f"CAST(x AS {kind}) AS x")
    frame.createOrReplaceTempView("r")
    theirs = ", ".join(f"{PLAIN.expression(node)} AS c{place}" for place, node in listed)
    ours = ", ".join(f"{Spelling().expression(node)} AS c{place}" for place, node in listed)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("r", table)
        expected = database.sql(f"SELECT x, {ours} FROM r").to_arrow_table().to_pylist()
    found = session.sql(f"SELECT x, {theirs} FROM r").toArrow().to_pylist()
    order = [str(row["x"]) for row in expected]
    assert len(set(order)) == len(order)
    by_value = {str(row["x"]): row for row in found}
    for place, node in listed:
        wrong = [
            (row["x"], row[f"c{place}"], by_value[str(row["x"])][f"c{place}"])
            for row in expected
            if row[f"c{place}"] != by_value[str(row["x"])][f"c{place}"]
        ]
        assert wrong == [], Spelling().expression(node)


X = Column("r", "x")


def test_letters(session: Any) -> None:
    """Every letter there is, in capitals, in small letters and between blanks: as DuckDB has it,
    not as Java.
    """
    letters = [chr(place) for place in range(1, 0x3000) if not 0xD800 <= place < 0xE000]
    wide = [f"{letter}a{letter}" for letter in letters]
    compare(
        session,
        pa.array(wide),
        *(call(word, X) for word in ("lower", "upper", "trim", "ltrim", "rtrim", "length")),
        call("ilike", X, "ÀA%"),
        call("left", X, 2),
        call("left", X, -1),
        call("right", X, 1),
        call("substr", X, -2),
        call("substr", X, -5, 3),
        call("substr", X, 0, 2),
        call("substr", X, 2, 1),
        Cast(X, "VARCHAR"),
    )


def test_patterns(session: Any) -> None:
    texts = ["a", "a%", "a_", "a!", "ab", "a\\", "a\\b", "A%", "", "%", "it's", "a\nb"]
    nodes = [
        *(call("like", X, pattern) for pattern in ("a%", "a_", "a\\%", "%!%", "%'%", "", "a%b")),
        *(call("like", X, *pattern) for pattern in (("a!%", "!"), ("a\\_", "\\"), ("%!!", "!"))),
        *(call("ilike", X, *pattern) for pattern in (("A%",), ("A!%", "!"))),
        *(call(word, X, "a") for word in ("contains", "starts_with", "ends_with", "strpos")),
        call("replace", X, "a", "\\'"),
        call("split_part", X, "\\", 2),
        call("concat", X, "'", X),
    ]
    compare(session, pa.array(texts), *nodes)


def test_days_and_moments(session: Any) -> None:
    days = [date(1890, 1, 1) + timedelta(days=97 * step) for step in range(700)]
    moments = [
        datetime(1950, 1, 1) + timedelta(days=53 * step, seconds=7919 * step + 0.25)
        for step in range(700)
    ]
    parts = (
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "dow",
        "isodow",
        "doy",
        "decade",
        "century",
        "isoyear",
    )
    day_nodes: list[Expression] = [call("date_part", part, X) for part in parts]
    day_nodes += [
        call("date_diff", unit, date(1970, 1, 5), X) for unit in ("day", "month", "quarter", "year")
    ]
    grains = ("day", "week", "month", "quarter", "year")
    day_nodes += [Cast(call("date_trunc", grain, X), "DATE") for grain in grains]
    day_nodes += [
        Cast(X, "VARCHAR"),
        call("strftime", X, "%Y-%m-%d %y %-m %b %B %-d %j %a %A %w %u %% it's"),
    ]
    compare(session, pa.array(days), *day_nodes)
    clock: list[Expression] = [
        call("date_part", part, X) for part in ("hour", "minute", "second", "dow", "isoyear")
    ]
    clock += [
        call("date_diff", unit, datetime(1970, 1, 1, 0, 30), X)
        for unit in ("hour", "minute", "second", "day")
    ]
    clock += [call("date_trunc", grain, X) for grain in ("second", "minute", "hour")]
    clock += [call("epoch_us", X), call("make_timestamp", call("epoch_us", X)), Cast(X, "VARCHAR")]
    clock += [call("strftime", X, "%H %-H %I %-I %M %-M %S %-S %p"), Cast(X, "DATE")]
    compare(session, pa.array(moments, pa.timestamp("us")), *clock)


@pytest.mark.parametrize(
    ("node", "what"),
    [
        (call("date_part", "millennium", X), "The part millennium of a date"),
        (call("date_trunc", "decade", X), "DATE_TRUNC to decade"),
        (call("date_diff", "century", X, X), "DATE_DIFF in centurys"),
        (call("strftime", X, "%U"), "The field %U of STRFTIME"),
        (call("like", X, X), "The function like"),
        (call("like", X, "a!b", "!"), "A pattern whose escape stands before a letter"),
        (call("ilike", X, "a", "E"), "ILIKE with a capital letter as its escape"),
        (Cast(X, "TIME"), "A time of day"),
        (Cast(X, "BIGINT[]"), "A list that is made of a text"),
        (Call("random", ()), "The function random"),
    ],
)
def test_what_spark_would_compute_otherwise_is_refused_by_name(node: Expression, what: str) -> None:
    with pytest.raises(Unspelled) as refused:
        PLAIN.expression(node)
    assert refused.value.what == what


def test_names_of_tables_that_need_quotes() -> None:
    assert view(PRIVATE, "people") == "private_people"
    assert (
        len(
            {
                view(kind, name)
                for kind in (PRIVATE, PUBLIC)
                for name in ("é", "_c3a9", "a b", "x`y")
            }
        )
        == 8
    )
    assert all(view(PRIVATE, name).isidentifier() for name in ("é", "a b", "x`y; DROP"))
    assert SCHEMA not in PLAIN.query(ROWS["public join"][0])


def test_texts_that_end_a_text(session: Any) -> None:
    hostile = ["'", "\\", "\\'", "''", "a\0b", "\\u0041", "\n", "`", '"', "--", "/*"]
    found = values(
        session,
        "SELECT " + ", ".join(f"{text_literal(each)} AS x{at}" for at, each in enumerate(hostile)),
    )
    assert found == hostile
    assert values(session, f"SELECT {PLAIN.expression(Constant('x'))} AS x") == ["x"]
