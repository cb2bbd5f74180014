"""Group keys whose domain is not public: a key leaves only if its noisy value reaches a threshold (S5).

The released number is the tested one, so that a test costs δ and nothing else. `TruncatedLaplaceThreshold` keeps the
most keys in `sum` budgets, `GaussianThreshold` in `zcdp` budgets; `LaplaceThreshold` is the plain form.

One person touches at most `max_groups` keys and adds between 0 and `linf` to the value of each: counts, persons, sums
that cannot be negative. Only keys that exist are passed in; those that survive leave by their places among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.calibrate import gaussian_sigma, laplace_scale
from discreet.accounting.zcdp import pure_rho
from discreet.budget import AccountantName, Loss, Neighbors
from discreet.mechanisms import fields, gaussian_tail, tails
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.noise import Items, Stream, added, discrete_laplace

Integers = NDArray[Any]
Survivors = tuple[NDArray[np.intp], Integers]
"""The places of the keys that survive, and the noisy value of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceThreshold:
    """Release x + Z for each existing key where it is at least `threshold`; Z is discrete Laplace.

    Privacy
        epsilon = max_groups * linf / scale, twice that under change_one. delta is as given: `threshold` is the smallest
        with 1 - (1 - P(linf + Z >= threshold))^max_groups <= delta. In zCDP, delta-approximately, rho is that of as
        many pure mechanisms of linf / scale. Proof: docs/proofs/threshold.md.
    Error
        Of a key before selection: `margin`. A key of `threshold` persons survives with probability just over 1/2.
    """

    scale: Fraction
    linf: int
    max_groups: int
    neighbors: Neighbors
    delta: Fraction

    def __post_init__(self) -> None:
        fields.rationals(self, "scale", "delta")
        _check(self)

    @property
    def noise(self) -> DiscreteLaplace:
        return DiscreteLaplace(scale=self.scale, l1=Fraction(_touched(self) * self.linf))

    @property
    def threshold(self) -> int:
        return self.linf + _offset(self)

    def loss(self) -> Loss:
        each = self.linf / self.scale
        return Loss(epsilon=_touched(self) * each, rho=_touched(self) * pure_rho(epsilon=each), delta=self.delta)

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors:
        return _survivors(self.noise.add_to(values, stream, items), self.threshold)

    def margin(self, confidence: Fraction | float) -> int:
        return self.noise.margin(confidence)

    def log_mass(self, value: int, released: int | None) -> float:
        """Log-probability that a key of this value leaves as that number, or (None) stays."""
        if released is None:
            return _log_below(tails.laplace(self.scale), self.threshold - value)
        return self.noise.log_mass(released - value) if released >= self.threshold else -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThreshold:
    """Release x + Z for each existing key where it is at least `threshold`; Z is discrete Gaussian.

    Privacy
        delta-approximate rho-zCDP: rho = max_groups * linf^2 / (2 sigma^2), twice that under change_one; delta is as
        given, and sets `threshold` as in `LaplaceThreshold`. Proof: docs/proofs/threshold.md.
    Error
        Of a key before selection: `margin`.
    """

    sigma: Fraction
    linf: int
    max_groups: int
    neighbors: Neighbors
    delta: Fraction

    def __post_init__(self) -> None:
        fields.rationals(self, "sigma", "delta")
        _check(self)

    @property
    def noise(self) -> DiscreteGaussian:
        return DiscreteGaussian(sigma=self.sigma, l2_squared=Fraction(_touched(self) * self.linf**2))

    @property
    def threshold(self) -> int:
        return self.linf + _offset(self)

    def loss(self) -> Loss:
        return Loss(epsilon=None, rho=self.noise.loss().rho, delta=self.delta)

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors:
        return _survivors(self.noise.add_to(values, stream, items), self.threshold)

    def margin(self, confidence: Fraction | float) -> int:
        return self.noise.margin(confidence)

    def log_mass(self, value: int, released: int | None) -> float:
        """Log-probability that a key of this value leaves as that number, or (None) stays."""
        if released is None:
            return _log_below(gaussian_tail.exactly(self.sigma), self.threshold - value)
        return self.noise.log_mass(released - value) if released >= self.threshold else -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplaceThreshold:
    """Release x + Z for each existing key where it exceeds `reach`; Z is discrete Laplace, drawn anew beyond ±`reach`.

    Noise that ends lets the threshold stand at its end. At linf = 1 this is, but for the rounding of `reach`, the rule
    that keeps every key most often among all (epsilon, delta)-private ones [Desfontaines, Voss, Gipson, Mandayam 2022].
    At epsilon 0.1, delta 1e-6 a key of 110 persons survives half of the time; `LaplaceThreshold` needs 133.

    Privacy
        A key that a person touches costs (linf / scale, delta_0), whether or not others touch it. With j such keys (j =
        max_groups, twice that under change_one) epsilon = j * linf / scale, and `reach` is the smallest with
        1 - (1 - delta_0)^j <= delta. In zCDP as for `LaplaceThreshold`. Proof: docs/proofs/threshold.md.
    Error
        Of a key before selection: `margin`.
    """

    scale: Fraction
    linf: int
    max_groups: int
    neighbors: Neighbors
    delta: Fraction

    def __post_init__(self) -> None:
        fields.rationals(self, "scale", "delta")
        _check(self)

    @property
    def reach(self) -> int:
        return _offset(self)

    @property
    def threshold(self) -> int:
        return self.reach + 1

    def loss(self) -> Loss:
        each = self.linf / self.scale
        return Loss(epsilon=_touched(self) * each, rho=_touched(self) * pure_rho(epsilon=each), delta=self.delta)

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors:
        return _survivors(added(values, self._noise(stream, items)), self.threshold)

    def _noise(self, stream: Stream, items: Items) -> Integers:
        """Drawn anew while out of reach: how often is independent of the noise that is kept, and of the data."""
        reach, trial = self.reach, 0
        drawn: Integers = discrete_laplace(stream.derive("trial", trial), items, self.scale)
        left = np.flatnonzero(np.abs(drawn) > reach)
        while len(left):
            trial += 1
            drawn[left] = discrete_laplace(stream.derive("trial", trial), items.at(left), self.scale)
            left = left[np.abs(drawn[left]) > reach]
        return drawn

    def margin(self, confidence: Fraction | float) -> int:
        """The smallest half-width that holds the noise with at least this probability."""
        wanted = float(fields.confidence(confidence))
        low, high = -1, self.reach
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.coverage(middle) >= wanted else (middle, high)
        return high

    def coverage(self, half_width: int) -> float:
        """P(|Z| <= half_width), for a half-width up to `reach`."""
        return _around(half_width, self.scale) / _around(self.reach, self.scale)

    def log_mass(self, value: int, released: int | None) -> float:
        """Log-probability that a key of this value leaves as that number, or (None) stays."""
        if released is not None:
            return self._log_noise(released - value) if released > self.reach else -math.inf
        staying = np.arange(-self.reach, min(self.reach, self.reach - value) + 1)
        return math.log(math.fsum(math.exp(self._log_noise(int(z))) for z in staying)) if len(staying) else -math.inf

    def _log_noise(self, z: int) -> float:
        if abs(z) > self.reach:
            return -math.inf
        return -abs(z) / float(self.scale) - math.log(_around(self.reach, self.scale))


_Threshold = LaplaceThreshold | GaussianThreshold | TruncatedLaplaceThreshold


def _check(mechanism: _Threshold) -> None:
    fields.whole("linf", mechanism.linf)
    fields.whole("max_groups", mechanism.max_groups)
    fields.neighbors(mechanism.neighbors)
    fields.below("delta", mechanism.delta, Fraction(1, 2))


def _touched(mechanism: _Threshold) -> int:
    """How many keys' values one person may move: under change_one, those left and those joined."""
    return mechanism.max_groups * (2 if mechanism.neighbors == "change_one" else 1)


@lru_cache(maxsize=1024)
def _offset(mechanism: _Threshold) -> int:
    """How far the noise must rarely go; see each class."""
    match mechanism:
        case LaplaceThreshold():
            tail, times, least = tails.laplace(mechanism.scale), mechanism.max_groups, 1
        case GaussianThreshold():
            tail, times, least = gaussian_tail.exactly(mechanism.sigma), mechanism.max_groups, 1
        case TruncatedLaplaceThreshold():
            tail, times = tails.truncated_laplace(mechanism.scale, mechanism.linf), _touched(mechanism)
            least = mechanism.linf
    return tails.smallest(tail, times=times, delta=mechanism.delta, least=least)


def on_people(
    accountant: AccountantName, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
) -> TruncatedLaplaceThreshold | GaussianThreshold:
    """The test of how many people have a key, for an amount of an accountant's currency: each adds 1 to a key (S5)."""
    touched = Fraction(max_groups * (2 if neighbors == "change_one" else 1))
    if accountant == "sum":
        scale = laplace_scale(l1=touched, epsilon=amount)
        return TruncatedLaplaceThreshold(scale=scale, linf=1, max_groups=max_groups, neighbors=neighbors, delta=delta)
    sigma = gaussian_sigma(l2_squared=touched, rho=amount)
    return GaussianThreshold(sigma=sigma, linf=1, max_groups=max_groups, neighbors=neighbors, delta=delta)


def _survivors(noisy: Integers, threshold: int) -> Survivors:
    kept = np.flatnonzero(noisy >= threshold)
    return kept, noisy[kept]


def _log_below(tail: tails.Tail, t: int) -> float:
    """log P(noise < t), for noise that is symmetric around 0."""
    bits = 256
    low, high = tail(max(t, 1 - t), bits)
    p = (low + high) / 2 ** (bits + 1)
    return math.log1p(-p) if t >= 1 else math.log(p)


def _around(half_width: int, scale: Fraction) -> float:
    """The sum of exp(-|z| / s) over |z| <= half_width."""
    step = -1 / float(scale)
    return (2 * math.expm1((half_width + 1) * step) - math.expm1(step)) / math.expm1(step)
