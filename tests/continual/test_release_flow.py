"""A release from start to end: charged once, rows counted where they arrive, published steps
recalled.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from small_release import Visit, after, opened, tables, values

import discreet
from discreet import cli
from discreet.audit.ledger import audit_ledger
from discreet.binding import take_snapshot
from discreet.continual import design
from discreet.curator import Curator
from discreet.errors import BudgetExceeded, PolicyError, Unproved, UsageError
from discreet.ledger import Ledger
from discreet.mechanisms.shapes import Movement
from discreet.policy.policy import Policy
from discreet.sql.plan import sensitivity

BUSY: list[Visit] = [
    (person, day, "Hill" if person % 2 else "Harbor", 10.0)
    for day in range(10)
    for person in (1, 2, 3)
]


def test_a_year_in_small(tmp_path: Path) -> None:
    """One charge at the start; then days are published as they end, and the budget stays where it
    is.
    """
    live = tables([])
    curator = opened(tmp_path, live, periods="6")
    release = curator.release("daily_visits")
    started = release.start()
    spent = curator._ledger.spent()
    assert (started.periods, started.table.num_rows) == (0, 0)
    assert spent.amount == started.cost.amount == 1000
    visits: list[Visit] = []
    for day in range(6):
        visits += [(100 * day + person, day, "Hill", 1.0) for person in range(day)]
        live.update(tables(visits))
        series = release.run(after(day + 1))
        assert series.periods == day + 1
    assert values(series, "daily", clinic="Hill") == list(range(6))
    assert values(series, "cumulative", clinic="Hill") == [0, 1, 3, 6, 10, 15]
    assert values(series, "3", clinic="Hill") == [3, 6, 9, 12]  # from the day that fills it
    assert set(values(series, "cumulative", clinic="Harbor")) == {0}
    assert curator._ledger.spent() == spent
    # the last day ends it, and erases its key
    assert [entry.state for entry in curator.ledger()] == ["posted"]
    curator._ledger.verify()
    assert release.run(after(99)).table.equals(series.table)


def test_a_person_counts_in_so_many_periods_and_by_one_row_in_each(tmp_path: Path) -> None:
    live = tables([*BUSY, *BUSY])
    series = opened(tmp_path, live).release("daily_visits")
    series.start()
    found = series.run(after(10))
    assert values(found, "daily", clinic="Hill") == [2, 2, 2, 2, 0, 0, 0, 0, 0, 0]
    assert values(found, "daily", clinic="Harbor") == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_one_period_in_any_three_by_two_rows(tmp_path: Path) -> None:
    release = opened(tmp_path, tables([*BUSY, *BUSY, *BUSY]), person="{every: 3, rows: 2}").release(
        "daily_visits"
    )
    release.start()
    assert values(release.run(after(10)), "daily", clinic="Harbor") == [
        2,
        0,
        0,
        2,
        0,
        0,
        2,
        0,
        0,
        2,
    ]


def test_the_rows_that_count_are_a_fair_sample_of_each_person(tmp_path: Path) -> None:
    """All have the same two visits and one of them counts: it was the same one for all. False alarm
    below 1e-9.
    """
    visits: list[Visit] = [
        (person, 0, clinic, 5.0) for person in range(2000) for clinic in ("Hill", "Harbor")
    ]
    release = opened(tmp_path, tables(visits)).release("daily_visits")
    release.start()
    found = release.run(after(1))
    (hill,), (harbor,) = (values(found, "daily", clinic=clinic) for clinic in ("Hill", "Harbor"))
    assert hill + harbor == 2000
    assert abs(hill - 1000) < (2000 * math.log(2e9) / 2) ** 0.5  # Hoeffding


def test_late_and_corrected_rows_count_when_they_arrive(tmp_path: Path) -> None:
    live = tables([(1, 0, "Hill", 5.0), (2, 0, "Hill", 5.0)])
    release = opened(tmp_path, live).release("daily_visits")
    release.start()
    assert values(release.run(after(1)), "daily", clinic="Hill") == [2]
    # A late row of day 0, one row corrected in its cost, one removed: known on day 1.
    live.update(tables([(1, 0, "Hill", 6.0), (3, 0, "Hill", 5.0), (4, 1, "Harbor", 5.0)]))
    series = release.run(after(2))
    assert values(series, "daily", clinic="Hill") == [2, 2]
    assert values(series, "daily", clinic="Harbor") == [0, 1]
    # The removed one comes back: it was counted, and is not counted again.
    live.update(
        tables(
            [(1, 0, "Hill", 6.0), (2, 0, "Hill", 5.0), (3, 0, "Hill", 5.0), (4, 1, "Harbor", 5.0)]
        )
    )
    assert values(release.run(after(3)), "daily", clinic="Hill") == [2, 2, 0]
    # Each correction uses up one of a person's four periods.
    for day in range(3, 8):
        live.update(tables([(1, 0, "Hill", 20.0 + day)]))
        series = release.run(after(day + 1))
    assert values(series, "daily", clinic="Hill") == [2, 2, 0, 1, 1, 0, 0, 0]


def test_missed_days_are_caught_up_with_their_own_rows(tmp_path: Path) -> None:
    release = opened(tmp_path, tables(BUSY), person="{periods: 9}").release("daily_visits")
    release.start()
    assert release.run(after(2)).periods == 2
    series = release.run(after(9))
    assert series.periods == 9
    assert values(series, "daily", clinic="Hill") == [2] * 9
    assert release.run(after(5)).periods == 9


def test_a_published_step_is_recalled_whatever_the_source_says_now(tmp_path: Path) -> None:
    live = tables(BUSY)
    curator = opened(tmp_path, live, epsilon="1", accountant="zcdp")
    release = curator.release("daily_visits")
    release.start()
    first = release.run(after(4))
    stored = curator._ledger.streams.published(release._require_start())
    live.update(tables([]))
    again = opened(tmp_path, live, epsilon="1", accountant="zcdp").release("daily_visits")
    assert again.run(after(4)).table.equals(first.table)
    later = again.run(after(6))
    assert later.table.slice(0, first.table.num_rows).equals(first.table)
    assert curator._ledger.streams.published(again._require_start())[:5] == stored


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_starting_twice_costs_once_and_over_budget_nothing(tmp_path: Path, accountant: str) -> None:
    curator = opened(tmp_path, tables(BUSY), accountant=accountant, budget="1.5", epsilon="1")
    curator.release("daily_visits").start()
    spent = curator._ledger.spent()
    curator.snapshot()  # a new snapshot does not lose a stream
    curator.release("daily_visits").start()
    assert curator._ledger.spent() == spent
    assert [entry.state for entry in curator.ledger()] == ["open"]
    dearer = opened(tmp_path, tables(BUSY), accountant=accountant, budget="1.5", epsilon="1.4")
    with pytest.raises(BudgetExceeded):
        dearer.release("daily_visits").start()
    with pytest.raises(UsageError, match="has not been started as the policy has it now"):
        dearer.release("daily_visits").run(after(3))
    assert dearer._ledger.spent() == spent


def test_a_new_horizon_is_a_new_charge(tmp_path: Path) -> None:
    first = opened(tmp_path, tables(BUSY), periods="5", publish="[daily, cumulative]")
    first.release("daily_visits").start()
    first.release("daily_visits").run(after(5))
    text = (tmp_path / "clinic.yaml").read_text()
    (tmp_path / "clinic.yaml").write_text(text.replace("from: 2024-01-01", "from: 2024-01-06"))
    second = discreet.open(tmp_path / "clinic.yaml", tables=tables(BUSY))
    with pytest.raises(UsageError, match="has not been started"):
        second.release("daily_visits").run(after(6))
    second.release("daily_visits").start()
    series = second.release("daily_visits").run(after(20))
    assert values(series, "daily", clinic="Hill") == [2, 2, 2, 2, 0]
    assert second._ledger.spent().amount == 2000


def test_sums_counts_and_several_at_once(tmp_path: Path) -> None:
    question = "SELECT COUNT(*) AS visits, SUM(cost) AS cost, SUM(balance) AS balance FROM visits WHERE clinic = 'Hill'"
    release = opened(tmp_path, tables(BUSY), question=question, epsilon="100000").release(
        "daily_visits"
    )
    release.start()
    series = release.run(after(3))
    assert values(series, "daily", "visits") == [2, 2, 2]
    assert values(series, "cumulative", "cost") == [20, 40, 60]
    assert values(series, "daily", "balance") == [-6, -6, -6]  # persons 1 and 3 have -4 and -2


def test_an_unknown_horizon(tmp_path: Path) -> None:
    visits: list[Visit] = [(1000 + day, day, "Hill", 1.0) for day in range(40)]
    for accountant in ("sum", "zcdp"):
        folder = tmp_path / accountant
        folder.mkdir()
        settings = {
            "periods": "unknown",
            "accountant": accountant,
            "epsilon": "100000",
            "publish": "[cumulative, 30]",
        }
        release = opened(folder, tables(visits), **settings).release("daily_visits")
        assert release.start().design.strategy.name.startswith(
            {"sum": "15-ary tree", "zcdp": "column"}[accountant]
        )
        release.run(after(30))
        series = release.run(after(40))  # beyond the first epoch of 32
        assert values(series, "cumulative", clinic="Hill") == list(range(1, 41))
        assert values(series, "30", clinic="Hill") == [30] * 11


def test_a_source_that_cannot_be_read_publishes_nothing(tmp_path: Path) -> None:
    live = tables(BUSY)
    release = opened(tmp_path, live).release("daily_visits")
    release.start()
    release.run(after(2))
    del live["visits"]
    with pytest.raises(PolicyError, match="no table visits"):
        release.run(after(4))
    assert release.show().periods == 2
    assert not list((tmp_path / "clinic.store").glob(".live*"))
    live.update(tables(BUSY))
    assert values(release.run(after(4)), "daily", clinic="Hill") == [2, 2, 2, 2]


def test_a_long_stream_is_buffered(tmp_path: Path) -> None:
    """Five thousand hours: no matrix is stored, and hours without rows are published too."""
    settings = {
        "accountant": "zcdp",
        "periods": "5000",
        "publish": "[cumulative]",
        "person": "{periods: 1}",
    }
    curator = opened(tmp_path, tables(BUSY), **settings)
    path = tmp_path / "clinic.yaml"
    path.write_text(path.read_text().replace("period: day", "period: hour"))
    release = discreet.open(path, tables=tables(BUSY)).release("daily_visits")
    assert release.start().design.strategy.name == "buffered square root"
    assert len(curator._ledger.streams.published(release._require_start())[0]) < 2000
    series = release.run(after(1))
    assert series.periods == 24
    assert values(series, "cumulative", clinic="Hill") == [2] * 24
    assert str(series.table.column("period")[0].as_py()) == "2024-01-01 00:00:00"


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (
            "SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.person_id = p.person_id",
            "one private table, once",
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT cost FROM visits UNION ALL SELECT cost FROM visits) AS t",
            "one private table",
        ),
        ("SELECT AVG(cost) AS mean FROM visits", "mean is neither a count nor a sum"),
        ("SELECT MAX(cost) AS m FROM visits", "public keys, and counts or sums"),
        ("SELECT COUNT(*) + 1 AS n FROM visits", "computes nothing"),
        (
            "SELECT clinic, COUNT(*) AS n FROM visits GROUP BY clinic HAVING COUNT(*) > 3",
            "computes nothing",
        ),
        (
            "SELECT COUNT(*) AS value FROM visits",
            "none of them margin, period, publish, statistic, value",
        ),
        ("SELECT COUNT(*) AS n FROM states", "one private table"),
        ("SELECT person_id FROM visits", "rows never leave"),
    ],
)
def test_questions_that_no_stream_answers(tmp_path: Path, question: str, why: str) -> None:
    curator = opened(tmp_path, tables(BUSY), question=question)
    with pytest.raises(PolicyError, match=why) as caught:
        curator.release("daily_visits")
    assert "clinic.yaml:21:5: releases.daily_visits.question" in str(caught.value)


def test_columns_that_do_not_date_and_horizons_outside(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="time must be a date or timestamp of visits, not cost"):
        _changed(tmp_path, "time: day", "time: cost").release("daily_visits")
    with pytest.raises(PolicyError, match="declared from 2024-01-01 to 2024-12-31"):
        _changed(tmp_path, "periods: 10\n", "periods: 400\n").release("daily_visits")
    with pytest.raises(UsageError, match="no release weekly"):
        _changed(tmp_path, "unit", "unit").release("weekly")


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
def test_a_release_started_with_less_noise_than_it_needs_publishes_nothing(
    accountant: str, neighbors: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an older version with a smaller bound would have started it: what was stored is held
    against the plan.
    """
    curator = opened(
        tmp_path, tables(BUSY), accountant=accountant, neighbors=neighbors, epsilon="1"
    )
    release, real = curator.release("daily_visits"), design._move

    def less(*arguments: Any, **named: Any) -> Movement:
        found = real(*arguments, **named)
        l1, l2_squared = (
            None if norm is None else norm * Fraction(99, 100)
            for norm in (found.l1, found.l2_squared)
        )
        return Movement(l1=l1, l2_squared=l2_squared)

    monkeypatch.setattr(design, "_move", less)
    release.start()
    monkeypatch.undo()
    with pytest.raises(Unproved, match="claims less"):
        release.run(after(3))
    assert release.show().periods == 0


@pytest.mark.parametrize("norm", ["l1", "l2_squared", "linf"])
def test_a_release_is_proved_before_it_costs(
    norm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S24: what a plan claims of one period is derived again, as for every question."""
    curator = opened(tmp_path, tables(BUSY), person="{periods: 4, rows: 2}")
    real = sensitivity.of_parts

    def less(**given: Any) -> Any:
        found = real(**given)
        return replace(found, **{norm: getattr(found, norm) - 1})

    monkeypatch.setattr(sensitivity, "of_parts", less)
    with pytest.raises(Unproved, match="a statistic claims"):
        curator.release("daily_visits").start()
    assert curator.spending()[None].spent.epsilon == 0


def test_cells_and_signs_of_a_release_are_those_of_what_runs(tmp_path: Path) -> None:
    question = "SELECT clinic, SUM(-cost) AS owed, SUM(balance) AS b FROM visits GROUP BY clinic"
    curator = opened(tmp_path, tables(BUSY), question=question, person="{periods: 4, rows: 2}")
    asked = curator.release("daily_visits").asked
    assert asked.signed == (True, True)
    assert [each.l0 for each in asked.own] == [2, 2]


@pytest.mark.parametrize("more", ["", ", COUNT(*) AS n"])
def test_revised_sums_may_be_below_zero(more: str, tmp_path: Path) -> None:
    question = f"SELECT SUM(-cost) AS owed{more} FROM visits"
    release = opened(tmp_path, tables(BUSY), question=question).release("daily_visits")
    release.start()
    revised = release.run(after(10)).consistent().table.to_pylist()
    assert revised[0]["value"] == pytest.approx(-30, abs=2)


def _changed(folder: Path, old: str, new: str) -> Curator:
    curator = opened(folder, tables(BUSY))
    path = folder / "clinic.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    curator._ledger.close()
    return discreet.open(path, tables=tables(BUSY))


def test_margins_and_consistency(tmp_path: Path) -> None:
    """Revised values agree and are never below zero; margins are those of the noise."""
    for accountant in ("sum", "zcdp"):
        folder = tmp_path / accountant
        folder.mkdir()
        release = opened(folder, tables(BUSY), epsilon="1", accountant=accountant).release(
            "daily_visits"
        )
        release.start()
        series = release.run(after(10))
        revised = series.consistent()
        assert revised.table.column("margin").equals(series.table.column("margin"))
        for clinic in ("Hill", "Harbor"):
            kinds = {
                publish: [
                    row["value"]
                    for row in revised.table.to_pylist()
                    if row["publish"] == publish and row["clinic"] == clinic
                ]
                for publish in ("daily", "cumulative", "3")
            }
            assert min(kinds["daily"]) >= -1e-9
            assert kinds["cumulative"] == pytest.approx(
                [sum(kinds["daily"][: day + 1]) for day in range(10)]
            )
            assert kinds["3"] == pytest.approx(
                [sum(kinds["daily"][day - 2 : day + 1]) for day in range(2, 10)]
            )


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_an_auditor_recomputes_it_and_a_new_key_goes_on_with_it(
    tmp_path: Path, accountant: str
) -> None:
    curator = opened(tmp_path, tables(BUSY), accountant=accountant, epsilon="1")
    curator.release("daily_visits").start()
    first = curator.release("daily_visits").run(after(3))
    found = audit_ledger(curator.policy)
    assert found.sound
    assert [each.due for each in found.charges] == [first.cost]
    curator._ledger.close()
    Ledger.rotate_key(tmp_path / "clinic.ledger")
    later = (
        opened(tmp_path, tables(BUSY), accountant=accountant, epsilon="1")
        .release("daily_visits")
        .run(after(5))
    )
    assert later.table.slice(0, first.table.num_rows).equals(first.table)
    assert later.periods == 5


def test_files_to_hand_on(tmp_path: Path) -> None:
    release = opened(tmp_path, tables(BUSY), epsilon="1").release("daily_visits")
    release.start()
    series = release.run(after(4))
    for ending in ("json", "csv", "parquet", "html"):
        series.save(tmp_path / f"out.{ending}")
    with pytest.raises(UsageError, match="should end in"):
        series.save(tmp_path / "out.xlsx")
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["columns"] == ["period", "clinic", "publish", "statistic", "value", "margin"]
    assert len(told["rows"]) == series.table.num_rows == 4 * 4 + 2 * 2
    assert (tmp_path / "out.csv").read_text().count("\n") == series.table.num_rows + 1
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").equals(series.table)
    page = (tmp_path / "out.html").read_text()
    assert page.count("<figure>") == 2 * 3 + 1
    assert "http:" not in page
    assert "https:" not in page
    assert "<script" not in page


def test_what_was_published_is_a_public_table(tmp_path: Path) -> None:
    """The export, declared public, is asked by SQL free of charge."""
    live: dict[str, Any] = tables(BUSY)
    release = opened(tmp_path, live).release("daily_visits")
    release.start()
    series = release.run(after(10))
    path = tmp_path / "clinic.yaml"
    path.write_text(
        path.read_text().replace(
            "  states: {public: true}", "  states: {public: true}\n  released: {public: true}"
        )
    )
    data = tmp_path / "data"
    data.mkdir()
    for name, table in {**live, "released": series.table}.items():
        pa.parquet.write_table(table, data / f"{name}.parquet")
    path.write_text(f"source: data\n{path.read_text()}")
    take_snapshot(Policy.read(path))
    answer = discreet.open(path).ask(
        "SELECT clinic, SUM(value) AS visits FROM released WHERE publish = 'daily' GROUP BY clinic ORDER BY clinic",
        analyst="alice",
        epsilon="0.1",
    )
    assert answer.cost.epsilon == 0
    assert [round(value) for value in answer.table.column("visits").to_pylist()] == [4, 8]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    curator = opened(tmp_path, tables(BUSY), epsilon="1")
    curator._ledger.close()
    data = tmp_path / "data"
    data.mkdir()
    for name, table in tables(BUSY).items():
        pa.parquet.write_table(table, data / f"{name}.parquet")
    path = tmp_path / "clinic.yaml"
    path.write_text(f"source: data\n{path.read_text()}")
    policy = str(path)
    assert cli.run(["release", "run", policy, "daily_visits"]) == 2
    assert "discreet release start" in capsys.readouterr().err
    assert cli.run(["release", "start", policy, "daily_visits"]) == 0
    assert "ε = 1 for the whole horizon" in capsys.readouterr().out
    assert cli.run(["release", "run", policy, "daily_visits", "--as-of", "2024-01-06"]) == 0
    assert "Published 5 periods of daily_visits; 5 so far." in capsys.readouterr().out
    assert (
        cli.run(
            ["release", "run", policy, "daily_visits", "--as-of", "2024-01-07", "--format", "json"]
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["published"] == 6
    page = str(tmp_path / "page.html")
    assert cli.run(["release", "show", policy, "daily_visits", "--out", page, "--consistent"]) == 0
    shown = capsys.readouterr().out
    assert "visits by day" in shown
    assert "charged once at the start" in shown
    assert cli.run(["release", "show", policy, "weekly", "--format", "json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "usage"
