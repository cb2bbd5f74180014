"""The hook: it sees every draw, a replay meets the same words, and it leaves nothing behind."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from discreet.noise import (
    Items,
    Stream,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    noisy_max,
    permutation,
    recording,
    uniform,
)
from discreet.noise.tape import active


def charge(stream: Stream, rows: list[tuple[object, ...]]) -> list[int]:
    """What a charge does: items by group key, a stream for each statistic."""
    items = Items.keys(rows, stream)
    count = discrete_laplace(stream.derive("statistic", 0), items, Fraction(1000))
    total = discrete_gaussian(stream.derive("statistic", 1), items, Fraction(5))
    return [*count.tolist(), *total.tolist(), stream.derive("coin").bits(64)]


def test_a_replay_meets_the_same_words_under_other_keys() -> None:
    rows: list[tuple[object, ...]] = [("a", None), ("b", 3)]
    with recording() as tape:
        before = [charge(Stream.fresh(), rows), charge(Stream.fresh(), rows)]
    with recording(replay=tape) as again:
        after = [charge(Stream.fresh(), rows), charge(Stream.fresh(), rows)]
    assert before == after
    assert before[0] != before[1]  # two charges are two keys, also on a tape
    assert again.draws == tape.draws
    with recording() as other:
        assert charge(Stream.fresh(), rows) != before[0]
    assert [d.ids for d in other.draws] != [d.ids for d in tape.draws[:2]]


def test_a_replay_matches_by_group_key_not_by_order() -> None:
    with recording() as tape:
        before = charge(Stream.fresh(), [("a",), ("b",)])
    with recording(replay=tape):
        after = charge(Stream.fresh(), [("b",), ("new",), ("a",)])
    assert (after[2], after[0]) == (before[0], before[1])


def test_it_sees_every_sampler_once() -> None:
    stream, items = Stream.fresh().derive("statistic", 7), Items.positions(4)
    with recording() as tape:
        discrete_laplace(stream, items, Fraction(3, 2))
        discrete_gaussian(stream, items, Fraction(2))
        bernoulli(stream, items, Fraction(1, 3))
        bernoulli_exp(stream, items, Fraction(1))
        uniform(stream, items, 6)
        permutation(stream, 4)
        noisy_max(stream, [1, 2, 3, 4], unit=Fraction(1, 4), kind="gumbel")
    assert [(draw.sampler, draw.scale, draw.count) for draw in tape.draws] == [
        ("discrete_laplace", "3/2", 4),
        ("discrete_gaussian", "2", 4),
        ("bernoulli", "1/3", 4),
        ("bernoulli_exp", "1", 4),
        ("uniform", "6", 4),
        ("permutation", "4", 4),
        ("noisy_top 1 gumbel", "1/4", 4),
    ]
    assert {draw.path for draw in tape.draws} == {(("statistic", 7),)}
    assert len({draw.ids for draw in tape.draws}) == 1


def test_it_is_off_unless_on_and_one_at_a_time() -> None:
    stream, items = Stream.fresh(), Items.positions(10)
    outside = discrete_laplace(stream, items, Fraction(100))
    with recording():
        inside = discrete_laplace(stream, items, Fraction(100))
        with pytest.raises(RuntimeError, match="already on"), recording():
            pass
    assert active() is None
    assert not np.array_equal(inside, outside)
    assert np.array_equal(discrete_laplace(stream, items, Fraction(100)), outside)
    with pytest.raises(ZeroDivisionError), recording():
        raise ZeroDivisionError
    assert active() is None
