"""The end of a paid question: every failure becomes one sentence (S22), and with a deadline the
time of the answer does not depend on data (S13).

Without a deadline an answer leaves when it is ready, and a question that takes longer than the
policy allows is refused.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from discreet.engines.limits.overrun import Overrun
from discreet.errors import DiscreetError, EngineFailure

_log = logging.getLogger("discreet.engine")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """The time of one question: when it began, by the monotonic clock, and its deadline, if the
    policy has one.
    """

    began: float
    deadline: Fraction | None

    def at_most(self, seconds: float) -> float:
        """Return the seconds left for a read; raise Overrun past the deadline."""
        if self.deadline is None:
            return seconds
        left = self.began + float(self.deadline) - time.monotonic()
        if left <= 0:
            raise Overrun
        return min(seconds, left)

    def check(self) -> None:
        """Raise Overrun past the deadline."""
        self.at_most(0)

    def leave(
        self,
        work: Callable[[], Result],
        *,
        count: Callable[[], object],
        passing: tuple[type[DiscreetError], ...] = (),
    ) -> Result:
        """Return the result of `work`. If it fails, call `count`, then raise one fixed sentence.

        Privacy: S22. The type, the message and the frames of an exception may each tell something
        about one person, so none of them leaves; only the log gets the type and the place in our
        code. An answer that took more than half of the deadline leaves, but is counted too. One
        person cannot cost the other half (S21), so a question near the deadline is counted with and
        without that person. Ctrl-C and exit are raised unchanged: the curator ended the process,
        and the charge can be resumed with the same noise (S8). So are errors of the types
        `passing`, for the curator's own work.
        """
        made: list[Result] = []
        through: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit, *passing)
        broke = ""
        try:
            made.append(work())
            self.check()
        except through:
            raise
        except BaseException as error:
            broke = f"{type(error).__name__} at {place_of(error)}"
        # The error and its frames are freed only here. Now there is memory to count it.
        if broke:
            made.clear()
            _log.error("After a charge: %s.", broke)
        if (broke or self._near()) and not _is_done(count):
            broke = "not counted"
        if broke:
            raise EngineFailure
        return made[0]

    def hold(self) -> None:
        """Wait until the next multiple of the deadline, so that the time tells nothing but the
        number of deadlines.
        """
        if self.deadline is not None:
            passed = time.monotonic() - self.began
            periods = max(1, math.ceil(passed / float(self.deadline)))
            time.sleep(max(0.0, self.began + periods * float(self.deadline) - time.monotonic()))

    def _near(self) -> bool:
        return self.deadline is not None and 2 * (time.monotonic() - self.began) > self.deadline


NO_DEADLINE = Until(began=0.0, deadline=None)


def _is_done(count: Callable[[], object]) -> bool:
    """Call `count` and return True if it worked. It can fail: the ledger may be locked, or its disk
    full.
    """
    try:
        count()
    except Exception as error:
        _log.critical(
            "An overrun could not be counted: %s at %s.", type(error).__name__, place_of(error)
        )
        return False
    return True


def place_of(error: BaseException) -> str:
    """Return the innermost place in our own code where an exception was raised or passed."""
    place = "an unknown place"
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith("discreet"):
            place = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return place
