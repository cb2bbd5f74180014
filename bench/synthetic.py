"""Synthetic data, measured: errors of all pairs and of random triples, a classifier, CPU seconds
and memory.

    python bench/synthetic.py census                      a generated table; what is tuned is tuned
                                                          on it
    python bench/synthetic.py adult FOLDER [--peers]      train.csv, test.csv and domain.json, as
                                                          private-pgm cuts Adult
    python bench/synthetic.py adult [--peers]             a like table, from a package that carries
                                                          Adult
    python bench/synthetic.py scale [--rows 1000000] [--columns 40] [--generate 10000000]

with --epsilon, --synthesizer (each may be repeated), --runs and --auc. The worst of the runs is
shown for each figure; peers that take over three CPU minutes are run once.
Errors are mean total variation distances to the training table over all pairs, and over 64 random
triples, of as many synthetic rows as the description expects. With --auc, gradient boosting is
trained on synthetic rows and scored on held-out true ones. Every run is a process of its own: its
CPU seconds and its memory include the interpreter. Peers, and the judge that has scikit-learn, get
virtual environments of their own under .venvs/, made at the first run, and are run by
bench/synthetic_peers/run.py at the same ε and δ = 1e-9. Rows go to bench/results/synthetic.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import venv
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import discreet
from discreet.binding import create_ledger
from discreet.policy.policy import Policy

HERE = Path(__file__).parent
VENVS, RESULTS, RUNNER = (
    HERE.parent / ".venvs",
    HERE / "results",
    HERE / "synthetic_peers" / "run.py",
)
ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def adult(folder: Path) -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    sizes = json.loads((folder / "domain.json").read_text())
    read = [pa.csv.read_csv(folder / name) for name in ("train.csv", "test.csv")]
    train, test = (
        np.column_stack([table.column(name).to_numpy() for name in sizes]) for table in read
    )
    return sizes, train, test, ORDERED


# how private-pgm cuts what is not a list: the first value, the width of a cell, how many there are
CUT = {
    "age": (0, 1, 85), "fnlwgt": (0, 15_000, 100), "education-num": (1, 1, 16), "capital-gain": (0, 1_000, 100),
    "capital-loss": (0, 45, 100), "hours-per-week": (1, 1, 99),
}  # fmt: skip


def packaged_adult() -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    """A like table from the package that carries Adult's 32,561 training rows; a fifth of them is
    held out.
    """
    from anonymity import adult as raw

    read = pa.csv.read_csv(raw()).drop_columns(["education"])
    sizes, columns = {}, []
    for name in read.column_names:
        values = read.column(name).to_numpy()
        if name in CUT:
            first, width, sizes[name] = CUT[name]
            columns.append(np.clip((values - first) // width, 0, sizes[name] - 1))
        else:
            listed, codes = np.unique(values.astype(str), return_inverse=True)
            sizes[name] = len(listed)
            columns.append(codes)
    table = np.random.default_rng().permutation(np.column_stack(columns).astype(np.int64))
    held = len(table) // 5
    return sizes, table[held:], table[:held], ORDERED


def census(rows: int) -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    """A made-up population: skewed lists, spiked and smooth numbers, strong and weak and no
    dependence.
    """
    rng = np.random.default_rng()
    n = rows + rows // 4
    age = np.clip(rng.gamma(5, 7, n), 0, 79).astype(int)
    sex = rng.integers(0, 2, n)
    household = np.where(
        age < 20,
        0,
        np.where(
            rng.random(n) < 0.25 + age / 200, 1 + (rng.random(n) < 0.15), 3 + (rng.random(n) < 0.3)
        ),
    )
    role = np.where(
        household == 1,
        np.where(sex == 1, 0, 1),
        np.where(household == 0, 2, 3 + (rng.random(n) < 0.3)),
    )
    school = np.clip((rng.normal(8 + (age > 22) * 1.5, 2.5, n)), 0, 15).astype(int)
    job = (rng.zipf(1.6, n) + school // 3 + 3 * sex * (rng.random(n) < 0.4)) % 13
    sector = np.where(rng.random(n) < 0.7, 0, np.minimum(rng.geometric(0.4, n), 7))
    region = np.minimum(
        rng.geometric(0.5, n) - 1 + (rng.random(n) < 0.05) * rng.integers(0, 40, n), 39
    )
    origin = np.where(rng.random(n) < 0.85, 0, np.minimum(region // 10 + rng.integers(0, 2, n), 4))
    hours = np.where(
        rng.random(n) < 0.5, 40, np.clip(rng.normal(38 + 4 * sex - 12 * (age < 20), 11, n), 0, 97)
    ).astype(int)
    hours = np.where(rng.random(n) < 0.5, hours // 5 * 5, hours)  # people round
    gain = np.where(
        rng.random(n) < 0.06 + 0.01 * school,
        rng.integers(1, 100, n) // (1 + (rng.random(n) < 0.6) * 6),
        0,
    )
    loss = np.where(
        (gain == 0) & (rng.random(n) < 0.05), np.clip(rng.normal(40, 8, n), 1, 99), 0
    ).astype(int)
    weight = np.clip(rng.gamma(4, 8, n), 0, 99).astype(int)
    score = (
        0.35 * (school - 9)
        + 0.04 * (hours - 40)
        + 1.5 * (household == 1)
        + 0.04 * (age - 38)
        + 0.08 * gain
        + 0.8 * (loss > 38)
        - 1.9
    )
    income = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    columns = {
        "age": (80, age), "sex": (2, sex), "household": (5, household), "role": (5, role), "school": (16, school),
        "job": (13, job), "sector": (8, sector), "region": (40, region), "origin": (5, origin), "hours": (98, hours),
        "gain": (100, gain), "loss": (100, loss), "weight": (100, weight), "income": (2, income),
    }  # fmt: skip
    table = np.column_stack([values for _, values in columns.values()])
    return (
        {name: size for name, (size, _) in columns.items()}, table[:rows], table[rows:],
        {"age", "school", "hours", "gain", "loss", "weight"},
    )  # fmt: skip


def curator_of(
    folder: Path, sizes: dict[str, int], train: np.ndarray, ordered: set[str]
) -> discreet.Curator:
    lines = [
        "unit: person",
        "tables:",
        "  people:",
        "    owner: person_id",
        "    columns:",
        "      person_id: {identifier: true}",
    ]
    for name, size in sizes.items():
        domain = (
            f"integer: [0, {size - 1}]"
            if name in ordered
            else f"values: [{', '.join(map(str, range(size)))}]"
        )
        lines.append(f'      "{name}": {{{domain}}}')
    lines.append("budget: {epsilon: 50, delta: 1e-9, accountant: zcdp, keys: 0}")
    lines.append("limits: {epsilon: 20, seconds: 600}")
    path = folder / "policy.yaml"
    path.write_text("\n".join(lines) + "\n")
    create_ledger(Policy.read(path))
    data = {"person_id": np.arange(len(train))} | {
        name: train[:, i] for i, name in enumerate(sizes)
    }
    return discreet.open(path, tables={"people": pa.table(data)})


def errors(
    sizes: list[int], true: np.ndarray, made: np.ndarray, triples: int = 64
) -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    width = len(sizes)
    threes = list(combinations(range(width), 3))
    picked = [threes[i] for i in rng.permutation(len(threes))[:triples]]
    sets: list[list[Any]] = [
        [(i,) for i in range(width)],
        list(combinations(range(width), 2)),
        picked,
    ]
    return tuple(
        float(np.mean([_apart(sizes, true, made, each) for each in some])) for some in sets
    )  # type: ignore[return-value]


def _apart(sizes: list[int], true: np.ndarray, made: np.ndarray, columns: tuple[int, ...]) -> float:
    cells = int(np.prod([sizes[c] for c in columns]))
    parts = []
    for table in (true, made):
        place = np.zeros(len(table), dtype=np.int64)
        for column in columns:
            place = place * sizes[column] + table[:, column]
        parts.append(np.bincount(place, minlength=cells) / len(table))
    return float(np.abs(parts[0] - parts[1]).sum() / 2)


# --- runs, each in a process of its own -----------------------------------------------------------

PEERS = {  # the environment, what is installed in it, and what it runs
    "mbi": (("mbi==2.0.0",), ("MST, mbi",)),
    "dpmm": (("dpmm==0.1.9",), ("MST, dpmm", "AIM, dpmm", "PrivBayes, dpmm")),
    "datasynthesizer": (
        ("DataSynthesizer==0.1.13",),
        (
            "independent, DataSynthesizer",
            "correlated k = 1, DataSynthesizer",
            "correlated k = 2, DataSynthesizer",
        ),
    ),
    "judge": ((), ()),
}
DELTA = "1e-9"
LONG = 180  # CPU seconds of a peer's run after which it is not run again


def python_of(name: str) -> Path:
    """The Python of a peer's environment, made where it is missing."""
    home = VENVS / name
    if not (home / ".installed").exists():
        venv.create(home, with_pip=True, clear=True)
        pins = [*PEERS[name][0], "scikit-learn", "pandas"]
        subprocess.run([home / "bin" / "python", "-m", "pip", "install", "-q", *pins], check=True)
        (home / ".installed").touch()
    return home / "bin" / "python"


def told(command: list[Any]) -> dict[str, float]:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    try:
        found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise SystemExit(
            f"{' '.join(map(str, command[:3]))} failed:\n{done.stderr[-2000:]}"
        ) from None
    return found


def once(source: Path, synthesizer: str, epsilon: str, out: Path) -> None:
    """One run of ours: codes to `out`, CPU seconds and memory printed."""
    given = np.load(source)
    sizes = dict(zip(given["names"].tolist(), given["sizes"].tolist(), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        curator = curator_of(Path(folder), sizes, given["table"], set(given["ordered"].tolist()))
        description = curator.describe("people", epsilon=epsilon, synthesizer=synthesizer)
        made = description.generate(rows=description.rows)
    np.save(out, np.column_stack([column.to_numpy() for column in made.columns]))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps({"seconds": used.ru_utime + used.ru_stime, "megabytes": used.ru_maxrss / 1024})
    )


def given_table(
    arguments: argparse.Namespace,
) -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    if arguments.what == "census":
        return census(arguments.rows)
    return packaged_adult() if arguments.folder is None else adult(arguments.folder)


def turns(arguments: argparse.Namespace) -> list[tuple[str, str, str]]:
    """Who is run, in which order: ε, whose, name. Ours one after another; peers in turn, so that
    all are soon seen.
    """
    ours = [
        ("ours", name)
        for name in arguments.synthesizer or ([] if arguments.peers else ["independent", "default"])
    ]
    every = (
        []
        if arguments.peers is None
        else [(home, name) for home, (_, names) in PEERS.items() for name in names]
    )
    peers = [(home, name) for home, name in every if name in (arguments.peers or [name])]
    order = [each for each in ours for _ in range(arguments.runs)] + peers * arguments.runs
    return [(epsilon, home, name) for epsilon in arguments.epsilon or ["1"] for home, name in order]


def run(arguments: argparse.Namespace) -> None:
    sizes, train, test, ordered = given_table(arguments)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    if arguments.add:
        before = json.loads((RESULTS / "synthetic.json").read_text())["found"]
        found = {(each["epsilon"], each["synthesizer"]): each for each in before}
    for each in {(epsilon, name) for epsilon, _, name in turns(arguments)}:
        found.pop(each, None)
    with tempfile.TemporaryDirectory() as folder:
        source, out, held = (Path(folder) / name for name in ("train.npz", "made.npy", "test.npy"))
        np.savez(
            source,
            names=list(sizes),
            sizes=list(sizes.values()),
            table=train,
            ordered=np.array(sorted(ordered)),
        )
        np.save(held, test)
        for epsilon, home, name in turns(arguments):
            entry = found.setdefault(
                (epsilon, name), {"synthesizer": name, "of": home, "epsilon": epsilon, "runs": []}
            )
            if home != "ours" and any(each["seconds"] > LONG for each in entry["runs"]):
                continue
            if home == "ours":
                figures = told([sys.executable, __file__, "once", source, name, epsilon, out])
            else:
                figures = told([python_of(home), RUNNER, name, source, epsilon, DELTA, out])
            _, figures["two"], figures["three"] = errors(list(sizes.values()), train, np.load(out))
            judged = (
                told([python_of("judge"), RUNNER, "judge", out, held])
                if arguments.auc
                else {"auc": float("nan")}
            )
            entry["runs"].append(figures | judged)
            entry["worst"] = {key: max(each[key] for each in entry["runs"]) for key in figures}
            entry["worst"]["auc"] = min(each["auc"] for each in entry["runs"])
            RESULTS.mkdir(exist_ok=True)
            kept = json.dumps({"table": arguments.what, "found": list(found.values())}, indent=1)
            (RESULTS / "synthetic.json").write_text(kept.replace("NaN", "null"))
            print(".", end="", flush=True)
    heads = ("2-way", "3-way", "AUC", "CPU s", "MB")
    print(
        f"\n{'synthesizer, worst of runs':33} {'epsilon':>7} {'runs':>4} {' '.join(f'{each:>6}' for each in heads)}"
    )
    for each in found.values():
        two, three, auc, cpu, memory = (
            each["worst"][key] for key in ("two", "three", "auc", "seconds", "megabytes")
        )
        print(
            f"{each['synthesizer']:33} {each['epsilon']:>7} {len(each['runs']):>4} {two:6.3f} {three:6.3f} "
            f"{auc or float('nan'):6.4f} {cpu:6.1f} {memory:6.0f}"
        )


def scale(arguments: argparse.Namespace) -> None:
    rng = np.random.default_rng()
    hidden = rng.normal(size=(arguments.rows, 4))
    sizes = {f"c{i}": int(rng.integers(2, 60)) for i in range(arguments.columns)}
    columns = []
    for size in sizes.values():
        mixed = hidden @ rng.normal(size=4) + rng.normal(size=arguments.rows)
        columns.append(np.clip((mixed / 8 + 0.5) * size, 0, size - 1).astype(np.int64))
    with tempfile.TemporaryDirectory() as folder:
        curator = curator_of(
            Path(folder), sizes, np.column_stack(columns), {n for n in sizes if int(n[1:]) % 2}
        )
        began, cpu = time.monotonic(), time.process_time()
        description = curator.describe("people", epsilon=1)
        wall, used = time.monotonic() - began, time.process_time() - cpu
        print(f"described {arguments.rows} x {arguments.columns}: {wall:.1f} s, CPU {used:.1f} s")
        began, cpu, rows = time.monotonic(), time.process_time(), 0
        with pa.parquet.ParquetWriter(Path(folder) / "made.parquet", description.schema) as writer:
            for batch in description.batches(rows=arguments.generate):
                writer.write_batch(batch)
                rows += batch.num_rows
        wall, used = time.monotonic() - began, time.process_time() - cpu
        print(
            f"generated {rows} rows to Parquet: {rows / wall:.0f} a second, {rows / used:.0f} a CPU second"
        )


def main() -> None:
    if sys.argv[1:2] == ["once"]:
        once(Path(sys.argv[2]), sys.argv[3], sys.argv[4], Path(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("adult", "census", "scale"), default="census")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--synthesizer", action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, help="of the generated table")
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--generate", type=int, default=1_000_000)
    parser.add_argument("--auc", action="store_true")
    parser.add_argument("--add", action="store_true", help="keep the results of other runs")
    parser.add_argument(
        "--peers", nargs="*", metavar="NAME", help="all of them, or only those named"
    )
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or (1_000_000 if arguments.what == "scale" else 40_000)
    scale(arguments) if arguments.what == "scale" else run(arguments)


if __name__ == "__main__":
    main()
