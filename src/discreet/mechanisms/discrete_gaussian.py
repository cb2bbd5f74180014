"""Discrete Gaussian noise on integers: the mechanism of `zcdp` budgets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian:
    """Release x + Z, with Z of mass proportional to exp(-z^2 / (2 sigma^2)) on the integers, for each coordinate."""

    sigma: Fraction
    l2_squared: Fraction

    def loss(self) -> Loss:
        return Loss(epsilon=None, rho=self.l2_squared / (2 * self.sigma**2))
