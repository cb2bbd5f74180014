"""Several processes make the same bytes as one; a killed one costs time alone, one that fails is
one sentence.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_country import opened, policy_text, require_consistent

from discreet.census import errors, running
from discreet.census.solve import top_down
from discreet.census.workers import Workers
from discreet.errors import EngineFailure, UsageError


def test_results_come_in_the_order_of_their_tasks() -> None:
    with Workers(2) as workers:
        assert list(workers.map(abs, range(-9, 0))) == list(range(9, 0, -1))
        assert list(workers.map(abs, [-1])) == [1]
        assert list(workers.map(abs, [])) == []


def test_a_failure_is_told_by_its_type_alone() -> None:
    with Workers(2) as workers, pytest.raises(ChildProcessError) as failed:
        list(workers.map(int, ["1", "seventeen people"]))
    assert str(failed.value) == "ValueError in a worker."


def die_elsewhere(task: tuple[int, int]) -> int:
    """End any process but the one of that number."""
    if os.getpid() != task[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return task[1]


def test_the_task_of_a_killed_worker_is_done_here() -> None:
    with Workers(2) as workers:
        assert list(workers.map(die_elsewhere, [(os.getpid(), each) for each in range(5)])) == [
            0,
            1,
            2,
            3,
            4,
        ]


def test_a_worker_ends_with_its_pipe() -> None:
    """Whoever started it may be killed at any time."""
    serve = f"import sys; sys.path[:] = {sys.path!r}; from discreet.census.workers import serve; serve()"
    assert subprocess.run([sys.executable, "-c", serve], input=b"", check=False).returncode == 0


def test_numbers_do_not_depend_on_how_many_processes_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top_down, "AT_ONCE", 60)  # two blocks at once
    monkeypatch.setattr(errors, "AT_ONCE", 60)
    curator = opened(tmp_path, policy_text(epsilon=1))
    published = curator.publication("census").run(jobs=2)
    require_consistent(published)
    plan = published.plan
    alone = errors.make_whole(plan, published.noisy)
    assert (alone[-1].count == published.people.count).all()
    assert (alone[-1].cell == published.people.cell).all()
    assert errors.simulate(plan, alone).equals(published.margins)
    with pytest.raises(UsageError, match="from 1 to 256, not 0"):
        curator.publication("census").run(jobs=0)


def test_what_fails_in_a_worker_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = opened(tmp_path, policy_text())
    monkeypatch.setattr(
        running,
        "make_whole",
        lambda plan, noisy, workers: list(workers.map(int, ["17 people", "18"])),
    )
    with pytest.raises(EngineFailure) as failed:
        curator.publication("census").run(jobs=2)
    assert "17" not in str(failed.value)
    assert len(curator.ledger()) == 1
