"""Interrupt work that takes too long. One thread watches over all work, because a timer for each
would need a thread.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# seconds; work that goes on is interrupted again, for it may have been between two statements
_AGAIN = 0.1


class _Watch:
    """A thread that sleeps until the first time at which work, known when it fell asleep, is
    due.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: dict[object, tuple[float, Callable[[], object]]] = {}
        self._wakes = math.inf
        self._thread: threading.Thread | None = None

    def add(self, work: object, due: float, interrupt: Callable[[], object]) -> None:
        with self._changed:
            self._due[work] = due, interrupt
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="discreet-watch", daemon=True
                )
                self._thread.start()
            elif due < self._wakes:
                self._changed.notify()

    def remove(self, work: object) -> None:
        with (
            self._changed
        ):  # an interrupt under way ends first: none ever meets what its owner has closed
            del self._due[work]

    def interrupt_all(self) -> None:
        """Interrupt all work that goes on now, until it ends."""
        with self._changed:
            self._due = {work: (0.0, interrupt) for work, (_, interrupt) in self._due.items()}
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while True:
                self._interrupt_due(time.monotonic())
                self._wakes = min((due for due, _ in self._due.values()), default=math.inf)
                self._changed.wait(
                    None if self._wakes == math.inf else self._wakes - time.monotonic()
                )

    def _interrupt_due(self, now: float) -> None:
        for work, (due, interrupt) in self._due.items():
            if due <= now:
                self._due[work] = now + _AGAIN, interrupt
                interrupt()


_watch = _Watch()


def _after_fork() -> None:
    """Start anew in a forked process, where neither the thread nor the holder of its lock
    exists.
    """
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def interrupt_after(after: float, interrupt: Callable[[], object]) -> Iterator[None]:
    """Call `interrupt` once this block has run for so many seconds, and again while it goes on."""
    watch = _watch
    work = object()
    watch.add(work, time.monotonic() + after, interrupt)
    try:
        yield
    finally:
        watch.remove(work)


def interrupt_at_ctrl_c() -> None:
    """Let Ctrl-C interrupt all watched work at once. Call it in the main thread.

    Python runs its handler only when the engine returns to Python. The engine looks for signals
    while this thread works for it; while other threads do, it looks when all is done. The operating
    system's handler writes the signal's number into a pipe, which a thread here reads.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(
        target=_read_signals, args=(reading,), name="discreet-ctrl-c", daemon=True
    ).start()


def _read_signals(reading: int) -> None:
    while numbers := os.read(reading, 64):
        if signal.SIGINT in numbers:
            _watch.interrupt_all()
