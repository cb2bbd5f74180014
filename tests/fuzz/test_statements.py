"""Thousands of statements, legitimate and hostile, on neighboring databases: none tells more than
it claims.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.algebra import Column, Factor, Fold, Over, Scan, Select, Stage, Sum
from discreet.engines.duckdb.workbench import WorkbenchSpelling
from discreet.sql import analyze
from discreet.sql.plan.block import Block

from . import check
from .check import Violation, verdict
from .run import FUZZED, run
from .worlds import POLICIES, World, world

FOUND = Path(__file__).parent / "found.sql"


def found() -> list[str]:
    lines = (
        line for line in FOUND.read_text(encoding="utf-8").splitlines() if not line.startswith("--")
    )
    return [sql.strip() for sql in re.split(r";\n", "\n".join(lines) + "\n") if sql.strip()]


@pytest.mark.parametrize("seed", ["some", "others"])
def test_statements(seed: str, record_property: Callable[[str, object], None]) -> None:
    """The same ones every time, so that what fails is a change's own. `make slow` draws others."""
    counts, violations = run(1_250, each=175, seconds=75, seed=seed)
    record_property(FUZZED, dict(counts))
    assert not violations, violations[0]
    assert sum(counts.values()) >= 500
    answered = sum(count for name, count in counts.items() if ": answered" in name)
    assert answered >= 100, "the grammar is too wild"
    assert any(name.endswith("by running totals") for name in counts)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_statements(part: int, record_property: Callable[[str, object], None]) -> None:
    """A hundred thousand, in parts that workers share. What it finds goes into found.sql, which
    every run checks.
    """
    counts, violations = run(10_000, seconds=3_600)
    record_property(FUZZED, dict(counts))
    assert not violations, violations[0]
    assert sum(counts.values()) == 10_000


@pytest.mark.parametrize("name", POLICIES)
def test_found_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "CARRIED_OUT", name in ("town", "shop, zcdp, few keys"))
    source = random.Random(os.urandom(16))
    here = world(name, source)
    for sql in found():
        verdict(sql, here, source)


def test_the_check_sees_violations() -> None:
    """The check itself is checked: a claim that is too small, an error that some rows raise, a row
    over all people.
    """
    source = random.Random(os.urandom(16))
    here = world("shop", source)
    planned = analyze.plan(
        "SELECT clinic, SUM(cost) FROM visits GROUP BY clinic",
        here.policy,
        here.public,
        here.evaluate,
    )
    block = planned.blocks[0]
    statistic = block.statistics[0]
    assert isinstance(block.source, Scan)
    stage = block.source.stage
    # A window whose partition is no person: everybody's rows of a clinic.
    across = Over(Fold("count", ()), Column(stage, "clinic"))
    counted = Factor(Column("s", "n"), 0, 9, 1, False)
    large = Factor(Column(stage, "big") * 4, 0, 9, 1, False)
    everybody = Stage(Select(block.source, (("n", across),)), "s")
    small = replace(
        statistic, sensitivity=replace(statistic.sensitivity, l1=0, l2_squared=0, linf=0)
    )
    across_people = replace(statistic, reads=(Sum((counted,)),))
    wrong = (
        replace(block, statistics=(small,)),
        replace(block, statistics=(replace(statistic, reads=(Sum((large,)),)),)),
        replace(block, places=(Column(stage, "cost"),)),
        replace(block, source=everybody, places=(), keys=(), statistics=(across_people,)),
    )
    unseen = list(wrong)
    # the last is not seen in 1 of 20: in none of 15, 1e-19
    for here in (world("shop", source) for _ in range(15)):
        unseen = [each for each in unseen if not _seen(each, here)]
        if not unseen:
            break
    assert not unseen


def test_the_check_sees_sums_that_move_too_far() -> None:
    """A claim for running totals that holds for each number, and not for the sums."""
    source = random.Random(os.urandom(16))
    for _ in range(15):  # somebody has a visit in all but 1 of 20 of them
        here = world("shop, zcdp", source)
        planned = analyze.plan(
            "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day) FROM visits WHERE day IS NOT NULL GROUP BY day",
            here.policy,
            here.public,
            here.evaluate,
            spell=WorkbenchSpelling().numbers,
        )
        [block], [statistic] = planned.blocks, planned.blocks[0].statistics
        assert statistic.totals is not None
        assert not _seen(block, here)
        small = replace(statistic.totals, l2_squared=statistic.sensitivity.l2_squared)
        if _seen(replace(block, statistics=(replace(statistic, totals=small),)), here):
            return
    raise AssertionError("not seen")


def _seen(block: Block, here: World) -> bool:
    try:
        check._measured(block, here)
    except Violation:
        return True
    return False
