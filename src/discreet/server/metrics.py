"""Count what the server does, for its operators. No count depends on the content of a question."""

from __future__ import annotations

import bisect
import threading
from collections import Counter

# the upper bounds of the histogram, in seconds
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counters, gauges and one histogram of seconds, in the text form that Prometheus reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._gauges: dict[str, float] = {}
        self._seconds = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def count(self, name: str, label: str = "", by: int = 1) -> None:
        """Add to a counter. The label must be one of a closed set, never a client's text."""
        with self._lock:
            self._counts[name, label] += by

    def gauge(self, name: str, value: float) -> None:
        with self._lock:
            self._gauges[name] = value

    def seconds(self, value: float) -> None:
        """Note how long a statement took."""
        with self._lock:
            self._seconds[bisect.bisect_left(BOUNDS, value)] += 1
            self._sum += value

    def text(self) -> str:
        with self._lock:
            lines = []
            for (name, label), value in sorted(self._counts.items()):
                labels = f'{{kind="{label}"}}' if label else ""
                lines.append(f"discreet_{name}_total{labels} {value}")
            lines += [f"discreet_{name} {value:g}" for name, value in sorted(self._gauges.items())]
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), self._seconds, strict=True):
                total += count
                lines.append(f'discreet_statement_seconds_bucket{{le="{bound}"}} {total}')
            lines += [
                f"discreet_statement_seconds_sum {self._sum:g}",
                f"discreet_statement_seconds_count {total}",
            ]
        return "\n".join(lines) + "\n"
