"""Columns of every type of DuckDB's, copied to Postgres in the binary form of COPY."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from test_postgres_source import made

from discreet.engines.postgres.tables import copy_rows, create_table
from discreet.engines.readers.postgres import Postgres
from real_postgres import Server

psycopg = pytest.importorskip("psycopg")
_WHOLE = {
    "TINYINT": 2**7,
    "SMALLINT": 2**15,
    "INTEGER": 2**31,
    "BIGINT": 2**63,
    "HUGEINT": 2**127,
}
_CODES = {
    "UTINYINT": 2**8,
    "USMALLINT": 2**16,
    "UINTEGER": 2**32,
    "UBIGINT": 2**64,
    "UHUGEINT": 2**128,
}
# a type; values as DuckDB reads them; what Postgres writes of each
VALUES: dict[str, dict[str, str]] = {
    **{
        kind: {str(value): str(value) for value in (-most, 1 - most, -1, 0, 1, most - 1)}
        for kind, most in _WHOLE.items()
    },
    **{kind: {str(value): str(value) for value in (0, 1, most - 1)} for kind, most in _CODES.items()},
    "BOOLEAN": {"true": "true", "false": "false"},
    "DECIMAL(1,0)": {"-9": "-9", "0": "0", "9": "9"},
    "DECIMAL(3,3)": {"-0.999": "-0.999", "0.001": "0.001", "0": "0.000"},
    "DECIMAL(5,2)": {"-999.99": "-999.99", "0.05": "0.05", "12.5": "12.50"},
    "DECIMAL(18,5)": {"-1234567890123.45678": "-1234567890123.45678", "10000": "10000.00000"},
    "DECIMAL(38,0)": {"9" * 38: "9" * 38, "-" + "9" * 38: "-" + "9" * 38},
    "DECIMAL(38,37)": {"9." + "9" * 37: "9." + "9" * 37, "-1": "-1." + "0" * 37},
    "DECIMAL(38,38)": {"-0." + "9" * 38: "-0." + "9" * 38, "0." + "0" * 37 + "1": "0." + "0" * 37 + "1"},
    "DOUBLE": {
        "nan": "NaN",
        "inf": "Infinity",
        "-inf": "-Infinity",
        "-0.0": "-0",
        "0.1": "0.1",
        "5e-324": "5e-324",
        "1.7976931348623157e308": "1.7976931348623157e+308",
    },
    "FLOAT": {"nan": "NaN", "0.1": "0.1", "-3.4028235e38": "-3.4028235e+38"},
    "DATE": {
        "1970-01-01": "1970-01-01",
        "2000-01-01": "2000-01-01",
        "1999-12-31": "1999-12-31",
        "0001-01-01": "0001-01-01",
        "0044-03-15 (BC)": "0044-03-15 BC",
        "infinity": "infinity",
        "-infinity": "-infinity",
    },
    **{
        kind: {
            "1970-01-01 00:00:00": "1970-01-01 00:00:00",
            "1999-12-31 23:59:59": "1999-12-31 23:59:59",
            "infinity": "infinity",
            "-infinity": "-infinity",
        }
        for kind in ("TIMESTAMP_S", "TIMESTAMP_MS")
    },
    "TIMESTAMP": {
        "1999-12-31 23:59:59.999999": "1999-12-31 23:59:59.999999",
        "9999-12-31 00:00:00": "9999-12-31 00:00:00",
        "infinity": "infinity",
        "-infinity": "-infinity",
    },
    "TIMESTAMP WITH TIME ZONE": {
        "2024-02-29 23:00:00+05:30": "2024-02-29 17:30:00+00",
        "infinity": "infinity",
    },
    "TIME": {"00:00:00": "00:00:00", "23:59:59.999999": "23:59:59.999999", "24:00:00": "24:00:00"},
    "UUID": {
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "ffffffff-ffff-ffff-ffff-ffffffffffff": "ffffffff-ffff-ffff-ffff-ffffffffffff",
    },
    "VARCHAR": {
        each: each
        for each in ("", " ", "a", "é", "\U0001f600", '"', "\\N", "\\.", "a,b", "\n", "\r\n", "NULL", "x" * 9_999)
    },
    "INTERVAL": {"1 year 2 days": "1 year 2 days"},
    "INTEGER[]": {"[1, NULL]": "[1, NULL]"},
    "TIME WITH TIME ZONE": {"10:00:00+02": "10:00:00+02"},
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_every_value_arrives(kind: str, postgres_server: Server) -> None:
    """Beside NULLs, among few rows and many, and beside columns of other types."""
    values = VALUES[kind]
    prepared = duckdb.connect()
    prepared.execute("SET TimeZone = 'UTC'")
    prepared.execute(f"CREATE TABLE t (place BIGINT, x {kind}, more VARCHAR, same {kind})")
    rows = [(place, None if place % 3 == 2 else each) for place, each in enumerate([*values] * 5)]
    for place, each in rows:
        prepared.execute("INSERT INTO t VALUES (?, ?, ?, ?)", [place, each, each, each])
    columns = {"place": "BIGINT", "x": kind, "more": "VARCHAR", "same": kind}
    with psycopg.connect(made(postgres_server, "CREATE SCHEMA discreet_1")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET DateStyle = 'ISO, YMD'")
        connection.execute("CREATE SCHEMA discreet_2; CREATE SCHEMA discreet_2_empty")
        create_table(connection, 2, "t", columns)
        assert copy_rows(prepared, "FROM t", connection, 2, "t", columns) == len(rows)
        sql = "SELECT place, x::text, more, same::text FROM discreet_2.t ORDER BY place"
        found = connection.execute(sql).fetchall()
    expected = []
    for place, each in rows:
        text = None if each is None else values[each]
        expected.append((place, text, each, text))
    assert found == expected


def test_whole_numbers_and_decimals_at_random(postgres_server: Server) -> None:
    """Whatever their digits and signs: as DuckDB has them."""
    prepared = duckdb.connect()
    prepared.execute(
        "CREATE TABLE u AS SELECT i, (hash(i)::HUGEINT * (hash(i, 1) >> 1)::HUGEINT - (1::HUGEINT << 126)) "
        "// CAST(power(10, i % 30) AS HUGEINT) AS h, CAST((hash(i, 2) % 2000001)::BIGINT - 1000000 AS "
        "DECIMAL(30, 7)) * 0.0000001 AS d, CAST(hash(i, 3)::DOUBLE / 1e9 AS DECIMAL(18, 1)) AS e "
        "FROM range(5000) AS r(i)"
    )
    columns = {row[0]: row[1] for row in prepared.execute("DESCRIBE u").fetchall()}
    assert columns["h"] == "HUGEINT"
    assert columns["d"].startswith("DECIMAL")
    expected = prepared.execute("FROM u ORDER BY i").fetchall()
    with psycopg.connect(made(postgres_server, "CREATE SCHEMA discreet_1")) as connection:
        connection.execute("CREATE SCHEMA discreet_2; CREATE SCHEMA discreet_2_empty")
        create_table(connection, 2, "u", columns)
        copy_rows(prepared, "FROM u", connection, 2, "u", columns)
        found = connection.execute("SELECT i, h, d, e FROM discreet_2.u ORDER BY i").fetchall()
    assert [(i, int(h), d, e) for i, h, d, e in found] == expected
    assert len({h for _, h, _, _ in found}) > 4_900
    assert isinstance(found[0][2], Decimal)


def test_a_live_table_is_read_some_rows_at_a_time(postgres_server: Server) -> None:
    """And from its beginning each time, as of one moment."""
    sql = (
        "CREATE TABLE t AS SELECT i AS p, repeat('x', 99) AS x FROM generate_series(1, 100000) AS i"
    )
    address = made(postgres_server, sql)
    with Postgres(address=address).read({"t": None}) as tables:
        stream: Any = tables["t"]
        sizes = [batch.num_rows for batch in pa.RecordBatchReader.from_stream(stream)]
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("DELETE FROM t")
        assert pa.table(stream).num_rows == sum(sizes) == 100_000
    assert max(sizes) < 20_000
