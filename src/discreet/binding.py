"""Bind a policy to its ledger: find it, state its terms, and take snapshots for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from discreet import accounting
from discreet.budget import Account, Charge
from discreet.engines.engine import Progress
from discreet.engines.snapshot import Snapshot
from discreet.engines.stores import store_of
from discreet.errors import UsageError
from discreet.ledger import Ledger, Terms
from discreet.ledger.place import Place
from discreet.policy.document import nearest
from discreet.policy.owners import EachRow, Owner, Through, Together
from discreet.policy.policy import CURATOR, Policy

Declared = TypeVar("Declared")


def accountant_of(policy: Policy) -> accounting.SumAccountant | accounting.ZcdpAccountant:
    terms = policy.budget
    return accounting.accountant(terms.accountant, delta=terms.delta, keys=terms.keys)


def terms_of(policy: Policy) -> Terms:
    """Return what a ledger of this policy is bound to (S2), and its limits."""
    accountant = accountant_of(policy)
    return Terms(
        unit=policy.unit,
        neighbors=policy.neighbors,
        owners={
            name: _owner(table.owner)
            for name, table in policy.tables.items()
            if table.owner is not None
        },
        accountant=accountant.terms,
        limit=accountant.limit(epsilon=policy.budget.epsilon, delta=policy.budget.delta),
        analysts={
            name: accountant.limit(epsilon=share.epsilon, delta=share.delta)
            for name, share in policy.analysts.items()
        },
    )


def _owner(owner: Owner) -> str:
    match owner:
        case Through(table=table, on=on):
            return f"through {table} on {on}"
        case Together(columns=columns):
            return f"together {', '.join(columns)}"
        case EachRow():
            return "each row"
        case _:
            return owner


def build_snapshot(
    policy: Policy, ledger: Ledger, tables: Mapping[str, Any] | None, progress: Progress | None
) -> Snapshot:
    """Prepare the next snapshot; then record its number in the ledger."""
    store = store_of(policy)
    number = max([ledger.snapshot, *store.numbers()]) + 1
    snapshot = store.build(number, policy.source if tables is None else tables, progress)
    ledger.new_snapshot(number)
    return snapshot


def take_snapshot(policy: Policy, *, progress: Progress | None = None) -> Snapshot:
    """Take a snapshot without opening the last one, which an older policy may have made."""
    with Ledger.open(ledger_of(policy), terms_of(policy)) as ledger:
        return build_snapshot(policy, ledger, None, progress)


def ledger_of(policy: Policy) -> Place:
    """Return where the policy's ledger is."""
    return Place(path=policy.ledger, address=policy.ledger_address)


def create_ledger(policy: Policy) -> None:
    """Create the policy's ledger and its key; refuse to overwrite one."""
    Ledger.create(ledger_of(policy), terms_of(policy)).close()


def accounts_of(
    ledger: Ledger, accountant: accounting.SumAccountant | accounting.ZcdpAccountant
) -> Mapping[str | None, Account]:
    """Return the account of each analyst, of the curator, and (under None) of all together."""
    limit, shares = ledger.limits
    limits: dict[str | None, Charge] = {None: limit, CURATOR: limit}
    limits.update(shares)
    accounts = {}
    for name, most in limits.items():
        left = most - ledger.spent() if name is None else ledger.left(name)
        accounts[name] = Account(
            limit=accountant.left(most),
            spent=accountant.budget(ledger.spent(name)),
            left=accountant.left(left),
        )
    return accounts


def find_declared(kind: str, name: object, among: Mapping[str, Declared]) -> Declared:
    """Return what the policy declares under a name; if there is none, suggest the nearest name."""
    if not isinstance(name, str):
        raise UsageError(f"A {kind} is named by a text, not {type(name).__name__}.")
    if name not in among:
        raise UsageError(f"The policy has no {kind} {name}. {nearest(name, among)}")
    return among[name]
