"""Add up losses; no mechanism is known here by name.

accountants   what a ledger adds: ε (`sum`) or ρ (`zcdp`)
calibrate     how much noise an amount buys, and the reverse
zcdp          ρ to ε and back, certified
loss          planned batches, by privacy-loss distribution
"""

from discreet.accounting.accountants import (
    ACCOUNTANTS,
    Accountant,
    SumAccountant,
    ZcdpAccountant,
    accountant,
    between_neighbors,
    delta_for_keys,
    lump,
)

__all__ = [
    "ACCOUNTANTS",
    "Accountant",
    "SumAccountant",
    "ZcdpAccountant",
    "accountant",
    "between_neighbors",
    "delta_for_keys",
    "lump",
]
