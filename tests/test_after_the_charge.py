"""S22: whatever happens between the charge and the stored answer is one sentence, charged and
counted.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.asking.view import Outcome, View
from discreet.binding import create_ledger
from discreet.continual import running
from discreet.curator import Curator
from discreet.door import Door
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.duckdb.workbench import Workbench
from discreet.engines.limits.overrun import Overrun
from discreet.errors import BudgetExceeded, EngineFailure, LedgerUnavailable, Rejected, UsageError
from discreet.ledger import Ledger
from discreet.policy.policy import Policy
from discreet.vault.allowance import Allowance
from small_town import POLICY, town

SECRET = "137042"  # a person's income, as an exception might print it
QUESTIONS = {
    "measure": "SELECT sex, AVG(income) AS m FROM people GROUP BY sex HAVING m > 0",
    "threshold": "SELECT zip, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY zip ORDER BY n LIMIT 3",
    "choose": "SELECT MEDIAN(age) + 1 AS m FROM people",
}


class Panic(BaseException):
    """What a library in Rust raises: no Exception."""


ERRORS: tuple[Callable[[], BaseException], ...] = (
    lambda: MemoryError(
        f"Unable to allocate 1 GiB for an array with shape ({SECRET},) and data type int64"
    ),
    lambda: pa.ArrowInvalid(f"offset overflow while concatenating arrays: {SECRET}"),
    lambda: pa.ArrowMemoryError(f"malloc of size {SECRET} failed"),
    lambda: duckdb.OutOfMemoryException(SECRET),
    lambda: duckdb.ConversionException(f"Could not convert {SECRET}"),
    lambda: OverflowError(SECRET),
    lambda: ZeroDivisionError(SECRET),
    lambda: KeyError(SECRET),
    lambda: AssertionError(SECRET),
    lambda: RecursionError(SECRET),
    lambda: StopIteration(SECRET),
    lambda: OSError(28, SECRET),
    lambda: UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET),
    lambda: UsageError(SECRET),
    lambda: BudgetExceeded(SECRET),
    lambda: LedgerUnavailable(SECRET),
    lambda: Rejected(SECRET, hint=SECRET),
    lambda: Panic(SECRET),
    EngineFailure,
    Overrun,
)
PLACES: tuple[tuple[str, Any, str], ...] = (
    ("measure", DuckDB, "fetch"),
    ("measure", Allowance, "__init__"),
    ("measure", Allowance, "_spend"),
    ("measure", Allowance, "measure"),
    ("measure", Door, "_carry_out"),
    ("measure", View, "carry_out"),
    ("measure", View, "finish"),
    ("measure", View, "_certificate"),
    ("measure", Outcome, "to_bytes"),
    ("measure", Ledger, "post"),
    ("threshold", Allowance, "threshold"),
    ("threshold", Allowance, "measure"),
    ("choose", Allowance, "choose"),
)


def opened(folder: Path, *, overruns: int = 1000) -> Curator:
    path = folder / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    path.write_text(
        text.replace("{epsilon: 100}", f"{{epsilon: 100, overruns: {overruns}}}"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=town(victim=True))


def counted(curator: Curator) -> int:
    with curator._ledger._journal.session(write=False) as balance:
        return balance.overruns.get("alice", 0)


def raising(error: Callable[[], BaseException]) -> Callable[..., Any]:
    def planted(*_: Any, **__: Any) -> Any:
        raise error()

    return planted


def refused(ask: Callable[[], object]) -> None:
    """It leaves as the one sentence, and with it nothing that holds what was raised."""
    with pytest.raises(EngineFailure) as found:
        ask()
    assert type(found.value) is EngineFailure
    assert str(found.value) == str(EngineFailure())
    assert found.value.__cause__ is None
    assert found.value.__context__ is None


@pytest.mark.parametrize(
    ("kind", "owner", "method"), PLACES, ids=[f"{owner.__name__}.{m}" for _, owner, m in PLACES]
)
def test_any_error_anywhere_is_one_sentence(
    kind: str,
    owner: Any,
    method: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    curator = opened(tmp_path)
    caplog.set_level(logging.DEBUG)
    for place, error in enumerate(ERRORS, start=1):
        with monkeypatch.context() as patch:
            patch.setattr(owner, method, raising(error))
            refused(lambda: curator.ask(QUESTIONS[kind], analyst="alice", epsilon="0.1"))
        assert curator._ledger.spent("alice").amount * 10 == place
        assert counted(curator) == place
    assert {entry.state for entry in curator.ledger()} == {"lost"}
    assert curator.ask(QUESTIONS[kind], analyst="alice", epsilon="0.1").cost.epsilon > 0
    assert SECRET not in caplog.text
    assert "MemoryError at discreet." in caplog.text
    curator._ledger.verify()


def test_what_runs_above_noise_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workbench rehearses before the charge, and fails behind it."""
    curator = opened(tmp_path)
    real, calls = Workbench.run, list[str]()

    def run(self: Workbench, sql: str, tables: Any, *, seconds: float) -> pa.Table:
        if curator._ledger.spent("alice").amount > 0:
            raise MemoryError(SECRET)
        calls.append(sql)
        return real(self, sql, tables, seconds=seconds)

    monkeypatch.setattr(Workbench, "run", run)
    refused(lambda: curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1))
    assert calls
    assert counted(curator) == 1


def test_there_is_a_limit_to_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = opened(tmp_path, overruns=3)
    monkeypatch.setattr(Allowance, "measure", raising(lambda: ValueError(SECRET)))
    for _ in range(3):
        refused(lambda: curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1))
    with pytest.raises(BudgetExceeded, match=r"limits\.overruns"):
        curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1)
    assert curator._ledger.spent("alice").amount == 3


def test_what_cannot_be_counted_does_not_leave_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's disk is full: it is the same sentence, and the charge stays open with its
    noise.
    """
    curator = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "post", raising(lambda: LedgerUnavailable("full")))
        patch.setattr(Ledger, "overran", raising(lambda: LedgerUnavailable("full")))
        refused(lambda: curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1))
    assert [entry.state for entry in curator.ledger()] == ["open"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_whoever_runs_the_process_may_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    """Ctrl-C is as a crash: charged, not counted, and resumed with the same noise when asked
    again.
    """
    curator = opened(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Allowance, "measure", raising(stop))
        with pytest.raises(stop):
            curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1)
    assert [entry.state for entry in curator.ledger()] == ["open"]
    curator.ask(QUESTIONS["measure"], analyst="alice", epsilon=1)
    assert curator._ledger.spent("alice").amount == 1
    assert counted(curator) == 0


def test_descriptions_are_held_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    curator = opened(tmp_path)
    for place, error in enumerate(ERRORS, start=1):
        with monkeypatch.context() as patch:
            patch.setattr(Allowance, "marginal", raising(error))
            refused(
                lambda: curator.describe(
                    "people", epsilon=1, analyst="alice", synthesizer="independent"
                )
            )
        assert counted(curator) == place
    assert curator._ledger.spent("alice").amount == len(ERRORS)


def test_releases_are_held_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those errors pass that the curator can mend; all others are the one sentence."""
    release = running.Release.__new__(running.Release)
    told = (LedgerUnavailable, UsageError)
    monkeypatch.setattr(running.Release, "_require_start", lambda self: _Stream())
    object.__setattr__(release, "schedule", _Schedule())
    for error in ERRORS:
        monkeypatch.setattr(running.Release, "_publish", raising(error))
        if isinstance(error(), told):
            with pytest.raises(told):
                release.run()
        else:
            refused(release.run)


class _Stream:
    published, key = 1, b"key"


class _Schedule:
    def due(self, _: object) -> int:
        return 1


SHORT_OF_MEMORY = """
import resource, sys
from pathlib import Path
import discreet
curator = discreet.open(sys.argv[1])
sql = "SELECT age, income // 20 AS tens, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY age, tens"
curator.ask("SELECT COUNT(*) FROM people", analyst="alice", epsilon=1)
curator.quote(sql, analyst="alice", epsilon=1)
used = int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + 40_000_000, resource.RLIM_INFINITY))
try:
    print(len(curator.ask(sql, analyst="alice", epsilon=1).table))
except BaseException as error:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process's memory are Linux's")
def test_a_process_that_is_short_of_memory(tmp_path: Path) -> None:
    """A real MemoryError, somewhere behind the charge: the sentence, charged, counted."""
    (tmp_path / "data").mkdir()
    for name, table in town(victim=True).items():
        pq.write_table(table, tmp_path / "data" / f"{name}.parquet")
    path = tmp_path / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    path.write_text(
        f"source: data\n{text.replace('{epsilon: 100}', '{epsilon: 100, keys: 3000000}')}",
        encoding="utf-8",
    )
    create_ledger(Policy.read(path))
    command = [sys.executable, "-c", SHORT_OF_MEMORY, str(path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.stdout.strip() == f"EngineFailure {EngineFailure()}", found.stderr
    assert "shape" not in found.stderr
    again = discreet.open(path)
    assert again._ledger.spent("alice").amount == 2
    assert counted(again) == 1


def test_what_would_not_fit_is_refused_before_the_charge(tmp_path: Path) -> None:
    """The memory that Python needs follows from the plan, and is a part of `limits.memory`."""
    path = tmp_path / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    path.write_text(
        text.replace("{epsilon: 100}", "{epsilon: 100, memory: 400MB}"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    curator = discreet.open(path, tables=town(victim=True))
    many = "SELECT age, income // 100 AS h, COUNT(*) AS n, AVG(income) AS m, SUM(age) AS s FROM people GROUP BY age, h"
    with pytest.raises(Rejected, match=r"a quarter of limits\.memory"):
        curator.ask(many, analyst="alice", epsilon=1)
    assert curator._ledger.spent("alice").amount == 0
    few = "SELECT age, income // 10000 AS h, COUNT(*) AS n, AVG(income) AS m FROM people GROUP BY age, h"
    assert curator.ask(few, analyst="alice", epsilon=1).table.num_rows == 121 * 21
