"""Thresholds for group keys whose domain is not public: a key is released only if its noisy value
reaches a threshold (S5).

The released number is the tested number, so the test costs nothing except δ.
`TruncatedLaplaceThreshold` keeps the most keys in `sum` budgets, `GaussianThreshold` in `zcdp`
budgets; `LaplaceThreshold` is the plain form.

One person touches at most `max_groups` keys and adds between 0 and `linf` to the value of each:
counts, persons, sums that cannot be negative. Only keys that exist are passed in; those that
survive leave by their places among them.

A threshold is a whole number, and the smallest one that δ allows may leave most of δ unused. So for
each key a coin, which does not depend on data, raises the threshold by one with probability
`later`, which is as small as δ allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss, Neighbors
from discreet.mechanisms import fields
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.shapes import Additive, Integers, Keys, Survivors
from discreet.mechanisms.tails import enclose, gaussian_tail
from discreet.noise import Items, Stream, add_noise, bernoulli, discrete_laplace


class _Endless:
    """The methods that both thresholds with unbounded noise share."""

    __slots__ = ()
    linf: int
    max_groups: int
    neighbors: Neighbors

    reaches: ClassVar[tuple[tuple[int, Fraction], ...]] = ()

    @property
    def noise(self) -> Additive:
        raise NotImplementedError

    @property
    def spread(self) -> Fraction:
        return self.noise.spread

    @property
    def gaussian(self) -> bool:
        return self.noise.gaussian

    def hides(self, moved: Keys) -> bool:
        return _hides(self, moved)

    @property
    def threshold(self) -> int:
        return self.linf + _offset(self)[0]

    @property
    def later(self) -> Fraction:
        return _offset(self)[1]

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors:
        return _survivors(
            self.noise.add_to(values, stream, items),
            self.threshold + _raise(self.later, stream, items),
        )

    def margin(self, confidence: Fraction | float) -> int:
        return self.noise.margin(confidence)

    def log_mass(self, value: int, released: int | None) -> float:
        """Return the log-probability that a key of this value leaves as that number, or (None)
        stays.
        """
        at = self.threshold
        chances = (float(1 - self.later), at), (float(self.later), at + 1)  # of each threshold
        if released is None:
            tail = _tail(self)  # type: ignore[arg-type]
            return math.log(
                math.fsum(
                    chance * math.exp(_log_below(tail, least - value)) for chance, least in chances
                )
            )
        shown = math.fsum(chance for chance, least in chances if released >= least)
        if shown:
            return float(self.noise.log_mass(released - value)) + math.log(shown)
        return -math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceThreshold(_Endless):
    """Release x + Z for each existing key where it is at least `threshold`, or one more; Z is
    discrete Laplace.

    Privacy
        epsilon = max_groups * linf / scale, twice that under change_one. delta is as given:
        `threshold` and `later` are the smallest with 1 - (1 - p)^max_groups <= delta, where p is
        the chance that linf + Z reaches it. In zCDP, delta-approximately, rho is that of as many
        pure mechanisms of linf / scale. Proof: docs/proofs/threshold.md.
    Error
        Of a key before selection: `margin`. A key of `threshold` + 1 persons survives more often
        than not.
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
        return DiscreteLaplace(scale=self.scale, l1=Fraction(_keys_moved(self) * self.linf))

    def loss(self) -> Loss:
        each = self.linf / self.scale
        return Loss(
            epsilon=_keys_moved(self) * each,
            rho=_keys_moved(self) * pure_rho(epsilon=each),
            delta=self.delta,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianThreshold(_Endless):
    """Release x + Z for each existing key where it is at least `threshold`, or one more; Z is
    discrete Gaussian.

    Privacy
        delta-approximate rho-zCDP: rho = max_groups * linf^2 / (2 sigma^2), twice that under
        change_one; delta is as given, and sets `threshold` and `later` as in `LaplaceThreshold`.
        Proof: docs/proofs/threshold.md.
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
        return DiscreteGaussian(
            sigma=self.sigma, l2_squared=Fraction(_keys_moved(self) * self.linf**2)
        )

    def loss(self) -> Loss:
        return Loss(epsilon=None, rho=self.noise.loss().rho, delta=self.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncatedLaplaceThreshold:
    """Release x + Z for each existing key if it exceeds R. Z is discrete Laplace noise, which is
    drawn again if it is beyond ±R.

    Since the noise ends at R, the threshold can be at R. R is `reach`, or one more with probability
    `later`. At linf = 1 this is, within a 256th of a person, the rule that keeps every key most
    often among all (epsilon, delta)-private ones [Desfontaines, Voss, Gipson, Mandayam 2022]. At
    epsilon 0.1 and delta 1e-6 a key of 109 persons survives half of the time; `LaplaceThreshold`
    needs 133.

    Privacy
        A key that a person touches costs (linf / scale, delta_0), whether or not others touch it.
        With j such keys (j = max_groups, twice that under change_one) epsilon = j * linf / scale,
        and `reach` and `later` are the smallest with 1 - (1 - delta_0)^j <= delta. In zCDP as for
        `LaplaceThreshold`. Proof: docs/proofs/threshold.md.
    Error
        Of a key before selection: `margin`.
    """

    scale: Fraction
    linf: int
    max_groups: int
    neighbors: Neighbors
    delta: Fraction

    gaussian: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fields.rationals(self, "scale", "delta")
        _check(self)

    @property
    def spread(self) -> Fraction:
        return self.scale

    @property
    def reaches(self) -> tuple[tuple[int, Fraction], ...]:
        return (self.reach, 1 - self.later), (self.reach + 1, self.later)

    def hides(self, moved: Keys) -> bool:
        return _hides(self, moved)

    @property
    def reach(self) -> int:
        return _offset(self)[0]

    @property
    def later(self) -> Fraction:
        return _offset(self)[1]

    @property
    def threshold(self) -> int:
        return self.reach + 1

    def loss(self) -> Loss:
        each = self.linf / self.scale
        return Loss(
            epsilon=_keys_moved(self) * each,
            rho=_keys_moved(self) * pure_rho(epsilon=each),
            delta=self.delta,
        )

    def release(self, values: Integers, stream: Stream, items: Items) -> Survivors:
        reach = self.reach + _raise(self.later, stream, items)
        return _survivors(add_noise(values, self._noise(stream, items, reach)), reach + 1)

    def _noise(self, stream: Stream, items: Items, reach: NDArray[np.int64]) -> Integers:
        """Draw again while the noise is out of reach. The number of draws depends neither on the
        kept noise nor on data.
        """
        trial = 0
        drawn: Integers = discrete_laplace(stream.derive("trial", trial), items, self.scale)
        left = np.flatnonzero(np.abs(drawn) > reach)
        while len(left):
            trial += 1
            drawn[left] = discrete_laplace(
                stream.derive("trial", trial), items.at(left), self.scale
            )
            left = left[np.abs(drawn[left]) > reach[left]]
        return drawn

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest half-width that holds the noise with at least this probability."""
        wanted = float(fields.confidence(confidence))
        low = -1
        high = self.reach + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.coverage(middle) >= wanted else (middle, high)
        return high

    def coverage(self, half_width: int) -> float:
        """Return P(|Z| <= half_width)."""
        return sum(
            chance * _around(min(half_width, reach), self.scale) / _around(reach, self.scale)
            for reach, chance in self._reaches()
        )

    def log_mass(self, value: int, released: int | None) -> float:
        """Return the log-probability that a key of this value leaves as that number, or (None)
        stays.
        """
        chances = [chance * self._mass(value, released, reach) for reach, chance in self._reaches()]
        return math.log(math.fsum(chances)) if any(chances) else -math.inf

    def _reaches(self) -> list[tuple[int, float]]:
        """Return the distances that the noise may go, each with its probability."""
        return [(reach, float(chance)) for reach, chance in self.reaches]

    def _mass(self, value: int, released: int | None, reach: int) -> float:
        if released is not None:
            return self._noise_mass(released - value, reach) if released > reach else 0.0
        staying = range(-reach, min(reach, reach - value) + 1)
        return math.fsum(self._noise_mass(z, reach) for z in staying)

    def _noise_mass(self, z: int, reach: int) -> float:
        if abs(z) <= reach:
            return math.exp(-abs(z) / float(self.scale)) / _around(reach, self.scale)
        return 0.0


_Threshold = LaplaceThreshold | GaussianThreshold | TruncatedLaplaceThreshold


def _check(mechanism: _Threshold) -> None:
    fields.whole("linf", mechanism.linf)
    fields.whole("max_groups", mechanism.max_groups)
    fields.neighbors(mechanism.neighbors)
    fields.below("delta", mechanism.delta, Fraction(1, 2))


def _keys_moved(mechanism: _Threshold) -> int:
    """Return the number of keys whose values one person may move. Under change_one a person may
    leave some keys and join others.
    """
    return mechanism.max_groups * (2 if mechanism.neighbors == "change_one" else 1)


def _hides(mechanism: _Endless | TruncatedLaplaceThreshold, moved: Keys) -> bool:
    """Return True if adding 1 to each of a person's keys is hidden. Noise that hides replacing a
    person also hides adding one.
    """
    related = mechanism.neighbors in (moved.neighbors, "change_one")
    return related and moved.most <= mechanism.max_groups and mechanism.linf >= 1


@lru_cache(maxsize=1024)
def _offset(mechanism: _Threshold) -> tuple[int, Fraction]:
    """Return how far the noise may rarely go, and how often one farther; see each class."""
    tail = _tail(mechanism)
    ends = isinstance(mechanism, TruncatedLaplaceThreshold)
    times, least = (_keys_moved(mechanism), mechanism.linf) if ends else (mechanism.max_groups, 1)
    far = enclose.smallest(tail, times=times, delta=mechanism.delta, least=least)
    if far == least:
        return far, Fraction(0)
    return far - 1, enclose.smallest_share(tail, far, times=times, delta=mechanism.delta)


def _tail(mechanism: _Threshold) -> enclose.Tail:
    match mechanism:
        case LaplaceThreshold():
            return enclose.laplace(mechanism.scale)
        case GaussianThreshold():
            return gaussian_tail.exactly(mechanism.sigma)
    return enclose.truncated_laplace(mechanism.scale, mechanism.linf)


def _raise(later: Fraction, stream: Stream, items: Items) -> NDArray[np.int64]:
    """Return by how much each key's threshold is raised: 0 or 1."""
    return bernoulli(stream.derive("later"), items, later).astype(np.int64)


def _survivors(noisy: Integers, threshold: NDArray[np.int64]) -> Survivors:
    kept = np.flatnonzero(noisy >= threshold)
    return kept, noisy[kept]


def _log_below(tail: enclose.Tail, t: int) -> float:
    """Return log P(noise < t), for noise that is symmetric around 0."""
    bits = 256
    low, high = tail(max(t, 1 - t), bits)
    p = (low + high) / 2 ** (bits + 1)
    return math.log1p(-p) if t >= 1 else math.log(p)


def _around(half_width: int, scale: Fraction) -> float:
    """Return the sum of exp(-|z| / s) over |z| <= half_width."""
    step = -1 / float(scale)
    return (2 * math.expm1((half_width + 1) * step) - math.expm1(step)) / math.expm1(step)
