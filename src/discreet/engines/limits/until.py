"""The way out of a charge: one sentence for whatever goes wrong (S22), at a time that data does not
move (S13).

Without a deadline a question leaves when it is done, and is refused when it takes more than the
policy allows.
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
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """A question that began at some moment of the monotonic clock, and the policy's deadline for
    it, if any.
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
        work: Callable[[], Made],
        *,
        count: Callable[[], object],
        passing: tuple[type[DiscreetError], ...] = (),
    ) -> Made:
        """Return what `work` makes; whatever goes wrong in it, raise one fixed sentence after
        `count` has counted it.

        Privacy: S22. The type, the message and the frames of an exception may each tell of one
        person, so none of them leaves: the log gets the type and the place in our code. What took
        more than half of the deadline is counted too, although it leaves: one person cannot cost
        the other half (S21), so whoever is near the edge is counted on both sides of it. Ctrl-C and
        exit pass: whoever runs the process ended it, and the charge can be resumed with the same
        noise (S8). So do errors of the types `passing`, for work of the curator's own.
        """
        made: list[Made] = []
        through: tuple[type[BaseException], ...] = (KeyboardInterrupt, SystemExit, *passing)
        broke = ""
        try:
            made.append(work())
            self.check()
        except through:
            raise
        except BaseException as error:
            broke = f"{type(error).__name__} at {place_of(error)}"
        # The error and what its frames held are let go only here: now there is memory to count it.
        if broke:
            made.clear()
            _log.error("After a charge: %s.", broke)
        if (broke or self._near()) and not _is_done(count):
            broke = "not counted"
        if broke:
            raise EngineFailure
        return made[0]

    def hold(self) -> None:
        """Wait until the next multiple of the deadline: how many deadlines it took is all that the
        time tells.
        """
        if self.deadline is not None:
            passed = time.monotonic() - self.began
            periods = max(1, math.ceil(passed / float(self.deadline)))
            time.sleep(max(0.0, self.began + periods * float(self.deadline) - time.monotonic()))

    def _near(self) -> bool:
        return self.deadline is not None and 2 * (time.monotonic() - self.began) > self.deadline


NO_DEADLINE = Until(began=0.0, deadline=None)


def _is_done(count: Callable[[], object]) -> bool:
    """Count, and say whether that worked; the ledger may be locked or its disk full."""
    try:
        count()
    except Exception as error:
        _log.critical(
            "An overrun could not be counted: %s at %s.", type(error).__name__, place_of(error)
        )
        return False
    return True


def place_of(error: BaseException) -> str:
    """Return the last place in our own code that an exception came through."""
    found, trace = "an unknown place", error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "")
        if name.startswith("discreet"):
            found = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found
