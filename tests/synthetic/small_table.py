"""A small private table with every kind of column, and its curator."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.policy.policy import Policy

POLICY = """
unit: person
neighbors: {neighbors}
tables:
  people:
    owner: person_id
    max_rows: {max_rows}
    columns:
      person_id: {{identifier: true}}
      age:    {{integer: [0, 99]}}
      income: {{decimal: [0, 200000], step: 0.01, nullable: true}}
      sex:    {{values: [F, M, X]}}
      ill:    {{values: [none, flu, cold], nullable: true}}
      smoker: {{boolean: true}}
      day:    {{date: [2024-01-01, 2024-12-31]}}
      seen:   {{timestamp: [2024-01-01, 2025-01-01], step: 1s}}
{more}
  states: {{public: true}}
budget: {{epsilon: 1000, {budget}}}
limits: {{epsilon: 1000}}
analysts:
  alice: {{epsilon: 500}}
"""


def rows(count: int) -> pa.Table:
    """Deterministic: smokers are ill, women young, incomes sometimes missing."""
    sex = ["F" if i % 3 else "M" for i in range(count)]
    return pa.table(
        {
            "person_id": list(range(count)),
            "age": [20 + i % 10 if s == "F" else 60 + i % 10 for i, s in enumerate(sex)],
            "income": [
                None if i % 4 == 0 else Decimal(20000 + (i % 7) * 10000) for i in range(count)
            ],
            "sex": sex,
            "ill": ["flu" if i % 2 else None for i in range(count)],
            "smoker": [bool(i % 2) for i in range(count)],
            "day": [date(2024, 1, 1) + timedelta(days=i % 60) for i in range(count)],
            "seen": [datetime(2024, 6, 1) + timedelta(hours=i % 48) for i in range(count)],
            "notes": [
                None if i % 10 == 0 else f"rare {i}" if i % 10 == 1 else f"it's {i % 3}"
                for i in range(count)
            ],
        }
    )


def curator(
    folder: Path,
    *,
    count: int = 3000,
    budget: str = "delta: 1e-6, accountant: zcdp",
    neighbors: str = "add_remove",
    max_rows: int = 1,
    more: str = "",
) -> discreet.Curator:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "policy.yaml"
    path.write_text(POLICY.format(budget=budget, neighbors=neighbors, max_rows=max_rows, more=more))
    create_ledger(Policy.read(path))
    people = rows(max(count, 4)).slice(0, count)
    return discreet.open(path, tables={"people": people, "states": pa.table({"name": ["A", "B"]})})
