"""How long preparing a snapshot takes, beside DuckDB loading the same Parquet file, in one run.

python bench/prepare.py [millions of rows] ...
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

from discreet.engines.duckdb.preparing.prepare import prepare
from discreet.policy.policy import Policy

POLICY = """\
source: data
unit: person
budget: {epsilon: 1}
limits: {memory: 4GB}
tables:
  people:
    owner: person_id
    max_rows: MAX_ROWS
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 150000], step: 0.01}
      sex: {values: [F, M, X]}
      diagnosis: {values: [none, flu, cold], nullable: true}
      smoker: {boolean: true}
      zip: text
      born: {date: [1940-01-01, 2010-12-31]}
      state: {values: [STATES]}
"""
STATES = [f"S{place}" for place in range(50)]
GENERATE = """\
COPY (
  SELECT
    (range // ROWS_EACH)::BIGINT AS person_id,
    (hash(range) % 131)::INTEGER - 5 AS age,
    ((hash(range, 1) % 20000000) / 100)::DOUBLE AS income,
    (['F', 'M', 'X'])[1 + (hash(range, 2) % 3)::INTEGER] AS sex,
    CASE WHEN hash(range, 3) % 5 > 0 THEN (['none', 'flu', 'cold'])[1 + (hash(range, 4) % 3)::INTEGER] END AS diagnosis,
    hash(range, 5) % 3 = 0 AS smoker,
    (10000 + hash(range, 6) % 90000)::VARCHAR AS zip,
    DATE '1940-01-01' + (hash(range, 7) % 30000)::INTEGER AS born,
    'S' || (hash(range, 8) % 51) AS state
  FROM range(ROWS)
) TO 'FILE' (FORMAT parquet)
"""


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def load(file: Path, target: Path) -> None:
    with duckdb.connect(str(target), config={"memory_limit": "4GB"}) as connection:
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE TABLE people AS FROM '{file}'")
        connection.execute("CHECKPOINT")


def measure(folder: Path, millions: float, rows_each: int, max_rows: int) -> None:
    (folder / "data").mkdir(parents=True)
    file, rows = folder / "data" / "people.parquet", int(millions * 10**6)
    sql = (
        GENERATE.replace("ROWS_EACH", str(rows_each))
        .replace("ROWS", str(rows))
        .replace("FILE", str(file))
    )
    duckdb.connect().execute(sql)
    text = POLICY.replace("MAX_ROWS", str(max_rows)).replace("STATES", ", ".join(STATES))
    policy = Policy.parse(text, path=folder / "policy.yaml")
    loads, prepares = [], []
    for number in (1, 2):
        loads.append(timed(lambda number=number: load(file, folder / f"load{number}.duckdb")))  # type: ignore[misc]
        prepares.append(
            timed(lambda number=number: prepare(policy, policy.source, policy.store, number))
        )  # type: ignore[misc]
    ratio = min(prepares) / min(loads)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{millions:6g} M rows, {rows_each} a person, at most {max_rows} kept: "
        f"load {min(loads):6.2f} s, prepare {min(prepares):6.2f} s, ratio {ratio:4.2f} (at most 5), peak {peak:5.0f} MB"
    )


def main() -> None:
    for millions in map(float, sys.argv[1:] or ["1", "10"]):
        for rows_each, max_rows in ((1, 1), (3, 3), (3, 2)):
            with tempfile.TemporaryDirectory() as folder:
                measure(Path(folder), millions, rows_each, max_rows)


if __name__ == "__main__":
    main()
