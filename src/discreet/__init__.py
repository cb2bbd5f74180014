"""Statistics about people, and nothing about any one of them.

    import discreet
    curator = discreet.open("hospital.yaml")
    question = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    print(curator.quote(question, analyst="alice", epsilon=0.5))  # free: the price and the margins
    answer = curator.ask(question, analyst="alice", epsilon=0.5)
    answer.table, answer.margins, answer.cost, answer.left

`curator` is the path of a question. `policy` reads what the curator declared, `sql` turns text into
a plan, `ledger` spends, `noise` draws, and `vault` adds noise to exact values. `mechanisms` and
`accounting` hold the proofs. `local`, `anonymity`, `attacks` and `audit` stand beside this path.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from discreet.asking.quotes import Quote as Quote
    from discreet.budget import Budget as Budget
    from discreet.client import Client
    from discreet.curator import Curator as Curator
    from discreet.errors import BudgetExceeded as BudgetExceeded
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.errors import EngineFailure as EngineFailure
    from discreet.errors import LedgerUnavailable as LedgerUnavailable
    from discreet.errors import PolicyError as PolicyError
    from discreet.errors import Rejected as Rejected
    from discreet.errors import UsageError as UsageError
    from discreet.policy.policy import Policy as Policy
    from discreet.vault.answer import Answer as Answer

__version__ = "0.1.0"

_HOME = {
    "Answer": "vault.answer",
    "Budget": "budget",
    "BudgetExceeded": "errors",
    "Curator": "curator",
    "DiscreetError": "errors",
    "EngineFailure": "errors",
    "LedgerUnavailable": "errors",
    "Policy": "policy.policy",
    "PolicyError": "errors",
    "Quote": "asking.quotes",
    "Rejected": "errors",
    "UsageError": "errors",
}

__all__ = [*_HOME, "connect", "open"]


def open(
    policy: str | Path,
    *,
    tables: Mapping[str, Any] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Curator:
    """Open a policy file for questions; its ledger must exist (`discreet ledger POLICY --create`).

    The first call also takes snapshot 1 of the policy's source, or of `tables` if they are given:
    Arrow tables or data frames by name. Raises PolicyError with every mistake of the policy,
    LedgerUnavailable if there is no ledger, EngineFailure if the source cannot be prepared.
    """
    from discreet.curator import Curator
    from discreet.policy.policy import Policy

    return Curator(Policy.read(policy), tables=tables, progress=progress)


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic `%%discreet`; `%load_ext discreet` calls this."""
    from discreet.notebook import load

    load(shell)


def connect(url: str, *, token: str, timeout: float = 300.0) -> Client:
    """Return a client of a server that runs `discreet serve --http`.

    The client has the methods of `Curator` and asks as the analyst whom the token names.
    """
    from discreet.client import Client

    return Client(url, token=token, timeout=timeout)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    return getattr(import_module(f"discreet.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
