"""Group commit: threads of one process share a transaction one after another, and leave it
together.

A commit waits for a disk or a network. While one is under way, threads gather; then each takes its
turn in the next transaction, and the last of them commits for all. Nobody leaves before what it saw
and wrote is on the disk, so a group is to each of them as good as a transaction of its own. If the
commit fails, it fails for all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from discreet.errors import LedgerUnavailable

_MOST = 64  # threads in one group
_LONGEST = 0.05  # seconds in which whoever waits takes a turn, or the group commits without it


class Group:
    """Threads in one transaction."""

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self.members = 1
        self.done = False
        self.error: LedgerUnavailable | None = None


class Turns:
    """Gives threads the one connection of a process, one after another.

    `begin(write)`, `commit()` and `abandon()` are the connection's; `broken` and `busy` make what
    is raised.
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
        self._begin, self._commit, self._abandon = begin, commit, abandon
        self._broken, self._busy = broken, busy
        self._changed = threading.Condition(threading.RLock())
        self._waiting = set[int]()  # threads that will write
        self._owner: int | None = None  # the thread whose turn it is
        self._group: Group | None = None  # in a transaction that others may still enter

    @contextmanager
    def turn(self, *, write: bool, timeout: float) -> Iterator[None]:
        """Wait for the connection, use it, and wait until the transaction is over."""
        group = self._enter(write=write, timeout=timeout)
        try:
            yield
        except Exception:
            raise  # what this one wanted is not sent; the others go on
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
            if self._owner == me:  # this thread was interrupted in the middle of an earlier turn
                self.fail(self._group, self._broken())
                self._owner = None
            if write:
                self._waiting.add(me)
            try:
                # Who only reads waits for the commit: reading much must not hold what other servers
                # wait for.
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
        """Let the next one in, or end the transaction; return when it is over."""
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
        """Give up a transaction: nobody in it may go on."""
        with self._changed:
            self._abandon()
            self._group = None
            if group is not None and not group.done:
                group.error = error
                group.done = True
            self._changed.notify_all()

    def fail_current(self, error: LedgerUnavailable) -> None:
        """Give up the transaction of whoever's turn it is."""
        self.fail(self._group, error)

    def _hand_over(self) -> None:
        with self._changed:
            self._owner = None
            self._changed.notify_all()
