"""A balance: the sums of a ledger's rows. Every process keeps one and adds only checked rows to it.

Each row is checked twice. Its MAC proves that the owner of the key wrote it (`chain`). `Balance.add`
checks it against the rows before it: it recomputes the sums, compares them with the limits, and
requires an open charge for every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, lcm
from typing import Any

from discreet.budget import Charge
from discreet.errors import BudgetExceeded, LedgerUnavailable, UsageError
from discreet.ledger.chain import FIRST, Row, canonical, digest
from discreet.ledger.terms import (
    CURATOR,
    EVERYONE,
    NOTHING,
    Terms,
    charge_as_row,
    charge_from_row,
    limits_from_row,
    terms_from_row,
)

_WIDEST = 512  # most bits of a denominator of a sum
_GRID = 10**40


def same_charge(asked: Mapping[str, Any], cost: Charge) -> str:
    """Return the identity of a charge: requests with equal identities share one charge and one noise
    key.
    """
    # Privacy: S8. Mechanisms and cost are part of it: two answers with one key and two noise scales
    # would give away the exact value, because the noise cancels.
    names = ("analyst", "question", "policy", "snapshot", "mechanisms")
    return digest(canonical([*(asked[name] for name in names), charge_as_row(cost)]).encode())


def same_question(asked: Mapping[str, Any]) -> bytes:
    """Return the key of stored answers (S10): the same question on the same snapshot, whoever asks."""
    subject = [asked[name] for name in ("question", "policy", "snapshot")]
    return bytes.fromhex(digest(canonical(subject).encode()))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidPart:
    """A part of a charge that is stored and recalled by itself (S10)."""

    id: str
    mechanisms: int  # how many of the charge's mechanisms, in their order, are this part's
    cost: Charge

    def as_row(self) -> dict[str, Any]:
        return {"id": self.id, "mechanisms": self.mechanisms, "cost": charge_as_row(self.cost)}


def parts_from_row(body: Mapping[str, Any]) -> tuple[PaidPart, ...]:
    return tuple(
        PaidPart(id=part["id"], mechanisms=part["mechanisms"], cost=charge_from_row(part["cost"]))
        for part in body.get("parts", ())
    )


def stored_as(part: str, asked: Mapping[str, Any]) -> tuple[str, str, int]:
    """Return the key under which a part is stored: its id, the policy, the snapshot."""
    return part, asked["policy"], asked["snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCharge:
    """A charge that has no answer yet."""

    number: int
    analyst: str
    snapshot: int
    lump: bool  # `post` names its mechanisms
    same: str
    question: bytes
    stream: bool = False  # answered step by step, on the snapshot that is current at each step
    # the key and the cost of each part that it will store
    parts: tuple[tuple[tuple[str, str, int], Fraction], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The rows at which each step of a stream was frozen and published, in order."""

    question: str
    frozen: list[int] = field(default_factory=list)
    published: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """The limit that a cost would break."""

    who: str
    verb: str
    symbol: str
    asked: Charge
    left: Charge
    limit: Charge


class Balance:
    """The state after `number` rows, the last of which has the MAC `mac`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.number = 0
        self.mac = FIRST
        self.key = 0  # the index of the key that makes the MACs now
        self.keys_from = [1]  # the first row under each key
        self.ledger = ""
        self.home = "file"  # the kind of store that the ledger lives in
        self.terms: Terms | None = None
        self.limit = NOTHING
        self.analysts: dict[str, Charge] = {}
        self.everyone = NOTHING
        self.spent: dict[str, Charge] = {}
        self.snapshot = 0
        self.open: dict[int, OpenCharge] = {}
        self.resumable: dict[str, int] = {}
        self.overran: set[int] = set()  # charges that were closed without an answer
        # for each analyst, the number of charges whose work failed or took too long
        self.overruns: dict[str, int] = {}
        self.streams: dict[int, Steps] = {}
        # For each stored part its (cost, charge) pairs in the order of storing; the costs rise.
        self.parts: dict[tuple[str, str, int], list[tuple[Fraction, int]]] = {}
        # the answered charges of this snapshot, by `same_charge`
        self.answered: dict[str, int] = {}

    def add(self, row: Row) -> None:
        """Check one row, whose MAC is right, and add it to the sums."""
        try:
            _KINDS[row.body["kind"]](self, row.number, row.body)
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise self.broken(row.number, f"cannot be read ({type(error).__name__})") from None
        # in one line: Ctrl-C may come between two, and the rest of the ledger reads both
        self.number, self.mac = row.number, row.mac

    def broken(self, number: int, why: str) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"Row {number} of {self.name} {why}: something other than discreet has changed it. Nothing is answered; "
            "restore the ledger from a backup (docs/ledger.md, Restore)."
        )

    def require(self, true: bool, number: int, why: str) -> None:
        if not true:
            raise self.broken(number, why)

    @property
    def bound(self) -> Terms:
        if self.terms is None:
            raise self.broken(1, "is missing")
        return self.terms

    def require_analyst(self, analyst: str) -> None:
        # A subclass of str could claim to equal the curator, who has no share.
        if type(analyst) is not str:
            raise UsageError(f"An analyst is named by a plain text, not {type(analyst).__name__}.")
        if analyst != CURATOR and analyst not in self.analysts:
            raise UsageError(
                f"{self.name} has no analyst {analyst!r}. The curator can name one under analysts in the policy and "
                "record it with discreet ledger POLICY --amend.",
                unknown=analyst,
                known=tuple(self.analysts),
            )

    def require_current(self, snapshot: int) -> None:
        if snapshot != self.snapshot:
            raise LedgerUnavailable(
                f"Snapshot {snapshot} is not the current one, {self.snapshot}: open the policy again."
            )

    def require_overruns_left(self, analyst: str, most: int) -> None:
        """Refuse an analyst with `most` overruns or more: each overrun may have told a bit (S13)."""
        if analyst != CURATOR and self.overruns.get(analyst, 0) >= most:
            raise BudgetExceeded(
                f"{analyst} has asked {most} questions that took more time or memory than allowed, and may have no "
                "more of them. The curator can raise limits.overruns in the policy.",
                who=analyst,
            )

    def left(self, analyst: str) -> Charge:
        """Return the smaller of what is left of the analyst's share and of the common limit; never
        below zero.
        """
        self.require_analyst(analyst)
        rests = [_rest(self.limit, self.everyone)]
        if analyst != CURATOR:
            rests.append(_rest(self.analysts[analyst], self.spent.get(analyst, NOTHING)))
        return Charge(
            amount=min(rest.amount for rest in rests), delta=min(rest.delta for rest in rests)
        )

    def priced(self, analyst: str, cost: Charge) -> Charge:
        """Return the cost to record: the cost itself, or if the sums would get too long, the cost
        rounded up by less than 10^-40.

        Otherwise an analyst who asks with ε = 1/p for one prime p after the other would make every
        later row longer.
        """
        totals = (self.everyone, self.spent.get(analyst, NOTHING))
        return Charge(
            amount=_short(cost.amount, *(total.amount for total in totals)),
            delta=_short(cost.delta, *(total.delta for total in totals)),
        )

    def shortage(self, analyst: str, cost: Charge) -> Shortage | None:
        """Return the limit that this cost would break, the analyst's share first; None if it fits."""
        self.require_analyst(analyst)
        own, everyone = self.sums_with(analyst, cost)
        if analyst != CURATOR and not own.fits(self.analysts[analyst]):
            limit = self.analysts[analyst]
            rest = _rest(limit, self.spent.get(analyst, NOTHING))
            symbol = self.bound.symbol
            return Shortage(
                who=analyst, verb="has", symbol=symbol, asked=cost, left=rest, limit=limit
            )
        if not everyone.fits(self.limit):
            rest = _rest(self.limit, self.everyone)
            symbol = self.bound.symbol
            return Shortage(
                who=EVERYONE, verb="have", symbol=symbol, asked=cost, left=rest, limit=self.limit
            )
        return None

    def sums_with(self, analyst: str, cost: Charge) -> tuple[Charge, Charge]:
        """Return the running totals for the row of a charge: the analyst's, and that of all."""
        return self.spent.get(analyst, NOTHING) + cost, self.everyone + cost


def sums_as_row(sums: tuple[Charge, Charge]) -> dict[str, dict[str, str]]:
    return {"analyst": charge_as_row(sums[0]), "everyone": charge_as_row(sums[1])}


def _rest(limit: Charge, spent: Charge) -> Charge:
    """Return limit less spent; zero if the limit was lowered below what is spent."""
    rest = limit - spent
    return Charge(amount=max(rest.amount, Fraction(0)), delta=max(rest.delta, Fraction(0)))


def _short(cost: Fraction, *totals: Fraction) -> Fraction:
    if all(lcm(cost.denominator, total.denominator).bit_length() <= _WIDEST for total in totals):
        return cost
    return Fraction(ceil(cost * _GRID), _GRID)  # Privacy: upward


def _terms(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.require(
        number == 1 and body["format"] == 1,
        number,
        "is of a format that this discreet does not know",
    )
    balance.ledger = body["ledger"]
    balance.terms = terms_from_row(body)
    balance.home = body.get("home", "file")
    balance.limit, balance.analysts = limits_from_row(body)
    balance.spent = {who: charge_from_row(charge) for who, charge in body["carried"].items()}
    balance.everyone = sum(balance.spent.values(), NOTHING)


def _charge(balance: Balance, number: int, body: dict[str, Any]) -> None:
    analyst = body["analyst"]
    cost = charge_from_row(body["cost"])
    balance.require(cost.amount > 0 and cost.delta >= 0, number, "has a cost that no question has")
    balance.require(analyst == CURATOR or analyst in balance.analysts, number, "is paid by nobody")
    balance.require(body["snapshot"] == balance.snapshot, number, "is about another snapshot")
    own, everyone = balance.sums_with(analyst, cost)
    fits = everyone.fits(balance.limit) and (
        analyst == CURATOR or own.fits(balance.analysts[analyst])
    )
    balance.require(fits, number, "spends more than there was")
    balance.require(body["spent"] == sums_as_row((own, everyone)), number, "does not add up")
    balance.spent[analyst], balance.everyone = own, everyone
    parts = parts_from_row(body)
    if parts:
        named = sum(part.mechanisms for part in parts) == len(body["mechanisms"])
        # Each cost is rounded up, so their sum may pass the charge's: compare one by one.
        within = all(part.cost.fits(cost) for part in parts)
        balance.require(named and within, number, "has parts that are not its own")
    balance.open[number] = OpenCharge(
        number=number,
        analyst=analyst,
        snapshot=body["snapshot"],
        lump=body["mechanisms"] is None,
        same=body["same"],
        question=same_question(body),
        stream="stream" in body,
        parts=tuple((stored_as(part.id, body), part.cost.amount) for part in parts),
    )
    balance.resumable[body["same"]] = number
    if "stream" in body:
        balance.streams[number] = Steps(question=body["question"])


def _post(balance: Balance, number: int, body: dict[str, Any]) -> None:
    charge = balance.open.pop(body["charge"], None)
    balance.require(charge is not None, number, "answers nothing that was open")
    assert charge is not None
    if balance.resumable.get(charge.same) == charge.number:
        del balance.resumable[charge.same]
    balance.answered[charge.same] = charge.number
    for part, amount in charge.parts:
        stored = balance.parts.setdefault(part, [])
        if not stored or stored[-1][0] < amount:
            stored.append((amount, charge.number))


def _freeze(balance: Balance, number: int, body: dict[str, Any]) -> None:
    steps = balance.streams[body["charge"]]
    balance.require(body["charge"] in balance.open, number, "goes on with a stream that has ended")
    in_turn = body["step"] == len(steps.frozen) == len(steps.published)
    balance.require(in_turn, number, "freezes a step out of turn")
    steps.frozen.append(number)


def _step(balance: Balance, number: int, body: dict[str, Any]) -> None:
    steps = balance.streams[body["charge"]]
    balance.require(body["charge"] in balance.open, number, "goes on with a stream that has ended")
    in_turn = body["step"] == len(steps.published) == len(steps.frozen) - 1
    balance.require(in_turn, number, "publishes a step out of turn")
    steps.published.append(number)


def _overrun(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.require(body["charge"] < number, number, "counts what was never charged")
    charge = balance.open.pop(body["charge"], None)
    if charge is not None:  # otherwise it was answered or closed before: only count it
        balance.overran.add(body["charge"])
        if balance.resumable.get(charge.same) == charge.number:
            del balance.resumable[charge.same]
    balance.overruns[body["analyst"]] = balance.overruns.get(body["analyst"], 0) + 1


def _amend(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.limit, balance.analysts = limits_from_row(body)


def _snapshot(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.require(body["snapshot"] > balance.snapshot, number, "counts snapshots backwards")
    balance.snapshot = body["snapshot"]
    # Privacy: S8. A charge resumes on its own snapshot, which is part of `same`, or not at all.
    balance.resumable.clear()
    # Privacy: S9. Parts of another snapshot, which is part of their key, are not recalled.
    balance.parts.clear()
    balance.answered.clear()


def _key(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.require(body["key"] == balance.key + 1, number, "names a key out of turn")
    balance.key = body["key"]
    balance.keys_from.append(number)


def _move(balance: Balance, number: int, body: dict[str, Any]) -> None:
    balance.require(body["to"] != balance.home, number, "moves the ledger to where it is")
    balance.home = body["to"]


_KINDS: dict[str, Callable[[Balance, int, dict[str, Any]], None]] = {
    "terms": _terms,
    "charge": _charge,
    "post": _post,
    "overrun": _overrun,
    "freeze": _freeze,
    "step": _step,
    "amend": _amend,
    "snapshot": _snapshot,
    "key": _key,
    "move": _move,
}
