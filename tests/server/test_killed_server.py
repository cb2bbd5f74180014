"""A server killed under load: whatever left is in the ledger, nothing is charged twice, all can be
asked again.
"""

from __future__ import annotations

import random
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.ledger import Ledger
from server.running_server import open_town
from server.served import Served
from server.wire_client import Client

EPSILON = Fraction(1, 100)


def ask_until_gone(port: int, who: int, heard: dict[str, object], numbers: list[int]) -> None:
    """Ask one question after another; note each answer that arrived."""
    try:
        with Client(port, options=f"-c discreet.epsilon={EPSILON}") as client:
            while True:
                numbers[who] += 1
                sql = (
                    f"SELECT COUNT(*) AS n FROM people WHERE age <> {who} AND age < {numbers[who]}"
                )
                reply = client.query(sql)
                if not reply.tags:
                    return
                heard[sql] = reply.rows
    except (OSError, EOFError):
        return


def kill_rounds(folder: Path, rounds: int) -> None:
    open_town(folder)
    policy = folder / "town.yaml"
    dice, heard, numbers = random.Random(), dict[str, object](), [0, 0, 0]
    for _ in range(rounds):
        server = Served(policy)
        threads = [
            threading.Thread(target=ask_until_gone, args=(server.port, who, heard, numbers))
            for who in range(len(numbers))
        ]
        before = len(heard)
        for thread in threads:
            thread.start()
        for _ in range(60_000):  # until something was answered, then a little longer
            if len(heard) > before:
                break
            time.sleep(0.001)
        time.sleep(dice.random() * 0.2)
        server.kill()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert len(heard) >= rounds
    with Ledger.open(str(folder / "town.ledger")) as ledger:
        ledger.verify(None)
    curator = discreet.open(policy)
    entries = curator.ledger(analyst="alice")
    texts = [entry.text for entry in entries]
    assert len(texts) == len(set(texts)), "a question was charged twice"
    posted = {entry.text for entry in entries if entry.state == "posted"}
    assert set(heard) <= posted, "an answer left that the ledger does not have"
    assert curator.left(analyst="alice").epsilon == 1000 - EPSILON * len(texts)
    for sql, rows in [*heard.items()][-200:]:
        answer = curator.ask(sql, analyst="alice", epsilon=EPSILON, dialect="postgres")
        assert [(str(answer.table.column(0)[0].as_py()).encode(),)] == rows
    for entry in entries:
        if entry.state == "open":  # charged, and killed before its answer: it goes on, for nothing
            curator.ask(entry.text, analyst="alice", epsilon=EPSILON, dialect="postgres")
    assert {entry.state for entry in curator.ledger(analyst="alice")} == {"posted"}
    assert curator.left(analyst="alice").epsilon == 1000 - EPSILON * len(texts)


def test_killed_once(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 1)


@pytest.mark.slow
def test_killed_fifty_times_under_load(tmp_path: Path) -> None:
    kill_rounds(tmp_path, 50)
