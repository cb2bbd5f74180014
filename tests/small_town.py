"""A small town with and without one person who is at the end of every range, for replays and
audits.
"""

from __future__ import annotations

import pyarrow as pa

POLICY = """\
unit: person
neighbors: NEIGHBORS
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01}
      sex: {values: [F, M]}
      zip: text
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      cost: {decimal: [0, 1000], step: 0.01}
budget: {epsilon: 1000, delta: 1e-6, accountant: ACCOUNTANT}
limits: {epsilon: 100}
analysts:
  alice: {epsilon: 1000}
"""


def town(*, victim: bool) -> dict[str, pa.Table]:
    ids = [i for i in range(60) if victim or i != 7]
    visits = [i for i in ids for _ in range(5 if i == 7 else i % 3)]
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "age": [120 if i == 7 else 20 + i for i in ids],
                "income": [200000.0 if i == 7 else 1000.0 * i for i in ids],
                "sex": ["FM"[i % 2] for i in ids],
                "zip": ["9" if i == 7 else "1" for i in ids],
            }
        ),
        "visits": pa.table(
            {"person_id": visits, "cost": [1000.0 if i == 7 else 5.0 for i in visits]}
        ),
    }
