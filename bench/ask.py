"""How long a question takes beside plain DuckDB, on the same prepared table and on the source
Parquet, in one run.

    python bench/ask.py [--rows 1000000 10000000] [--big] [--data FOLDER] [--only WORD]

Ours and the two plain ones are asked in turn, and medians are told: read the multiples, not the
milliseconds. Every question of ours gets noise of a scale that was never drawn before. `fixed` is
what the same question takes on a table of 1,000 rows, `slope` what each further millisecond of
plain DuckDB costs us. Peak memory is that of a process which does nothing else. --big adds 100
million rows; --data keeps the generated tables for the next run. Exits with 1 if a target is
missed; the rows go to bench/results/ask.json too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

RESULTS = Path(__file__).parent / "results"
FIXED_ROWS, BIG_ROWS = 1_000, 100_000_000
FIXED = 15.0  # milliseconds that a question may take beyond its multiple of plain DuckDB
MOST_MEMORY = 200.0  # megabytes beyond plain DuckDB's, where a question does not say otherwise
REPEATS, SECONDS = 25, 20.0  # of one question, whichever comes first; three times at least

POLICY = """\
source: data
unit: person
budget: {epsilon: 1000000, delta: 0.1}
limits: {epsilon: 10, seconds: 600, memory: 8GB}
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      state: {values: [STATES]}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01}
      salary: {integer: [0, 99999]}
      word: text
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      state: {values: [STATES]}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01}
      word: text
  patients:
    owner: person_id
    columns:
      person_id: {identifier: true}
      state: {values: [STATES]}
analysts:
  alice: {epsilon: 1000000, delta: 0.1}
"""
STATES = [f"S{place:02}" for place in range(50)]


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, and how many times plain DuckDB (plus FIXED) it may take; `plain` where that asks
    differently.
    """

    name: str
    sql: str
    times: float
    plain: str = ""
    memory: float = MOST_MEMORY  # megabytes beyond plain DuckDB's


def basics(table: str) -> list[Question]:
    each = {"people": "1 row a person", "visits": "3 rows a person"}[table]
    return [
        Question(name=f"count, {each}", sql=f"SELECT COUNT(*) AS {{n}} FROM {table}", times=1.25),
        Question(
            name=f"filtered count, {each}",
            sql=f"SELECT COUNT(*) AS {{n}} FROM {table} WHERE age BETWEEN 40 AND 64",
            times=1.25,
        ),
        Question(
            name=f"sum and mean, {each}",
            sql=f"SELECT SUM(income) AS {{n}}, AVG(income) AS m FROM {table}",
            times=1.25,
        ),
        Question(
            name=f"50 states, count and mean, {each}",
            sql=f"SELECT state, COUNT(*) AS {{n}}, AVG(income) AS m FROM {table} GROUP BY state",
            times=1.25,
        ),
    ]


QUESTIONS = [
    *basics("people"),
    *basics("visits"),
    Question(
        name="100k unknown strings",
        sql="SELECT word, COUNT(*) AS {n} FROM people GROUP BY word",
        times=2,
    ),
    Question(
        name="persons per unknown string, 3 rows a person",
        sql="SELECT word, COUNT(DISTINCT person_id) AS {n} FROM visits GROUP BY word",
        times=8,
        plain="SELECT word, COUNT(*) AS {n} FROM visits GROUP BY word",
        memory=300,
    ),
    Question(name="median, 10^5 cells", sql="SELECT MEDIAN(salary) AS {n} FROM people", times=2),
    Question(
        name="five quantiles, 10^5 cells",
        sql="SELECT QUANTILE_CONT(salary, [0.1, 0.25, 0.5, 0.75, 0.9]) AS {n} FROM people",
        times=2,
    ),
    Question(name="median, cents", sql="SELECT MEDIAN(income) AS {n} FROM people", times=3),
    Question(
        name="visits per person",
        sql="SELECT AVG(n) AS {n} FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS v",
        times=2,
    ),
    Question(
        name="share of people with 3 visits",
        sql="SELECT AVG(CASE WHEN n > 2 THEN 1 ELSE 0 END) AS {n} "
        "FROM (SELECT person_id, COUNT(*) AS n FROM visits GROUP BY person_id) AS v",
        times=2,
    ),
    Question(
        name="visits joined with patients",
        sql="SELECT p.state, COUNT(*) AS {n}, AVG(v.income) AS m FROM visits AS v "
        "JOIN patients AS p ON v.person_id = p.person_id GROUP BY p.state",
        times=2,
    ),
]


# --- data -----------------------------------------------------------------------------------------


def generate(folder: Path, rows: int) -> None:
    """The tables as Parquet, each value a hash of its row's number; incomes and words are
    skewed.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    connection = duckdb.connect(config={"memory_limit": "4GB", "preserve_insertion_order": "false"})
    uniform = "((hash(range, {}) >> 11) / 9007199254740992.0)"
    state, age = (
        "'S' || lpad((hash(range, 1) % 50)::VARCHAR, 2, '0')",
        "(hash(range, 2) % 100)::INTEGER",
    )
    income = f"least(200000, 30000 * (0.1 - ln(1 - {uniform.format(3)})))"
    word = f"'w' || floor(100000 * {uniform.format(4)} ** 2)::INTEGER"
    salary = f"least(99999, 25000 * (0.1 - ln(1 - {uniform.format(5)})))::INTEGER AS salary, "
    # only the questions of `basics("people")` are asked of very many rows
    small = rows > 20_000_000
    for table, count, person, columns in (
        (
            "people",
            rows,
            "range",
            f"{age} AS age, {income} AS income, {salary}{word if not small else chr(39) * 2} AS word",
        ),
        (
            "visits",
            1 if small else rows,
            "range // 3",
            f"{age} AS age, {income} AS income, {word} AS word",
        ),
        ("patients", 1 if small else -(-rows // 3), "range", ""),
    ):
        connection.execute(
            f"COPY (SELECT ({person})::BIGINT AS person_id, {state} AS state, {columns} FROM range({count})) "
            f"TO '{data / table}.parquet' (FORMAT parquet)"
        )


def opened(folder: Path, rows: int) -> Any:
    """A curator of generated data, prepared by the path that everybody's data takes."""
    import discreet
    from discreet.binding import create_ledger

    policy = folder / "policy.yaml"
    if not policy.exists():
        generate(folder, rows)
        policy.write_text(POLICY.replace("STATES", ", ".join(STATES)), encoding="utf-8")
    if not (folder / "policy.ledger").exists():
        create_ledger(discreet.Policy.read(policy))
    return discreet.open(policy)


def store_of(folder: Path) -> Path:
    return folder / "policy.store" / "1.duckdb"


# --- times ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Medians in milliseconds: ours, plain DuckDB on the prepared table, and on the source's
    Parquet.
    """

    rows: int
    question: str
    ours: float
    plain: float
    parquet: float


def ask(curator: Any, sql: str) -> None:
    """Ask what was never asked before, by a new name of a column, with noise of a scale never drawn
    before.
    """
    rows = curator._ledger.head()["number"]
    answer = curator.ask(sql.format(n=f"n{rows}"), analyst="alice", epsilon=f"1.{rows:06}")
    assert answer.cost.epsilon > 0  # not one that was stored


class Asker:
    """One prepared snapshot, asked by us and by plain DuckDB."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.curator, self.rows = opened(folder, rows), rows
        # as DuckDB comes: our own engine's settings forgo some of its speed
        self.prepared = duckdb.connect()
        self.prepared.execute(f"ATTACH '{store_of(folder)}' AS prepared (READ_ONLY)")
        self.parquet = duckdb.connect()
        for table in ("people", "visits", "patients"):
            self.prepared.execute(f"CREATE VIEW {table} AS FROM prepared.{table}")
            self.parquet.execute(f"CREATE VIEW {table} AS FROM '{folder / 'data' / table}.parquet'")

    def timing(self, question: Question) -> Timing:
        plain = (question.plain or question.sql).format(n="n")
        ways: tuple[Callable[[], object], ...] = (
            lambda: ask(self.curator, question.sql),
            lambda: self.prepared.cursor().sql(plain).to_arrow_table(),
            lambda: self.parquet.cursor().sql(plain).to_arrow_table(),
        )
        taken: list[list[float]] = [[] for _ in ways]
        began = time.perf_counter()
        while len(taken[0]) < 4 or (
            len(taken[0]) < REPEATS and time.perf_counter() - began < SECONDS
        ):
            for way, found in zip(ways, taken, strict=True):
                start = time.perf_counter()
                way()
                found.append(1000 * (time.perf_counter() - start))
        # the first of each warms up
        ours, prepared, parquet = (median(found[1:]) for found in taken)
        return Timing(
            rows=self.rows, question=question.name, ours=ours, plain=prepared, parquet=parquet
        )

    def quote(self, sql: str) -> float:
        """Milliseconds of a quote."""
        taken = []
        for place in range(REPEATS):
            start = time.perf_counter()
            self.curator.quote(
                sql.format(n="n"), analyst="alice", epsilon=f"1.{place:06}", assuming=1000
            )
            taken.append(1000 * (time.perf_counter() - start))
        return median(taken)


# --- memory ---------------------------------------------------------------------------------------


def peak(folder: Path, rows: int, question: Question, *, plain: bool) -> float:
    """Megabytes that a process needs at most to ask a question once: of us, or of plain DuckDB on
    the same table.
    """
    command = [
        sys.executable,
        __file__,
        "--once",
        question.name,
        "--rows",
        str(rows),
        "--data",
        str(folder),
    ]
    found = subprocess.run(
        [*command, *(["--plain"] if plain else [])], capture_output=True, text=True, check=True
    )
    return float(found.stdout)


def once(folder: Path, rows: int, question: Question, *, plain: bool) -> None:
    if plain:
        with duckdb.connect(str(store_of(folder)), read_only=True) as connection:
            connection.sql((question.plain or question.sql).format(n="n")).to_arrow_table()
    else:
        ask(opened(folder, rows), question.sql)
    # Not getrusage: its peak includes what the parent held when it forked this process.
    status = Path("/proc/self/status").read_text()
    print(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def import_seconds() -> float:
    """What `import discreet` and reaching the curator take in a fresh process that need not compile
    them again.
    """
    code = "import time; s = time.perf_counter(); import discreet; discreet.Curator; print(time.perf_counter() - s)"
    with tempfile.TemporaryDirectory() as compiled:
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        command = [sys.executable, "-c", code]
        runs = [
            subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
            for _ in range(6)
        ]
    return min(float(run.stdout) for run in runs[1:])


# --- the table ------------------------------------------------------------------------------------

HEAD = (
    "rows",
    "question",
    "ours ms",
    "plain ms",
    "parquet ms",
    "fixed ms",
    "slope",
    "target ms",
    "MB",
    "plain MB",
    "",
)
FORM = "{:>11} {:44} {:>9} {:>9} {:>10} {:>8} {:>6} {:>9} {:>6} {:>8} {}"


def line(
    timing: Timing, question: Question, fixed: Timing, memory: tuple[float, float]
) -> dict[str, Any]:
    """One row of the table; the target is on the time and on the memory."""
    target = FIXED + question.times * timing.plain
    slope = (timing.ours - fixed.ours) / max(timing.plain - fixed.plain, 0.1)
    most = memory[1] + question.memory
    row = {**asdict(timing), "fixed": fixed.ours - fixed.plain, "slope": slope, "target": target}
    row |= {"times": question.times, "memory": memory[0], "plain_memory": memory[1]}
    misses = ["time"] * (timing.ours > target) + ["memory"] * (memory[0] > most)
    return row | {"misses": misses}


def show(row: dict[str, Any]) -> None:
    shown = [
        f"{row['rows']:,}",
        row["question"],
        f"{row['ours']:.1f}",
        f"{row['plain']:.1f}",
        f"{row['parquet']:.1f}",
    ]
    shown += [f"{row['fixed']:.1f}", f"{row['slope']:.2f}", f"{row['target']:.1f}"]
    shown += [
        f"{row['memory']:.0f}",
        f"{row['plain_memory']:.0f}",
        "MISSES " * bool(row["misses"]) + " ".join(row["misses"]),
    ]
    print(FORM.format(*shown), flush=True)


def run(places: dict[int, Path], only: str) -> list[dict[str, Any]]:
    rows = []
    print(FORM.format(*HEAD))
    small = Asker(places[FIXED_ROWS], FIXED_ROWS)
    questions = [each for each in QUESTIONS if only in each.name]
    fixed = {question.name: small.timing(question) for question in questions}
    for count, folder in places.items():
        if count == FIXED_ROWS:
            continue
        asker = Asker(folder, count)
        asked = (
            questions
            if count <= 20_000_000
            else [each for each in questions if each.sql.count("people")][:4]
        )
        timings = [asker.timing(question) for question in asked]
        asker.curator._view.engine.close()
        for question, timing in zip(asked, timings, strict=True):
            memory = (
                peak(folder, count, question, plain=False),
                peak(folder, count, question, plain=True),
            )
            rows.append(line(timing, question, fixed[question.name], memory))
            show(rows[-1])
    quotes = max(small.quote(question.sql) for question in questions)
    seconds = import_seconds()
    print(f"quote: {quotes:.1f} ms at most (target 10); import: {seconds:.2f} s (target 0.5)")
    rows.append(
        {
            "quote": quotes,
            "import": seconds,
            "misses": ["quote"] * (quotes > 10) + ["import"] * (seconds > 0.5),
        }
    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--big", action="store_true")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.once:
        once(
            given.data,
            given.rows[0],
            next(q for q in QUESTIONS if q.name == given.once),
            plain=given.plain,
        )
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        counts = [FIXED_ROWS, *given.rows, *([BIG_ROWS] if given.big else [])]
        rows = run(
            {count: (given.data or Path(scratch)) / str(count) for count in counts}, given.only
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "ask.json").write_text(json.dumps(rows, indent=1))
    return int(any(row["misses"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
