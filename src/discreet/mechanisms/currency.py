"""Currencies: the noise, choices and thresholds that an amount of ε (`sum` budgets) or ρ (`zcdp`)
buys (S6, S7).

This is the one place that knows which mechanism is the best for which kind of budget. Whoever has
an amount to spend takes the `currency` of the accountant's name and asks no further.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Final, Protocol

from discreet.accounting.calibrate import gaussian_sigma, laplace_scale
from discreet.budget import AccountantName, Neighbors
from discreet.errors import UsageError
from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.exponential import ExponentialMechanism, PermuteAndFlip, root_below
from discreet.mechanisms.quantile import ChoiceName
from discreet.mechanisms.shapes import Norm, Scores, Sensitivity
from discreet.mechanisms.threshold import GaussianThreshold, TruncatedLaplaceThreshold


class Currency(Protocol):
    """A kind of amount, and what it buys."""

    @property
    def norm(self) -> Norm:
        """Return the norm that decides how much noise a vector needs."""

    @property
    def choice_name(self) -> ChoiceName:
        """Return the choice by which a quantile is found."""

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteLaplace | DiscreteGaussian:
        """Return noise that hides a move of a vector."""

    def choice(self, *, amount: Fraction, moved: Scores) -> PermuteAndFlip | ExponentialMechanism:
        """Return the choice of a candidate by its score."""

    def choice_epsilon(self, *, amount: Fraction, rounds: int = 1) -> Fraction:
        """Return the ε, summed over rounds, of so many rounds of choices that cost this amount
        together.
        """

    def people(
        self, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
    ) -> TruncatedLaplaceThreshold | GaussianThreshold:
        """Return the test of how many people have a key; each adds 1 to at most `max_groups` keys
        (S5).
        """

    def length(self, moved: Sensitivity) -> float:
        """Return the size of a move by this currency's norm."""

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        """Return how many times the size of another move it is."""

    def widening(self, shares: int) -> float:
        """Return how many times wider noise is if its amount is one of so many equal shares."""

    def sum_width(self, draws: int) -> float:
        """Return the half-width at 95 % of a sum of so many draws, up to a constant factor."""

    def amount(self, *, length: float, spread: float) -> float:
        """Return what noise of this spread costs for a move of this size."""


class _Epsilon:
    """ε buys discrete Laplace noise and permute-and-flip."""

    norm: ClassVar[Norm] = "l1"
    choice_name: ClassVar[ChoiceName] = "permute_and_flip"

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteLaplace:
        l1 = _derive(moved.l1)
        return DiscreteLaplace(scale=laplace_scale(l1=l1, epsilon=amount), l1=l1)

    def choice(self, *, amount: Fraction, moved: Scores) -> PermuteAndFlip:
        return PermuteAndFlip(epsilon=amount, linf=Fraction(moved.linf), monotone=moved.monotone)

    def choice_epsilon(self, *, amount: Fraction, rounds: int = 1) -> Fraction:
        return amount

    def people(
        self, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
    ) -> TruncatedLaplaceThreshold:
        scale = laplace_scale(l1=_keys_moved(max_groups, neighbors), epsilon=amount)
        return TruncatedLaplaceThreshold(
            scale=scale, linf=1, max_groups=max_groups, neighbors=neighbors, delta=delta
        )

    def length(self, moved: Sensitivity) -> float:
        return float(_derive(moved.l1))

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        return float(_derive(moved.l1) / _derive(other.l1))

    def widening(self, shares: int) -> float:
        return shares

    def sum_width(self, draws: int) -> float:
        return math.sqrt(2 * draws) * (1.96 + 0.2 / draws)  # of Laplace numbers, within 2 %

    def amount(self, *, length: float, spread: float) -> float:
        return length / spread


class _Rho:
    """ρ buys discrete Gaussian noise and the exponential mechanism."""

    norm: ClassVar[Norm] = "l2"
    choice_name: ClassVar[ChoiceName] = "exponential"

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteGaussian:
        l2_squared = _derive(moved.l2_squared)
        return DiscreteGaussian(
            sigma=gaussian_sigma(l2_squared=l2_squared, rho=amount), l2_squared=l2_squared
        )

    def choice(self, *, amount: Fraction, moved: Scores) -> ExponentialMechanism:
        epsilon = self.choice_epsilon(amount=amount)
        return ExponentialMechanism(
            epsilon=epsilon, linf=Fraction(moved.linf), monotone=moved.monotone
        )

    def choice_epsilon(self, *, amount: Fraction, rounds: int = 1) -> Fraction:
        # Privacy: a round of ε / rounds costs (ε / rounds)^2 / 8
        return root_below(8 * amount / rounds) * rounds

    def people(
        self, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
    ) -> GaussianThreshold:
        sigma = gaussian_sigma(l2_squared=_keys_moved(max_groups, neighbors), rho=amount)
        return GaussianThreshold(
            sigma=sigma, linf=1, max_groups=max_groups, neighbors=neighbors, delta=delta
        )

    def length(self, moved: Sensitivity) -> float:
        return math.sqrt(_derive(moved.l2_squared))

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        return math.sqrt(_derive(moved.l2_squared) / _derive(other.l2_squared))

    def widening(self, shares: int) -> float:
        return math.sqrt(shares)

    def sum_width(self, draws: int) -> float:
        return math.sqrt(draws)

    def amount(self, *, length: float, spread: float) -> float:
        return length**2 / (2 * spread**2)


CURRENCIES: Final[dict[AccountantName, Currency]] = {"sum": _Epsilon(), "zcdp": _Rho()}


def currency(name: AccountantName) -> Currency:
    """Return the currency of a budget that an accountant of this name adds up."""
    return CURRENCIES[name]


def _derive(norm: Fraction | int | None) -> Fraction:
    if norm is None:
        raise UsageError(
            "Noise for this budget needs a norm of the sensitivity that was not derived."
        )
    return Fraction(norm)


def _keys_moved(max_groups: int, neighbors: Neighbors) -> Fraction:
    """Return the keys that one person moves by 1: under change_one, those left and those joined."""
    return Fraction(max_groups * (2 if neighbors == "change_one" else 1))
