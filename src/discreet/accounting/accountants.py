"""The two kinds of budget (S6): `sum` adds ε, `zcdp` adds ρ; both add the δ of unknown keys.

Both are privacy filters: whoever chooses the next question and its amount after seeing every answer
so far stays within the limit (ε and δ summed: Rogers et al. 2016; ρ and δ of approximate zCDP
summed: Whitehouse et al. 2022). A privacy-loss distribution is not, unless its list of losses is
fixed in advance: see `accounting.loss`. Which of the two is used is fixed when a budget is created;
picking the better one at the end is not a theorem either.
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

_DIGITS = 24  # of a charge: far finer than any noise, and a ledger's total stays a decimal however it was made up
_SHARE_DIGITS = 12  # of what a question is given


class Accountant(Protocol):
    """A currency in which losses add up. A frozen value; it knows no mechanism and holds no
    spending.
    """

    @property
    def name(self) -> AccountantName: ...

    @property
    def terms(self) -> dict[str, str]:
        """Its name, and what its currency rests on, as ledgers write it for ever."""

    def limit(self, *, epsilon: Fraction, delta: Fraction) -> Charge:
        """Return what a budget, or an analyst's share of it, allows in this currency; rounded
        down.
        """

    def allot(self, *, epsilon: Fraction) -> Fraction:
        """Convert the ε of one answer to this currency; rounded down."""

    def price(self, losses: Iterable[Loss]) -> Charge:
        """Add up what these losses cost; rounded up. Refuse one that has no proof in this
        currency.
        """

    def budget(self, charge: Charge) -> Budget:
        """Return a cost, or what was spent, for people; rounded up."""

    def left(self, charge: Charge) -> Budget:
        """Return what is left, for people; rounded down, so that asking for all of it fits."""

    def group(self, charge: Charge, *, size: int) -> Charge:
        """Return how well `size` people together are protected, where one person is protected this
        well.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SumAccountant:
    """ε and δ add. An answer is (ε, 0)-DP, or (ε, δ_key)-DP with unknown keys; all of the policy's
    δ is for those.
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
        """Return (kε, (1 + e^ε + ... + e^((k - 1)ε)) δ): k steps, each passing the δ before it
        through e^ε.
        """
        factor = sum(_exp_up(step * charge.amount) for step in range(size)) if charge.delta else 0
        return Charge(
            amount=size * charge.amount, delta=round_up(factor * charge.delta, digits=_DIGITS)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ZcdpAccountant:
    """ρ and the δ of unknown keys add: the whole is (ε(ρ, δ_convert), δ_convert + δ_keys)-DP.

    A δ-approximate ρ-zCDP mechanism is ρ-zCDP outside an event of probability δ [Bun, Steinke 2016,
    section 8], so its (ε, δ) is that of ρ with that δ added.
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
        """Return k² ρ [Bun, Steinke 2016]; the proof needs the whole mechanism, not all but an
        event: δ = 0.
        """
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
    """Return the accountant that a policy's `budget` names; on `zcdp`, δ without `keys` turns ρ
    into ε.
    """
    if name == "sum":
        return SumAccountant()
    if name == "zcdp":
        return ZcdpAccountant(delta_convert=(1 - keys) * delta)
    raise UsageError(f"accountant must be sum or zcdp, not {name!r}.")


def delta_for_keys(amount: Fraction, *, of: Charge) -> Fraction:
    """Return the δ_key of a question with unknown keys that names none.

    It is the part of the budget's δ for keys that `amount` is of the budget's amount. Whoever
    spends all of the one spends all of the other.
    """
    if not of.amount:
        return Fraction(0)
    return round_down(of.delta * min(Fraction(1), amount / of.amount), digits=_SHARE_DIGITS)


def lump(rho: Fraction, *, delta: Fraction, delta_keys: Fraction) -> Loss:
    """Return one row of a `sum` budget for an algorithm that keeps within (ρ, δ_keys) by its own
    filter (S6).
    """
    return Loss(epsilon=zcdp.epsilon_of(rho=rho, delta=delta), rho=None, delta=delta + delta_keys)


def between_neighbors(
    charge: Charge, accountant: Accountant, *, before: Neighbors, after: Neighbors
) -> Charge:
    """Convert a spend made under one relation to another (S2).

    Changing a person's rows is removing and adding them: two steps of `add_remove`, so 2ε or 4ρ.
    `change_one` lets a person come from or go to no rows at all, so it covers `add_remove` at the
    same price.
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
    """Return zero for what is below it: nothing is left where a limit was lowered below what is
    spent.
    """
    return Charge(amount=max(Fraction(0), charge.amount), delta=max(Fraction(0), charge.delta))


def _exp_up(x: Fraction) -> Fraction:
    """Return exp(x) for x >= 0, rounded up; past exp(1000) the claim is empty anyway."""
    if x > 1000:
        raise UsageError(f"A group's δ at ε = {number(x)} is no protection at all.")
    context = Context(prec=40, rounding=ROUND_HALF_EVEN)
    power = context.exp(context.divide(Decimal(x.numerator), Decimal(x.denominator)))
    # x is off by 10^-37 at most, exp by half of its last digit
    return Fraction(power) * (1 + Fraction(1, 10**30))
