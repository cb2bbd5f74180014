"""A text that the question lists in a CASE is a public key; one that another column's list rules is
not.
"""

from __future__ import annotations

import pytest

from discreet.sql.plan.keys import Unknown
from sql import harness, policies

PUBLIC = (
    "CASE WHEN note IN ('a', 'b') THEN note ELSE 'other' END",
    "CASE WHEN note = 'a' THEN note END",
    "CASE WHEN note = 'a' OR note = 'b' THEN note ELSE clinic END",
    "IF(note = 'a', note, 'other')",
    "CASE WHEN UPPER(note) IN ('A', 'B') THEN UPPER(note) ELSE '' END",
)
SECRET = (
    "CASE WHEN clinic IN ('Hill', 'Harbor') THEN note ELSE 'other' END",
    "CASE WHEN UPPER(note) = 'A' THEN note ELSE 'other' END",
    "CASE WHEN note IN ('a', 'b') OR cost > 3 THEN note ELSE 'other' END",
    "CASE WHEN NOT note IN ('a', 'b') THEN note ELSE 'other' END",
    "CASE WHEN note IN ('a', 'b') THEN 'listed' ELSE note END",
    "CASE WHEN note > 'a' THEN note ELSE 'other' END",
    "CASE note WHEN 'a' THEN note ELSE note END",
)


def has_unknown(key: str) -> bool:
    sql = f"SELECT {key} AS k, COUNT(*) FROM visits GROUP BY 1"
    plan = harness.planned(sql, policies.policy("hospital"), name="hospital")
    return any(isinstance(each, Unknown) for each in plan.blocks[0].keys)


@pytest.mark.parametrize("key", PUBLIC)
def test_texts_that_the_question_lists_are_public(key: str) -> None:
    assert not has_unknown(key)


@pytest.mark.parametrize("key", SECRET)
def test_other_texts_must_pass_the_test(key: str) -> None:
    assert has_unknown(key)
