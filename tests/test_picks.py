"""Quantiles by what is read of a grid: the right cells, as near and as far inside as told, and none
too dear.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import discreet
from by_definition import rho
from discreet.algebra import Aggregate, Cast, Column, Expression, Nearest, Scan, Sum
from discreet.asking.bounds import BEYOND, round_outward
from discreet.asking.measure import measure
from discreet.asking.offer import _most_ranks, offer
from discreet.binding import create_ledger
from discreet.budget import Budget, Charge
from discreet.curator import Curator
from discreet.engines.spelling import Spelling
from discreet.errors import Unproved
from discreet.mechanisms import Quantiles
from discreet.sql.plan import picks
from discreet.sql.plan.picks import COARSE, FAN, FEWEST, MOST_CELLS, Pick, _widths, count_near
from discreet.sql.values.value import Number
from discreet.vault.allowance import Allowance

QUANTILES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(9, 10))


def pick(size: int, quantiles: tuple[Fraction, ...] = QUANTILES, groups: int = 1) -> Pick:
    return Pick(
        name="q",
        kind="quantile",
        position="x",
        condition=None,
        domain=Number(step=Fraction(1), lo=0, hi=size - 1),
        quantiles=quantiles,
        listed=True,
        rows=1,
        groups=groups,
        neighbors="add_remove",
    )


# --- what is read of a fine grid ------------------------------------------------------------------

Counted = dict[Any, dict[int, int]]  # by group, the rows of each cell


def within_reach(choices: Any, counts: dict[int, int]) -> set[tuple[int, int, int, int]]:
    """By definition: cells that hold rows less than the reach from the wanted rank of a choice,
    with their ranks.
    """
    found, before, total = set(), 0, sum(counts.values())
    for cell, rows in sorted(counts.items()):
        for choice in choices:
            wanted = choice.q * total + choice.shift
            if max(before - wanted, wanted - before - rows) < choice.reach:
                found.add((cell, rows, before, total))
        before += rows
    return found


@pytest.mark.parametrize("size", [10**6, 20_000_001, 10**12, 2**70])
@pytest.mark.parametrize("quantiles", [QUANTILES, (Fraction(1, 2),), (Fraction(0), Fraction(1))])
@pytest.mark.parametrize("keys", [[], ["k0"], ["k0", "k1"]])
def test_what_is_read_is_what_lies_within_reach(size: int, quantiles: Any, keys: list[str]) -> None:
    """In groups of few and of many rows, of one value and of many, near and far apart; keys may be
    NULL.
    """
    source = random.Random()
    rows = []
    for group in range(6):
        middle, width = source.randrange(size), source.choice((1, 30, 10_000, size))
        for _ in range(source.choice((1, 40, 2_000))):
            key = (None if group == 5 else f"g{group}", group % 2)[: len(keys)]
            rows.append(
                (*key, min(max(middle + source.randrange(width) - width // 2, 0), size - 1))
            )
    wanted = pick(size, quantiles, groups=1 if not keys else 10)
    choices = [
        replace(each, reach=source.choice((1, 7, 50)))
        for each in wanted.mechanisms("sum", Fraction(1))
    ]
    counts: Counted = {}
    for *key, place in rows:
        group_counts = counts.setdefault(tuple(key), {})
        group_counts[place] = group_counts.get(place, 0) + 1
    columns = {key: [row[index] for row in rows] for index, key in enumerate(keys)}
    table = pa.table({**columns, "text": [str(row[-1]) for row in rows]})
    connection = duckdb.connect()
    connection.register("rows_", table)
    found = connection.execute(
        near("rows_", keys, Cast(Column("t", "text"), "HUGEINT"), choices)
    ).fetchall()
    expected = {
        (*key, *each) for key, held in counts.items() for each in within_reach(choices, held)
    }
    assert len(found) == len(set(found))
    assert set(found) == expected


def near(table: str, keys: list[str], cell: Expression, choices: list[Any]) -> str:
    """The SQL that reads the cells near the wanted ranks; the first key may be NULL."""
    places = (*(Column("t", key) for key in keys), cell)
    counted = Aggregate(
        Scan(table, "t"), places, (Sum(),), known=tuple(range(min(len(keys), 1), len(places)))
    )
    return Spelling().nearest(count_near(counted, choices, groups=10 if keys else 1))


def test_no_more_is_read_than_told() -> None:
    """Whatever the data: at most `most_near` cells of a group, of a hundred thousand that hold
    rows.
    """
    [choice] = pick(10**6, (Fraction(1, 2),)).mechanisms("sum", Fraction(1))
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE cells AS SELECT CAST(range * 7 AS BIGINT) AS p FROM range(100000)"
    )
    found = connection.execute(near("cells", [], Column("t", "p"), [choice])).fetchall()
    assert choice.most_near - 4 <= len(found) <= choice.most_near < 200


@pytest.mark.parametrize("size", [10, FAN, FAN + 1, 20_000_001, 10**12, 2**70])
@pytest.mark.parametrize("groups", [1, 50, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "quantiles",
    [
        QUANTILES,
        QUANTILES[:1],
        (Fraction(0), Fraction(1)),
        tuple(Fraction(n, 20) for n in range(1, 20)),
    ],
)
def test_choices_pay_what_was_given(
    size: int, groups: int, quantiles: tuple[Fraction, ...]
) -> None:
    wanted = pick(size, quantiles, groups)
    assert wanted.fine or size * groups <= max(MOST_CELLS, 16 * groups)
    for accountant in ("sum", "zcdp"):
        losses = [each.loss() for each in wanted.mechanisms(accountant, Fraction(1))]
        paid = sum(
            Fraction((loss.epsilon if accountant == "sum" else loss.rho) or 0) for loss in losses
        )
        assert Fraction(999, 1000) < paid <= 1


# --- extremes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("size", [2, 120, FAN, 20_000_001])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(10)])
def test_an_extreme_is_hardly_ever_beyond_the_data(
    accountant: Any, size: int, epsilon: Fraction
) -> None:
    """By the mass of the choice, on the worst data: all rows at the other end, and no more than
    `inside`.
    """
    least, most = pick(size, (Fraction(0), Fraction(1))).mechanisms(accountant, epsilon)
    assert least.shift == -most.shift > 0
    # of all cells beyond the data; that of the rows covers the wanted rank
    gap = -most.shift * most.q.denominator
    assert most.mechanism.miss(gap, size) <= 0.05
    # and no farther inside than it must
    assert most.mechanism.miss(gap - 1, size) > 0.05 or most.shift == -1
    if size <= 120:
        rows = -most.shift
        above = np.array([rows] + [0] * (size - 1))
        assert np.exp(most.log_mass(above))[1:].sum() == pytest.approx(
            most.mechanism.miss(gap, size), abs=1e-9
        )
        assert np.exp(least.log_mass(above[::-1]))[:-1].sum() <= 0.05


@pytest.mark.parametrize("kind", ["dense", "fine"])
def test_extremes_of_any_data_are_inside_and_as_near_as_told(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both at once with 95 %, by the mass of the choice, on tables of all shapes with enough
    rows.
    """
    monkeypatch.setattr(picks, "FAN", 8 if kind == "fine" else FAN)
    source = np.random.default_rng()
    [most] = pick(40, (Fraction(1),)).mechanisms("sum", Fraction(1))
    ranks = most.margin(Fraction(19, 20)) - most.shift
    for _ in range(60):
        counts = source.integers(0, source.choice([2, 5, 60]), 40) * (
            source.random(40) < source.choice([0.1, 0.5, 1])
        )
        counts[source.integers(40)] += -most.shift
        upto = counts.cumsum()
        good = (np.arange(40) <= np.flatnonzero(counts).max()) & (upto[-1] - upto <= ranks)
        assert np.exp(most.log_mass(counts))[good].sum() >= 0.95


def test_few_rows_or_a_small_epsilon_cannot_keep_an_extreme_inside() -> None:
    """Which is why `inside` is told: with fewer rows the choice is nearly even."""
    [most] = pick(120, (Fraction(1),)).mechanisms("sum", Fraction(1, 100))
    counts = np.array([20] + [0] * 119)
    assert -most.shift > 20
    assert np.exp(most.log_mass(counts))[1:].sum() > 0.5


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """20,000 incomes to the cent, a quarter of them NULL, and salaries, in two states."""
    folder: Path = tmp_path_factory.mktemp("picks")
    (folder / "policy.yaml").write_text(
        "unit: person\nbudget: {epsilon: 100, delta: 1e-9}\nanalysts: {alice: {epsilon: 100}}\n"
        "tables:\n  people:\n    owner: person\n    columns:\n"
        "      income: {decimal: [0, 200000], step: 0.01, nullable: true}\n      salary: {integer: [0, 99999]}\n"
        "      state: {values: [a, b]}\n"
    )
    create_ledger(discreet.Policy.read(folder / "policy.yaml"))
    generator = np.random.default_rng()
    income = np.minimum(generator.exponential(30_000, 20_000).round(2), 200_000)
    people = pa.table(
        {
            "person": range(20_000),
            "income": pa.array(income, mask=generator.random(20_000) < 0.25),
            "salary": np.minimum(generator.exponential(30_000, 20_000), 99_999).astype(int),
            "state": generator.choice(["a", "b"], 20_000),
        }
    )
    return discreet.open(folder / "policy.yaml", tables={"people": people})


def answers(curator: Curator, sql: str, epsilon: Fraction, times: int) -> list[pa.Table]:
    """What `ask` gives, each time under a new key, without charging for it."""
    planned = curator._view.offer(sql, epsilon=1, margin=None, assuming=None).plan
    offered = offer(planned, curator._accountant, amount=epsilon, limit=Charge(amount=epsilon))
    found = []
    for _ in range(times):
        key = os.urandom(32)
        allowance = Allowance(key=key, accountant=curator._accountant, paid=offered.cost)
        found.append(
            curator._view.finish(offered, measure(offered, allowance, curator._view.fetch)).table
        )
    return found


def test_right_answers_at_a_large_epsilon(curator: Curator) -> None:
    sql = "SELECT state, QUANTILE_CONT(income, [0.1, 0.25, 0.5, 0.75, 0.9]) AS q FROM people GROUP BY state"
    table = curator._view.engine.read(
        "SELECT state AS k, income / 100 AS x FROM main.people WHERE income IS NOT NULL", 60
    )
    [answer] = answers(curator, sql, Fraction(10**6), 1)
    for place, found in enumerate(answer.column("q").to_pylist()):
        incomes = np.sort(table.column("x").to_numpy()[table.column("k").to_numpy() == place])
        ranks = np.searchsorted(incomes, np.array([float(each) for each in found]) + 0.005)
        assert np.abs(ranks - np.array([0.1, 0.25, 0.5, 0.75, 0.9]) * len(incomes)).max() <= 2


@pytest.mark.slow
def test_five_together_are_nearer_than_five_one_by_one(curator: Curator) -> None:
    """Three shares of epsilon where the others have five: over 300 answers the mean error is
    smaller beyond chance.

    Their errors are as 3 to 5, and each mean's own error is a fortieth of it; so a false alarm is
    one in 10^20.
    """
    quantiles = [0.1, 0.25, 0.5, 0.75, 0.9]
    table = curator._view.engine.read("SELECT salary AS x FROM main.people", 60)
    salaries = np.sort(table.column("x").to_numpy())
    wanted = np.array(quantiles) * len(salaries)

    def off(found: list[Any]) -> float:
        ranks = np.searchsorted(salaries, np.array([float(each) for each in found]), side="right")
        return float(np.abs(ranks - wanted).mean())

    together = answers(
        curator, f"SELECT QUANTILE_CONT(salary, {quantiles}) AS q FROM people", Fraction(1), 300
    )
    singles = ", ".join(
        f"QUANTILE_CONT(salary, {q}) AS q{place}" for place, q in enumerate(quantiles)
    )
    apart = answers(curator, f"SELECT {singles} FROM people", Fraction(1), 300)
    error_together = fmean(off(each.column("q").to_pylist()[0]) for each in together)
    error_apart = fmean(off([column.to_pylist()[0] for column in each.columns]) for each in apart)
    assert error_together < 0.8 * error_apart


def test_the_parts_of_a_pick() -> None:
    """Three and more are chosen together, on a grid that is not fine; two cost as much one by
    one.
    """
    single = pick(20_000_001, QUANTILES[2:3])
    assert single.parts == (single,)
    assert replace(single, kind="mode", quantiles=()).parts == (
        replace(single, kind="mode", quantiles=()),
    )
    assert [len(part.quantiles) for part in pick(1_000).parts] == [5]
    assert [len(part.quantiles) for part in pick(1_000, QUANTILES[:2]).parts] == [1, 1]
    assert [len(part.quantiles) for part in pick(20_000_001).parts] == [1] * 5


# --- margins in ranks -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """200 people within 20 cents, of a range of 200,000, in one state and town."""
    folder: Path = tmp_path_factory.mktemp("narrow")
    (folder / "policy.yaml").write_text(
        "unit: person\nbudget: {epsilon: 100, delta: 1e-3}\nanalysts: {alice: {epsilon: 100}}\n"
        "tables:\n  people:\n    owner: person\n    columns:\n"
        "      income: {decimal: [0, 200000], step: 0.01}\n      state: {values: [a, b]}\n      town: text\n"
    )
    create_ledger(discreet.Policy.read(folder / "policy.yaml"))
    income = 50_000 + np.random.default_rng().integers(0, 20, 200) / 100
    people = pa.table(
        {"person": range(200), "income": income, "state": ["a"] * 200, "town": ["x"] * 200}
    )
    return discreet.open(folder / "policy.yaml", tables={"people": people})


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT MEDIAN(income) AS q FROM people", [0.5]),
        ("SELECT QUANTILE_CONT(income, 0.9) AS q FROM people", [0.9]),
        ("SELECT QUANTILE_CONT(income, [0.25, 0.75]) AS q FROM people", [0.25, 0.75]),
        ("SELECT QUANTILE_CONT(income, [0.25, 0.5, 0.75]) AS q FROM people", [0.25, 0.5, 0.75]),
        ("SELECT state, MEDIAN(income) AS q FROM people GROUP BY state", [0.5]),
        ("SELECT town, MEDIAN(income) AS q FROM people GROUP BY town", [0.5]),
        ("SELECT MAX(income) AS q FROM people", [1]),
    ],
)
def test_quantiles_on_a_fine_grid_are_as_near_as_told(
    narrow: Curator, sql: str, wanted: list[float]
) -> None:
    """Through SQL, on data that lies within less than a ten-thousandth of the range."""
    planned = narrow._view.offer(sql, epsilon=1, margin=None, assuming=None).plan
    budget = Charge(amount=Fraction(2), delta=Fraction(1, 1000))
    offered = offer(planned, narrow._accountant, amount=Fraction(2), limit=budget)
    cents = np.sort(
        narrow._view.engine.read("SELECT income AS x FROM main.people", 60).column("x").to_numpy()
    )
    fetch, inside, runs = cache(narrow._view.fetch), 0, 60
    for _ in range(runs):
        allowance = Allowance(key=os.urandom(32), accountant=narrow._accountant, paid=offered.cost)
        answer = (
            narrow._view.finish(offered, measure(offered, allowance, fetch))
            .table.column("q")[0]
            .as_py()
        )
        found = np.array(
            [int(each * 100) for each in (answer if isinstance(answer, list) else [answer])]
        )
        inside += bool((_off(cents, np.array(wanted), found) <= offered.ranks()["q"]).all())
    assert offered.ranks()["q"] < 60 * len(wanted)
    assert inside >= stats.binom.ppf(ALARM, runs, 0.95)


@pytest.mark.parametrize("group", ["", "state", "town"])
def test_a_quantile_that_is_asked_for_in_two_ways_is_paid_for_once(
    narrow: Curator, group: str
) -> None:
    by = f" GROUP BY {group}" if group else ""
    once = f"SELECT {group or 1}, MEDIAN(income) AS m FROM people{by}"
    twice = f"SELECT {group or 1}, MEDIAN(income) AS m, QUANTILE_CONT(income, [0.5]) AS q FROM people{by}"
    one, two = (
        narrow._view.offer(sql, epsilon=1, margin=None, assuming=None) for sql in (once, twice)
    )
    assert two.mechanisms == one.mechanisms
    assert [each["scale"] for each in two.statistics()] == [
        each["scale"] for each in one.statistics()
    ]
    allowance = Allowance(key=os.urandom(32), accountant=narrow._accountant, paid=two.cost)
    [row, *_] = narrow._view.finish(
        two, measure(two, allowance, narrow._view.fetch)
    ).table.to_pylist()
    assert row["q"] == [row["m"]]


@pytest.mark.parametrize("choice", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("slices", [1, 2, 4])
def test_ranks_of_several_hold_also_where_values_are_shared(choice: Any, slices: int) -> None:
    """All of a list together with 95 %, by the mass of all outcomes; cells of many rows add the
    part that is told.
    """
    several = Quantiles(
        epsilon=Fraction(3), quantiles=QUANTILES[1:4], cells=4, slices=slices, max_rows=1, neighbors="add_remove",
        choice=choice,
    )  # fmt: skip
    margins = np.array(several.margin(Fraction(19, 20), assuming=0))
    ties = np.array([float(each) for each in several.ties])
    quantiles = np.array([float(q) for q in several.quantiles])
    assert ties.min() == 0
    assert ties.max() == pytest.approx(1 / (4 * slices))
    needed = 0
    for counts in (
        [0, 60, 0, 0],
        [30, 0, 41, 0],
        [60, 1, 0, 60],
        [9, 9, 9, 9],
        [0, 0, 0, 200],
        [120, 0, 280, 0],
    ):
        rows = np.repeat(np.arange(4), counts)
        allowed, share = margins + ties * max(counts), [0.0, 0.0]
        for cells, log_mass in several.log_mass(np.array(counts)).items():
            off = _off(rows, quantiles, np.array(cells))
            share[0] += np.exp(log_mass) * bool((off <= margins).all())
            share[1] += np.exp(log_mass) * bool((off <= allowed).all())
        assert share[1] >= 0.95
        needed += share[0] < 0.95
    assert needed or slices > 1  # what is told beside the ranks is needed


@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("kind", ["dense", "fine"])
@pytest.mark.parametrize("rows", [30, 400, 20_000])
def test_a_suggested_range_leaves_out_no_more_than_told(
    accountant: Any, kind: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends at once with 95 %, by the mass of both choices; on skewed and even data, and on
    data of one value.
    """
    monkeypatch.setattr(picks, "FAN", 16 if kind == "fine" else FAN)
    size, source = 90, np.random.default_rng()
    choices = pick(size, (BEYOND, 1 - BEYOND)).mechanisms(accountant, Fraction(1, 2))
    ranks = _most_ranks(choices)
    for places in (
        np.minimum(source.exponential(5, rows), size - 1),
        source.integers(0, size, rows),
        np.full(rows, 7),
    ):
        counts = np.bincount(places.astype(int), minlength=size)
        low, high = (np.exp(choice.log_mass(counts)) for choice in choices)
        most = float(BEYOND) * rows + ranks
        below, above = counts.cumsum() - counts <= most, rows - counts.cumsum() <= most
        both = np.outer(low, high)  # put in order, where they cross
        first, second = np.indices(both.shape)
        good = below[np.minimum(first, second)] & above[np.maximum(first, second)]
        assert both[good].sum() >= 0.95


@pytest.mark.parametrize(
    "ends",
    [(0.3, 0.7), (0, 87), (-3.25, 12), (1.1, 1.2), (5, 5), (Decimal("0.1"), Decimal("99.7"))],
)
def test_a_suggested_range_is_rounded_outward(ends: Any) -> None:
    found = round_outward(*ends, ranks=12, cost=Budget(epsilon=Fraction(1), delta=Fraction(0)))
    assert (
        Fraction(str(found.low))
        <= Fraction(str(ends[0]))
        <= Fraction(str(ends[1]))
        <= Fraction(str(found.high))
    )
    assert "at most 1 % of the rows and 12 more lie below" in str(found)
    assert "fewer than 1,200 rows" in str(found)


# --- what all choices together tell about one person ----------------------------------------------

Rows = tuple[int, ...]


def transcripts(mechanisms: Any, size: int, rows: Rows) -> dict[Any, float]:
    """The log-probability of everything that the choices over one group's rows choose."""
    counts = np.bincount(np.array(rows, dtype=np.int64), minlength=size)
    found: dict[Any, float] = {(): 0.0}
    for mechanism in mechanisms:
        found = {
            (*before, cells): mass + own
            for before, mass in found.items()
            for cells, own in _outcomes(mechanism, counts)
        }
    return found


def _outcomes(mechanism: Any, counts: Any) -> list[tuple[tuple[int, ...], float]]:
    masses = mechanism.log_mass(counts.tolist() if hasattr(mechanism, "monotone") else counts)
    listed = masses.items() if isinstance(masses, dict) else enumerate(masses)
    return [
        (cells if isinstance(cells, tuple) else (cells,), float(mass)) for cells, mass in listed
    ]


def neighbors_of(places: Rows, groups: int, relation: str, most: int) -> Iterator[tuple[Any, Any]]:
    """Tables of a few rows in one or two groups, and the same with one person's rows added, or
    replaced by others.
    """
    cells = list(itertools.product(range(groups), places))
    mine = [
        rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(cells, n)
    ]
    for others in (
        (),
        (cells[1],) * 6,
        tuple((group, place) for group, place in cells for _ in range(2)),
    ):
        for before, after in itertools.combinations(mine, 2):
            if relation == "change_one" or not before:
                yield (*others, *before), (*others, *after)


def told(wanted: Pick, mechanisms: Any, accountant: str) -> float:
    """What all choices in all groups together tell of one person at most, by definition, on small
    neighbors.
    """
    of, most, size = (
        cache(lambda rows: transcripts(mechanisms, wanted.domain.size, rows)),
        0.0,
        wanted.domain.size,
    )
    for tables in neighbors_of(
        (0, size // 2, size - 1), wanted.groups, wanted.neighbors, wanted.rows
    ):
        sides = [
            tuple(tuple(x for g, x in table if g == group) for group in range(wanted.groups))
            for table in tables
        ]
        moved = [(of(a), of(b)) for a, b in zip(*sides, strict=True) if sorted(a) != sorted(b)]
        if accountant == "sum":  # groups are independent: their largest log-ratios add up
            most = max(most, *(sum(_one_way(*pair[::way]) for pair in moved) for way in (1, -1)))
        else:  # as do Renyi divergences, so that this is no less than that of all groups together
            most = max(most, sum(rho(p, q, orders=(1.01, 2, 8)) for p, q in moved))
    return most


def _one_way(p: dict[Any, float], q: dict[Any, float]) -> float:
    return max(p[outcome] - q[outcome] for outcome in p)


SMALL = (
    ("median of a fine grid", 40, (Fraction(1, 2),), "quantile", 1),
    ("high of a fine grid", 30, (Fraction(9, 10),), "quantile", 2),
    ("two of a fine grid", 17, (Fraction(1, 4), Fraction(3, 4)), "quantile", 1),
    ("median", 12, (Fraction(1, 2),), "quantile", 2),
    ("three together", 6, (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)), "quantile", 1),
    ("extremes one by one", 10, (Fraction(0), Fraction(1)), "quantile", 1),
    ("mode", 5, (), "mode", 2),
)


@pytest.fixture
def small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Grids of so few cells that all outcomes can be listed."""
    monkeypatch.setattr(picks, "FAN", 16)
    monkeypatch.setattr(picks, "slices_for", lambda cells: 1)


@pytest.mark.usefixtures("small_grids")
@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("relation", ["add_remove", "change_one"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case[0])
def test_all_choices_together_cost_what_was_paid(
    case: Any, groups: int, relation: Any, accountant: Any
) -> None:
    _, size, quantiles, kind, rows = case
    wanted = replace(pick(size, quantiles, groups), kind=kind, neighbors=relation, rows=rows)
    assert 0.1 < told(wanted, wanted.mechanisms(accountant, Fraction(1)), accountant) <= 1 + 1e-9


@pytest.mark.parametrize(("quantiles", "kind"), [((Fraction(1, 2),), "quantile"), ((), "mode")])
def test_a_person_who_changes_groups_moves_both(quantiles: Any, kind: Any) -> None:
    """Noise for the rows of one group alone would tell more than was paid for: under change_one
    there are two.
    """
    wanted = replace(pick(60, quantiles, 2), kind=kind, neighbors="change_one", rows=2)
    mechanisms = wanted.mechanisms("sum", Fraction(1))
    if kind == "mode":
        less = [replace(each, monotone=True) for each in mechanisms]
    else:
        less = [replace(each, max_rows=2) for each in mechanisms]
    assert 0.5 < told(wanted, mechanisms, "sum") <= 1
    assert told(wanted, less, "sum") > 1.05


# --- per key that is not public -------------------------------------------------------------------

# people; keys that are not public, and hardly ever fail their test
TOWNS = {"Aa": 3_000, "Bo": 1_200, "Cu": 600}
PICKED = 200  # answers to each question
ALARM = 1e-9 / 20


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    folder: Path = tmp_path_factory.mktemp("towns")
    (folder / "policy.yaml").write_text(
        "unit: person\nbudget: {epsilon: 100, delta: 1e-6}\nanalysts: {alice: {epsilon: 100}}\n"
        "tables:\n  people:\n    owner: person\n    columns:\n"
        "      income: {integer: [0, 10000]}\n      shoe: {integer: [0, 199]}\n"
        "      pet: {values: [cat, dog, fish, none]}\n      town: text\n"
    )
    create_ledger(discreet.Policy.read(folder / "policy.yaml"))
    generator, people = np.random.default_rng(), sum(TOWNS.values())
    names = [name for name, size in TOWNS.items() for _ in range(size)]
    more = {"cat": 4, "dog": 1, "fish": -3, "none": -2}  # than a quarter of the town
    pets = [
        pet
        for size in TOWNS.values()
        for pet, extra in more.items()
        for _ in range(size // 4 + extra)
    ]
    income = np.minimum(generator.exponential(1_500, people), 10_000).astype(int)
    shoe = generator.integers(0, 200, people)
    table = pa.table(
        {"person": range(people), "income": income, "shoe": shoe, "pet": pets, "town": names}
    )
    return discreet.open(folder / "policy.yaml", tables={"people": table})


def picked(curator: Curator, sql: str) -> tuple[Any, dict[str, list[Any]]]:
    """The offer, and by town what was picked in many answers, each under a new key."""
    offered = curator._view.offer(sql, epsilon=1, margin=None, assuming=None)
    fetch, found = cache(curator._view.fetch), dict[str, list[Any]]()
    for _ in range(PICKED):
        allowance = Allowance(key=os.urandom(32), accountant=curator._accountant, paid=offered.cost)
        for town, value in zip(
            *curator._view.finish(offered, measure(offered, allowance, fetch)).table, strict=True
        ):
            found.setdefault(town.as_py(), []).append(value.as_py())
    return offered, found


@pytest.mark.parametrize(
    "wanted", [0.5, pytest.param(0.9, marks=pytest.mark.slow), [0.25, 0.5, 0.75]], ids=str
)
def test_quantiles_per_unknown_key_are_as_near_as_told(
    towns: Curator, wanted: float | list[float]
) -> None:
    """Within the ranks that a quote tells, which hold for any data, with 95 % in every town."""
    offered, found = picked(
        towns, f"SELECT town, QUANTILE_CONT(income, {wanted}) AS q FROM people GROUP BY town"
    )
    ranks = offered.ranks()["q"]
    table = towns._view.engine.read("SELECT town, income FROM main.people", 60)
    assert offered.plan.blocks[0].picks[0].fine  # 10,001 values, where 4,096 are read at most
    assert found.keys() == TOWNS.keys()
    for town, answers_ in found.items():
        cells = np.sort(table.column("income").to_numpy()[table.column("town").to_numpy() == town])
        errors = _off(
            cells, np.atleast_1d(wanted), np.array(answers_, dtype=np.int64).reshape(PICKED, -1)
        )
        assert ((errors <= ranks).sum(axis=0) >= stats.binom.ppf(ALARM, PICKED, 0.95)).all()
        assert errors.max() > 0


def test_quantiles_per_unknown_key_are_as_near_as_their_mechanism_says(towns: Curator) -> None:
    """Within two ranks as often as by the mass of the choice, and not of one with a ninth or nine
    times the epsilon.
    """
    offered, found = picked(towns, "SELECT town, MEDIAN(shoe) AS q FROM people GROUP BY town")
    [[mechanism]], wrong = offered.blocks[0].chosen.values(), 0
    table = towns._view.engine.read("SELECT town, shoe FROM main.people", 60)
    for town, answers_ in found.items():
        shoes = np.sort(table.column("shoe").to_numpy()[table.column("town").to_numpy() == town])
        counts, half = np.bincount(shoes, minlength=mechanism.cells), np.array([0.5])
        near = _off(shoes, half, np.arange(mechanism.cells)[:, None])[:, 0] <= 2
        seen = int((_off(shoes, half, np.array(answers_)[:, None]) <= 2).sum())
        for factor in (1, Fraction(1, 9), 9):
            other = replace(mechanism, epsilon=mechanism.epsilon * factor)
            share = min(float(np.exp(other.log_mass(counts))[near].sum()), 1.0)
            least, most = stats.binom.ppf([ALARM, 1 - ALARM], PICKED, share)
            assert least <= seen <= most or factor != 1
            wrong += not least <= seen <= most
    assert wrong >= 1


def _off(cells: Any, wanted: Any, chosen: Any) -> Any:
    """How many ranks a chosen cell is from the wanted rank; a column for each quantile."""
    rank = wanted * len(cells)
    before, behind = np.searchsorted(cells, chosen), np.searchsorted(cells, chosen, side="right")
    return np.maximum(0, np.maximum(before - rank, rank - behind))


def test_modes_per_unknown_key_are_chosen_as_often_as_their_mechanism_says(towns: Curator) -> None:
    """Given the counts, by the mass of the choice; and not by that of a ninth or nine times the
    epsilon.
    """
    offered, found = picked(towns, "SELECT town, MODE(pet) AS pet FROM people GROUP BY town")
    [[mechanism]] = offered.blocks[0].chosen.values()
    table = towns._view.engine.read("SELECT town, pet FROM main.people", 60)
    pets, wrong = ["cat", "dog", "fish", "none"], 0
    assert found.keys() == TOWNS.keys()
    for town, answers_ in found.items():
        own = table.column("pet").to_numpy()[table.column("town").to_numpy() == town]
        counts = [int((own == code).sum()) for code in range(4)]
        often = [answers_.count(pet) for pet in pets]
        assert _fits(often, mechanism, counts)
        wrong += sum(
            not _fits(often, replace(mechanism, epsilon=mechanism.epsilon * f), counts)
            for f in (Fraction(1, 9), 9)
        )
    assert wrong >= 1


def _fits(often: list[int], mechanism: Any, counts: list[int]) -> bool:
    """Each value's frequency, by the binomial; a value that cannot be chosen never is."""
    for seen, mass in zip(often, np.exp(mechanism.log_mass(counts)), strict=True):
        least, most = stats.binom.ppf([ALARM / 8, 1 - ALARM / 8], sum(often), min(float(mass), 1.0))
        if not least <= seen <= most:
            return False
    return True


@pytest.mark.parametrize("groups", [1, 7, 300, 1 << 20])
def test_cells_of_every_step_lie_within_those_of_the_step_before(groups: int) -> None:
    """Otherwise rows would be read with two wide cells, and one person would count twice."""
    for cells in (
        1,
        2,
        255,
        1 << 16,
        (1 << 16) + 1,
        10**9 + 7,
        (1 << 32) - 1,
        10**15 + 3,
        9 * 10**18 - 1,
        1 << 63,
    ):
        widths = _widths(cells, groups)
        assert widths[-1] == 1
        assert all(wide % narrow == 0 for wide, narrow in pairwise(widths))
        assert all(wide // narrow <= COARSE for wide, narrow in pairwise(widths))
        assert -(-cells // widths[0]) <= max(FEWEST, COARSE // groups)


def test_cells_that_overlap_are_never_read() -> None:
    counted = Aggregate(Scan("visits", "t"), (Column("t", "cost"),), (Sum(),))
    assert Nearest(counted, (6, 3, 1), ())
    for widths in ((7, 3, 1), (6, 3), (6, 4, 1)):
        with pytest.raises(Unproved, match="do not lie within one another"):
            Nearest(counted, widths, ())
