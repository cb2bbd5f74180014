"""Synthetic data, measured: errors of all pairs and of random triples, a classifier, CPU seconds and memory.

    python bench/synthetic.py adult FOLDER [--epsilon 1] [--runs 3] [--auc]    train.csv, test.csv, domain.json
    python bench/synthetic.py census [--rows 40000] ...                        a generated table to tune on
    python bench/synthetic.py scale [--rows 1000000] [--columns 40]            describe and generate, timed

Errors are mean total variation distances to the training table over all pairs, and over 64 random triples, of as many
synthetic rows as the description expects. The classifier is trained on synthetic rows and scored on held-out true rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import discreet
from discreet.curator import create_ledger
from discreet.policy import Policy

ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}


def adult(folder: Path) -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    sizes = json.loads((folder / "domain.json").read_text())
    read = [pa.csv.read_csv(folder / name) for name in ("train.csv", "test.csv")]
    train, test = (np.column_stack([table.column(name).to_numpy() for name in sizes]) for table in read)
    return sizes, train, test, ORDERED


def census(rows: int) -> tuple[dict[str, int], np.ndarray, np.ndarray, set[str]]:
    """A made-up population: skewed lists, spiked and smooth numbers, strong and weak and no dependence."""
    rng = np.random.default_rng()
    n = rows + rows // 4
    age = np.clip(rng.gamma(5, 7, n), 0, 79).astype(int)
    sex = rng.integers(0, 2, n)
    household = np.where(
        age < 20, 0, np.where(rng.random(n) < 0.25 + age / 200, 1 + (rng.random(n) < 0.15), 3 + (rng.random(n) < 0.3))
    )
    role = np.where(household == 1, np.where(sex == 1, 0, 1), np.where(household == 0, 2, 3 + (rng.random(n) < 0.3)))
    school = np.clip((rng.normal(8 + (age > 22) * 1.5, 2.5, n)), 0, 15).astype(int)
    job = (rng.zipf(1.6, n) + school // 3 + 3 * sex * (rng.random(n) < 0.4)) % 13
    sector = np.where(rng.random(n) < 0.7, 0, np.minimum(rng.geometric(0.4, n), 7))
    region = np.minimum(rng.geometric(0.5, n) - 1 + (rng.random(n) < 0.05) * rng.integers(0, 40, n), 39)
    origin = np.where(rng.random(n) < 0.85, 0, np.minimum(region // 10 + rng.integers(0, 2, n), 4))
    hours = np.where(rng.random(n) < 0.5, 40, np.clip(rng.normal(38 + 4 * sex - 12 * (age < 20), 11, n), 0, 97)).astype(
        int
    )
    hours = np.where(rng.random(n) < 0.5, hours // 5 * 5, hours)  # people round
    gain = np.where(rng.random(n) < 0.06 + 0.01 * school, rng.integers(1, 100, n) // (1 + (rng.random(n) < 0.6) * 6), 0)
    loss = np.where((gain == 0) & (rng.random(n) < 0.05), np.clip(rng.normal(40, 8, n), 1, 99), 0).astype(int)
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


def curator_of(folder: Path, sizes: dict[str, int], train: np.ndarray, ordered: set[str]) -> discreet.Curator:
    lines = [
        "unit: person",
        "tables:",
        "  people:",
        "    owner: person_id",
        "    columns:",
        "      person_id: {identifier: true}",
    ]
    for name, size in sizes.items():
        domain = f"integer: [0, {size - 1}]" if name in ordered else f"values: [{', '.join(map(str, range(size)))}]"
        lines.append(f'      "{name}": {{{domain}}}')
    lines.append("budget: {epsilon: 50, delta: 1e-9, accountant: zcdp, keys: 0}")
    lines.append("limits: {epsilon: 20, seconds: 600}")
    path = folder / "policy.yaml"
    path.write_text("\n".join(lines) + "\n")
    create_ledger(Policy.read(path))
    data = {"person_id": np.arange(len(train))} | {name: train[:, i] for i, name in enumerate(sizes)}
    return discreet.open(path, tables={"people": pa.table(data)})


def errors(sizes: list[int], true: np.ndarray, made: np.ndarray, triples: int = 64) -> tuple[float, float, float]:
    rng = np.random.default_rng(0)
    width = len(sizes)
    threes = list(combinations(range(width), 3))
    picked = [threes[i] for i in rng.permutation(len(threes))[:triples]]
    sets: list[list[Any]] = [[(i,) for i in range(width)], list(combinations(range(width), 2)), picked]
    return tuple(float(np.mean([_apart(sizes, true, made, each) for each in some])) for some in sets)  # type: ignore[return-value]


def _apart(sizes: list[int], true: np.ndarray, made: np.ndarray, columns: tuple[int, ...]) -> float:
    cells = int(np.prod([sizes[c] for c in columns]))
    parts = []
    for table in (true, made):
        place = np.zeros(len(table), dtype=np.int64)
        for column in columns:
            place = place * sizes[column] + table[:, column]
        parts.append(np.bincount(place, minlength=cells) / len(table))
    return float(np.abs(parts[0] - parts[1]).sum() / 2)


def classified(made: np.ndarray, test: np.ndarray) -> float:
    try:
        from sklearn.ensemble import GradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
    except ImportError:
        return float("nan")
    if len(np.unique(made[:, -1])) < 2:
        return 0.5
    model = GradientBoostingClassifier().fit(made[:, :-1], made[:, -1])
    return float(roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1]))


def run(arguments: argparse.Namespace) -> None:
    sizes, train, test, ordered = adult(arguments.folder) if arguments.what == "adult" else census(arguments.rows)
    names = arguments.synthesizer or ["independent", None]
    print(f"{'synthesizer':14} {'epsilon':>7} {'1-way':>7} {'2-way':>7} {'3-way':>7} {'AUC':>6} {'CPU s':>6} {'MB':>5}")
    for epsilon in arguments.epsilon or ["1"]:
        for name in names:
            name = None if name == "default" else name
            for _ in range(arguments.runs):
                with tempfile.TemporaryDirectory() as folder:
                    curator = curator_of(Path(folder), sizes, train, ordered)
                    began = time.process_time()
                    description = curator.describe("people", epsilon=epsilon, synthesizer=name)
                    made = description.generate(rows=description.rows)
                    seconds = time.process_time() - began
                table = np.column_stack([column.to_numpy() for column in made.columns])
                one, two, three = errors(list(sizes.values()), train, table)
                auc = classified(table, test) if arguments.auc else float("nan")
                memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                figures = f"{one:7.4f} {two:7.4f} {three:7.4f} {auc:6.3f} {seconds:6.1f} {memory:5.0f}"
                print(f"{name or 'default':14} {epsilon:>7} {figures}", flush=True)


def scale(arguments: argparse.Namespace) -> None:
    rng = np.random.default_rng()
    hidden = rng.normal(size=(arguments.rows, 4))
    sizes = {f"c{i}": int(rng.integers(2, 60)) for i in range(arguments.columns)}
    columns = []
    for size in sizes.values():
        mixed = hidden @ rng.normal(size=4) + rng.normal(size=arguments.rows)
        columns.append(np.clip((mixed / 8 + 0.5) * size, 0, size - 1).astype(np.int64))
    with tempfile.TemporaryDirectory() as folder:
        curator = curator_of(Path(folder), sizes, np.column_stack(columns), {n for n in sizes if int(n[1:]) % 2})
        began, cpu = time.monotonic(), time.process_time()
        description = curator.describe("people", epsilon=1)
        wall, used = time.monotonic() - began, time.process_time() - cpu
        print(f"described {arguments.rows} x {arguments.columns}: {wall:.1f} s, CPU {used:.1f} s")
        began, rows = time.monotonic(), 0
        with pa.parquet.ParquetWriter(Path(folder) / "made.parquet", description.schema) as writer:
            for batch in description.batches(rows=arguments.generate):
                writer.write_batch(batch)
                rows += batch.num_rows
        seconds = time.monotonic() - began
        print(f"generated {rows} rows to Parquet in {seconds:.1f} s: {rows / seconds:.0f} a second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("adult", "census", "scale"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--synthesizer", action="append")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--columns", type=int, default=40)
    parser.add_argument("--generate", type=int, default=1_000_000)
    parser.add_argument("--auc", action="store_true")
    arguments = parser.parse_args()
    scale(arguments) if arguments.what == "scale" else run(arguments)


if __name__ == "__main__":
    main()
