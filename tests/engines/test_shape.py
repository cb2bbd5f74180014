"""Statements of one shape bind alike, and what may make a difference is a part of the shape."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from discreet.algebra import Aggregate, Column, Expression, Scan, Sum, call
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.shape import shape
from discreet.engines.spelling import Spelling

X, Y = Column("t1", "x"), Column("t1", "y")


def counted(*where: Expression) -> Aggregate:
    return Aggregate(Scan("t", "t1"), (), (Sum(),), where)


def test_numbers_that_a_column_is_compared_with_are_told_by_their_order() -> None:
    assert shape(counted(X > 5, X < 3)) == shape(counted(X > 90, X < 2))
    assert shape(counted(X > 5, X < 3)) != shape(counted(X > 3, X < 5))
    assert shape(counted(X > 5, Y < 5)) != shape(counted(X > 5, Y < 6))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X > 5, X >= 5),
        (X > 5, Y > 5),
        (X > 5, X > 128),  # a longer type
        (X > 5, X > 70_000),
        (X > 2**31, X > 2**31 + 1),
        (X > -5, X > -6),
        (X > 5.5, X > 6.5),
        (X.equals(1), X.equals(True)),
        (X.equals("1"), X.equals("2")),
        (X.equals("?0"), X.equals(1)),
        (call("+", X, 1) > 5, call("+", X, 1) > 6),
        (X + 1 > Y, X + 2 > Y),
        (call("in", X, 1, 2), call("in", X, 1, 3)),
    ],
)
def test_everything_else_is_a_part_of_the_shape(one: Expression, other: Expression) -> None:
    assert shape(counted(one)) != shape(counted(other))


KINDS = (
    "TINYINT",
    "UTINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "DOUBLE",
    "DECIMAL(4, 2)",
    "DECIMAL(38, 2)",
)
ENDS = ((0, 127), (128, 255), (256, 2**15 - 1), (2**15, 2**16 - 1), (2**16, 2**31 - 1))


@pytest.mark.parametrize("kind", [*KINDS, "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIME"])
def test_statements_of_one_shape_bind_alike(kind: str) -> None:
    """For every type of column, sign and length: the least and the largest number of that
    length.
    """
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE t (x {kind})")
        for sign in ("=", "<>", "<", "<=", ">", ">="):
            for ends in ENDS:
                queries = [counted(call(sign, X, end)) for end in ends]
                assert shape(queries[0]) == shape(queries[1])
                assert len({_binds(database, query) for query in queries}) == 1


def _binds(database: duckdb.DuckDBPyConnection, query: Aggregate) -> bool:
    try:
        database.execute(f"PREPARE tried AS {Spelling().numbers(query)}")
    except duckdb.Error:
        return False
    return True


@pytest.mark.parametrize("value", [2**62, -(2**62), 2**63, -(2**63), 2**100, None])
def test_one_row_of_numbers_arrives_as_it_is(tmp_path: Path, value: int | None) -> None:
    """Sums of whatever length, and NULL; the same as by way of Arrow."""
    path = tmp_path / "numbers.db"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE t (x HUGEINT)")
        database.execute("INSERT INTO t VALUES (?)", [value])
    engine = DuckDB(path, memory=10**8)
    sql = "SELECT count(*) AS s0, sum(x) AS s1 FROM t"
    row, table = engine.read(sql, 10, one_row=True), engine.read(sql, 10)
    assert row.to_pylist() == [{"s0": 1, "s1": value}]
    assert row.column_names == table.column_names
    engine.close()
