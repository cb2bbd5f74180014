"""Turns: threads that share a transaction leave it together, and fail together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from discreet.errors import LedgerUnavailable
from discreet.ledger.turns import Turns

THREADS = 12


def until(true: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if true():
            return
        time.sleep(0.001)
    raise AssertionError("nobody came")


class Connection:
    """Begins and commits; the first commit waits until `gathered`."""

    def __init__(self, *, fails: bool = False) -> None:
        self.events: list[str] = []
        self.fails = fails
        self.turns = Turns(
            begin=lambda write: self.events.append("begin"),
            commit=self.commit,
            abandon=lambda: self.events.append("abandon"),
            broken=lambda: LedgerUnavailable("broken"),
            busy=lambda: LedgerUnavailable("busy"),
        )
        self.gathered: Callable[[], bool] = lambda: True

    def commit(self) -> None:
        until(self.gathered)
        self.gathered = lambda: True
        self.events.append("commit")
        if self.fails and self.events.count("commit") > 1:
            raise LedgerUnavailable("the disk is gone")

    def spend(self, name: str) -> None:
        with self.turns.turn(write=True, timeout=60):
            self.events.append(name)


def spent_together(connection: Connection) -> list[BaseException | None]:
    """One thread commits while all others come; what each of these raised."""
    connection.gathered = lambda: len(connection.turns._waiting) == THREADS
    with ThreadPoolExecutor(THREADS + 1) as pool:
        first = pool.submit(connection.spend, "first")
        until(lambda: "first" in connection.events)
        others = [pool.submit(connection.spend, str(i)) for i in range(THREADS)]
        first.result()
        return [other.exception() for other in others]


def test_who_comes_during_a_commit_shares_the_next() -> None:
    connection = Connection()
    assert spent_together(connection) == [None] * THREADS
    assert connection.events[:3] == ["begin", "first", "commit"]
    assert sorted(connection.events[4:-1]) == sorted(str(i) for i in range(THREADS))
    assert connection.events[3] == "begin"
    assert connection.events.count("commit") == 2


def test_a_commit_that_fails_fails_for_all() -> None:
    connection = Connection(fails=True)
    raised = spent_together(connection)
    assert {str(error) for error in raised} == {"the disk is gone"}
    connection.fails = False
    connection.spend("later")
    assert connection.events[-4:] == ["abandon", "begin", "later", "commit"]


def test_a_turn_that_fails_takes_nobody_along() -> None:
    connection = Connection()
    with pytest.raises(ValueError, match="mine"), connection.turns.turn(write=True, timeout=1):
        raise ValueError("mine")
    assert connection.events == ["begin", "commit"]
    with pytest.raises(KeyboardInterrupt), connection.turns.turn(write=True, timeout=1):
        raise KeyboardInterrupt
    assert connection.events[2:] == ["begin", "abandon"]
    connection.spend("later")


def test_who_waits_too_long_is_told() -> None:
    connection, held, go = Connection(), threading.Event(), threading.Event()

    def hold() -> None:
        with connection.turns.turn(write=True, timeout=1):
            held.set()
            assert go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    with (
        pytest.raises(LedgerUnavailable, match="busy"),
        connection.turns.turn(write=True, timeout=0.01),
    ):
        pass
    go.set()
    thread.join()
    connection.spend("later")
