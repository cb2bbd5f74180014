"""Every pair of plans.sql, held against small databases: no neighbor moves what is measured by more
than is claimed.

The exact queries run on DuckDB, on tables as a snapshot has them. Databases are drawn at the edges
of the policy's domains, without a seed; a violation is a fact and no statistic, so there are no
false alarms. That claims are reached, and that a smaller claim would be caught, is tested too.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from discreet.accounting import SumAccountant, ZcdpAccountant
from discreet.asking.offer import offer
from discreet.budget import Charge
from discreet.mechanisms import FineQuantile, Quantile, Quantiles
from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.picks import Pick
from sql import databases, harness
from sql.harness import Case

CASES = harness.cases()
NORMS = ("l0", "l1", "l2_squared", "linf")
# statistic, neighbors, the largest change as a share of what is claimed
Reached = tuple[str, str, Fraction]


@cache
def family(name: str, backgrounds: int = 2, size: int = 60) -> databases.Family:
    constants = databases.constants_of([case.sql for case in CASES if case.policy == name])
    return databases.family(
        name, constants, backgrounds=backgrounds, size=size, dice=random.Random()
    )


# --- what a family of databases gives -------------------------------------------------------------


def read(found: databases.Family, sql: str, keys: int) -> dict[int, dict[Any, tuple[int, ...]]]:
    """The rows of a query over all databases: by database and group."""
    result: dict[int, dict[Any, tuple[int, ...]]] = defaultdict(dict)
    for row in found.connection.sql(sql).fetchall():
        result[row[0]][row[1 : 1 + keys]] = tuple(map(harness.whole, row[1 + keys :]))
    return result


def vectors(block: Block, found: databases.Family) -> dict[int, harness.Vector]:
    """The block's sums in every database of a family."""
    return read(found, harness.by_database(block.sums, base=databases.BASE), len(block.places))


def dense(found: databases.Family, numbers: dict[int, dict[Any, int]]) -> np.ndarray[Any, Any]:
    """One row per database, one column per number that is not zero everywhere."""
    places: dict[Any, int] = {}
    for each in numbers.values():
        for key in each:
            places.setdefault(key, len(places))
    matrix = np.zeros((found.backgrounds * found.size, max(1, len(places))), dtype=object)
    for database, each in numbers.items():
        for key, value in each.items():
            matrix[database, places[key]] = value
    largest = max((abs(int(value)) for value in matrix.ravel()), default=0)
    return matrix.astype(np.int64) if largest < 2**40 else matrix


def changes(matrix: Any, found: databases.Family, neighbors: str) -> Iterator[Any]:
    """Absolute changes between neighbors, many at a time."""
    for background in range(found.backgrounds):
        rows = matrix[background * found.size : (background + 1) * found.size]
        for first in [0] if neighbors == "add_remove" else range(len(rows) - 1):
            yield np.abs(rows[first + 1 :] - rows[first])


def largest(matrix: Any, found: databases.Family, neighbors: str) -> dict[str, int]:
    """The largest change between neighbors, by each norm."""
    most = dict.fromkeys(NORMS, 0)
    for change in changes(matrix, found, neighbors):
        most["l0"] = max(most["l0"], int((change != 0).sum(axis=1).max()))
        most["l1"] = max(most["l1"], int(change.sum(axis=1).max()))
        most["l2_squared"] = max(
            most["l2_squared"], int((change.astype(object) ** 2).sum(axis=1).max())
        )
        most["linf"] = max(most["linf"], int(change.max()))
    return most


# --- sums -----------------------------------------------------------------------------------------


def check_sums(case: Case, found: databases.Family) -> list[Reached]:
    """No change of a measurement is larger than claimed; returns how much of each l1 and l2 was
    reached.
    """
    reached = []
    for neighbors in harness.NEIGHBORS:
        for block in harness.plan_of(case, neighbors).blocks:
            exact = vectors(block, found)
            for measurement in block.own_statistics:
                numbers = {
                    db: harness.forms_of(vector, measurement.over(block.readings))
                    for db, vector in exact.items()
                }
                moved = largest(dense(found, numbers), found, neighbors)
                claims = {norm: getattr(measurement.sensitivity, norm) for norm in NORMS}
                over = {
                    norm: (moved[norm], claims[norm])
                    for norm in NORMS
                    if moved[norm] > claims[norm]
                }
                assert not over, (
                    f"{case.id}, {measurement.name}, {neighbors}: moved by more than claimed: {over}"
                )
                reached.append(
                    (f"{measurement.name} l1", neighbors, Fraction(moved["l1"], claims["l1"]))
                )
                share = Fraction(moved["l2_squared"], claims["l2_squared"])
                reached.append((f"{measurement.name} l2²", neighbors, share))
    return reached


def check_keys(case: Case, found: databases.Family) -> list[Reached]:
    """One person adds at most 1 to the people of at most `touched` unknown keys, twice that when
    replaced.
    """
    reached = []
    for neighbors in harness.NEIGHBORS:
        for block in harness.plan_of(case, neighbors).blocks:
            if not block.unknown:
                continue
            sql, keys = harness.by_database(block.people, base=databases.BASE), len(block.unknown)
            people = {
                db: {key: n for key, (n,) in each.items()}
                for db, each in read(found, sql, keys).items()
            }
            moved = largest(dense(found, people), found, neighbors)
            touched = block.touched * (2 if neighbors == "change_one" else 1)
            assert moved["linf"] <= 1
            assert moved["l0"] <= touched
            reached.append(("keys", neighbors, Fraction(moved["l0"], touched)))
    return reached


# --- picks ----------------------------------------------------------------------------------------


def check_picks(case: Case, found: databases.Family) -> list[Reached]:
    """Scores of all groups together move by no more than the choice was made for.

    A choice loses in proportion to how far its scores move, so that over disjoint groups it is the
    sum over groups of the largest change that must stay within `linf`.
    """
    reached = []
    for neighbors in harness.NEIGHBORS:
        for block, pick, mechanisms in harness.picks_of(case, neighbors):
            counts = _cells(block, pick, found)
            for index, mechanism in enumerate(mechanisms):
                most = max(
                    (_moved(mechanism, change) for change in _pairs(counts, found, neighbors)),
                    default=Fraction(0),
                )
                allowed = _linf(mechanism)
                assert most <= allowed, (
                    f"{case.id}, {pick.name}, {neighbors}, choice {index}: {most} > {allowed}"
                )
                reached.append((f"{pick.name} choice {index}", neighbors, Fraction(most) / allowed))
    return reached


def _cells(
    block: Block, pick: Pick, found: databases.Family
) -> dict[int, dict[Any, dict[int, int]]]:
    """Rows per cell, in every database and group."""
    sql = harness.by_database(block.rows_in(pick), base=databases.BASE)
    result: dict[int, dict[Any, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
    for database, rows in read(found, sql, len(block.places) + 1).items():
        for key, (count,) in rows.items():
            assert 0 <= int(key[-1]) < pick.domain.size, "a row falls outside of the grid"
            result[database][key[:-1]][int(key[-1])] = count
    return result


def _pairs(
    counts: Any, found: databases.Family, neighbors: str
) -> Iterator[list[tuple[dict[int, int], dict[int, int]]]]:
    """For each pair of neighbors, the cells of every group before and after."""
    empty: dict[int, int] = {}
    for background in range(found.backgrounds):
        first, last = background * found.size, (background + 1) * found.size
        for one in [first] if neighbors == "add_remove" else range(first, last, 5):
            for other in range(one + 1, last):
                groups = {*counts[one], *counts[other]}
                yield [
                    (counts[one].get(key, empty), counts[other].get(key, empty)) for key in groups
                ]


def _moved(mechanism: Any, groups: list[tuple[dict[int, int], dict[int, int]]]) -> Fraction:
    return sum((_largest_score_change(mechanism, *pair) for pair in groups), Fraction(0))


def _largest_score_change(
    mechanism: Any, before: dict[int, int], after: dict[int, int]
) -> Fraction:
    """Scores change only where counts do, and between: it is enough to look at the cells that hold
    rows, and around.
    """
    held = sorted({*before, *after})
    # a mode: how far apart its scores move
    if not isinstance(mechanism, FineQuantile | Quantile | Quantiles):
        moves = [0, *(after.get(cell, 0) - before.get(cell, 0) for cell in held)]
        return Fraction(max(moves) - min(moves), 1 if mechanism.monotone else 2)
    places = sorted({place for cell in held for place in (cell - 1, cell, cell + 1)})
    quantiles = mechanism.quantiles if isinstance(mechanism, Quantiles) else (mechanism.q,)
    worst = Fraction(0)
    for q in quantiles:
        scores = [
            _scores(counts, places, q, getattr(mechanism, "shift", 0)) for counts in (before, after)
        ]
        worst = max(
            worst, max((abs(a - b) for a, b in zip(*scores, strict=True)), default=Fraction(0))
        )
    return worst


def _scores(counts: dict[int, int], places: list[int], q: Fraction, shift: int) -> list[Fraction]:
    """u(v) = -max(0, #{<v} - qn - shift, qn + shift - #{<=v}), by definition."""
    wanted = q * sum(counts.values()) + shift
    result = []
    for place in places:
        below = sum(count for cell, count in counts.items() if cell < place)
        result.append(-max(Fraction(0), below - wanted, wanted - below - counts.get(place, 0)))
    return result


def _linf(mechanism: Any) -> Fraction:
    """How far, in ranks or rows, the scores may move by what the choice was made for."""
    if isinstance(mechanism, FineQuantile | Quantile):
        return mechanism.mechanism.linf / mechanism.q.denominator
    if isinstance(mechanism, Quantiles):
        factor = (
            1
            if mechanism.neighbors == "change_one"
            else max(max(q, 1 - q) for q in mechanism.quantiles)
        )
        return Fraction(mechanism.max_rows * factor)
    return Fraction(mechanism.linf)


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_neighbor_moves_more_than_claimed(case: Case) -> None:
    assert harness.expected(case) == case.expected, (
        "in tests: python -m sql.matrix --write, and look at it"
    )
    found = family(case.policy)
    check_sums(case, found)
    check_keys(case, found)
    check_picks(case, found)


def test_most_claims_are_reached() -> None:
    """Claims are tight: on a few hundred databases nearly every one is met exactly."""
    shares = [
        share
        for case in random.Random().sample(CASES, 120)
        for _, _, share in (
            *check_sums(case, family(case.policy)),
            *check_keys(case, family(case.policy)),
        )
    ]
    assert sum(share == 1 for share in shares) > 0.7 * len(shares)
    assert all(share <= 1 for share in shares)


def test_smaller_claims_would_be_caught() -> None:
    """The same check, with every claim one unit smaller, fails for nearly all that are reached."""
    caught = tried = 0
    for case in (
        each
        for each in CASES
        if each.relation in ("one row", "several rows") and "group" in each.clause
    ):
        for neighbors in harness.NEIGHBORS:
            block = harness.plan_of(case, neighbors).blocks[0]
            exact = vectors(block, family(case.policy))
            for measurement in block.own_statistics:
                numbers = {
                    db: harness.forms_of(vector, measurement.over(block.readings))
                    for db, vector in exact.items()
                }
                moved = largest(dense(family(case.policy), numbers), family(case.policy), neighbors)
                tried += 1
                caught += moved["l1"] > measurement.sensitivity.l1 - 1
    assert tried > 60
    assert caught > 0.8 * tried


@pytest.mark.parametrize("name", ["hospital", "census", "isp", "school"])
def test_databases_by_themselves_give_the_same(name: str) -> None:
    """The block's own query on one database at a time, as it runs in earnest, is what all databases
    at once gave.

    A query in which rows of different people meet would differ here.
    """
    found = family(name)
    dice = random.Random()
    for case in (case for case in CASES if case.policy == name):
        for block in (block for block in harness.plan_of(case).blocks if block.readings):
            exact = vectors(block, found)
            for database in dice.sample(range(found.backgrounds * found.size), 3):
                found.single.execute(f"SET VARIABLE db = {database}")
                width = len(block.places)
                rows = found.single.sql(harness.spelled(block.sums)).fetchall()
                alone = {row[:width]: tuple(map(harness.whole, row[width:])) for row in rows}
                expected = exact.get(database, {}) or (
                    {(): (0,) * len(block.readings)} if not width else {}
                )
                assert alone == expected, case.id


def test_what_is_charged_is_what_is_measured() -> None:
    """The cost is the sum of what each measurement, pick and threshold loses: l1 / scale, or l2² /
    2σ².
    """
    limit = Charge(amount=Fraction(100), delta=Fraction(1, 10**6))
    for case in CASES:
        for accountant in (SumAccountant(), ZcdpAccountant(delta_convert=Fraction(1, 10**6))):
            plan = harness.plan_of(case)
            offered = offer(plan, accountant, amount=Fraction(1), limit=limit)
            total, delta = Fraction(0), Fraction(0)
            for each in offered.blocks:
                if isinstance(each.block.kind, Shared):
                    continue
                for statistic in each.block.own_statistics:
                    total += _loss(statistic.sensitivity, each.added[statistic.id])
                others = [mechanism for passes in each.chosen.values() for mechanism in passes]
                others += [] if each.threshold is None else [each.threshold]
                for mechanism in others:
                    loss = mechanism.loss()
                    total += (loss.epsilon if accountant.name == "sum" else loss.rho) or 0
                    delta += loss.delta
            assert offered.cost.amount >= total
            assert offered.cost.amount == pytest.approx(float(total), rel=1e-9)
            assert offered.cost.amount <= 1
            assert offered.cost.delta >= delta
            assert offered.cost.amount == pytest.approx(float(bool(plan.blocks)), rel=1e-3)


def _loss(sensitivity: Any, mechanism: Any) -> Fraction:
    if hasattr(mechanism, "scale"):
        return Fraction(sensitivity.l1) / mechanism.scale
    return Fraction(sensitivity.l2_squared) / (2 * mechanism.sigma**2)


def test_there_are_enough_pairs() -> None:
    triples = {(case.aggregate, case.relation, case.clause) for case in CASES}
    assert len(triples) == len(CASES) >= 300


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_no_neighbor_of_many_moves_more_than_claimed(case: Case) -> None:
    found = family(case.policy, 4, 300)
    check_sums(case, found)
    check_keys(case, found)
    check_picks(case, found)
