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
    ├── Unproved            the plan claims less than its proof: our mistake, found before any
                            charge
    └── EngineFailure       the engine failed; the curator's log has the details, the message none
        └── SnapshotFailure the engine failed while it prepared a snapshot, before any charge

Messages depend on the question and the policy only, never on the data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

# Characters that a text from outside must not bring into our messages: terminal controls,
# bidirectional overrides and lone surrogates. Tabs and line ends are allowed.
NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class DiscreetError(Exception):
    """The base class of every exception that this package raises on purpose."""

    kind: ClassVar[str] = "engine"
    exit_code: ClassVar[int] = 1

    def as_json(self) -> dict[str, object]:
        return {"kind": self.kind, "message": str(self), "line": None, "column": None, "hint": None}


class UsageError(DiscreetError, ValueError):
    """The call itself is wrong. If an analyst is `unknown`, it has the names that are `known`: only
    the command line tells them, as whoever runs it can read the policy. The message has none,
    because it goes to the doors of a server too.
    """

    kind = "usage"
    exit_code = 2

    def __init__(self, message: object, *, unknown: str = "", known: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.unknown = unknown
        self.known = known


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
        self.reason = reason
        self.hint = hint
        self.line = line
        self.column = column

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
    """A charge does not fit: `who` asked for `asked` and has `left` left of `limit`."""

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
        self.who = who
        self.asked = asked
        self.left = left
        self.limit = limit


class LedgerUnavailable(DiscreetError):
    kind = "ledger"
    exit_code = 5


class Unproved(DiscreetError):
    """A claimed sensitivity is too small: an internal error.

    Either a plan claims less than `sql.check` derives, and nothing was charged; or a mechanism
    claims less than its statistic's sensitivity, and nothing was released.
    """

    kind = "internal"
    exit_code = 1


class EngineFailure(DiscreetError):
    kind = "engine"
    exit_code = 1

    def __init__(self, what: str = "The engine could not answer this question.") -> None:
        super().__init__(f"{what} The curator's log has the details.")


class SnapshotFailure(EngineFailure):
    """A snapshot could not be prepared; says what failed and what the curator can do.

    No budget was spent.
    """

    def __init__(self, doing: str, remedy: str) -> None:
        DiscreetError.__init__(
            self,
            f"The snapshot was not made: {doing} failed in the engine. {remedy} Nothing was charged, and earlier "
            "snapshots are as they were.",
        )
