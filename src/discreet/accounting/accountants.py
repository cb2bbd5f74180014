"""The two kinds of budget (S6): `sum` adds ε, `zcdp` adds ρ; both add the δ of unknown keys.

Both are privacy filters: an analyst may choose the next question and its amount after seeing every
answer so far, and the total still stays within the limit (sums of ε and δ: Rogers et al. 2016; sums
of ρ and δ of approximate zCDP: Whitehouse et al. 2022). A privacy-loss distribution is a filter
only if its list of losses is fixed in advance: see `accounting.loss`. A budget's kind is fixed when
the budget is created, because no theorem allows to pick the better one at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import ClassVar, Protocol

from discreet.accounting import zcdp
from discreet.budget import (
    SYMBOLS,
    AccountantName,
    Budget,
    Charge,
    Loss,
    Neighbors,
    number,
    round_down,
    round_up,
)
from discreet.errors import UsageError

# Decimals of a charge: far finer than any noise. Since all charges have so few, their total has
# too.
_DIGITS = 24
_SHARE_DIGITS = 12  # decimals of the amount of one question


class Accountant(Protocol):
    """Adds up losses in one currency. It is a frozen value and does not know what was spent."""

    @property
    def name(self) -> AccountantName: ...

    @property
    def terms(self) -> dict[str, str]:
        """Return its name and its parameters. The ledger stores them for ever."""

    def limit(self, *, epsilon: Fraction, delta: Fraction) -> Charge:
        """Convert a budget, or an analyst's share of it, to this currency; rounded down."""

    def allot(self, *, epsilon: Fraction) -> Fraction:
        """Convert the ε of one answer to this currency; rounded down."""

    def price(self, losses: Iterable[Loss]) -> Charge:
        """Add up losses; rounded up. Refuse a loss that has no proof in this currency."""

    def budget(self, charge: Charge) -> Budget:
        """Convert a cost, or what was spent, to the ε and δ that people read; rounded up."""

    def left(self, charge: Charge) -> Budget:
        """Convert what is left to the ε and δ that people read; rounded down, so that a question
        for all of it fits.
        """

    def group(self, charge: Charge, *, size: int) -> Charge:
        """Return the loss of `size` people together, if the loss of one person is `charge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAccountant:
    """Adds ε and δ.

    An answer is (ε, 0)-DP, or (ε, δ_key)-DP if its keys are unknown. All of the policy's δ is for
    unknown keys.
    """

    name: ClassVar[AccountantName] = "sum"

    @property
    def terms(self) -> dict[str, str]:
        return {"name": self.name}

    def limit(self, *, epsilon: Fraction, delta: Fraction) -> Charge:
        return Charge(
            amount=round_down(epsilon, digits=_DIGITS), delta=round_down(delta, digits=_DIGITS)
        )

    def allot(self, *, epsilon: Fraction) -> Fraction:
        return round_down(epsilon, digits=_SHARE_DIGITS)

    def price(self, losses: Iterable[Loss]) -> Charge:
        return _total([(_require_proof(loss.epsilon, self.name), loss.delta) for loss in losses])

    def budget(self, charge: Charge) -> Budget:
        return Budget(epsilon=charge.amount, delta=charge.delta)

    def left(self, charge: Charge) -> Budget:
        return self.budget(_not_negative(charge))

    def group(self, charge: Charge, *, size: int) -> Charge:
        """Return (kε, (1 + e^ε + ... + e^((k - 1)ε)) δ).

        k people are k steps from neighbor to neighbor. Each step multiplies the δ so far by e^ε and
        adds δ.
        """
        delta = Fraction(0)
        if charge.delta:
            factor = sum(_exp_up(step * charge.amount) for step in range(size))
            delta = round_up(factor * charge.delta, digits=_DIGITS)
        return Charge(amount=size * charge.amount, delta=delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZcdpAccountant:
    """Adds ρ, and the δ of unknown keys. The whole is (ε(ρ, δ_convert), δ_convert + δ_keys)-DP.

    A δ-approximate ρ-zCDP mechanism is ρ-zCDP outside an event of probability δ [Bun, Steinke 2016,
    section 8]. So convert its ρ to (ε, δ_convert), and add its own δ.
    """

    delta_convert: Fraction
    name: ClassVar[AccountantName] = "zcdp"

    def __post_init__(self) -> None:
        if not 0 < self.delta_convert < 1:
            raise UsageError(
                "accountant zcdp needs a delta above zero, and keys below 1, to turn ρ into ε: "
                f"the part of delta for that is {number(self.delta_convert)}."
            )

    @property
    def terms(self) -> dict[str, str]:
        return {"name": self.name, "delta_convert": str(self.delta_convert)}

    def limit(self, *, epsilon: Fraction, delta: Fraction) -> Charge:
        keys = max(Fraction(0), delta - self.delta_convert)
        return Charge(amount=self.allot(epsilon=epsilon), delta=round_down(keys, digits=_DIGITS))

    def allot(self, *, epsilon: Fraction) -> Fraction:
        return zcdp.rho_of(epsilon=epsilon, delta=self.delta_convert)

    def price(self, losses: Iterable[Loss]) -> Charge:
        return _total([(_require_proof(loss.rho, self.name), loss.delta) for loss in losses])

    def budget(self, charge: Charge) -> Budget:
        return self._budget(charge, zcdp.epsilon_of(rho=charge.amount, delta=self.delta_convert))

    def left(self, charge: Charge) -> Budget:
        charge = _not_negative(charge)
        return self._budget(
            charge, zcdp.epsilon_within(rho=charge.amount, delta=self.delta_convert)
        )

    def _budget(self, charge: Charge, epsilon: Fraction) -> Budget:
        converted = self.delta_convert if charge.amount > 0 else 0
        return Budget(epsilon=epsilon, delta=charge.delta + converted, rho=charge.amount)

    def group(self, charge: Charge, *, size: int) -> Charge:
        """Return k² ρ [Bun, Steinke 2016]. The proof needs δ = 0: zCDP without exception."""
        if charge.delta:
            raise UsageError(
                f"ρ = {number(charge.amount)} with δ = {number(charge.delta)} for unknown keys has no general price "
                f"for {size} people together; recompute it from the mechanisms in the ledger."
            )
        return Charge(amount=size**2 * charge.amount)


ACCOUNTANTS = (SumAccountant, ZcdpAccountant)


def accountant(
    name: AccountantName, *, delta: Fraction, keys: Fraction
) -> SumAccountant | ZcdpAccountant:
    """Return the accountant that a policy's `budget` names.

    `keys` is the part of δ that unknown keys may use. `zcdp` uses the rest to turn ρ into ε.
    """
    if name == "sum":
        return SumAccountant()
    if name == "zcdp":
        return ZcdpAccountant(delta_convert=(1 - keys) * delta)
    raise UsageError(f"accountant must be sum or zcdp, not {name!r}.")


def delta_for_keys(amount: Fraction, *, of: Charge) -> Fraction:
    """Return the δ_key of a question with unknown keys that does not name its own.

    A question that spends a tenth of the budget's amount gets a tenth of its δ for keys. So both
    are used up together.
    """
    if not of.amount:
        return Fraction(0)
    part = min(Fraction(1), amount / of.amount)
    return round_down(of.delta * part, digits=_SHARE_DIGITS)


def lump(rho: Fraction, *, delta: Fraction, delta_keys: Fraction) -> Loss:
    """Return what a `sum` budget pays in one row for an algorithm whose own filter keeps it within
    (ρ, δ_keys) (S6).
    """
    epsilon = zcdp.epsilon_of(rho=rho, delta=delta)
    return Loss(epsilon=epsilon, rho=None, delta=delta + delta_keys)


def between_neighbors(
    charge: Charge, accountant: Accountant, *, before: Neighbors, after: Neighbors
) -> Charge:
    """Convert a spend under one neighboring relation to the other (S2).

    To change a person's rows is to remove and to add them: two steps of `add_remove`, so 2ε or 4ρ.
    In the other direction the price stays: `change_one` covers `add_remove`, because a person may
    change from or to no rows at all.
    """
    if before == "add_remove" and after == "change_one":
        return accountant.group(charge, size=2)
    return charge


def _require_proof(amount: Fraction | None, name: AccountantName) -> Fraction:
    if amount is None:
        raise UsageError(
            f"This mechanism has no proof in {SYMBOLS[name]}, and cannot be paid from a {name} budget."
        )
    return amount


def _total(losses: list[tuple[Fraction, Fraction]]) -> Charge:
    if len(losses) == 1:  # sums of rationals are slow
        [(amount, delta)] = losses
    else:
        amount = sum((amount for amount, _ in losses), Fraction(0))
        delta = sum((delta for _, delta in losses), Fraction(0))
    return Charge(amount=round_up(amount, digits=_DIGITS), delta=round_up(delta, digits=_DIGITS))


def _not_negative(charge: Charge) -> Charge:
    """Replace negative amounts by zero. They occur if a limit was lowered below what is spent."""
    return Charge(amount=max(Fraction(0), charge.amount), delta=max(Fraction(0), charge.delta))


def _exp_up(x: Fraction) -> Fraction:
    """Return exp(x) for x >= 0, rounded up. Refuse x > 1000: such a claim would protect nobody."""
    if x > 1000:
        raise UsageError(f"A group's δ at ε = {number(x)} is no protection at all.")
    context = Context(prec=40, rounding=ROUND_HALF_EVEN)
    power = context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
    # The division errs by at most 10^-37, exp by half of its last digit; 10^-30 covers both
    return Fraction(power) * (1 + Fraction(1, 10**30))
