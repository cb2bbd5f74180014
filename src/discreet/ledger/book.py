"""The ledger: `reserve` before reading, `post` before releasing, `recall` what was released.

Suppose that two processes ask the same question at the same time. The transaction lets one of them
reserve; the other finds this charge open and gets the same key (it is `resumed`). Every draw is a
function of the key, and every exact value a function of the snapshot; two charges are the same only
if question, policy, snapshot, mechanisms and cost are equal. So both processes compute the same
bytes and pay once. The first `post` stores the bytes; the second finds them stored. If its bytes
differed, the second `post` would be refused and they would not leave: no charge has two answers.
The same argument covers a process that died: whoever asks again on that snapshot resumes its charge
with its noise.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from discreet.budget import Charge, number
from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger.balance import (
    Balance,
    parts_from_row,
    same_charge,
    same_question,
    stored_as,
    sums_as_row,
)
from discreet.ledger.chain import Row, digest, fresh_secret
from discreet.ledger.head import Head, head_of, head_text
from discreet.ledger.journal import Journal, begin, exported
from discreet.ledger.place import Place, place_of
from discreet.ledger.receipts import (
    Bill,
    Entry,
    Mechanisms,
    Reservation,
    Standing,
    StoredAnswer,
    StoredPart,
    entry_of,
    mechanisms_of,
    rows_of,
    standing_of,
)
from discreet.ledger.shortage import Words, over_budget
from discreet.ledger.stores import establish
from discreet.ledger.stores.store import Kind
from discreet.ledger.streams import Streams
from discreet.ledger.terms import (
    BOUND,
    NOTHING,
    Terms,
    charge_as_row,
    charge_from_row,
    check_limits,
    limits_as_row,
)


class Ledger:
    """A budget on disk: `create` it once, then `open` it.

    Threads, forks and processes may share it.
    """

    def __init__(self, journal: Journal, *, words: Words | None) -> None:
        self._journal = journal
        self._words = words

    @classmethod
    def create(
        cls,
        path: str | Path | Place,
        terms: Terms,
        *,
        carried: Mapping[str, Charge] | None = None,
        words: Words | None = None,
    ) -> Ledger:
        """Create a ledger and its key; `carried` is what each analyst spent under an earlier ledger."""
        opening = {who: charge_as_row(spent) for who, spent in (carried or {}).items()}
        if any(spent.amount < 0 or spent.delta < 0 for spent in (carried or {}).values()):
            raise UsageError("What is carried over from an earlier ledger must be zero or more.")
        begin(place_of(path), {"kind": "terms", "carried": opening, **terms.as_row()})
        return cls.open(path, terms, words=words)

    @classmethod
    def open(
        cls,
        path: str | Path | Place,
        terms: Terms | None = None,
        *,
        words: Words | None = None,
        timeout: float = 10,
        away: bool = False,
    ) -> Ledger:
        """Open a ledger and check all of its rows; never create one.

        `terms`: refuse a policy that promises something else (S2). `words` turns a charge into the
        budget that `BudgetExceeded` shows; without it people read the ledger's own currency.
        `away`: also open a ledger at a place from which it was moved, to copy or verify it.
        """
        ledger = cls(Journal(place_of(path), timeout=timeout, away=away), words=words)
        if not ledger._journal.rotated():
            raise LedgerUnavailable(
                f"A key rotation of {ledger._journal.path.name} was interrupted: run it again."
            )
        if terms is not None:
            ledger.terms.require_same(terms, name=ledger._journal.path.name)
        return ledger

    def reserve(self, bill: Bill, *, overruns: int | None = None) -> Reservation | StoredAnswer:
        """Charge a bill durably and return the key of its noise.

        If the same charge is open, resume it. If it was answered a moment ago, return that answer.
        Refuse an analyst who has had `overruns` overruns.
        """
        analyst = bill.analyst
        cost = bill.cost
        asked = bill.as_row()
        if cost.amount <= 0 or cost.delta < 0:
            raise UsageError(
                f"A question's cost must be greater than zero, not {number(cost.amount)}."
            )
        same = same_charge(asked, cost)
        secret = fresh_secret()
        with self._journal.session(write=True) as balance:
            balance.require_analyst(analyst)
            if overruns is not None:
                balance.require_overruns_left(analyst, overruns)
            balance.require_current(bill.snapshot)
            waiting = balance.resumable.get(same)
            if waiting is not None:
                self._journal.file.sync_log()
                return Reservation(id=waiting, key=self._journal.unsealed(waiting), resumed=True)
            if same in balance.answered:
                known = balance.answered[same]
                return self._stored_as(
                    balance, known, self._post_of(balance, known), same_question(asked)
                )[1]
            cost = balance.priced(analyst, cost)
            shortage = balance.shortage(analyst, cost)
            if shortage is None:
                sums = sums_as_row(balance.sums_with(analyst, cost))
                price = {"cost": charge_as_row(cost), "spent": sums, "same": same}
                charge = self._journal.append(
                    {"kind": "charge", **asked, **price, "text": bill.text}
                )
                self._journal.seal(charge, secret, key=balance.key)
                return Reservation(id=charge, key=secret, resumed=False)
        raise over_budget(shortage, self._words, self._journal.path.stem)

    def post(
        self,
        reservation: Reservation,
        answer: bytes,
        *,
        meta: Mapping[str, Any] | None = None,
        mechanisms: Mechanisms | None = None,
    ) -> Standing:
        """Store an answer, close its charge and erase its key; only then may the answer leave.

        To post the same bytes again changes nothing. Other bytes are refused and must not leave.
        """
        charge = reservation.id
        content = digest(answer)
        rows = rows_of(mechanisms)
        with self._journal.session(write=True) as balance:
            waiting = balance.open.get(charge)
            if waiting is None:
                self._require_posted(charge, content)
                paid_by = self._journal.row(charge).body["analyst"]
                return standing_of(paid_by, balance, exported(balance))
            if self._journal.unsealed(charge) != reservation.key:
                raise UsageError(
                    f"Charge {charge} was reserved by somebody else: reserve first, then post."
                )
            if waiting.lump != (rows is not None):
                raise UsageError(
                    "A lump says at post which mechanisms it used, and no other charge does."
                )
            row = {
                "kind": "post",
                "charge": charge,
                "answer": content,
                "meta": dict(meta or {}),
                "mechanisms": rows,
            }
            post = self._journal.append(row)
            self._journal.file.keep_answer(charge, post, waiting.question, answer)
            self._journal.file.erase_key(charge)
            return standing_of(
                waiting.analyst, balance, head_of(balance.ledger, *self._journal.file.appended)
            )

    def overran(self, reservation: Reservation, *, analyst: str) -> None:
        """Count a charge whose work failed or took too long, and close it without an answer (S13,
        S22).

        If another process posted the same charge meanwhile, only count the overrun.
        """
        with self._journal.session(write=True) as balance:
            is_open = reservation.id in balance.open
            self._journal.append({"kind": "overrun", "charge": reservation.id, "analyst": analyst})
            if is_open:
                self._journal.file.erase_key(reservation.id)

    def recall(
        self, *, question: str, policy: str, snapshot: int, at_least: Fraction = Fraction(0)
    ) -> tuple[StoredAnswer, ...]:
        """Return the answers to this question on this snapshot that cost `at_least` an amount,
        whoever paid, oldest first (S10).
        """
        subject = same_question({"question": question, "policy": policy, "snapshot": snapshot})
        with self._journal.session(write=False) as balance:
            return self._recall(balance, subject, at_least)

    def standing(
        self,
        analyst: str,
        *,
        snapshot: int,
        question: str | None = None,
        policy: str = "",
        at_least: Fraction = Fraction(0),
        parts: Mapping[str, Fraction] | None = None,
    ) -> Standing:
        """Return in one transaction: what is left, the head, the stored answers to a question, and
        the stored `parts`.

        A part is looked up with the least amount it must have cost. If several were stored, return
        the first: so whoever asks again gets the same numbers, whatever was stored since. Refuse an
        unknown analyst, and a snapshot that is not the current one.
        """
        asked = {"question": question, "policy": policy, "snapshot": snapshot}
        subject = same_question(asked)
        with self._journal.session(write=False) as balance:
            balance.require_current(snapshot)
            left = balance.left(analyst)
            stored = () if question is None else self._recall(balance, subject, at_least)
            found = self._parts(balance, asked, parts or {})
            return Standing(left=left, head=exported(balance), stored=stored, parts=found)

    def _parts(
        self, balance: Balance, asked: Mapping[str, Any], wanted: Mapping[str, Fraction]
    ) -> dict[str, StoredPart]:
        charges = dict[str, int]()
        for part, amount in wanted.items():
            stored = balance.parts.get(stored_as(part, asked), ())
            # the costs rise
            first = bisect_left(stored, amount, key=itemgetter(0))
            if first < len(stored):
                charges[part] = stored[first][1]
        known = {charge: self._part_of(balance, charge, asked) for charge in set(charges.values())}
        found = dict[str, StoredPart]()
        for part, charge in charges.items():
            mechanisms, answer = known[charge]
            balance.require(part in mechanisms, charge, "did not pay for what is stored with it")
            found[part] = StoredPart(answer=answer, mechanisms=mechanisms[part])
        return found

    def _part_of(
        self, balance: Balance, charge: int, asked: Mapping[str, Any]
    ) -> tuple[dict[str, tuple[dict[str, Any], ...]], StoredAnswer]:
        """Return the mechanisms of each part that a charge paid for, and its answer."""
        paid, answer = self._stored_as(balance, charge, self._post_of(balance, charge), None)
        same = all(paid.body[name] == asked[name] for name in ("policy", "snapshot"))
        balance.require(same, charge, "is about another snapshot or policy")
        rest = iter(answer.mechanisms)
        found = dict[str, tuple[dict[str, Any], ...]]()
        for part in parts_from_row(paid.body):
            found[part.id] = tuple(islice(rest, part.mechanisms))
        return found, answer

    def _post_of(self, balance: Balance, charge: int) -> int:
        """Return the row that posted a charge's answer."""
        post = self._journal.file.post_of(charge)
        balance.require(post is not None, charge, "has lost its answer")
        return post or 0

    def _recall(
        self, balance: Balance, subject: bytes, at_least: Fraction
    ) -> tuple[StoredAnswer, ...]:
        found = self._journal.file.answers_to(subject)
        dear = [each for each in found if not at_least or self._cost(each[0]).amount >= at_least]
        return tuple(self._stored_as(balance, charge, post, subject)[1] for charge, post in dear)

    @property
    def streams(self) -> Streams:
        """Return the ledger's streams: charges that are answered step by step."""
        return Streams(self._journal)

    def _cost(self, charge: int) -> Charge:
        return charge_from_row(self._journal.row(charge).body["cost"])

    def amend(self, *, limit: Charge, analysts: Mapping[str, Charge]) -> bool:
        """Record new limits; return True if they differ from the old. What was spent stays spent."""
        check_limits(limit, analysts)
        with self._journal.session(write=True) as balance:
            if (limit, dict(analysts)) == (balance.limit, balance.analysts):
                return False
            self._journal.append({"kind": "amend", **limits_as_row(limit, analysts)})
            return True

    def new_snapshot(self, number: int | None = None) -> int:
        """Begin a new snapshot (S9): the next number, or a given higher one."""
        with self._journal.session(write=True) as balance:
            chosen = balance.snapshot + 1 if number is None else number
            if chosen <= balance.snapshot:
                raise UsageError(
                    f"A new snapshot's number must be above {balance.snapshot}, not {chosen}."
                )
            self._journal.append({"kind": "snapshot", "snapshot": chosen})
            return chosen

    @classmethod
    def rotate_key(cls, path: str | Path | Place, *, timeout: float = 10) -> None:
        """Append a new key and seal open charges under it.

        Earlier rows keep the MACs of the old key; the first MAC of the new key covers them.
        """
        journal = Journal(place_of(path), timeout=timeout)
        with journal.session(write=True) as balance:
            key = journal.add_key()
            for charge in balance.open:
                journal.seal(charge, journal.unsealed(charge), key=key)
            journal.append({"kind": "key", "key": key})
        journal.file.close()

    @property
    def terms(self) -> Terms:
        """Return the terms of the first row; `limits` has the limits as they are now."""
        with self._journal.session(write=False) as balance:
            return balance.bound

    @property
    def limits(self) -> tuple[Charge, dict[str, Charge]]:
        """Return the common limit and each analyst's share, as last amended."""
        with self._journal.session(write=False) as balance:
            return balance.limit, dict(balance.analysts)

    @property
    def snapshot(self) -> int:
        """Return the current snapshot's number; 0 before the first."""
        with self._journal.session(write=False) as balance:
            return balance.snapshot

    def spent(self, analyst: str | None = None) -> Charge:
        """Return what one analyst (or the curator) has spent, or if None, all together."""
        with self._journal.session(write=False) as balance:
            return balance.everyone if analyst is None else balance.spent.get(analyst, NOTHING)

    def left(self, analyst: str) -> Charge:
        """Return the smaller of what is left of the analyst's share and of the common limit."""
        with self._journal.session(write=False) as balance:
            return balance.left(analyst)

    def entries(self, analyst: str | None = None) -> tuple[Entry, ...]:
        """Return the charges, oldest first: who spent how much on what."""
        with self._journal.session(write=False) as balance:
            charges = (row for row in self._journal.rows() if row.body["kind"] == "charge")
            return tuple(
                entry_of(row, balance) for row in charges if analyst in (None, row.body["analyst"])
            )

    def rows(self) -> tuple[dict[str, Any], ...]:
        """Return every row as it was written: an auditor recomputes the ledger from them."""
        with self._journal.session(write=False):
            return tuple({"number": row.number, **row.body} for row in self._journal.rows())

    def certificate(self, id: int | str) -> dict[str, Any]:
        """Return the facts by which an auditor checks one released answer, with its place in the
        chain.
        """
        with self._journal.session(write=False) as balance:
            wanted = int(id) if re.fullmatch("[0-9]{1,18}", str(id)) else 0
            posted = self._journal.file.post_of(wanted)
            if posted is None:
                raise UsageError(f"{balance.name} has posted no answer {id}.")
            charge = self._journal.row(wanted)
            post = self._journal.row(posted)
            bound = balance.bound.as_row()
            asked = ("question", "policy", "snapshot", "analyst", "text", "cost")
            return {
                "ledger": balance.ledger,
                "id": charge.number,
                **{name: bound[name] for name in BOUND},
                **{name: charge.body[name] for name in asked},
                "mechanisms": mechanisms_of(charge, post),
                "reserved": charge.body["when"],
                "posted": post.body["when"],
                "answer": post.body["answer"],
                "head": head_of(balance.ledger, post.number, post.mac),
            }

    def head(self) -> dict[str, Any]:
        """Return the number and MAC of the last row.

        Keep it elsewhere: `verify(head)` then notices a ledger that was set back to an older copy.
        """
        with self._journal.session(write=False) as balance:
            return exported(balance)

    def copy(self, target: Place) -> None:
        """Copy all rows, answers, keys and the head to another place."""
        with self._journal.session(write=False) as balance:
            head = head_text(balance.ledger, balance.number, balance.mac)
            keys = b"".join(key.secret for key in self._journal.keys)
            establish(target, self._journal.records(), keys=keys, head=head)

    @property
    def home(self) -> str:
        """Return the kind of store that the ledger lives in."""
        with self._journal.session(write=False) as balance:
            return balance.home

    def move_to(self, kind: Kind) -> None:
        """Record that the ledger now lives in another kind of store; this copy spends no more."""
        with self._journal.session(write=True):
            self._journal.append({"kind": "move", "to": kind})

    def verify(self, head: Head | None = None) -> int:
        """Check all rows, answers and keys, and that the exported `head` is one of the rows.

        Return the number of rows.
        """
        self._journal.require_own_head()
        with self._journal.session(write=False) as balance:
            self._journal.verify()
            if head is not None:
                self._journal.require_head(head)
            return balance.number

    def close(self) -> None:
        self._journal.file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored_as(
        self, balance: Balance, charge: int, post: int, subject: bytes | None
    ) -> tuple[Row, StoredAnswer]:
        """Return a charge's row and its stored answer; if `subject` is given, require that it
        answers this question.
        """
        paid = self._journal.row(charge)
        posted = self._journal.row(post)
        answer = self._journal.file.answer(charge)
        asked = paid.body["kind"] == "charge" and subject in (None, same_question(paid.body))
        answered = posted.body.get("charge") == charge
        same_bytes = posted.body.get("answer") == digest(answer)
        fits = asked and answered and same_bytes
        balance.require(fits, post, "does not belong to the answer stored with it")
        return paid, StoredAnswer(
            id=charge,
            analyst=paid.body["analyst"],
            cost=charge_from_row(paid.body["cost"]),
            mechanisms=tuple(mechanisms_of(paid, posted)),
            meta=posted.body["meta"],
            answer=answer,
        )

    def _require_posted(self, charge: int, content: str) -> None:
        posted = self._journal.file.post_of(charge)
        if posted is None:
            raise UsageError(f"There is no charge {charge} to post an answer to.")
        if self._journal.row(posted).body["answer"] != content:
            raise LedgerUnavailable(
                f"Charge {charge} already has another answer: this one must not be released. Recall the stored one."
            )
