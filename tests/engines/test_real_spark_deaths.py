"""Executors and drivers that die under a curator: one charge, and the answer of a run in which
nobody died.

The run in which nobody died is asked of a copy of the policy's folder, which is taken when the
question was charged and nothing was read yet: the same charge's key, another curator.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import test_real_spark
from conformance import all_rows, opened, store_on
from test_real_spark import Dying, DyingWriter, cluster_of_two, during_deaths, local

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.spark.engine import Spark
from discreet.engines.spark.workers import WriteFiles
from discreet.engines.stores import store_of
from discreet.policy.engine import EngineChoice
from discreet.policy.policy import Policy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
__all__ = ["cluster_of_two", "local"]  # fixtures

PEOPLE, VISITS = 6_000, 60_000
POLICY = """\
source: data
unit: person
engine: {name: spark, at: "MASTER"}
budget: {epsilon: 100, delta: 1e-3}
limits: {epsilon: 20, seconds: 600}
analysts: {alice: {epsilon: 90}}
tables:
  visits:
    owner: person
    max_rows: 8
    columns:
      cost: {integer: [0, 1000]}
      word: text
"""
BY_WORD = "SELECT word, COUNT(*), SUM(cost) FROM visits GROUP BY word"
OF_ALL = "SELECT COUNT(*), SUM(cost), MEDIAN(cost) FROM visits"


def visits() -> pa.Table:
    """Of people of whom most have too many rows; some words are everybody's, most are rare."""
    places = range(VISITS)
    return pa.table(
        {
            "person": [at * 7919 % PEOPLE for at in places],
            "cost": [at * 31 % 1100 for at in places],
            "word": [f"w{at % 40 if at % 3 else at}" for at in places],
        }
    )


def town(folder: Path, master: str) -> Path:
    """A policy's folder, with its source in four files and an empty ledger."""
    (folder / "data/visits").mkdir(parents=True)
    whole, step = visits(), VISITS // 4
    for number in range(4):
        pq.write_table(whole.slice(number * step, step), folder / f"data/visits/{number}.parquet")
    (folder / "policy.yaml").write_text(POLICY.replace("MASTER", master))
    create_ledger(Policy.read(folder / "policy.yaml"))
    return folder / "policy.yaml"


def told(curator: Curator, question: str, epsilon: int) -> bytes:
    """All that the answer to a question says, in bytes."""
    answer = curator.ask(question, analyst="alice", epsilon=epsilon)
    return json.dumps(answer.as_json(), sort_keys=True).encode()


def charges(curator: Curator) -> list[tuple[str, float]]:
    return [(entry.state, float(entry.cost.amount)) for entry in curator.ledger()]


# --- executors ------------------------------------------------------------------------------------


def dying_writers(marker: Path) -> Callable[..., DyingWriter]:
    def made(**fields: Any) -> DyingWriter:
        return DyingWriter(writer=WriteFiles(**fields), marker=str(marker))

    return made


class Disturbed:
    """Stands where the engine reads: copies the folder first, then lets an executor die."""

    def __init__(self, folder: Path, copy: Path) -> None:
        self.folder, self.copy = folder, copy
        self.markers = list[Path]()

    def copy_once(self) -> None:
        if not self.copy.exists():
            shutil.copytree(self.folder, self.copy)

    def on_workers(self, engine: Any, part: Any, sql: str, made: Any = Spark._made) -> pa.Table:
        """What the vault sends to the workers: the first of them to have done it dies."""
        self.copy_once()
        self.markers.append(self.copy.parent / f"{self.copy.name} died {len(self.markers)}")
        return made(engine, Dying(part, str(self.markers[-1])), sql)

    def in_a_question(self, engine: Any, sql: str, read: Any = Spark._read) -> pa.Table:
        """A statement whose executors die in the middle."""
        self.copy_once()
        return during_deaths(lambda: read(engine, sql))


def test_executors_that_die_under_a_curator(
    cluster_of_two: EngineChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a snapshot is prepared, while a threshold is drawn, during a question."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(test_real_spark)
    path, died = town(tmp_path / "town", str(cluster_of_two.at)), tmp_path / "died preparing"
    policy = Policy.read(path)
    with opened(policy, EngineChoice(), tmp_path / "duckdb", {"visits": visits()}) as truth:
        store_on(policy, cluster_of_two, policy.store)  # the same order's key
        with monkeypatch.context() as patch:
            patch.setattr("discreet.engines.spark.prepare.WriteFiles", dying_writers(died))
            curator = discreet.open(path)
        assert died.exists()
        assert curator.ledger() == ()
        with closing(store_of(policy).open(1)) as spark:
            assert all_rows(spark, policy, "visits") == all_rows(truth, policy, "visits")

    threshold = Disturbed(tmp_path / "town", tmp_path / "one")
    with monkeypatch.context() as patch:
        patch.setattr(Spark, "_made", lambda *asked: threshold.on_workers(*asked))
        disturbed = told(curator, BY_WORD, 5)
    assert len(threshold.markers) == 2  # the keys that pass, and their sums
    assert all(each.exists() for each in threshold.markers)
    assert charges(curator) == [("posted", 5)]
    other = discreet.open(tmp_path / "one/policy.yaml")
    assert charges(other) == [("open", 5)]
    assert told(other, BY_WORD, 5) == disturbed
    assert charges(other) == [("posted", 5)]

    question = Disturbed(tmp_path / "town", tmp_path / "two")
    with monkeypatch.context() as patch:
        patch.setattr(Spark, "_read", lambda *asked: question.in_a_question(*asked))
        disturbed = told(curator, OF_ALL, 6)
    assert charges(curator) == [("posted", 5), ("posted", 6)]
    other = discreet.open(tmp_path / "two/policy.yaml")
    assert charges(other)[-1] == ("open", 6)
    assert told(other, OF_ALL, 6) == disturbed
    assert charges(other) == charges(curator)


# --- a driver -------------------------------------------------------------------------------------

DYING = """\
import os, signal
import discreet
from discreet.engines.spark.engine import Spark

def dying(name):
    work = getattr(Spark, name)

    def run(*asked):
        work(*asked)
        os.killpg(0, signal.SIGKILL)  # this process and its Spark

    setattr(Spark, name, run)

curator = discreet.open("policy.yaml")
dying("_read")
dying("_made")
curator.ask(QUESTION, analyst="alice", epsilon=3)
"""


@pytest.mark.parametrize("question", [OF_ALL, BY_WORD], ids=["numbers", "threshold"])
@pytest.mark.parametrize("cluster", ["local", "cluster_of_two"])
def test_a_driver_that_dies(
    cluster: str, question: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """When the numbers were read and nothing is stored yet: charged, and asked again it costs
    nothing and says the same, whoever resumes it.
    """
    choice = request.getfixturevalue(cluster)
    folder = town(tmp_path / "one", choice.at).parent
    died = subprocess.run(
        [sys.executable, "-c", DYING.replace("QUESTION", repr(question))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
        capture_output=True,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr[-2000:]
    shutil.copytree(folder, tmp_path / "other")
    answers = []
    for each in (folder, tmp_path / "other"):
        curator = discreet.open(each / "policy.yaml")
        assert charges(curator) == [("open", 3)]
        answers.append(told(curator, question, 3))
        assert charges(curator) == [("posted", 3)]
        again = json.loads(told(curator, question, 3))
        assert again["rows"] == json.loads(answers[0])["rows"]  # stored now: free
        assert charges(curator) == [("posted", 3)]
    assert answers[0] == answers[1]
