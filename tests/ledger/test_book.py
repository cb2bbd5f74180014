"""What a ledger does when nothing goes wrong, and what it refuses by its own rules."""

from __future__ import annotations

import json
import math
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from small_ledger import LAPLACE, ask, charge, noisy, recalled, released, some_terms

from discreet.accounting import SumAccountant, ZcdpAccountant, between_neighbors
from discreet.budget import Budget, Charge
from discreet.errors import BudgetExceeded, LedgerUnavailable, UsageError
from discreet.ledger import Entry, Ledger
from discreet.ledger.place import Place


def test_create_makes_private_files_and_nothing_else(
    ledger: Ledger, place: Place, path: Path
) -> None:
    ledger.close()
    modes = {made.name: stat.S_IMODE(made.stat().st_mode) for made in path.parent.iterdir()}
    files = {"hospital.ledger"} if place.address is None else set()
    assert modes == dict.fromkeys({*files, "hospital.ledger.key", "hospital.ledger.head"}, 0o600)
    assert path.with_name("hospital.ledger.key").stat().st_size == 32


@pytest.mark.parametrize("suffix", ["", ".key", ".head", "-wal", "-shm"])
def test_create_overwrites_nothing(path: Path, suffix: str) -> None:
    taken = path.with_name(path.name + suffix)
    taken.write_bytes(b"mine")
    with pytest.raises(LedgerUnavailable, match="never overwritten"):
        Ledger.create(path, some_terms())
    assert [found.name for found in path.parent.iterdir()] == [taken.name]
    assert taken.read_bytes() == b"mine"


def test_create_overwrites_no_ledger(ledger: Ledger, place: Place) -> None:
    ask(ledger)
    for file in ("hospital.ledger.key", "hospital.ledger.head"):
        place.path.with_name(file).unlink()
    with pytest.raises(LedgerUnavailable, match="never overwritten"):
        Ledger.create(place, some_terms())


def test_opening_never_creates(place: Place, path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match=r"There is no ledger hospital\.ledger.*--create"):
        Ledger.open(place)
    assert not list(path.parent.iterdir())


def test_ten_tenths_fit_in_one_and_the_eleventh_does_not(ledger: Ledger) -> None:
    for i in range(10):
        assert not ask(ledger, f"q{i}").resumed
    with pytest.raises(BudgetExceeded) as refused:
        ask(ledger, "q10")
    assert (
        str(refused.value)
        == 'Over budget: this costs ε = 0.1; alice has ε = 0 left of 1 on "hospital".'
    )
    assert (refused.value.who, refused.value.asked, refused.value.limit) == (
        "alice",
        charge("1/10"),
        charge("1", "1/2000"),
    )
    assert ledger.spent("alice") == ledger.spent() == charge("1")
    assert len(ledger.entries()) == 10


def test_both_the_analyst_s_and_everybody_s_limit_must_admit(ledger: Ledger) -> None:
    ask(ledger, "large", analyst="bob", cost=charge("3.95"))
    assert ledger.left("alice") == charge("1/20", "1/2000")
    with pytest.raises(BudgetExceeded, match=r"all analysts together have ε = 0\.05 left of 4"):
        ask(ledger)
    ask(ledger, cost=charge("1/20"))
    assert ledger.left("bob").amount == 0


def test_the_curator_pays_from_the_common_limit_alone(ledger: Ledger) -> None:
    ask(ledger, analyst="curator", cost=charge("3"))
    assert ledger.left("curator") == ledger.limits[0] - charge("3")
    with pytest.raises(BudgetExceeded, match="all analysts together"):
        ask(ledger, "r", analyst="curator", cost=charge("3/2"))
    with pytest.raises(UsageError, match="'curator'"):
        some_terms(analysts={"curator": charge("1")})


def test_delta_is_a_limit_too(ledger: Ledger) -> None:
    with pytest.raises(
        BudgetExceeded, match=r"this costs δ = 0\.001; alice has δ = 0\.0005 left of 0\.0005"
    ):
        ask(ledger, cost=charge("1/10", "1/1000"))


def test_a_near_miss_does_not_read_like_a_fit(ledger: Ledger) -> None:
    with pytest.raises(BudgetExceeded, match=r"costs ε = 1\.001; alice has ε = 1 left of 1 "):
        ask(ledger, cost=charge("1.000000001"))


def test_a_zcdp_ledger_speaks_rho_or_the_words_it_is_given(tmp_path: Path) -> None:
    terms = some_terms(accountant={"name": "zcdp", "delta_convert": "1/2000"})
    with (
        Ledger.create(tmp_path / "a", terms) as plain,
        pytest.raises(BudgetExceeded, match="costs ρ = 2; alice has ρ = 1"),
    ):
        ask(plain, cost=charge("2"))

    def words(spent: Charge) -> Budget:
        return Budget(epsilon=3 * spent.amount, delta=spent.delta, rho=spent.amount)

    with (
        Ledger.create(tmp_path / "b", terms, words=words) as told,
        pytest.raises(BudgetExceeded, match="costs ε = 6; alice has ε = 3 left of 3"),
    ):
        ask(told, cost=charge("2"))


@pytest.mark.parametrize("cost", [charge("0"), charge("-1"), charge("1", "-1")])
def test_a_cost_that_is_none_is_refused(ledger: Ledger, cost: Charge) -> None:
    before = ledger.head()
    with pytest.raises(UsageError, match="greater than zero"):
        ask(ledger, cost=cost)
    assert ledger.head() == before


def test_an_unknown_analyst_is_refused(ledger: Ledger) -> None:
    before = ledger.head()
    with pytest.raises(UsageError, match=r"no analyst 'mallory'.*--amend"):
        ask(ledger, analyst="mallory")
    with pytest.raises(UsageError, match="no analyst") as refused:
        ledger.left("allice")
    told = f"{refused.value} {refused.value.as_json()}"
    assert "alice" not in told, "a server's doors say this too, and tell no other names"
    assert ledger.head() == before


def test_an_open_charge_is_resumed_with_its_key(ledger: Ledger, place: Place) -> None:
    first = ask(ledger)
    with Ledger.open(place) as other:
        again = ask(other)
    assert (again.id, again.key, again.resumed) == (first.id, first.key, True)
    assert ledger.spent() == charge("1/10")
    assert len(first.key) == 32
    assert repr(first.key) not in repr(first)


@pytest.mark.parametrize(
    "change",
    [
        {"analyst": "bob"},
        {"question": "other"},
        {"policy": "other"},
        {"mechanisms": [{"mechanism": "DiscreteLaplace", "scale": "4", "l1": "1"}]},
        {"mechanisms": None},
        {"cost": charge("1/20")},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_differs_is_another_charge_with_another_key(
    ledger: Ledger, change: dict[str, Any]
) -> None:
    first = ask(ledger)
    other = ask(ledger, **change)
    assert not other.resumed
    assert other.key != first.key
    assert ledger.spent() == charge("1/10") + change.get("cost", charge("1/10"))


def test_a_charge_is_not_resumed_on_another_snapshot(ledger: Ledger) -> None:
    assert (ledger.snapshot, ledger.new_snapshot(), ledger.snapshot) == (0, 1, 1)
    lost = ask(ledger, snapshot=1)
    assert ledger.new_snapshot() == 2
    with pytest.raises(LedgerUnavailable, match="Snapshot 1 is not the current one, 2"):
        ask(ledger, snapshot=1)
    fresh = ask(ledger, snapshot=2)
    assert not fresh.resumed
    assert fresh.key != lost.key
    assert [entry.state for entry in ledger.entries()] == ["lost", "open"]
    ledger.post(lost, b"computed before the new snapshot")
    assert [entry.state for entry in ledger.entries()] == ["posted", "open"]
    ledger.verify()


def test_snapshots_count_upward(ledger: Ledger) -> None:
    assert ledger.new_snapshot(20260101) == 20260101
    with pytest.raises(UsageError, match="must be above 20260101"):
        ledger.new_snapshot(7)
    assert ledger.new_snapshot() == 20260102


def test_post_is_idempotent_and_no_charge_has_two_answers(ledger: Ledger) -> None:
    reservation = ask(ledger)
    ledger.post(reservation, b"first")
    head = ledger.head()
    ledger.post(reservation, b"first")
    with pytest.raises(LedgerUnavailable, match="must not be released"):
        ledger.post(reservation, b"second")
    assert ledger.head() == head
    assert recalled(ledger) == [b"first"]


def test_asking_what_was_posted_a_moment_ago_is_not_a_second_charge(ledger: Ledger) -> None:
    answer = released(ledger)
    assert released(ledger) == answer
    assert ledger.spent() == charge("1/10")
    assert released(ledger, cost=charge("1/5")) != answer


def test_only_who_reserved_may_post(ledger: Ledger, tmp_path: Path) -> None:
    mine = ask(ledger)
    with Ledger.create(tmp_path / "other.ledger", some_terms()) as other:
        theirs = ask(other)
        assert theirs.id == mine.id
        with pytest.raises(UsageError, match="reserved by somebody else"):
            other.post(mine, b"answer")
        with pytest.raises(UsageError, match="no charge 2"):
            Ledger.create(tmp_path / "third.ledger", some_terms()).post(mine, b"answer")


def test_the_sealed_key_is_erased_from_every_file(path: Path) -> None:
    ledger = Ledger.create(path, some_terms())
    kept, posted = ask(ledger, "kept"), ask(ledger, "posted")
    with ledger._journal.session(write=False):
        sealed = {r.id: ledger._journal.file.key(r.id) for r in (kept, posted)}
    ledger.post(posted, b"answer")
    ledger.close()
    content = b"".join(found.read_bytes() for found in path.parent.iterdir())
    assert all(sealed.values())
    assert [held in content for held in sealed.values() if held] == [True, False]
    assert kept.key not in content


def test_a_lump_names_its_mechanisms_at_post(ledger: Ledger) -> None:
    lump, plain = ask(ledger, "lump", mechanisms=None), ask(ledger, "plain")
    with pytest.raises(UsageError, match="A lump says at post"):
        ledger.post(lump, b"model")
    with pytest.raises(UsageError, match="A lump says at post"):
        ledger.post(plain, b"answer", mechanisms=LAPLACE)
    ledger.post(lump, b"model", mechanisms=LAPLACE * 3)
    ledger.post(plain, b"answer")
    assert ledger.certificate(lump.id)["mechanisms"] == LAPLACE * 3
    assert ledger.certificate(plain.id)["mechanisms"] == LAPLACE
    [stored] = ledger.recall(question="lump", policy="p" * 64, snapshot=0)
    assert list(stored.mechanisms) == LAPLACE * 3


def test_recall_finds_anybody_s_answers_to_the_same_question(ledger: Ledger) -> None:
    for i, changes in enumerate(
        [{}, {"cost": charge("1/5")}, {"analyst": "bob"}, {"policy": "other"}]
    ):
        ledger.post(ask(ledger, **changes), b"%d" % i, meta={"margins": [i]})
    ask(ledger, cost=charge("1/4"))  # open, so there is nothing to recall
    assert recalled(ledger) == [b"0", b"1", b"2"]
    assert recalled(ledger, at_least=Fraction(1, 5)) == [b"1"]
    assert recalled(ledger, at_least=Fraction(1, 4)) == []
    assert [stored.meta for stored in ledger.recall(question="q", policy="p" * 64, snapshot=0)][
        1
    ] == {"margins": [1]}
    assert recalled(ledger, policy="other") == [b"3"]
    assert recalled(ledger, "other") == recalled(ledger, snapshot=1) == []


def test_the_listing(ledger: Ledger) -> None:
    ledger.post(ask(ledger, "a"), b"answer")
    ask(ledger, "b", analyst="bob", cost=charge("1/2", "1/10000"))
    first, second = ledger.entries()
    assert second == Entry(
        id=4,
        when=second.when,
        analyst="bob",
        text="SELECT b",
        cost=charge("1/2", "1/10000"),
        snapshot=0,
        state="open",
    )
    assert (first.analyst, first.state) == ("alice", "posted")
    assert first.when <= second.when
    assert ledger.entries("bob") == (second,)
    assert [row["kind"] for row in ledger.rows()] == ["terms", "charge", "post", "charge"]


def test_a_certificate_holds_what_an_audit_needs(ledger: Ledger) -> None:
    reservation = ask(ledger)
    with pytest.raises(UsageError, match="no answer 2"):
        ledger.certificate(reservation.id)
    ledger.post(reservation, b"answer")
    certificate = ledger.certificate(str(reservation.id))
    assert json.loads(json.dumps(certificate)) == certificate
    assert certificate["neighbors"] == "add_remove"
    assert certificate["mechanisms"] == LAPLACE
    assert certificate["cost"] == {"amount": "1/10", "delta": "0"}
    ledger.verify(certificate["head"])
    for wrong in ("x", "-1", 999, 1, "9" * 30, "9" * 5000):
        with pytest.raises(UsageError, match="no answer"):
            ledger.certificate(wrong)


def test_limits_change_by_a_recorded_row(ledger: Ledger, place: Place) -> None:
    ask(ledger)
    with pytest.raises(UsageError):
        ask(ledger, analyst="carol")
    assert ledger.amend(limit=charge("5"), analysts={"alice": charge("1/20"), "carol": charge("2")})
    assert not ledger.amend(
        limit=charge("5"), analysts={"alice": charge("1/20"), "carol": charge("2")}
    )
    ask(ledger, analyst="carol")
    assert ledger.left("alice") == charge("0")
    with pytest.raises(BudgetExceeded, match=r"alice has ε = 0 left of 0\.05"):
        ask(ledger, "r")
    with pytest.raises(UsageError, match="'bob'"):
        ask(ledger, analyst="bob")
    ledger.close()
    with Ledger.open(
        place, some_terms()
    ) as again:  # the policy's limits do not change the ledger's
        assert again.limits == (charge("5"), {"alice": charge("1/20"), "carol": charge("2")})
        assert [row["kind"] for row in again.rows()] == ["terms", "charge", "amend", "charge"]
    with pytest.raises(UsageError, match="zero or more, not -1"):
        ledger.amend(limit=charge("-1"), analysts={})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unit": "household"}, "unit was person and is now household"),
        ({"neighbors": "change_one"}, "neighbors was add_remove and is now change_one"),
        ({"owners": {"people": "ssn"}}, "owners was people person_id and is now people ssn"),
        (
            {"accountant": {"name": "zcdp", "delta_convert": "1/9"}},
            "accountant was name sum and is now delta_convert 1/9",
        ),
    ],
)
def test_a_ledger_is_bound_to_its_terms(
    ledger: Ledger, place: Place, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(LedgerUnavailable, match=f"{said}.*Put it back, or create a new ledger"):
        Ledger.open(place, some_terms(**change))
    Ledger.open(place, some_terms(limit="1")).close()


def test_terms_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="sum or zcdp, not 'moments'"):
        some_terms(accountant={"name": "moments"})
    with pytest.raises(UsageError, match="add_remove or change_one, not 'bounded'"):
        some_terms(neighbors="bounded")
    with pytest.raises(UsageError, match="limit of alice"):
        some_terms(analysts={"alice": charge("-1")})


def test_a_new_relation_carries_over_all_that_anybody_spent(tmp_path: Path) -> None:
    """The recipe of docs/ledger.md: twice ε and (1 + e^ε) times δ, whoever spent them, whether
    still named or not.
    """
    terms = some_terms(limit="9")
    carried = {
        "alice": charge("1/2", "1/4000"),
        "curator": charge("1/4"),
        "a former analyst": charge("1/4"),
    }
    with Ledger.create(tmp_path / "old.ledger", terms, carried=carried) as old:
        spent = between_neighbors(
            old.spent(), SumAccountant(), before="add_remove", after="change_one"
        )
    with Ledger.create(tmp_path / "new.ledger", terms, carried={"curator": spent}) as new:
        assert new.spent().amount == 2
        assert float(new.spent().delta) == pytest.approx((1 + math.e) / 4000)
    zcdp = ZcdpAccountant(delta_convert=Fraction(1, 10**9))
    assert between_neighbors(
        charge("1/4"), zcdp, before="add_remove", after="change_one"
    ) == charge("1")
    with pytest.raises(UsageError, match="no general price"):
        between_neighbors(charge("1/4", "1/4000"), zcdp, before="add_remove", after="change_one")


def test_a_new_ledger_can_carry_over_what_was_spent(tmp_path: Path) -> None:
    carried = {"alice": charge("3/4"), "curator": charge("2", "1/4000")}
    with Ledger.create(tmp_path / "new.ledger", some_terms(), carried=carried) as ledger:
        assert ledger.spent() == charge("11/4", "1/4000")
        with pytest.raises(UsageError, match="zero or more"):
            Ledger.create(tmp_path / "other.ledger", some_terms(), carried={"alice": charge("-1")})
        assert ledger.left("alice") == charge("1/4", "1/2000")
        ask(ledger, cost=charge("1/4"))
        with pytest.raises(BudgetExceeded):
            ask(ledger, "r")
        ledger.verify()


def test_sums_stay_short_whatever_fractions_are_asked_for(ledger: Ledger) -> None:
    primes = [n for n in range(10**9, 10**9 + 3000) if all(n % d for d in range(2, 32000))]
    assert len(primes) > 50
    for prime in primes[:60]:
        ask(
            ledger, f"q{prime}", cost=Charge(amount=Fraction(1, prime), delta=Fraction(1, prime**2))
        )
        assert ask(
            ledger, f"q{prime}", cost=Charge(amount=Fraction(1, prime), delta=Fraction(1, prime**2))
        ).resumed
    spent, exact = ledger.spent(), sum((Fraction(1, prime) for prime in primes[:60]), Fraction(0))
    assert spent.amount.denominator.bit_length() < 700
    assert exact <= spent.amount < exact + Fraction(60, 10**40)
    ledger.verify()


def test_keys_are_rotated_without_losing_anything(ledger: Ledger, place: Place) -> None:
    open_charge, answered = ask(ledger, "open"), ask(ledger, "answered")
    ledger.post(answered, b"answer")
    head = ledger.head()
    Ledger.rotate_key(place)
    assert place.path.with_name("hospital.ledger.key").stat().st_size == 64
    # the one that was open all along reads the new key
    assert ask(ledger, "open") == ask(ledger, "open")
    assert ask(ledger, "open").key == open_charge.key
    ask(ledger, "later")
    Ledger.rotate_key(place)
    with Ledger.open(place, some_terms()) as again:
        assert ask(again, "open").key == open_charge.key
        assert recalled(again, "answered") == [b"answer"]
        assert again.certificate(answered.id)["answer"]
        assert again.verify(head) == 7


def test_the_old_key_alone_no_longer_writes(path: Path) -> None:
    ledger = Ledger.create(path, some_terms())
    ask(ledger)
    ledger.close()
    before = {found: found.read_bytes() for found in path.parent.iterdir()}
    Ledger.rotate_key(path)
    key = path.with_name("hospital.ledger.key").read_bytes()
    # somebody who stole the old key sets the ledger back and goes on
    for found, content in before.items():
        found.write_bytes(content)
    path.with_name("hospital.ledger.key").write_bytes(key)
    with pytest.raises(LedgerUnavailable, match=r"key rotation .* was interrupted: run it again"):
        Ledger.open(path)
    # what it looks like is also what a crash leaves, and running it again mends that
    Ledger.rotate_key(path)
    Ledger.open(path).verify()
    assert path.with_name("hospital.ledger.key").read_bytes() == key


def test_two_reservations_never_share_noise(ledger: Ledger) -> None:
    keys = {noisy(ask(ledger, f"q{i}", analyst="bob", cost=charge("1/100"))) for i in range(100)}
    assert len(keys) == 100


def test_an_overrun_after_the_answer_ends_nothing_and_is_counted(ledger: Ledger) -> None:
    """Somebody else was faster, and has posted it: that stays, but one of the two did fail."""
    reservation = ask(ledger)
    ledger.post(reservation, b"answer")
    ledger.overran(reservation, analyst="alice")
    assert recalled(ledger) == [b"answer"]
    assert [entry.state for entry in ledger.entries()] == ["posted"]
    ask(ledger, "next", overruns=2)
    with pytest.raises(BudgetExceeded):
        ask(ledger, "another", overruns=1)
    ledger.verify()


def test_an_overrun_on_an_old_snapshot_is_counted(ledger: Ledger) -> None:
    """The charge can no longer be resumed, but it is one overrun, and it stays paid for."""
    reservation = ask(ledger)
    ledger.new_snapshot()
    ledger.overran(reservation, analyst="alice")
    with pytest.raises(BudgetExceeded):
        ask(ledger, "next", snapshot=1, overruns=1)
    assert ledger.spent() == charge("1/10")
    ledger.verify()
