"""The door: all paid work passes through here, in the order recall, reserve, work, post.

standing   one transaction that reads: may the analyst ask, on which snapshot, how much budget is
           left, which parts were measured before
reserve    one transaction that writes: the charge is on disk before the engine reads any data
post       one transaction that writes: the answer is on disk before it leaves; returns what is left
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Generic, TypeVar

from discreet.accounting import Accountant
from discreet.budget import FREE, Charge
from discreet.engines.limits.until import Until
from discreet.ledger import Bill, Ledger, PaidPart, Reservation, Standing, StoredAnswer
from discreet.mechanisms import Mechanism
from discreet.policy.policy import CURATOR, Policy
from discreet.vault.allowance import Allowance
from discreet.vault.answer import rows_used

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to pay for one piece of work: who pays, how much, and for what.

    If `mechanisms` is None, the request is a lump: the work chooses its mechanisms as it goes, and
    the allowance keeps them within `paid`.
    """

    analyst: str
    question: str  # the identity under which the answer is stored
    text: str  # the question as people read it
    cost: Charge  # in the ledger's currency
    mechanisms: Sequence[Mechanism] | None
    inside: Accountant  # prices the mechanisms of the work, to keep them within `paid`
    paid: Charge
    memory: int | None = None  # most bytes of exact values to hold at once
    meta: dict[str, Any] = field(default_factory=dict)
    # parts that are stored and recalled one by one (S10); empty if the answer is recalled whole
    parts: Sequence[PaidPart] = ()

    def find_stored(self, stored: Sequence[StoredAnswer]) -> StoredAnswer | None:
        """Return the stored answer to give instead: for a lump one of the same cost, otherwise the
        most precise one (S10).
        """
        if self.mechanisms is None:
            return next((answer for answer in stored if answer.cost == self.cost), None)
        return max(stored, key=lambda answer: answer.cost.amount, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(Generic[Made]):
    """The result of the work, what it cost this time, and what the analyst has left after it."""

    made: Made
    cost: Charge
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Charges, carries out and stores the work of one question, on one snapshot, by a deadline."""

    policy: Policy
    ledger: Ledger
    snapshot: int
    until: Until

    def standing(self, analyst: str, parts: Mapping[str, Fraction] | None = None) -> Standing:
        """Return what an analyst has left, and which `parts` are stored.

        A part is found if any analyst has paid at least the given amount for it (S10). Refuse an
        unknown analyst, and a snapshot that is not the current one.
        """
        return self.ledger.standing(
            analyst, snapshot=self.snapshot, policy=self.policy.digest, parts=parts
        )

    def free(self, standing: Standing, made: Made) -> Passage[Made]:
        """Return a passage that costs nothing, for work that is public or was measured before."""
        return Passage(made=made, cost=FREE, standing=standing)

    def through(
        self,
        request: Request,
        work: Callable[[Allowance, int], Made],
        *,
        pack: Callable[[Made], bytes],
        unpack: Callable[[bytes], Made],
    ) -> Passage[Made]:
        """Return the stored answer for free if there is one; otherwise pay and do the work."""
        standing = self._standing(request)
        stored = request.find_stored(standing.stored)
        if stored is not None:
            return self.free(standing, unpack(stored.answer))
        return self.pay(
            request, standing, work, pack=pack, unpack=lambda content, _: unpack(content)
        )

    def pay(
        self,
        request: Request,
        standing: Standing,
        work: Callable[[Allowance, int], Made],
        *,
        pack: Callable[[Made], bytes],
        unpack: Callable[[bytes, int], Made],
    ) -> Passage[Made]:
        """Charge the analyst, do the work within the charge, store the result and return it.

        If another process stored the same answer a moment ago, return that one for free.
        """
        charge = self._reserve(request)
        if isinstance(charge, Reservation):
            made, standing = self.until.leave(
                partial(self._carry_out, request, charge, work, pack),
                count=partial(self.ledger.overran, charge, analyst=request.analyst),
            )
            return Passage(made=made, cost=request.cost, standing=standing)
        return Passage(made=unpack(charge.answer, charge.id), cost=FREE, standing=standing)

    def recall(self, request: Request, unpack: Callable[[bytes], Made]) -> Made | None:
        """Return the stored answer for free, or None if there is none."""
        stored = request.find_stored(self._standing(request).stored)
        return None if stored is None else unpack(stored.answer)

    def _standing(self, request: Request) -> Standing:
        return self.ledger.standing(
            request.analyst,
            snapshot=self.snapshot,
            question=request.question,
            policy=self.policy.digest,
            at_least=request.cost.amount,
        )

    def _reserve(self, request: Request) -> Reservation | StoredAnswer:
        bill = Bill(
            analyst=request.analyst,
            question=request.question,
            policy=self.policy.digest,
            snapshot=self.snapshot,
            mechanisms=None if request.mechanisms is None else rows_used(request.mechanisms),
            cost=request.cost,
            text=request.text,
            parts=request.parts,
        )
        return self.ledger.reserve(bill, overruns=self.policy.limits.overruns)

    def _carry_out(
        self,
        request: Request,
        charge: Reservation,
        work: Callable[[Allowance, int], Made],
        pack: Callable[[Made], bytes],
    ) -> tuple[Made, Standing]:
        """Do the work within the charge and post the result.

        Privacy: every failure in here leaves as one fixed sentence (S22).
        """
        allowance = make_allowance(charge.key, request.inside, request.paid, memory=request.memory)
        made = work(allowance, charge.id)
        content = pack(made)
        self.until.check()
        used = rows_used(allowance.used) if request.mechanisms is None else None
        return made, self.ledger.post(charge, content, meta=request.meta, mechanisms=used)

    def begin_stream(
        self, *, question: str, mechanisms: Sequence[Mechanism], cost: Charge, text: str
    ) -> Reservation | StoredAnswer:
        """Charge the curator for all steps of a release at once (S15).

        The steps are then published through the ledger's streams.
        """
        bill = Bill(
            analyst=CURATOR,
            question=question,
            policy=self.policy.digest,
            snapshot=self.snapshot,
            mechanisms=rows_used(mechanisms),
            cost=cost,
            text=text,
            stream=True,
        )
        return self.ledger.reserve(bill)


def make_allowance(
    key: bytes, accountant: Accountant, paid: Charge, *, memory: int | None = None
) -> Allowance:
    """Return the allowance that a charge has paid for; its noise is derived from the charge's key."""
    return Allowance(key=key, accountant=accountant, paid=paid, memory=memory)
