"""Discrete Gaussian noise on integers: for counts and sums in `zcdp` budgets. The noise of a whole
vector is scaled to its l2 sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, fsum, log, pi
from typing import ClassVar

from discreet.budget import Loss
from discreet.mechanisms import fields
from discreet.mechanisms.shapes import Integers, Norm, Sensitivity
from discreet.mechanisms.tails import enclose, gaussian_tail
from discreet.noise import Items, Stream, add_noise, discrete_gaussian, table


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Release x + Z, with Z of mass proportional to exp(-z^2 / 2 sigma^2) on the integers, for each
    coordinate.

    Privacy
        For vectors x, x' of integers with |x - x'|_2^2 <= l2_squared: rho = l2_squared / (2
        sigma^2) [Canonne, Kamath, Steinke 2020]. The Renyi divergence of order a between two such
        noises whose centers are d apart is at most a d^2 / (2 sigma^2), as for the continuous
        Gaussian. There is no epsilon with delta = 0: the mechanism is not pure.
    Error
        E Z^2 is at most sigma^2; see `margin`.
    """

    sigma: Fraction
    l2_squared: Fraction

    norm: ClassVar[Norm] = "l2"
    words: ClassVar[str] = "discrete Gaussian noise of σ"
    gaussian: ClassVar[bool] = True
    reaches: ClassVar[tuple[tuple[int, Fraction], ...]] = ()

    def __post_init__(self) -> None:
        fields.positive("sigma", self.sigma)
        fields.positive("l2_squared", self.l2_squared)

    @property
    def spread(self) -> Fraction:
        return Fraction(self.sigma)

    @property
    def deviation(self) -> float:
        return float(self.sigma)

    def hides(self, moved: Sensitivity) -> bool:
        return moved.l2_squared is not None and moved.l2_squared <= self.l2_squared

    def loss(self) -> Loss:
        return Loss(epsilon=None, rho=Fraction(self.l2_squared) / (2 * self.sigma**2))

    def log_mass(self, z: int) -> float:
        exponent = float(table.gaussian(self.sigma).exponent(abs(z)))
        return -exponent - _log_total(Fraction(self.sigma))

    def add_to(self, values: Integers, stream: Stream, items: Items) -> Integers:
        return add_noise(values, discrete_gaussian(stream, items, self.sigma))

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest half-width that holds the noise with at least this probability."""
        return _margin(Fraction(self.sigma), fields.confidence(confidence))


def _log_total(sigma: Fraction) -> float:
    """Return the log of the sum of exp(-z^2 / 2 sigma^2) over all integers z.

    For sigma >= 1 use Poisson summation, of which two terms are enough.
    """
    s = float(sigma)
    if s < 1:
        return log(1 + 2 * fsum(exp(-(z / s) * (z / s) / 2) for z in range(1, 12)))
    return log(s) + log(2 * pi) / 2 + 2 * exp(-2 * (pi * s) ** 2)


@lru_cache(maxsize=4096)
def _margin(sigma: Fraction, confidence: Fraction) -> int:
    tail = gaussian_tail.exactly(sigma)
    return enclose.smallest(tail, times=1, delta=(1 - confidence) / 2) - 1
