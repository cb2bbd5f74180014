"""Every kind of domain from every kind of source column: the stored value is what a plain reading
in Python gives.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines.duckdb.preparing import encode
from discreet.engines.source import loading
from discreet.policy.domain import (
    DOMAINS,
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Identifier,
    Integers,
    Texts,
    Timestamps,
)

F = Fraction


@pytest.fixture(scope="module")
def connection() -> Any:
    connection = loading(None)
    yield connection
    connection.close()


def encoded(
    connection: Any, domain: Domain, type_name: str, literals: list[str]
) -> list[tuple[Any, bool]]:
    """The stored value and whether it counts as clamped, through DuckDB, as columns and not as
    folded constants.
    """
    stored = encode.form_of(domain, "x", type_name, lookup="listed")
    if encode.is_long(domain):
        connection.register(
            "#list", pa.table({"#value": domain.values, "#code": range(domain.size)})
        )
        connection.execute('CREATE OR REPLACE TEMP TABLE listed AS FROM "#list"')
    rows = ", ".join(f"({place}, {each})" for place, each in enumerate(literals))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE t AS SELECT i, CAST(x AS {type_name}) AS x FROM (VALUES {rows}) v(i, x)"
    )
    sql = f"SELECT {stored.value}, coalesce({stored.clamped}, false), typeof({stored.value}) FROM t ORDER BY i"
    found = connection.execute(sql).fetchall()
    assert {row[2] for row in found} == {stored.type}
    return [(row[0], row[1]) for row in found]


def on_grid(domain: Integers | Decimals, value: Fraction | float | None) -> tuple[int | None, bool]:
    """The rule in Python: NaN is NULL, clamp, then to the nearest step with halves away from
    zero.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None, False
    if value < domain.lo:
        return domain.first, True
    if value > domain.hi:
        return domain.last, True
    steps = Fraction(value) / domain.step
    return (1 if steps > 0 else -1) * math.floor(abs(steps) + F(1, 2)), False


NUMERIC = [
    Integers(lo=0, hi=120),
    Integers(lo=-5, hi=7),
    Integers(lo=-(2**62), hi=2**62),
    Integers(lo=2**53 - 1, hi=2**53 + 5),
    Decimals(lo=F(0), hi=F(200000), step=F(1, 100)),
    Decimals(lo=F(-1), hi=F(1), step=F(1, 8)),
    Decimals(lo=F(-30), hi=F(300), step=F(5)),
    Decimals(lo=F(1, 4), hi=F(3, 4), step=F(1, 4)),
    Decimals(lo=F(0), hi=F(10) ** 20, step=F(1000)),
    Decimals(lo=F(0), hi=F(1), step=F(1, 10**18)),
]
WHOLE_NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    5,
    7,
    8,
    119,
    120,
    121,
    127,
    -128,
    2**31,
    -(2**31),
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
]


@pytest.mark.parametrize("domain", NUMERIC, ids=str)
@pytest.mark.parametrize(
    "type_name", ["TINYINT", "INTEGER", "BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(38,0)", "UTINYINT"]
)
def test_whole_numbers_exactly(
    connection: Any, domain: Integers | Decimals, type_name: str
) -> None:
    bits = {"TINYINT": 7, "INTEGER": 31, "BIGINT": 63, "HUGEINT": 90, "DECIMAL(38,0)": 90}
    low, high = (-(2 ** bits[type_name]), 2 ** bits[type_name]) if type_name in bits else (0, 200)
    fitting = [value for value in [*WHOLE_NUMBERS, 10**20, -(10**20)] if low <= value < high]
    found = encoded(connection, domain, type_name, [*map(str, fitting), "NULL"])
    assert found == [on_grid(domain, F(value)) for value in fitting] + [(None, False)]


@pytest.mark.parametrize("domain", NUMERIC[:8], ids=str)
@pytest.mark.parametrize("type_name", ["DOUBLE", "FLOAT", "VARCHAR"])
def test_doubles_with_nan_and_infinities(
    connection: Any, domain: Integers | Decimals, type_name: str
) -> None:
    values = [
        0.0,
        -0.0,
        0.25,
        0.375,
        0.5,
        1.0,
        1.5,
        2.5,
        -2.5,
        7.5,
        36.6,
        120.4,
        1e300,
        -1e300,
        math.nan,
        math.inf,
        -math.inf,
    ]
    values = [
        value
        for value in values
        if type_name != "FLOAT" or abs(value) < 1e30 or math.isinf(value) or math.isnan(value)
    ]
    held = [
        float(connection.execute(f"SELECT '{value}'::{type_name}::DOUBLE").fetchone()[0])
        for value in values
    ]
    found = encoded(connection, domain, type_name, [f"'{value}'" for value in values])
    assert found == [
        on_grid(domain, value if not math.isfinite(value) else F(value)) for value in held
    ]


def test_decimals_and_text(connection: Any) -> None:
    cents = Decimals(lo=F(0), hi=F(200000), step=F(1, 100))
    amounts = ["0.01", "0.29", "1.005", "123456.78", "200000.00", "200000.01", "-3.00"]
    found = encoded(connection, cents, "DECIMAL(12,3)", amounts)
    assert [value for value, _ in found] == [1, 29, 101, 12345678, 20000000, 20000000, 0]
    assert [clamped for _, clamped in found] == [False] * 5 + [True] * 2
    words = ["'12'", "' 12.345 '", "'1e3'", "'12 EUR'", "''", "'abc'", "NULL", "'nan'", "'1e400'"]
    assert [value for value, _ in encoded(connection, cents, "VARCHAR", words)] == [
        1200, 1235, 100000, None, None, None, None, None, 20000000,
    ]  # fmt: skip
    assert encoded(connection, cents, "BOOLEAN", ["true", "false"]) == [(100, False), (0, False)]


@settings(max_examples=25)
@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 10**9),
    st.fractions(F(1, 10**4), 10**4, max_denominator=10**4),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20),
    st.lists(st.floats(width=64), min_size=1, max_size=20),
)
def test_any_grid(
    first: int, more: int, step: Fraction, whole: list[int], floats: list[float]
) -> None:
    domain = Decimals(lo=first * step, hi=(first + more) * step, step=step)
    connection = duckdb.connect()
    near = [*whole, int(domain.lo), int(domain.hi), int(domain.lo + more // 2 * step)]
    near = [value for value in near if -(2**63) <= value < 2**63]
    assert encoded(connection, domain, "BIGINT", list(map(str, near))) == [
        on_grid(domain, F(each)) for each in near
    ]
    for value, (steps, _) in zip(
        floats,
        encoded(connection, domain, "DOUBLE", [f"'{each!r}'" for each in floats]),
        strict=True,
    ):
        assert (steps is None) == math.isnan(value)
        assert steps is None or domain.first <= steps <= domain.last
        if steps is not None and math.isfinite(value) and domain.lo <= F(value) <= domain.hi:
            assert abs(steps - F(value) / step) < F(501, 1000)  # a double times q/p rounds twice


def test_listed_values(connection: Any) -> None:
    words = Categories(values=("b", "a", "it's", ""))
    texts = ["'a'", "'b'", "'A'", "'it''s'", "''", "'b '", "NULL"]
    assert [value for value, _ in encoded(connection, words, "VARCHAR", texts)] == [
        1,
        0,
        None,
        2,
        3,
        None,
        None,
    ]
    assert [
        value for value, _ in encoded(connection, words, "ENUM('a','z')", ["'a'", "'z'", "NULL"])
    ] == [
        1,
        None,
        None,
    ]
    numbers = Categories(values=(3, -1, 10**18))
    for type_name in ("BIGINT", "HUGEINT", "VARCHAR"):
        found = encoded(
            connection, numbers, type_name, ["'3'", "'-1'", "'1000000000000000000'", "'4'", "NULL"]
        )
        assert [value for value, _ in found] == [0, 1, 2, None, None]
    for type_name in ("DOUBLE", "VARCHAR", "DECIMAL(4,1)"):
        found = encoded(connection, numbers, type_name, ["'3.0'", "'2.6'", "'3.5'", "'-1'"])
        assert [value for value, _ in found] == [
            None if type_name == "VARCHAR" else 0,
            None,
            None,
            1,
        ]
    assert [
        value for value, _ in encoded(connection, numbers, "DOUBLE", ["'nan'", "'inf'", "'-1e300'"])
    ] == [None] * 3


@pytest.mark.parametrize(
    ("size", "type_name"), [(256, "UTINYINT"), (257, "USMALLINT"), (70000, "UINTEGER")]
)
def test_long_lists(connection: Any, size: int, type_name: str) -> None:
    domain = Categories(values=tuple(f"v{place}" for place in range(size)))
    assert encode.form_of(domain, "x", "VARCHAR").type == type_name
    assert encoded(connection, domain, "VARCHAR", [f"'v{size - 1}'", "'v0'", "'w'"]) == [
        (size - 1, False),
        (0, False),
        (None, False),
    ]


@pytest.mark.parametrize(
    ("domain", "type_name"),
    [
        (Integers(lo=0, hi=127), "TINYINT"),
        (Integers(lo=-128, hi=0), "TINYINT"),
        (Integers(lo=0, hi=128), "SMALLINT"),
        (Integers(lo=-32769, hi=0), "INTEGER"),
        (Integers(lo=0, hi=2**31), "BIGINT"),
        (Decimals(lo=F(0), hi=F(1), step=F(1, 100)), "TINYINT"),
        (Decimals(lo=F(0), hi=F(200000), step=F(1, 100)), "INTEGER"),
    ],
)
def test_the_smallest_type_that_fits(domain: Domain, type_name: str) -> None:
    assert encode.form_of(domain, "x", "DOUBLE").type == type_name


def test_booleans(connection: Any) -> None:
    for type_name in ("INTEGER", "DOUBLE", "DECIMAL(3,1)"):
        found = encoded(connection, Booleans(), type_name, ["1", "0", "2", "NULL"])
        assert [value for value, _ in found] == [True, False, None, None]
    words = ["'true'", "'F'", "'1'", "'perhaps'", "NULL"]
    assert [value for value, _ in encoded(connection, Booleans(), "VARCHAR", words)] == [
        True,
        False,
        True,
        None,
        None,
    ]
    assert [value for value, _ in encoded(connection, Booleans(), "BOOLEAN", ["true", "NULL"])] == [
        True,
        None,
    ]


def test_dates(connection: Any) -> None:
    year = Dates(lo=date(2024, 1, 1), hi=date(2024, 12, 31))
    days = [
        "'2023-12-31'",
        "'2024-01-01'",
        "'2024-05-06'",
        "'2025-01-01'",
        "'infinity'",
        "'-infinity'",
        "NULL",
    ]
    expected = [year.lo, year.lo, date(2024, 5, 6), year.hi, year.hi, year.lo, None]
    clamped = [True, False, False, True, True, True, False]
    for type_name in ("DATE", "TIMESTAMP", "TIMESTAMP_NS"):
        asked = days if type_name != "TIMESTAMP_NS" else days[:4]
        assert (
            encoded(connection, year, type_name, asked)
            == list(zip(expected, clamped, strict=True))[: len(asked)]
        )
    words = [
        "'2024-05-06'",
        "'2024-05-06 23:59:59'",
        "'6.5.2024'",
        "'2024-13-01'",
        "''",
        "'2030-01-01'",
    ]
    found = encoded(connection, year, "VARCHAR", words)
    assert [value for value, _ in found] == [
        date(2024, 5, 6),
        date(2024, 5, 6),
        None,
        None,
        None,
        year.hi,
    ]
    zoned = encoded(connection, year, "TIMESTAMP WITH TIME ZONE", ["'2024-05-06 01:00:00+02'"])
    assert zoned == [(date(2024, 5, 5), False)]


@pytest.mark.parametrize("step", [F(1), F(1, 10**6), F(900), F(86400 * 7)])
def test_timestamps_go_back_to_the_step(connection: Any, step: Fraction) -> None:
    lo = datetime(2023, 12, 25, 0, 0, 0, 250)
    domain = Timestamps(lo=lo, hi=lo + timedelta(days=70), step=step)
    moments = [
        lo - timedelta(microseconds=1),
        lo,
        lo + timedelta(seconds=0.999999),
        lo + timedelta(days=9, hours=3, seconds=7),
    ]
    moments += [domain.hi - timedelta(microseconds=1), domain.hi, domain.hi + timedelta(days=1)]
    found = encoded(
        connection,
        domain,
        "TIMESTAMP",
        [*(f"'{each}'" for each in moments), "'infinity'", "'-infinity'", "NULL"],
    )
    inside = [max(lo, min(domain.hi, each)) for each in moments]
    width = timedelta(microseconds=int(step * 10**6))
    expected: list[datetime | None] = [lo + (each - lo) // width * width for each in inside]
    assert [value for value, _ in found] == [*expected, domain.hi, lo, None]
    assert [clamped for _, clamped in found] == [
        True,
        False,
        False,
        False,
        False,
        False,
        True,
        True,
        True,
        False,
    ]


def test_timestamps_are_in_utc(connection: Any) -> None:
    domain = Timestamps(lo=datetime(2024, 1, 1), hi=datetime(2025, 1, 1), step=F(1))
    noon = datetime(2024, 5, 6, 12, tzinfo=UTC).replace(tzinfo=None)
    texts = [
        "'2024-05-06T12:00:00Z'",
        "'2024-05-06 14:00:00+02'",
        "'2024-05-06 12:00:00'",
        "'noon'",
    ]
    assert [value for value, _ in encoded(connection, domain, "VARCHAR", texts)] == [
        noon,
        noon,
        noon,
        None,
    ]
    assert encoded(connection, domain, "TIMESTAMP WITH TIME ZONE", texts[1:2]) == [(noon, False)]
    assert encoded(connection, domain, "DATE", ["'2024-05-06'"]) == [(datetime(2024, 5, 6), False)]


def test_text_and_identifiers_stay(connection: Any) -> None:
    assert encoded(connection, Texts(), "VARCHAR", ["' a '", "''", "NULL"]) == [
        (" a ", False),
        ("", False),
        (None, False),
    ]
    assert encoded(connection, Texts(), "BIGINT", ["12"]) == [("12", False)]
    assert encoded(connection, Identifier(), "BIGINT", ["12", "NULL"]) == [
        (12, False),
        (None, False),
    ]
    assert encoded(connection, Identifier(), "DOUBLE", ["12", "12.5"]) == [
        ("12", False),
        ("12.5", False),
    ]
    assert encoded(connection, Texts(letters=2), "VARCHAR", ["'éé'", "'abc'"]) == [
        ("éé", False),
        (None, False),
    ]
    long = ["repeat('x', 1000)", "repeat('x', 1001)"]
    for domain in (Texts(), Identifier()):
        assert encoded(connection, domain, "VARCHAR", long) == [("x" * 1000, False), (None, False)]
        assert encode.form_of(domain, "x", "VARCHAR").type == "VARCHAR"


@pytest.mark.parametrize(
    "type_name", ["BIGINT", "DOUBLE", "FLOAT", "DECIMAL(12,4)", "SMALLINT", "HUGEINT"]
)
def test_a_number_is_spelled_alike_in_every_type(connection: Any, type_name: str) -> None:
    """2138 and 2138.0 were two keys: one file of floats renamed the groups of everybody."""
    numbers = ["2138", "0", "-7", "-0.0", "20", "NULL"]
    assert [row[0] for row in encoded(connection, Texts(), type_name, numbers)] == [
        "2138",
        "0",
        "-7",
        "0",
        "20",
        None,
    ]


def test_every_domain_says_what_it_accepts() -> None:
    examples: dict[type, Domain] = {
        type(each): each for each in (NUMERIC[0], NUMERIC[4], Booleans(), Texts(), Identifier())
    }
    examples |= {
        Categories: Categories(values=("a",)),
        Dates: Dates(lo=date(2024, 1, 1), hi=date(2024, 1, 1)),
    }
    examples |= {
        Timestamps: Timestamps(lo=datetime(2024, 1, 1), hi=datetime(2024, 1, 1), step=F(1))
    }
    assert set(examples) == set(DOMAINS)
    for domain in examples.values():
        assert encode.TEXT in encode.acceptable_kinds(domain)
        assert encode.OTHER not in encode.acceptable_kinds(domain)
    for type_name in (
        "BLOB",
        "INTEGER[]",
        "DECIMAL(3,2)[]",
        "STRUCT(a INTEGER)",
        "INTERVAL",
        "TIME",
        "UHUGEINT",
        "",
    ):
        assert encode.family(type_name) == encode.OTHER


@pytest.mark.parametrize(
    ("types", "common"),
    [
        (["BIGINT"], "BIGINT"),
        (["INTEGER", "DOUBLE", "UINTEGER"], "BIGINT"),
        (["BIGINT", "UBIGINT"], "HUGEINT"),
        (["DECIMAL(10,0)"], "HUGEINT"),
        (["BIGINT", "VARCHAR"], encode.NUMBERS),
        (["BIGINT", "DECIMAL(10,2)"], encode.NUMBERS),
        (["UUID", "UUID"], "UUID"),
        (["UUID", "VARCHAR"], "VARCHAR"),
        (["DECIMAL(10,2)"], encode.NUMBERS),
        (["TIMESTAMP"], "VARCHAR"),
    ],
)
def test_keys_get_one_type(types: list[str], common: str) -> None:
    assert encode.key_type(types) == common


def test_keys_that_name_nobody(connection: Any) -> None:
    def keys(type_name: str, common: str, *literals: str) -> list[Any]:
        rows = ", ".join(f"({place}, {each})" for place, each in enumerate(literals))
        sql = (
            f"FROM (SELECT i, CAST(x AS {type_name}) AS x FROM (VALUES {rows}) v(i, x)) ORDER BY i"
        )
        return [
            row[0]
            for row in connection.execute(
                f"SELECT {encode.key('x', type_name, common)} {sql}"
            ).fetchall()
        ]

    assert keys("DOUBLE", "BIGINT", "'7'", "'7.5'", "'nan'", "'inf'", "'1e300'", "NULL") == [
        7,
        *[None] * 5,
    ]
    assert keys("VARCHAR", "VARCHAR", "'7'", "'07'", "''", "'  '", "NULL") == [
        "7",
        "07",
        None,
        None,
        None,
    ]
    assert keys("BIGINT", "VARCHAR", "7", "NULL") == ["7", None]
    assert keys("UBIGINT", "HUGEINT", "18446744073709551615") == [2**64 - 1]
    assert keys("DECIMAL(10,0)", "HUGEINT", "7") == [7]
    assert keys("VARCHAR", "VARCHAR", "repeat('7', 1000)", "repeat('7', 1001)") == [
        "7" * 1000,
        None,
    ]
    for type_name in ("DECIMAL(10,2)", "DOUBLE", "VARCHAR"):
        assert keys(type_name, encode.NUMBERS, "'7.0'", "'7.50'", "'100'", "'-3.00'") == [
            "7",
            "7.5",
            "100",
            "-3",
        ]
    assert keys("VARCHAR", encode.NUMBERS, "'a.0'", "'7.'", "''") == ["a.0", "7.", None]
