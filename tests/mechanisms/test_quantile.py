"""Quantiles by rank: scores and sensitivity by brute force; several at once in order, within one
share a depth.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from by_definition import epsilon, rho
from discreet.errors import UsageError
from discreet.mechanisms import ExponentialMechanism, PermuteAndFlip, Quantile, Quantiles, nested
from discreet.mechanisms import quantile as module
from discreet.noise import Items, Stream, recording

F = Fraction
CHOICES = ("permute_and_flip", "exponential")
RELATIONS = ("add_remove", "change_one")
HALF = Quantile(
    epsilon=F(1), q=F(1, 2), cells=4, max_rows=1, neighbors="add_remove", choice="exponential"
)
DECILES = tuple(F(i, 10) for i in range(1, 10))


def grid(rows: tuple[int, ...], cells: int) -> np.ndarray[Any, Any]:
    return np.bincount(np.array(rows, dtype=np.int64), minlength=cells)


def neighboring_rows(
    cells: int, others: int, max_rows: int, neighbors: str
) -> Iterator[tuple[Any, Any]]:
    """Every table of rows of others, with one person's rows on either side (none on one side under
    add_remove).
    """
    mine = [
        rows
        for n in range(max_rows + 1)
        for rows in itertools.combinations_with_replacement(range(cells), n)
    ]
    pairs = (
        itertools.combinations(mine, 2)
        if neighbors == "change_one"
        else [((), rows) for rows in mine if rows]
    )
    for theirs in itertools.combinations_with_replacement(range(cells), others):
        for before, after in pairs if isinstance(pairs, list) else itertools.combinations(mine, 2):
            yield (*theirs, *before), (*theirs, *after)


@pytest.mark.parametrize("q", [F(0), F(1, 4), F(1, 2), F(9, 10), F(1)])
def test_the_score_is_minus_the_distance_in_rank(q: Fraction) -> None:
    rows = (0, 0, 2, 2, 2, 3)
    scores = dataclasses.replace(HALF, q=q).scores(grid(rows, 4))
    for v, score in enumerate(scores.tolist()):
        below, upto = sum(x < v for x in rows), sum(x <= v for x in rows)
        assert F(score, q.denominator) == -max(F(0), below - q * 6, q * 6 - upto)


def test_a_shift_moves_the_wanted_rank() -> None:
    """The largest but two of 1, 2, ..., 9 is 7."""
    largest = dataclasses.replace(HALF, q=F(1), cells=10, shift=-2)
    scores = largest.scores(np.array([0] + [1] * 9))
    assert scores.tolist().index(0) == 7
    assert dataclasses.replace(largest, shift=0).scores(np.array([0] + [1] * 9)).tolist()[9] == 0


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize(
    ("q", "shift"), [(F(1, 2), 0), (F(1, 3), 0), (F(9, 10), 0), (F(1), 0), (F(1), -2)]
)
def test_no_person_moves_a_score_further_than_claimed(
    neighbors: Any, max_rows: int, q: Fraction, shift: int
) -> None:
    """And some person moves one that far."""
    mechanism = dataclasses.replace(
        HALF, q=q, max_rows=max_rows, neighbors=neighbors, shift=shift, cells=3
    )
    moved = max(
        int(abs(mechanism.scores(grid(before, 3)) - mechanism.scores(grid(after, 3))).max())
        for before, after in neighboring_rows(3, 4, max_rows, neighbors)
    )
    assert moved <= mechanism.mechanism.linf
    if q not in (F(0), F(1)) or neighbors == "add_remove":
        assert moved == mechanism.mechanism.linf


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("q", [F(1, 2), F(9, 10)])
def test_one_quantile_on_every_small_neighbor(choice: Any, neighbors: Any, q: Fraction) -> None:
    mechanism = dataclasses.replace(HALF, choice=choice, neighbors=neighbors, q=q, max_rows=2)
    loss = mechanism.loss()
    for before, after in neighboring_rows(4, 2, 2, neighbors):
        p, r = (dict(enumerate(mechanism.log_mass(grid(rows, 4)))) for rows in (before, after))
        assert epsilon(p, r) <= 1 + 1e-9
        assert rho(p, r, orders=(1, 2, 8, 32)) <= float(loss.rho) + 1e-9


SEVERAL = tuple(
    Quantiles(
        epsilon=F(2), quantiles=quantiles, cells=3, slices=slices, max_rows=2, neighbors=n, choice=c
    )
    for quantiles, slices in (((F(1, 10), F(1, 2), F(9, 10)), 1), ((F(1, 4), F(1, 2)), 2))
    for n in RELATIONS
    for c in CHOICES
)


@pytest.mark.parametrize(
    "mechanism", SEVERAL, ids=lambda m: f"{len(m.quantiles)} {m.neighbors} {m.choice}"
)
def test_several_quantiles_on_every_small_neighbor(mechanism: Quantiles) -> None:
    claimed, masses, attained = mechanism.loss(), {}, 0.0
    for before, after in neighboring_rows(3, 3, 2, mechanism.neighbors):
        for rows in (before, after):
            key = tuple(grid(rows, 3).tolist())
            if key not in masses:
                masses[key] = mechanism.log_mass(grid(rows, 3))
        p, r = (masses[tuple(grid(rows, 3).tolist())] for rows in (before, after))
        attained = max(attained, epsilon(p, r))
        assert rho(p, r, orders=(1, 2, 8, 32)) <= float(claimed.rho) + 1e-9
    assert 0.3 * 2 <= attained <= 2 + 1e-9


def depth_loss(linf_of: Any, q: Fraction, moves: list[tuple[Any, Any]]) -> float:
    """What the choices in several parts lose together, of one share of ε = 1."""
    total = 0.0
    for before, after in moves:
        mechanism = ExponentialMechanism(epsilon=F(1), linf=linf_of(q) * q.denominator)
        masses = [
            mechanism.log_mass(module._rank_scores(counts, q, 0).tolist())
            for counts in (before, after)
        ]
        total += float(abs(masses[0] - masses[1]).max())
    return total


def test_under_change_one_two_parts_move_and_the_noise_allows_for_it() -> None:
    """1/10, 1/2 and 9/10: within the two parts q is 1/5 and 4/5. A row is taken from one part and
    put into the other: each score moves by 4/5, and with the sensitivity of a single part (one row:
    1) the depth would cost 1.6 shares.
    """
    gap = [0] * 400
    put = np.array([0, 19, 1, *gap, 80]), np.array([1, 19, 1, *gap, 80])
    taken = put[::-1]
    assert depth_loss(lambda q: F(1), F(1, 5), [taken, put]) > 1.5
    assert 0.9 < depth_loss(lambda q: 2 * max(q, 1 - q), F(1, 5), [taken, put]) <= 1


def test_a_person_with_rows_in_two_parts_needs_all_of_max_rows() -> None:
    """Parallel composition is false: with the sensitivity of one row a part, two rows in two parts
    cost two shares.
    """
    gap = [0] * 400
    far = np.array([0, 39, 1, *gap, 40]), np.array([1, 39, 1, *gap, 40])
    assert depth_loss(lambda q: F(1, 2), F(1, 2), [far, far]) > 1.9
    assert depth_loss(lambda q: 2 * F(1, 2), F(1, 2), [far, far]) <= 1


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 15, 99])
def test_depths_are_the_logarithm(count: int) -> None:
    quantiles = tuple(F(i, count + 1) for i in range(1, count + 1))
    mechanism = dataclasses.replace(SEVERAL[0], quantiles=quantiles)
    assert mechanism.depths == math.ceil(math.log2(count + 1)) == len(nested.tree(quantiles))
    places = sorted(part.place for depth in nested.tree(quantiles) for part in depth)
    assert places == list(range(count))
    if count in (1, 3, 7, 15):
        assert all(part.q == F(1, 2) for depth in nested.tree(quantiles) for part in depth)


def test_the_price_in_rho() -> None:
    """Even quantiles: ρ = (ε / depths)² / 8 a depth under either relation; uneven ones cost less
    under change_one.
    """
    even = Quantiles(
        epsilon=F(2), quantiles=(F(1, 4), F(1, 2), F(3, 4)), cells=3, slices=1, max_rows=1, neighbors="add_remove",
        choice="exponential",
    )  # fmt: skip
    assert (
        even.loss().rho
        == dataclasses.replace(even, neighbors="change_one").loss().rho
        == 2 * F(1, 8)
    )
    uneven = dataclasses.replace(
        even, quantiles=(F(1, 10), F(1, 2), F(9, 10)), neighbors="change_one"
    )
    assert uneven.loss().rho == F(1, 8) + F(1, 8) * F(1, 2)


def test_cells_never_decrease() -> None:
    """Also where the data are few, all equal or none at all, and the noise decides."""
    mechanism = Quantiles(
        epsilon=F(1), quantiles=DECILES, cells=50, slices=4, max_rows=1, neighbors="add_remove",
        choice="permute_and_flip",
    )  # fmt: skip
    counts = np.zeros((300, 50), dtype=np.int64)
    counts[100:200, 7] = 2000
    counts[200:] = 1
    found = mechanism.choose_each(counts, Stream.fresh(), Items.positions(300))
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[100:200] == 7).mean() > 0.9


def test_equal_rows_are_parted_in_proportion() -> None:
    """Half of the rows in one cell: with slices the deciles above it are where they should be,
    without they are not.
    """
    counts = np.concatenate([[100_000], np.full(100, 1_000)])
    exact = np.searchsorted(counts.cumsum(), [float(q) * 200_000 for q in DECILES])
    off = {}
    for slices in (1, 64):
        mechanism = Quantiles(
            epsilon=F(1), quantiles=DECILES, cells=101, slices=slices, max_rows=1, neighbors="add_remove",
            choice="exponential",
        )  # fmt: skip
        found = mechanism.choose_each(
            np.tile(counts, (100, 1)), Stream.fresh(), Items.positions(100)
        )
        off[slices] = abs(found - exact).max()
    assert off[64] <= 3
    assert off[1] >= 15  # in about half of the releases


def rank_error(counts: Any, quantiles: tuple[Fraction, ...], found: Any) -> Any:
    upto = counts.cumsum()
    wanted = np.array([float(q) for q in quantiles]) * upto[-1]
    return np.maximum(0, np.maximum((upto - counts)[found] - wanted, wanted - upto[found]))


@pytest.mark.parametrize("choice", CHOICES)
def test_nine_at_once_are_nearer_than_nine_apart(choice: Any) -> None:
    """At the same ε in all, about 0.4 of the error (four shares for nine quantiles), and always in
    order.
    """
    counts, runs = np.full(1000, 5), 150
    together = Quantiles(
        epsilon=F(1),
        quantiles=DECILES,
        cells=1000,
        slices=1,
        max_rows=1,
        neighbors="add_remove",
        choice=choice,
    )
    one = Quantile(
        epsilon=F(1, 9), q=F(1, 2), cells=1000, max_rows=1, neighbors="add_remove", choice=choice
    )
    apart = [dataclasses.replace(one, q=q) for q in DECILES]
    table, items = np.tile(counts, (runs, 1)), Items.positions(runs)
    at_once = rank_error(counts, DECILES, together.choose_each(table, Stream.fresh(), items))
    stream = Stream.fresh()
    found = np.stack(
        [m.choose_each(table, stream.derive("q", i), items) for i, m in enumerate(apart)], axis=1
    )
    singly = rank_error(counts, DECILES, found)
    assert together.loss().epsilon == sum(m.loss().epsilon for m in apart)
    assert at_once.mean() < 0.75 * singly.mean()


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("cells", [3, 11, 101])
@pytest.mark.parametrize("at", [F(1, 2), F(3)])
def test_a_margin_in_rank_covers_exactly(choice: Any, cells: int, at: Fraction) -> None:
    """Worst case: all rows in the middle cell, and as many as put every other cell just beyond the
    margin.
    """
    mechanism = dataclasses.replace(HALF, epsilon=at, cells=cells, choice=choice)
    margin = mechanism.margin(F(19, 20))

    def chance_within(ranks: int) -> float:
        counts = np.zeros(cells, dtype=np.int64)
        counts[cells // 2] = 2 * ranks + 1  # all others are ranks + 1/2 away
        return math.exp(mechanism.log_mass(counts)[cells // 2])

    assert chance_within(margin) >= 0.95 > chance_within(margin - 1)


def test_margins_of_several_hold() -> None:
    """Of 150 releases at 90 % confidence, on a spread column and on one with heavy cells."""
    mechanism = Quantiles(
        epsilon=F(1), quantiles=DECILES, cells=200, slices=32, max_rows=1, neighbors="add_remove",
        choice="exponential",
    )  # fmt: skip
    heavy = np.where(np.arange(200) % 40 == 0, 2000, 10)
    for counts in (np.full(200, 10), heavy):
        margins = mechanism.margin(0.9, assuming=int(counts.max()))
        found = mechanism.choose_each(
            np.tile(counts, (150, 1)), Stream.fresh(), Items.positions(150)
        )
        inside = (rank_error(counts, DECILES, found) <= np.array(margins)).mean(axis=0)
        assert (inside >= 0.9).all()
        assert max(margins) < 400 if counts.max() == 10 else True


def test_a_person_sees_the_same_draws_until_a_choice_differs() -> None:
    """S14: the first choice is drawn alike on neighbors; where it falls alike, so are the next
    two.
    """
    mechanism = dataclasses.replace(SEVERAL[0], cells=6, slices=2)
    with recording() as tape:
        here = mechanism.choose(np.array([3, 1, 0, 5, 2, 4]), Stream.fresh())
    with recording(replay=tape) as beside:
        there = mechanism.choose(np.array([3, 1, 0, 5, 2, 5]), Stream.fresh())
    assert tape.draws[0] == beside.draws[0]
    assert len(tape.draws) == len(beside.draws) == 3
    if here[1] == there[1] and here != there:
        assert {d.path for d in tape.draws} == {d.path for d in beside.draws}
    if here == there:
        assert tape.draws == beside.draws


def test_a_million_cells_and_counts_beyond_64_bits() -> None:
    mechanism = dataclasses.replace(HALF, cells=1_000_000, choice="permute_and_flip")
    assert mechanism.choose(np.ones(1_000_000, dtype=np.int64), Stream.fresh()) in range(
        499_000, 501_000
    )
    huge = dataclasses.replace(HALF, q=F(333_333, 1_000_000))
    counts = np.array([2**60, 2**60, 2**60, 1], dtype=np.int64)
    assert huge.choose(counts, Stream.fresh()) == 0
    assert huge.scores(counts).tolist()[0] == 0
    several = dataclasses.replace(SEVERAL[0], cells=4, slices=7, quantiles=DECILES)
    assert several.choose(counts, Stream.fresh()) == (0, 0, 0, 1, 1, 1, 2, 2, 2)


@pytest.mark.parametrize(
    "wrong",
    [{"quantiles": (F(1, 2), F(1, 4))}, {"quantiles": ()}, {"quantiles": (F(1, 2), F(1, 2))}, {"quantiles": (F(0),)},
     {"quantiles": [F(1, 2)]}, {"slices": 0}, {"slices": 2**22}, {"quantiles": (0.5,)}, {"choice": "gumbel"}],
)  # fmt: skip
def test_what_several_quantiles_refuse(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        dataclasses.replace(SEVERAL[0], **wrong)


def test_counts_must_be_the_grids() -> None:
    for counts in (np.ones(3, dtype=np.int64), np.ones(4), np.array([True] * 4)):
        with pytest.raises(UsageError, match="4 whole numbers"):
            HALF.choose(counts, Stream.fresh())


def test_each_choice_is_the_mechanism_it_is_named_after() -> None:
    assert isinstance(HALF.mechanism, ExponentialMechanism)
    assert isinstance(
        dataclasses.replace(HALF, choice="permute_and_flip").mechanism, PermuteAndFlip
    )
