"""What runs alone prove of every mechanism, every local protocol and thirty shapes of questions,
for docs/audit.md.

python bench/audit.py [RUNS]   a million by default; where a run is slow it says how many there were
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

import discreet
from discreet.audit.cases import audit_case, cases
from discreet.audit.question import Leavers, audit_question
from discreet.binding import create_ledger
from discreet.policy.policy import Policy

SURE = 1 - 1e-9
POLICY = """\
unit: person
neighbors: NEIGHBORS
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01, nullable: true}
      sex: {values: [F, M]}
      smoker: {boolean: true}
      born: {date: [1920-01-01, 2024-12-31]}
      zip: text
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      cost: {integer: [0, 1000]}
      clinic: {values: [Hill, Harbor, Mill]}
  states: {public: true}
budget: {epsilon: 1000, delta: 1e-6, accountant: ACCOUNTANT}
limits: {epsilon: 100}
analysts:
  alice: {epsilon: 1000}
"""
SHAPES = (
    "SELECT COUNT(*) FROM people",
    "SELECT COUNT(DISTINCT person_id) FROM visits",
    "SELECT COUNT(*), COUNT(DISTINCT person_id) FROM visits",
    "SELECT COUNT(income) FROM people WHERE age > 40",
    "SELECT COUNT(DISTINCT zip) FROM people",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT sex, smoker, COUNT(*) FROM people GROUP BY sex, smoker",
    "SELECT clinic, COUNT(*) FROM visits GROUP BY clinic",
    "SELECT SUM(cost) FROM visits",
    "SELECT SUM(income) FROM people",
    "SELECT clinic, SUM(cost) FROM visits GROUP BY clinic",
    "SELECT SUM(CASE WHEN smoker THEN 1 ELSE -1 END) FROM people",
    "SELECT SUM(CLAMP(income, 0, 1000)) FROM people",
    "SELECT AVG(age) FROM people",
    "SELECT sex, AVG(income), COUNT(*) FROM people GROUP BY sex",
    "SELECT VARIANCE(age) FROM people",
    "SELECT CORR(age, income) FROM people",
    "SELECT COUNT(*) FILTER (WHERE smoker), COUNT(*) FILTER (WHERE age > 50) FROM people",
    "SELECT COUNT(*) FILTER (WHERE smoker) / COUNT(*) FROM people",
    "SELECT MEDIAN(age) FROM people",
    "SELECT QUANTILE_CONT(age, [0.25, 0.5, 0.75]) FROM people",
    "SELECT MIN(age), MAX(age) FROM people",
    "SELECT MODE(sex) FROM people",
    "SELECT MEDIAN(income) FROM people",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT zip, SUM(age) FROM people GROUP BY zip",
    "SELECT zip, sex, COUNT(*) FROM people GROUP BY zip, sex",
    "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
    "SELECT p.sex, SUM(v.cost) FROM people p JOIN visits v ON p.person_id = v.person_id GROUP BY p.sex",
    "SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.person_id = v.person_id",
    "SELECT COUNT(*) FROM people WHERE person_id NOT IN (SELECT person_id FROM visits WHERE cost > 500)",
    "SELECT AVG(c) FROM (SELECT person_id, SUM(cost) AS c FROM visits GROUP BY person_id) AS t",
)


def town() -> dict[str, pa.Table]:
    ids = list(range(400))
    visits = [i for i in ids for _ in range(i % 4)]
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "age": [i % 100 for i in ids],
                "income": [500.0 * (i % 400) for i in ids],
                "sex": ["FM"[i % 2] for i in ids],
                "smoker": [i % 5 == 0 for i in ids],
                "born": ["1980-01-01"] * 400,
                "zip": [str(i % 4) for i in ids],
            }
        ),
        "visits": pa.table(
            {
                "person_id": visits,
                "cost": [7 * (i % 100) for i in visits],
                "clinic": [("Hill", "Harbor", "Mill")[i % 3] for i in visits],
            }
        ),
        "states": pa.table({"state": ["A", "B"]}),
    }


def row(name: str, claimed: float, delta: float, proved: float, runs: int, sound: bool) -> None:
    verdict = "holds" if sound else "BROKEN"
    print(
        f"| {name} | {claimed:.4g} | {delta:.2g} | {proved:.4g} | {runs:,} | {verdict} |",
        flush=True,
    )


def main(runs: int) -> None:
    head = "| what | claimed ε | at δ | proved ε | runs | |\n|---|---|---|---|---|---|"
    print(f"Mechanisms and local protocols\n\n{head}")
    for name in cases():
        found = audit_case(name, runs=runs, confidence=SURE)
        row(name, found.claimed, found.delta, found.proved, found.runs, found.sound)
    for neighbors, accountant in (("add_remove", "sum"), ("change_one", "zcdp")):
        print(f"\nQuestions at ε = 1, {neighbors}, {accountant}\n\n{head}")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "policy.yaml"
            path.write_text(
                POLICY.replace("NEIGHBORS", neighbors).replace("ACCOUNTANT", accountant),
                encoding="utf-8",
            )
            create_ledger(Policy.read(path))
            discreet.open(path, tables=town())
            for sql in SHAPES:
                audit = audit_question(
                    Policy.read(path),
                    sql,
                    epsilon=1,
                    runs=runs,
                    confidence=SURE,
                    leavers=Leavers(most=4),
                )
                last = audit.findings[-1]
                row(f"`{sql}`", last.claimed, last.delta, last.proved, last.runs, audit.sound)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
