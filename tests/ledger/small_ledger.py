"""Terms of a small ledger, and one way to ask it something."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.budget import Charge
from discreet.ledger import Bill, Ledger, Reservation, StoredAnswer, Terms
from discreet.ledger.place import Place

LAPLACE = [{"mechanism": "DiscreteLaplace", "scale": "2", "l1": "1"}]


def charge(amount: str, delta: str = "0") -> Charge:
    return Charge(amount=Fraction(amount), delta=Fraction(delta))


def some_terms(limit: str = "4", **changes: Any) -> Terms:
    fields: dict[str, Any] = {
        "unit": "person",
        "neighbors": "add_remove",
        "owners": {"people": "person_id"},
        "accountant": {"name": "sum"},
        "limit": charge(limit, "1/1000"),
        "analysts": {"alice": charge("1", "1/2000"), "bob": charge("100", "1")},
    }
    return Terms(**(fields | changes))


def reserved(ledger: Ledger, question: str = "q", **changes: Any) -> Reservation | StoredAnswer:
    fields: dict[str, Any] = {
        "analyst": "alice",
        "question": question,
        "policy": "p" * 64,
        "snapshot": 0,
        "mechanisms": LAPLACE,
        "cost": charge("1/10"),
        "text": f"SELECT {question}",
    }
    overruns = changes.pop("overruns", None)
    return ledger.reserve(Bill(**(fields | changes)), overruns=overruns)


def ask(ledger: Ledger, question: str = "q", **changes: Any) -> Reservation:
    reservation = reserved(ledger, question, **changes)
    assert isinstance(reservation, Reservation)
    return reservation


def noisy(reservation: Reservation) -> bytes:
    """What a release is to a ledger: bytes that depend on the key and the (here constant) snapshot
    alone.
    """
    return hmac.digest(reservation.key, b"the exact value", "sha256")


def released(ledger: Ledger, question: str = "q", **changes: Any) -> bytes:
    """The door in miniature: charge, draw, store, release; or what was released before."""
    reservation = reserved(ledger, question, **changes)
    if isinstance(reservation, StoredAnswer):
        return reservation.answer
    answer = noisy(reservation)
    ledger.post(reservation, answer)
    return answer


def recalled(ledger: Ledger, question: str = "q", **changes: Any) -> list[bytes]:
    fields: dict[str, Any] = {"question": question, "policy": "p" * 64, "snapshot": 0}
    return [stored.answer for stored in ledger.recall(**(fields | changes))]


def words_of(place: Place) -> list[str]:
    """A place as words for another process; `place_from` makes it of them again."""
    return [str(place.path), *([] if place.address is None else [place.address])]


def place_from(words: Sequence[str]) -> Place:
    path, *address = words
    return Place(path=Path(path), address=address[0] if address else None)
