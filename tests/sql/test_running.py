"""Running totals: which way they are measured, that nobody moves them further than is claimed, and
that margins hold.

False alarms: 1e-9 in all, over fewer than 2,000 numbers that are tested; no seeds.
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import test_every_aggregate as aggregates
from coverage_kinds import curator
from discreet.algebra import key_column, number_column
from discreet.asking.explain import explanation
from discreet.asking.offer import Offer, offer
from discreet.asking.quotes import quote_of
from discreet.binding import accountant_of, terms_of
from discreet.errors import Unproved
from discreet.mechanisms import DiscreteGaussian
from discreet.mechanisms.running import Grid, Running, factor, lengths, longest, weights
from discreet.mechanisms.shapes import Movement
from discreet.sql.plan.block import Statistic
from discreet.sql.plan.plan import Plan
from discreet.sql.plan.prove import prove
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact
from discreet.vault.running import back, multiply_by_factor
from sql import harness, policies

ALARM = 1e-9 / 2_000
MONTH = "DATE_TRUNC('month', day)"
BY_MONTH = f"SELECT {MONTH} AS m, {{}} AS n FROM visits GROUP BY m"
RUNNING = {
    "rows": BY_MONTH.format(f"SUM(COUNT(*)) OVER (ORDER BY {MONTH})"),
    "people": BY_MONTH.format(f"SUM(COUNT(DISTINCT person_id)) OVER (ORDER BY {MONTH})"),
    "a sum": BY_MONTH.format(f"SUM(SUM(cost)) OVER (ORDER BY {MONTH})"),
    "a sum of both signs": BY_MONTH.format(f"SUM(SUM(pain)) OVER (ORDER BY {MONTH})"),
    "a negative sum": BY_MONTH.format(f"SUM(SUM(-cost)) OVER (ORDER BY {MONTH})"),
    "two conditions": BY_MONTH.format(
        f"SUM(COUNT(*) FILTER (WHERE pain > 0)) OVER (ORDER BY {MONTH}), COUNT(*) FILTER (WHERE pain < 0)"
    ),
    "by another key": (
        f"SELECT clinic, {MONTH} AS m, SUM(COUNT(*)) OVER (PARTITION BY clinic ORDER BY {MONTH}) "
        "FROM visits GROUP BY clinic, m"
    ),
    "behind another key": (
        "WITH t AS (SELECT day, clinic, COUNT(*) AS n FROM visits WHERE day < '2024-01-20' "
        "GROUP BY day, clinic) SELECT day, clinic, n, SUM(n) OVER (PARTITION BY clinic ORDER BY day "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS total FROM t ORDER BY 1, 2"
    ),
}
_T = "WITH t AS (SELECT day, clinic, COUNT(*) AS n FROM visits GROUP BY day, clinic)"
APART = {
    "no running total": "SELECT day, COUNT(*) FROM visits GROUP BY day",
    "from the last": "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day DESC) FROM visits GROUP BY day",
    "a window of a week": (
        "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day ROWS 6 PRECEDING) FROM visits GROUP BY day"
    ),
    "a mean": "SELECT day, AVG(COUNT(*)) OVER (ORDER BY day) FROM visits GROUP BY day",
    "means in it": "SELECT day, AVG(cost), SUM(SUM(cost)) OVER (ORDER BY day) FROM visits GROUP BY day",
    "by words": "SELECT clinic, SUM(COUNT(*)) OVER (ORDER BY clinic) FROM visits GROUP BY clinic",
    "over all clinics": f"{_T} SELECT day, SUM(n) OVER (ORDER BY day) FROM t",
    "along two keys": (
        "WITH t AS (SELECT age, DATE_TRUNC('month', born) AS b, COUNT(*) AS n FROM people GROUP BY 1, 2) "
        "SELECT SUM(n) OVER (PARTITION BY b ORDER BY age) AS x, SUM(n) OVER (PARTITION BY age ORDER BY b) AS y FROM t"
    ),
    "some of the rows": (
        f"{_T} SELECT day, SUM(n) OVER (PARTITION BY clinic ORDER BY day) FROM t WHERE n > 5"
    ),
    "by noise": f"{_T} SELECT day, SUM(n) OVER (PARTITION BY clinic ORDER BY n) FROM t",
    "unknown keys": (
        "SELECT day, note, SUM(COUNT(*)) OVER (PARTITION BY note ORDER BY day) FROM visits GROUP BY day, note"
    ),
    "of two tables": (
        "SELECT a.day, SUM(a.n) OVER (ORDER BY a.day) FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) a "
        "JOIN (SELECT day, SUM(cost) AS n FROM visits GROUP BY day) b ON a.day = b.day"
    ),
}


def planned(sql: str, neighbors: str = "add_remove", accountant: str = "zcdp") -> Plan:
    return harness.planned(sql, policies.policy("hospital", neighbors, accountant), name="hospital")


def offered(sql: str, neighbors: str = "add_remove", epsilon: Any = 1) -> Offer:
    policy = policies.policy("hospital", neighbors, "zcdp")
    purse = accountant_of(policy)
    amount = purse.allot(epsilon=Fraction(epsilon))
    return offer(planned(sql, neighbors), purse, amount=amount, limit=terms_of(policy).limit)


def totals(found: Plan) -> list[Statistic]:
    return [each for block in found.blocks for each in block.statistics if each.totals is not None]


# --- which way ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
def test_running_totals_are_measured(name: str, neighbors: str) -> None:
    found = planned(RUNNING[name], neighbors)
    prove(found, policies.policy("hospital", neighbors, "zcdp"))
    assert totals(found)
    assert not totals(planned(RUNNING[name], neighbors, "sum"))


@pytest.mark.parametrize("name", APART)
def test_numbers_are_measured(name: str) -> None:
    assert not totals(planned(APART[name]))


def test_the_smaller_of_the_widest_margins_is_chosen() -> None:
    """A person in three months has one of three in l2 only where numbers have their own noise."""
    for count in range(2, 13):
        sql = BY_MONTH.format(f"SUM(COUNT(DISTINCT person_id)) OVER (ORDER BY {MONTH})").replace(
            "FROM visits", f"FROM visits WHERE day < DATE '2024-01-01' + INTERVAL {count} MONTH"
        )
        found = planned(sql)
        people, [statistic] = min(3, count), found.blocks[0].statistics
        assert found.blocks[0].cells == count
        together = lengths(count)[0].max() ** 2 * longest(count) * people**2
        assert (statistic.totals is not None) == (together < count * people)


# --- how far one person moves them ----------------------------------------------------------------


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
def test_no_neighbor_moves_the_sums_more_than_claimed(name: str, neighbors: str) -> None:
    """By the SQL that runs, and by the sums that get noise."""
    found, block = aggregates.family("hospital"), planned(RUNNING[name], neighbors).blocks[0]
    exact = aggregates.vectors(block, found)
    for statistic in totals(planned(RUNNING[name], neighbors)):
        assert statistic.totals is not None
        forms, grid = statistic.over(block.readings), statistic.totals.grid
        numbers = np.zeros((found.backgrounds * found.size, len(forms), block.cells), dtype=object)
        for database, vector in exact.items():
            for key, sums in vector.items():
                if None not in key:
                    place = np.ravel_multi_index([int(each) for each in key], block.sizes)
                    for index, form in enumerate(forms):
                        numbers[database, index, place] = sum(
                            map(math.prod, zip(form, sums, strict=True))
                        )
        sent = np.array(
            [[multiply_by_factor(each, grid).astype(object) for each in rows] for rows in numbers]
        ).reshape(len(numbers), -1)
        most = max(
            int((change**2).sum(axis=1).max())
            for change in aggregates.changes(sent, found, neighbors)
        )
        assert 0 < most <= statistic.totals.l2_squared


@pytest.mark.parametrize("periods", [2, 3])
@pytest.mark.parametrize("values", [(0, 1, 3), (-2, 0, 1), (-1, 0)])
@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
def test_every_contribution(periods: int, values: tuple[int, ...], neighbors: str) -> None:
    """All persons of at most two rows in a grid of periods and two cells, against the proof."""
    grid, rows = Grid(periods=periods, inner=2), 2
    one_row = [np.zeros(2 * periods, dtype=np.int64)]
    for place, value in itertools.product(range(2 * periods), values):
        one_row.append(np.eye(2 * periods, dtype=np.int64)[place] * value)
    people = {tuple(a + b) for a in one_row for b in one_row}
    sent = np.array([multiply_by_factor(np.array(each), grid) for each in people])
    if neighbors == "add_remove":
        most = int((sent**2).sum(axis=1).max())
        signs = 1
    else:
        most = max(int(((sent - each) ** 2).sum(axis=1).max()) for each in sent)
        signs = 2 if min(values) >= 0 or max(values) <= 0 else 4
    claim = signs * longest(periods) * (rows * max(map(abs, values))) ** 2
    assert most <= claim
    if signs == 1:  # all rows in the period of the longest column
        assert most == claim


@pytest.mark.parametrize("neighbors", harness.NEIGHBORS)
@pytest.mark.parametrize("name", RUNNING)
def test_a_smaller_claim_is_not_proved(name: str, neighbors: str) -> None:
    found, policy = (
        planned(RUNNING[name], neighbors),
        policies.policy("hospital", neighbors, "zcdp"),
    )
    [block] = found.blocks

    def claiming(change: Any) -> Plan:
        less = [
            each
            if each.totals is None
            else replace(
                each, totals=replace(each.totals, l2_squared=change(each.totals.l2_squared))
            )
            for each in block.statistics
        ]
        return replace(found, blocks=(replace(block, statistics=tuple(less)),))

    prove(claiming(lambda claim: claim), policy)
    for change in (lambda claim: claim - 1, lambda claim: claim // longest(12)):
        with pytest.raises(Unproved):
            prove(claiming(change), policy)


def test_less_noise_than_the_claim_needs_is_not_released() -> None:
    statistic = totals(planned(RUNNING["rows"]))[0]
    policy = policies.policy("hospital", "add_remove", "zcdp")
    purse = accountant_of(policy)
    noise = DiscreteGaussian(sigma=Fraction(100), l2_squared=Fraction(9))
    allowance = Allowance(key=bytes(32), accountant=purse, paid=purse.price([noise.loss()]))
    with pytest.raises(Unproved):
        allowance.measure(
            noise, Exact([]), moved=statistic.movement, sizes=[12], forms=[(1,)], totals=None
        )


# --- the sums, and back ---------------------------------------------------------------------------


@pytest.mark.parametrize("periods", [2, 3, 12, 365, 1100])
def test_the_factor_is_whole_and_close_to_the_root(periods: int) -> None:
    found = factor(periods)
    assert found.dtype == np.int64
    assert (np.tril(found) == found).all()
    assert (found >= 0).all()
    squares = np.square(found).sum(axis=0)
    assert longest(periods) == squares.max()
    assert np.abs(np.sqrt(squares) / 4096 - 1).max() < 3e-3
    root = np.concatenate([[1.0], np.cumprod([(2 * k - 1) / (2 * k) for k in range(1, periods)])])
    first = root / np.linalg.norm(root) * 4096
    assert np.abs(found[:, 0] - first).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("size", [1, 10**6, 10**15, 10**17, 10**30])
@pytest.mark.parametrize(("periods", "inner", "outer"), [(2, 1, 1), (12, 3, 4), (365, 1, 2)])
def test_what_is_found_is_a_function_of_what_left(
    size: int, periods: int, inner: int, outer: int
) -> None:
    """Without noise the numbers are exact; with the same noise, off by the same, whatever they
    are."""
    rng, grid = np.random.default_rng(), Grid(periods=periods, inner=inner)
    draws = rng.integers(-50_000, 50_000, periods * inner * outer).astype(object)
    off = back(draws, grid)
    for _ in range(3):
        values = np.array([int(v) * size for v in rng.integers(-99, 99, len(draws))], dtype=object)
        assert (back(multiply_by_factor(values, grid), grid) == values).all()
        assert (back(multiply_by_factor(values, grid) + draws, grid) - values == off).all()
    totals = np.cumsum(grid.by_period(off), axis=0)
    assert (
        np.abs(totals - weights(periods) @ grid.by_period(draws).astype(float)).max() <= 0.5 + 1e-6
    )


# --- margins --------------------------------------------------------------------------------------

TIMES = 4_000


@pytest.mark.parametrize("periods", [3, 30])
@pytest.mark.parametrize("sigma", [2_000, 60_000])
def test_margins_cover(periods: int, sigma: int) -> None:
    """Every total and every number: each is within its margin, and not within 0.8 of it."""
    noise = DiscreteGaussian(sigma=Fraction(sigma), l2_squared=Fraction(1))
    grid = Grid(periods=periods, inner=1)
    policy = policies.policy("hospital", "add_remove", "zcdp")
    purse = accountant_of(policy)
    allowance = Allowance(key=os.urandom(32), accountant=purse, paid=purse.price([noise.loss()]))
    [noisy] = allowance.measure(
        noise,
        Exact(_nobody()),
        moved=Movement(l1=None, l2_squared=1),
        sizes=[TIMES, periods],
        forms=[(1,)],
        totals=grid,
    )
    numbers = noisy.reshape(TIMES, periods)
    running = Running(noise=noise, grid=grid)
    rare = stats.binom.ppf(1 - ALARM, TIMES, 0.05)
    for seen, margins in (
        (np.cumsum(numbers, axis=1), running.of_totals([Fraction(1)])),
        (numbers, running.of_numbers([Fraction(1)])),
    ):
        missed = (np.abs(seen) > margins).sum(axis=0)
        assert (missed <= rare).all()
        if margins.min() > 20:
            fewer = (np.abs(seen) > 0.8 * margins).sum(axis=0)
            assert (fewer > rare).all()


def _nobody() -> pa.Table:
    names = [key_column(0), key_column(1), number_column(0)]
    return pa.table({name: pa.array([], pa.int64()) for name in names})


@pytest.mark.parametrize("single", [False, True])
def test_what_is_quoted_is_what_is_answered(single: bool) -> None:
    made, _ = curator("zcdp")
    shown = "n, " if single else ""
    sql = (
        "WITH t AS (SELECT g, COUNT(*) AS n FROM people GROUP BY g) "
        f"SELECT g, {shown}SUM(n) OVER (ORDER BY g) AS x FROM t ORDER BY g"
    )
    quote = made.quote(sql, analyst="alice", epsilon="0.75")
    answer = made.ask(sql, analyst="alice", epsilon="0.75")
    own = made._view.offer(sql, epsilon="0.75", margin=None, assuming=None).blocks[0].noise
    [noise] = own.values()
    assert isinstance(noise, Running)
    found = np.array(answer.margins.column("x").to_pylist())
    wanted = noise.of_totals([Fraction(1)])
    assert (found >= 0.995 * wanted).all()
    assert (found <= 1.02 * wanted + 1.5).all()
    assert quote.margins["x"] == wanted.max()
    now, apart = quote.instead["x"]
    assert now == wanted.max()
    assert 5.2 < apart / now < 6.2  # √200 over 2.5, and roundings
    assert f"x ± {now:.0f} instead of ± {apart:.0f}" in str(quote)
    if single:
        numbers = noise.of_numbers([Fraction(1)])
        assert answer.margins.column("n").to_pylist() == numbers.tolist()
        assert quote.margins["n"] == numbers.max()


def test_a_margin_can_be_asked_for() -> None:
    made, _ = curator("zcdp")
    sql = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS x FROM people GROUP BY g"
    assert made.quote(sql, analyst="alice", margin=20).margins["x"] == 20


def test_independent_noise_is_told_too() -> None:
    made, _ = curator("sum")
    sql = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS x FROM people GROUP BY g"
    quote = made.quote(sql, analyst="alice", epsilon="0.5")
    answer = made.ask(sql, analyst="alice", epsilon="0.5")
    assert not quote.instead
    widest = max(answer.margins.column("x").to_pylist())
    assert quote.margins["x"] <= widest <= 1.15 * quote.margins["x"]


# --- what is the same -----------------------------------------------------------------------------


def test_other_noise_is_another_measurement() -> None:
    """Numbers that were measured one by one are not those that are found from totals."""
    plain = planned(BY_MONTH.format("COUNT(*)"))
    running = planned(RUNNING["rows"])
    both = planned(BY_MONTH.format(f"COUNT(*), SUM(COUNT(*)) OVER (ORDER BY {MONTH})"))
    ids = [each.blocks[0].statistics[0].id for each in (plain, running, both)]
    assert ids[0] != ids[1] == ids[2]
    shorter = RUNNING["rows"].replace("FROM visits", "FROM visits WHERE day < '2024-07-01'")
    assert planned(shorter).blocks[0].statistics[0].id not in ids


def test_paid_for_once() -> None:
    made, _ = curator("zcdp")
    epsilon = "0.875"
    totals = "SELECT g, SUM(COUNT(*)) OVER (ORDER BY g) AS x FROM people GROUP BY g ORDER BY g"
    both = (
        "WITH t AS (SELECT g, COUNT(*) AS n FROM people GROUP BY g) "
        "SELECT g, n, SUM(n) OVER (ORDER BY g) AS total FROM t ORDER BY g DESC"
    )
    first = made.ask(totals, analyst="alice", epsilon=epsilon)
    again = made.ask(both, analyst="alice", epsilon=epsilon)
    assert first.cost.epsilon > 0
    assert again.cost.epsilon == 0
    assert again.table.column("total").to_pylist()[::-1] == first.table.column("x").to_pylist()
    numbers = again.table.column("n").to_pylist()[::-1]
    assert np.cumsum(numbers).tolist() == first.table.column("x").to_pylist()


def test_the_answer_is_right() -> None:
    """With hardly any noise: every number and every total, also within WHERE and by other keys."""
    made, data = curator("zcdp")
    with duckdb.connect() as connection:
        connection.sql(f"CREATE VIEW people AS SELECT * FROM '{data}'")
        for sql in (
            "SELECT g, SUM(SUM(balance)) OVER (ORDER BY g) AS x FROM people GROUP BY g",
            "SELECT g, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY g) AS x FROM people "
            "WHERE g BETWEEN 20 AND 59 GROUP BY g",
            "SELECT age // 10 AS a, sex, SUM(COUNT(*)) OVER (PARTITION BY sex ORDER BY age // 10) AS x "
            "FROM people GROUP BY a, sex",
        ):
            answer = made.ask(f"{sql} ORDER BY 1, 2", analyst="alice", epsilon=10)
            exact = connection.sql(f"{sql} ORDER BY 1, 2").to_arrow_table().to_pydict()
            assert any("totals_over" in each for each in answer.certificate["statistics"])
            for name in ("n", "x"):
                if name in exact:
                    off = np.array(answer.table.column(name).to_pylist()) - np.array(
                        [int(each) for each in exact[name]]
                    )
                    within = np.array(answer.margins.column(name).to_pylist())
                    assert (np.abs(off) <= 4 * within).all()


def test_it_is_explained() -> None:
    sql, policy = RUNNING["rows"], policies.policy("hospital", "add_remove", "zcdp")
    made = offered(sql)
    told = explanation(
        made,
        policy,
        accountant_of(policy),
        analyst="bob",
        left=terms_of(policy).limit,
        spell=lambda query: "",
    )
    assert "moves sums over 12 values of an ordered key by at most 3" in told
    assert "Running totals are measured" in told
    assert " instead of ± " in told
    statistic = made.statistics()[0]
    assert statistic["totals_over"] == 12
    assert statistic["l2"] == pytest.approx(3, rel=1e-3)
    quote = quote_of(made, accountant_of(policy), left=terms_of(policy).limit, assuming=None)
    assert quote.as_json()["instead"] == quote.instead
