"""The values that go in and out of the ledger: bills, reservations, stored answers, standings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from discreet.budget import Charge
from discreet.ledger.balance import (
    Balance,
    OpenCharge,
    PaidPart,
)
from discreet.ledger.chain import Row
from discreet.ledger.terms import (
    CURATOR,
    NOTHING,
    charge_from_row,
)

Mechanisms = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A bill: who pays how much for what, and the text that people read.

    If `mechanisms` is None, the bill is a lump, for an algorithm that chooses as it goes: `post`
    names the mechanisms it used, and `question` must name everything that its choices depend on.
    `streams` explains a `stream`. `standing` finds each of the `parts` again by itself.
    """

    analyst: str
    question: str
    policy: str
    snapshot: int
    mechanisms: Mechanisms | None
    cost: Charge
    text: str
    parts: Sequence[PaidPart] = ()
    stream: bool = False

    def as_row(self) -> dict[str, Any]:
        """Return the fields of the charge's row, except the text and the cost, which may be rounded
        up.
        """
        row: dict[str, Any] = {
            "analyst": self.analyst,
            "question": self.question,
            "policy": self.policy,
            "snapshot": self.snapshot,
            "mechanisms": rows_of(self.mechanisms),
        }
        if self.stream:
            row["stream"] = True
        if self.parts:
            row["parts"] = [part.as_row() for part in self.parts]
        return row


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A charge that is on disk, and the key from which all its noise is derived."""

    id: int
    key: bytes = field(repr=False)
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer that was posted, with its charge."""

    id: int
    analyst: str
    cost: Charge
    mechanisms: tuple[dict[str, Any], ...]
    meta: dict[str, Any]
    answer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """A part that was measured before: the answer that holds it, and the part's own mechanisms."""

    answer: StoredAnswer
    mechanisms: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an analyst has left, the ledger's head, and the stored answers (oldest first) and parts."""

    left: Charge
    head: dict[str, Any]
    stored: tuple[StoredAnswer, ...] = ()
    parts: Mapping[str, StoredPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge in the listing. An open charge whose snapshot is no longer current is lost: it can
    never be resumed.
    """

    id: int
    when: str
    analyst: str
    text: str
    cost: Charge
    snapshot: int
    state: Literal["open", "posted", "lost"]

    @property
    def is_question(self) -> bool:
        """Return True for an SQL question; other entries are descriptions, releases and so on."""
        return self.text.lstrip().upper().startswith(("SELECT", "WITH", "("))


def rows_of(mechanisms: Mechanisms | None) -> list[dict[str, Any]] | None:
    return None if mechanisms is None else [dict(mechanism) for mechanism in mechanisms]


def mechanisms_of(charge: Row, post: Row) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] | None = charge.body["mechanisms"]
    used: list[dict[str, Any]] = post.body["mechanisms"] if named is None else named
    return used


def standing_of(analyst: str, balance: Balance, head: dict[str, Any]) -> Standing:
    """Return the standing of a charge's payer, with nothing left if the policy no longer lists
    them.
    """
    known = analyst == CURATOR or analyst in balance.analysts
    return Standing(left=balance.left(analyst) if known else NOTHING, head=head)


def is_resumable(waiting: OpenCharge, balance: Balance) -> bool:
    return waiting.stream or waiting.snapshot == balance.snapshot


def _state_of(charge: int, balance: Balance) -> Literal["open", "posted", "lost"]:
    """Return the state of a charge in the listing."""
    if charge in balance.overran:
        return "lost"
    waiting = balance.open.get(charge)
    if waiting is None:
        return "posted"
    return "open" if is_resumable(waiting, balance) else "lost"


def entry_of(row: Row, balance: Balance) -> Entry:
    return Entry(
        id=row.number,
        when=row.body["when"],
        analyst=row.body["analyst"],
        text=row.body["text"],
        cost=charge_from_row(row.body["cost"]),
        snapshot=row.body["snapshot"],
        state=_state_of(row.number, balance),
    )
