"""Totals of numbers that few rows hold: what they are, how far one person moves them, and when they
are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet
from discreet import door
from discreet.accounting import ZcdpAccountant
from discreet.audit import replay
from discreet.audit.replay import Transcript
from discreet.budget import Charge
from discreet.mechanisms import from_row
from discreet.policy.domain import Column, Integers
from discreet.synthetic import describe as module
from discreet.synthetic.columns.axis import Axis
from discreet.synthetic.marginals import Marginals
from discreet.synthetic.synthesizers import totals
from discreet.synthetic.synthesizers.totals import MOST, SHARE, Blur
from discreet.vault.allowance import Allowance
from synthetic.test_scarce import opened, paid, watching

LAST = 29  # of the numbers of a small table
CELLS = 10  # of the grid for their total: three numbers each


def marginals(folder: Path, people: Sequence[Sequence[int | None]], **named: Any) -> Marginals:
    """The counts of a table of one number, in which every person has some rows, almost exact."""
    values = [value for own in people for value in own]
    owners = [number for number, own in enumerate(people) for _ in own]
    columns = {"x": (f"integer: [0, {LAST}], nullable: true", values)}
    curator = opened(folder, columns, owners, **named)
    plenty = Charge(amount=Fraction(10**9))
    accountant = ZcdpAccountant(delta_convert=Fraction(1, 10**6))
    purse = module.Purse(accountant=accountant, amount=plenty.amount, limit=plenty)
    work = module.commission(curator.policy, "t", purse, synthesizer="default")
    return Marginals(
        axes=work.axes,  # type: ignore[arg-type]  # none of them is to be found first
        source=work.source,
        accountant="zcdp",
        amount=plenty.amount,
        allowance=Allowance(key=b"k" * 32, accountant=accountant, paid=plenty),
        fetch=curator._view.fetch,
    )


def grid(data: Marginals) -> Axis:
    return Axis(column=data.axes[0].column, bins=CELLS)


@pytest.mark.parametrize("falling", [False, True])
def test_a_total_is_that_of_the_rows(falling: bool, tmp_path: Path) -> None:
    """With next to no noise, against the cells row by row; a missing number adds nothing."""
    people = [[None if i % 5 == 0 else i * i % (LAST + 1)] for i in range(60)]
    data = marginals(tmp_path, people)
    cells = [value * CELLS // (LAST + 1) for [value] in people if value is not None]
    expected = sum(CELLS - 1 - cell if falling else cell for cell in cells)
    found = data.total(grid(data), falling=falling, share=0.5)
    assert abs(found - expected * (LAST + 1) / CELLS) < 0.01
    assert data.total_std(grid(data), share=0.5) < 0.01


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize(("neighbors", "factor"), [("add_remove", 1), ("change_one", 2)])
def test_one_person_moves_a_total_by_no_more_than_is_claimed(
    neighbors: str, factor: int, max_rows: int, falling: bool, tmp_path: Path
) -> None:
    """All that one person may have, beside others; and some move the total by all that is claimed,
    if somebody in her place may have nothing.
    """
    others: list[list[int | None]] = [[3], [17], [None], [LAST]]
    own: list[list[int | None]] = [[], *([value] * max_rows for value in (None, 0, 7, 15, LAST))]
    if max_rows == 2:
        own += [[0, LAST], [None, 12]]
    with watching() as seen:
        for number, rows in enumerate(own):
            folder = tmp_path / str(number)
            data = marginals(folder, [*others, rows], neighbors=neighbors, max_rows=max_rows)
            data.total(grid(data), falling=falling, share=1)
    claim = seen.sums[0]
    assert claim["mechanism"].l2_squared >= claim["moved"].l2_squared
    assert claim["moved"].l1 == factor * max_rows * (CELLS - 1)
    pairs = combinations(seen.points, 2)
    apart = [abs(a - b) for a, b in pairs]
    assert max(apart) * factor == claim["moved"].l1
    assert max(apart) ** 2 <= claim["moved"].l2_squared


def test_counts_are_moved_to_agree_with_a_total_and_keep_their_sum() -> None:
    """Most where they are least certain; NULL stays as it is."""
    column = Column(name="x", domain=Integers(lo=0, hi=99), nullable=True)
    blur = Blur(
        column=0,
        fine=Axis(column=column, bins=100),
        falling=False,
        places=np.array([0.0, 10.0, 99.0]),
        spread=np.array([100.0, 1.0, 100.0]),
        error=700.0,
    )
    counts = np.array([900.0, 5.0, 60.0, 35.0])
    moved = blur.moved(counts, 50 + 99 * 80, 1e-6)
    assert moved.sum() == pytest.approx(1000)
    assert moved[3] == 35
    assert moved[2] == pytest.approx(80, abs=1)
    assert abs(moved[1] - 5) < 1
    # a total that is as uncertain as the counts moves them half as far
    half = blur.moved(counts, 50 + 99 * 80, 700.0)
    assert half[2] == pytest.approx((60 + moved[2]) / 2, abs=0.5)
    assert (blur.moved(counts, -(10.0**9), 1e-6) >= 0).all()


# --- in a description -----------------------------------------------------------------------------

ROWS = 3000
TOP = 99_999
WIDE = [f"c{number}" for number in range(7)]


def gains(folder: Path, people: int = ROWS, first: int = TOP, **named: Any) -> discreet.Curator:
    """A curator of people of whom few hold nearly all of a total; the first one has `first`."""
    draws = np.random.default_rng(5)
    gain = np.where(np.arange(ROWS) % 100 == 0, TOP, 0)
    gain[0] = first
    columns: dict[str, Any] = {"gain": (f"integer: [0, {TOP}]", gain[:people].tolist())}
    for name in WIDE:
        columns[name] = ("integer: [0, 98]", draws.integers(0, 99, ROWS)[:people].tolist())
    return opened(folder, columns, range(people), **named)


def test_a_blurred_total_is_asked_for_and_paid(tmp_path: Path) -> None:
    """Of the wide columns none is: their means are known from their cells."""
    curator = gains(tmp_path)
    with watching() as seen:
        made = curator.describe("t", epsilon=8)
    [summed] = seen.sums
    assert seen.points == [30 * TOP]
    assert summed["moved"].l1 == TOP
    amount, used = paid(curator)
    assert used <= amount
    losses = [from_row(row).loss() for row in made.certificate["mechanisms"]]
    assert sum(loss.rho for loss in losses) == used
    [told] = [row for row in made.certificate["mechanisms"] if row["l2_squared"] == str(TOP**2)]
    share = float(from_row(told).loss().rho / amount)
    assert min(SHARE, MOST) * 0.9 < share <= min(SHARE, MOST)


def test_few_columns_need_no_total(tmp_path: Path) -> None:
    """Their histograms get more than a total would."""
    with watching() as seen:
        gains(tmp_path).describe("t", epsilon=8, columns=["gain", "c0"])
    assert not seen.sums


@pytest.mark.parametrize(
    ("neighbors", "other"),
    [("add_remove", {"people": ROWS - 1}), ("change_one", {"first": 0})],
)
def test_replayed_on_neighbors(
    neighbors: str, other: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a person, or with another in her place, the same draws at the same scales; for every
    total that could be asked for.
    """
    monkeypatch.setattr(totals, "BLURRED", -1.0)
    monkeypatch.setattr(Marginals, "total_std", lambda *given, **named: 0.1)
    found: list[Transcript] = []
    for curator in (
        gains(tmp_path / "one", neighbors=neighbors),
        gains(tmp_path / "two", neighbors=neighbors, **other),
    ):

        def witnessed(witness: Any, curator: discreet.Curator = curator) -> Any:
            monkeypatch.setattr(door, "Allowance", lambda **named: witness(Allowance(**named)))
            return curator.describe("t", epsilon=16, columns=["gain", "c0", "c1"])

        found.append(replay.record(witnessed, replay=found[0] if found else None)[0])
    assert [step.name for step in found[0].steps].count("sums") == 3
    assert not replay.differences(*found)
    assert not replay.find_shared_noise(found[0])
