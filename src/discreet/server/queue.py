"""Run questions on worker threads, with one fair queue for all analysts: nobody waits long because
somebody else asks a lot.

A free worker takes the oldest question of the analyst with the fewest running questions; of several
such analysts, of the one who was served longest ago. A single analyst may use all workers but one,
which stays free for others. While several ask, nobody has more than half of the workers, and nobody
with several waiting questions more than a quarter. So one long question never keeps its own user
from looking around. An analyst with many questions also lets the only question of another run for a
moment before the next begins, because threads of one process slow each other down. A question for
which nobody waits any more is not begun.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

Made = TypeVar("Made")
RECENT = 5.0  # seconds for which whoever asked counts as somebody who asks
ALONE = 0.03  # seconds that the only question of one has before the next of a crowd begins


class Crowded(Exception):
    """Too many questions of this user are waiting already."""


class Stopping(Exception):
    """The server is stopping and begins nothing new."""


@dataclass(slots=True, kw_only=True)
class _Job:
    work: Callable[[], Any]
    done: asyncio.Future[Any]
    since: float


class Queue:
    """Runs work on threads, in a fair order. Use it from one event loop."""

    def __init__(self, *, workers: int, most_waiting: int) -> None:
        self._workers = workers
        self._most = most_waiting
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="discreet-worker")
        self._waiting: dict[str, deque[_Job]] = {}
        self._running: dict[str, int] = {}
        self._began: dict[str, float] = {}  # when the newest running question of each began
        self._seen: dict[str, float] = {}
        self._served: dict[str, float] = {}
        self._looking = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._stopping = False
        self.waited = 0.0  # seconds that the last job waited

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def running(self) -> int:
        return sum(self._running.values())

    def submit(self, who: str, work: Callable[[], Made]) -> asyncio.Future[Made]:
        """Add work to the queue. Cancelling the returned future removes the work; if it runs
        already, it ends without being heard.
        """
        if self._stopping:
            raise Stopping
        jobs = self._waiting.setdefault(who, deque())
        while jobs and jobs[0].done.done():
            jobs.popleft()
        if len(jobs) >= self._most:
            raise Crowded
        done: asyncio.Future[Made] = asyncio.get_running_loop().create_future()
        jobs.append(_Job(work=work, done=done, since=time.monotonic()))
        self._seen[who] = time.monotonic()
        self._dispatch()
        return done

    def _dispatch(self) -> None:
        while self.running < self._workers:
            who = self._next()
            if who is None:
                break
            job = self._waiting[who].popleft()
            if not self._waiting[who]:
                del self._waiting[who]
            self._begin(who, job)
        if self.running or self._waiting:
            self._idle.clear()
        else:
            self._idle.set()

    def _next(self) -> str | None:
        for who in [
            who for who, jobs in self._waiting.items() if all(job.done.done() for job in jobs)
        ]:
            del self._waiting[who]
        for jobs in self._waiting.values():
            while jobs[0].done.done():
                jobs.popleft()
        alone = self._asks_alone()
        able = [
            who
            for who in self._waiting
            if self._running.get(who, 0) < self._share(who, alone=alone) and not self._yields(who)
        ]
        return min(
            able,
            key=lambda who: (self._running.get(who, 0), self._served.get(who, 0.0)),
            default=None,
        )

    def _yields(self, who: str) -> bool:
        """Return True if an analyst with many questions must wait for another's only question; then
        look again a moment later.
        """
        if len(self._waiting[who]) < 2:
            return False
        now = time.monotonic()
        alone = [
            began
            for other, began in self._began.items()
            if other != who and other not in self._waiting
        ]
        left = max((began + ALONE - now for began in alone), default=0.0)
        if left > 0 and not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(left, self._look_again)
        return left > 0

    def _look_again(self) -> None:
        self._looking = False
        self._dispatch()

    def _asks_alone(self) -> bool:
        now = time.monotonic()
        self._seen = {
            who: seen
            for who, seen in self._seen.items()
            if now - seen < RECENT or who in self._waiting or who in self._running
        }
        self._served = {who: served for who, served in self._served.items() if who in self._seen}
        return len(self._seen) < 2

    def _share(self, who: str, *, alone: bool) -> int:
        """Return how many workers one analyst may have: all but one; half while others ask too; a
        quarter with many waiting questions.
        """
        if alone:
            return max(1, self._workers - 1)
        return max(1, self._workers // (2 if len(self._waiting[who]) < 2 else 4))

    def _begin(self, who: str, job: _Job) -> None:
        loop = asyncio.get_running_loop()
        self._running[who] = self._running.get(who, 0) + 1
        self._served[who] = self._began[who] = time.monotonic()
        self.waited = self._served[who] - job.since

        def carried_out() -> None:
            try:
                made = job.work()
                error = None
            except BaseException as raised:  # whatever it is, whoever waits is told
                made, error = None, raised
            loop.call_soon_threadsafe(self._end, who, job, made, error)

        self._pool.submit(carried_out)

    def _end(self, who: str, job: _Job, made: Any, error: BaseException | None) -> None:
        self._running[who] -= 1
        if not self._running[who]:
            del self._running[who], self._began[who]
        if not job.done.done():
            if error is None:
                job.done.set_result(made)
            else:
                job.done.set_exception(error)
        self._dispatch()

    async def stop(self, *, seconds: float) -> bool:
        """Begin nothing new, and wait for running work; return True if all of it ended in time."""
        self._stopping = True
        for jobs in self._waiting.values():
            for job in jobs:
                if not job.done.done():
                    job.done.set_exception(Stopping())
        self._waiting.clear()
        self._dispatch()
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            self._pool.shutdown(wait=False, cancel_futures=True)
            return False
        self._pool.shutdown(wait=True)
        return True
