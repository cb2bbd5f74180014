"""Values that go in and out of the ledger: bills, reservations, stored answers, standings."""

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
    """Who pays how much for what, and the text that people read.

    `mechanisms` None is a lump, for an algorithm that chooses as it goes: it says at `post` what it
    did, and `question` must then name everything that its choices depend on. For a `stream` see
    `streams`. What is charged in `parts` is found again part by part, by `standing`.
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
        """Return the fields of the charge's row, without the cost, which may be rounded up, and the
        text.
        """
        row: dict[str, Any] = {
            name: getattr(self, name) for name in ("analyst", "question", "policy", "snapshot")
        }
        row |= {"mechanisms": rows_of(self.mechanisms)} | ({"stream": True} if self.stream else {})
        return row | ({"parts": [part.as_row() for part in self.parts]} if self.parts else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """A charge that is on the disk, and the key from which all its noise comes."""

    id: int
    key: bytes = field(repr=False)
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """An answer that was released, with what its charge bought."""

    id: int
    analyst: str
    cost: Charge
    mechanisms: tuple[dict[str, Any], ...]
    meta: dict[str, Any]
    answer: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """A part of a question that was measured before: the charge's answer holds it, and these
    mechanisms are its own.
    """

    answer: StoredAnswer
    mechanisms: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where an analyst stands: what is left, how far the ledger is, which answers (oldest first)
    and parts it has.
    """

    left: Charge
    head: dict[str, Any]
    stored: tuple[StoredAnswer, ...] = ()
    parts: Mapping[str, StoredPart] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the listing. An open charge whose snapshot is gone can never be resumed: it is
    lost.
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
        """Return True for a statement; other entries are descriptions, releases and the like."""
        return self.text.lstrip().upper().startswith(("SELECT", "WITH", "("))


def rows_of(mechanisms: Mechanisms | None) -> list[dict[str, Any]] | None:
    return None if mechanisms is None else [dict(mechanism) for mechanism in mechanisms]


def mechanisms_of(charge: Row, post: Row) -> list[dict[str, Any]]:
    named: list[dict[str, Any]] | None = charge.body["mechanisms"]
    used: list[dict[str, Any]] = post.body["mechanisms"] if named is None else named
    return used


def standing_of(analyst: str, balance: Balance, head: dict[str, Any]) -> Standing:
    """Return where the payer of a charge stands, who may be no analyst any more."""
    known = analyst == CURATOR or analyst in balance.analysts
    return Standing(left=balance.left(analyst) if known else NOTHING, head=head)


def is_resumable(waiting: OpenCharge, balance: Balance) -> bool:
    return waiting.stream or waiting.snapshot == balance.snapshot


def entry_of(row: Row, balance: Balance) -> Entry:
    waiting = balance.open.get(row.number)
    lost = row.number in balance.overran or (
        waiting is not None and not is_resumable(waiting, balance)
    )
    return Entry(
        id=row.number,
        when=row.body["when"],
        analyst=row.body["analyst"],
        text=row.body["text"],
        cost=charge_from_row(row.body["cost"]),
        snapshot=row.body["snapshot"],
        state="lost" if lost else "posted" if waiting is None else "open",
    )
