"""Every aggregate of the family: a pair in plans.sql, a proof, the truth, margins that cover, a
line in the docs.

A newcomer that is listed in `AGGREGATES` fails here until it has its pair: `-- TAG / one row /
plain: in words` under the policy `hospital`. All pairs are held against small databases by
test_every_aggregate and against DuckDB by test_right_answers, with the member's own tolerance.

False alarms: 1e-9 in all, shared by the tests of coverage; no seeds.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.sql.aggregates import AGGREGATES, NAMED, READERS
from discreet.sql.plan.prove import prove
from discreet.sql.requests.request import Member
from sql import bounded, harness, policies
from sql.test_right_answers import compared
from test_margins import ACCOUNTANTS, ALARM, answered

DOCS = Path(__file__).parent.parent.parent / "docs" / "language.md"
CHOSEN = ("minimum", "median", "mode")  # which have margins in ranks, or none
SUMMED = [member for member in AGGREGATES if member.tags[0] not in CHOSEN]
MEMBERS = pytest.mark.parametrize("member", AGGREGATES, ids=lambda member: member.tags[0])


def pairs(member: Member) -> list[harness.Case]:
    return [
        case
        for case in harness.cases()
        if case.aggregate in member.tags and case.policy == "hospital"
    ]


def plain(member: Member) -> harness.Case:
    """The pair that each has."""
    return next(
        case for case in pairs(member) if (case.relation, case.clause) == ("one row", "plain")
    )


@MEMBERS
def test_it_is_planned_and_proved(member: Member) -> None:
    for neighbors in harness.NEIGHBORS:
        plan = harness.plan_of(plain(member), neighbors)
        prove(plan, policies.policy("hospital", neighbors))
        assert harness.statistics(plan)


@MEMBERS
def test_every_tag_has_a_pair(member: Member) -> None:
    assert {case.aggregate for case in pairs(member)} == set(member.tags)


@MEMBERS
def test_it_is_documented(member: Member) -> None:
    line = f"| {' | '.join(member.line)} |"
    written = [
        each for each in DOCS.read_text(encoding="utf-8").splitlines() if each.startswith("| `")
    ]
    assert line in written
    assert all(any(name.split("(")[0] in each for each in written) for name in member.names)


def test_it_is_the_truth_without_noise(tmp_path: Path) -> None:
    """Of all members at once, on one source."""
    tables = bounded.tidy(policies.policy("hospital"), people=40, dice=random.Random("same"))
    curator = bounded.opened(tmp_path, "hospital", tables)
    connection = bounded.plain(curator, tmp_path)
    found = [each for member in AGGREGATES for each in compared(plain(member), curator, connection)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("member", SUMMED, ids=lambda member: member.tags[0])
def test_margins_cover(member: Member, accountant: str) -> None:
    """At least 95 %, and not by being none: at ε = 2 every answer has a margin, and none is ± 0."""
    for epsilon in (1, 2):
        for found in answered(plain(member).sql, accountant, epsilon=epsilon).values():
            told = ~np.isnan(found.margins)
            off = np.abs(found.values - found.truth) > found.margins * (1 + 1e-9) + 1e-9
            assert (off & told).sum() <= stats.binom.isf(ALARM, max(told.sum(), 1), 0.05)
            assert (found.margins[told] > 0).all()
            assert told.all() or epsilon == 1


def test_no_syntax_is_read_twice() -> None:
    assert len(READERS) == sum(len(member.readers) for member in AGGREGATES)
    assert len(NAMED) == sum(len(member.named) for member in AGGREGATES)
    assert len({tag for member in AGGREGATES for tag in member.tags}) == sum(
        len(each.tags) for each in AGGREGATES
    )
