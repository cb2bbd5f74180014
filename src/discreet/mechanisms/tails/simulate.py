"""Simulate how far an answer may be off, by adding fresh noise to the released numbers (S11).

This is free, because it reads no data. The simulated noise is public and the same for everybody,
for every answer and at every resume. So a margin is a function of the noisy numbers alone, and
everybody computes the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import Unproved
from discreet.mechanisms import shapes
from discreet.mechanisms.combined import DrawSum
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.running import Running

Floats = npt.NDArray[np.float64]
# draws from which on their sum is redrawn as one normal number: at 95 % it is wider by 1.3 %, no
# more
_MANY = 8
_LEVELS = (0.93, 0.95, 0.965, 0.98)  # at which answers that bend are compared with straight ones
# the level that is taken where there is nothing to compare with: a little more than 95 %
_MIDDLE = 2
_LISTED = 64  # sigma below which discrete Gaussian noise is told from rounded normal numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Several:
    """The noise of a sum of several noisy numbers, each with independent noise."""

    noise: shapes.Additive
    draws: int


# on a number that was measured, or added up from such, or whose running totals were measured
Noise = shapes.Noise | Several | Running


def part(noise: Noise, factor: Fraction = Fraction(1)) -> DrawSum:
    """Return the noise of one number, times a factor."""
    if isinstance(noise, Running):  # such numbers share their noise: they have no part of their own
        raise Unproved("the noise of running totals was taken for that of single numbers")
    if isinstance(noise, Several):
        return DrawSum(noise=noise.noise, factor=factor, draws=noise.draws)
    return DrawSum(noise=noise, factor=factor)


def redrawn(noises: Sequence[Noise], times: int) -> list[Any]:
    """Draw whole numbers from the noise of each number. The draws at one place of all lists belong
    to one repetition.
    """
    found, first = [], 0
    for noise in noises:
        each = part(noise)
        if each.draws >= _MANY or (each.draws > 1 and each.gaussian):
            each = DrawSum(noise=_normal(each), factor=each.factor)
        lists = [
            _draw(each.gaussian, each.spread, times, first + place) for place in range(each.draws)
        ]
        first += each.draws
        found.append(_whole(np.sum(lists, axis=0)))
    return found


def redrawn_quantile(distance: Floats) -> Floats:
    """Return a little more than the 95 % quantile of the redrawn distances, which have a row for
    each repetition.
    """
    return np.asarray(redrawn_quantiles(distance)[_MIDDLE])


def redrawn_quantiles(distance: Floats) -> Floats:
    """Return the distances at `_LEVELS` of n redrawn ones, a row each: the k-th smallest, k / (n +
    1) >= level.
    """
    n = len(distance)
    places = [min(n, math.ceil(level * (n + 1))) - 1 for level in _LEVELS]
    return np.asarray(np.partition(distance, sorted(set(places)), axis=0)[places])


def simulate(
    distance: Floats, slopes: Floats, noises: Sequence[Noise], drawn: Sequence[Any]
) -> Floats:
    """Return the half-widths of a function from its redrawn distances (repetitions by groups) and
    its slopes.

    For the linear function with the same slopes the half-width is known. On the same draws the
    distances of both are nearly proportional, and their ratio hardly depends on the draws, so a few
    hundred draws give it to less than a percent. Take the largest ratio among `_LEVELS`; no margin
    is narrower than that of the linear function.
    """
    with np.errstate(
        invalid="ignore", over="ignore"
    ):  # where there is no slope, nothing is compared
        straight = np.abs(
            np.tensordot(np.array([each.astype(np.float64) for each in drawn]), slopes, (0, 0))
        )
        found = redrawn_quantiles(distance)
        beside = redrawn_quantiles(straight)
        known = (np.isfinite(beside) & (beside > 0) & np.isfinite(found)).all(axis=0)
        farther = np.divide(found, beside, out=np.ones_like(found), where=known).max(axis=0)
        widths = np.maximum(farther, 1.0) * straight_half_widths(slopes, noises)
        return np.asarray(np.where(known, widths, found[_MIDDLE]))


_PEAKED = (0.0, 0.25, 0.5, 1.0)  # of a Laplace number's excess kurtosis
# at most, that hold 95 % of a sum of Laplace and normal numbers
_DEVIATIONS = (1.96, 2.0135, 2.059, 2.1185)


def straight_half_widths(slopes: Floats, noises: Sequence[Noise]) -> Floats:
    """Return the half-widths of sum(slope * noise), for many slopes at once (numbers by groups).

    How many standard deviations hold 95 % follows from the kurtosis, within a hundredth: 1.96 of a
    normal number and ln 20 / √2 of a Laplace one. Half a unit of each number is added for the grid
    (see `mechanisms.combined`); of many numbers less: what the grid takes from each is one of many
    small errors, and those of both signs.
    """
    parts = [part(noise) for noise in noises]
    variances = np.array(
        [each.draws * each.spread**2 * (1 if each.gaussian else 2) for each in parts]
    )
    fourth = np.array([0.0 if each.gaussian else 4 * each.draws * each.spread**4 for each in parts])
    with np.errstate(invalid="ignore", over="ignore"):
        steepest = np.abs(slopes).max(axis=0)
        # whose powers stay small
        shares = np.divide(slopes, steepest, out=np.zeros_like(slopes), where=steepest > 0)
        variance = np.tensordot(variances, shares**2, 1)
        peaked = np.divide(
            np.tensordot(fourth, shares**4, 1),
            variance**2,
            out=np.ones_like(variance),
            where=variance > 0,
        )
        grid = np.minimum(
            np.abs(shares).sum(axis=0) / 2, 0.5 + 0.6 * np.sqrt((shares**2).sum(axis=0))
        )
        return np.asarray(
            (np.interp(peaked, _PEAKED, _DEVIATIONS) * np.sqrt(variance) + grid) * steepest
        )


def half_widths(
    function: Callable[[Floats], Floats], numbers: Floats, noise: Noise, times: int
) -> Floats:
    """Return the half-widths of a function of noisy numbers, along its first axis; infinite if it
    has no value.
    """
    noises = [noise] * len(numbers)
    step = part(noise).spread
    drawn = redrawn(noises, times)
    alone = step * np.eye(len(numbers))
    together = np.array([each.astype(np.float64) for each in drawn])
    center, moved, up, down = (
        np.atleast_2d(function(numbers[:, None] + off)).T
        for off in (np.zeros(1), -together, alone, -alone)
    )
    distance = np.abs(moved - center)
    return simulate(
        np.where(np.isfinite(distance), distance, np.inf), (up - down) / (2 * step), noises, drawn
    )


def _normal(each: DrawSum) -> DiscreteGaussian:
    """Return normal noise that is at least as wide: discrete noise has no larger variance than
    continuous noise of the same scale.
    """
    variance = each.draws * each.noise.spread**2 * (1 if each.gaussian else 2)
    fine = 1 << max(0, 64 - int(variance).bit_length())
    root = math.isqrt(math.ceil(variance * fine * fine)) + 1
    return DiscreteGaussian(sigma=Fraction(root, fine), l2_squared=Fraction(1))


def _whole(draws: Floats) -> Any:
    if np.abs(draws).max(initial=0.0) < 2.0**62:
        return draws.astype(np.int64)
    return np.array([int(each) for each in draws], dtype=object)


@lru_cache(maxsize=512)
def _draw(gaussian: bool, spread: float, times: int, place: int) -> Floats:
    """Draw once from each of `times` parts of equal probability, in an order that depends on the
    place.
    """
    if not gaussian:
        return np.asarray(_laplace(spread, times)[_order(times, place)])
    return np.asarray(_gaussian(spread, times)[_order(times, place)])


def _laplace(scale: float, times: int) -> Floats:
    """Return quantiles: the largest z with P(Z >= z) = r^z / (1 + r) above p, for p below a
    half.
    """
    r = math.exp(-1 / max(scale, 1e-3))
    beyond = (np.arange(times // 2) + 0.5) / times
    upper = np.maximum(np.floor(-np.log(beyond * (1 + r)) * max(scale, 1e-3)), 0.0)
    return _both_sides(upper, times)


def _gaussian(sigma: float, times: int) -> Floats:
    if sigma >= _LISTED:
        return _both_sides(np.rint(sigma * _upper_normal(times)), times)
    mass = np.exp(-((np.arange(math.ceil(10 * sigma) + 2) / max(sigma, 1e-3)) ** 2) / 2)
    beyond = np.cumsum(mass[::-1])[::-1] / (2 * mass.sum() - 1)  # P(Z >= 0), P(Z >= 1), ...
    wanted = (np.arange(times // 2) + 0.5) / times
    return _both_sides(
        np.maximum(len(beyond) - np.searchsorted(beyond[::-1], wanted) - 1.0, 0.0), times
    )


def _both_sides(upper: Floats, times: int) -> Floats:
    """Return numbers from the largest down, and their mirror images; zero between if there is an
    odd one.
    """
    return np.concatenate([upper, np.zeros(times % 2), -upper])


@lru_cache(maxsize=16)
def _upper_normal(times: int) -> Floats:
    quantile = NormalDist().inv_cdf
    return np.array([-quantile((place + 0.5) / times) for place in range(times // 2)])


@lru_cache(maxsize=512)
def _order(times: int, place: int) -> npt.NDArray[np.intp]:
    """Return a shuffled order, a different one for every place, by a fixed public mix of bits."""
    with np.errstate(over="ignore"):
        mixed = _mix(_mix(np.uint64(place + 1)) ^ np.arange(times, dtype=np.uint64))
    return np.argsort(mixed, kind="stable")


def _mix(x: Any) -> Any:
    """Apply the finalizer of SplitMix64."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
