"""Read `budget:` and `limits:` of the policy: what all analysts together may spend, and how much ε,
time and memory one question may take.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from discreet.budget import AccountantName
from discreet.policy.document import Map, Node, Reader
from discreet.policy.domain import write_number


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTerms:
    """The budget of all analysts together. `keys` is the share of delta that unknown keys may use
    (S6).
    """

    epsilon: Fraction
    delta: Fraction
    accountant: AccountantName
    keys: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one question may take: ε, seconds, bytes of memory, group keys, bytes of text.

    With a deadline, every answer leaves at a multiple of it, so that time tells nothing (S13).
    `overruns` is the number of questions by which one analyst may exceed these limits, over the
    whole life of the ledger.
    """

    epsilon: Fraction
    seconds: Fraction
    memory: int
    keys: int
    statement: int
    deadline: Fraction | None
    overruns: int

    @property
    def python_memory(self) -> int:
        """Return the part of `memory` for the engine's results and what is computed of them."""
        return max(10**8, self.memory // 4)

    @property
    def engine_memory(self) -> int:
        """Return the rest of `memory`, but at least what the engine needs to open a snapshot."""
        return max(10**8, self.memory - self.python_memory)


def budget_terms(reader: Reader, node: Node | None) -> BudgetTerms | None:
    """Read `budget:`; None if it has no ε."""
    fields = reader.fields(node, "budget", ("budget",), ("epsilon", "delta", "accountant", "keys"))
    epsilon = reader.amount(fields.get("epsilon"), "budget.epsilon")
    delta = reader.amount(fields.get("delta"), "budget.delta", most=Fraction(1, 2), zero=True)
    accountant = (
        reader.word(fields.get("accountant"), "budget.accountant", ("sum", "zcdp")) or "sum"
    )
    keys = reader.amount(fields.get("keys"), "budget.keys", most=Fraction(1), zero=True)
    if (
        node is not None
        and "epsilon" not in fields
        and (isinstance(node, Map) or reader.empty(node))
    ):
        reader.problem(
            node,
            "budget needs epsilon, for all analysts together: around 1 or smaller protects well.",
        )
    if accountant == "zcdp" and not delta and node is not None:
        place = fields.get("delta", node)
        reader.problem(
            place, "accountant zcdp needs delta above zero, to turn ρ into ε: write `delta: 1e-9`."
        )
    if accountant == "zcdp" and keys == 1:
        reader.problem(
            fields["keys"],
            "accountant zcdp needs some of delta to turn ρ into ε: write keys below 1.",
        )
    if epsilon is None:
        return None
    if keys is None:
        keys = Fraction(1, 2) if accountant == "zcdp" else Fraction(1)
    return BudgetTerms(
        epsilon=epsilon,
        delta=delta or Fraction(0),
        accountant=cast(AccountantName, accountant),
        keys=keys,
    )


def limits_of(reader: Reader, node: Node | None, budget: BudgetTerms | None) -> Limits:
    """Read `limits:`.

    The defaults are ε = 1, or the whole budget if that is smaller; a minute; 4 GB; a million keys;
    64 KB of text; no deadline; twenty overruns.
    """
    known = ("epsilon", "seconds", "memory", "keys", "statement", "deadline", "overruns")
    fields = reader.fields(node, "limits", ("limits",), known)
    epsilon = reader.amount(fields.get("epsilon"), "limits.epsilon")
    seconds = reader.seconds(fields.get("seconds"), "limits.seconds") or Fraction(60)
    memory = reader.size(fields.get("memory"), "limits.memory") or 4 * 10**9
    deadline = reader.seconds(fields.get("deadline"), "limits.deadline")
    if memory < 10**8:
        reader.problem(
            fields["memory"], "limits.memory must be at least 100MB, which the engine itself needs."
        )
    if deadline is not None and deadline > seconds:
        reader.problem(
            fields["deadline"],
            f"limits.deadline must be at most limits.seconds, {write_number(seconds)}s.",
        )
    default_epsilon = min(Fraction(1), budget.epsilon) if budget else Fraction(1)
    return Limits(
        epsilon=epsilon or default_epsilon,
        seconds=seconds,
        memory=memory,
        keys=reader.whole(fields.get("keys"), "limits.keys") or 10**6,
        statement=reader.size(fields.get("statement"), "limits.statement") or 64 * 10**3,
        deadline=deadline,
        overruns=reader.whole(fields.get("overruns"), "limits.overruns") or 20,
    )
