"""What a scalar question costs whatever the number of rows, beside plain DuckDB and a bare durable
append, in one run.

    python bench/fixed.py [--repeats 200] [--threads 64] [--asked 600] [--data FOLDER]

The table has 1,000 rows, so what is left is planning, proof, charge, noise, margin and answer.

    fresh       a text that was never asked: planned, proved, charged, answered
    dearer      a text that was asked before, at a higher epsilon: charged and answered
    recalled    a text and an epsilon that were asked before: free
    duckdb      the same count by plain DuckDB, as an Arrow table
    append      one row into a bare SQLite file that is durable when it returns; a charge and its
                answer are two

Wall time is what an analyst waits, CPU time what the machine works, and the least CPU time about
what it works when it does nothing else. Exits with 1 where a fresh question needs at least TARGET
of CPU time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from ask import FIXED_ROWS, RESULTS, opened, store_of

TARGET = 6.0  # milliseconds
RATE = 150.0  # questions a second, by all threads together
WARM = 20

Way = Callable[[int], object]


def ways(curator: Any, folder: Path, bare: Path) -> dict[str, Way]:
    """Each takes a number that it was never given before."""
    import duckdb

    plain = duckdb.connect()
    plain.execute(f"ATTACH '{store_of(folder)}' AS prepared (READ_ONLY)")
    log = sqlite3.connect(bare, isolation_level=None)
    for statement in (
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=FULL",
        "CREATE TABLE rows (body TEXT)",
    ):
        log.execute(statement)
    row = "x" * 800  # about a charge's

    def asked(sql: str, epsilon: str) -> None:
        curator.ask(sql, analyst="alice", epsilon=epsilon)

    return {
        "fresh": lambda number: asked(fresh(number), "0.1"),
        "dearer": lambda number: asked("SELECT COUNT(*) FROM people", f"0.1{number:06}"),
        "recalled": lambda _: asked("SELECT COUNT(*) FROM visits", "0.1"),
        "duckdb": lambda _: (
            plain.cursor().sql("SELECT COUNT(*) FROM prepared.people").to_arrow_table()
        ),
        "append": lambda _: log.execute("INSERT INTO rows VALUES (?)", (row,)),
    }


def fresh(number: int) -> str:
    """A question that differs from all others in what is read."""
    return f"SELECT COUNT(*) AS n FROM people WHERE salary <> {number}"


def timed(
    each: dict[str, Way], numbers: itertools.count[int], repeats: int
) -> dict[str, tuple[float, ...]]:
    """Milliseconds: the medians of wall and of CPU time, and the least CPU time; asked in turn."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in each}
    for _ in range(repeats + WARM):
        for name, way in each.items():
            number = next(numbers)
            wall, cpu = time.perf_counter(), time.process_time()
            way(number)
            taken[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    found = {}
    for name, times in taken.items():
        walls, cpus = zip(*times[WARM:], strict=True)
        found[name] = tuple(1000 * seconds for seconds in (median(walls), median(cpus), min(cpus)))
    return found


def rate(
    way: Way, numbers: itertools.count[int], *, threads: int, asked: int
) -> tuple[float, float]:
    """Questions a second from so many threads, and milliseconds of CPU time for each."""
    turns = iter(range(asked))

    def work() -> None:
        for _ in turns:
            way(next(numbers))

    crowd = [threading.Thread(target=work) for _ in range(threads)]
    wall, cpu = time.perf_counter(), time.process_time()
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    return asked / (time.perf_counter() - wall), 1000 * (time.process_time() - cpu) / asked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--asked", type=int, default=600)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (given.data or Path(scratch)) / str(FIXED_ROWS)
        curator = opened(folder, FIXED_ROWS)
        each = ways(curator, folder, Path(scratch) / "bare.db")
        numbers = itertools.count(curator._ledger.head()["number"] + 1)
        found = timed(each, numbers, given.repeats)
        crowds = {
            name: rate(each[name], numbers, threads=given.threads, asked=given.asked)
            for name in ("fresh", "recalled")
        }
    rows: dict[str, Any] = {}
    print(
        f"{'':10} {'wall ms':>9} {'CPU ms':>9} {'least':>7} {'CPU, times duckdb + 2 appends':>31}"
    )
    floor = found["duckdb"][1] + 2 * found["append"][1]
    for name, (wall, cpu, least) in found.items():
        rows[name] = {"wall": wall, "cpu": cpu, "least": least, "ratio": cpu / floor}
        print(f"{name:10} {wall:9.2f} {cpu:9.2f} {least:7.2f} {cpu / floor:31.1f}")
    for name, (speed, cpu) in crowds.items():
        rows[f"{given.threads} threads, {name}"] = {"rate": speed, "cpu": cpu}
        print(
            f"{given.threads} threads, {name}: {speed:.0f} a second, {cpu:.2f} ms of CPU time each"
        )
    missed = found["fresh"][2] > TARGET
    print(
        f"target: {TARGET} ms of CPU time for a fresh question, {RATE:.0f} a second"
        + "  MISSED" * missed
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "fixed.json").write_text(json.dumps(rows, indent=1))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
