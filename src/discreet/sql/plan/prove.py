"""Hold a plan against the checker, before anything is charged (S24)."""

from __future__ import annotations

from typing import Any

from discreet.errors import Unproved
from discreet.mechanisms.running import factor
from discreet.policy.policy import Policy
from discreet.sql.check.checker import Checker
from discreet.sql.check.norms import Norms
from discreet.sql.plan.block import Statistic
from discreet.sql.plan.keys import Unknown
from discreet.sql.plan.plan import Plan


def prove(plan: Plan, policy: Policy) -> None:
    """Raise Unproved where a plan claims less than `check` derives from what will run (S24)."""
    checker = Checker(policy=policy)
    for block in plan.blocks:
        sizes = [None if isinstance(key, Unknown) else key.size for key in block.keys]
        checker.require_neighbors(block.neighbors, *(pick.neighbors for pick in block.picks))
        for each in block.own_statistics:
            forms = each.over(block.sums.readings)
            person: dict[str, Any] = {"neighbors": block.neighbors, "sizes": sizes}
            checker.require(_claim(each), block.sums, forms, **person)
            if each.totals is not None:
                made = factor(each.totals.grid.periods)
                checker.require_totals(each.totals.l2_squared, made, block.sums, forms, **person)
        if block.unknown:
            if block.threshold_test is None:
                raise Unproved(
                    "Keys that are not public were to be shown untested: nothing is asked."
                )
            people, keys = block.people, [None] * len(block.unknown)
            checker.require(
                _claim(block.threshold_test),
                people,
                block.threshold_test.forms,
                neighbors=block.neighbors,
                sizes=keys,
            )
            checker.require_touched(block.touched, people)
        for pick in block.picks:
            checker.require_rows(pick.rows, pick.groups, block.rows_in(pick), sizes=sizes)


def _claim(statistic: Statistic) -> Norms:
    far = statistic.sensitivity
    return Norms(l1=far.l1, l2_squared=far.l2_squared, linf=far.linf)
