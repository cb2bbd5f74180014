"""A real Spark, started by the test: the same rows and numbers as DuckDB's, and the same noise when
executors die.

Quick is one conformance run on local[2]; `make slow` asks all questions of plans.sql and kills
executors of a local cluster, from within the task that they run: so they die in the middle of it,
whenever that is.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from conformance import all_rows, opened, rows_of, store_on
from small_sources import policy_of
from spark_servers import started
from test_every_engine import EXPRESSIONS, ODD, VARIABLES, odd_rows
from test_spark import BY_WORD, ONE_KEY, THRESHOLD, allowed

from discreet.algebra import Aggregate, Column, Scan, Sum, call
from discreet.engines.engine import Engine
from discreet.engines.spark.workers import WriteFiles
from discreet.policy.engine import EngineChoice
from discreet.vault.exact import Exact

Made = TypeVar("Made")
WORDS = "  people:\n    owner: person\n    columns:\n      word: {text: true, nullable: true}\n"


@pytest.fixture
def local() -> Iterator[EngineChoice]:
    yield from started("local[2]")


@pytest.fixture
def cluster_of_two() -> Iterator[EngineChoice]:
    yield from started("local-cluster[2,1,1024]")


def by_word() -> pa.Table:
    words = [f"w{number % 31 * (number % 29)}" if number % 4 else None for number in range(3000)]
    return pa.table({"person": range(3000), "word": words})


def thresholded(engine: Engine, exact: Exact | None = None) -> list[Any]:
    held = exact or engine.fetch_parts(BY_WORD, 300, 100_000)
    survivors, numbers = allowed(bytes(range(32))).threshold(THRESHOLD, held, moved=ONE_KEY, keys=1)
    assert 0 < survivors.num_rows < 500
    return [survivors.to_pylist(), numbers.tolist()]


def tells_nobody() -> bool:
    """Return whether this process's Spark has neither pages nor an event log, which have exact
    numbers, and shuffles where only this account can read.
    """
    from pyspark import SparkContext

    set_to = SparkContext._active_spark_context.getConf().get
    folder = Path(set_to("spark.local.dir"))
    private = folder.stat().st_mode & 0o077 == 0 and any(folder.glob("blockmgr-*"))
    return private and {set_to("spark.ui.enabled"), set_to("spark.eventLog.enabled")} == {"false"}


@pytest.mark.timeout(900)
def test_a_real_spark_gives_the_same(local: EngineChoice, tmp_path: Path) -> None:
    """Rows that its workers prepare, values of some words, and noise that its workers draw."""
    policy, tables = policy_of(ODD, tmp_path), {"visits": odd_rows()}
    visits = Scan("visits", "v")
    with (
        opened(policy, EngineChoice(), tmp_path / "duckdb", tables) as truth,
        opened(policy, local, tmp_path / "spärk store", tables) as spark,
    ):
        assert all_rows(spark, policy, "visits") == all_rows(truth, policy, "visits")
        assert tells_nobody()
        row = tuple(
            Column("v", each) for each in ("word", "cost", "days", "day", "seen", "well", "kind")
        )
        # a few: all of them are tried on Sail
        texts = (call("||", Column("v", "word"), each) for each in VARIABLES)
        query = Aggregate(visits, (*row, *texts, *EXPRESSIONS[::9]), (Sum(),))
        assert rows_of(spark, query) == rows_of(truth, query)
        words = Aggregate(visits, (Column("v", "word"),), (Sum(),))
        exact = Exact(truth.fetch(words, 60).unwrap())
        survivors = [
            allowed(bytes(32)).threshold(THRESHOLD, each, moved=ONE_KEY, keys=1)[1].tolist()
            for each in (exact, spark.fetch_parts(words, 300, 100_000))
        ]
        assert survivors[0] == survivors[1]


# --- executors that die ---------------------------------------------------------------------------


def _kill_executor_once(marker: str) -> None:
    """On a worker: kill the Java process that this task runs for, the first time that anybody comes
    here.
    """
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    process = os.getppid()
    while b"java" not in Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0]:
        process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(process, signal.SIGKILL)


@dataclass(frozen=True)
class Dying:
    """A part of the vault's whose first executor dies when it has begun."""

    part: Any
    marker: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.part.columns)

    def __call__(self, table: pa.Table) -> pa.Table:
        made = self.part(table)
        _kill_executor_once(self.marker)
        return made


@dataclass(frozen=True, kw_only=True)
class DyingWriter:
    """Writes files; its first executor dies when one is written and not told yet."""

    writer: Any
    marker: str

    def __call__(self, batches: Any) -> Any:
        for batch in self.writer(batches):
            _kill_executor_once(self.marker)
            yield batch


@pytest.mark.slow  # a driver and two executors of a cluster: minutes
def test_executors_that_die(
    cluster_of_two: EngineChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows are prepared, while a threshold is drawn, during a question: the same rows, the
    same noise, once.
    """
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    died = tmp_path / "died preparing", tmp_path / "died drawing"
    policy = policy_of(WORDS, tmp_path)
    with opened(policy, EngineChoice(), tmp_path / "duckdb", {"people": by_word()}) as truth:
        expected = thresholded(truth, Exact(truth.fetch(BY_WORD, 60).unwrap()))
        store = store_on(policy, cluster_of_two, tmp_path / "spark")

        def dying(**fields: Any) -> DyingWriter:
            return DyingWriter(writer=WriteFiles(**fields), marker=str(died[0]))

        monkeypatch.setattr("discreet.engines.spark.prepare.WriteFiles", dying)
        store.build(1, {"people": by_word()})
        assert died[0].exists()
        spark = store.open(1)
        assert all_rows(spark, policy, "people") == all_rows(truth, policy, "people")
        made = spark._made  # type: ignore[attr-defined]
        monkeypatch.setattr(spark, "_made", lambda part, sql: made(Dying(part, str(died[1])), sql))
        assert thresholded(spark) == expected
        assert died[1].exists()
        hashed = Aggregate(
            Scan("people", "t"), (call("left", call("md5", Column("t", "word")), 1),), (Sum(),)
        )
        assert during_deaths(lambda: rows_of(spark, hashed, 600)) == rows_of(truth, hashed)
        spark.close()


def during_deaths(work: Callable[[], Made]) -> Made:
    """Return what work gives whose executors die in the middle: from its beginning they stand
    still, and they are killed when tasks are theirs.
    """
    from pyspark import SparkContext

    tracker, alive = SparkContext._active_spark_context.statusTracker(), executors()
    ended, killed = Event(), Event()

    def kill() -> None:
        while not ended.wait(0.005):
            stages = [tracker.getStageInfo(each) for each in tracker.getActiveStageIds()]
            if any(each is not None and each.numActiveTasks for each in stages):
                killed.set()
                break
        for each in alive:
            os.kill(each, signal.SIGKILL)

    for each in alive:
        os.kill(each, signal.SIGSTOP)
    killer = Thread(target=kill)
    killer.start()
    try:
        return work()
    finally:
        ended.set()
        killer.join()
        assert killed.is_set()


def executors() -> list[int]:
    """The processes of this Spark's executors; waits until one is there."""
    for _ in range(600):
        listed = subprocess.run(
            ["pgrep", "-f", "CoarseGrainedExecutorBackend"], capture_output=True, text=True
        )
        ours = [int(each) for each in listed.stdout.split() if _is_ours(int(each))]
        if ours:
            return ours
        time.sleep(0.1)
    raise AssertionError("There is no executor.")


def _is_ours(process: int) -> bool:
    """Whether a process comes from this one."""
    while process > 1:
        if process == os.getpid():
            return True
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False
