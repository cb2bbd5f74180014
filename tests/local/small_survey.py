"""A survey, simulated respondents, and a collector that runs beside the test."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from discreet.local.collector.collector import ReportStore
from discreet.local.collector.serve import listen
from discreet.local.question import Survey, submission
from discreet.local.survey import from_text
from discreet.noise import bits

WEEKEND = """\
survey: weekend-2026
epsilon: 2
questions:
  drank:   {ask: "Did you go out drinking over the weekend?", values: [no, yes], protocol: two_coins}
  browser: {ask: "Which browser?", values: [firefox, chrome, safari, other], epsilon: 0.5}
  hours:   {ask: "Hours slept", number: [0, 24], step: 0.5, epsilon: 0.4}
"""

SURE = 1 - 1e-12
"""For intervals that a right estimate leaves less than once in 10^9 runs, though reports are not
quite normal.
"""


def weekend() -> Survey:
    return from_text(WEEKEND, file="weekend.yaml")


def person() -> str:
    return f"{bits.SYSTEM.bits(128):032x}"


def line(survey: Survey, answers: Mapping[str, Any], respondent: str | None = None) -> bytes:
    """One respondent's submission, randomized."""
    reports = {
        name: survey.question(name).protocol.respond(value) for name, value in answers.items()
    }
    return submission(survey, respondent or person(), reports)


@contextmanager
def serving(survey: Survey, path: Path) -> Iterator[str]:
    """A collector on a free port, in a thread of its own; gives its address."""
    started: queue.Queue[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = queue.Queue()

    def estimate() -> dict[str, Any]:
        with closing(ReportStore(path, survey)) as reading:
            return reading.sums().as_estimate_json()

    async def run() -> None:
        stop = asyncio.Event()
        with closing(ReportStore(path, survey)) as store:
            server, committing, shown = await listen(
                store, host="127.0.0.1", port=0, address=None, estimate=estimate
            )
            started.put((shown, asyncio.get_running_loop(), stop))
            async with server:
                await stop.wait()
            committing.cancel()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    address, loop, stop = started.get(timeout=30)
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
