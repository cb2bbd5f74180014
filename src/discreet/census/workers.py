"""Run independent tasks in several processes. The results and their order do not depend on the
number of processes.

A worker is a separate Python process, which reads tasks from one pipe and writes results to
another. It ends when its pipe closes, so none outlives its parent. If a worker is killed, its task
is done here. (The processes of `multiprocessing` would run the caller's script again.)

Privacy: a worker gets only released data: noisy counts, whole numbers computed from them, and
public places. It gets no key of a charge and no exact value (S19).
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self, TypeVar

from discreet.threads import one_thread

Task = TypeVar("Task")
Result = TypeVar("Result")


class Workers:
    """A group of processes. They start with the first work that two can share, and end with the
    block.
    """

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs
        self._started: list[subprocess.Popen[bytes]] = []
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._kill()
        for process in self._started:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]

    def _kill(self) -> None:
        for process in self._started:
            process.kill()

    def map(self, do: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of `do` for each task, in their order. Only as many tasks as processes
        are in memory.
        """
        waiting = iter(tasks)
        first = list(islice(waiting, 2))
        if self._jobs == 1 or len(first) < 2:
            yield from map(do, chain(first, waiting))
            return
        self._start()
        asked: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self._jobs) as pool:
            try:
                for task in chain(first, waiting):
                    asked.append(pool.submit(self._ask, do, task))
                    if len(asked) > self._jobs:
                        yield asked.popleft().result()
                while asked:
                    yield asked.popleft().result()
            except BaseException:
                self._kill()  # nobody waits for what a worker is at
                raise

    def _start(self) -> None:
        serve = f"import sys; sys.path[:] = {sys.path!r}; from discreet.census.workers import serve; serve()"
        while len(self._started) < self._jobs:
            pipes = {
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.DEVNULL,
            }
            self._started.append(subprocess.Popen([sys.executable, "-c", serve], **pipes))  # type: ignore[call-overload]
            self._free.put(self._started[-1])

    def _ask(self, do: Callable[[Task], Result], task: Task) -> Result:
        process = self._free.get()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((do, task), process.stdin, protocol=5)
            process.stdin.flush()
            failure, result = pickle.load(process.stdout)
        except (
            OSError,
            EOFError,
        ):  # it was killed, by somebody or for want of memory: that costs time, no charge
            return do(task)
        finally:
            self._free.put(process)
        if failure is not None:
            raise ChildProcessError(f"{failure} in a worker.")
        return result  # type: ignore[no-any-return]


def serve() -> None:
    """Do the tasks that arrive, until the pipe closes."""
    given = os.fdopen(os.dup(0), "rb")
    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not meet the results
    with one_thread():
        while True:
            try:
                do, task = pickle.load(given)
            except EOFError:
                return
            pickle.dump(_outcome(do, task), told, protocol=5)
            told.flush()


def _outcome(do: Callable[[Any], Any], task: Any) -> tuple[str | None, Any]:
    """Return what failed, by its type alone, or None; and the result."""
    try:
        return None, do(task)
    except Exception as error:
        return type(error).__name__, None
