"""Every pair of plans.sql, held against small databases: no neighbor moves what is measured by more than is claimed.

The exact queries run on DuckDB, on tables as a snapshot has them. Databases are drawn at the edges of the policy's
domains without a seed; a violation is a fact and no statistic, so that there are no false alarms.
"""

from __future__ import annotations

import random
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from sql import databases, harness, policies
from sql.harness import Case

CASES = harness.cases()
NAMES = tuple(policies.TEXTS)


@cache
def family(name: str, backgrounds: int, size: int) -> databases.Family:
    constants = databases.constants_of([case.sql for case in CASES if case.policy == name])
    return databases.family(name, constants, backgrounds=backgrounds, size=size, dice=random.Random())


def vectors(case: Case, block: Any, found: databases.Family) -> dict[int, harness.Vector]:
    """The block's sums in every database of a family."""
    sql = harness.by_database(block, keys=list(block.key_sql), sums=list(block.sums), base=databases.BASE)
    width = len(block.key_sql)
    result: dict[int, harness.Vector] = defaultdict(dict)
    for row in found.connection.sql(sql).fetchall():
        result[row[0]][row[1 : 1 + width]] = tuple(map(harness.whole, row[1 + width :]))
    return result


def dense(found: databases.Family, numbers: dict[int, dict[Any, int]]) -> np.ndarray[Any, Any]:
    """One row per database, one column per number that is not zero everywhere."""
    places: dict[Any, int] = {}
    for each in numbers.values():
        for key in each:
            places.setdefault(key, len(places))
    total = found.backgrounds * found.size
    matrix = np.zeros((total, max(1, len(places))), dtype=object)
    for database, each in numbers.items():
        for key, value in each.items():
            matrix[database, places[key]] = value
    largest = max((abs(int(value)) for value in matrix.ravel()), default=0)
    return matrix.astype(np.int64) if largest < 2**40 else matrix


def distances(matrix: Any, found: databases.Family, neighbors: str) -> dict[str, int]:
    """The largest change between neighbors, by each norm (l2 squared)."""
    most = dict.fromkeys(("l0", "l1", "l2_squared", "linf"), 0)
    for background in range(found.backgrounds):
        rows = matrix[background * found.size : (background + 1) * found.size]
        firsts = [0] if neighbors == "add_remove" else range(len(rows) - 1)
        for first in firsts:
            change = np.abs(rows[first + 1 :] - rows[first])
            most["l0"] = max(most["l0"], int((change != 0).sum(axis=1).max()))
            most["l1"] = max(most["l1"], int(change.sum(axis=1).max()))
            most["l2_squared"] = max(most["l2_squared"], int((change.astype(object) ** 2).sum(axis=1).max()))
            most["linf"] = max(most["linf"], int(change.max()))
    return most


def check(case: Case, found: databases.Family) -> list[tuple[str, str, Fraction]]:
    """No change is larger than claimed; returns how much of each claim was reached: (statistic, neighbors, share)."""
    reached = []
    for neighbors in harness.NEIGHBORS:
        for block in harness.plan_of(case, neighbors).blocks:
            exact = vectors(case, block, found)
            for measurement in block.measurements:
                numbers = {db: harness.forms_of(vector, measurement.forms) for db, vector in exact.items()}
                moved = distances(dense(found, numbers), found, neighbors)
                claimed = measurement.sensitivity
                for norm, change in moved.items():
                    claim = getattr(claimed, norm)
                    assert change <= claim, f"{case.id}, {measurement.name}, {neighbors}: {norm} {change} > {claim}"
                reached.append((measurement.name, neighbors, Fraction(moved["l1"], claimed.l1)))
    return reached


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_neighbor_moves_more_than_claimed(case: Case) -> None:
    print(check(case, family(case.policy, 2, 60)))
