"""A visit: one analyst's question on one snapshot, from the offer to the answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from discreet.accounting import Accountant
from discreet.asking.offer import Offer
from discreet.asking.view import Outcome, View
from discreet.door import Door, Passage, Request
from discreet.ledger import PaidPart, Standing
from discreet.mechanisms import Mechanism
from discreet.policy.policy import Policy
from discreet.sql.plan.identity import digest
from discreet.sql.text.dialect import find_dialect
from discreet.sql.unlisted import unlisted
from discreet.vault.allowance import Allowance
from discreet.vault.answer import Answer
from discreet.vault.released import from_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A view and a door of the same snapshot: what a question needs to be offered, paid for and
    answered.
    """

    view: View
    door: Door

    @property
    def policy(self) -> Policy:
        return self.view.policy

    @property
    def accountant(self) -> Accountant:
        return self.view.accountant

    def offer(
        self,
        sql: str,
        analyst: str,
        *,
        epsilon: object,
        margin: object,
        assuming: int | None,
        dialect: str,
    ) -> tuple[Offer, Standing]:
        """Return the offer for a question (its plan, noise and price), and what the analyst has
        left.
        """
        fresh = self.view.offer(
            sql, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
        )
        standing = self.door.standing(analyst, fresh.least_costs)
        return self.view.knowing(fresh, standing), standing

    def savings(
        self, sql: str, analyst: str, offered: Offer, *, assuming: int | None, dialect: str
    ) -> tuple[str, ...]:
        """Return sentences: what the analyst could write instead, and what that would save."""
        find = partial(self.door.standing, analyst)
        return self.view.savings(sql, offered, find, assuming=assuming, dialect=dialect)

    def unlisted(self, sql: str, *, dialect: str) -> tuple[str, ...]:
        """Return sentences: texts of the question that are no listed value of their column."""
        return unlisted(sql, self.policy, self.view.public, dialect=find_dialect(dialect))

    def recall(self, offered: Offer, standing: Standing) -> Passage[Outcome]:
        """Return, for free, an answer whose parts are all public or were measured before."""
        return self.door.free(standing, self.view.recall(offered, standing))

    def pay(self, sql: str, analyst: str, offered: Offer, standing: Standing) -> Passage[Outcome]:
        """Charge the parts that are due, measure and store them, and return the answer. A part that
        another process stored a moment ago is free.
        """

        def work(allowance: Allowance, charge: int) -> Outcome:
            return self.view.carry_out(offered, standing, self.door.until, allowance, charge)

        def unpack(content: bytes, charge: int) -> Outcome:
            return self.view.complete(offered, standing, charge, from_bytes(content))

        return self.door.pay(
            self._request(sql, analyst, offered),
            standing,
            work,
            pack=Outcome.to_bytes,
            unpack=unpack,
        )

    def _request(self, sql: str, analyst: str, offered: Offer) -> Request:
        """Return the request to pay for the parts that are due."""
        mechanisms: list[Mechanism] = []
        parts = []
        for part in offered.due:
            used = offered.of(part)
            mechanisms += used
            paid = PaidPart(id=part.id, mechanisms=len(used), cost=offered.prices[part.id])
            parts.append(paid)
        return Request(
            analyst=analyst,
            question=digest("discreet parts", *(part.id for part in offered.due)),
            text=sql,
            cost=offered.cost,
            mechanisms=mechanisms,
            parts=parts,
            inside=self.accountant,
            paid=offered.cost,
            memory=self.policy.limits.python_memory,
        )

    def answer(self, sql: str, passed: Passage[Outcome]) -> Answer:
        """Return the answer as its reader gets it: table, margins, cost, what is left,
        certificate.
        """
        sheet = passed.made.sheet
        standing = passed.standing
        charge = passed.made.charge
        return Answer(
            table=sheet.table,
            margins=sheet.margins,
            selected=(sheet.selected,) * sheet.table.num_rows,
            cost=self.accountant.budget(passed.cost),
            left=self.accountant.left(standing.left),
            certificate={"question": sql, **sheet.certificate, "ledger": standing.head},
            id="public" if charge is None else str(charge),
        )
