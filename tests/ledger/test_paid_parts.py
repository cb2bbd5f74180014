"""Parts of charges: found by what was read, by whomever it was paid, and only where it cost enough
(S10).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from small_ledger import LAPLACE, ask, charge

from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger, PaidPart
from discreet.ledger.balance import Balance
from discreet.ledger.terms import charge_as_row


def part(name: str, amount: str) -> PaidPart:
    return PaidPart(id=name, mechanisms=1, cost=charge(amount))


def test_the_ledger_gives_the_first_that_is_dear_enough(ledger: Ledger) -> None:
    def stored(amount: str) -> list[int]:
        standing = ledger.standing(
            "alice", snapshot=0, policy="p" * 64, parts={"x": Fraction(amount)}
        )
        return [each.answer.id for each in standing.parts.values()]

    first = ask(ledger, "one", parts=[part("x", "1/10")])
    assert stored("0") == []  # not posted yet
    ledger.post(first, b"one")
    second = ask(
        ledger, "two", parts=[part("x", "1/20"), part("y", "1/20")], mechanisms=[*LAPLACE, *LAPLACE]
    )
    ledger.post(second, b"two")
    third = ask(ledger, "three", parts=[part("x", "1/10")])
    ledger.post(third, b"three")
    assert stored("1/20") == stored("1/10") == [first.id]
    dear = ask(ledger, "four", parts=[part("x", "1/5")], cost=charge("1/5"))
    assert stored("1/5") == []
    ledger.post(dear, b"four")
    assert stored("1/20") == stored("1/10") == [first.id]  # whoever asks again gets the same
    assert stored("1/8") == stored("1/5") == [dear.id]
    assert stored("1/4") == []
    found = ledger.standing("alice", snapshot=0, policy="p" * 64, parts={"y": Fraction(0)}).parts[
        "y"
    ]
    assert (found.answer.answer, list(found.mechanisms)) == (b"two", LAPLACE)
    lost = ask(ledger, "five", parts=[part("z", "1/10")])
    ledger.overran(lost, analyst="alice")
    assert not ledger.standing("alice", snapshot=0, policy="p" * 64, parts={"z": Fraction(0)}).parts
    ledger.new_snapshot()
    assert not ledger.standing("alice", snapshot=1, policy="p" * 64, parts={"x": Fraction(0)}).parts
    ledger.verify()


@pytest.mark.parametrize("wrong", [{"mechanisms": 2}, {"cost": charge_as_row(charge("2/10"))}])
def test_parts_that_a_charge_did_not_pay_for_are_noticed(
    ledger: Ledger, wrong: dict[str, Any]
) -> None:
    ask(ledger, "one", parts=[part("x", "1/10")])
    with ledger._journal.session(write=False):
        *before, row = ledger._journal.rows()
    balance = Balance("small")
    for each in before:
        balance.add(each)
    row.body["parts"][0] |= wrong
    with pytest.raises(LedgerUnavailable, match="parts that are not its own"):
        balance.add(row)
