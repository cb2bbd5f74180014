"""Questions on a snapshot that Spark prepared, beside Spark's own un-noised query on the same rows,
in one run.

python bench/spark.py [millions of rows] [address]

Printed: preparing beside a plain copy of the files by Spark, and each question beside Spark's own
query on the source's files; seconds, the least of three. The default is a quarter of a million rows
on local[2]: a cluster shows more at 20.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb

import discreet
from discreet.binding import create_ledger
from discreet.engines.spark.session import connect
from discreet.policy.policy import Policy

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
"""
STATES = [f"S{place}" for place in range(50)]
GENERATE = """\
COPY (
  SELECT range AS person, (hash(range) % 121)::INTEGER AS age, 'S' || (hash(range, 1) % 50) AS state,
    'w' || (hash(range, 2) % KEYS) AS word
  FROM range(FIRST, LAST)
) TO 'FILE' (FORMAT parquet)
"""
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
}


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main(millions: float, address: str) -> None:
    count = int(millions * 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data/people").mkdir(parents=True)
        for place in range(FILES):
            ends = {"FIRST": place * count // FILES, "LAST": (place + 1) * count // FILES}
            sql = GENERATE.replace("KEYS", str(count // 20))
            for word, end in ends.items():
                sql = sql.replace(word, str(end))
            duckdb.execute(sql.replace("FILE", str(folder / f"data/people/{place}.parquet")))
        text = POLICY.replace("ADDRESS", address).replace("STATES", ", ".join(STATES))
        (folder / "policy.yaml").write_text(text)
        session = connect(address)
        source = (folder / "data/people").as_uri()
        # the first one starts processes
        session.read.parquet(source).selectExpr("count(*)").toArrow()
        copied = timed(
            lambda: session.read.parquet(source).write.parquet((folder / "copy").as_uri())
        )
        policy = Policy.read(folder / "policy.yaml")
        create_ledger(policy)
        made = list[discreet.Curator]()
        prepared = timed(lambda: made.append(discreet.open(folder / "policy.yaml")))
        print(
            f"{count:,} rows on {address}: prepared in {prepared:.1f} s, copied in {copied:.1f} s",
            flush=True,
        )
        session.read.parquet(source).createOrReplaceTempView("people")
        for what, (question, raw) in QUESTIONS.items():
            made[0].quote(question, analyst="alice", epsilon=1)  # planned once, as a server does
            asked = partial(made[0].ask, question, analyst="alice")
            # each is measured anew
            ours = min(timed(partial(asked, epsilon=epsilon)) for epsilon in (1, 2, 3))
            theirs = min(timed(session.sql(raw).toArrow) for _ in range(3))
            print(
                f"{what}: {ours:.2f} s, un-noised {theirs:.2f} s: {ours / theirs:.2f} times",
                flush=True,
            )


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 0.25,
        sys.argv[2] if len(sys.argv) > 2 else "local[2]",
    )
