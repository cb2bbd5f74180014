"""Ours and the peers' answers to six questions: how long they take, how wrong they are at epsilon
1, in one run.

    python bench/peers.py [--rows 1000000 10000000] [--seconds 20] [--only NAME ...] [--data FOLDER]

Each peer gets a venv of its own under .venvs/, made at the first run, and is asked by its script in
bench/peers/, in turn with plain DuckDB on the same Parquet, fetched through Arrow: read the
multiples, of time and of CPU time (of the asking process: Spark's workers are not in it). Peers
read the Parquet for every question; ours asks a snapshot that was prepared once, and the time of
that is told too. Errors are mean absolute ones over up to 100 repetitions (as many as the seconds
allow); ours are 100, in a `sum` budget, each with a fresh key. Rows go to bench/results/peers.json.
Exits with 1 if a target is missed: a peer is not 10 times slower, or it is surely (by two standard
errors) less wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

import duckdb

HERE = Path(__file__).parent
VENVS, RESULTS = HERE.parent / ".venvs", HERE / "results"
sys.path.insert(0, str(HERE / "peers"))

from harness import PLAIN, QUANTILES, STATES  # noqa: E402

REPETITIONS = 100
FASTER = 10  # times, than every peer that has SQL or bounds what a person does


@dataclass(frozen=True, kw_only=True)
class Peer:
    name: str
    pins: tuple[str, ...]
    whole: bool = True  # SQL or person-level; otherwise building blocks without bounding or budget


PEERS = (
    Peer(name="opendp", pins=("opendp[polars]==0.16.0",)),
    Peer(name="qrlew", pins=("pyqrlew==0.9.27", "sqlalchemy", "numpy<2", "pyarrow<20")),
    Peer(name="smartnoise", pins=("smartnoise-sql==1.0.10",)),
    Peer(name="tumult", pins=("tmlt.analytics==0.21.0",)),  # wants Java 17
    Peer(name="pipelinedp", pins=("pipeline-dp==0.3.1",)),
    Peer(name="diffprivlib", pins=("diffprivlib==0.6.6", "scikit-learn<1.8"), whole=False),
    Peer(name="python_dp", pins=("python-dp==1.1.5",), whole=False),
)
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
      word: text
analysts:
  alice: {epsilon: 1000000, delta: 0.1}
"""


# --- data -----------------------------------------------------------------------------------------


def generate(folder: Path, rows: int) -> Path:
    """One row a person: 50 states, skewed incomes, words of which the k-th is about 1 / k as
    frequent as the first.
    """
    (folder / "data").mkdir(parents=True, exist_ok=True)
    path = folder / "data" / "people.parquet"
    uniform = "((hash(range, {}) >> 11) / 9007199254740992.0)"
    income = f"round(least(200000, 30000 * (0.1 - ln(1 - {uniform.format(3)}))), 2)"
    if not path.exists():
        duckdb.execute(
            "COPY (SELECT range::BIGINT AS person_id, 'S' || lpad((hash(range, 1) % 50)::VARCHAR, 2, '0') AS state, "
            f"(hash(range, 2) % 100)::INTEGER AS age, {income} AS income, "
            f"'w' || floor(exp({uniform.format(4)} * ln(200000.0)))::INTEGER AS word FROM range({rows})) "
            f"TO '{path}' (FORMAT parquet)"
        )
    return path


def truths(path: Path) -> dict[str, Any]:
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW people AS FROM '{path}'")
    found = {question: connection.execute(sql).fetchall() for question, sql in PLAIN.items()}
    keyed = ("mean by state", "unknown keys")
    return {
        question: dict(rows) if question in keyed else rows[0][0]
        for question, rows in found.items()
    }


def error(question: str, values: list[Any], truth: Any) -> dict[str, float]:
    """Mean absolute error, and its spread from answer to answer; of unknown keys over those
    released, also how many.
    """
    each = [fmean(_off(question, value, truth) or [0.0]) for value in values]
    told = {"error": fmean(each), "spread": stdev(each)}
    return told | (
        {"keys": fmean(len(value) for value in values)} if question == "unknown keys" else {}
    )


def _off(question: str, value: Any, truth: Any) -> list[float]:
    """The absolute errors of one answer."""
    if question == "mean by state":
        return [abs(float(value[state]) - truth[state]) for state in STATES]
    if question == "five quantiles":
        return [abs(float(found) - exact) for found, exact in zip(value, truth, strict=True)]
    if question == "unknown keys":
        return [abs(float(rows) - truth.get(word, 0)) for word, rows in value.items()]
    return [abs(float(value) - truth)]


# --- ours -----------------------------------------------------------------------------------------

OURS = {
    "count": "SELECT COUNT(*) AS {n} FROM people",
    "filtered count": "SELECT COUNT(*) AS {n} FROM people WHERE age BETWEEN 40 AND 64",
    "mean by state": "SELECT state, AVG(income) AS {n} FROM people GROUP BY state",
    "median": "SELECT MEDIAN(income) AS {n} FROM people",
    "five quantiles": f"SELECT QUANTILE_CONT(income, {QUANTILES}) AS {{n}} FROM people",
    "unknown keys": "SELECT word, COUNT(*) AS {n} FROM people GROUP BY word",
}


def ours(folder: Path, path: Path) -> Iterator[dict[str, Any]]:
    """Our times, beside plain DuckDB on the Parquet, and our errors."""
    import discreet
    from ask import ask
    from discreet.binding import create_ledger

    policy = folder / "policy.yaml"
    if not policy.exists():
        policy.write_text(POLICY.replace("STATES", ", ".join(STATES)), encoding="utf-8")
        create_ledger(discreet.Policy.read(policy))
    began = time.perf_counter()
    curator = discreet.open(policy)
    yield {"question": "prepare", "seconds": [time.perf_counter() - began]}
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW people AS FROM '{path}'")
    for question, sql in OURS.items():
        seconds, raw, cpu, raw_cpu = [], [], [], []
        for _ in range(16):
            start, used = time.perf_counter(), time.process_time()
            ask(curator, sql)
            between, middle = time.perf_counter(), time.process_time()
            plain.sql(PLAIN[question]).to_arrow_table()
            seconds.append(between - start)
            cpu.append(middle - used)
            raw.append(time.perf_counter() - between)
            raw_cpu.append(time.process_time() - middle)
        values = [drawn() for drawn in [_drawn(curator, sql)] for _ in range(REPETITIONS)]
        yield {
            "question": question,
            "seconds": seconds[1:],
            "plain": raw[1:],
            "cpu": cpu[1:],
            "plain_cpu": raw_cpu[1:],
            "values": values,
        }


def _drawn(curator: Any, sql: str) -> Callable[[], Any]:
    """Answers at epsilon 1, delta 1e-7, each under a key of its own: what `ask` does, without
    charging for it.
    """
    from discreet.asking.measure import measure
    from discreet.asking.offer import offer
    from discreet.budget import Charge
    from discreet.vault.allowance import Allowance

    accountant, one = curator._accountant, Fraction(1)
    planned = curator._view.offer(sql.format(n="n"), epsilon=1, margin=None, assuming=None).plan
    offered = offer(
        planned, accountant, amount=one, limit=Charge(amount=one, delta=Fraction(1, 10**7))
    )
    read: dict[str, Any] = {}

    def fetch(query: str) -> Any:
        if query not in read:
            read[query] = curator._view.fetch(query)
        return read[query]

    def drawn() -> Any:
        key = os.urandom(32)
        allowance = Allowance(key=key, accountant=accountant, paid=offered.cost)
        table = curator._view.finish(offered, measure(offered, allowance, fetch), key).table
        columns = [column.to_pylist() for column in table.columns]
        return dict(zip(*columns, strict=True)) if len(columns) == 2 else columns[0][0]

    return drawn


# --- theirs ---------------------------------------------------------------------------------------


def installed(peer: Peer) -> Path:
    """The peer's Python, in a venv of its own."""
    home = VENVS / peer.name
    python = home / "bin" / "python"
    if not (home / ".installed").exists():
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [python, "-m", "pip", "install", "-q", *peer.pins, "duckdb", "pandas", "pyarrow"],
            check=True,
        )
        (home / ".installed").touch()
    return python


def theirs(peer: Peer, path: Path, seconds: float) -> Iterator[dict[str, Any]]:
    try:
        command = [
            str(installed(peer)),
            str(HERE / "peers" / f"ask_{peer.name}.py"),
            str(path),
            str(seconds),
        ]
    except subprocess.CalledProcessError as failure:
        yield {"question": "install", "error": f"pip ended with {failure.returncode}"}
        return
    with tempfile.TemporaryDirectory() as scratch:  # Spark leaves files where it runs
        for question in PLAIN:
            try:
                done = subprocess.run(
                    [*command, question],
                    capture_output=True,
                    text=True,
                    cwd=scratch,
                    timeout=60 * seconds,
                )
                lines = [
                    line for line in done.stdout.splitlines() if line.startswith('{"question"')
                ]
                yield (
                    json.loads(lines[-1]) if lines else {"question": question, "error": _why(done)}
                )
            except subprocess.TimeoutExpired:
                yield {"question": question, "error": f"not three answers in {60 * seconds:.0f} s"}


def _why(done: subprocess.CompletedProcess[str]) -> str:
    return (
        "has no such question"
        if done.returncode == 0
        else done.stderr.strip().splitlines()[-1][:200]
    )


# --- the table ------------------------------------------------------------------------------------


def row(name: str, rows: int, found: dict[str, Any], truth: dict[str, Any]) -> dict[str, Any]:
    told = {"rows": rows, "who": name, "question": found["question"]}
    if "error" in found:
        return told | {"failed": found["error"]}
    told |= {"ms": 1000 * median(found["seconds"])}
    if "plain" in found:
        told |= {"plain_ms": 1000 * median(found["plain"]), "repetitions": len(found["values"])}
        told |= {"multiple": told["ms"] / told["plain_ms"]}
        told |= {"cpu_multiple": median(found["cpu"]) / max(median(found["plain_cpu"]), 1e-6)}
        told |= error(found["question"], found["values"], truth[found["question"]])
    return told


def show(told: dict[str, Any]) -> None:
    head = f"{told['rows']:>11,} {told['who']:12} {told['question']:15}"
    if "failed" in told:
        print(f"{head} {told['failed']}", flush=True)
        return
    parts = [f"{told['ms']:10.1f} ms"]
    if "multiple" in told:
        parts += [
            f"{told['multiple']:8.1f} x plain",
            f"{told['cpu_multiple']:8.1f} x its CPU",
            f"error {told['error']:10.3g} ({told['repetitions']})",
        ]
        parts += [f"{told['keys']:.0f} keys"] if "keys" in told else []
    print(head, *parts, flush=True)


def misses(told: list[dict[str, Any]]) -> list[str]:
    """What is not as fast, or not as right, as it should be."""
    found = []
    mine = {
        (each["rows"], each["question"]): each
        for each in told
        if each["who"] == "discreet" and "multiple" in each
    }
    whole = {peer.name: peer.whole for peer in PEERS}
    for each in told:
        own = mine.get((each["rows"], each["question"]))
        if own is None or "multiple" not in each or each is own:
            continue
        what = f"{each['question']} at {each['rows']:,} rows: {each['who']}"
        if whole[each["who"]] and each["multiple"] < FASTER * own["multiple"]:
            found.append(f"{what} is only {each['multiple'] / own['multiple']:.1f} times slower")
        spread = max(each["spread"], own["spread"])  # three answers may agree by chance
        surely = 2 * spread * math.sqrt(1 / each["repetitions"] + 1 / own["repetitions"])
        if each["error"] < own["error"] - surely and each.get("keys", 0) >= own.get("keys", 0):
            found.append(f"{what} is off by {each['error']:.3g}, ours by {own['error']:.3g}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", nargs="+", default=[peer.name for peer in PEERS])
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    told = []
    with tempfile.TemporaryDirectory() as scratch:
        for rows in given.rows:
            folder = (given.data or Path(scratch)) / str(rows)
            path = generate(folder, rows)
            truth = truths(path)
            everybody = {"discreet": ours(folder, path)}
            everybody |= {
                peer.name: theirs(peer, path, given.seconds)
                for peer in PEERS
                if peer.name in given.only
            }
            for name, answers in everybody.items():
                for found in answers:
                    told.append(row(name, rows, found, truth))
                    show(told[-1])
    missed = misses(told)
    print(*(f"MISSES {each}" for each in missed), sep="\n")
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "peers.json").write_text(json.dumps({"rows": told, "misses": missed}, indent=1))
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
