"""Amounts of privacy: the loss of a mechanism, a charge in a ledger, a budget that people read.

Every amount is an exact rational, so ten charges of 0.1 fit in 1 and the eleventh does not. No other
module turns ε, δ and ρ into text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from numbers import Rational, Real
from operator import index
from typing import Any, Final, Literal

from discreet.errors import UsageError

AccountantName = Literal["sum", "zcdp"]
SYMBOLS: Final[dict[str, str]] = {"sum": "ε", "zcdp": "ρ"}  # what each accountant adds
Neighbors = Literal["add_remove", "change_one"]

# Smaller floats are subnormal: a "positive" epsilon among them is a rounding accident.
_SMALLEST = Fraction(1, 2**1022)
_LARGEST = Fraction(2**1024)
# Characters of a number. Refuse 1e999999999 and a megabyte of digits before they become integers.
_LONGEST = 400
# Python also reads 1_0 as 10, and the digits of every script; people who read the ledger may not.
_WRITTEN = re.compile(
    r"\s*[-+]?([0-9]+/[0-9]+|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)\s*", re.ASCII
)


def amount(
    value: object, *, name: str, most: Fraction | None = None, zero: bool = False, by: str = ""
) -> Fraction:
    """Return the exact rational that a person wrote: 0.1 means 1/10, not the nearest float.

    A text such as "1/3" is read too. Refuse a number that is not finite, not positive (zero is
    allowed with `zero`), subnormal, or above `most`.
    """
    if isinstance(value, bool) or not isinstance(value, (Real, str, Decimal)):
        raise UsageError(f"{name} must be a number, not {_show(value)}.")
    exact = _exact(value)
    if exact is None or exact >= _LARGEST:
        raise UsageError(f"{name} must be a finite number, not {_show(value)}.")
    if exact < 0 or (exact == 0 and not zero):
        raise UsageError(
            f"{name} must be {'zero or more' if zero else 'greater than zero'}, not {_show(value)}."
        )
    if 0 < exact < _SMALLEST:
        raise UsageError(
            f"{name} must be at least {number(_SMALLEST, rounding=ROUND_CEILING)}, not {_show(value)}."
        )
    if most is not None and exact > most:
        largest = number(most, rounding=ROUND_FLOOR)
        raise UsageError(
            f"{name} must be at most {largest}{by and f' ({by})'}, not {_show(value)}."
        )
    return exact


def _exact(value: Real | str | Decimal) -> Fraction | None:
    """Return the rational that a number or a text stands for; None if it stands for none, or for
    one with too many digits.
    """
    try:
        # Convert to Python's integers: numpy's would overflow later.
        if isinstance(value, Rational):
            return Fraction(index(value.numerator), index(value.denominator))
        text = str(value)
        if len(text) > _LONGEST or not _WRITTEN.fullmatch(text):
            return None
        if "/" in text:
            return Fraction(text)
        decimal = Decimal(text)
    except (TypeError, ArithmeticError):
        return None
    if decimal and decimal.adjusted() > _LONGEST:
        return None
    if decimal and decimal.adjusted() < -_LONGEST:
        # The caller refuses it as too small, whatever its digits are.
        return _SMALLEST / 2 if decimal > 0 else -_SMALLEST
    return Fraction(decimal)


def _show(value: object) -> str:
    try:
        text = str(value) if isinstance(value, (Real, Decimal)) else repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 40 else text[:39] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The privacy loss of one mechanism, in each currency in which it has a proof, else None.

    `epsilon`: the mechanism is (epsilon, delta)-DP. `rho`: it is delta-approximate rho-zCDP.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("rho", self.rho), ("delta", self.delta)):
            # Compare the numerator: there are many losses, and rationals compare slowly.
            if value is not None and value.numerator < 0:
                raise UsageError(f"A loss cannot be negative: {name} is {value}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An amount in a ledger's currency, which adds up: ε (`sum`) or ρ (`zcdp`), and the δ of
    unknown keys.
    """

    amount: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: Charge) -> Charge:
        return Charge(amount=self.amount + other.amount, delta=self.delta + other.delta)

    def __sub__(self, other: Charge) -> Charge:
        return Charge(amount=self.amount - other.amount, delta=self.delta - other.delta)

    def fits(self, limit: Charge) -> bool:
        return self.amount <= limit.amount and self.delta <= limit.delta


FREE: Final = Charge(amount=Fraction(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An amount of privacy as people read it.

    With `zcdp`, epsilon is converted from rho, and such epsilons do not add up.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, *, rounding: str = ROUND_HALF_EVEN) -> str:
        """Return the budget as text.

        Round costs up and what is left down; then a refusal never shows a cost that seems to fit.
        """
        parts = [f"ε = {number(self.epsilon, rounding=rounding)}"]
        if self.rho is not None:
            parts.append(f"ρ = {number(self.rho, rounding=rounding)}")
        if self.delta:
            parts.append(f"δ = {number(self.delta, rounding=rounding)}")
        return ", ".join(parts)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Budget:
        """Return the budget that `as_json` wrote, from its exact rationals."""
        exact = content["exact"]
        rho = None if exact["rho"] is None else Fraction(exact["rho"])
        return cls(epsilon=Fraction(exact["epsilon"]), delta=Fraction(exact["delta"]), rho=rho)

    def as_json(self) -> dict[str, object]:
        parts = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        exact = {name: None if value is None else str(value) for name, value in parts.items()}
        rounded = {name: None if value is None else float(value) for name, value in parts.items()}
        return {**rounded, "exact": exact}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The limit, the spending and the rest of one analyst; the rest is at most what all have left."""

    limit: Budget
    spent: Budget
    left: Budget


def with_margin(value: float, margin: float) -> str:
    """Write a value ± its margin, to the margin's first two digits, or three if it begins with 1.

    The margin is rounded up, and covers the rounding of the value too. So the reader sees at least
    the true margin, and at most 8 % more.

    >>> with_margin(29.931234, 0.03612), with_margin(40.123456, 0.012345)
    ('29.931 ± 0.037', '40.1235 ± 0.0124')
    >>> with_margin(1234567.8, 5432.1)
    '1,234,568 ± 5,433'
    """
    if not margin > 0 or not math.isfinite(margin):
        return f"{value:,.4g} ± {margin:g}"
    size = math.floor(math.log10(margin))
    begins_with_one = margin < 2 * 10.0**size
    places = min(12, max(0, (2 if begins_with_one else 1) - size))
    shown = round(value, places) + 0.0  # -0.0 + 0.0 is 0.0
    wide = math.ceil((margin + abs(shown - value)) * 10**places - 1e-6) / 10**places
    return f"{shown:,.{places}f} ± {wide:,.{places}f}"


def number(value: Fraction | float, *, rounding: str = ROUND_HALF_EVEN) -> str:
    """Write a number exactly if six digits suffice, else rounded to four significant digits.

    >>> number(Fraction(1, 10**9)), number(Fraction("0.12345")), number(Fraction(1, 3))
    ('1e-9', '0.12345', '0.3333')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    exact = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
    short = _decimal(exact, 6, rounding)
    if Fraction(short) != exact:
        short = _decimal(exact, 4, rounding)
    short = short.normalize(Context(prec=6))
    if -5 < short.adjusted() < 6:
        return f"{short:f}"
    return f"{short:e}".replace("e+", "e")


def round_up(value: Fraction, *, digits: int) -> Fraction:
    """Return the smallest decimal of that many significant digits that is at least `value`."""
    return Fraction(_decimal(value, digits, ROUND_CEILING)) if value else Fraction(0)


def round_down(value: Fraction, *, digits: int) -> Fraction:
    """Return the largest decimal of that many significant digits that is at most `value`."""
    return Fraction(_decimal(value, digits, ROUND_FLOOR)) if value else Fraction(0)


def _decimal(value: Fraction, digits: int, rounding: str) -> Decimal:
    # The division of two integers, however long, is correctly rounded in the context's direction.
    return Context(prec=digits, rounding=rounding).divide(
        Decimal(value.numerator), Decimal(value.denominator)
    )


# Advice that lowers the threshold of unknown keys: the people who must share a value (S5).
FEWER = "A larger ε, a smaller max_groups, or values listed in the policy or in WHERE"
