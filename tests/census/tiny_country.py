"""A country of two states, three tracts and six blocks, one of them empty; with or without one
person.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator

POLICY = """\
unit: person
neighbors: NEIGHBORS
tables:
  people:
    owner: person_id
    max_rows: ROWS
    columns:
      person_id: {identifier: true}
      block: text
      sex: {values: [F, M]}
      age: {integer: [0, 3]}
      ill: {boolean: true, nullable: true}
  blocks: {public: true}
  known: {public: true}
budget: {epsilon: 1000, delta: 1e-6, accountant: ACCOUNTANT}
hierarchies:
  geography: {levels: [state, tract, block], table: blocks}
publications:
  census:
    table: people
    hierarchy: geography
    tables: [[], [sex], [sex, age], {columns: [age, ill], weight: 2}]
    epsilon: EPSILON
"""
BLOCKS = {"state": list("AAAABB"), "tract": list("112233"), "block": list("abcdef")}


def policy_text(
    *,
    neighbors: str = "add_remove",
    accountant: str = "zcdp",
    rows: int = 1,
    epsilon: object = 4,
    more: str = "",
) -> str:
    text = POLICY.replace("NEIGHBORS", neighbors).replace("ACCOUNTANT", accountant)
    return text.replace("ROWS", str(rows)).replace("EPSILON", str(epsilon)) + more


def tables(*, victim: bool = True, people: int = 300) -> dict[str, pa.Table]:
    """Nobody lives in block c; whoever is the victim lives in e."""
    ids = [i for i in range(people) if victim or i != 7]
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "block": ["e" if i == 7 else "abdeffffff"[i % 10] for i in ids],
                "sex": ["FM"[i * i % 3 % 2] for i in ids],
                "age": [i // 5 % 4 for i in ids],
                "ill": [None if i % 11 == 0 else i % 3 == 0 for i in ids],
            }
        ),
        "blocks": pa.table(BLOCKS),
        "known": pa.table({"state": ["A", "B"], "count": [90, 210]}),
    }


def opened(folder: Path, text: str, given: dict[str, Any] | None = None) -> Curator:
    path = folder / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    create_ledger(discreet.Policy.read(path))
    return discreet.open(path, tables=tables() if given is None else given)


def require_consistent(publication: Any) -> None:
    """Whole, none below zero, every level the sum of the next, every table the sum of the largest,
    microdata too.
    """
    plan = publication.plan
    cells = publication.people.cell
    for level in range(len(plan.places.levels)):
        total = publication.counts(level, ()).ravel()
        for table in plan.grid.tables:
            counts = publication.counts(level, table)
            assert counts.dtype == np.int64
            assert (counts >= 0).all()
            assert (counts.sum(axis=1) == total).all()
            if level:
                above = publication.counts(level - 1, table)
                assert (
                    np.add.reduceat(counts, plan.places.starts[level - 1], axis=0) == above
                ).all()
    if plan.zeros is not None:
        assert not plan.zeros[cells].any()
    for (level, name), table in publication.tables.items():
        at = plan.names.index(name)
        keys = [*plan.places.levels[1 : plan.places.levels.index(level) + 1]]
        keys += [plan.axes[column].name for column in plan.grid.tables[at]]
        expected = {
            tuple(row[key] for key in keys): row["count"]
            for row in table.to_pylist()
            if row["count"]
        }
        if keys:
            counted = (
                publication.microdata.group_by(keys).aggregate([([], "count_all")]).to_pylist()
            )
            assert {
                tuple(row[key] for key in keys): row["count_all"] for row in counted
            } == expected
        else:
            assert publication.microdata.num_rows == table.column("count")[0].as_py()
