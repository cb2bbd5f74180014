"""Every mechanism in small: neighboring inputs, the exact distribution of what leaves, runs of the
real code, mistakes.

Outcomes are coded as integers: `distribution` has log-probabilities by code, `runs` is an array of
codes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from by_definition import Distribution, product
from discreet import mechanisms as every
from discreet.noise import Items, Stream

F = Fraction
Codes = NDArray[np.int64]
Pair = tuple[Any, Any]
Runs = Callable[[Any, int, Stream], Codes]
"""Of (input, how many, stream)."""


@dataclass(frozen=True, kw_only=True)
class Case:
    mechanism: Any
    pairs: tuple[Pair, ...]
    """Neighbors. The first pair is the one that is run."""
    attained: float
    """What of the claimed ε (given the event, if there is a δ) some pair attains: 1 where the claim
    is tight.
    """
    attained_rho: float
    """What of the claimed ρ some pair attains."""
    proved: float
    """What of the claimed ε a million runs on the first pair must prove."""
    fitted: Any = None
    """The input whose draws are compared with their mass, if not the first of the first pair."""
    mistakes: Mapping[str, tuple[Runs, Pair]] = field(default_factory=dict)
    """Planted: how each runs, and on which neighbors."""

    @property
    def name(self) -> str:
        values = [
            f"{key}={value}"
            for key, value in every.to_row(self.mechanism).items()
            if key != "mechanism"
        ]
        return f"{type(self.mechanism).__name__}({', '.join(values)})"

    def distribution(self, x: Any) -> Distribution:
        return _distribution(self.mechanism, x)

    def runs(self, x: Any, runs: int, stream: Stream) -> Codes:
        return RUNS[type(self.mechanism)](self.mechanism, x, runs, stream)

    def scaled(self, factor: Fraction) -> Case:
        """The same with its noise that much wider, and the same threshold where it has one."""
        return replace(self, mechanism=wider(self.mechanism, factor))


@lru_cache(maxsize=512)
def _distribution(mechanism: Any, x: Any) -> Distribution:
    return DISTRIBUTION[type(mechanism)](mechanism, x)


def wider(mechanism: Any, factor: Fraction) -> Any:
    if hasattr(mechanism, "query_scale"):
        scales = {
            "threshold_scale": mechanism.threshold_scale * factor,
            "query_scale": mechanism.query_scale * factor,
        }
        return replace(mechanism, **scales)
    for name in ("scale", "sigma"):
        if name in mechanism.__slots__:
            return replace(mechanism, **{name: getattr(mechanism, name) * factor})
    return replace(mechanism, epsilon=mechanism.epsilon / factor)


def by(mechanism: Any) -> Runs:
    """The runs of a mechanism other than the one that is claimed."""
    return lambda x, runs, stream: RUNS[type(mechanism)](mechanism, x, runs, stream)


# Noise added to integers: an outcome is each coordinate, from -REACH to REACH, beyond that as if
# there.

REACH = 60


def coded(values: NDArray[Any], low: int, high: int) -> Codes:
    """One code for the columns of a table of integers."""
    code = np.zeros(len(values), dtype=np.int64)
    for column in np.clip(values, low, high).T.astype(np.int64):
        code = code * (high - low + 1) + column - low
    return code


def joined(parts: Sequence[Mapping[int, float]], width: int) -> dict[Any, float]:
    joint = product(*parts)
    return {sum(c * width**i for i, c in enumerate(reversed(code))): p for code, p in joint.items()}


def additive_distribution(mechanism: Any, x: Sequence[int]) -> Distribution:
    tail = 40 * math.ceil(mechanism.spread)
    parts = []
    for value in x:
        part = {y + REACH: mechanism.log_mass(y - value) for y in range(-REACH, REACH + 1)}
        part[0] = float(
            np.logaddexp.reduce([mechanism.log_mass(-REACH - value - i) for i in range(tail)])
        )
        part[2 * REACH] = float(
            np.logaddexp.reduce([mechanism.log_mass(REACH - value + i) for i in range(tail)])
        )
        parts.append(part)
    return joined(parts, 2 * REACH + 1)


def additive_runs(mechanism: Any, x: Sequence[int], runs: int, stream: Stream) -> Codes:
    values = np.tile(np.array(x, dtype=np.int64), runs)
    noisy = mechanism.add_to(values, stream, Items.positions(len(values)))
    return coded(noisy.reshape(runs, len(x)), -REACH, REACH)


def with_one_noise(mechanism: Any) -> Runs:
    """The mistake of drawing once for all coordinates."""

    def reused(x: Sequence[int], runs: int, stream: Stream) -> Codes:
        noise = mechanism.add_to(np.zeros(runs, dtype=np.int64), stream, Items.positions(runs))
        return coded(noise[:, None] + np.array(x), -REACH, REACH)

    return reused


# Choices: an outcome is the place chosen.


def choice_distribution(mechanism: Any, scores: Sequence[int]) -> Distribution:
    return dict(enumerate(mechanism.log_mass(scores).tolist()))


def choice_runs(mechanism: Any, scores: Sequence[int], runs: int, stream: Stream) -> Codes:
    table = np.tile(np.array(scores, dtype=np.int64), (runs, 1))
    chosen: Codes = mechanism.choose_each(table, stream, Items.positions(runs))
    return chosen


def top_distribution(mechanism: Any, scores: Sequence[int]) -> Distribution:
    n = len(scores)
    return {
        int(coded(np.array([chosen]), 0, n - 1)[0]): mechanism.log_mass(scores, chosen)
        for chosen in itertools.permutations(range(n), mechanism.k)
    }


def top_runs(mechanism: Any, scores: Sequence[int], runs: int, stream: Stream) -> Codes:
    return coded(choice_runs(mechanism, scores, runs, stream), 0, len(scores) - 1)


def without_noise(scores: Sequence[int], runs: int, stream: Stream) -> Codes:
    """The mistake of one noise for all candidates, which cancels."""
    return np.full(runs, int(np.argmax(scores)))


# Thresholds: an outcome is, for each key, that it stays (0) or its noisy value; a key that does not
# exist is None.

SPAN = 80


def threshold_distribution(mechanism: Any, values: Sequence[int | None]) -> Distribution:
    parts: list[dict[int, float]] = []
    for value in values:
        part = {0: 0.0}
        if value is not None:
            part = {0: mechanism.log_mass(value, None)}
            last, beyond = mechanism.threshold + SPAN, 300
            part |= {
                y - mechanism.threshold + 1: mechanism.log_mass(value, y)
                for y in range(mechanism.threshold, last)
            }
            lump = [mechanism.log_mass(value, y) for y in range(last, last + beyond)]
            part[SPAN + 1] = float(np.logaddexp.reduce(lump))
        parts.append({code: log_mass for code, log_mass in part.items() if log_mass > -math.inf})
    return joined(parts, SPAN + 2)


def with_coins(mechanism: Any, values: Sequence[int | None]) -> Distribution:
    """Of truncated noise, with each key's coin shown: it chooses the event of a probability of 1 -
    δ (threshold.md).
    """
    parts: list[dict[Any, float]] = []
    for value in values:
        part: dict[Any, float] = {}
        for reach, chance in mechanism._reaches():
            seen = [None] if value is None else [None, *range(reach + 1, value + reach + 1)]
            masses = {y: 1.0 if value is None else mechanism._mass(value, y, reach) for y in seen}
            part |= {
                (y, reach): math.log(chance * mass) for y, mass in masses.items() if chance * mass
            }
        parts.append(part)
    return product(*parts)


def threshold_runs(
    mechanism: Any, values: Sequence[int | None], runs: int, stream: Stream
) -> Codes:
    return _threshold_runs(mechanism, mechanism.threshold, values, runs, stream)


def _threshold_runs(
    mechanism: Any, shown: int, values: Sequence[int | None], runs: int, stream: Stream
) -> Codes:
    places = np.arange(runs * len(values)).reshape(runs, len(values))
    existing = [column for column, value in enumerate(values) if value is not None]
    codes = np.zeros((runs, len(values)), dtype=np.int64)
    items = Items.codes(places[:, existing].reshape(-1))
    exact = np.tile(np.array([values[column] for column in existing], dtype=np.int64), runs)
    kept, noisy = (
        mechanism.release(exact, stream, items)
        if existing
        else (np.zeros(0, dtype=int), np.zeros(0))
    )
    here = np.zeros(len(exact), dtype=np.int64)
    here[kept] = np.clip(noisy - shown + 1, 1, SPAN + 1)
    codes[:, existing] = here.reshape(runs, len(existing))
    return coded(codes, 0, SPAN + 1)


def looser(mechanism: Any, delta: Fraction) -> Runs:
    """The mistake of a threshold that is too low."""
    low = replace(mechanism, delta=delta)
    return lambda x, runs, stream: _threshold_runs(low, mechanism.threshold, x, runs, stream)


def all_reach(mechanism: Any, least: int) -> Runs:
    """Only whether the noisy values of all keys are at least this: for more keys than outcomes can
    be told apart.
    """

    def reached(x: Sequence[int | None], runs: int, stream: Stream) -> Codes:
        codes = threshold_runs(mechanism, x, runs, stream)
        each = [
            codes // (SPAN + 2) ** i % (SPAN + 2) + mechanism.threshold - 1 >= least
            for i in range(len(x))
        ]
        return np.logical_and.reduce(each).astype(np.int64)

    return reached


# Quantiles: an outcome is a cell, or the cells.


def quantiles_distribution(mechanism: Any, counts: Sequence[int]) -> Distribution:
    masses = mechanism.log_mass(np.array(counts, dtype=np.int64))
    if not isinstance(masses, dict):
        return dict(enumerate(masses.tolist()))
    return {
        int(coded(np.array([cells]), 0, mechanism.cells - 1)[0]): p for cells, p in masses.items()
    }


def quantiles_runs(mechanism: Any, counts: Sequence[int], runs: int, stream: Stream) -> Codes:
    table = np.tile(np.array(counts, dtype=np.int64), (runs, 1))
    return coded(
        mechanism.choose_each(table, stream, Items.positions(runs)), 0, mechanism.cells - 1
    )


# Above-threshold: an outcome is the answers to the numbers, the threshold being 0: 0 no, 1 yes, 2
# not asked.


def above_distribution(mechanism: Any, numbers: Sequence[int]) -> Distribution:
    masses = {}
    for answers in itertools.product((False, True), repeat=len(numbers)):
        hits = list(itertools.accumulate(answers))
        asked = 1 + next(
            (i for i, n in enumerate(hits) if n == mechanism.max_hits), len(numbers) - 1
        )
        if not any(answers[asked:]):
            code = coded(np.array([[*answers[:asked], *[2] * (len(numbers) - asked)]]), 0, 2)[0]
            masses[int(code)] = mechanism.log_mass(numbers[:asked], answers[:asked], threshold=0)
    return {code: log_mass for code, log_mass in masses.items() if log_mass > -math.inf}


def above_runs(mechanism: Any, numbers: Sequence[int], runs: int, stream: Stream) -> Codes:
    answers = np.full((runs, len(numbers)), 2)
    hits = np.zeros(runs, dtype=np.int64)
    for index, number in enumerate(numbers):
        for so_far in range(mechanism.max_hits):
            rows = np.flatnonzero(hits == so_far)
            items, here = Items.codes(rows), np.full(len(rows), number)
            answers[rows, index] = mechanism.above(
                here, stream, items, threshold=0, index=index, hits=so_far
            )
        hits = (answers == 1).sum(axis=1)
    return coded(answers, 0, 2)


# Randomized response: an outcome is the report.


def response_distribution(mechanism: Any, value: int) -> Distribution:
    return dict(enumerate(mechanism.log_mass(value).tolist()))


def response_runs(mechanism: Any, value: int, runs: int, stream: Stream) -> Codes:
    return mechanism.respond(np.full(runs, value), stream, Items.positions(runs))


DISTRIBUTION: dict[type, Callable[[Any, Any], Distribution]] = {
    every.DiscreteLaplace: additive_distribution,
    every.DiscreteGaussian: additive_distribution,
    every.ExponentialMechanism: choice_distribution,
    every.PermuteAndFlip: choice_distribution,
    every.TopK: top_distribution,
    every.LaplaceThreshold: threshold_distribution,
    every.GaussianThreshold: threshold_distribution,
    every.TruncatedLaplaceThreshold: threshold_distribution,
    every.Quantile: quantiles_distribution,
    every.Quantiles: quantiles_distribution,
    every.FineQuantile: quantiles_distribution,
    every.AboveThreshold: above_distribution,
    every.RandomizedResponse: response_distribution,
}

RUNS: dict[type, Callable[[Any, Any, int, Stream], Codes]] = {
    every.DiscreteLaplace: additive_runs,
    every.DiscreteGaussian: additive_runs,
    every.ExponentialMechanism: choice_runs,
    every.PermuteAndFlip: choice_runs,
    every.TopK: top_runs,
    every.LaplaceThreshold: threshold_runs,
    every.GaussianThreshold: threshold_runs,
    every.TruncatedLaplaceThreshold: threshold_runs,
    every.Quantile: lambda m, x, runs, stream: choice_runs(m, x, runs, stream),
    every.Quantiles: quantiles_runs,
    every.FineQuantile: choice_runs,
    every.AboveThreshold: above_runs,
    every.RandomizedResponse: response_runs,
}
