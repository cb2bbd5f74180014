"""What a question costs on a server beside the server's own query without noise, and a snapshot
beside a plain copy.

python bench/engines.py [--rows 5000000] [--repeats 3]

A Postgres of its own is started, with its default settings. Ours is a whole question: planned,
charged, read from the prepared snapshot, noised and stored. The server's own query reads the live
tables. Both run in turn, after one of each; the fastest of each is shown.

A plain copy is CREATE TABLE AS in the server, which no row leaves; a client's copy reads the tables
by COPY and writes them back by COPY, as a snapshot does. Processor time is that of the server's
processes and of this one together.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.engines.stores import store_of
from discreet.policy.policy import Policy
from real_postgres import Server, server

STATES = [f"S{place}" for place in range(50)]
SOURCE = """
CREATE TABLE people (person_id bigint, state text, sex text);
INSERT INTO people SELECT i, 'S' || (i * 7919 % 50), (ARRAY['F', 'M', 'X'])[1 + (i * 31 % 3)::int]
  FROM generate_series(1::bigint, {people}) AS i;
CREATE TABLE visits (person_id bigint, state text, cost numeric(8, 2), zip text, day date);
INSERT INTO visits SELECT 1 + i % {people}, 'S' || (i * 104729 % 50), (i * 7907 % 100000) / 100.0,
  'z' || (i * 15485863 % {zips}), DATE '2024-01-01' + (i * 13 % 366)::int FROM generate_series(1::bigint, {rows}) AS i;
"""
TABLES = ("people", "visits")
POLICY = """
source: {at}
engine: {{name: postgres, reader: '{reader}'}}
unit: person
tables:
  people:
    owner: person_id
    columns: {{state: {{values: [{states}]}}, sex: {{values: [F, M, X]}}}}
  visits:
    owner: person_id
    max_rows: 5
    columns:
      state: {{values: [{states}]}}
      cost: {{decimal: [0, 1000], step: 0.01}}
      zip: text
      day: {{date: [2024-01-01, 2024-12-31]}}
budget: {{epsilon: 1000000, delta: 1e-6}}
limits: {{epsilon: 10, seconds: 600}}
"""
QUESTIONS = {  # what it is; ours; the server's own
    "50 states, count and sum": (
        "SELECT state, COUNT(*), SUM(cost) FROM visits GROUP BY state",
        "SELECT state, COUNT(*), SUM(cost) FROM visits GROUP BY state",
    ),
    "unknown keys, count": (
        "SELECT zip, COUNT(*) FROM visits GROUP BY zip",
        "SELECT zip, COUNT(*) FROM visits GROUP BY zip",
    ),
    "median by state": (
        "SELECT state, MEDIAN(cost) FROM visits GROUP BY state",
        "SELECT state, percentile_disc(0.5) WITHIN GROUP (ORDER BY cost) FROM visits GROUP BY state",
    ),
    "join, sum by sex": (
        "SELECT p.sex, SUM(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex",
        "SELECT p.sex, SUM(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex",
    ),
}


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def spent(running: Server, work: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that work takes, and those of processor time."""
    before = processor_time(running)
    seconds = timed(work)
    return seconds, processor_time(running) - before


def memory_in_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def processor_time(running: Server) -> float:
    """Return the processor time so far of a server's processes and of this one."""
    lines = (running.folder / "data" / "postmaster.pid").read_text().splitlines()
    ours, ticks = resource.getrusage(resource.RUSAGE_SELF), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended since
            continue
        if fields[1] == lines[0]:
            ticks += int(fields[11]) + int(fields[12])
        elif process.name == lines[0]:  # and those of its children that have ended
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK") + ours.ru_utime + ours.ru_stime


def copy_by_client(address: str, raw: psycopg.Connection) -> None:
    """Read the live tables by COPY, and write them back."""
    with psycopg.connect(address, autocommit=True) as other:
        for table in TABLES:
            raw.execute(f"CREATE TABLE copy_of_{table} (LIKE {table})".encode())
            out = other.cursor().copy(f"COPY {table} TO STDOUT (FORMAT binary)".encode())
            into = raw.cursor().copy(f"COPY copy_of_{table} FROM STDIN (FORMAT binary)".encode())
            with out as rows, into as copied:
                for row in rows:
                    copied.write(row)


def show_snapshots(running: Server, policy: Policy, raw: psycopg.Connection, repeats: int) -> None:
    """Take snapshots and copies in turn; print the least of each."""
    store = store_of(policy)
    address = str(policy.source)
    plain = "; ".join(f"CREATE TABLE copy_of_{table} AS SELECT * FROM {table}" for table in TABLES)
    ways: dict[str, Callable[[], object]] = {
        "plain copy": lambda: raw.execute(plain.encode()),
        "client's copy": lambda: copy_by_client(address, raw),
        "ours": lambda: store.build(1, policy.source),
    }
    took: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for _ in range(1 + repeats):
        for way, work in ways.items():
            took[way].append(spent(running, work))
            raw.execute("DROP TABLE IF EXISTS copy_of_people, copy_of_visits")
        store.remove(1)
    least = {
        way: [min(each) for each in zip(*turns[1:], strict=True)] for way, turns in took.items()
    }
    wall, work = least["plain copy"]
    for way, (seconds, processor) in least.items():
        print(
            f"| {way} | {seconds:.2f} s, {seconds / wall:.1f} times | processor {processor:.2f} s, "
            f"{processor / work:.1f} times |"
        )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=5_000_000)
    arguments.add_argument("--repeats", type=int, default=3)
    chosen = arguments.parse_args()
    with server(options="") as running, tempfile.TemporaryDirectory() as folder:
        choice = running.database(kind="")
        raw = psycopg.connect(choice.at or "", autocommit=True)
        people = max(1, chosen.rows // 5)
        raw.execute(SOURCE.format(rows=chosen.rows, people=people, zips=people).encode())
        path = Path(folder) / "town.yaml"
        path.write_text(POLICY.format(at=choice.at, reader=choice.reader, states=", ".join(STATES)))
        policy = Policy.read(path)
        create_ledger(policy)
        raw.execute("VACUUM ANALYZE people")
        raw.execute("VACUUM ANALYZE visits")
        print(
            f"Postgres {raw.info.server_version // 10000}, {chosen.rows:,} rows, {people:,} people and as many keys"
        )
        show_snapshots(running, policy, raw, chosen.repeats)
        curator = Curator(policy)
        print(f"| most memory of this process so far | {memory_in_mb():.0f} MB |")
        for what, (ours, own) in QUESTIONS.items():
            asked, alone = [], []
            for turn in range(1 + chosen.repeats):
                alone.append(spent(running, lambda own=own: raw.execute(own.encode()).fetchall()))  # type: ignore[misc]
                # another question each time: what was asked before is free
                epsilon = 1 + turn / 100
                ask = partial(curator.ask, ours, analyst="curator", epsilon=epsilon)
                asked.append(spent(running, ask))
            (one, one_work), (other, other_work) = min(alone[1:]), min(asked[1:])
            print(
                f"| {what} | own query {one:.2f} s | ours {other:.2f} s | {other / one:.2f} times | "
                f"processor {one_work:.2f} s and {other_work:.2f} s |"
            )
        kept = "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c"
        of = "relnamespace = 'discreet_1'::regnamespace AND relname IN ('people', 'visits')"
        [(size,)] = raw.execute(f"{kept} WHERE {of}".encode()).fetchall()
        print(f"| room for a prepared row | {size / (chosen.rows + people):.0f} bytes |")
        raw.close()


if __name__ == "__main__":
    main()
