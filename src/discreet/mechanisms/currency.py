"""Currencies: which noise, choice or threshold an amount of ε (`sum` budgets) or of ρ (`zcdp`
budgets) buys (S6, S7).

Only this module knows the best mechanism for each kind of budget. Code that has an amount to spend
calls `currency` with the accountant's name, and need not know which mechanism it gets.
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
    """A kind of amount (ε or ρ), and the mechanisms that it buys."""

    @property
    def norm(self) -> Norm:
        """Return the norm by which a vector's sensitivity decides how much noise it needs."""

    @property
    def choice_name(self) -> ChoiceName:
        """Return the name of the mechanism that chooses a quantile."""

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteLaplace | DiscreteGaussian:
        """Return the noise that hides, for this amount, how far one person moves a vector."""

    def choice(self, *, amount: Fraction, moved: Scores) -> PermuteAndFlip | ExponentialMechanism:
        """Return the mechanism that chooses a candidate by its score, for this amount."""

    def choice_epsilon(self, *, amount: Fraction, rounds: int = 1) -> Fraction:
        """Return the sum of the ε of so many rounds of choices that together cost `amount`."""

    def people(
        self, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
    ) -> TruncatedLaplaceThreshold | GaussianThreshold:
        """Return the threshold on the number of people who have a key. One person adds 1 to at most
        `max_groups` keys (S5).
        """

    def length(self, moved: Sensitivity) -> float:
        """Return a sensitivity as a number, in this currency's norm."""

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        """Return how many times larger one sensitivity is than another."""

    def widening(self, shares: int) -> float:
        """Return how many times wider noise becomes if its amount is cut into this many equal
        shares.
        """

    def sum_width(self, draws: int) -> float:
        """Return the half-width at 95 % of a sum of this many draws, up to a constant factor."""

    def amount(self, *, length: float, spread: float) -> float:
        """Return the amount that noise of this spread costs, for a sensitivity of this length."""


class _Epsilon:
    """ε buys discrete Laplace noise and permute-and-flip."""

    norm: ClassVar[Norm] = "l1"
    choice_name: ClassVar[ChoiceName] = "permute_and_flip"

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteLaplace:
        l1 = _require_norm(moved.l1)
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
        return float(_require_norm(moved.l1))

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        return float(_require_norm(moved.l1) / _require_norm(other.l1))

    def widening(self, shares: int) -> float:
        return shares

    def sum_width(self, draws: int) -> float:
        return math.sqrt(2 * draws) * (1.96 + 0.2 / draws)  # right within 2 % for Laplace noise

    def amount(self, *, length: float, spread: float) -> float:
        return length / spread


class _Rho:
    """ρ buys discrete Gaussian noise and the exponential mechanism."""

    norm: ClassVar[Norm] = "l2"
    choice_name: ClassVar[ChoiceName] = "exponential"

    def noise(self, *, amount: Fraction, moved: Sensitivity) -> DiscreteGaussian:
        l2_squared = _require_norm(moved.l2_squared)
        return DiscreteGaussian(
            sigma=gaussian_sigma(l2_squared=l2_squared, rho=amount), l2_squared=l2_squared
        )

    def choice(self, *, amount: Fraction, moved: Scores) -> ExponentialMechanism:
        epsilon = self.choice_epsilon(amount=amount)
        return ExponentialMechanism(
            epsilon=epsilon, linf=Fraction(moved.linf), monotone=moved.monotone
        )

    def choice_epsilon(self, *, amount: Fraction, rounds: int = 1) -> Fraction:
        # Privacy: a choice with ε' costs ρ = ε'² / 8, so a round with ε' = sqrt(8 amount / rounds)
        # costs amount / rounds. The root is rounded down.
        return root_below(8 * amount / rounds) * rounds

    def people(
        self, *, amount: Fraction, max_groups: int, neighbors: Neighbors, delta: Fraction
    ) -> GaussianThreshold:
        sigma = gaussian_sigma(l2_squared=_keys_moved(max_groups, neighbors), rho=amount)
        return GaussianThreshold(
            sigma=sigma, linf=1, max_groups=max_groups, neighbors=neighbors, delta=delta
        )

    def length(self, moved: Sensitivity) -> float:
        return math.sqrt(_require_norm(moved.l2_squared))

    def ratio(self, moved: Sensitivity, other: Sensitivity) -> float:
        return math.sqrt(_require_norm(moved.l2_squared) / _require_norm(other.l2_squared))

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


def _require_norm(norm: Fraction | int | None) -> Fraction:
    """Return a norm of a sensitivity; raise if it was not derived."""
    if norm is None:
        raise UsageError(
            "Noise for this budget needs a norm of the sensitivity that was not derived."
        )
    return Fraction(norm)


def _keys_moved(max_groups: int, neighbors: Neighbors) -> Fraction:
    """Return the number of keys that one person moves by 1.

    Under change_one a person may leave `max_groups` keys and join as many others.
    """
    times = 2 if neighbors == "change_one" else 1
    return Fraction(max_groups * times)
