"""Compare the claims of a plan with what the checker derives, before anything is charged (S24)."""

from __future__ import annotations

from typing import Any

from discreet.errors import Unproved
from discreet.mechanisms.running import factor
from discreet.policy.policy import Policy
from discreet.sql.check.checker import Checker
from discreet.sql.check.norms import Norms
from discreet.sql.plan.block import Block, Statistic, places_of
from discreet.sql.plan.keys import Unknown
from discreet.sql.plan.plan import Plan


def prove(plan: Plan, policy: Policy) -> None:
    """Raise Unproved if a plan claims less than `check` derives from what will run (S24)."""
    checker = Checker(policy=policy)
    for block in plan.blocks:
        _prove_block(block, checker)


def _prove_block(block: Block, checker: Checker) -> None:
    sizes = [None if isinstance(key, Unknown) else key.size for key in block.keys]
    person: dict[str, Any] = {"neighbors": block.neighbors, "sizes": sizes}
    checker.require_neighbors(block.neighbors, *(pick.neighbors for pick in block.picks))
    query = block.sums
    places = places_of(query.readings)
    for statistic in block.own_statistics:
        forms = statistic.at_places(places)
        checker.require(_claim(statistic), query, forms, **person)
        if statistic.totals is not None:
            sums = factor(statistic.totals.grid.periods)
            claim = statistic.totals.l2_squared
            checker.require_totals(claim, sums, query, forms, **person)
    if block.unknown:
        _prove_threshold(block, checker)
    for pick in block.picks:
        checker.require_rows(pick.rows, pick.groups, block.rows_in(pick), sizes=sizes)


def _prove_threshold(block: Block, checker: Checker) -> None:
    """Prove the test that decides which unknown keys are shown."""
    test = block.threshold_test
    if test is None:
        raise Unproved("Keys that are not public would be shown without a test: nothing is asked.")
    people = block.people
    sizes = [None] * len(block.unknown)
    checker.require(_claim(test), people, test.forms, neighbors=block.neighbors, sizes=sizes)
    checker.require_touched(block.touched, people)


def _claim(statistic: Statistic) -> Norms:
    claim = statistic.sensitivity
    return Norms(l1=claim.l1, l2_squared=claim.l2_squared, linf=claim.linf)
