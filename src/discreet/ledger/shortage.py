"""The refusal of a charge that is more than what is left."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR

from discreet.budget import Budget, Charge, number
from discreet.errors import BudgetExceeded
from discreet.ledger.balance import (
    Shortage,
)

Words = Callable[[Charge], Budget]


def over_budget(shortage: Shortage, words: Words | None, name: str) -> BudgetExceeded:
    """Return the refusal, with amounts as the budget writes them."""
    asked = shortage.asked
    left = shortage.left
    limit = shortage.limit
    if asked.amount <= left.amount:
        symbol = "δ"
        amounts = [asked.delta, left.delta, limit.delta]
    elif words is None:
        symbol = shortage.symbol
        amounts = [asked.amount, left.amount, limit.amount]
    else:
        symbol = "ε"
        amounts = [words(charge).epsilon for charge in (asked, left, limit)]
    cost = number(amounts[0], rounding=ROUND_CEILING)
    rest = number(amounts[1], rounding=ROUND_FLOOR)
    return BudgetExceeded(
        f"Over budget: this costs {symbol} = {cost}; {shortage.who} {shortage.verb} {symbol} = {rest} left "
        f'of {number(amounts[2])} on "{name}".',
        who=shortage.who,
        asked=asked,
        left=left,
        limit=limit,
    )
