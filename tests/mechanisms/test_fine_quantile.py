"""A quantile by runs: every cell has the score of its definition, margins and extremes hold on the
worst data.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from by_definition import epsilon, rho
from discreet.errors import UsageError
from discreet.mechanisms import FineQuantile, Quantile
from discreet.mechanisms.fine_quantile import reach_for
from discreet.mechanisms.shapes import Near
from discreet.noise import Items, Stream

F = Fraction
HALF = FineQuantile(epsilon=F(1), q=F(1, 2), cells=5, max_rows=1, neighbors="add_remove", reach=2)
QUANTILES = (F(0), F(1, 4), F(1, 2), F(9, 10), F(1))
TABLES = np.array(list(itertools.product(range(4), repeat=5)))


def near(counts: Any) -> Near:
    """All cells of tables that hold rows."""
    group, cell = np.nonzero(counts)
    upto = counts.cumsum(axis=1)
    before = (upto - counts)[group, cell]
    return Near(
        group=group, cell=cell, rows=counts[group, cell], before=before, total=upto[group, -1]
    )


def behind(mechanism: FineQuantile, given: Near, groups: int) -> Any:
    """How far each cell is behind the best of its group, from the runs."""
    runs = mechanism.runs(given, groups)
    found = []
    for begin, end in itertools.pairwise(runs.begins.tolist()):
        starts, lengths = runs.starts[begin:end], runs.lengths[begin:end]
        # one after another
        assert (starts[lengths > 0] == np.append(0, lengths.cumsum())[:-1][lengths > 0]).all()
        found.append(np.repeat(runs.gaps[begin:end], lengths.astype(int)))
    return np.array(found)


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("shift", [0, -2, 3])
@pytest.mark.parametrize("reach", [1, 2, 100])
def test_runs_give_every_cell_its_score(q: Fraction, shift: int, reach: int) -> None:
    """On all tables of 5 cells with up to 3 rows each; and the scores are those of `Quantile`, cut
    at the reach.
    """
    mechanism = dataclasses.replace(HALF, q=q, shift=shift, reach=reach)
    scores = mechanism.scores(TABLES)
    plain = Quantile(
        epsilon=F(1),
        q=q,
        cells=5,
        max_rows=1,
        neighbors="add_remove",
        choice="exponential",
        shift=shift,
    )
    assert (scores == np.maximum(plain.scores(TABLES), -reach * q.denominator)).all()
    assert (
        behind(mechanism, near(TABLES), len(TABLES)) == scores.max(axis=1)[:, None] - scores
    ).all()


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("reach", [1, 2])
def test_cells_out_of_reach_need_not_be_read(q: Fraction, reach: int) -> None:
    """What SQL leaves out changes nothing, and what remains is no more than told."""
    mechanism = dataclasses.replace(HALF, q=q, reach=reach)
    every = near(TABLES)
    wanted = q * every.total
    away = np.maximum(every.before - wanted, wanted - every.before - every.rows)
    kept = np.flatnonzero([each < reach for each in away])
    some = Near(
        **{field.name: getattr(every, field.name)[kept] for field in dataclasses.fields(every)}
    )
    assert len(kept) < len(every.cell)
    assert np.bincount(some.group).max() <= mechanism.most_near
    assert (behind(mechanism, some, len(TABLES)) == behind(mechanism, every, len(TABLES))).all()


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
@pytest.mark.parametrize("q", [F(1, 2), F(9, 10), F(1)])
@pytest.mark.parametrize("reach", [1, 3, 50])
def test_every_small_neighbor(neighbors: Any, q: Fraction, reach: int) -> None:
    mechanism = dataclasses.replace(
        HALF, q=q, cells=3, max_rows=2, neighbors=neighbors, reach=reach, shift=-1
    )
    mine = [
        np.bincount(rows, minlength=3)
        for n in range(3)
        for rows in itertools.product(range(3), repeat=n)
    ]
    claimed = float(mechanism.loss().rho or 0)
    for others in itertools.product(range(3), repeat=3):
        masses = [dict(enumerate(mechanism.log_mass(np.array(others) + own))) for own in mine]
        for a, b in itertools.combinations(range(len(mine)), 2):
            if neighbors == "change_one" or not mine[a].any():
                assert epsilon(masses[a], masses[b]) <= 1 + 1e-9
                assert rho(masses[a], masses[b], orders=(1.01, 2, 8)) <= claimed + 1e-9


@pytest.mark.parametrize("at", [F(1, 10), F(3)])
@pytest.mark.parametrize("cells", [3, 101, 2 * 10**7, 2**70])
def test_a_margin_covers_exactly(at: Fraction, cells: int) -> None:
    """Worst case: all rows in one cell, and as many as put every other cell just beyond the
    margin.
    """
    grid: dict[str, Any] = {
        "epsilon": at,
        "q": F(1, 2),
        "cells": cells,
        "max_rows": 1,
        "neighbors": "add_remove",
    }
    mechanism = FineQuantile(**grid, reach=reach_for(**grid))
    margin = mechanism.margin(F(19, 20))
    assert margin < mechanism.reach

    def chance_within(ranks: int) -> float:
        rows = np.array([2 * ranks + 1])  # all other cells are ranks + 1/2 away
        alone = Near(
            group=np.zeros(1, int),
            cell=np.array([cells // 2], dtype=object),
            rows=rows,
            before=rows * 0,
            total=rows,
        )
        runs = mechanism.runs(alone, 1)
        weights = [
            float(n) * math.exp(-gap / mechanism.mechanism.scale)
            for n, gap in zip(runs.lengths, runs.gaps, strict=True)
        ]
        return weights[1] / math.fsum(weights)

    assert chance_within(margin) >= 0.95 > chance_within(margin - 1)


def test_counts_beyond_64_bits() -> None:
    mechanism = dataclasses.replace(HALF, q=F(333_333, 1_000_000), cells=4, reach=10**30)
    counts = np.array([2**60, 2**60, 2**60, 1])
    assert mechanism.choose(counts, Stream.fresh()) == 0
    assert dataclasses.replace(mechanism, reach=7).choose(counts, Stream.fresh()) == 0


def test_groups_without_rows_choose_evenly() -> None:
    found = HALF.choose_each(
        np.zeros((20_000, 5), dtype=np.int64), Stream.fresh(), Items.positions(20_000)
    )
    assert (abs(np.bincount(found) - 4_000) < 6.5 * (20_000 * 0.16) ** 0.5).all()


@pytest.mark.parametrize(
    "wrong", [{"shift": True}, {"shift": 1.0}, {"reach": 0}, {"q": F(2)}, {"cells": 0}]
)
def test_what_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        dataclasses.replace(HALF, **wrong)
