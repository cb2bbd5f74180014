"""MST and AIM on mbi over the shipped findings, beside `bench/parity.py`.

    python bench/parity_peers.py RESULTS.json [--peer MST] [--epsilon 1] [--study affairs]
    [--repeats 1] [--seconds 300] [--python PYTHON]

A peer is given the public domains that our descriptions are given, with numbers of more than 100
values in 100 equal intervals, and as many rows are drawn as the table has. Each run is a process of
its own in the environment that `bench/synthetic.py` makes (or in that of --python), and ends after
--seconds: what does not come to an end is noted as such. Results are added to the file as they
come; a run that is there is not repeated. --show prints the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.evaluate.data import study, study_names, study_table
from discreet.evaluate.findings import Study
from discreet.evaluate.judge import Judge
from discreet.evaluate.public import describe_public
from discreet.synthetic.columns.axis import Axis
from synthetic import DELTA, RUNNER, python_of

INTERVALS = 100
# without these a run is mostly compilation
FLAGS = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "JAX_PLATFORMS": "cpu"}


def axes_of(given: Study, table: pa.Table) -> list[Axis]:
    """Every column on public, equal intervals."""
    found = describe_public(table, name=given.table, epsilon="1", synthesizer="random")
    return [
        Axis(column=axis.column, bins=min(axis.values, INTERVALS) if axis.ordered else axis.values)
        for axis in found.axes
    ]


def decoded(axes: list[Axis], codes: np.ndarray, names: list[str]) -> pa.Table:
    """Rows again; values within an interval are drawn alike."""
    draws = np.random.default_rng()
    columns = [
        axis.decoded(codes[:, place].astype(np.int64), draws.random(len(codes)))
        for place, axis in enumerate(axes)
    ]
    return pa.table(dict(zip(names, columns, strict=True)))


def run(name: str, peer: str, epsilon: str, arguments: argparse.Namespace) -> dict[str, Any]:
    given = study(name)
    table = study_table(given)
    axes = axes_of(given, table)
    codes = np.column_stack([axis.codes(table.column(axis.name)) for axis in axes])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "train.npz", Path(folder) / "made.npy"
        np.savez(
            source,
            names=[f"c{place}" for place in range(len(axes))],
            sizes=[axis.size for axis in axes],
            table=codes.astype(np.int64),
            ordered=np.array([f"c{i}" for i, axis in enumerate(axes) if axis.ordered]),
        )
        python = arguments.python or python_of("mbi")
        command = [python, RUNNER, f"{peer}, mbi", source, epsilon, DELTA, out]
        row = {"study": name, "peer": peer, "epsilon": epsilon}
        try:
            done = subprocess.run(
                [str(part) for part in command],
                capture_output=True,
                text=True,
                check=False,
                timeout=arguments.seconds,
                env={**os.environ, **FLAGS},
            )
        except subprocess.TimeoutExpired:
            return row | {"ended": False, "limit": arguments.seconds}
        if not out.exists():
            raise SystemExit(f"{peer} of mbi failed on {name}:\n{done.stderr[-2000:]}")
        rows = decoded(axes, np.load(out), [axis.name for axis in axes])
    judge = Judge()
    held = [judge.verdict(each.assertion, rows).holds for each in given.findings]
    return row | {"ended": True, "held": held, "seconds": round(time.monotonic() - began)}


def show(rows: list[dict[str, Any]]) -> None:
    """Print, for each peer, ε and study, how many findings held on average, and of how many."""
    found: dict[tuple[str, str, str], list[list[bool]]] = defaultdict(list)
    for row in rows:
        if row["ended"]:
            found[row["peer"], row["epsilon"], row["study"]].append(row["held"])
    for (peer, epsilon, name), each in sorted(found.items()):
        share = np.mean([sum(held) for held in each])
        print(f"{peer} ε = {epsilon} {name}: {share:.2f} of {len(each[0])}, {len(each)} runs")
    for peer, epsilon in dict.fromkeys((peer, epsilon) for peer, epsilon, _ in sorted(found)):
        some = [each for key, each in found.items() if key[:2] == (peer, epsilon)]
        share = sum(float(np.mean([sum(held) for held in each])) for each in some)
        count = sum(len(each[0]) for each in some)
        print(f"{peer} ε = {epsilon}: {share:.1f} of {count} findings, {len(some)} studies")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--peer", action="append", choices=("MST", "AIM"))
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--study", action="append", choices=study_names())
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    rows = json.loads(arguments.results.read_text()) if arguments.results.exists() else []
    if arguments.show:
        show(rows)
        return
    for peer in arguments.peer or ["MST"]:
        for epsilon in arguments.epsilon or ["1"]:
            for name in arguments.study or study_names():
                key = {"study": name, "peer": peer, "epsilon": epsilon}
                there = sum(key.items() <= row.items() for row in rows)
                for _ in range(arguments.repeats - there):
                    rows.append(run(name, peer, epsilon, arguments))
                    arguments.results.write_text(json.dumps(rows, indent=1))
                    print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
