"""Errors of the HTTP door: one shape, `{"error": {"kind", "sentence", "hint", "line", "column",
"code"}}`.

`code` is the SQLSTATE that the Postgres door gives for the same; sentences depend on the question
and the policy only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    LedgerUnavailable,
    PolicyError,
    Rejected,
    Unproved,
    UsageError,
)
from discreet.server.auth import Denied
from discreet.server.doorway import NoRoom
from discreet.server.pgwire.faults import (
    CROWDED,
    ENGINE,
    INTERNAL,
    LEDGER,
    OVER_BUDGET,
    REFUSED,
    UNPRICED,
)
from discreet.server.queue import Crowded, Stopping

AGAIN_IS_FREE = (
    "Asking again what was answered before is free. GET /api/v1/budget says what is left."
)


@dataclass(eq=False)
class Refusal(Exception):
    """The reply to a request that is refused."""

    status: int
    kind: str
    sentence: str
    hint: str = ""
    line: int | None = None
    column: int | None = None
    code: str = "22023"
    # beside the error's own fields: `problems` of a policy
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the body of the reply."""
        error = {
            "kind": self.kind,
            "sentence": self.sentence,
            "hint": self.hint or None,
            "line": self.line,
            "column": self.column,
            "code": self.code,
        }
        return {"error": error | dict(self.more)}


def log_in_first() -> Refusal:
    """Return the refusal of a request without a login."""
    hint = "Send Authorization: Bearer TOKEN (discreet user token), or log in: POST /api/v1/login."
    headers = {"WWW-Authenticate": "Bearer"}
    return Refusal(401, "denied", "Nobody is logged in.", hint, code="28000", headers=headers)


def not_yours(role: str) -> Refusal:
    """Return the refusal of a request that the user's role does not allow."""
    return Refusal(403, "denied", f"This is not for the role {role}.", code="42501")


def missing(what: str) -> Refusal:
    """Return the refusal of something that does not exist or belongs to another user: the same for
    both.
    """
    return Refusal(404, "missing", what, code="02000")


def no_price() -> Refusal:
    """Return the refusal of a question for which no ε is given."""
    hint = "Give epsilon, or margin: how wrong it may be at 95 %. The curator can give a default (per_question)."
    return Refusal(
        400, "unpriced", "What may this answer cost? No epsilon is given.", hint, code=UNPRICED
    )


def refusal_of(error: Exception) -> Refusal | None:
    """Return the refusal for an error of ours; None for one that is a failure."""
    match error:
        case Refusal():
            return error
        case Rejected(reason=reason, hint=hint, line=line, column=column):
            return Refusal(422, "rejected", reason, hint, line, column, REFUSED)
        case BudgetExceeded():
            return Refusal(402, "budget", str(error), AGAIN_IS_FREE, code=OVER_BUDGET)
        case LedgerUnavailable():
            return Refusal(503, "ledger", str(error), code=LEDGER)
        case PolicyError():
            return _of_policy(error)
        case UsageError():
            return Refusal(400, "usage", str(error))
        case Unproved():
            return Refusal(500, "internal", str(error), code=INTERNAL)
        case DiscreetError():
            return Refusal(500, "engine", str(error), code=ENGINE)
        case Denied():
            headers = (
                {"WWW-Authenticate": "Bearer"}
                if error.wait is None
                else {"Retry-After": f"{error.wait:.0f}"}
            )
            return Refusal(
                401 if error.wait is None else 429,
                "denied",
                str(error),
                code="28P01",
                headers=headers,
            )
        case Crowded():
            hint = "Wait for some of them to be answered."
            return Refusal(
                429, "crowded", "Too many of your questions wait already.", hint, code=CROWDED
            )
        case Stopping():
            return Refusal(
                503, "stopping", "The server stops and begins nothing new.", code="57P01"
            )
        case NoRoom():
            return Refusal(
                503 if error.passing else 413, "large", str(error), error.hint, code="54000"
            )
    return None


def _of_policy(error: PolicyError) -> Refusal:
    first = error.problems[0]
    problems = [
        {"line": each.line, "column": each.column, "message": each.message}
        for each in error.problems
    ]
    sentence = first.message
    place = (first.line, first.column)
    return Refusal(422, "policy", sentence, "", *place, code=REFUSED, more={"problems": problems})
