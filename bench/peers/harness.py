"""Around each peer's own answers: they are asked in turn with plain DuckDB on the same Parquet, and
both are told.

A peer is asked each question as often as `seconds` allow, three times at least, 100 times at most.
The first asking warms up: its time is left out, its answer counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb

STATES = [f"S{place:02}" for place in range(50)]
LOW, HIGH = 0, 200_000
QUANTILES = [0.1, 0.25, 0.5, 0.75, 0.9]
EPSILON, DELTA = 1.0, 1e-7
PLAIN = {
    "count": "SELECT COUNT(*) FROM people",
    "filtered count": "SELECT COUNT(*) FROM people WHERE age BETWEEN 40 AND 64",
    "mean by state": "SELECT state, AVG(income) FROM people GROUP BY state",
    "median": "SELECT MEDIAN(income) FROM people",
    "five quantiles": f"SELECT QUANTILE_CONT(income, {QUANTILES}) FROM people",
    "unknown keys": "SELECT word, COUNT(*) FROM people GROUP BY word",
}
MOST = 100


def run(answers: dict[str, Callable[[str], Any]]) -> None:
    """Ask all that a peer can do, of the Parquet file named on the command line; print one JSON
    line a question.
    """
    path, seconds = sys.argv[1], float(sys.argv[2])
    wanted = sys.argv[3:] or list(PLAIN)
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW people AS FROM '{path}'")
    for question in [each for each in PLAIN if each in answers and each in wanted]:
        theirs, raw, values = [], [], []
        cpu, raw_cpu = [], []
        began = time.perf_counter()
        try:
            while len(values) < 3 or (len(values) < MOST and time.perf_counter() - began < seconds):
                start, used = time.perf_counter(), time.process_time()
                values.append(answers[question](path))
                between, middle = time.perf_counter(), time.process_time()
                plain.sql(PLAIN[question]).to_arrow_table()
                theirs.append(between - start)
                cpu.append(middle - used)
                raw.append(time.perf_counter() - between)
                raw_cpu.append(time.process_time() - middle)
        except Exception as error:
            print(
                json.dumps(
                    {"question": question, "error": f"{type(error).__name__}: {error}"[:300]}
                ),
                flush=True,
            )
            continue
        print(
            json.dumps(
                {
                    "question": question,
                    "seconds": theirs[1:],
                    "plain": raw[1:],
                    "cpu": cpu[1:],
                    "plain_cpu": raw_cpu[1:],
                    "values": values,
                },
                default=float,
            ),
            flush=True,
        )
