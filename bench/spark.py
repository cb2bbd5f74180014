"""Questions on a snapshot that Spark prepared, beside Spark's own un-noised query on the same rows,
in one run.

    python bench/spark.py [--rows 250000] [--keys 10000] [--at local[2]] [--tumult SECONDS]
                          [--folder FOLDER] [--only WORDS]

Spark itself makes the data. Printed: preparing beside a plain copy of the files by Spark, and each
question beside Spark's own query on the source's files; seconds, the least of three. A thousand of
the unknown keys are frequent, the others are too rare to be shown. With `--tumult`, Tumult Analytics is asked the same
of the same files afterwards, on a Spark of its own with the same address: each question three
times, or until SECONDS are over, also beside Spark's own query. The default is small: a cluster
shows more at 20 million rows and a million keys.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import discreet
from discreet.binding import create_ledger
from discreet.engines.spark.session import connect
from discreet.engines.stores import store_of
from discreet.policy.policy import Policy
from peers import PEERS, installed

POLICY = """\
source: data
unit: person
engine: {name: spark, at: "ADDRESS"}
budget: {epsilon: 1000, delta: 1e-3}
limits: {epsilon: 10, seconds: 600}
analysts: {alice: {epsilon: 900}}
tables:
  people:
    owner: person
    columns:
      person: {identifier: true}
      age: {integer: [0, 120]}
      state: {values: [STATES]}
      word: text
  homes:
    owner: person
    columns:
      person: {identifier: true}
      rooms: {values: [ROOMS]}
  regions: {public: true}
"""
STATES = [f"S{place}" for place in range(50)]
REGIONS = [f"R{place}" for place in range(5)]
ROOMS = [f"{rooms} rooms" for rooms in range(1, 9)]
FREQUENT = 1000  # keys that a tenth of the rows share
GENERATE = {
    "people": f"""\
SELECT id AS person, CAST(pmod(xxhash64(id, 0), 121) AS INT) AS age,
  concat('S', pmod(xxhash64(id, 1), 50)) AS state,
  concat('w', pmod(xxhash64(id, 2), IF(pmod(xxhash64(id, 3), 10) = 0, {FREQUENT}, KEYS))) AS word
FROM range(0, ROWS, 1, FILES)""",
    "homes": """\
SELECT id AS person, concat(pmod(xxhash64(id, 4), 8) + 1, ' rooms') AS rooms
FROM range(0, ROWS, 1, FILES)""",
    "regions": """\
SELECT concat('S', id) AS state, concat('R', id % 5) AS region FROM range(0, 50, 1, 1)""",
}
FILES = 8
QUESTIONS = {
    "mean by 50 states": (
        "SELECT state, COUNT(*), AVG(age) FROM people GROUP BY state",
        "SELECT state, count(*), avg(age) FROM people GROUP BY state",
    ),
    "median by 50 states": (
        "SELECT state, MEDIAN(age) FROM people GROUP BY state",
        "SELECT state, percentile(age, 0.5) FROM people GROUP BY state",
    ),
    "unknown keys": (
        "SELECT word, COUNT(*) AS n FROM people GROUP BY word ORDER BY n DESC LIMIT 10",
        "SELECT word, count(*) AS n FROM people GROUP BY word ORDER BY n DESC LIMIT 10",
    ),
    "join with a public table": (
        "SELECT region, COUNT(*), AVG(age) FROM people JOIN regions USING (state) GROUP BY region",
        "SELECT region, count(*), avg(age) FROM people JOIN regions USING (state) GROUP BY region",
    ),
    "join of two tables by owner": (
        "SELECT rooms, COUNT(*), AVG(age) FROM people JOIN homes USING (person) GROUP BY rooms",
        "SELECT rooms, count(*), avg(age) FROM people JOIN homes USING (person) GROUP BY rooms",
    ),
}


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def generate(session: Any, folder: Path, *, rows: int, keys: int) -> None:
    """Write tables of one row a person in as many files each, and the public one."""
    for table, sql in GENERATE.items():
        made = sql.replace("KEYS", str(keys)).replace("ROWS", str(rows))
        made = made.replace("FILES", str(FILES))
        session.sql(made).write.parquet((folder / table).as_uri())


def ours(folder: Path, address: str, *, rows: int, keys: int, only: str) -> None:
    """Print how long preparing takes, unless it was done before, and each question."""
    session, policy = connect(address), folder / "policy.yaml"
    again = policy.exists()
    if not again:
        generate(session, folder / "data", rows=rows, keys=keys)
        text = POLICY.replace("ADDRESS", address).replace("STATES", ", ".join(STATES))
        policy.write_text(text.replace("ROOMS", ", ".join(ROOMS)))
        create_ledger(Policy.read(policy))
    for table in GENERATE:
        source = (folder / "data" / table).as_uri()
        session.read.parquet(source).createOrReplaceTempView(table)
    session.sql("SELECT count(*) FROM people").toArrow()  # the first one starts processes
    curator = discreet.open(policy) if again else prepared(session, folder)
    for what, (question, raw) in QUESTIONS.items():
        if only not in what:
            continue
        curator.quote(question, analyst="alice", epsilon=1)  # planned once, as a server does
        asked = partial(curator.ask, question, analyst="alice")
        own, noisy = list[float](), list[float]()
        for _ in range(3):  # each is measured anew
            epsilon = 1 + len(curator.ledger()) / 1000
            own.append(timed(session.sql(raw).toArrow))
            noisy.append(timed(partial(asked, epsilon=epsilon)))
        tell(what, noisy, own)


def prepared(session: Any, folder: Path) -> discreet.Curator:
    """Return a curator of a first snapshot. Print how long it took beside a copy, both the first
    that this Spark makes, and a second one beside a second copy.
    """
    policy = Policy.read(folder / "policy.yaml")
    store, copied = store_of(policy), list[float]()

    def copy() -> None:
        for table in GENERATE:
            session.table(table).write.parquet((folder / "copy" / table).as_uri())

    snapshots, made = list[float](), list[discreet.Curator]()
    for build in (
        lambda: made.append(discreet.open(folder / "policy.yaml")),
        lambda: store.build(2, policy.source),
    ):
        copied.append(timed(copy))
        shutil.rmtree(folder / "copy")
        snapshots.append(timed(build))
    store.remove(2)
    for what, one, other in zip(("first", "second"), snapshots, copied, strict=True):
        told = f"{one:.1f} s, a copy {other:.1f} s: {one / other:.1f} times"
        print(f"the {what} snapshot: {told}", flush=True)
    return made[0]


def stop() -> None:
    """Stop the Spark of this process, to leave the machine to the next one."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()


def tumult(folder: Path, address: str, seconds: float, *, only: str) -> None:
    """Print how long Tumult takes for each question."""
    asked = {
        "tables": list(GENERATE),
        "states": STATES,
        "regions": REGIONS,
        "rooms": ROOMS,
        "questions": {what: raw for what, (_, raw) in QUESTIONS.items() if only in what},
    }
    (folder / "questions.json").write_text(json.dumps(asked))
    peer = next(peer for peer in PEERS if peer.name == "tumult")
    script = Path(__file__).parent / "spark_peers" / "run.py"
    command = [str(installed(peer)), str(script), str(folder), address, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as running:
        assert running.stdout is not None
        for line in running.stdout:
            told = json.loads(line)
            if "error" in told:
                print(f"Tumult, {told['question']}: {told['error']}", flush=True)
            else:
                tell(f"Tumult, {told['question']}", told["seconds"], told["plain"])
    if running.returncode:
        print(f"Tumult ended with {running.returncode}", flush=True)


def tell(what: str, noisy: list[float], own: list[float]) -> None:
    one, other = min(noisy), min(own)
    print(
        f"{what}: {one:.2f} s, un-noised {other:.2f} s: {one / other:.2f} times (asked {len(noisy)} times)",
        flush=True,
    )


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=250_000)
    arguments.add_argument("--keys", type=int, default=10_000)
    arguments.add_argument("--at", default="local[2]")
    arguments.add_argument("--tumult", type=float, metavar="SECONDS")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--only", default="")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.folder or Path(name)
        print(f"{chosen.rows:,} rows, {chosen.keys:,} keys, {chosen.at}", flush=True)
        ours(folder, chosen.at, rows=chosen.rows, keys=chosen.keys, only=chosen.only)
        if chosen.tumult is not None:
            stop()
            tumult(folder, chosen.at, chosen.tumult, only=chosen.only)


if __name__ == "__main__":
    main()
