"""When an answer leaves: at a deadline that data does not move, or, refused and counted, at a multiple of it (S13).

Without a deadline a question leaves when it is done, and is refused when it takes more than the policy allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

from discreet.engines.duckdb import Overrun


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """A question that began at some moment of the monotonic clock, and the policy's deadline for it, if any."""

    began: float
    deadline: Fraction | None

    def at_most(self, seconds: float) -> float:
        """How long a read may take from now; none that cannot come in time is begun."""
        if self.deadline is None:
            return seconds
        left = self.began + float(self.deadline) - time.monotonic()
        if left <= 0:
            raise Overrun
        return min(seconds, left)

    @contextmanager
    def leaving(self, *, overran: Callable[[], None]) -> Iterator[None]:
        """Hold whatever comes of this block, an answer or a failure, until it may leave.

        What is late, or was cut off, is an overrun: `overran` is told before the wait, so that its own time is hidden
        too, and the refusal leaves at the next multiple of the deadline. How many deadlines it took is all it tells.
        """
        try:
            try:
                yield
                late = self.deadline is not None and time.monotonic() > self.began + float(self.deadline)
            except Overrun:
                late = True
            if late:
                overran()
                raise Overrun
        finally:
            self._hold()

    def _hold(self) -> None:
        if self.deadline is not None:
            passed = time.monotonic() - self.began
            periods = max(1, math.ceil(passed / float(self.deadline)))
            time.sleep(max(0.0, self.began + periods * float(self.deadline) - time.monotonic()))
