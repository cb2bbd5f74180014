"""What tests of engines share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from small_sources import Rows, kept, policy_of
from spark_servers import sail, started

from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.policy.engine import EngineChoice
from real_postgres import Server, server

_ALONE = "DISCREET_TEST_ALONE"  # set where a process runs one test
_SPARKS = {"local", "cluster_of_two"}  # fixtures of one test


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test with a Spark of its own in a process of its own: Java is started by a fork, which
    the threads of gRPC, of a process that has asked a Spark before, do not always survive.
    """
    if _ALONE in os.environ or not _SPARKS.intersection(pyfuncitem.fixturenames):
        return None
    kept = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")}
    this = f"{pyfuncitem.path}::{pyfuncitem.name}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", this],
        env=kept | {_ALONE: "1"},
        cwd=pyfuncitem.config.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return True


@pytest.fixture
def prepared(tmp_path: Path) -> Callable[..., dict[str, Rows]]:
    """Prepare tables from Python in a store of their own and give back what was kept; stores share
    the order's key.
    """
    made = 0

    def run(
        tables: str, sources: dict[str, pa.Table], *, threads: int | None = None
    ) -> dict[str, Rows]:
        nonlocal made
        made += 1
        policy = policy_of(tables, tmp_path)
        prepare(policy, sources, policy.store, made, threads=threads)
        engine = DuckDB.open(policy, made)
        try:
            return {
                name: kept(engine, name)
                for name, table in policy.tables.items()
                if not table.public
            }
        finally:
            engine.close()

    return run


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A Postgres of this run's own."""
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def embedded() -> Callable[[], EngineChoice]:
    return EngineChoice


@pytest.fixture(scope="session")
def database(postgres_server: Server) -> Callable[[], EngineChoice]:
    """A database of its own in that Postgres, each time."""
    return postgres_server.database


@pytest.fixture(scope="session")
def cluster() -> Callable[[], EngineChoice]:
    """Sail in the place of Spark."""
    return lambda: EngineChoice(name="spark", at=sail())


@pytest.fixture(scope="module")
def real_cluster() -> Iterator[Callable[[], EngineChoice]]:
    """A real Spark of one driver and two executors."""
    for choice in started("local-cluster[2,1,1024]"):
        yield lambda choice=choice: choice  # type: ignore[misc]
