"""What is said about errors is true: before, of least squares; after, of whole numbers, bias
included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

import discreet
from discreet.binding import create_ledger
from discreet.census.counts import Counts
from discreet.examples import country
from discreet.policy.policy import Policy


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Counts]]:
    folder = tmp_path_factory.mktemp("country")
    path = country.build(folder, people=12_000)
    create_ledger(Policy.read(path))
    found = discreet.open(path).publication("census_2030").run()
    plan = found.plan
    people = pyarrow.parquet.read_table(folder / "data" / "people.parquet")
    names = {name: place for place, name in enumerate(plan.places.names[-1])}
    block = np.array([names[each] for each in people.column("block").to_pylist()])
    cell = np.zeros(len(block), dtype=np.int64)
    for axis in plan.axes:
        cell = cell * axis.size + axis.codes(people.column(axis.name))
    ones = np.ones(len(block), dtype=np.int64)
    levels = range(len(plan.places.levels))
    return found, [
        Counts(place=plan.places.above(level)[block], cell=cell, count=ones) for level in levels
    ]


def test_least_squares_vary_as_the_quote_says(published: tuple[Any, list[Counts]]) -> None:
    """Mean squared errors of many cells over what is claimed: near 1 at the levels with many
    cells.
    """
    from discreet.census.errors import expect

    found, truth = published
    plan = found.plan
    claims = {(each.level, each.table): each.deviation for each in expect(plan)}
    for level in (3, 4, 5):
        size = plan.places.sizes[level]
        table = plan.grid.tables[3]
        exact = truth[level].table(plan.grid, table, size)
        gap = found._least_squares[level][table] - exact
        ratio = float((gap**2).mean()) / claims[plan.places.levels[level], plan.names[3]] ** 2
        # of 16,000 cells and more, of which an eighth is known to be nobody
        assert 0.8 < ratio < 1.2
    measured = found.noisy[5, 3] - truth[5].table(
        plan.grid, plan.grid.tables[3], plan.places.sizes[5]
    ).reshape(plan.places.sizes[5], -1)
    margin = plan.noises[5][3].margin(0.95)
    assert 0.945 < (np.abs(measured) <= margin).mean() < 0.99
    assert found._least_squares[5][table].var() < measured.var() + 50


def test_whole_numbers_err_as_the_margins_say(published: tuple[Any, list[Counts]]) -> None:
    """Errors of one run beside those that were simulated from its own release."""
    found, truth = published
    plan = found.plan
    rows = {
        (row["level"], row["table"], row["from"]): row
        for row in found.margins.to_pylist()
        if row["of"] == "cell"
    }
    for name in ("adult_hispanic_race", "living_adult_hispanic_race"):
        table = plan.grid.tables[plan.names.index(name)]
        for level in (4, 5):
            size = plan.places.sizes[level]
            exact = truth[level].table(plan.grid, table, size).ravel()
            gap = found.counts(level, table).ravel() - exact
            for low, high in ((0, 1), (1, 10), (10, 100)):
                row = rows[plan.places.levels[level], name, low]
                here = gap[(exact >= low) & (exact < high)]
                assert 0.4 * row["error"] - 0.05 < np.abs(here).mean() < 2.5 * row["error"] + 0.05
            nobody = rows[plan.places.levels[level], name, 0]
            # a count of nobody can only be too high
            assert nobody["bias"] == pytest.approx(nobody["error"])
            assert nobody["bias"] > 0


def test_margins_are_a_function_of_what_was_released(published: tuple[Any, list[Counts]]) -> None:
    """Whoever has the release finds the same."""
    from discreet.census.errors import make_whole, simulate

    found, _ = published
    people = make_whole(found.plan, found.noisy)
    assert np.array_equal(people[-1].count, found.people.count)
    assert simulate(found.plan, people).equals(found.margins)


def test_margins_of_whole_numbers_cover(published: tuple[Any, list[Counts]]) -> None:
    """Of the cells of every class of published counts, 95 % lie within its margin; classes
    together, and with slack.
    """
    found, truth = published
    plan = found.plan
    inside = number = 0
    for row in found.margins.to_pylist():
        level, table = (
            plan.places.levels.index(row["level"]),
            plan.grid.tables[plan.names.index(row["table"])],
        )
        if row["of"] == "cell" and row["from"] > 0 and level:
            counts = found.counts(level, table)
            exact = (
                truth[level].table(plan.grid, table, plan.places.sizes[level]).reshape(counts.shape)
            )
            here = (counts >= row["from"]) & (counts < (row["below"] or np.inf))
            inside += int((np.abs(counts - exact)[here] <= row["margin"]).sum())
            number += int(here.sum())
    assert number > 5_000
    assert inside / number > 0.95
