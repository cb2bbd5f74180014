"""Many choices at once: the same race as one at a time, decided by integers wherever floats
cannot.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.errors import UsageError
from discreet.noise import Items, Stream, choose_each, recording
from discreet.noise.choose_each import noisy_max_each, noisy_top_each

F = Fraction
KINDS = ("exponential", "gumbel")


def chosen(
    scores: Any, *, k: int = 1, unit: Any = 1, kind: Any = "gumbel", stream: Stream | None = None
) -> Any:
    own = Stream.fresh() if stream is None else stream
    return noisy_top_each(own, Items.positions(len(scores)), scores, k=k, unit=F(unit), kind=kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_floats_and_integers_choose_alike(
    kind: Any, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With bounds so wide that nothing is sure, every row is raced in integers, from the same
    words.
    """
    stream, scores = Stream.fresh(), np.tile([0, 3, 1, 2], (150, 1))
    by_floats = chosen(scores, k=k, kind=kind, stream=stream)
    bounds, ranked = choose_each._bounds, choose_each._rank
    raced: list[int] = []

    def wide(*asked: Any) -> Any:
        low, high = bounds(*asked)
        return low - 99, high + 99

    def counted(racers: Any, k: int) -> Any:
        raced.append(len(racers))
        return ranked(racers, k)

    monkeypatch.setattr(choose_each, "_bounds", wide)
    monkeypatch.setattr(choose_each, "_rank", counted)
    assert (chosen(scores, k=k, kind=kind, stream=stream) == by_floats).all()
    assert raced == [4] * 150


@pytest.mark.parametrize("kind", KINDS)
def test_equal_words_are_raced_and_words_near_the_ends_too(kind: Any) -> None:
    """Crafted: all candidates of a row have the same two words, the smallest or the largest; more
    bits decide.
    """
    for word in (0, 1, 2**33, 2**63, 2**64 - 1):
        with recording(
            craft=lambda asked, words, w=word: np.full_like(words, w) if asked.round == 1 else words
        ):
            # one of three is missing: 1e-17
            places = chosen(np.zeros((100, 3), dtype=np.int64), kind=kind)
        assert set(np.ravel(places)) == {0, 1, 2}


def test_only_those_that_may_win_are_raced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100,000 candidates two have a word near 0, which floats cannot bound: these are raced, and
    not them all.
    """
    raced: list[int] = []
    ranked = choose_each._rank
    monkeypatch.setattr(
        choose_each, "_rank", lambda racers, k: raced.append(len(racers)) or ranked(racers, k)
    )

    def small(asked: Any, words: Any) -> Any:
        if asked.round == 1:
            # or one in 10,000 times a third would be below 2^34 by itself
            words = np.maximum(words, 2**40)
            words[[500, 600], 0] = 2**20
        return words

    with recording(craft=small):
        assert chosen(np.zeros((1, 100_000), dtype=np.int64))[0, 0] in (500, 600)
    assert raced == [2]


def test_an_item_has_its_choice_whatever_stands_beside_it() -> None:
    stream, scores, some = (
        Stream.fresh(),
        np.tile(np.arange(6) % 4, (500, 1)),
        np.array([400, 3, 77]),
    )
    whole = chosen(scores, k=2, stream=stream)
    items = Items.positions(500).at(some)
    assert (
        noisy_top_each(stream, items, scores[some], k=2, unit=F(1), kind="gumbel") == whole[some]
    ).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.int64, object])
def test_items_with_more_and_fewer_candidates_choose_as_those_of_each_width_do(
    kind: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks of several widths and of one; what stands behind the candidates of an item is high,
    and not chosen.
    """
    monkeypatch.setattr(choose_each, "_CELLS", 64)
    stream, items = Stream.fresh(), Items.positions(200)
    widths = np.sort(np.random.default_rng().integers(1, 30, 200))
    scores = np.where(np.arange(30) < widths[:, None], np.arange(30) % 7, 99).astype(dtype)

    def some(start: int, stop: int) -> Any:
        return scores[start:stop, : widths[stop - 1]]

    found = noisy_max_each(stream, items, widths, some, unit=F(1, 3), kind=kind)
    for width in np.unique(widths).tolist():
        of_width = np.flatnonzero(widths == width)
        alike = scores[of_width, :width]
        alone = noisy_top_each(stream, items.at(of_width), alike, k=1, unit=F(1, 3), kind=kind)
        assert (found[of_width] == alone[:, 0]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_any_size(kind: Any) -> None:
    huge = np.array([[-(2**62), 2**62], [2**62, -(2**62)]])
    assert chosen(huge, kind=kind).ravel().tolist() == [1, 0]
    beyond = np.array([[2**100, 2**100 + 10**6], [5, 1]], dtype=object)
    assert chosen(beyond, unit=100, kind=kind).ravel().tolist() == [1, 0]


def test_unit_zero_is_a_uniform_choice() -> None:
    counts = np.bincount(chosen(np.tile([0, 10**9, -5], (60_000, 1)), unit=0).ravel())
    assert (abs(counts - 20_000) < 6.5 * (60_000 * 2 / 9) ** 0.5).all()


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="3 of 2 candidates"):
        chosen(np.zeros((1, 2), dtype=np.int64), k=3)
    with pytest.raises(UsageError, match="'exponential' or 'gumbel'"):
        chosen(np.zeros((1, 2), dtype=np.int64), kind="laplace")
    with pytest.raises(UsageError, match="2 rows of scores for 3 items"):
        noisy_top_each(
            Stream.fresh(),
            Items.positions(3),
            np.zeros((2, 2), dtype=int),
            k=1,
            unit=F(1),
            kind="gumbel",
        )
    with pytest.raises(UsageError, match="integers"):
        chosen(np.zeros((1, 2)))
