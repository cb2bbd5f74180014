"""A release's margins before it is charged: the same that are published later, and nothing is
spent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_release import after, opened, tables

from discreet import cli
from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_what_is_quoted_is_what_is_published(tmp_path: Path, accountant: str) -> None:
    curator = opened(tmp_path, tables([]), accountant=accountant, epsilon="2", budget="9")
    release = curator.release("daily_visits")
    before = curator._ledger.spent()
    quoted = release.quote()
    assert curator._ledger.spent() == before
    series = release.start()
    assert quoted.cost == series.budget
    assert quoted.strategy == series.design.strategy.name
    table = release.run(after(10)).table.to_pylist()
    for line in quoted.lines:
        kind = (line.publish, line.statistic)
        published = [row["margin"] for row in table if (row["publish"], row["statistic"]) == kind]
        assert published[:: len(published) // len(line.margins)] == list(line.margins)
    assert {line.publish for line in quoted.lines} == {"daily", "cumulative", "3"}


def test_a_horizon_that_nobody_knows(tmp_path: Path) -> None:
    quoted = opened(tmp_path, tables([]), periods="unknown").release("daily_visits").quote()
    assert quoted.periods is None
    assert {len(line.margins) for line in quoted.lines} == {365, 363}
    assert "no known end; here the first 365 periods" in str(quoted)


def test_the_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(town.build(tmp_path / "town", people=50))
    create_ledger(Policy.read(path))
    assert cli.run(["release", "quote", path, "visits_by_day"]) == 0
    told = capfd.readouterr().out
    assert "cost ε = 1" in told
    assert "cumulative: ±" in told
    assert "Nothing is charged" in told
    assert cli.run(["release", "quote", path, "visits_by_day", "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["margins"][0]["margins"][0] > 0
    assert cli.run(["ledger", path, "--format", "json"]) == 0
    assert json.loads(capfd.readouterr().out)["entries"] == []
    assert cli.run(["release", "quote", path, "nothing"]) == 2
