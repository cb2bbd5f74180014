"""A small clinic whose visits are released, on tables in memory that a test changes as days go
by.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.continual.series import Series
from discreet.curator import Curator
from discreet.policy.policy import Policy

FIRST_DAY = date(2024, 1, 1)
POLICY = """\
unit: person
neighbors: NEIGHBORS
tables:
  visits:
    owner: person_id
    max_rows: 10
    columns:
      person_id: {identifier: true}
      day: {date: [2024-01-01, 2024-12-31]}
      clinic: {values: [Hill, Harbor]}
      cost: {decimal: [0, 100], step: 0.01}
      balance: {integer: [-5, 5]}
  people: {owner: person_id, columns: {person_id: {identifier: true}, age: {integer: [0, 120]}}}
  states: {public: true}
budget: {epsilon: BUDGET, delta: 1e-9, accountant: ACCOUNTANT}
limits: {epsilon: 1}
analysts:
  alice: {epsilon: 1}
releases:
  daily_visits:
    question: QUESTION
    time: day
    period: day
    from: 2024-01-01
    periods: PERIODS
    publish: PUBLISH
    per_person: PERSON
    epsilon: EPSILON
"""
DEFAULTS = {
    "NEIGHBORS": "add_remove",
    "ACCOUNTANT": "sum",
    "BUDGET": "1000000",
    "QUESTION": "SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic",
    "PERIODS": "10",
    "PUBLISH": "[daily, cumulative, 3]",
    "PERSON": "{periods: 4}",
    "EPSILON": "1000",  # noise next to nothing, to see what is counted
}

Visit = tuple[int, int, str, float]  # person, day from 0, clinic, cost


def opened(folder: Path, tables: Mapping[str, Any], **changes: str) -> Curator:
    """A curator of this policy; the ledger is made the first time."""
    text = POLICY
    for name, value in {
        **DEFAULTS,
        **{name.upper(): value for name, value in changes.items()},
    }.items():
        text = text.replace(name, value)
    path = folder / "clinic.yaml"
    path.write_text(text, encoding="utf-8")
    policy = Policy.read(path)
    if not Path(policy.ledger).exists():
        create_ledger(policy)
    return discreet.open(path, tables=tables)


def tables(visits: list[Visit]) -> dict[str, Any]:
    return {
        "visits": pa.table(
            {
                "person_id": pa.array([each[0] for each in visits], pa.int64()),
                "day": pa.array([FIRST_DAY + timedelta(each[1]) for each in visits], pa.date32()),
                "clinic": pa.array([each[2] for each in visits], pa.string()),
                "cost": pa.array([each[3] for each in visits], pa.float64()),
                "balance": pa.array([each[0] % 11 - 5 for each in visits], pa.int64()),
            }
        ),
        "people": pa.table({"person_id": [1, 2], "age": [30, 40]}),
        "states": pa.table({"state": ["MA"]}),
    }


def after(days: int) -> date:
    """The morning after so many days."""
    return FIRST_DAY + timedelta(days)


def values(series: Series, publish: str, statistic: str = "visits", **keys: Any) -> list[float]:
    """A series' values, rounded: with next to no noise these are the counts."""
    rows = [
        row
        for row in series.table.to_pylist()
        if row["publish"] == publish
        and row["statistic"] == statistic
        and all(row[name] == value for name, value in keys.items())
    ]
    return [float(np.round(row["value"])) for row in rows]
