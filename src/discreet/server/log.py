"""Write logs as JSON lines: what happened, for which user, how long it took. A log never has a
statement, a value or an engine's message.
"""

from __future__ import annotations

import json
import logging
import sys
import time


class JsonLines(logging.Formatter):
    """Formats each record as a line with one JSON object. More fields come from
    `extra={"fields": {...}}`. The text of an exception is left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "from": record.name.removeprefix("discreet."),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, default=str)


def log_to_stderr(level: int = logging.INFO) -> None:
    """Write our own logs to stderr as JSON lines, and only errors of the libraries."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    ours = logging.getLogger("discreet")
    ours.handlers[:] = [handler]
    ours.setLevel(level)
    ours.propagate = False
    for other in ("asyncio", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(other).handlers[:] = [handler]
        logging.getLogger(other).setLevel(logging.ERROR)
        logging.getLogger(other).propagate = False
