"""Discrete Laplace noise on integers: the mechanism of `sum` budgets."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.budget import Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace:
    """Release x + Z, with Z of mass tanh(1 / 2s) * exp(-|z| / s) on the integers."""

    scale: Fraction
    l1: Fraction

    def loss(self) -> Loss:
        epsilon = self.l1 / self.scale
        return Loss(epsilon=epsilon, rho=epsilon * min(epsilon / 2, Fraction(1)))
