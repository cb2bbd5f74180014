"""Every question of a data officer is answered, or refused with a remedy that works when it is
pasted.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from discreet.errors import Rejected
from questions import EPSILON, PAGE, POLICIES, Question, opened, questions

REFUSED = {
    *("above own average (subquery)", "pivot", "SELECT *", "STRING_AGG"),
    "quartiles of rows by NTILE",
    *("the oldest patients", "where the last stops were", "who goes more often than the mean"),
}


@pytest.fixture(scope="module")
def curators(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of nobody: what is answered depends on the policy alone."""
    return {name: opened(name, None, tmp_path_factory.mktemp(name)) for name in POLICIES}


@pytest.mark.parametrize("question", questions(), ids=lambda each: f"{each.policy}: {each.words}")
def test_is_answered_or_mended(curators: dict[str, Any], question: Question) -> None:
    curator = curators[question.policy]
    if question.words not in REFUSED:
        assert curator.quote(question.sql, analyst="officer", epsilon=EPSILON).columns
        return
    with pytest.raises(Rejected) as caught:
        curator.quote(question.sql, analyst="officer", epsilon=EPSILON)
    remedy = re.search(r"SELECT .*?(?=\.?$)", caught.value.hint)
    assert remedy is not None
    assert curator.quote(remedy[0], analyst="officer", epsilon=EPSILON).columns


def test_the_page_tells_of_each() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for question in questions():
        (row,) = re.findall(rf"^\| {re.escape(question.words)} \| (.*) \|$", page, re.MULTILINE)
        assert row.startswith("– | refused: ") == (question.words in REFUSED), row
        assert question.sql in page
