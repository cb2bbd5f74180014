"""What was measured is recalled statistic by statistic: free, and the same numbers, whatever is
shown of them (S10).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.budget import Charge
from discreet.curator import Curator
from discreet.engines.duckdb.engine import DuckDB
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger
from discreet.policy.policy import Policy
from discreet.vault.answer import Answer
from discreet.vault.released import Released, from_bytes, to_bytes
from small_town import POLICY, town

POOR = POLICY.replace("  alice: {epsilon: 1000}", "  alice: {epsilon: 1000}\n  bob: {epsilon: 1}")
KEYS = "SELECT zip, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY zip"


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., Curator]:
    def open_town(accountant: str = "sum", text: str = POOR) -> Curator:
        path = tmp_path / "policy.yaml"
        path.write_text(
            text.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", accountant),
            encoding="utf-8",
        )
        policy = Policy.read(path)
        if not Path(str(policy.ledger)).exists():
            create_ledger(policy)
        return discreet.open(path, tables=town(victim=True))

    return open_town


@pytest.fixture
def curator(opened: Callable[..., Curator]) -> Curator:
    return opened()


def spent(curator: Curator) -> Fraction:
    return curator._ledger.spent().amount


def rows(answer: Answer) -> list[dict[str, Any]]:
    return answer.table.to_pylist()


# --- other words for the same numbers -------------------------------------------------------------

FIRST = "SELECT sex, SUM(age) AS a, SUM(income) AS i, MEDIAN(age) AS m FROM people GROUP BY sex"
Seen = Callable[[list[dict[str, Any]]], object]
OTHERS: tuple[tuple[str, Seen, Seen], ...] = (
    (
        "SELECT sex AS who, SUM(age) AS total FROM people GROUP BY sex",
        lambda first: {row["sex"]: row["a"] for row in first},
        lambda other: {row["who"]: row["total"] for row in other},
    ),
    (
        "SELECT MEDIAN(age) AS m, SUM(income) AS i, SUM(age) AS a, sex FROM people GROUP BY sex",
        lambda first: first,
        lambda other: [{name: row[name] for name in ("sex", "a", "i", "m")} for row in other],
    ),
    (
        "SELECT sex, SUM(income) AS i FROM people GROUP BY sex ORDER BY i DESC LIMIT 1",
        lambda first: max(row["i"] for row in first),
        lambda other: other[0]["i"],
    ),
    (
        "SELECT sex, SUM(age) AS a FROM people GROUP BY sex HAVING SUM(age) > -1000000",
        lambda first: [row["a"] for row in first],
        lambda other: [row["a"] for row in other],
    ),
    (
        "SELECT SUM(a) + 7 AS x FROM (SELECT sex, SUM(age) AS a FROM people GROUP BY sex) AS t",
        lambda first: sum(row["a"] for row in first) + 7,
        lambda other: other[0]["x"],
    ),
    (
        "SELECT p.sex, SUM(p.age) * 2 - SUM(p.income) AS x FROM people AS p GROUP BY 1",
        lambda first: [row["a"] * 2 - row["i"] for row in first],
        lambda other: [row["x"] for row in other],
    ),
    (
        "SELECT sex, SUM(age * 3) AS x FROM people GROUP BY sex",
        lambda first: [row["a"] * 3 for row in first],
        lambda other: [row["x"] for row in other],
    ),
    (
        "SELECT sex, QUANTILE_CONT(age, [0.5]) AS x FROM people GROUP BY sex",
        lambda first: [[row["m"]] for row in first],
        lambda other: [row["x"] for row in other],
    ),
)


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_whatever_is_shown_of_the_same_numbers_is_free(
    opened: Callable[..., Curator], accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = opened(accountant)
    first = rows(curator.ask(FIRST, analyst="alice", epsilon=3))
    before = spent(curator)
    monkeypatch.setattr(
        DuckDB, "fetch", lambda *_: pytest.fail("what was measured before is read again")
    )
    monkeypatch.setattr(
        Ledger, "reserve", lambda *_, **__: pytest.fail("what was measured before is charged again")
    )
    for sql, wanted, found in OTHERS:
        quote = curator.quote(sql, analyst="bob", epsilon="0.1")
        assert quote.cost.epsilon == 0
        assert all("charge" in each for each in quote.statistics)
        assert "free: measured before" in str(quote)
        assert "Free: measured before" in curator.explain(sql, analyst="bob", epsilon="0.1")
        answer = curator.ask(sql, analyst="bob", epsilon="0.1")
        assert found(rows(answer)) == wanted(first), sql
        assert answer.cost.epsilon == 0
    assert spent(curator) == before


def test_groups_that_were_left_out_are_there_later(curator: Curator) -> None:
    """They were measured and paid for as all others; what LIMIT and HAVING leave out is decided
    after noise.
    """
    one = curator.ask(
        "SELECT sex, SUM(age) AS a FROM people GROUP BY sex ORDER BY a LIMIT 1",
        analyst="alice",
        epsilon=1,
    )
    both = curator.ask(
        "SELECT sex, SUM(age) AS a FROM people GROUP BY sex", analyst="alice", epsilon=1
    )
    assert (one.table.num_rows, both.table.num_rows, both.cost.epsilon) == (1, 2, 0)
    assert rows(one)[0] == min(rows(both), key=lambda row: row["a"])
    assert (one.selected, both.selected) == ((True,), (False, False))


def test_margins_and_certificates_are_of_the_noise_that_is_there(curator: Curator) -> None:
    """Asked at a small epsilon, what was measured at a large one has the margin of the large one,
    and says so.
    """
    sql = "SELECT SUM(age) AS a FROM people"
    first = curator.ask(sql, analyst="alice", epsilon=10)
    other = curator.ask("SELECT SUM(age) AS b FROM people", analyst="alice", epsilon="0.01")
    assert first.margins.column(0) == other.margins.column(0)
    assert (
        curator.quote(sql, analyst="alice", epsilon="0.01").margins["a"]
        == first.margins.column(0)[0].as_py()
    )
    again = curator.ask(sql, analyst="alice", epsilon=10)
    assert again.certificate == first.certificate
    assert {name: first.certificate[name] for name in ("mechanisms", "statistics", "cost")} == {
        name: other.certificate[name] for name in ("mechanisms", "statistics", "cost")
    }
    assert (
        {str(each["charge"]) for each in first.certificate["statistics"]}
        == {first.id}
        == {other.id}
    )


def test_what_a_caller_does_with_an_answer_is_not_seen_by_the_next(curator: Curator) -> None:
    """Answers that were asked for again are kept for a while."""
    sql = "SELECT sex, SUM(age) AS a FROM people GROUP BY sex"
    first = curator.ask(sql, analyst="alice", epsilon=1)
    for _ in range(3):
        again = curator.ask(sql, analyst="bob", epsilon=1)
        assert (rows(again), again.certificate) == (rows(first), first.certificate)
        again.certificate["statistics"][0].clear()
        again.certificate.clear()
    better = curator.ask(sql, analyst="alice", epsilon=5)
    assert (better.cost.epsilon, rows(curator.ask(sql, analyst="bob", epsilon=5))) == (
        5,
        rows(better),
    )
    assert rows(curator.ask(sql, analyst="bob", epsilon=1)) == rows(first)


# --- a part of it before, the rest now ------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
def test_the_rest_alone_is_paid_for_to_the_last_digit(
    opened: Callable[..., Curator], accountant: str
) -> None:
    curator = opened(accountant)
    known = curator.ask("SELECT SUM(age) AS a FROM people", analyst="alice", epsilon=5)
    sql = "SELECT SUM(income) AS i, SUM(age) AS a, MEDIAN(age) AS m FROM people"
    whole = curator._view.offer(sql, epsilon=3, margin=None, assuming=None)
    prices = whole.prices
    names = {each.id: each.name for each in whole.plan.blocks[0].every}
    rest = [part for part in whole.parts if names[part.id] != "SUM(age)"]
    due = curator._accountant.price(each.loss() for part in rest for each in whole.of(part))
    assert len(prices) == 3
    quote, before = curator.quote(sql, analyst="alice", epsilon=3), spent(curator)
    answer = curator.ask(sql, analyst="alice", epsilon=3)
    assert quote.cost == answer.cost == curator._accountant.budget(due)
    assert spent(curator) - before == due.amount
    if accountant == "sum":
        assert due.amount == 2
    assert rows(answer)[0]["a"] == rows(known)[0]["a"]
    charges = {each["name"]: str(each["charge"]) for each in answer.certificate["statistics"]}
    assert charges == {"SUM(income)": answer.id, "SUM(age)": known.id, "MEDIAN(age)": answer.id}
    again = curator.ask(sql, analyst="alice", epsilon=3)
    assert (rows(again), again.certificate, again.cost.epsilon) == (
        rows(answer),
        answer.certificate,
        0,
    )


def test_the_rest_is_measured_as_if_all_were(curator: Curator) -> None:
    """The amount is split as if nothing were stored: what is recalled makes nothing else finer, and
    nothing dearer.
    """
    sql = "SELECT SUM(income) AS i, SUM(age) AS a FROM people"
    fresh = curator.quote(sql, analyst="alice", epsilon=2)
    curator.ask("SELECT SUM(age) AS a FROM people", analyst="alice", epsilon=1)
    partly = curator.quote(sql, analyst="alice", epsilon=2)
    assert (fresh.cost.epsilon, partly.cost.epsilon) == (2, 1)
    assert [{k: v for k, v in each.items() if k != "charge"} for each in partly.statistics] == list(
        fresh.statistics
    )
    assert curator.ask(sql, analyst="bob", epsilon=2).cost.epsilon == 1  # all that bob has


def test_what_the_rest_costs_must_fit(curator: Curator) -> None:
    curator.ask("SELECT SUM(age) AS a FROM people", analyst="alice", epsilon=10)
    sql = "SELECT SUM(income) AS i, SUM(age) AS a FROM people"
    with pytest.raises(BudgetExceeded):
        curator.ask(sql, analyst="bob", epsilon=3)
    assert curator.ask(sql, analyst="bob", epsilon=2).cost.epsilon == 1


def test_a_larger_epsilon_is_measured_anew_and_kept(curator: Curator) -> None:
    """By another mechanism it is another measurement: what was measured with less does not do."""
    sql = "SELECT SUM(age) AS a FROM people"
    small, large = (curator.ask(sql, analyst="alice", epsilon=epsilon) for epsilon in (1, 4))
    assert large.cost.epsilon == 4
    assert small.margins != large.margins
    # asked again: the same numbers
    assert rows(curator.ask(sql, analyst="alice", epsilon=1)) == rows(small)
    for epsilon in (2, 4):
        assert rows(curator.ask(sql, analyst="alice", epsilon=epsilon)) == rows(large)
    assert spent(curator) == 5


def test_a_statistic_of_two_blocks_is_measured_once(curator: Curator) -> None:
    """And whoever adds it to itself has twice its noise, not √2 times."""
    one = "(SELECT SUM(age) AS x, SUM(income) AS y FROM people) AS one"
    sql = f"SELECT one.x + two.x AS twice, one.x AS x FROM {one}, (SELECT SUM(age) AS x FROM people) AS two"
    assert len(curator.quote(sql, analyst="alice", epsilon=2).statistics) == 2
    answer = curator.ask(sql, analyst="alice", epsilon=2)
    [row] = rows(answer)
    assert row["twice"] == 2 * row["x"]
    twice, once = (answer.margins.column(name)[0].as_py() for name in ("twice", "x"))
    assert twice >= 2 * once


# --- thresholds, roll-ups, quantiles --------------------------------------------------------------


def test_of_unknown_keys_all_or_nothing_is_recalled(curator: Curator) -> None:
    first = curator.ask(KEYS, analyst="alice", epsilon=20)
    assert first.table.num_rows == 1  # the key of one person alone does not leave
    free = "SELECT SUM(age) / 2 AS half, COUNT(*) AS people, zip AS z FROM people GROUP BY zip HAVING COUNT(*) > 5"
    other = curator.ask(free, analyst="alice", epsilon=20)
    assert other.cost == curator._accountant.budget(Charge(amount=Fraction(0)))
    [one], [two] = rows(first), rows(other)
    assert (one["zip"], one["n"], one["s"]) == (two["z"], two["people"], two["half"] * 2)
    more = "SELECT zip, COUNT(*) AS n, SUM(age) AS s, SUM(income) AS i FROM people GROUP BY zip"
    whole = curator._view.offer(more, epsilon=30, margin=None, assuming=None).cost
    assert curator.ask(more, analyst="alice", epsilon=30).cost == curator._accountant.budget(whole)


def test_when_nothing_survives_that_is_recalled_too(curator: Curator) -> None:
    sql = "SELECT zip, COUNT(*) AS n FROM people WHERE age > 119 GROUP BY zip"
    first = curator.ask(sql, analyst="alice", epsilon=1)
    again = curator.ask(sql.replace("n FROM", "m FROM"), analyst="alice", epsilon=1)
    assert (first.table.num_rows, again.table.num_rows, again.cost.epsilon) == (0, 0, 0)
    assert again.table.schema.field("zip") == first.table.schema.field("zip")


@pytest.mark.parametrize("sets", ["ROLLUP (sex)", "GROUPING SETS ((sex), ())"])
def test_groupings_that_are_added_up(curator: Curator, sets: str) -> None:
    first = curator.ask(
        f"SELECT sex, SUM(age) AS a FROM people GROUP BY {sets}", analyst="alice", epsilon=1
    )
    sql = "SELECT SUM(age) + 1 AS a, sex FROM people GROUP BY CUBE (sex) ORDER BY sex NULLS LAST"
    other = curator.ask(sql, analyst="alice", epsilon=1)
    assert other.cost.epsilon == 0
    assert {row["sex"]: row["a"] + 1 for row in rows(first)} == {
        row["sex"]: row["a"] for row in rows(other)
    }


def test_quantiles_on_coarse_and_fine_grids(curator: Curator) -> None:
    sql = "SELECT MEDIAN(age) AS a, MEDIAN(income) AS i, QUANTILE_CONT(age, [0.1, 0.5, 0.9]) AS q FROM people"
    first = rows(curator.ask(sql, analyst="alice", epsilon=3))[0]
    other = curator.ask(
        "SELECT QUANTILE_CONT(age, [0.1, 0.5, 0.9])[2] AS q, MEDIAN(income) + 1 AS i FROM people",
        analyst="alice",
        epsilon=2,
    )
    assert other.cost.epsilon == 0
    assert rows(other) == [{"q": first["q"][1], "i": first["i"] + 1}]
    assert (
        curator.ask("SELECT MAX(age) AS a FROM people", analyst="alice", epsilon=1).cost.epsilon
        == 1
    )


# --- restarts, processes, snapshots, policies -----------------------------------------------------

ASK = """
import discreet, sys
answer = discreet.open(sys.argv[1]).ask(sys.argv[2], analyst="bob", epsilon=1)
print(answer.table.to_pylist(), answer.cost.epsilon)
"""


def test_after_a_restart_and_in_another_process(
    opened: Callable[..., Curator], tmp_path: Path
) -> None:
    first = rows(
        opened().ask(
            "SELECT SUM(age) AS a, SUM(income) AS i FROM people", analyst="alice", epsilon=2
        )
    )[0]
    again = opened().ask("SELECT SUM(income) AS x FROM people", analyst="alice", epsilon=1)
    assert (rows(again), again.cost.epsilon) == ([{"x": first["i"]}], 0)
    command = [
        sys.executable,
        "-c",
        ASK,
        str(tmp_path / "policy.yaml"),
        "SELECT SUM(age) + 1 AS y FROM people",
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert told.stdout.strip() == f"{[{'y': first['a'] + 1}]} 0"
    with Ledger.open(tmp_path / "policy.ledger") as ledger:
        ledger.verify()


def test_another_snapshot_is_measured_anew(
    curator: Curator, opened: Callable[..., Curator]
) -> None:
    sql = "SELECT SUM(age) AS a FROM people"
    curator.ask(sql, analyst="alice", epsilon=1)
    curator.snapshot()
    for again in (curator, opened()):
        assert again.quote(sql, analyst="alice", epsilon=1).cost.epsilon == 1
    assert curator.ask(sql, analyst="alice", epsilon=1).cost.epsilon == 1
    assert curator.ask(sql, analyst="alice", epsilon=1).cost.epsilon == 0


def test_another_policy_is_measured_anew(opened: Callable[..., Curator]) -> None:
    sql = "SELECT SUM(age) AS a FROM people"
    curator = opened()
    parts = curator._view.offer(sql, epsilon=1, margin=None, assuming=None).least_costs
    curator.ask(sql, analyst="alice", epsilon=1)
    stands = {"snapshot": 1, "parts": parts}
    assert set(
        curator._ledger.standing("alice", policy=curator.policy.digest, **stands).parts
    ) == set(parts)
    assert not curator._ledger.standing("alice", policy="0" * 64, **stands).parts


# --- crashes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "again",
    [
        "SELECT SUM(income) AS i, SUM(age) AS a FROM people",
        "SELECT SUM(age) + 1 AS b, SUM(income) FROM people",
    ],
)
def test_a_crash_is_continued_by_whatever_needs_the_same(
    opened: Callable[..., Curator], monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """The rest of a question whose first part is stored: one charge, one key, the same bytes, also
    in other words.
    """
    curator, lost, post = opened(), list[bytes](), Ledger.post
    curator.ask("SELECT MEDIAN(age) FROM people", analyst="alice", epsilon=10)

    def crash(ledger: Ledger, reservation: Any, answer: bytes, **_: Any) -> None:
        lost.append(answer)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "post", crash)
        sql = "SELECT SUM(age) AS a, MEDIAN(age), SUM(income) AS i FROM people"
        with pytest.raises(SystemExit):
            curator.ask(sql, analyst="alice", epsilon=3)
    paid = spent(curator)
    assert paid == 12
    monkeypatch.setattr(
        Ledger, "post", lambda *given, **more: lost.append(given[2]) or post(*given, **more)
    )
    opened().ask(again, analyst="alice", epsilon=2)
    assert lost == [lost[0]] * 2
    assert spent(curator) == paid
    assert [entry.state for entry in curator.ledger()] == ["posted", "posted"]


# --- as bytes -------------------------------------------------------------------------------------


def test_numbers_of_every_size_come_back(tmp_path: Path) -> None:
    kinds = [
        np.array([], dtype=np.int64),
        np.array([-(2**15), 2**15 - 1]),
        np.array([2**15, -3]),
        np.array([-(2**31) - 1, 5]),
        np.array([2**63 - 1, -(2**63)]),
        np.array([2**63, -(10**37)], dtype=object),
        np.array([], dtype=object),
    ]
    keys = pa.table(
        {"k0": pa.array(["a", None, "ä"], pa.large_string()), "k1": pa.array([1, 2, None])}
    )
    given = {
        "a" * 64: Released(numbers=(tuple(kinds),)),
        "b" * 64: Released(numbers=((kinds[1],), (kinds[5], kinds[5])), survivors=keys),
        "c" * 64: Released(numbers=((kinds[0],),), survivors=keys.slice(0, 0)),
    }
    content = to_bytes(given)
    found = from_bytes(content)
    assert to_bytes(found) == content
    assert list(found) == list(given)
    for name, each in given.items():
        for one, other in zip(each.numbers, found[name].numbers, strict=True):
            assert [array.dtype for array in one] == [array.dtype for array in other]
            assert [array.tolist() for array in one] == [array.tolist() for array in other]
        survivors = found[name].survivors
        assert (each.survivors is None) == (survivors is None)
        assert survivors is None or survivors.equals(each.survivors)
