"""Price a batch: a list of losses that is fixed before the first answer, by privacy-loss
distributions.

This is the tightest possible price, but it is not a filter: if a later loss depends on an earlier
answer, the claim is false (see the counterexample in the tests). So the whole batch is one (ε, δ)
row, in `sum` budgets only (S6). The questions of a batch may depend on earlier answers, but their
losses may not.

    the loss of an output y is log(p(y) / q(y)), p on a table and q on its neighbor; its mass is
    p(y); losses of independent outputs add, so their distributions convolve;  δ(ε) = E max(0, 1 -
    exp(ε - loss)).

Every error makes the price larger, never smaller:
  - an atom between two grid points is divided between them so that its p and its q are kept. To
    merge the two again is post-processing, so the divided pair dominates [Doroshenko et al. 2022
    reach the same in another way];
  - masses are multiplied by exp(λ loss) (tilted) before the transform, so that its rounding errors
    are relative to the tail on which δ depends, and not to 1. A bound on them is added to every
    cell;
  - mass that wraps around is only added. Mass above the window is bounded by Chernoff and added to
    δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.budget import Loss, number, round_up
from discreet.errors import UsageError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# relative; far above what a few float operations lose, far below what anybody could notice
_GUARD = 1e-10
_LEAST = 1e-12  # a loss of 0 is computed as this one
_MOST_POINTS = 2**20
_MOST_CELLS = 2**22
_DIGITS = 9  # of the price


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossDistribution:
    """The possible losses of a mechanism, each with its mass, and the mass `lost` of an infinite
    loss.

    It must dominate the mechanism in both directions, table against neighbor and neighbor against
    table. `most` is an exact bound on the finite losses.
    """

    values: Floats
    masses: Floats
    lost: float
    most: Fraction


@lru_cache(maxsize=1024)
def response(*, epsilon: Fraction, delta: Fraction) -> LossDistribution:
    """Return the losses of a randomized response that reveals everything with probability δ.

    It dominates every (ε, δ)-DP mechanism [Kairouz, Oh, Viswanath 2015].
    """
    loss = max(math.nextafter(float(epsilon), math.inf), _LEAST)
    lost = math.nextafter(float(delta), math.inf) if delta else 0.0
    likely = 1 / (1 + math.exp(-loss))
    masses = np.array([likely, math.exp(-loss) * likely]) * (1 - lost) * (1 + _GUARD)
    return LossDistribution(values=np.array([loss, -loss]), masses=masses, lost=lost, most=epsilon)


def shift(log_mass: Callable[[int], float], *, by: int) -> LossDistribution:
    """Return the loss of symmetric, log-concave integer noise on ONE number that a person moves by
    at most `by`.

    For a vector that one person moves in several places take `response` of its ε. Noise of a large
    scale has too many points; Laplace noise may be divided first: scale / k and by / k for a k that
    divides `by` (its base-k digits are independent, so noise on the finer grid is post-processing
    of that on the coarser one).
    """
    reach = 1
    while log_mass(reach) > -80:
        reach *= 2
        if reach + by > _MOST_POINTS:
            raise UsageError(
                f"Noise with more than {_MOST_POINTS} likely values is too wide for a planned batch."
            )
    half = np.array([log_mass(z) for z in range(reach + by + 2)])
    points = np.arange(-reach, reach + by + 1)
    p = half[np.abs(points)]
    q = half[np.abs(points - by)]
    # Privacy: log_mass may be off by some units in its last place
    values = p - q + (np.abs(p) + np.abs(q)) * 1e-14
    # Log-concave: beyond the reach each mass is at most this part of the one before, on either
    # side.
    ratio = float(half[reach + 1] - half[reach])
    lost = 2 * math.exp(half[reach + 1]) / -math.expm1(ratio) * (1 + _GUARD)
    masses = np.exp(p) * (1 + _GUARD)
    return LossDistribution(
        values=values, masses=masses, lost=lost, most=Fraction(float(values.max()))
    )


def batch(losses: Sequence[LossDistribution], *, delta: Fraction) -> Loss:
    """Return the ε of all losses together at this δ, rounded up to nine digits. It is at most the
    sum of their ε.

    A distribution that is listed several times as the same object is transformed once.
    """
    if not losses:
        raise UsageError("A batch needs at least one loss.")
    parts = [(losses[place], n) for place, n in _counts(losses).values()]
    lost = -math.expm1(sum(n * math.log1p(-part.lost) for part, n in parts)) * (1 + _GUARD)
    usable = float(delta) * (1 - _GUARD)
    if not (lost < usable and delta < 1):
        raise UsageError(
            f"A batch with δ = {number(lost)} of its own cannot be priced at δ = {number(delta)}."
        )
    plain = sum((n * part.most for part, n in parts), Fraction(0))
    found = _epsilon(parts, delta=usable, lost=lost)
    epsilon = Fraction(found) if found < plain else plain
    return Loss(epsilon=round_up(epsilon, digits=_DIGITS), rho=None, delta=delta)


Parts = list[tuple[LossDistribution, int]]


def _counts(losses: Sequence[LossDistribution]) -> dict[int, tuple[int, int]]:
    """Return the first place of each distinct object, and how often it is listed."""
    counts: dict[int, tuple[int, int]] = {}
    for place, part in enumerate(losses):
        first, n = counts.get(id(part), (place, 0))
        counts[id(part)] = first, n + 1
    return counts


def _epsilon(parts: Parts, *, delta: float, lost: float) -> float:
    """Return the smallest ε that is found with δ(ε) <= delta. Every tilt gives a true claim; try
    lower ones while they may give a smaller ε.
    """
    tilt = _tilt(parts, math.log(delta - lost))
    best = math.inf
    for _ in range(8):
        found, certain = _epsilon_at(parts, tilt, delta=delta, lost=lost)
        best = min(best, found)
        if certain:
            break
        tilt /= 4
    return best


def _epsilon_at(parts: Parts, tilt: float, *, delta: float, lost: float) -> tuple[float, bool]:
    """Return the ε that a window around the tilted mean gives, and True if the added errors hardly
    contribute to it.
    """
    _, mean, variance = _cumulants(parts, tilt)
    reach = 14 * math.sqrt(variance) + max(float(np.ptp(part.values)) for part, _ in parts)
    typical = math.sqrt(
        sum(n * float(part.masses @ part.values**2) for part, n in parts) / sum(n for _, n in parts)
    )
    # Parting an atom adds at most step² / 4 to the variance of one loss: 0.0001 of it on average.
    cells = min(_MOST_CELLS, 2 ** math.ceil(math.log2(2 * reach / (0.02 * typical) + 2**15)))
    step = 2 * reach / cells
    gridded = [(_on_grid(part, step), n) for part, n in parts]
    first = round(mean / step) - cells // 2
    sums = (first + np.arange(cells)) * step
    log_mgf, _, _ = _cumulants(gridded, tilt)
    untilt = np.exp(np.minimum(log_mgf - tilt * sums, 500.0))
    tilted, error = _convolve(gridded, tilt, step, first, cells)
    above = _above(gridded, float(sums[-1]), tilt)
    # A true mass is at most 1, and where the exponent is cut the error alone makes it 1: far below
    # what matters.
    masses = np.minimum((tilted + error) * untilt, 1.0) * (
        1 + _GUARD + 1e-14 * sum(n for _, n in parts)
    )
    cell, epsilon = _crossing(sums, masses, lost + above, delta)
    certain = (cell > 0 or epsilon == 0) and above + float(
        (error * untilt[cell:]).sum()
    ) < delta / 100
    return epsilon, certain


def _tilt(parts: Parts, log_delta: float) -> float:
    """Return the λ for which δ at the tilted mean is about the wanted one, by the saddle point:
    δ is about exp(K - λ K') / (sd √2π λ (λ + 1)).

    It is a guess, which cannot make the price false: the price is true for every λ.
    """
    low = 0.0
    high = 300 / max(float(np.abs(part.values).max()) for part, _ in parts)
    for _ in range(30):
        middle = (low + high) / 2
        log_mgf, mean, variance = _cumulants(parts, middle)
        below = max(1.0, math.sqrt(2 * math.pi * variance) * middle * (middle + 1))
        low, high = (
            (middle, high)
            if log_mgf - middle * mean - math.log(below) > log_delta
            else (low, middle)
        )
    return high


def _cumulants(parts: Parts, tilt: float) -> tuple[float, float, float]:
    """Return log E exp(tilt * loss) of the sum of all losses, and its mean and variance under the
    tilted masses.
    """
    total = np.zeros(3)
    for part, n in parts:
        exponents = tilt * part.values
        top = float(exponents.max())
        weights = part.masses * np.exp(exponents - top)
        whole = float(weights.sum())
        mean = float(weights @ part.values) / whole
        variance = float(weights @ (part.values - mean) ** 2) / whole
        total += n * np.array([math.log(whole) + top, mean, variance])
    return float(total[0]), float(total[1]), float(total[2])


def _on_grid(part: LossDistribution, step: float) -> LossDistribution:
    """Return the same masses on multiples of `step`: each atom is divided between its two
    neighbors.

    The lower one gets the part (exp(upper - loss) - 1) / (exp(step) - 1) of p, which keeps both p
    and q.
    """
    below = np.floor(part.values / step).astype(np.int64)
    lower = np.expm1((below + 1) * step - part.values) / math.expm1(step)
    # Privacy: float errors can only raise a loss
    lower = np.clip(lower * (1 - _GUARD) - _GUARD, 0.0, 1.0)
    least = int(below.min())
    cells = int(below.max()) - least + 2
    masses = _tally(below - least, part.masses * lower, cells)
    masses += _tally(below - least + 1, part.masses * (1 - lower), cells)
    used = np.flatnonzero(masses)
    values = (used + least).astype(np.float64) * step
    return LossDistribution(values=values, masses=masses[used], lost=part.lost, most=part.most)


def _tally(places: Integers, weights: Floats, cells: int) -> Floats:
    return np.bincount(places, weights, minlength=cells).astype(np.float64)


def _convolve(
    gridded: Parts, tilt: float, step: float, first: int, cells: int
) -> tuple[Floats, float]:
    """Return the tilted masses of the sum at (first + i) * step, and a bound on how much too small
    each may be.
    """
    product = np.ones(cells // 2 + 1, dtype=np.complex128)
    for part, n in gridded:
        exponents = tilt * part.values
        weights = part.masses * np.exp(exponents - exponents.max())
        row = _tally(
            np.rint(part.values / step).astype(np.int64) % cells, weights / weights.sum(), cells
        )
        product *= np.fft.rfft(row) ** n
    around = np.fft.irfft(product, cells)
    # Privacy: the rows sum to 1, so each transform is wrong by at most some units of 2^-53 for each
    # of its log2(cells) stages, at every frequency; all factors are at most 1 in size, so the
    # errors of the n factors add.
    factors = sum(n for _, n in gridded) + 2
    error = factors * 16 * math.log2(cells) * 2.0**-53
    return np.maximum(np.roll(around, -first), 0.0), error


def _above(gridded: Parts, top: float, tilt: float) -> float:
    """Return a bound on the probability that the sum exceeds `top`, by Chernoff at several
    tilts.
    """
    tilts = [tilt * 2.0**k for k in range(-2, 5)]
    return min(
        1.0,
        min(math.exp(min(0.0, _cumulants(gridded, t)[0] - t * top)) for t in tilts) * (1 + _GUARD),
    )


def _crossing(sums: Floats, masses: Floats, beyond: float, delta: float) -> tuple[int, float]:
    """Return the smallest ε >= 0 in the window, and its cell, with beyond + sum of p - exp(ε) q <=
    delta.

    The sum is over losses larger than ε.
    """
    middle = sums[len(sums) // 2]
    p = beyond + np.append(np.cumsum(masses[::-1])[::-1], 0.0)  # p[i]: mass at cell i and above
    q = np.append(np.cumsum((masses * np.exp(np.minimum(middle - sums, 700.0)))[::-1])[::-1], 0.0)
    at_cell = p[1:] - np.exp(np.minimum(sums - middle, 700.0)) * q[1:]
    good = np.flatnonzero(at_cell <= delta)
    if not len(good):
        return 0, math.inf
    cell = int(good[0])
    # Between one cell and the next, `cell`, the curve is p[cell] - exp(ε) q[cell].
    exact = (
        float(middle) + math.log((p[cell] - delta) / q[cell])
        if cell and p[cell] > delta
        else float(sums[cell])
    )
    epsilon = min(exact, float(sums[cell]))
    return cell, max(0.0, epsilon + _GUARD * abs(epsilon))
