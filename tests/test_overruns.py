"""S13: what takes too long is one refusal, charged, counted, never resumed; it leaves at a multiple
of the deadline.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.duckdb.engine import DuckDB
from discreet.engines.limits.overrun import Overrun
from discreet.engines.limits.until import Until
from discreet.errors import BudgetExceeded, DiscreetError, EngineFailure
from discreet.policy.policy import Policy
from small_town import POLICY, town

COUNT = "SELECT COUNT(*) FROM people WHERE age > {}"


def opened(folder: Path, limits: str) -> Curator:
    path = folder / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    text = (
        text.replace("limits: {epsilon: 100}", f"limits: {{epsilon: 100, {limits}}}")
        + "  bob: {epsilon: 1000}\n"
    )
    path.write_text(text, encoding="utf-8")
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=town(victim=True))


def slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """An engine that needs so long for any read, and is cut off when told to."""

    def fetch(self: DuckDB, sql: str, allowed: float) -> Any:
        time.sleep(min(seconds, allowed))
        if seconds > allowed:
            raise Overrun
        return real(self, sql, allowed)

    real = DuckDB.fetch
    monkeypatch.setattr(DuckDB, "fetch", fetch)


def cut_off(self: DuckDB, sql: str, seconds: float) -> Any:
    raise Overrun


def test_an_overrun_is_charged_counted_and_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = opened(tmp_path, "overruns: 2")
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "fetch", cut_off)
        with pytest.raises(EngineFailure) as refused:
            curator.ask(COUNT.format(3), analyst="alice", epsilon=1)
    assert str(refused.value) == str(EngineFailure())
    assert curator._ledger.spent("alice").amount == 1
    assert [entry.state for entry in curator.ledger()] == ["lost"]
    answer = curator.ask(COUNT.format(3), analyst="alice", epsilon=1)  # in time now: charged anew
    assert answer.cost.epsilon == 1
    assert curator._ledger.spent("alice").amount == 2
    curator._ledger.verify()


def test_the_limit_is_kept_across_openings_and_is_each_analysts_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = opened(tmp_path, "overruns: 2")
    curator.ask(COUNT.format(1), analyst="alice", epsilon=1)
    with monkeypatch.context() as patch:
        patch.setattr(DuckDB, "fetch", cut_off)
        for age in (10, 11):
            with pytest.raises(EngineFailure):
                curator.ask(COUNT.format(age), analyst="alice", epsilon=1)
    again = discreet.open(curator.policy.path)
    spent = again._ledger.spent()
    with pytest.raises(BudgetExceeded, match=r"limits\.overruns"):
        again.ask(COUNT.format(12), analyst="alice", epsilon=1)
    assert again._ledger.spent() == spent  # refused before anything is charged
    # stored answers stay hers
    assert again.ask(COUNT.format(1), analyst="alice", epsilon=1).cost.epsilon == 0
    assert again.ask(COUNT.format(12), analyst="bob", epsilon=1).cost.epsilon == 1
    more = curator.policy.path.read_text(encoding="utf-8").replace("overruns: 2", "overruns: 3")
    curator.policy.path.write_text(more, encoding="utf-8")
    assert (
        discreet.open(curator.policy.path)
        .ask(COUNT.format(13), analyst="alice", epsilon=1)
        .cost.epsilon
        == 1
    )


def test_a_refusal_leaves_at_a_multiple_of_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut off at the deadline, not after `seconds`: how long the engine would have gone on tells
    nothing.
    """
    curator = opened(tmp_path, "seconds: 30, deadline: 0.4s, overruns: 9")
    for needs in (0.6, 20.0):
        with monkeypatch.context() as patch:
            slow(patch, needs)
            began = time.monotonic()
            with pytest.raises(EngineFailure):
                curator.ask(COUNT.format(needs), analyst="alice", epsilon=1)
            took = time.monotonic() - began
        assert took >= 0.8
        assert took < 20
    began = time.monotonic()
    with contextlib.suppress(EngineFailure):  # a busy machine
        curator.ask(COUNT.format(50), analyst="alice", epsilon=1)
    assert time.monotonic() - began >= 0.4


class Clock:
    """Stands still but for those who sleep: what is in time is in time on a busy machine too."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_whatever_happens_inside_is_counted_and_leaves_at_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr("discreet.engines.limits.until.time", clock)
    cases: tuple[tuple[Callable[[], object], bool, int, int], ...] = (
        (lambda: clock.sleep(0.02), True, 0, 1),
        (
            lambda: clock.sleep(0.03),
            True,
            1,
            1,
        ),  # more than half: counted on both sides of the edge
        (lambda: clock.sleep(0.06), False, 1, 2),
        (lambda: 1 // 0, False, 1, 1),
    )
    for work, answered, counted, periods in cases:
        began, told = clock.now, list[str]()
        until = Until(began=began, deadline=Fraction(1, 20))
        try:
            until.leave(work, count=partial(told.append, "counted"))
            assert answered
        except EngineFailure:
            assert not answered
        until.hold()
        assert len(told) == counted
        assert clock.now - began == pytest.approx(0.05 * periods)


def test_quotes_explanations_and_refusals_leave_at_fixed_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of free quotes answered meanwhile is a clock: in hardened mode all of them take as
    long.
    """
    curator = opened(tmp_path, "seconds: 30, deadline: 10s")
    curator._workbench.run("SELECT 1", {}, seconds=10)
    waited = list[float]()
    monkeypatch.setattr(
        "discreet.engines.limits.until.Until.hold",
        lambda self: waited.append(float(self.deadline or 0)),
    )
    asked: tuple[Callable[[], object], ...] = (
        lambda: curator.quote(COUNT.format(1), analyst="alice", epsilon=1),
        lambda: curator.explain(COUNT.format(1), analyst="alice", epsilon=1),
        lambda: curator.quote("SELECT age FROM people", analyst="alice", epsilon=1),
        lambda: curator.quote(COUNT.format(1), analyst="nobody", epsilon=1),
        lambda: curator.ask(COUNT.format(1), analyst="alice", epsilon=1),
        lambda: curator.ask(COUNT.format(1), analyst="alice", epsilon=1),  # stored
        lambda: curator.ask("SELECT 1 AS one", analyst="alice", epsilon=1),  # public
        lambda: curator.ask("SELECT", analyst="alice", epsilon=1),
        lambda: curator.ask(COUNT.format(2), analyst="alice", epsilon=1_000_000),
        lambda: curator.ledger(analyst="alice"),
    )
    for place, question in enumerate(asked, start=1):
        with contextlib.suppress(DiscreetError):
            question()
        assert waited == [10.0] * place


def test_no_read_begins_after_the_deadline() -> None:
    assert Until(began=time.monotonic(), deadline=None).at_most(7) == 7
    assert Until(began=time.monotonic(), deadline=Fraction(100)).at_most(7) == 7
    assert Until(began=time.monotonic(), deadline=Fraction(1)).at_most(7) <= 1
    with pytest.raises(Overrun):
        Until(began=time.monotonic() - 2, deadline=Fraction(1)).at_most(7)
