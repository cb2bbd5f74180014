"""Choose the strategy with the least error.

A release may publish several kinds of sums. The error of each kind is divided by the least that any
strategy reaches for that kind, and the mean of these ratios decides. Nothing here reads data: the
errors follow from the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np

from discreet.continual.strategies.buffered import Buffered
from discreet.continual.strategies.dense import column_normalised, optimise, power, window_root
from discreet.continual.strategies.doubling import Doubling
from discreet.continual.strategies.independent import Independent
from discreet.continual.strategies.strategy import Gaussian, Strategy
from discreet.continual.strategies.tree import BinaryTree, SubtractionTree
from discreet.mechanisms.shapes import Norm
from discreet.policy.schedule import PerPerson, Publish

MOST_DENSE = 2048  # periods; computing a larger matrix takes too long
MOST_OPTIMISED = 732  # periods: two years of days
TYPICAL = 480  # strategies for an unknown horizon are compared over so many periods
# Optimizing assumes a person in one period. If a person may be in more than so many, other
# strategies are better.
_OPTIMISED_FOR = 3
_HIGHEST = 8  # levels of the trees that are tried
_WIDEST = 128  # children of a node of these trees


def choose(
    periods: int | None,
    publish: tuple[Publish, ...],
    per_person: PerPerson,
    norm: Norm,
    *,
    signed: bool,
) -> Strategy:
    """Return the best strategy for the published sums, if noise is scaled to the given norm."""
    if norm == "l1":
        return pure(periods or TYPICAL, publish)
    if periods is None:
        assert per_person.periods is not None  # a policy with neither is refused
        return unending(publish, per_person.periods)
    return gaussian(periods, publish, per_person.most(periods), per_person.apart, signed=signed)


@lru_cache(maxsize=16)
def pure(periods: int, publish: tuple[Publish, ...]) -> Strategy:
    """Choose among independent noise and trees with subtraction, for pure budgets.

    The number of a person's periods multiplies the errors of all of them alike.
    """
    candidates: list[Any] = [Independent(periods=periods)]
    for height in range(2, _HIGHEST + 1):
        for arity in range(2, _WIDEST + 1):
            child = arity ** (height - 1)
            if child < periods < _WIDEST * child:
                tree = SubtractionTree(periods=periods, arity=arity, height=height)
                candidates.append(tree)
    return _best(candidates, publish, lambda strategy: 2.0 * strategy.l1(times=1) ** 2)


@lru_cache(maxsize=16)
def unending(publish: tuple[Publish, ...], times: int) -> Strategy:
    """Choose among the strategies with Gaussian noise whose cost does not depend on the horizon."""

    def noise(strategy: Gaussian) -> float:
        return float(strategy.l2_squared(times=times, apart=1, cells=1, signed=True))

    return _best([Independent(periods=TYPICAL), Doubling.covering(TYPICAL)], publish, noise)


@lru_cache(maxsize=16)
def gaussian(
    periods: int, publish: tuple[Publish, ...], times: int, apart: int, *, signed: bool
) -> Strategy:
    """Choose among all strategies with Gaussian noise."""
    candidates: list[Any] = [Independent(periods=periods), BinaryTree(periods=periods)]
    if periods > MOST_DENSE:
        candidates = [Independent(periods=periods), Buffered.fitted(periods)]
    else:
        candidates += [
            column_normalised(periods),
            *(power(periods, tenths) for tenths in (1, 2, 3, 4)),
        ]
        candidates += [window_root(periods, each) for each in publish if isinstance(each, int)]
    if periods <= MOST_OPTIMISED and times <= _OPTIMISED_FOR:
        alone = [min(_errors(each, [one], 1.0)[0] for each in candidates) for one in publish]
        candidates.append(optimise(periods, publish, [1 / each for each in alone]))

    def noise(strategy: Gaussian) -> float:
        return float(strategy.l2_squared(times=times, apart=apart, cells=1, signed=signed))

    return _best(candidates, publish, noise)


def _best(candidates: Sequence[Any], publish: Sequence[Publish], noise: Any) -> Strategy:
    errors = np.array([_errors(each, publish, noise(each)) for each in candidates])
    ratios = errors / errors.min(axis=0)
    best: Strategy = candidates[int(np.argmin(ratios.mean(axis=1)))]
    return best


def _errors(strategy: Strategy, publish: Sequence[Publish], noise: float) -> list[float]:
    """Return the mean squared error of each kind of sum, for one unit of the budget."""
    return [noise * float(np.square(strategy.deviations(each)).mean()) for each in publish]


def rms(strategy: Any, publish: Publish, *, times: int = 1, apart: int = 1) -> float:
    """Return the root mean squared error of counts, if one person moves each period by 1 and the
    noise has one unit.
    """
    noise = float(strategy.l2_squared(times=times, apart=apart, cells=1, signed=False))
    return sqrt(_errors(strategy, [publish], noise)[0])
