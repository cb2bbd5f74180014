"""Choose the strategy with the least mean squared error, each error taken relative to the best that
is possible for it alone.

Nothing here reads data: errors follow from the schedule.
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

# periods: beyond it a factor's matrix no longer fits the time one is willing to wait
MOST_DENSE = 2048
MOST_OPTIMISED = 732  # two years of days
# periods, of a horizon that is not known: strategies for it are compared over so many
TYPICAL = 480
_OPTIMISED_FOR = 3  # periods a person: it is optimised for one, and no longer competes beyond a few
_HIGHEST, _WIDEST = 8, 128  # of trees that are looked at


def choose(
    periods: int | None,
    publish: tuple[Publish, ...],
    per_person: PerPerson,
    norm: Norm,
    *,
    signed: bool,
) -> Strategy:
    """Return the best strategy for what is published, with noise for a person's l1 or l2 norm."""
    if norm == "l1":
        return pure(periods or TYPICAL, publish)
    if periods is None:
        assert per_person.periods is not None  # a policy with neither is refused
        return unending(publish, per_person.periods)
    return gaussian(periods, publish, per_person.most(periods), per_person.apart, signed=signed)


@lru_cache(maxsize=16)
def pure(periods: int, publish: tuple[Publish, ...]) -> Strategy:
    """Choose among independent noise and trees with subtraction; a person's periods multiply all
    alike.
    """
    trees = [
        SubtractionTree(periods=periods, arity=arity, height=height)
        for height in range(2, _HIGHEST + 1)
        for arity in range(2, _WIDEST + 1)
        if arity ** (height - 1) < periods and periods < _WIDEST * arity ** (height - 1)
    ]
    return _best(
        [Independent(periods=periods), *trees], publish, lambda each: 2.0 * each.l1(times=1) ** 2
    )


@lru_cache(maxsize=16)
def unending(publish: tuple[Publish, ...], times: int) -> Strategy:
    """Choose among strategies with Gaussian noise that cost the same however long they go on."""
    candidates = [Independent(periods=TYPICAL), Doubling.covering(TYPICAL)]
    return _best(
        candidates,
        publish,
        lambda each: float(each.l2_squared(times=times, apart=1, cells=1, signed=True)),
    )


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
    best: Strategy = candidates[int(np.argmin((errors / errors.min(axis=0)).mean(axis=1)))]
    return best


def _errors(strategy: Strategy, publish: Sequence[Publish], noise: float) -> list[float]:
    """Return mean squared errors of what is published, at one unit of the budget."""
    return [noise * float(np.square(strategy.deviations(each)).mean()) for each in publish]


def rms(strategy: Any, publish: Publish, *, times: int = 1, apart: int = 1) -> float:
    """Return the root mean squared error of counts, for l2 sensitivity 1 a period and one unit of
    noise.
    """
    noise = float(strategy.l2_squared(times=times, apart=apart, cells=1, signed=False))
    return sqrt(_errors(strategy, [publish], noise)[0])
