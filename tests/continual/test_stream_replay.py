"""Record and replay over neighbors that differ in one person's whole history (S14), through the
door.

With the same draws, all that differs in what leaves is C u: what that person contributed. It must
be within what the ledger was charged for.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_release import Visit, after, opened, tables

from discreet.mechanisms import from_row
from discreet.noise.tape import Recording, SamplerCall, recording

OTHERS: list[Visit] = [
    (person, (person * 5) % 8, ("Hill", "Harbor")[person % 2], 3.0) for person in range(2, 40)
]
FULL: list[Visit] = [(1, day, "Hill", 100.0 - number) for day in range(8) for number in range(4)]
ELSEWHERE: list[Visit] = [(person, day, "Harbor", cost) for person, day, _, cost in FULL]
COUNT = "SELECT clinic, COUNT(*) AS visits FROM visits GROUP BY clinic"
SUMS = "SELECT COUNT(*) AS visits, SUM(cost) AS cost, SUM(balance) AS balance FROM visits"
SETTINGS = {
    "periods": "8",
    "epsilon": "1",
    "publish": "[cumulative, 3]",
    "person": "{periods: 3, rows: 2}",
}


def released(
    folder: Path, history: list[Visit], replay: Recording | None, **settings: str
) -> tuple[list[Any], list[SamplerCall], list[Any], Recording]:
    """What left, the private draws, the mechanisms in the ledger, and the recording."""
    folder.mkdir()
    live = tables([])
    with recording(replay=replay) as tape:
        curator = opened(folder, live, **{**SETTINGS, **settings})
        release = curator.release("daily_visits")
        release.start()
        for day in (1, 4, 8):  # the person's rows arrive with those of others
            live.update(tables([each for each in [*OTHERS, *history] if each[1] < day]))
            series = release.run(after(day))
    draws = [
        draw for draw in tape.draws if any("measurement" in map(str, part) for part in draw.path)
    ]
    row = next(row for row in curator._ledger.rows() if row["kind"] == "charge")
    return list(series.noisy), draws, [from_row(each) for each in row["mechanisms"]], tape


def moved(base: list[Any], other: list[Any], measurement: int) -> list[int]:
    """By how much what left differs, number by number."""
    pairs = zip(base, other, strict=True)
    parts = [
        np.subtract(*(np.array(each[measurement], dtype=object) for each in pair)).ravel()
        for pair in pairs
    ]
    return [int(each) for each in np.concatenate(parts)]


@pytest.mark.parametrize("neighbors", ["add_remove", "change_one"])
@pytest.mark.parametrize("accountant", ["sum", "zcdp"])
@pytest.mark.parametrize("question", [COUNT, SUMS], ids=["count", "sums"])
def test_neighbors_differ_by_no_more_than_was_paid(
    tmp_path: Path, question: str, accountant: str, neighbors: str
) -> None:
    publish = "[daily]" if accountant == "sum" else "[cumulative, 3]"
    settings = {
        "question": question,
        "accountant": accountant,
        "neighbors": neighbors,
        "publish": publish,
    }
    base, draws, mechanisms, tape = released(tmp_path / "base", FULL, None, **settings)
    history = ELSEWHERE if neighbors == "change_one" and question == COUNT else []
    other, others, again, _ = released(tmp_path / "other", history, tape, **settings)
    assert mechanisms == again
    assert draws == others  # purposes, sampler, scale, number and names of all draws
    largest = Fraction(0)
    for index, mechanism in enumerate(mechanisms):
        difference = moved(base, other, index)
        if accountant == "zcdp":
            share = sum(each**2 for each in difference) / Fraction(mechanism.l2_squared)
        else:
            share = sum(abs(each) for each in difference) / Fraction(mechanism.l1)
        assert share <= 1
        largest = max(largest, share)
    near = Fraction(2, 5) if question == SUMS else Fraction(9, 10)
    assert largest > near, "this history does not come near the claim, so the test could not fail"


def test_draws_of_a_tree_do_not_depend_on_data(tmp_path: Path) -> None:
    settings = {"publish": "[cumulative]", "accountant": "sum", "periods": "60"}
    base, draws, _, tape = released(tmp_path / "base", FULL, None, **settings)
    other, others, _, _ = released(tmp_path / "other", [], tape, **settings)
    assert draws == others
    assert max(draw.count for draw in draws) > 2 * 2  # several nodes on a total
    # Periods and totals of one clinic: the same noise on both, so the person's two rows a day in
    # three periods show.
    assert (
        moved(base, other, 0)
        == [n for total in (2, 4, 6) for n in (2, 0, total, 0)] + [0, 0, 6, 0] * 5
    )


def test_draws_of_different_steps_are_different(tmp_path: Path) -> None:
    _, draws, _, _ = released(tmp_path / "one", OTHERS, None, accountant="zcdp")
    assert len(draws) == 8
    assert len({draw.ids for draw in draws}) == 8


def test_the_ledger_row_says_what_was_drawn(tmp_path: Path) -> None:
    _, draws, mechanisms, _ = released(
        tmp_path / "one", OTHERS, None, accountant="zcdp", epsilon="0.5"
    )
    assert {Fraction(draw.scale) for draw in draws} == {mechanisms[0].sigma}
    assert {draw.sampler for draw in draws} == {"discrete_gaussian"}
