"""Tokens, literals and values of the Postgres door by themselves, some against Postgres's
documented forms.
"""

from __future__ import annotations

import datetime
import struct
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.policy.policy import Policy
from discreet.server.pgwire import types
from discreet.server.pgwire.commands import Portal, Prepared, State, parse_fetch, rows_of
from discreet.server.pgwire.faults import Fault, letters_before
from discreet.server.pgwire.lexer import split
from discreet.server.pgwire.parameters import decode, infer, literal, write_in
from discreet.server.pgwire.question import two_places
from discreet.server.settings import Settings
from server.running_server import POLICY


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", []),
        (";;  ; -- nothing\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';' ; SELECT 2;", ["SELECT ';'", "SELECT 2"]),
        ('SELECT "a;b"; b', ['SELECT "a;b"', "b"]),
        ("a /* ; /* ; */ ; */ b; c", ["a /* ; /* ; */ ; */ b", "c"]),
        ("a -- ;\n b", ["a -- ;\n b"]),
        ("SELECT $$;$$; SELECT $x$ $$;$$ $x$", ["SELECT $$;$$", "SELECT $x$ $$;$$ $x$"]),
        (r"SELECT E'\';' ; b", [r"SELECT E'\';'", "b"]),
        (r"SELECT '\' ; b", [r"SELECT '\'", "b"]),
        ("SELECT 'it''s;' ; b", ["SELECT 'it''s;'", "b"]),
        ('  /* {"app": "dbt"} */ SELECT 1', ["SELECT 1"]),
    ],
)
def test_messages_are_split_where_statements_end(sql: str, statements: list[str]) -> None:
    found = split(sql)
    assert [each.text for each in found] == statements
    for each in found:
        assert sql[each.offset : each.offset + len(each.text)] == each.text


@given(st.text(alphabet="';\"$a-/*\\\nE 1", max_size=40))
def test_every_text_is_split_or_refused(sql: str) -> None:
    try:
        found = split(sql)
    except Fault:
        return
    for each in found:
        assert [token.text for token in split(each.text)[0].tokens] == [
            token.text for token in each.tokens
        ]


@given(st.text(max_size=50))
def test_a_text_parameter_stays_one_token(value: str) -> None:
    """Whatever a value holds, it is written as one text and ends where it ends."""
    [statement] = split("SELECT $1 , $2")
    [written] = split(write_in(statement, [literal(value), "7"], most=10_000))
    kinds = [token.kind for token in written.tokens]
    assert kinds == ["word", "string", "symbol", "number"]
    assert written.tokens[1].name == value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-5, "(-5)"),
        (Decimal("1E-7"), "0.0000001"),
        (datetime.date(2024, 3, 1), "DATE '2024-03-01'"),
        (datetime.datetime(2024, 3, 1, 10, 0, 0, 500), "TIMESTAMP '2024-03-01 10:00:00.000500'"),
        (["a", "it's"], "ARRAY['a', 'it''s']"),
    ],
)
def test_values_as_literals(value: object, written: str) -> None:
    assert literal(value) == written


def test_any_of_a_list_is_an_in_list() -> None:
    [statement] = split("SELECT COUNT(*) FROM t WHERE a = ANY ($1) AND b = $2")
    written = write_in(statement, ["ARRAY['x', 'y']", "1"], most=100)
    assert written.endswith("WHERE a IN ('x', 'y') AND b = 1")
    assert write_in(statement, ["ARRAY[]", "1"], most=100).endswith("WHERE a IN (NULL) AND b = 1")


@pytest.mark.parametrize("text", ["1E+999999999", "-1e+500", "1E-999999999", "0E-999999999"])
@pytest.mark.parametrize("oid", [types.NUMERIC, types.FLOAT8, types.ARRAYS[types.NUMERIC]])
def test_a_number_of_endless_digits_is_refused(text: str, oid: int) -> None:
    """Ten letters would be a literal of a thousand million."""
    value = f"{{{text}}}" if oid in types.ELEMENTS else text
    with pytest.raises(Fault) as refusal:
        decode(value.encode(), oid, binary=False)
    assert refusal.value.code == "22P02"


@pytest.mark.parametrize("text", ["1.7976931348623157e308", "5e-324", "0", "-12.50"])
def test_every_float_is_a_value(text: str) -> None:
    found = decode(text.encode(), types.FLOAT8, binary=False)
    assert float(literal(found).strip("()")) == float(text)


def test_a_value_that_stands_in_many_places_is_refused_before_it_is_written() -> None:
    [statement] = split(f"SELECT {'$1,' * 20_000} 1")
    value = literal("a" * (1 << 20))  # 20 GB of statement
    with pytest.raises(Fault) as refusal:
        write_in(statement, [value], most=64_000)
    assert refusal.value.code == "54000"
    assert len(write_in(statement, ["1"], most=100_000)) <= 100_000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 WHERE " + " OR ".join(["a=$1"] * 10_000),
        "SELECT 1 WHERE a IN (" + ",".join(["$1"] * 20_000) + ")",
        f"SELECT {'(' * 20_000}1" + ")=$1" * 10_000,
        "SELECT " + ",".join(["7"] * 20_000) + "".join(f",${n}" for n in range(1, 1001)),
        f"SELECT {'(' * 20_000}1" + "".join(f")=${n}" for n in range(1, 1001)),
        "SELECT " + " ".join(f"a=${n}" for n in range(1, 1001)) + " b" * 25_000,
    ],
    ids=("or", "in", "brackets", "list", "deep", "names"),
)
def test_types_of_parameters_are_found_in_time_that_grows_with_the_statement(sql: str) -> None:
    """The connections' thread does it, and everybody waits: these took a minute each."""
    [statement] = split(sql)
    policy = Policy.parse(POLICY, path=Path("town.yaml"))
    began = time.process_time()
    infer(statement, (), policy)
    assert time.process_time() - began < 2


def test_types_of_parameters_follow_from_what_stands_beside_them() -> None:
    policy = Policy.parse(POLICY, path=Path("town.yaml"))
    sql = (
        "SELECT COUNT(*) FROM visits WHERE cost > $1 AND day IN ('2024-01-01', $2) AND $3 = zip "
        "AND CAST(age AS date) = $4 AND (lower(sex)) = $5 AND seen BETWEEN $6 AND $7 AND age = "
        "ANY ($8) LIMIT $9"
    )
    [statement] = split(sql)
    found = [each.oid for each in infer(statement, (), policy)]
    moments = [types.TIMESTAMP, types.TIMESTAMP]
    assert found[:5] == [types.NUMERIC, types.DATE, types.TEXT, types.DATE, types.TEXT]
    assert found[5:] == [*moments, types.ARRAYS[types.INT8], types.INT8]


def test_a_parameter_of_endless_digits_is_refused() -> None:
    [statement] = split(f"SELECT ${'9' * 5_000}")
    with pytest.raises(Fault):
        infer(statement, (), Policy.parse(POLICY, path=Path("town.yaml")))
    with pytest.raises(Fault):
        write_in(statement, (), most=64_000)


def _keep_until_refused(keep: Callable[[str], None]) -> int:
    for place in range(100):
        try:
            keep(f"number {place}")
        except Fault:
            return place
    raise AssertionError("all of it is kept")


def test_what_a_sessions_cursors_were_given_is_bounded() -> None:
    """Values of a megabyte in a thousand cursors were a gigabyte, which nothing counted."""
    state = State(settings=Settings({}))
    [short], [long] = split("SELECT $1"), split("SELECT " + "+" * 60_000)
    shared = Prepared(statement=short, parameters=())
    for place in range(500):
        state.keep_portal(f"small {place}", Portal(prepared=shared, literals=("'a'",)))
    large = Portal(prepared=shared, literals=("a" * (1 << 20),))
    assert 20 < _keep_until_refused(lambda name: state.keep_portal(name, large)) < 33
    state.portals.clear()

    def own() -> Prepared:
        return Prepared(statement=long, parameters=())

    assert _keep_until_refused(lambda name: state.keep_portal(name, Portal(prepared=own()))) == 4
    assert _keep_until_refused(lambda name: state.keep_statement(name, own())) == 4
    for _ in range(100):  # what was kept under the same name goes
        state.keep_portal("number 0", Portal(prepared=shared))


VALUES: list[tuple[object, pa.DataType, str]] = [
    (True, pa.bool_(), "t"),
    (-7, pa.int16(), "-7"),
    (-7, pa.int32(), "-7"),
    (2**62, pa.int64(), str(2**62)),
    (0.1, pa.float64(), "0.1"),
    (5.0, pa.float64(), "5"),
    (1e300, pa.float64(), "1e+300"),
    ("ä \\ '", pa.string(), "ä \\ '"),
    (Decimal("-1234567.0008"), pa.decimal128(20, 4), "-1234567.0008"),
    (Decimal("0.0001"), pa.decimal128(20, 4), "0.0001"),
    (Decimal("10000"), pa.decimal128(38, 0), "10000"),
    (Decimal(0), pa.decimal128(38, 0), "0"),
    (datetime.date(1999, 12, 31), pa.date32(), "1999-12-31"),
    (
        datetime.datetime(1999, 12, 31, 23, 59, 59, 500000),
        pa.timestamp("us"),
        "1999-12-31 23:59:59.5",
    ),
    (
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        pa.timestamp("us", "UTC"),
        "2024-01-01 00:00:00+00",
    ),
    (datetime.time(12, 30, 1), pa.time64("us"), "12:30:01"),
    (b"\x01\xff", pa.binary(), "\\x01ff"),
    ([1, None, 3], pa.list_(pa.int64()), "{1,NULL,3}"),
    (["a b", 'q"', "", "null"], pa.list_(pa.string()), '{"a b","q\\"","","null"}'),
]


@pytest.mark.parametrize(("value", "kind", "shown"), VALUES, ids=str)
def test_text_and_binary_hold_the_same_value(value: object, kind: pa.DataType, shown: str) -> None:
    table = pa.table([pa.array([value, None], kind)], ["x"])
    fields = types.fields_of(table.schema)
    assert types.rows(table, fields, [0]) == [(shown.encode(),), (None,)]
    [(binary,), (missing,)] = types.rows(table, fields, [1])
    assert missing is None
    assert binary is not None
    if fields[0].oid == types.BYTEA:
        assert binary == value
        return
    again = decode(binary, fields[0].oid, binary=True)
    expected = value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
    assert again == (Decimal(str(expected)) if isinstance(expected, float) else expected)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20
    )
)
def test_numbers_in_base_ten_thousand(value: Decimal) -> None:
    assert (
        decode(types.encoder(types.NUMERIC, binary=True)(value), types.NUMERIC, binary=True)
        == value
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (pa.MonthDayNano([15, -2, 1_500_000_000]), "1 year 3 mons -2 days +00:00:01.5"),
        (pa.MonthDayNano([0, 0, 0]), "00:00:00"),
        (pa.MonthDayNano([-14, 0, 0]), "-1 years -2 mons"),
        (pa.MonthDayNano([0, 1, -1_000_000_000]), "1 day -00:00:01"),
    ],
)
def test_intervals_as_postgres_writes_them(value: object, shown: str) -> None:
    assert types.encoder(types.INTERVAL, binary=False)(value) == shown.encode()


def test_what_has_no_counterpart_is_json() -> None:
    table = pa.table([pa.array([{"a": 1}]), pa.array([[["x"]]])], ["s", "l"])
    fields = types.fields_of(table.schema)
    assert [field.oid for field in fields] == [types.JSON, types.JSON]
    assert types.rows(table, fields, [0, 1]) == [(b'{"a": 1}', b'[["x"]]')]


@pytest.mark.parametrize(
    ("oid", "data", "binary"),
    [
        (types.INT4, b"x", False),
        (types.BOOL, b"maybe", False),
        (types.DATE, b"2024-13-01", False),
        (types.NUMERIC, b"NaN", False),
        (types.FLOAT8, struct.pack("!d", float("inf")), True),
        (types.INT8, b"\0", True),
        (types.NUMERIC, struct.pack("!HhHH", 0, 0, 0xC000, 0), True),
        (types.NUMERIC, struct.pack("!HhHH", 9, 0, 0, 0), True),
        (types.DATE, struct.pack("!i", 2**31 - 1), True),
        (types.TIMESTAMP, struct.pack("!q", 2**63 - 1), True),
        (1009, b"{a", False),
        (1009, struct.pack("!iii", 2, 0, 25), True),
        (1009, struct.pack("!iiiii", 1, 0, 25, 10**9, 1), True),
        (types.TEXT, b"\xff\xfe", False),
    ],
)
def test_what_is_no_value_is_refused(oid: int, data: bytes, binary: bool) -> None:
    with pytest.raises(Fault) as refused:
        decode(data, oid, binary=binary)
    assert refused.value.code in ("22P02", "22P03")


def test_lists_as_text() -> None:
    assert decode(b"{1,NULL,3}", 1016, binary=False) == [1, None, 3]
    assert decode(b'{"a, b","q\\"",null,"NULL"}', 1009, binary=False) == [
        "a, b",
        'q"',
        None,
        "NULL",
    ]
    assert decode(b"{}", 1009, binary=False) == []


def test_a_cursor_goes_as_postgres_goes() -> None:
    """Before the first row is 0, after the last of 3 is 4."""
    portal = Portal(prepared=Prepared(statement=None, parameters=()))
    walk = [
        ("FETCH 2 FROM c", [0, 1], 2),
        ("FETCH NEXT FROM c", [2], 3),
        ("FETCH FORWARD 5 FROM c", [], 4),
        ("FETCH BACKWARD 2 FROM c", [2, 1], 2),
        ("FETCH PRIOR FROM c", [0], 1),
        ("FETCH PRIOR FROM c", [], 0),
        ("FETCH ALL FROM c", [0, 1, 2], 4),
        ("FETCH BACKWARD ALL IN c", [2, 1, 0], 0),
        ("FETCH LAST c", [2], 3),
        ("FETCH 0 FROM c", [2], 3),
        ("FETCH ABSOLUTE -2 FROM c", [1], 2),
        ("FETCH RELATIVE 1 FROM c", [2], 3),
        ("FETCH ABSOLUTE 9 FROM c", [], 4),
        ("FETCH FIRST FROM c", [0], 1),
    ]
    for sql, rows, position in walk:
        assert rows_of(parse_fetch(split(sql)[0]), portal, 3) == rows, sql
        assert portal.position == position, sql


def test_places_count_letters() -> None:
    assert letters_before("ab\ncd", 2, 2) == 4
    assert letters_before("ab", 9, 9) == 2


def test_costs_have_decimals_and_are_rounded_up() -> None:
    assert [two_places(Fraction(each)) for each in ("0", "0.1", "1", "1/3", "1/1000000", "12")] == [
        *("0.00", "0.10", "1.00", "0.3334", "0.000001", "12.00")
    ]
