"""Many processes, threads and forks on one ledger: exactly what fits is admitted, and one question
is one charge.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from small_ledger import ask, charge, recalled, released, reserved, some_terms, words_of

from discreet.errors import BudgetExceeded, LedgerUnavailable
from discreet.ledger import Ledger, StoredAnswer
from discreet.ledger.place import Place

HERE = str(Path(__file__).parent)


def in_forks(count: int, work: Callable[[int], bytes]) -> list[bytes]:
    """Run `work` in that many forks at once; what each returned."""
    pipes = [os.pipe() for _ in range(count)]
    start, go = os.pipe()
    for i, (_, writing) in enumerate(pipes):
        if os.fork() == 0:
            os.close(go)
            os.read(start, 1)  # until the parent lets go
            status = 1
            try:
                os.write(writing, work(i))
                status = 0
            finally:
                os._exit(status)
    os.close(start)
    os.close(go)
    for _, writing in pipes:
        os.close(writing)
    told = []
    for reading, _ in pipes:
        with os.fdopen(reading, "rb") as result:
            told.append(result.read())
    assert {os.waitstatus_to_exitcode(os.wait()[1]) for _ in pipes} == {0}
    return told


def spends(ledger: Ledger, count: int, name: str) -> int:
    admitted = 0
    for i in range(count):
        try:
            released(ledger, f"{name} {i}", analyst="bob", cost=charge("1/100"))
            admitted += 1
        except BudgetExceeded:
            pass
    return admitted


@pytest.mark.parametrize(
    ("processes", "each", "fit"),
    [
        (4, 100, 250),
        pytest.param(8, 1000, 5000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)]),
    ],
)
def test_processes_on_one_budget_admit_exactly_what_fits(
    place: Place, processes: int, each: int, fit: int
) -> None:
    Ledger.create(place, some_terms(limit=f"{fit}/100")).close()

    def work(i: int) -> bytes:
        with Ledger.open(place, timeout=60) as ledger:
            return str(spends(ledger, each, str(i))).encode()

    admitted = [int(told) for told in in_forks(processes, work)]
    assert sum(admitted) == fit
    with Ledger.open(place) as ledger:
        assert ledger.spent() == charge(f"{fit}/100")
        assert ledger.verify() == 1 + 2 * fit


def test_threads_share_one_ledger(place: Place) -> None:
    with Ledger.create(place, some_terms(limit="1")) as ledger, ThreadPoolExecutor(8) as pool:
        admitted = list(pool.map(lambda i: spends(ledger, 20, str(i)), range(8)))
        assert sum(admitted) == 100
        assert ledger.verify() == 201


def test_forks_share_an_open_ledger(place: Place) -> None:
    """A fork from a process in the middle of spending; each side goes on, and an outsider comes and
    goes meanwhile.
    """
    with Ledger.create(place, some_terms(limit="1.2")) as ledger:
        ask(ledger, "before", analyst="bob", cost=charge("1/100"))

        def work(i: int) -> bytes:
            admitted = spends(ledger, 25, f"first {i}")
            Ledger.open(place).close()
            return str(admitted + spends(ledger, 25, f"then {i}")).encode()

        with ThreadPoolExecutor(1) as pool:
            beside = pool.submit(spends, ledger, 50, "beside")
            admitted = [int(told) for told in in_forks(3, work)]
        assert 1 + beside.result() + sum(admitted) == 120
        assert ledger.spent() == charge("1.2")
        ledger.verify()


OUTSIDER = """
import sys
sys.path.insert(0, sys.argv[1])
from small_ledger import place_from
from discreet.ledger import Ledger
Ledger.open(place_from(sys.argv[2:])).close()
"""


def test_a_fork_outlives_its_parent(place: Place) -> None:
    """SQLite's trap: a child that inherits a connection holds no lock, so the next one to close
    removes its log.
    """
    Ledger.create(place, some_terms()).close()
    reading, writing = os.pipe()
    if os.fork() == 0:
        parent = Ledger.open(place)
        ask(parent, "parent")
        if os.fork():
            os._exit(0)
        ask(parent, "child")
        os.write(writing, b"1")
        subprocess.run([sys.executable, "-c", OUTSIDER, HERE, *words_of(place)], check=True)
        ask(parent, "child again")
        os.write(writing, b"2")
        os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading, "rb") as told:
        assert told.read() == b"12"
    with Ledger.open(place) as ledger:
        assert [entry.text for entry in ledger.entries()] == [
            "SELECT parent",
            "SELECT child",
            "SELECT child again",
        ]


FORKED_IN_C = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from small_ledger import ask, place_from
from discreet.errors import LedgerUnavailable
from discreet.ledger import Ledger
ledger = Ledger.open(place_from(sys.argv[2:]))
ask(ledger, "parent")
if ctypes.PyDLL(None).fork() == 0:
    try:
        ask(ledger, "child")
    except LedgerUnavailable as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.wait()
ask(ledger, "parent again")
"""


def test_a_fork_behind_python_s_back_is_refused(place: Place) -> None:
    Ledger.create(place, some_terms()).close()
    command = [sys.executable, "-c", FORKED_IN_C, HERE, *words_of(place)]
    run = subprocess.run(command, capture_output=True, check=True)
    assert (
        run.stdout.decode()
        == "This process was forked in C with hospital.ledger open: open it after forking."
    )
    with Ledger.open(place) as ledger:
        assert [entry.text for entry in ledger.entries()] == [
            "SELECT parent",
            "SELECT parent again",
        ]


def test_the_same_question_at_the_same_time_is_one_charge_and_one_answer(place: Place) -> None:
    Ledger.create(place, some_terms()).close()

    def work(_: int) -> bytes:
        with Ledger.open(place, timeout=60) as ledger:
            return b"".join(released(ledger, f"q{i}", cost=charge("1/15")) for i in range(15))

    assert len(set(in_forks(4, work))) == 1
    with Ledger.open(place) as ledger:
        assert ledger.spent() == charge("1")
        ledger.verify()


def test_a_second_answer_to_one_charge_is_refused_across_processes(place: Place) -> None:
    """If two processes computed different bytes from one key, only the first may release."""
    Ledger.create(place, some_terms()).close()

    def work(i: int) -> bytes:
        with Ledger.open(place, timeout=60) as ledger:
            reservation = reserved(ledger)
            if isinstance(reservation, StoredAnswer):
                return reservation.answer
            try:
                ledger.post(reservation, b"%d" % i)
            except LedgerUnavailable:
                return b"refused"
            return b"%d" % i

    told = in_forks(2, work)
    with Ledger.open(place) as ledger:
        [stored] = recalled(ledger)
        assert set(told) <= {stored, b"refused"}
        assert ledger.spent() == charge("1/10")


def test_opening_and_verifying_while_others_spend_raises_no_false_alarm(place: Place) -> None:
    Ledger.create(place, some_terms()).close()
    spender = os.fork()
    if spender == 0:
        with Ledger.open(place, timeout=60) as ledger:
            spends(ledger, 400 if place.address is None else 100, "meanwhile")
        os._exit(0)
    rows = []
    while os.waitpid(spender, os.WNOHANG) == (0, 0):
        with Ledger.open(place, timeout=60) as ledger:
            rows.append(ledger.verify(ledger.head()))
    assert rows == sorted(rows)
    assert len(set(rows)) > 2, "nobody was spending"
