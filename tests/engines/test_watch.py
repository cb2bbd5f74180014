"""One thread interrupts whatever takes too long, and nothing that has ended."""

from __future__ import annotations

import os
import threading
import time

from discreet.engines.limits.watch import interrupt_after


def slept(after: float, *, at_most: float) -> float | None:
    """Seconds until the interrupt, or None if none came."""
    event, began = threading.Event(), time.monotonic()
    with interrupt_after(after, event.set):
        return time.monotonic() - began if event.wait(at_most) else None


def test_a_later_and_then_an_earlier_one() -> None:
    found: dict[float, float | None] = {}
    threads = [
        threading.Thread(target=lambda after=after: found.update({after: slept(after, at_most=30)}))  # type: ignore[misc]
        for after in (0.6, 0.3, 0.1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(took is not None and took >= after for after, took in found.items())
    assert len(found) == 3


def test_work_that_has_ended_is_left_alone() -> None:
    late = threading.Event()
    with interrupt_after(0.1, late.set):
        pass
    assert not late.wait(0.4)
    assert slept(30, at_most=0.3) is None


def test_work_that_goes_on_is_interrupted_again() -> None:
    times = threading.Semaphore(0)
    with interrupt_after(0.05, times.release):
        assert all(times.acquire(timeout=30) for _ in range(3))


def test_after_a_fork() -> None:
    assert slept(0.05, at_most=30) is not None
    child = os.fork()
    if child == 0:
        os._exit(0 if slept(0.05, at_most=30) is not None else 1)
    assert os.waitpid(child, 0)[1] == 0
