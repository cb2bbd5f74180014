"""Choices among runs of equal scores: each candidate as often as its weight says, and no float
decides a close race.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.errors import UsageError
from discreet.noise import Items, Stream, choose_runs, recording
from discreet.noise.choose_runs import Runs, _Real, _settle, choose_in_runs
from discreet.noise.tape import WordRequest

FALSE_ALARM = 1e-9
F = Fraction


def runs_of(*items: tuple[list[int], list[int]], dtype: Any = np.int64) -> Runs:
    """Items given by the lengths and the gaps of their runs; candidates are numbered through."""
    lengths = [length for each, _ in items for length in each]
    starts = [sum(each[:place]) for each, _ in items for place in range(len(each))]
    return Runs(
        begins=np.cumsum([0, *(len(each) for each, _ in items)]),
        starts=np.array(starts, dtype=dtype),
        lengths=np.array(lengths, dtype=dtype),
        gaps=np.array([gap for _, each in items for gap in each], dtype=dtype),
    )


def chosen(runs: Runs, *, unit: Any = 1, stream: Stream | None = None) -> NDArray[Any]:
    items = Items.positions(len(runs.begins) - 1)
    return choose_in_runs(Stream.fresh() if stream is None else stream, items, runs, unit=F(unit))


def fits(found: NDArray[Any], weights: NDArray[np.float64]) -> bool:
    seen = np.bincount(found.astype(np.int64), minlength=len(weights))
    expected = weights / weights.sum() * len(found)
    few = expected < 20
    if few.any():
        seen, expected = (np.append(each[~few], each[few].sum()) for each in (seen, expected))
    return bool(stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("dtype", [np.int64, object])
def test_candidates_are_chosen_by_their_weight(dtype: Any) -> None:
    lengths, gaps, many = (
        [3, 0, 1, 5, 0, 2],
        [4, 0, 0, 2, 9, 7],
        40_000 if dtype is np.int64 else 5_000,
    )
    found = chosen(runs_of(*[(lengths, gaps)] * many, dtype=dtype), unit=F(1, 2))
    by_cell = np.repeat(np.array(gaps, dtype=float), lengths)
    assert fits(found, np.exp(-by_cell / 2))
    assert not fits(found, np.exp(-by_cell / 3))


def test_items_of_different_widths_choose_as_each_does_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In chunks of one item and of many."""
    source = np.random.default_rng()
    items = []
    for _ in range(300):
        width = int(source.integers(1, 12))
        gaps = source.integers(0, 5, width)
        items.append((source.integers(1, 9, width).tolist(), (gaps - gaps.min()).tolist()))
    stream, runs, every = Stream.fresh(), runs_of(*items), Items.positions(300)
    whole = chosen(runs, stream=stream)
    monkeypatch.setattr(choose_runs, "_AT_ONCE", 5)
    assert (chosen(runs, stream=stream) == whole).all()
    for place in range(0, 300, 37):
        alone = choose_in_runs(
            stream, every.at(slice(place, place + 1)), runs_of(items[place]), unit=F(1)
        )
        assert alone.tolist() == [whole[place]]


def test_floats_and_integers_choose_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream.fresh()
    runs = runs_of(*[([1, 7, 0, 10**6], [0, 3, 1, 12])] * 400)
    by_floats = chosen(runs, stream=stream)
    monkeypatch.setattr(choose_runs, "_FLOAT_ERROR", 9.0)
    settled = list[int]()
    exactly = choose_runs._settle
    monkeypatch.setattr(choose_runs, "_settle", lambda *given: settled.append(1) or exactly(*given))
    assert (chosen(runs, stream=stream) == by_floats).all()
    assert len(settled) == 400


def crafted(word: int, second: int, runs: Runs, *, of_round: int = 0) -> NDArray[Any]:
    def craft(asked: WordRequest, drawn: NDArray[np.uint64]) -> NDArray[np.uint64]:
        if asked.path[-1][0] == "choose_in_runs" and asked.round == of_round:
            drawn[:] = np.array([word, second], dtype=np.uint64)
        return drawn

    with recording(craft=craft):
        return chosen(runs)


def test_a_real_at_a_border_is_settled_by_its_later_bits() -> None:
    """Weights 1 and 1/e: the border is at 1 / (1 + 1/e), which no float knows to 128 bits."""
    runs = runs_of(([1, 1], [0, 1]))
    low, high = choose_runs.exact.exp_minus(F(1), 300)
    border = (1 << 428) // ((1 << 300) + high)  # of 128 bits
    assert border == (1 << 428) // ((1 << 300) + low)
    for step, expected in ((-1, 0), (1, 1)):
        word, second = divmod(border + step, 1 << 64)
        assert crafted(word, second, runs).tolist() == [expected]
    # later bits, 97 in 100 of which say 1, are their own
    at_border = {int(crafted(*divmod(border, 1 << 64), runs)[0]) for _ in range(1500)}
    assert at_border == {0, 1}


def test_reals_at_the_ends_and_at_rational_borders() -> None:
    half = runs_of(([2, 0, 2, 0], [0, 5, 0, 0]))
    for word, second, expected in ((0, 0, {0, 1}), (2**64 - 1, 2**64 - 1, {2, 3}), (2**63, 0, {2, 3}),
                                   (2**63 - 1, 2**64 - 1, {0, 1})):  # fmt: skip
        assert set(crafted(word, second, half).tolist()) <= expected
    three = runs_of(([3], [0]))
    assert crafted(0, 0, three, of_round=1).tolist() == [0]
    assert crafted(2**64 - 1, 2**64 - 1, three, of_round=1).tolist() == [2]
    # the next bits decide between the first and the second
    third = divmod((1 << 128) // 3, 1 << 64)
    assert {int(crafted(*third, three, of_round=1)[0]) for _ in range(60)} == {0, 1}


def test_a_choice_settled_by_integers_has_the_right_mass() -> None:
    """`_settle` alone, over an even grid of reals: run j gets its share of them, to one."""
    lengths, gaps, unit, cells = np.array([2, 0, 1, 4]), np.array([3, 0, 0, 1]), F(2, 3), 997
    found = [0] * 4
    for place in range(cells):
        word = (place << 64) // cells
        real = _Real(
            words=np.array([word, 0], dtype=np.uint64),
            source=Stream.fresh(),
            purpose="which",
            item=b"",
        )
        found[_settle(lengths, gaps, unit, real)] += 1
    weights = [2 * exp(-2), 0, 1, 4 * exp(-2 / 3)]
    assert all(
        abs(seen - cells * each / sum(weights)) < 1.5
        for seen, each in zip(found, weights, strict=True)
    )


def test_runs_of_any_length_and_gaps_of_any_size() -> None:
    long = runs_of(([2**70, 1, 2**70], [1, 0, 1]), dtype=object)
    found = [int(chosen(long)[0]) for _ in range(50)]
    assert min(found) < 2**70 < max(found)
    assert chosen(runs_of(([2**70, 1, 2**70], [200, 0, 10**30]), dtype=object)).tolist() == [2**70]
    assert chosen(runs_of(([1, 1], [2**62, 0])), unit=10**300).tolist() == [1]
    assert (
        chosen(
            Runs(
                begins=np.array([0]), starts=np.zeros(0), lengths=np.zeros(0), gaps=np.zeros(0, int)
            )
        ).size
        == 0
    )


def test_draws_do_not_depend_on_runs() -> None:
    """S14: the same words are asked for and the same draw is noted, whatever the runs."""
    asked = []
    for runs in (
        runs_of(([5], [0]), ([1, 1], [0, 3])),
        runs_of(([1, 9, 1], [2, 0, 2]), ([7], [0])),
    ):
        with recording() as tape:
            chosen(runs)
        asked.append(
            (tape.draws, [(each.path, each.round, each.ids.tolist()) for each in tape.asked])
        )
    assert asked[0] == asked[1]


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="runs for 1 items, not for 2"):
        choose_in_runs(Stream.fresh(), Items.positions(2), runs_of(([1], [0])), unit=F(1))
    with pytest.raises(UsageError, match="negative"):
        chosen(runs_of(([1], [0])), unit=-1)
