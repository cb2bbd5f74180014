"""A ledger recomputed: every charge from the noise that it names, the sums, the chain, and a PLD of
the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting import Accountant, ZcdpAccountant, lump
from discreet.accounting import loss as distributions
from discreet.binding import accountant_of, ledger_of, terms_of
from discreet.budget import Charge, Loss
from discreet.ledger import Ledger
from discreet.ledger.terms import charge_from_row
from discreet.mechanisms import from_row
from discreet.policy.policy import Policy

_INSIDE = re.compile(r"ZcdpAccountant\(delta_convert=Fraction\((?P<up>\d+), (?P<down>\d+)\)\)")
MOST_LOSSES = 10_000  # of a batch whose distribution is computed


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeCheck:
    """One charge: what was charged, what its noise costs, and whether the former covers the
    latter.
    """

    id: int
    when: str
    analyst: str
    text: str
    charged: Charge
    due: Charge | None  # None: an algorithm that has not yet said what it used

    @property
    def covered(self) -> bool:
        return self.due is None or (
            self.due.amount <= self.charged.amount and self.due.delta <= self.charged.delta
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerAudit:
    """All charges, their sum beside what the ledger says was spent, the limit, and the whole as one
    batch.
    """

    rows: int
    charges: tuple[ChargeCheck, ...]
    added: Charge
    spent: Charge
    limit: Charge
    # by privacy-loss distribution; where every loss is known and the budget is a `sum`
    batch: Loss | None

    @property
    def sound(self) -> bool:
        within = self.spent.amount <= self.limit.amount and self.spent.delta <= self.limit.delta
        # What was carried over from an earlier ledger is spent and has no charge here.
        sums = self.added.amount <= self.spent.amount and self.added.delta <= self.spent.delta
        return within and sums and all(each.covered for each in self.charges)


def audit_ledger(policy: Policy) -> LedgerAudit:
    """Verify the chain, then recompute; raise LedgerUnavailable if the chain is broken."""
    accountant = accountant_of(policy)
    with Ledger.open(ledger_of(policy), terms_of(policy)) as ledger:
        rows = ledger.verify()
        written = ledger.rows()
        spent, (limit, _) = ledger.spent(), ledger.limits
    posts = {row["charge"]: row for row in written if row["kind"] == "post"}
    charges = []
    losses = list[Loss]()
    for row in written:
        if row["kind"] != "charge":
            continue
        post = posts.get(row["number"], {})
        named = row["mechanisms"] if row["mechanisms"] is not None else post.get("mechanisms")
        found = (
            None
            if named is None
            else _as_charged(_losses(named), post.get("meta") or {}, accountant)
        )
        losses += found or []
        charges.append(
            ChargeCheck(
                id=row["number"],
                when=row["when"],
                analyst=row["analyst"],
                text=row["text"],
                charged=charge_from_row(row["cost"]),
                due=None if found is None else accountant.price(found),
            )
        )
    zero = Charge(amount=Fraction(0))
    return LedgerAudit(
        rows=rows,
        charges=tuple(charges),
        added=sum((each.charged for each in charges), zero),
        spent=spent,
        limit=limit,
        batch=_batch(losses, policy)
        if accountant.name == "sum" and all(c.due is not None for c in charges)
        else None,
    )


def _losses(rows: Sequence[Mapping[str, Any]]) -> list[Loss]:
    return [from_row({name: str(value) for name, value in row.items()}).loss() for row in rows]


def _as_charged(losses: list[Loss], meta: Mapping[str, str], accountant: Accountant) -> list[Loss]:
    """Return the losses in the ledger's currency: an algorithm that spent ρ of a `sum` budget is
    one row (S6).
    """
    inside = _INSIDE.fullmatch(meta.get("currency", ""))
    if accountant.name != "sum" or inside is None:
        return losses
    convert = Fraction(int(inside["up"]), int(inside["down"]))
    spent = ZcdpAccountant(delta_convert=convert).price(losses)
    return [lump(spent.amount, delta=convert, delta_keys=spent.delta)]


def _batch(losses: Sequence[Loss], policy: Policy) -> Loss | None:
    """Return what the same noise would have cost as one batch planned beforehand. Not a
    guarantee.
    """
    if (
        not 0 < len(losses) <= MOST_LOSSES
        or not policy.budget.delta
        or any(each.epsilon is None for each in losses)
    ):
        return None
    parts = [
        distributions.response(epsilon=each.epsilon, delta=each.delta)
        for each in losses
        if each.epsilon
    ]
    return distributions.batch(parts, delta=policy.budget.delta)
