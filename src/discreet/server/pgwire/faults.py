"""Errors as Postgres clients read them: SQLSTATE, sentence, hint, place.

Codes of our own have an X: 53X01 over budget, 53X02 too many questions wait, 42X01 refused, 55X01
no ε is set, 58X01 the ledger is unavailable, 58X02 the engine failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    LedgerUnavailable,
    Rejected,
    UsageError,
)
from discreet.server.pgwire import messages

OVER_BUDGET = "53X01"
CROWDED = "53X02"
REFUSED = "42X01"
UNPRICED = "55X01"
LEDGER = "58X01"
ENGINE = "58X02"
INTERNAL = "XX000"

NO_PRICE = (
    "Say what an answer may cost: SET discreet.epsilon = 0.1; or how wrong it may be: SET discreet.margin = 100. "
    "Tools that cannot SET connect with options=-c discreet.epsilon=0.1, or the curator gives a default "
    "(per_question) in the policy."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence beside a result."""

    message: str
    code: str = "00000"
    severity: str = "NOTICE"
    detail: str = ""

    def pack(self) -> bytes:
        detail = [("D", self.detail)] if self.detail else []
        return messages.report(
            b"N", [*_fields(self.severity, self.code, self.message, "", None), *detail]
        )


class Fault(Exception):
    """An error that is told to the client. `place` is where in the statement, counted in letters
    from 1.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        place: int | None = None,
        severity: str = "ERROR",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.place = place
        self.severity = severity

    def pack(self) -> bytes:
        return messages.report(
            b"E", _fields(self.severity, self.code, self.message, self.hint, self.place)
        )


class Fatal(Fault):
    """An error after which the connection ends. `told` says whether the client has it already."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(code, message, hint=hint, severity="FATAL")
        self.told = False


def _fields(
    severity: str, code: str, message: str, hint: str, place: int | None
) -> Iterator[tuple[str, str]]:
    yield from (("S", severity), ("V", severity), ("C", code), ("M", message))
    if hint:
        yield "H", hint
    if place is not None:
        yield "P", str(place)


def fault_of(error: DiscreetError, *, sql: str = "", offset: int = 0) -> Fault:
    """Return the fault for an error of ours; `sql` begins `offset` letters after the message's
    beginning.
    """
    if isinstance(error, Rejected):
        place = offset + letters_before(sql, error.line, error.column) + 1
        return Fault(
            REFUSED,
            f"Line {error.line}, column {error.column}: {error.reason}",
            hint=error.hint,
            place=place,
        )
    if isinstance(error, BudgetExceeded):
        hint = (
            "Asking again what was answered before is free. SHOW discreet.budget says what is left."
        )
        return Fault(OVER_BUDGET, str(error), hint=hint)
    if isinstance(error, LedgerUnavailable):
        return Fault(LEDGER, str(error))
    if isinstance(error, UsageError):
        return Fault("22023", str(error))
    return Fault(ENGINE, str(error))


def letters_before(sql: str, line: int, column: int) -> int:
    """Return how many letters of a text stand before a line and column, which both count from 1."""
    lines = sql.split("\n")
    before = sum(len(each) + 1 for each in lines[: max(0, line - 1)])
    return min(len(sql), before + max(0, column - 1))


def not_understood(what: str, *, hint: str, place: int | None = None) -> Fault:
    return Fault("42601", what, hint=hint, place=place)
