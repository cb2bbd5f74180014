"""Amounts of privacy: what a mechanism costs, what a ledger adds up, what people read.

Every amount is an exact rational, so ten spends of 0.1 fit in 1 and the eleventh does not. This is also the only
module that turns ε, δ and ρ into text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal

from discreet.errors import UsageError

AccountantName = Literal["sum", "zcdp"]
Neighbors = Literal["add_remove", "change_one"]

_SMALLEST = Fraction(1, 2**1022)  # below lie the subnormal floats, where a "positive" epsilon is a rounding accident


def amount(value: object, *, name: str, most: Fraction | None = None, zero: bool = False) -> Fraction:
    """The exact rational that a person wrote: 0.1 means 1/10, not the float nearest to it.

    Refuses what is not a finite, positive, normal number, or is above `most`.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction)):
        raise UsageError(f"{name} must be a number, not {value!r}.")
    try:
        exact = value if isinstance(value, Fraction) else Fraction(Decimal(str(value)) if not isinstance(value, str) or "/" not in value else value)
    except (ValueError, OverflowError, InvalidOperation, ZeroDivisionError):
        raise UsageError(f"{name} must be a finite number, not {value!r}.") from None
    if exact < 0 or (exact == 0 and not zero) or (exact != 0 and exact < _SMALLEST):
        raise UsageError(f"{name} must be {'zero or more' if zero else 'greater than zero'}, not {value}.")
    if most is not None and exact > most:
        raise UsageError(f"{name} must be at most {number(most)}, not {value}.")
    return exact


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What one mechanism costs, in each currency in which it has a proof (None where it has none).

    `epsilon`: it is (epsilon, delta)-DP.  `rho`: it is delta-approximate rho-zCDP.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A point in a ledger's own currency, which adds: ε (`sum`) or ρ (`zcdp`), and the δ spent on unknown keys."""

    amount: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: Charge) -> Charge:
        return Charge(amount=self.amount + other.amount, delta=self.delta + other.delta)

    def __sub__(self, other: Charge) -> Charge:
        return Charge(amount=self.amount - other.amount, delta=self.delta - other.delta)

    def fits(self, limit: Charge) -> bool:
        return self.amount <= limit.amount and self.delta <= limit.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An amount of privacy as people read it. On `zcdp`, epsilon is the conversion of rho and does not add."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None

    def __str__(self) -> str:
        parts = [f"ε = {number(self.epsilon)}"]
        if self.rho is not None:
            parts.append(f"ρ = {number(self.rho)}")
        if self.delta:
            parts.append(f"δ = {number(self.delta)}")
        return ", ".join(parts)

    def as_json(self) -> dict[str, object]:
        rho = None if self.rho is None else float(self.rho)
        exact = {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": None if self.rho is None else str(self.rho)}
        return {"epsilon": float(self.epsilon), "delta": float(self.delta), "rho": rho, "exact": exact}


def number(value: Fraction | float) -> str:
    """Up to four significant digits, never rounded to nothing: 1e-09 stays 1e-09."""
    if value == 0:
        return "0"
    short = f"{float(value):.4g}" if not isinstance(value, Fraction) or _in_float_range(value) else f"{Decimal(value.numerator) / Decimal(value.denominator):.4g}"
    return short


def _in_float_range(value: Fraction) -> bool:
    return -1000 < value.numerator.bit_length() - value.denominator.bit_length() < 1000 and math.isfinite(float(value))
