"""Record and replay over neighbors (S14): what leaves depends on the data through noisy counts
alone.
"""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tiny_country import opened, policy_text, tables

from discreet.audit.replay import differences, find_shared_noise
from discreet.census.measure import measure
from discreet.door import make_allowance
from discreet.vault.exact import Exact
from test_replay import transcripts

NOTHING_EXACT = "no published number is a function of anything but what was released"


@pytest.mark.parametrize(
    ("neighbors", "accountant"), [("add_remove", "sum"), ("change_one", "zcdp")]
)
def test_replay(
    tmp_path: Path, neighbors: str, accountant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given that the same has left, the whole publication is the same, byte for byte, with or
    without a person.

    Rounding that looked at exact numbers, or a total that left without noise, would make a
    difference here.
    """
    pair = []
    for victim in (True, False):
        folder = tmp_path / str(victim)
        folder.mkdir()
        text = policy_text(neighbors=neighbors, accountant=accountant, epsilon=1)
        pair.append(opened(folder, text, tables(victim=victim)))
    published: list[Any] = []
    found = transcripts(
        pair, lambda each: published.append(each.publication("census").run()), monkeypatch
    )
    measured = [
        noise
        for row in pair[0].publication("census").plan.noises
        for noise in row
        if noise is not None
    ]
    assert len(found[0].steps) == len(measured)
    assert all(step.draws for step in found[0].steps), "a number left without noise"
    assert not differences(*found)
    assert not find_shared_noise(found[0])
    assert published[0].noisy.keys() == published[1].noisy.keys()
    for key in published[0].noisy:
        assert np.array_equal(published[0].noisy[key], published[1].noisy[key])
    assert published[0].to_bytes() == published[1].to_bytes(), NOTHING_EXACT


def test_every_number_has_noise_of_its_own(tmp_path: Path) -> None:
    """With the same noise the neighbors' measurements differ by the person alone; and no two cells
    share noise.
    """
    curator = opened(tmp_path, policy_text(epsilon=1))
    published = curator.publication("census").run()
    people = tables()["people"].to_pylist()
    exact = [
        sum(row["block"] == block and row["sex"] == sex for row in people)
        for block in "abcdef"
        for sex in "FM"
    ]
    noise = published.noisy[3, 1].ravel() - np.array(exact)
    deviation = published.plan.noises[3][1].deviation  # type: ignore[union-attr]
    assert 0 < np.abs(noise).mean() < 6 * deviation
    assert len(set(noise.tolist())) > 3
    upper = published.noisy[2, 1].ravel() - np.array(exact).reshape(3, 2, 2).sum(axis=1).ravel()
    assert not np.array_equal(noise.reshape(3, 2, 2).sum(axis=1).ravel(), upper)


def test_all_levels_together_tell_as_much_as_was_paid_for(tmp_path: Path) -> None:
    """The best test of one person over all levels and tables at once, run many times on both
    neighbors.

    Under Gaussian noise its means lie sqrt(2ρ) deviations apart, where ρ is the whole charge:
    farther, and some level or table was not paid for; nearer, and the noise is more than was paid
    for.
    """
    run = opened(tmp_path, policy_text(epsilon=6)).publication("census")
    plan = run.plan
    people = [(0, 0, 1, 1)] * 5 + [(4, 1, 2, 0)] * 3  # block, sex, age, ill
    victim = (4, 1, 2, 0)

    def exact(rows: list[tuple[int, ...]]) -> Exact:
        columns = {
            f"k{place}": pa.array([row[place] for row in rows], pa.int64()) for place in range(4)
        }
        return Exact(pa.table({**columns, "s0": pa.array([1] * len(rows), pa.int64())}))

    cells = {}
    for level, table in itertools.product(range(len(plan.places.levels)), range(len(plan.names))):
        maps, sizes = plan.maps(level, plan.grid.tables[table])
        place = [int(each[code]) for each, code in zip(maps, victim, strict=True)]
        cells[level, table] = int(np.ravel_multi_index(place, sizes))

    def statistic(rows: list[tuple[int, ...]]) -> float:
        allowance = make_allowance(os.urandom(32), run.accountant, plan.cost)
        noisy = measure(plan, allowance, lambda _: exact(rows))
        parts = [
            noisy[key].ravel()[cell] / float(plan.noises[key[0]][key[1]].spread) ** 2
            for key, cell in cells.items()
        ]
        return float(sum(parts))

    times = 150
    with_, without = (
        np.array([statistic(rows) for _ in range(times)]) for rows in ([*people, victim], people)
    )
    apart = (with_.mean() - without.mean()) / np.sqrt((with_.var() + without.var()) / 2)
    claimed = math.sqrt(2 * plan.cost.amount)
    assert 1 < claimed < 3
    assert abs(apart - claimed) < 0.8  # a deviation of it is about 0.12
