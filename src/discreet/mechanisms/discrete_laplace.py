"""Discrete Laplace noise on integers: for counts and sums in `sum` budgets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, log, log1p, sqrt
from typing import ClassVar

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss
from discreet.mechanisms import fields
from discreet.mechanisms.shapes import Integers, Norm, Sensitivity
from discreet.mechanisms.tails import enclose
from discreet.noise import Items, Stream, add_noise, discrete_laplace, table


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Release x + Z, with Z of mass tanh(1 / 2s) * exp(-|z| / s) on the integers, independent for
    each coordinate.

    Privacy
        Let x, x' be vectors of integers with |x - x'|_1 <= l1. At any y the masses of x + Z and
        x' + Z differ by a factor of at most exp(sum of (|y - x'| - |y - x|) / s) <= exp(l1 / s). So
        epsilon = l1 / scale and delta = 0 [Ghosh, Roughgarden, Sundararajan 2009]. Like every pure
        mechanism it is epsilon * tanh(epsilon / 2)-zCDP (`pure_rho`). At l1 = 1 this is its KL
        divergence, so no smaller rho is true.
    Error
        E|Z| is about scale; see `margin`.
    """

    scale: Fraction
    l1: Fraction

    norm: ClassVar[Norm] = "l1"
    words: ClassVar[str] = "discrete Laplace noise of scale"
    gaussian: ClassVar[bool] = False
    reaches: ClassVar[tuple[tuple[int, Fraction], ...]] = ()

    def __post_init__(self) -> None:
        fields.positive("scale", self.scale)
        fields.positive("l1", self.l1)

    @property
    def spread(self) -> Fraction:
        return Fraction(self.scale)

    @property
    def deviation(self) -> float:
        return sqrt(2) * float(self.scale)

    def hides(self, moved: Sensitivity) -> bool:
        return moved.l1 is not None and moved.l1 <= self.l1

    def loss(self) -> Loss:
        epsilon = Fraction(self.l1) / self.scale
        return Loss(epsilon=epsilon, rho=pure_rho(epsilon=epsilon))

    def log_mass(self, z: int) -> float:
        step = float(1 / Fraction(self.scale))
        exponent = float(table.laplace(self.scale).exponent(abs(z)))
        return log(-expm1(-step)) - log1p(exp(-step)) - exponent

    def add_to(self, values: Integers, stream: Stream, items: Items) -> Integers:
        return add_noise(values, discrete_laplace(stream, items, self.scale))

    def margin(self, confidence: Fraction | float) -> int:
        """Return the smallest half-width that holds the noise with at least this probability."""
        return _margin(Fraction(self.scale), fields.confidence(confidence))


@lru_cache(maxsize=4096)
def _margin(scale: Fraction, confidence: Fraction) -> int:
    return enclose.smallest(enclose.laplace(scale), times=1, delta=(1 - confidence) / 2) - 1
