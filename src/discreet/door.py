"""The door: whatever is paid for passes through here, in the order recall, reserve, work, post.

standing   one reading transaction: may they ask, on which snapshot, what is left, what of it was
           measured before?
reserve    one writing transaction: the charge is on the disk before anything is read
post       one writing transaction: the answer is on the disk before it leaves, and tells what is
           left
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
    """Who pays how much for what. `mechanisms` None is a lump: the work chooses as it goes, within
    `paid`.
    """

    analyst: str
    question: str  # its identity
    text: str  # as people read it
    cost: Charge  # in the ledger's currency
    mechanisms: Sequence[Mechanism] | None
    inside: Accountant  # whose prices keep the work within `paid`
    paid: Charge
    memory: int | None = None  # of exact values held at once
    meta: dict[str, Any] = field(default_factory=dict)
    # what is recalled by itself (S10); none of what is recalled as a whole
    parts: Sequence[PaidPart] = ()

    def find_stored(self, stored: Sequence[StoredAnswer]) -> StoredAnswer | None:
        """Return a stored answer that will do: for a lump the same cost, else the best (S10)."""
        if self.mechanisms is None:
            return next((each for each in stored if each.cost == self.cost), None)
        return max(stored, key=lambda each: each.cost.amount, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(Generic[Made]):
    """The work that came through the door, what it cost now, and where the analyst stands after it."""

    made: Made
    cost: Charge
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One question's way in and out of a charge, on one snapshot, until a deadline."""

    policy: Policy
    ledger: Ledger
    snapshot: int
    until: Until

    def standing(self, analyst: str, parts: Mapping[str, Fraction] | None = None) -> Standing:
        """Return where an analyst stands; refuse strangers, and a snapshot that is no longer the
        current one.

        Finds of each part what was measured before, by whomever, for at least this amount (S10).
        """
        return self.ledger.standing(
            analyst, snapshot=self.snapshot, policy=self.policy.digest, parts=parts
        )

    def free(self, standing: Standing, made: Made) -> Passage[Made]:
        """Let through what is public or was measured before: it costs nothing."""
        return Passage(made=made, cost=FREE, standing=standing)

    def through(
        self,
        request: Request,
        work: Callable[[Allowance, int], Made],
        *,
        pack: Callable[[Made], bytes],
        unpack: Callable[[bytes], Made],
    ) -> Passage[Made]:
        """Return the stored answer for nothing, or else pay for it."""
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
        """Charge, work within the charge, store the result, and let it leave; what was stored a
        moment ago is free.
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
        """Return the stored answer, for nothing, or None."""
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
        """Work within the charge and post the result; whatever fails here leaves as one sentence
        (S22).
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
        """Charge the curator for all steps of a release; they are published through the ledger's
        streams (S15).
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
    """Return the allowance that a charge has paid for; only the charge's key can make its noise."""
    return Allowance(key=key, accountant=accountant, paid=paid, memory=memory)
