"""Exceptions, with their exit codes and JSON kinds.

    DiscreetError
    ├── UsageError          the call itself is wrong: an epsilon of -1, an unknown analyst (also a
                            ValueError)
    ├── PolicyError         the policy file is wrong; holds every problem with its place
    ├── Rejected            the question cannot be answered privately; says where, why and what to
                            write instead
    ├── BudgetExceeded      the question is fine and there is not enough budget left for it
    ├── LedgerUnavailable   the ledger is missing, locked, full or tampered with: nothing is
                            answered
    ├── Unproved            the plan claims less than its proof: our mistake, told before anything
                            is charged
    └── EngineFailure       the engine failed; the detail is in the curator's log, never in the
        │                   message
        └── SnapshotFailure it failed while the curator's snapshot was prepared, before any charge

Messages depend on the question and the policy only, never on the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

# What no text of others may hold, which messages repeat: what a terminal obeys, what turns a line's
# reading around, and halves of characters; tabs and ends of lines are text.
NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class DiscreetError(Exception):
    """The base of everything that this package raises on purpose."""

    kind: ClassVar[str] = "engine"
    exit_code: ClassVar[int] = 1

    def as_json(self) -> dict[str, object]:
        return {"kind": self.kind, "message": str(self), "line": None, "column": None, "hint": None}


class UsageError(DiscreetError, ValueError):
    kind = "usage"
    exit_code = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in a policy file, with its place."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class PolicyError(DiscreetError):
    kind = "policy"
    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems

    def as_json(self) -> dict[str, object]:
        first = self.problems[0]
        return {
            "kind": self.kind,
            "message": str(self),
            "line": first.line,
            "column": first.column,
            "hint": None,
        }


class Rejected(DiscreetError):
    """A question was refused: what was asked, why not, and what to write instead."""

    kind = "rejected"
    exit_code = 4

    def __init__(self, reason: str, *, hint: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"Rejected (line {line}, column {column}): {reason} {hint}".rstrip())
        self.reason, self.hint, self.line, self.column = reason, hint, line, column

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "message": self.reason,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }


class Spending(Protocol):
    """An amount and its δ, in the ledger's currency: a `budget.Charge`."""

    @property
    def amount(self) -> Fraction: ...

    @property
    def delta(self) -> Fraction: ...


class BudgetExceeded(DiscreetError):
    """`who` asked for `asked` and had `left` left of `limit`."""

    kind = "budget"
    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        who: str | None = None,
        asked: Spending | None = None,
        left: Spending | None = None,
        limit: Spending | None = None,
    ) -> None:
        super().__init__(message)
        self.who, self.asked, self.left, self.limit = who, asked, left, limit


class LedgerUnavailable(DiscreetError):
    kind = "ledger"
    exit_code = 5


class Unproved(DiscreetError):
    """A claim that is too small, an internal error: a plan claims less than `sql.check` derives,
    and nothing was charged; or a mechanism claims less than its statistic's sensitivity, and
    nothing was released.
    """

    kind = "internal"
    exit_code = 1


class EngineFailure(DiscreetError):
    kind = "engine"
    exit_code = 1

    def __init__(self, what: str = "The engine could not answer this question.") -> None:
        super().__init__(f"{what} The curator's log has the details.")


class SnapshotFailure(EngineFailure):
    """A snapshot could not be prepared: what failed, and what the curator can do. Nobody's budget
    is touched.
    """

    def __init__(self, doing: str, remedy: str) -> None:
        DiscreetError.__init__(
            self,
            f"The snapshot was not made: {doing} failed in the engine. {remedy} Nothing was charged, and earlier "
            "snapshots are as they were.",
        )
