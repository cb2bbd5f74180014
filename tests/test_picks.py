"""Quantiles in passes over windows: the cells are a grid in order, the right ones are found, and none too dear."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from dataclasses import replace
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
from discreet.budget import Charge
from discreet.curator import Curator, create_ledger
from discreet.measure import measure
from discreet.offer import offer
from discreet.release import Allowance
from discreet.sql import picks
from discreet.sql.picks import FAN, MOST_CELLS, Pick, Window
from discreet.sql.values import Number

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


@pytest.mark.parametrize("size", [20_000_001, 10**12, 2**70])
@pytest.mark.parametrize("chosen", [[0.1, 0.2, 0.5, 0.6, 0.9], [0.1, 0.1, 0.1, 0.9, 0.9], [0.0] * 5, [1.0] * 5])
def test_the_cells_of_all_grids_are_one_grid_in_order(size: int, chosen: list[float]) -> None:
    """Whether or not windows meet: cells never fall, and a place in a window of the last pass is found by its cell."""
    many = pick(size)
    kind = np.int64 if size < 2**62 else object
    places, windows = np.array([[min(int(size * each), size - 1) for each in chosen]], dtype=kind), tuple[Window, ...]()
    for index in range(1, len(many.widths)):
        windows = many.around(index, places, windows)
    last = windows[-len(QUANTILES) :]
    assert all(a.starts[0] + many.reach <= b.starts[0] for a, b in pairwise(last))
    edges = [each.starts[0] + step for each in windows for step in (-1, 0, 1, many.reach - 1, many.reach)]
    some = sorted({0, size // 3, size - 1, *(edge for edge in edges if 0 <= edge < size)})
    column = many.key_column(windows, "0")
    rows = ", ".join(f"({place}::HUGEINT)" for place in some)
    cells = [row[0] for row in duckdb.execute(f"SELECT {column} FROM (VALUES {rows}) AS t(x)").fetchall()]
    assert cells == sorted(cells)
    assert 0 <= cells[0] <= cells[-1] < many.cells(len(many.widths) - 1)
    found = many.places(np.array([cells], dtype=kind), windows)[0]
    assert many._cells_of(np.array([some], dtype=kind), windows).tolist() == [cells]
    for place, other in zip(some, found, strict=True):
        exact = any(each.starts[0] <= place < each.starts[0] + many.reach for each in last)
        assert other == place if exact else abs(other - place) <= many.widths[0]
    assert duckdb.execute(f"SELECT {column} FROM (SELECT NULL::BIGINT AS x)").fetchall() == [(None,)]


@pytest.mark.parametrize("quantiles", [QUANTILES[2:3], QUANTILES[1:4]])
def test_the_middle_of_every_cell_in_every_group(quantiles: tuple[Fraction, ...]) -> None:
    """By definition: of the places that SQL puts into a cell, the middle one; before the next, if there are none."""
    size, groups = 3_000, 40
    many = pick(size, quantiles, groups=MOST_CELLS // 64)
    source, windows = np.random.default_rng(), tuple[Window, ...]()
    assert len(many.widths) > 2
    for index in range(1, len(many.widths)):
        chosen = np.sort(source.integers(0, size, (groups, len(quantiles))), axis=1)
        windows = many.around(index, chosen, windows)
        column, cells = many.key_column(windows, "g"), many.cells(index)
        sql = f"SELECT {column} FROM range({groups}) AS a(g), range({size}) AS b(x) ORDER BY g, x"
        numbered = duckdb.sql(sql).fetchnumpy()
        (rows,) = (np.asarray(each).reshape(groups, size) for each in numbered.values())
        assert (many._cells_of(np.tile(np.arange(size), (groups, 1)), windows) == rows).all()
        found = many.places(np.tile(np.arange(cells), (groups, 1)), windows)
        for row, places in zip(rows, found, strict=True):
            first, behind = (np.searchsorted(row, np.arange(cells) + more) for more in (0, 1))
            assert (places == np.maximum(first + (behind - first - 1) // 2, 0)).all()


@pytest.mark.parametrize("size", [2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1, 2**63, 2**64])
@pytest.mark.parametrize("groups", [1, 20_000])
def test_64_bits_and_more_find_the_same_places(size: int, groups: int, monkeypatch: pytest.MonkeyPatch) -> None:
    part, windows = pick(size, QUANTILES[1:4], groups).parts[0], tuple[Window, ...]()
    source = np.random.default_rng()
    for index in range(len(part.widths)):
        cells = np.sort(source.integers(0, part.cells(index), (5, len(part.quantiles))), axis=1)
        cells[0], cells[1] = 0, part.cells(index) - 1
        found = part.places(cells, windows)
        with monkeypatch.context() as patched:
            patched.setattr(Pick, "_integer", object)
            slowly = part.places(cells, windows)
            around = part.around(index + 1, slowly, windows) if index + 1 < len(part.widths) else ()
        assert found.tolist() == slowly.tolist()
        assert (part.around(index + 1, found, windows) if around else ()) == around
        windows = around


@pytest.mark.parametrize("size", [10, FAN, FAN + 1, 20_000_001, 10**12, 2**70])
@pytest.mark.parametrize("groups", [1, 50, 10_000, 1_000_000])
@pytest.mark.parametrize(
    "quantiles", [QUANTILES, QUANTILES[:1], (Fraction(0), Fraction(1)), tuple(Fraction(n, 20) for n in range(1, 20))]
)
def test_passes_are_few_and_pay_what_was_given(size: int, groups: int, quantiles: tuple[Fraction, ...]) -> None:
    wanted = pick(size, quantiles, groups)
    for part in wanted.parts:
        assert all(part.cells(index) <= max(2 * FAN, 16) for index in range(len(part.widths)))
        assert all(part.cells(index) * groups <= max(2 * MOST_CELLS, 32 * groups) for index in range(len(part.widths)))
    for accountant in ("sum", "zcdp"):
        losses = [each.loss() for each in wanted.mechanisms(accountant, Fraction(1))]
        paid = sum(Fraction((loss.epsilon if accountant == "sum" else loss.rho) or 0) for loss in losses)
        assert Fraction(999, 1000) < paid <= 1


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    """20,000 incomes to the cent, a quarter of them NULL, in two states."""
    folder: Path = tmp_path_factory.mktemp("picks")
    (folder / "policy.yaml").write_text(
        "unit: person\nbudget: {epsilon: 100, delta: 1e-9}\nanalysts: {alice: {epsilon: 100}}\n"
        "tables:\n  people:\n    owner: person\n    columns:\n"
        "      income: {decimal: [0, 200000], step: 0.01, nullable: true}\n      state: {values: [a, b]}\n"
    )
    create_ledger(discreet.Policy.read(folder / "policy.yaml"))
    generator = np.random.default_rng()
    income = np.minimum(generator.exponential(30_000, 20_000).round(2), 200_000)
    people = pa.table(
        {
            "person": range(20_000),
            "income": pa.array(income, mask=generator.random(20_000) < 0.25),
            "state": generator.choice(["a", "b"], 20_000),
        }
    )
    return discreet.open(folder / "policy.yaml", tables={"people": people})


def answers(curator: Curator, sql: str, epsilon: Fraction, times: int) -> list[pa.Table]:
    """What `ask` gives, each time under a new key, without charging for it."""
    planned = curator._offer(sql, epsilon=1, margin=None, assuming=None).plan
    offered = offer(planned, curator._accountant, amount=epsilon, limit=Charge(amount=epsilon))
    found = []
    for _ in range(times):
        key = os.urandom(32)
        allowance = Allowance(key=key, accountant=curator._accountant, paid=offered.cost)
        found.append(curator._finish(offered, measure(offered, allowance, curator._fetch)).table)
    return found


def test_right_answers_at_a_large_epsilon(curator: Curator) -> None:
    sql = "SELECT state, QUANTILE_CONT(income, [0.1, 0.25, 0.5, 0.75, 0.9]) AS q FROM people GROUP BY state"
    table = curator._fetch("SELECT state AS k, income / 100 AS x FROM main.people WHERE income IS NOT NULL").unwrap()
    [answer] = answers(curator, sql, Fraction(10**6), 1)
    for place, found in enumerate(answer.column("q").to_pylist()):
        incomes = np.sort(table.column("x").to_numpy()[table.column("k").to_numpy() == place])
        ranks = np.searchsorted(incomes, np.array([float(each) for each in found]) + 0.005)
        assert np.abs(ranks - np.array([0.1, 0.25, 0.5, 0.75, 0.9]) * len(incomes)).max() <= 2


@pytest.mark.slow
def test_five_together_are_nearer_than_five_one_by_one(curator: Curator) -> None:
    """Three shares of epsilon where the others have five: over 300 answers the mean error is smaller beyond chance.

    Their errors are as 3 to 5, and each mean's own error is a fortieth of it; so a false alarm is one in 10^20.
    """
    quantiles = [0.1, 0.25, 0.5, 0.75, 0.9]
    table = curator._fetch("SELECT income / 100 AS x FROM main.people WHERE income IS NOT NULL").unwrap()
    incomes = np.sort(table.column("x").to_numpy())
    wanted = np.array(quantiles) * len(incomes)

    def off(found: list[Any]) -> float:
        ranks = np.searchsorted(incomes, np.array([float(each) for each in found]) + 0.005)
        return float(np.abs(ranks - wanted).mean())

    together = answers(curator, f"SELECT QUANTILE_CONT(income, {quantiles}) AS q FROM people", Fraction(1), 300)
    singles = ", ".join(f"QUANTILE_CONT(income, {q}) AS q{place}" for place, q in enumerate(quantiles))
    apart = answers(curator, f"SELECT {singles} FROM people", Fraction(1), 300)
    error_together = fmean(off(each.column("q").to_pylist()[0]) for each in together)
    error_apart = fmean(off([column.to_pylist()[0] for column in each.columns]) for each in apart)
    assert error_together < 0.8 * error_apart


def test_one_quantile_is_as_it_was() -> None:
    single = pick(20_000_001, QUANTILES[2:3])
    assert single.parts == (single,)
    assert single.widths == (306, 1)
    assert single.cells(1) <= FAN + 2
    assert replace(single, kind="mode", quantiles=()).parts == (replace(single, kind="mode", quantiles=()),)


# --- what all passes together tell about one person -------------------------------------------------------------------

Rows = tuple[int, ...]


def transcripts(wanted: Pick, mechanisms: Any, rows: Rows) -> dict[Any, float]:
    """The log-probability of everything that the passes over one group's rows choose, each seeing those before it."""
    found: dict[Any, float] = {(): 0.0}
    remaining = iter(mechanisms)
    for part in wanted.parts:
        paths: dict[Any, tuple[float, tuple[Window, ...]]] = {before: (mass, ()) for before, mass in found.items()}
        for index in range(len(part.widths)):
            mechanism = next(remaining)
            next_paths: dict[Any, tuple[float, tuple[Window, ...]]] = {}
            for before, (mass, windows) in paths.items():
                column = part._cells_of(np.array([rows or (0,)]), windows)[0]
                counts = np.bincount(column[: len(rows)], minlength=part.cells(index))
                for cells, own in _outcomes(mechanism, counts):
                    places = part.places(np.array([cells]), windows)
                    later = part.around(index + 1, places, windows) if index + 1 < len(part.widths) else ()
                    next_paths[(*before, cells)] = (mass + own, later)
            paths = next_paths
        found = {path: mass for path, (mass, _) in paths.items()}
    return found


def _outcomes(mechanism: Any, counts: Any) -> list[tuple[tuple[int, ...], float]]:
    masses = mechanism.log_mass(counts.tolist() if hasattr(mechanism, "monotone") else counts)
    listed = masses.items() if isinstance(masses, dict) else enumerate(masses)
    return [(cells if isinstance(cells, tuple) else (cells,), float(mass)) for cells, mass in listed]


def neighbors_of(places: Rows, groups: int, relation: str, most: int) -> Iterator[tuple[Any, Any]]:
    """Tables of a few rows in one or two groups, and the same with one person's rows added, or replaced by others."""
    cells = list(itertools.product(range(groups), places))
    mine = [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(cells, n)]
    for others in ((), (cells[1],) * 6, tuple((group, place) for group, place in cells for _ in range(2))):
        for before, after in itertools.combinations(mine, 2):
            if relation == "change_one" or not before:
                yield (*others, *before), (*others, *after)


def told(wanted: Pick, mechanisms: Any, accountant: str) -> float:
    """What all choices in all groups together tell of one person at most, by definition, on small neighbors."""
    of, most, size = cache(lambda rows: transcripts(wanted, mechanisms, rows)), 0.0, wanted.domain.size
    for tables in neighbors_of((0, size // 2, size - 1), wanted.groups, wanted.neighbors, wanted.rows):
        sides = [tuple(tuple(x for g, x in table if g == group) for group in range(wanted.groups)) for table in tables]
        moved = [(of(a), of(b)) for a, b in zip(*sides, strict=True) if sorted(a) != sorted(b)]
        if accountant == "sum":  # groups are independent: their largest log-ratios add up
            most = max(most, *(sum(_one_way(*pair[::way]) for pair in moved) for way in (1, -1)))
        else:  # as do Renyi divergences, so that this is no less than that of all groups together
            most = max(most, sum(rho(p, q, orders=(1.01, 2, 8)) for p, q in moved))
    return most


def _one_way(p: dict[Any, float], q: dict[Any, float]) -> float:
    return max(p[outcome] - q[outcome] for outcome in p)


SMALL = (
    ("median in passes", 40, (Fraction(1, 2),), "quantile", 1),
    ("high in passes", 30, (Fraction(9, 10),), "quantile", 2),
    pytest.param(
        ("two together in passes", 17, (Fraction(1, 4), Fraction(3, 4)), "quantile", 1), marks=pytest.mark.slow
    ),
    ("extremes one by one", 10, (Fraction(0), Fraction(1)), "quantile", 1),
    ("mode", 5, (), "mode", 2),
)


@pytest.fixture
def small_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes of so few cells that all outcomes can be listed."""
    monkeypatch.setattr(picks, "FAN", 16)
    monkeypatch.setattr(picks, "SHORTEST", 2)
    monkeypatch.setattr(picks, "slices_for", lambda cells: 1)


@pytest.mark.usefixtures("small_passes")
@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("relation", ["add_remove", "change_one"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("case", SMALL, ids=lambda case: case[0])
def test_all_passes_together_cost_what_was_paid(case: Any, groups: int, relation: Any, accountant: Any) -> None:
    _, size, quantiles, kind, rows = case
    wanted = replace(pick(size, quantiles, groups), kind=kind, neighbors=relation, rows=rows)
    assert 0.1 < told(wanted, wanted.mechanisms(accountant, Fraction(1)), accountant) <= 1 + 1e-9


@pytest.mark.parametrize(("quantiles", "kind"), [((Fraction(1, 2),), "quantile"), ((), "mode")])
def test_a_person_who_changes_groups_moves_both(quantiles: Any, kind: Any) -> None:
    """Noise for the rows of one group alone would tell more than was paid for: under change_one there are two."""
    wanted = replace(pick(60, quantiles, 2), kind=kind, neighbors="change_one", rows=2)
    mechanisms = wanted.mechanisms("sum", Fraction(1))
    if kind == "mode":
        less = [replace(each, monotone=True) for each in mechanisms]
    else:
        less = [replace(each, max_rows=2) for each in mechanisms]
    assert 0.5 < told(wanted, mechanisms, "sum") <= 1
    assert told(wanted, less, "sum") > 1.05


# --- per key that is not public ---------------------------------------------------------------------------------------

TOWNS = {"Aa": 3_000, "Bo": 1_200, "Cu": 600}  # people; keys that are not public, and hardly ever fail their test
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
    pets = [pet for size in TOWNS.values() for pet, extra in more.items() for _ in range(size // 4 + extra)]
    income = np.minimum(generator.exponential(1_500, people), 10_000).astype(int)
    shoe = generator.integers(0, 200, people)
    table = pa.table({"person": range(people), "income": income, "shoe": shoe, "pet": pets, "town": names})
    return discreet.open(folder / "policy.yaml", tables={"people": table})


def picked(curator: Curator, sql: str) -> tuple[Any, dict[str, list[Any]]]:
    """The offer, and by town what was picked in many answers, each under a new key."""
    offered = curator._offer(sql, epsilon=1, margin=None, assuming=None)
    fetch, found = cache(curator._fetch), dict[str, list[Any]]()
    for _ in range(PICKED):
        allowance = Allowance(key=os.urandom(32), accountant=curator._accountant, paid=offered.cost)
        for town, value in zip(*curator._finish(offered, measure(offered, allowance, fetch)).table, strict=True):
            found.setdefault(town.as_py(), []).append(value.as_py())
    return offered, found


@pytest.mark.parametrize("wanted", [0.5, pytest.param(0.9, marks=pytest.mark.slow), [0.25, 0.5, 0.75]], ids=str)
def test_quantiles_per_unknown_key_are_as_near_as_told(towns: Curator, wanted: float | list[float]) -> None:
    """Within the ranks that a quote tells, which hold for any data, with 95 % in every town."""
    offered, found = picked(towns, f"SELECT town, QUANTILE_CONT(income, {wanted}) AS q FROM people GROUP BY town")
    ranks, [width] = offered.ranks()["q"], offered.plan.blocks[0].picks[0].widths
    table = towns._fetch("SELECT town, income FROM main.people").unwrap()
    assert width == 3  # 10,001 values on 4,096 cells
    assert found.keys() == TOWNS.keys()
    for town, answers_ in found.items():
        cells = np.sort(table.column("income").to_numpy()[table.column("town").to_numpy() == town]) // width
        errors = _off(cells, np.atleast_1d(wanted), np.array(answers_, dtype=np.int64).reshape(PICKED, -1) // width)
        assert ((errors <= ranks).sum(axis=0) >= stats.binom.ppf(ALARM, PICKED, 0.95)).all()
        assert errors.max() > 0


def test_quantiles_per_unknown_key_are_as_near_as_their_mechanism_says(towns: Curator) -> None:
    """Within two ranks as often as by the mass of the choice, and not of one with a ninth or nine times the epsilon."""
    offered, found = picked(towns, "SELECT town, MEDIAN(shoe) AS q FROM people GROUP BY town")
    [[mechanism]], wrong = offered.blocks[0].picked, 0
    table = towns._fetch("SELECT town, shoe FROM main.people").unwrap()
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
    """Given the counts, by the mass of the choice; and not by that of a ninth or nine times the epsilon."""
    offered, found = picked(towns, "SELECT town, MODE(pet) AS pet FROM people GROUP BY town")
    [[mechanism]] = offered.blocks[0].picked
    table = towns._fetch("SELECT town, pet FROM main.people").unwrap()
    pets, wrong = ["cat", "dog", "fish", "none"], 0
    assert found.keys() == TOWNS.keys()
    for town, answers_ in found.items():
        own = table.column("pet").to_numpy()[table.column("town").to_numpy() == town]
        counts = [int((own == code).sum()) for code in range(4)]
        often = [answers_.count(pet) for pet in pets]
        assert _fits(often, mechanism, counts)
        wrong += sum(
            not _fits(often, replace(mechanism, epsilon=mechanism.epsilon * f), counts) for f in (Fraction(1, 9), 9)
        )
    assert wrong >= 1


def _fits(often: list[int], mechanism: Any, counts: list[int]) -> bool:
    """Each value's frequency, by the binomial; a value that cannot be chosen never is."""
    for seen, mass in zip(often, np.exp(mechanism.log_mass(counts)), strict=True):
        least, most = stats.binom.ppf([ALARM / 8, 1 - ALARM / 8], sum(often), min(float(mass), 1.0))
        if not least <= seen <= most:
            return False
    return True
