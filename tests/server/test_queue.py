"""The fair queue: turns, shares, back-pressure, what nobody waits for, and stopping."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from discreet.server.queue import Crowded, Queue, Stopping

Result = TypeVar("Result")


class Steps:
    """Work that waits until it is let go, in the order in which it began, and notes that order."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.free = 0
        self.changed = threading.Condition()

    def step(self, name: str) -> Callable[[], str]:
        def work() -> str:
            with self.changed:
                place = len(self.begun)
                self.begun.append(name)
                assert self.changed.wait_for(lambda: place < self.free, timeout=60)
            return name

        return work

    def release(self, count: int = 1) -> None:
        """Let the next so many go: those that began first, never one that begins later instead."""
        with self.changed:
            self.free += count
            self.changed.notify_all()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


def carried_out(scene: Coroutine[Any, Any, Result]) -> Result:
    """In a thread of its own: a browser that other tests have opened keeps a loop running in this
    one.
    """
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, scene).result()


def test_each_gets_a_turn_however_much_one_asks() -> None:
    async def scene() -> list[str]:
        queue, steps = Queue(workers=1, most_waiting=100), Steps()
        jobs = [queue.submit("flood", steps.step(f"flood {index}")) for index in range(20)]
        jobs += [queue.submit("calm", steps.step(f"calm {index}")) for index in range(3)]
        steps.release(len(jobs))
        await asyncio.gather(*jobs)
        return steps.begun

    begun = carried_out(scene())
    assert begun[:7] == ["flood 0", "calm 0", "flood 1", "calm 1", "flood 2", "calm 2", "flood 3"]


def test_one_alone_has_all_workers_but_one_and_several_share_them() -> None:
    async def scene() -> tuple[int, dict[str, int]]:
        queue, steps = Queue(workers=8, most_waiting=100), Steps()
        jobs = [queue.submit("flood", steps.step("flood")) for _ in range(20)]
        await until(lambda: len(steps.begun) == 7)
        alone = queue.running
        jobs += [queue.submit("calm", steps.step("calm")) for _ in range(10)]
        await until(lambda: len(steps.begun) == 8)
        assert steps.begun[-1] == "calm"
        steps.release(8)
        await until(lambda: len(steps.begun) == 12)
        shared = dict(queue._running)
        steps.release(len(jobs))
        await asyncio.gather(*jobs)
        return alone, shared

    alone, shared = carried_out(scene())
    assert alone == 7
    assert shared == {"flood": 2, "calm": 2}


def test_a_long_question_does_not_keep_its_user_from_another_while_others_ask() -> None:
    async def scene() -> list[str]:
        queue, steps = Queue(workers=4, most_waiting=100), Steps()
        jobs = [queue.submit("calm", steps.step("calm")), queue.submit("long", steps.step("long"))]
        await until(lambda: len(steps.begun) == 2)
        jobs.append(queue.submit("long", steps.step("cancel it")))
        await until(lambda: len(steps.begun) == 3)
        steps.release(len(jobs))
        await asyncio.gather(*jobs)
        return steps.begun

    assert carried_out(scene())[2] == "cancel it"


def test_too_many_that_wait_are_refused_and_others_are_not() -> None:
    async def scene() -> None:
        queue, steps = Queue(workers=1, most_waiting=2), Steps()
        jobs = [queue.submit("flood", steps.step("flood")) for _ in range(3)]
        with pytest.raises(Crowded):
            queue.submit("flood", steps.step("flood"))
        jobs.append(queue.submit("calm", steps.step("calm")))
        assert (queue.running, queue.waiting) == (1, 3)
        steps.release(len(jobs))
        await asyncio.gather(*jobs)

    carried_out(scene())


def test_what_nobody_waits_for_is_not_begun() -> None:
    async def scene() -> list[str]:
        queue, steps = Queue(workers=1, most_waiting=100), Steps()
        jobs = [queue.submit("a", steps.step(str(index))) for index in range(5)]
        for job in jobs[1:4]:
            job.cancel()
        steps.release(5)
        await jobs[4]
        return steps.begun

    assert carried_out(scene()) == ["0", "4"]


def test_errors_reach_whoever_waits_and_workers_go_on() -> None:
    def fails() -> None:
        raise ZeroDivisionError

    async def scene() -> int:
        queue = Queue(workers=1, most_waiting=10)
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await queue.submit("a", fails)
        return await queue.submit("a", lambda: 7)

    assert carried_out(scene()) == 7


def test_stopping_lets_what_runs_end_and_begins_nothing() -> None:
    async def scene() -> None:
        queue, steps = Queue(workers=1, most_waiting=10), Steps()
        running, waiting = (
            queue.submit("a", steps.step("runs")),
            queue.submit("a", steps.step("waits")),
        )
        await until(lambda: len(steps.begun) == 1)
        stopping = asyncio.ensure_future(queue.stop(seconds=60))
        with pytest.raises(Stopping):
            await waiting
        with pytest.raises(Stopping):
            queue.submit("b", steps.step("late"))
        steps.release(2)
        assert await stopping
        assert await running == "runs"
        assert steps.begun == ["runs"]

    carried_out(scene())


def test_stopping_does_not_wait_for_ever() -> None:
    async def scene(steps: Steps) -> bool:
        queue = Queue(workers=1, most_waiting=10)
        queue.submit("a", steps.step("runs"))
        await until(lambda: len(steps.begun) == 1)
        return await queue.stop(seconds=0.01)

    steps = Steps()
    assert not carried_out(scene(steps))
    steps.release()
