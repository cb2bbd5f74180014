"""Add up privacy losses. Nothing here knows a mechanism by name.

accountants   the two currencies in which a ledger adds: ε (`sum`) and ρ (`zcdp`)
calibrate     how much noise an amount buys, and what amount a margin costs
zcdp          converts ρ to ε and back, with certified rounding
loss          the ε of a list of losses that is fixed in advance, by privacy-loss distributions
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
