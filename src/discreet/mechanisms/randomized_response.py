"""Randomized response over a finite set: the mechanism that randomizes each person's answer by
itself, before anybody sees it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.zcdp import pure_rho
from discreet.budget import Loss
from discreet.errors import UsageError
from discreet.mechanisms import fields
from discreet.noise import Items, Stream, uniform
from discreet.noise.coins import bernoulli_odds

Integers = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse:
    """Report the true one of `categories` with exp(epsilon) times the probability of each other
    one.

    Privacy
        Any two answers of one person are epsilon apart [Warner 1965; Kairouz, Oh, Viswanath 2014]:
        a report's mass is exp(epsilon) / (exp(epsilon) + categories - 1) if it is true, and
        exp(-epsilon) times that if not. As for every pure mechanism, rho = epsilon tanh(epsilon /
        2); for two categories no smaller rho is true (docs/proofs/pure.md). The mechanism does not
        hide who answers.
    Error
        The report is true with probability `truth`.
    """

    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        fields.rationals(self, "epsilon")
        fields.whole("categories", self.categories, least=2)

    @property
    def truth(self) -> float:
        """Return the probability that a report is true."""
        return 1 / (1 + (self.categories - 1) * math.exp(-self.epsilon))

    def loss(self) -> Loss:
        return Loss(epsilon=self.epsilon, rho=pure_rho(epsilon=self.epsilon))

    def respond(self, values: Integers, stream: Stream, items: Items) -> NDArray[np.int64]:
        """Return a report for each value from 0 to categories - 1.

        A coin decides whether the report is true. The false category is drawn in any case, so the
        number of draws says nothing about the coin.
        """
        values = np.asarray(values)
        if values.dtype.kind not in "iu" or ((values < 0) | (values >= self.categories)).any():
            raise UsageError(f"Answers are whole numbers from 0 to {self.categories - 1}.")
        true = bernoulli_odds(stream, items, self.epsilon, self.categories - 1)
        other = (values + 1 + uniform(stream, items, self.categories - 1)) % self.categories
        return np.where(true, values, other).astype(np.int64)

    def log_mass(self, value: int) -> NDArray[np.float64]:
        """Return the log-probability of each report of a person with this value."""
        mass = np.full(self.categories, math.log(self.truth) - float(self.epsilon))
        mass[value] = math.log(self.truth)
        return mass
