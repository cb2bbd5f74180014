"""Dying or being interrupted anywhere: what was released is recorded, and asking again gives the
same bytes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from small_ledger import charge, noisy, recalled, reserved, some_terms, words_of

import discreet.ledger
from discreet.ledger import Ledger, Reservation
from discreet.ledger.place import Place

WHERE = str(Path(discreet.ledger.__file__).parent)
RANDOM = random.SystemRandom()


@contextmanager
def at_line(count: int, act: Callable[[], None]) -> Iterator[list[int]]:
    """Call `act` before the count-th line of the ledger's own code that runs from here on. Yields
    how many have run.
    """
    seen = [0]

    def on_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            seen[0] += 1
            if seen[0] == count:
                act()
        return on_line

    def on_call(frame: FrameType, event: str, _: Any) -> Any:
        return on_line if frame.f_code.co_filename.startswith(WHERE) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        yield seen
    finally:
        sys.settrace(before)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt() -> None:
    raise KeyboardInterrupt


def release(ledger: Ledger, question: str, tell: Callable[[str, bytes], None]) -> None:
    """The door in miniature, telling what it has in hand at each step."""
    reservation = reserved(ledger, question, analyst="bob", cost=charge("1/1000"))
    if isinstance(reservation, Reservation):
        tell("drew", noisy(reservation))
        ledger.post(reservation, noisy(reservation))
    tell("released", recalled(ledger, question)[0])


def child_dies_at(place: Place, question: str, line: int) -> tuple[dict[str, bytes], bool]:
    """Run `release` in a fork that is killed before its line-th line; what it told, and whether it
    was killed.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        ledger = Ledger.open(place)
        with at_line(line, die):
            release(
                ledger,
                question,
                lambda what, told: os.write(writing, f"{what} {told.hex()}\n".encode()) and None,
            )
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        words = dict(line.split() for line in told.read().splitlines())
    _, status = os.waitpid(child, 0)
    return {what: bytes.fromhex(value) for what, value in words.items()}, os.WIFSIGNALED(status)


def _stride(place: Place, step: int) -> int:
    """How many lines lie between two that are tried: a quick test on a server tries fewer, each
    takes longer.
    """
    return step if place.address is None or step == 1 else 41


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_charge_killed_at_any_line_is_resumed_with_the_same_noise(
    place: Place, step: int
) -> None:
    step = _stride(place, step)
    Ledger.create(place, some_terms()).close()
    line, killed, tried, drew, released = RANDOM.randrange(step), True, 0, 0, 0
    while killed:
        line, tried = line + step, tried + 1
        question = f"q{line}"
        told, killed = child_dies_at(place, question, line)
        with Ledger.open(place) as ledger:
            again: dict[str, bytes] = {}
            release(ledger, question, again.__setitem__)
            assert ledger.spent() == charge(f"{tried}/1000"), (
                "one question is one charge, however often it was tried"
            )
        for known in told.values():
            assert known == again["released"], f"killed at line {line}, the answer changed"
        drew, released = drew + ("drew" in told), released + ("released" in told)
    print(
        f"killed at {tried - 1} of {line} lines; {drew} had drawn noise, {released - 1} had released it"
    )
    assert line > 100
    assert tried > drew > released > 0
    with Ledger.open(place) as ledger:
        ledger.verify()


@pytest.mark.parametrize("step", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_a_charge_interrupted_at_any_line_is_resumed_with_the_same_noise(
    ledger: Ledger, place: Place, step: int
) -> None:
    """Ctrl-C, in a process that goes on afterwards with the same open ledger."""
    step = _stride(place, step)
    line, tried, interrupted, drew = RANDOM.randrange(step), 0, True, 0
    while interrupted:
        line, tried = line + step, tried + 1
        question, told = f"q{line}", dict[str, bytes]()
        try:
            with at_line(line, interrupt):
                release(ledger, question, told.__setitem__)
            interrupted = False
        except KeyboardInterrupt:
            pass
        again: dict[str, bytes] = {}
        release(ledger, question, again.__setitem__)
        assert ledger.spent() == charge(f"{tried}/1000")
        assert all(known == again["released"] for known in told.values())
        drew += "drew" in told
    assert line > 100
    assert tried > drew > 0
    ledger.verify()


WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from small_ledger import charge, place_from, released
from discreet.ledger import Ledger
told, first, last, *place = sys.argv[2:]
ledger, told = Ledger.open(place_from(place), timeout=60), open(told, "a", buffering=1)
for i in range(int(first), int(last)):
    answer = released(ledger, f"q{i}", analyst="bob", cost=charge("1/1000"))
    told.write(f"q{i} {answer.hex()}\\n")
"""


def workers(place: Place, spends: int, count: int) -> list[subprocess.Popen[bytes]]:
    share = spends // count
    program = [sys.executable, "-c", WORKER, str(Path(__file__).parent)]
    started = []
    for i in range(count):
        part = (str(place.path.with_name(f"told{i}")), str(i * share), str((i + 1) * share))
        started.append(subprocess.Popen([*program, *part, *words_of(place)]))
    return started


def told(path: Path) -> list[tuple[str, str]]:
    lines = [
        line
        for file in path.parent.glob("told*")
        for line in file.read_text().splitlines(keepends=True)
    ]
    return [(line.split()[0], line.split()[1]) for line in lines if line.endswith("\n")]


@pytest.mark.parametrize(
    ("rounds", "spends"),
    [(2, 120), pytest.param(50, 1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
)
def test_kill_9_of_concurrent_spends(
    new_place: Callable[[Path], Place], tmp_path: Path, rounds: int, spends: int
) -> None:
    """What was released never exceeds what is recorded; the survivors of the next start finish the
    same questions.
    """
    unfinished = 0
    for number in range(rounds):
        path = tmp_path / str(number) / "hospital.ledger"
        path.parent.mkdir()
        place = new_place(path)
        Ledger.create(place, some_terms(limit="100")).close()
        started = workers(place, spends, 4)
        # by what is done and not by the clock: a disk may be fast or slow
        begun = RANDOM.randint(1, spends // 4)
        while len(told(path)) < begun:
            time.sleep(0.002)
        for worker in started:
            worker.send_signal(signal.SIGKILL)
        for worker in started:
            worker.wait()
        released = dict(told(path))
        with Ledger.open(place) as ledger:
            ledger.verify()
            entries = ledger.entries()
            posted = {
                entry.text.removeprefix("SELECT ") for entry in entries if entry.state == "posted"
            }
            assert set(released) <= posted
            assert charge("1/1000").amount * len(released) <= ledger.spent().amount
            unfinished += len(posted) < spends
        for worker in workers(place, spends, 4):
            assert worker.wait() == 0
        with Ledger.open(place) as ledger:
            ledger.verify()
            assert ledger.spent() == charge(f"{spends}/1000"), "every question was charged once"
            for question, value in told(path):
                assert recalled(ledger, question) == [bytes.fromhex(value)]
    assert unfinished > rounds / 2, "the kills came too late to show anything"
