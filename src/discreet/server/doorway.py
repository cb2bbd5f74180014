"""The parts that all doors share: the curator, the gate, the queue, limits, counts, and memory for
answers that are being sent.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from discreet.curator import Curator
from discreet.server.auth import Gate
from discreet.server.catalog import Catalog
from discreet.server.limits import ServerLimits
from discreet.server.metrics import Metrics
from discreet.server.queue import Queue

_log = logging.getLogger("discreet.server")


class NoRoom(Exception):
    """An answer is too large, or too much is sent at once (`passing`)."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing
        self.hint = "The answer is stored: asking for less of it (LIMIT, a filter after noise) costs nothing more."


class Doorway:
    """One per server. Used from one event loop."""

    def __init__(self, curator: Curator, gate: Gate, *, limits: ServerLimits) -> None:
        self.curator = curator
        self.gate = gate
        self.limits = limits
        self.metrics = Metrics()
        self.catalog = Catalog(curator)
        self.queue = Queue(workers=limits.workers, most_waiting=limits.waiting_per_user)
        self._held = 0

    @contextmanager
    def room(self, size: int) -> Iterator[None]:
        """Reserve memory for an answer while it is sent. Refuse an answer that is too large, and
        one that exceeds the limit of all together.
        """
        if size > self.limits.result:
            raise NoRoom(f"The answer has more than {self.limits.result:,} bytes.", passing=False)
        if self._held + size > self.limits.results:
            raise NoRoom("Too many answers are being sent at this moment.", passing=True)
        self._held += size
        try:
            yield
        finally:
            self._held -= size

    async def hold(self, began: float) -> None:
        """In hardened mode, wait until a multiple of the deadline has passed since a moment.

        Privacy: S13. How long anything takes here depends on what the workers do meanwhile, and so
        on data. If free statements were answered at once, they would be a clock. The curator delays
        the answers of questions; this delays all others.
        """
        deadline = self.curator.policy.limits.deadline
        if deadline is not None:
            periods = max(1, math.ceil((time.monotonic() - began) / float(deadline)))
            await asyncio.sleep(began + periods * float(deadline) - time.monotonic())

    def broke(self, error: BaseException) -> None:
        """Log a failure of our own by its type and place. Its message may contain private
        values.
        """
        trace = error.__traceback__
        place = "an unknown place"
        while trace is not None:
            name = trace.tb_frame.f_globals.get("__name__", "")
            if name.startswith("discreet"):
                place = f"{name}, line {trace.tb_lineno}"
            trace = trace.tb_next
        self.metrics.count("failures")
        _log.error("failure", extra={"fields": {"type": type(error).__name__, "at": place}})
