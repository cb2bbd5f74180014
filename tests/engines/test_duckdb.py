"""The engine for questions: exact, locked down, interrupted in time, and silent about values."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from small_sources import policy_of

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.locked import connect
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.engines.duckdb.store import SnapshotFolder
from discreet.engines.limits.overrun import Overrun
from discreet.errors import EngineFailure, UsageError
from discreet.policy.policy import Policy

TABLES = """\
  people:
    owner: id
    columns: {name: text, pay: {integer: [0, 4611686018427387904]}}
  states: {public: true}
"""
SENTENCE = "The engine could not answer this question. The curator's log has the details."
SLOW = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    policy = policy_of(TABLES, tmp_path_factory.mktemp("engine"))
    people = pa.table(
        {"id": range(1000), "name": [f"SECRET{i}" for i in range(1000)], "pay": [2**62] * 1000}
    )
    states = pa.table({"code": ["NY", "MA", None], "people": [20, 7, 1]})
    prepare(policy, {"people": people, "states": states}, policy.store, 1)
    return policy


@pytest.fixture(scope="module")
def engine(policy: Policy) -> Iterator[DuckDB]:
    engine = DuckDB.open(policy, 1)
    yield engine
    engine.close()


def test_wide_sums_are_exact(engine: DuckDB) -> None:
    """SUM gives a HUGEINT; Arrow gets it as decimal128(38, 0), whose 128 bits are the number
    itself.
    """
    found = engine.read(
        "SELECT sum(pay) AS s, sum(-pay::HUGEINT) AS t, count(*) AS n FROM people", 5
    )
    assert found.schema.types == [pa.decimal128(38, 0), pa.decimal128(38, 0), pa.int64()]
    assert found.to_pylist() == [
        {"s": Decimal(1000 * 2**62), "t": Decimal(-1000 * 2**62), "n": 1000}
    ]
    edge = "170141183460469231731687303715884105727"  # 2^127 - 1, which has 39 digits
    assert engine.read(f"SELECT {edge}::HUGEINT AS s", 5).to_pylist() == [{"s": Decimal(edge)}]


def test_columns_and_public_tables(engine: DuckDB) -> None:
    assert engine.columns("people") == {"name": "VARCHAR", "pay": "BIGINT"}
    assert engine.columns("states") == {"code": "VARCHAR", "people": "BIGINT"}
    assert engine.columns("none") == {}
    assert engine.public_table("states").to_pylist() == [
        {"code": "MA", "people": 7},
        {"code": "NY", "people": 20},
        {"code": None, "people": 1},
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        "COPY people TO 'people.csv'",
        "ATTACH 'other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 1",
        "PRAGMA database_list",
        "EXPLAIN ANALYZE SELECT 1",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TEMP TABLE t AS SELECT 1",
        "DELETE FROM people",
        "EXPORT DATABASE 'x'",
        "CALL pragma_version()",
        "SELECT 1; SELECT 2",
        "",
        "SELECT",
        "SELECT * FROM visible_in_python",
        "SELECT error('SECRET')",
        "SELECT CAST(name AS INTEGER) FROM people",
        "SELECT sum(pay::HUGEINT * 10000000000000000000) FROM people",
    ],
)
def test_everything_else_is_one_fixed_sentence(
    engine: DuckDB, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    visible_in_python = pa.table({"a": [1]})  # noqa: F841
    with caplog.at_level(logging.DEBUG), pytest.raises(EngineFailure) as caught:
        engine.read(sql, 5)
    assert str(caught.value) == SENTENCE
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert [record.name for record in caplog.records] == ["discreet.engine"]
    assert caplog.records[0].getMessage().endswith(f"in: {sql}")
    assert "SECRET" not in caplog.text.replace(sql, "")


def test_the_configuration_stays(engine: DuckDB) -> None:
    wanted = {
        "enable_external_access": "false",
        "autoload_known_extensions": "false",
        "autoinstall_known_extensions": "false",
        "allow_community_extensions": "false",
        "allow_persistent_secrets": "false",
        "python_enable_replacements": "false",
        "lock_configuration": "true",
        "access_mode": "read_only",
    }
    listed = ", ".join(f"'{name}'" for name in wanted)
    found = engine.read(
        f"SELECT name, value FROM duckdb_settings() WHERE name IN ({listed})", 5
    ).to_pylist()
    assert {row["name"]: row["value"].lower() for row in found} == wanted


@pytest.mark.parametrize("names", [[], [None], [None, None, "b"]])
def test_no_statement_fails_for_what_statistics_say(
    tmp_path: Path, names: list[str | None]
) -> None:
    """The engine's optimizer knew that nobody has a name, and failed on that alone."""
    policy = policy_of(TABLES, tmp_path)
    numbers = pa.array(range(len(names)), pa.int64())
    people = pa.table({"id": numbers, "name": pa.array(names, pa.string()), "pay": numbers})
    prepare(
        policy,
        {"people": people, "states": pa.table({"code": ["NY"], "people": [20]})},
        policy.store,
        1,
    )
    found = DuckDB.open(policy, 1).read(
        "SELECT count(*) FROM people WHERE split_part(name, 'a', 1) = 'b'", 10.0
    )
    assert found.column(0).to_pylist() == [names.count("b")]


def test_a_question_is_stopped_in_time(engine: DuckDB) -> None:
    start = time.monotonic()
    with pytest.raises(Overrun) as caught:
        engine.read(SLOW, 0.3)
    # and it came to an end, which by itself it would not for hours
    assert time.monotonic() - start >= 0.3
    assert str(caught.value) == SENTENCE
    assert engine.read("SELECT 1 AS a", 5).to_pylist() == [{"a": 1}]


def test_stopping_one_question_stops_no_other(engine: DuckDB) -> None:
    """One is stopped three times while another one runs, which ends with its answer, however long
    it takes.
    """
    stopped: list[bool] = []

    def stop() -> None:
        for _ in range(3):
            with pytest.raises(Overrun):
                engine.read(SLOW, 0.1)
            stopped.append(True)

    thread = threading.Thread(target=stop)
    thread.start()
    while thread.is_alive():
        found = engine.read(
            "SELECT sum(a.range + b.range) AS n FROM range(20000) a, range(5000) b", 600
        )
        assert found.to_pylist() == [{"n": 20000 * 5000 * (19999 + 4999) // 2}]
    thread.join()
    assert len(stopped) == 3


def test_memory_has_a_limit(policy: Policy, tmp_path: Path) -> None:
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(SnapshotFolder(policy.store).file(1).read_bytes())
    engine = DuckDB(copy, memory=100 * 10**6)
    try:
        with pytest.raises(Overrun):
            engine.read(
                "SELECT length(string_agg(range::VARCHAR, ',')) AS n FROM range(40000000)", 60
            )
    finally:
        engine.close()


def test_threads_open_one_snapshot(policy: Policy) -> None:
    """Each sets what the others have set already, and locked."""

    def opened(number: int) -> Any:
        engine = DuckDB.open(policy, 1)
        return engine.read("SELECT count(*) AS n FROM people", 5)["n"][0].as_py()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(opened, range(40))) == {1000}


def test_threads_share_an_engine(engine: DuckDB) -> None:
    results: list[int] = []

    def ask() -> None:
        for _ in range(10):
            results.append(engine.read("SELECT count(*) AS n FROM people", 5).to_pylist()[0]["n"])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [1000] * 40


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_after_a_fork_it_refuses_instead_of_hanging(engine: DuckDB) -> None:
    child = os.fork()
    if child == 0:
        try:
            engine.read("SELECT 1", 5)
        except EngineFailure:
            engine.close()
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert engine.read("SELECT 1 AS a", 5).num_rows == 1


def test_a_snapshot_of_other_tables_is_not_used(policy: Policy) -> None:
    changed = policy_of(
        TABLES.replace("owner: id", "owner: id\n    max_rows: 2"), policy.path.parent
    )
    with pytest.raises(UsageError, match="Take a new one"):
        DuckDB.open(changed, 1)
    with pytest.raises(UsageError, match="no snapshot 2"):
        DuckDB.open(policy, 2)


def test_a_file_that_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "1.duckdb").write_text("torn")
    with pytest.raises(EngineFailure):
        DuckDB(tmp_path / "1.duckdb", memory=10**9)


def test_snapshots_are_listed_and_removed(tmp_path: Path) -> None:
    policy = policy_of("  people: {owner: id}\n", tmp_path)
    store = SnapshotFolder(policy.store)
    assert store.snapshots() == ()
    made = [
        prepare(policy, {"people": pa.table({"id": [1]})}, policy.store, number)
        for number in (1, 2, 11)
    ]
    assert store.snapshots() == tuple(made)
    assert [snapshot.number for snapshot in store.snapshots()] == [1, 2, 11]
    store.remove(2)
    assert [snapshot.number for snapshot in store.snapshots()] == [1, 11]
    assert not list(policy.store.glob("2.*"))
    store.notes(11).write_text("torn")
    with pytest.raises(UsageError, match="missing or damaged"):
        store.snapshots()


def test_conditions_between_outer_joins_are_kept() -> None:
    """DuckDB 2.0 loses `q.z IS NULL` here, and finds that everybody has a row that meets it."""
    with connect() as database:
        database.execute("CREATE TABLE people AS SELECT x, x > 0 AS z FROM range(3) AS t(x)")
        inner = "SELECT p.x FROM people AS p LEFT JOIN people AS q ON p.x = q.x WHERE q.z IS NULL"
        outer = f"people AS a LEFT JOIN ({inner}) AS b ON a.x = b.x WHERE b.x IS NULL"
        assert database.execute(f"SELECT COUNT(*) FROM {outer}").fetchall() == [(3,)]
