"""Group commit: threads of one process use a transaction one after another and commit it once.

A commit waits for a disk or a network. Threads that arrive during a commit wait; then each takes
its turn in the next transaction, and the last of them commits for all. No thread returns before
what it saw and wrote is on disk, so the group gives each thread what a transaction of its own would
give. If the commit fails, it fails for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discreet.errors import LedgerUnavailable

_MOST = 64  # threads in one group
_LONGEST = 0.05  # seconds that a group waits for the next thread before it commits


class Group:
    """The threads in one transaction."""

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self.members = 1
        self.done = False
        self.error: LedgerUnavailable | None = None


class Turns:
    """Lends the one connection of a process to its threads, one after another.

    `begin(write)`, `commit()` and `abandon()` act on the connection; `broken` and `busy` return the
    exceptions to raise.
    """

    def __init__(
        self,
        *,
        begin: Callable[[bool], None],
        commit: Callable[[], None],
        abandon: Callable[[], None],
        broken: Callable[[], LedgerUnavailable],
        busy: Callable[[], LedgerUnavailable],
    ) -> None:
        self._begin = begin
        self._commit = commit
        self._abandon = abandon
        self._broken = broken
        self._busy = busy
        self._changed = threading.Condition(threading.RLock())
        self._waiting = set[int]()  # threads that will write
        self._owner: int | None = None  # the thread whose turn it is
        self._group: Group | None = None  # its transaction is open to further threads

    @contextmanager
    def turn(self, *, write: bool, timeout: float) -> Iterator[None]:
        """Wait for the connection, lend it to the block, and wait until the transaction ends."""
        group = self._enter(write=write, timeout=timeout)
        try:
            yield
        except Exception:
            raise  # this thread's statements are not sent; the others go on
        except BaseException:
            self.fail(group, self._broken())
            raise
        finally:
            self._leave(group)
        if group.error is not None:
            raise group.error

    def _enter(self, *, write: bool, timeout: float) -> Group:
        me = threading.get_ident()
        with self._changed:
            if self._owner == me:  # this thread was interrupted during an earlier turn
                self.fail(self._group, self._broken())
                self._owner = None
            if write:
                self._waiting.add(me)
            try:
                # A thread that only reads waits for the commit: a long read must not hold the lock
                # that other servers wait for.
                free = self._changed.wait_for(
                    lambda: self._owner is None and (write or self._group is None), timeout
                )
            finally:
                self._waiting.discard(me)
                self._changed.notify_all()
            if not free:
                raise self._busy()
            self._owner = me
            if self._group is not None:
                self._group.members += 1
                return self._group
            group = Group(shared=write)
        try:
            self._begin(write)
        except BaseException:
            self.fail(group, self._broken())
            self._hand_over()
            raise
        if write:
            self._group = group
        return group

    def _leave(self, group: Group) -> None:
        """Let the next thread in, or end the transaction; return when the transaction has ended."""
        me = threading.get_ident()
        with self._changed:
            if group.shared and self._waiting and group.members < _MOST and not group.done:
                self._hand_over()
                late = False
                while not group.done and not (self._owner is None and (late or not self._waiting)):
                    late = not self._changed.wait(_LONGEST)
                if not group.done:
                    self._owner = me
            if self._group is group:
                self._group = None
        try:
            if not group.done:
                self._commit()
                group.done = True
        except LedgerUnavailable as error:
            self.fail(group, error)
        finally:
            if not group.done:
                self.fail(group, self._broken())
            if self._owner == me:
                self._hand_over()

    def fail(self, group: Group | None, error: LedgerUnavailable) -> None:
        """Abandon a transaction; every thread in it gets the error."""
        with self._changed:
            self._abandon()
            self._group = None
            if group is not None and not group.done:
                group.error = error
                group.done = True
            self._changed.notify_all()

    def fail_current(self, error: LedgerUnavailable) -> None:
        """Abandon the transaction of the current turn."""
        self.fail(self._group, error)

    def _hand_over(self) -> None:
        with self._changed:
            self._owner = None
            self._changed.notify_all()
