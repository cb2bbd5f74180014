"""Above-threshold: its claim is attained and not exceeded, variants known to be broken are caught,
margins exact.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from by_definition import epsilon, provable_epsilon, rho
from discreet.errors import UsageError
from discreet.mechanisms import AboveThreshold
from discreet.mechanisms.sparse_vector import geometric
from discreet.noise import Items, Stream, recording
from mechanism_cases import above_distribution, above_runs

F = Fraction
ONE = AboveThreshold.costing(epsilon=F(1), linf=1, max_hits=1)
TWO = AboveThreshold.costing(epsilon=F(2), linf=1, max_hits=1)
FOUR = AboveThreshold.costing(epsilon=F(1), linf=1, max_hits=4)


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("max_hits", [1, 2])
def test_every_way_to_move_three_numbers(monotone: bool, max_hits: int) -> None:
    mechanism = AboveThreshold(
        threshold_scale=F(3, 2), query_scale=F(2), linf=2, max_hits=max_hits, monotone=monotone
    )
    claimed, attained = mechanism.loss(), 0.0
    moves = (0, 1, 2) if monotone else (-2, 0, 2)
    for numbers in itertools.product((-4, 0, 7), repeat=3):
        p = above_distribution(mechanism, numbers)
        for move in itertools.product(moves, repeat=3):
            q = above_distribution(mechanism, [a + b for a, b in zip(numbers, move, strict=True)])
            attained = max(attained, epsilon(p, q))
            assert rho(p, q, orders=(1, 2, 16)) <= float(claimed.rho) * (1 + 1e-9)
    assert attained <= float(claimed.epsilon) * (1 + 1e-9)
    if max_hits == 1:
        assert attained >= float(claimed.epsilon) * (1 - 1e-9)


def test_the_split_is_near_the_best() -> None:
    """The variance of N - M, against every split in hundredths."""
    for monotone in (False, True):
        ours = AboveThreshold.costing(epsilon=F(1), linf=1, max_hits=1, monotone=monotone)
        assert ours.loss().epsilon == 1
        best = min(
            (100 / a) ** 2 + ((1 if monotone else 2) * 100 / (100 - a)) ** 2 for a in range(1, 100)
        )
        assert float(ours.threshold_scale**2 + ours.query_scale**2) <= 1.001 * best


def test_folded_laplace_is_geometric() -> None:
    runs = 200_000
    drawn = geometric(Stream.fresh(), Items.positions(runs), F(5, 2))
    assert drawn.min() == 0
    for n in range(12):
        p = math.exp(-n / 2.5)
        assert abs((drawn >= n).mean() - p) <= 6.5 * math.sqrt(p * (1 - p) / runs)


# The variants that Lyu, Su and Li (2017) found in print to be broken, each claiming the ε of
# AboveThreshold. The first half of the numbers should get a no and the second half a yes.

Variant = Callable[[np.ndarray[Any, Any], int, Stream], Any]


def noises(mechanism: AboveThreshold, numbers: Any, runs: int, stream: Stream) -> tuple[Any, Any]:
    items = Items.positions(runs)
    held = geometric(stream.derive("threshold"), items, mechanism.threshold_scale)[:, None]
    each = [
        geometric(stream.derive("number", i), items, mechanism.query_scale)
        for i in range(len(numbers))
    ]
    return held, np.stack(each, axis=1)


def no_noise_on_the_numbers(numbers: Any, runs: int, stream: Stream) -> Any:
    held, _ = noises(FOUR, numbers, runs, stream)
    return numbers >= held


def one_noise_for_all_numbers(numbers: Any, runs: int, stream: Stream) -> Any:
    held, each = noises(FOUR, numbers, runs, stream)
    return numbers + each[:, :1] >= held


def no_end_of_yes(numbers: Any, runs: int, stream: Stream) -> Any:
    held, each = noises(ONE, numbers, runs, stream)
    return numbers + each >= held


def a_scale_for_one_yes(numbers: Any, runs: int, stream: Stream) -> Any:
    held, each = noises(ONE, numbers, runs, stream)
    above = numbers + each >= held
    return np.where(above.cumsum(axis=1) - above < FOUR.max_hits, above, 2)


def the_noisy_number_leaves_too(numbers: Any, runs: int, stream: Stream) -> Any:
    held, each = noises(FOUR, numbers, runs, stream)
    noisy = numbers + each
    return np.where(noisy >= held, np.clip(noisy, -2, 30) + 3, 0)


def no_noise_on_the_threshold(numbers: Any, runs: int, stream: Stream) -> Any:
    _, each = noises(TWO, numbers, runs, stream)
    return numbers + each >= 0


BROKEN = (
    (no_noise_on_the_numbers, (4, 4), (3, 5)),
    (one_noise_for_all_numbers, (4, 4), (3, 5)),
    (no_end_of_yes, (2, 2, 2, 2, 2, 2), (1, 1, 1, 3, 3, 3)),
    (a_scale_for_one_yes, (0, 0, 0, 0, 0, 0), (1, 1, -1, -1, -1, -1)),
    (the_noisy_number_leaves_too, (6, 0), (7, -1)),
    (no_noise_on_the_threshold, tuple([-5] * 60), tuple([-4] * 60)),
)


@pytest.mark.parametrize(
    ("variant", "numbers", "beside"), BROKEN, ids=lambda v: getattr(v, "__name__", "")
)
def test_runs_catch_each_broken_variant(variant: Variant, numbers: Any, beside: Any) -> None:
    """Each claims ε = 1, the last one 2."""
    proved = provable_epsilon(
        *(coded(variant(np.array(x), 250_000, Stream.fresh())) for x in (numbers, beside))
    )
    assert proved > (2 if variant is no_noise_on_the_threshold else 1)


@pytest.mark.parametrize(
    ("variant", "numbers", "beside"), BROKEN, ids=lambda v: getattr(v, "__name__", "")
)
def test_the_same_runs_clear_the_real_one(variant: Variant, numbers: Any, beside: Any) -> None:
    proved = provable_epsilon(
        *(above_runs(FOUR, x[:6], 200_000, Stream.fresh()) for x in (numbers, beside))
    )
    assert proved <= 1


def coded(answers: Any) -> Any:
    """A number for each row of answers; many noes in a row as one."""
    if answers.shape[1] > 10:
        return answers.any(axis=1).astype(np.int64)
    code = np.zeros(len(answers), dtype=np.int64)
    for column in answers.T.astype(np.int64):
        code = code * 34 + column
    return np.unique(code, return_inverse=True)[1] if answers.shape[1] <= 2 else code


@pytest.mark.parametrize("scales", [(F(3), F(4)), (F(1, 2), F(7)), (F(20), F(2))])
@pytest.mark.parametrize("numbers", [1, 5, 40])
def test_a_margin_covers_exactly(scales: tuple[Fraction, Fraction], numbers: int) -> None:
    """By the mass: of numbers t + 1 below the threshold none gets a yes, and a last one t + 1 above
    gets no no.
    """
    mechanism = AboveThreshold(threshold_scale=scales[0], query_scale=scales[1], linf=1, max_hits=1)
    t = mechanism.margin(F(19, 20), numbers=numbers)

    def coverage(margin: int) -> float:
        low = [-margin - 1] * numbers
        all_low = mechanism.log_mass(low, [False] * numbers, threshold=0)
        last_high = mechanism.log_mass(
            [*low[1:], margin + 1], [False] * (numbers - 1) + [True], threshold=0
        )
        return math.exp(min(all_low, last_high))

    assert coverage(t) >= 0.95
    assert t == 0 or coverage(t - 1) < 0.95
    assert mechanism.coverage(t, numbers=numbers) == pytest.approx(coverage(t), abs=1e-9)


def test_a_margin_at_a_large_scale() -> None:
    small, large = (
        AboveThreshold.costing(epsilon=F(1), linf=n, max_hits=1) for n in (10**3, 10**9)
    )
    ratio = large.margin(0.95, numbers=100) / small.margin(0.95, numbers=100)
    assert ratio == pytest.approx(10**6, rel=2e-3)


def test_it_stops_after_so_many_yes_and_asks_no_further() -> None:
    asked = []

    def numbers() -> Any:
        for number in itertools.chain([-1000] * 5, itertools.repeat(1000)):
            asked.append(number)
            yield number

    answers = list(FOUR.release(numbers(), Stream.fresh(), threshold=0))
    assert answers == [False] * 5 + [True] * 4
    assert len(asked) == 9
    with pytest.raises(UsageError, match="nothing left to ask"):
        FOUR.above(np.array([1]), Stream.fresh(), Items.positions(1), threshold=0, index=9, hits=4)


def test_a_number_may_depend_on_the_answers() -> None:
    seen: list[bool] = []
    for answer in FOUR.release(
        (-500 if seen and seen[-1] else 500 for _ in range(20)), Stream.fresh(), threshold=0
    ):
        seen.append(answer)
    assert seen == [True, False] * 3 + [True]


def test_the_threshold_is_drawn_anew_after_each_yes_and_only_then() -> None:
    with recording() as tape:
        answers = list(
            FOUR.release([-999, 999, -999, -999, 999, -999], Stream.fresh(), threshold=0)
        )
    assert answers == [False, True, False, False, True, False]
    thresholds = [draw.path[-1] for draw in tape.draws if draw.path[-1][0] == "threshold"]
    assert thresholds == [("threshold", hits) for hits in (0, 0, 1, 1, 1, 2)]
    numbers = [draw.path[-1] for draw in tape.draws if draw.path[-1][0] == "number"]
    assert numbers == [("number", index) for index in range(6)]


def test_draws_agree_on_a_neighbor_as_long_as_answers_do() -> None:
    """S14, step by step: up to and with the first answer that differs, the draws are the same."""
    for _ in range(20):
        with recording() as tape:
            here = list(ONE.release([0, 1, -2, 3, 0, 4], Stream.fresh(), threshold=2))
        with recording(replay=tape) as beside:
            there = list(ONE.release([1, 0, -1, 2, 1, 3], Stream.fresh(), threshold=2))
        alike = [a == b for a, b in zip(here, there, strict=False)]
        steps = alike.index(False) + 1 if False in alike else len(alike)
        assert steps
        assert tape.draws[: 2 * steps] == beside.draws[: 2 * steps]
