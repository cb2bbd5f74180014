"""The terms of a ledger: what it is bound to, its limits, and how rows write charges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

from discreet.budget import SYMBOLS, Charge, Neighbors, number
from discreet.errors import LedgerUnavailable, UsageError

CURATOR = "curator"  # pays from the common limit alone
EVERYONE = "all analysts together"
NOTHING = Charge(amount=Fraction(0))

# S2: the fields that a ledger's first row fixes for ever
BOUND = ("unit", "neighbors", "owners", "accountant")


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The content of a ledger's first row.

    `unit`, `neighbors`, `owners` (table: owner column) and `accountant` (its name, and the
    parameters of its currency, such as delta_convert) never change. `limit`, common to all, and
    `analysts`, the share of each, change only by a recorded row.
    """

    unit: str
    neighbors: Neighbors
    owners: Mapping[str, str]
    accountant: Mapping[str, str]
    limit: Charge
    analysts: Mapping[str, Charge]

    def __post_init__(self) -> None:
        if self.accountant.get("name") not in ("sum", "zcdp"):
            raise UsageError(
                f"A ledger's accountant must be sum or zcdp, not {self.accountant.get('name')!r}."
            )
        if self.neighbors not in ("add_remove", "change_one"):
            raise UsageError(
                f"A ledger's neighbors must be add_remove or change_one, not {self.neighbors!r}."
            )
        check_limits(self.limit, self.analysts)

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.accountant["name"]]

    def as_row(self) -> dict[str, Any]:
        bound = {"unit": self.unit, "neighbors": self.neighbors, "owners": dict(self.owners)}
        return (
            bound | {"accountant": dict(self.accountant)} | limits_as_row(self.limit, self.analysts)
        )

    def require_same(self, policy: Terms, *, name: str) -> None:
        """Refuse a policy that promises something else than what this ledger adds up (S2)."""
        mine = self.as_row()
        theirs = policy.as_row()
        changed = [
            f"{name} was {_words(mine[name])} and is now {_words(theirs[name])}"
            for name in BOUND
            if mine[name] != theirs[name]
        ]
        if changed:
            raise LedgerUnavailable(
                f"The policy no longer says what {name} was created for: {'; '.join(changed)}. Put it back, or create "
                f"a new ledger that carries over what was spent (docs/ledger.md, Changing what a ledger is bound to)."
            )


def terms_from_row(row: Mapping[str, Any]) -> Terms:
    limit, analysts = limits_from_row(row)
    return Terms(
        unit=row["unit"],
        neighbors=cast(Neighbors, row["neighbors"]),
        owners=row["owners"],
        accountant=row["accountant"],
        limit=limit,
        analysts=analysts,
    )


def check_limits(limit: Charge, analysts: Mapping[str, Charge]) -> None:
    for who, charge in {EVERYONE: limit, **analysts}.items():
        if who in ("", CURATOR):
            raise UsageError(
                f"No analyst may be called {who!r}: the curator spends from the common limit."
            )
        if charge.amount < 0 or charge.delta < 0:
            raise UsageError(
                f"The limit of {who} must be zero or more, not {number(min(charge.amount, charge.delta))}."
            )


def limits_as_row(limit: Charge, analysts: Mapping[str, Charge]) -> dict[str, Any]:
    return {
        "limit": charge_as_row(limit),
        "analysts": {name: charge_as_row(share) for name, share in analysts.items()},
    }


def limits_from_row(row: Mapping[str, Any]) -> tuple[Charge, dict[str, Charge]]:
    return charge_from_row(row["limit"]), {
        name: charge_from_row(share) for name, share in row["analysts"].items()
    }


def charge_as_row(charge: Charge) -> dict[str, str]:
    return {"amount": str(charge.amount), "delta": str(charge.delta)}


def charge_from_row(row: Mapping[str, str]) -> Charge:
    return _charge(row["amount"], row["delta"])


@lru_cache(maxsize=4096)
def _charge(amount: str, delta: str) -> Charge:
    return Charge(amount=Fraction(amount), delta=Fraction(delta))


def _words(value: str | Mapping[str, str]) -> str:
    if isinstance(value, str):
        return value
    return ", ".join(f"{key} {item}" for key, item in sorted(value.items())) or "nothing"
