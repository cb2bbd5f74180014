"""A statement that merely lists columns of its noisy table needs no engine after noise: the answer
is the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.asking.view import View
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.examples import town

LISTED = (
    "SELECT COUNT(*) FROM people",
    "SELECT state, COUNT(*) AS n, AVG(income) AS n FROM people GROUP BY state",
    "SELECT COUNT(*), diagnosis, smoker FROM people GROUP BY smoker, diagnosis",
    "SELECT zip, COUNT(*) FROM people GROUP BY zip",
    "SELECT SUM(income), STDDEV(income) FROM people",
    "SELECT SUM(age * 1000000000000000) FROM people",
    "SELECT MIN(born), MAX(born), MODE(sex), MEDIAN(income) FROM people",
    "SELECT QUANTILE_CONT(age, [0.1, 0.5]) FROM people",
    "SELECT DATE_TRUNC('month', day), COUNT(*) FROM visits GROUP BY 1",
)
COMPUTED = (
    "SELECT COUNT(*) + 1 FROM people",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2",
    "SELECT COUNT(*) FROM people HAVING COUNT(*) > 5",
    "SELECT COUNT(*) FROM people LIMIT 0",
    "SELECT DISTINCT sex, COUNT(*) FROM people GROUP BY sex",
    "SELECT state FROM states",
    "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM visits",
)


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    policy: Path = town.build(tmp_path_factory.mktemp("town"), people=300)
    create_ledger(discreet.Policy.read(policy))
    return discreet.open(policy)


@pytest.mark.parametrize("sql", LISTED)
def test_same_with_and_without_the_workbench(
    curator: Curator, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = View.finish
    compared: list[bool] = []

    def both(self: View, offered: Any, *rest: Any) -> Any:
        assert offered.plan.listed is not None
        listed = finish(self, offered, *rest)
        computed = finish(self, replace(offered, plan=replace(offered.plan, listed=None)), *rest)
        compared.append(
            listed.table.equals(computed.table) and listed.margins.equals(computed.margins)
        )
        return listed

    monkeypatch.setattr(View, "finish", both)
    curator.ask(sql, analyst="alice", epsilon="0.02")
    assert compared == [True]


@pytest.mark.parametrize("sql", COMPUTED)
def test_what_is_computed_is_not_listed(curator: Curator, sql: str) -> None:
    assert curator._view.offer(sql, epsilon="0.02", margin=None, assuming=None).plan.listed is None
