"""Faults at the Postgres door: whoever leaves, floods, reads slowly or breaks the protocol harms
nobody but himself.

What is asserted after each: the ledger is whole, nothing is charged twice or left open for good,
and another client is answered.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import EngineFailure, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.server.limits import ServerLimits
from server.running_server import PASSWORD, Running, open_town, running
from server.wire_client import SYNC, TERMINATE, Client, bind, describe, execute, pack, parse, text

PRICE = {"options": "-c discreet.epsilon=0.5"}
COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    limits = ServerLimits(
        connections=100, connections_per_user=40, message=100_000, sending=2.0, stopping=60.0
    )
    with running(open_town(tmp_path_factory.mktemp("faults")), limits=limits) as server:
        yield server


@pytest.fixture(autouse=True)
def sound_afterwards(town: Running) -> Iterator[None]:
    """After every fault all connections end, somebody else is answered, and every row of the ledger
    holds.
    """
    yield
    assert town.server.postgres is not None
    tasks = town.server.postgres._tasks
    until(lambda: not tasks)
    with Client(town.port, "carol", **PRICE) as other:
        assert other.query(COUNT).tags == ["SELECT 2"]
    with Ledger.open(str(town.server.curator.policy.ledger)) as ledger:
        ledger.verify(None)


def spent(town: Running) -> Fraction:
    return sum(
        (entry.cost.amount for entry in town.server.curator.ledger(analyst="alice")), Fraction(0)
    )


def until(condition: Callable[[], bool]) -> None:
    for _ in range(60_000):
        if condition():
            return
        time.sleep(0.001)
    raise AssertionError("it never came to that")


def held(town: Running, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Make questions wait after their charge: (somebody waits, go on)."""
    begun, go, ask = threading.Event(), threading.Event(), town.server.curator.ask

    def slow(sql: str, **rest: Any) -> Any:
        answer = ask(sql, **rest)
        begun.set()
        assert go.wait(60)
        return answer

    monkeypatch.setattr(town.server.curator, "ask", slow)
    return begun, go


# --- leaving --------------------------------------------------------------------------------------


def session(sql: str) -> list[bytes]:
    """The messages of a driver's question, one by one."""
    return [
        parse(sql, name="s"),
        describe("S", "s"),
        bind(statement="s"),
        describe("P"),
        execute(),
        SYNC,
        pack(b"Q", text(f"COPY ({sql}) TO STDOUT")),
        TERMINATE,
    ]


@pytest.mark.parametrize("sent", range(9))
@pytest.mark.parametrize("how", ["close", "reset", "torn"])
def test_leaving_at_every_message_is_charged_once_at_most(
    town: Running, sent: int, how: str
) -> None:
    sql = f"SELECT COUNT(*) AS n FROM people WHERE age <> {sent} AND zip <> '{how}'"
    before = spent(town)
    client = Client(town.port, **PRICE)
    parts = session(sql)
    client.send(*parts[:sent])
    if how == "torn" and sent < len(parts):
        client.send(parts[sent][: len(parts[sent]) // 2])
    if how == "reset":
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()
    with Client(town.port, **PRICE) as again:
        answer = again.query(sql)
        assert answer.tags == ["SELECT 1"]
        assert again.query(sql).rows == answer.rows
    assert spent(town) - before == Fraction(1, 2)


@pytest.mark.slow
def test_a_thousand_random_disconnects(town: Running) -> None:
    dice, before, asked = random.Random(), spent(town), set()
    for _ in range(1000):
        sql = f"SELECT COUNT(*) AS n FROM people WHERE age < {dice.randrange(50)}"
        data = b"".join(session(sql))
        client = Client(town.port, **PRICE)
        client.send(data[: dice.randrange(len(data) + 1)])
        if dice.random() < 0.5:
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()
        asked.add(sql)
    with Client(town.port, **PRICE) as again:
        for sql in asked:
            assert again.query(sql).tags == ["SELECT 1"]
    assert town.server.postgres is not None
    tasks = town.server.postgres._tasks
    until(lambda: not tasks)
    assert spent(town) - before == Fraction(len(asked), 2)
    assert "discreet_failures_total" not in town.server.door.metrics.text()


@pytest.mark.parametrize("sent", [0, 3, 8, 20])
def test_leaving_during_the_login(town: Running, sent: int) -> None:
    with socket.create_connection(("127.0.0.1", town.port), timeout=60) as client:
        body = text("user") + text("alice") + b"\0"
        client.sendall((struct.pack("!II", len(body) + 8, 3 << 16) + body)[:sent])


def test_leaving_while_a_question_runs_keeps_its_answer(
    town: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spent(town)
    sql = "SELECT COUNT(*) AS n FROM people WHERE age <> 20"
    begun, go = held(town, monkeypatch)
    client = Client(town.port, **PRICE)
    client.send(pack(b"Q", text(sql)))
    assert begun.wait(60)
    client.socket.close()
    go.set()
    monkeypatch.undo()
    with Client(town.port, **PRICE) as again:
        assert again.query(sql).tags == ["SELECT 1"]
    assert spent(town) - before == Fraction(1, 2)


def test_who_leaves_the_queue_is_not_charged(
    town: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All workers are busy; somebody asks, cancels, and was never charged."""
    begun, go = held(town, monkeypatch)
    clients = [Client(town.port, **PRICE) for _ in range(town.server.limits.workers)]
    for index, client in enumerate(clients):
        client.send(pack(b"Q", text(f"SELECT COUNT(*) AS n FROM people WHERE age <> 3{index}")))
    queue = town.server.door.queue
    until(lambda: queue.running + queue.waiting == len(clients) and begun.is_set())
    with Client(town.port, **PRICE) as waiting:
        waiting.send(
            pack(b"Q", text("SELECT COUNT(*) AS n FROM people WHERE zip <> 'never begun'"))
        )
        until(lambda: queue.running + queue.waiting == len(clients) + 1)
        with socket.create_connection(("127.0.0.1", town.port), timeout=60) as canceller:
            canceller.sendall(struct.pack("!IIII", 16, 80877102, *waiting.key))
            canceller.recv(1)
        cancelled = waiting.read()
    go.set()
    for client in clients:
        client.read()
        client.socket.close()
    assert cancelled.code == "57014"
    assert not any(
        "never begun" in entry.text for entry in town.server.curator.ledger(analyst="alice")
    )


# --- flooding -------------------------------------------------------------------------------------


def test_connections_have_limits_and_are_counted_down(town: Running) -> None:
    clients = [Client(town.port) for _ in range(40)]
    over = Client(town.port)
    assert (over.reply.code, over.reply.errors[0]["S"]) == ("53300", "FATAL")
    with Client(town.port, "bob") as other:
        assert other.reply.status == "I"
    for client in (*clients, over):
        client.send(TERMINATE) if client is not over else None
        client.socket.close()
    for _ in range(1000):
        with Client(town.port) as again:
            if again.reply.status == "I":
                return
    raise AssertionError("connections are never counted down")


def test_a_flood_of_half_open_connections_does_not_shut_the_door(town: Running) -> None:
    half = [socket.create_connection(("127.0.0.1", town.port), timeout=60) for _ in range(50)]
    with Client(town.port) as client:
        assert client.reply.status == "I"
    for each in half:
        each.close()


def test_a_message_that_is_too_long_ends_the_connection_unread(town: Running) -> None:
    for size in (100_001, 2**31 - 1, 2**32 - 1, 3, 0):
        with Client(town.port) as client:
            client.send(b"Q" + struct.pack("!I", size))
            reply = client.read()
            assert (reply.code, reply.errors[0]["S"], reply.status) == ("08P01", "FATAL", "")


def test_a_statement_beyond_the_policys_length_is_refused(town: Running) -> None:
    with Client(town.port, **PRICE) as client:
        reply = client.query(
            "SELECT COUNT(*) AS n FROM people WHERE zip IN (" + "'x', " * 13_000 + "'y')"
        )
        assert (reply.code, reply.status) == ("54000", "I")
        assert client.extended(parse(" " * 65_000)).code == "54000"
        assert client.query(COUNT).tags == ["SELECT 2"]


def test_a_client_that_reads_nothing_is_left(town: Running) -> None:
    """The server holds some kilobytes for it, not all that it asks for."""
    assert town.server.postgres is not None
    sessions = town.server.postgres._sessions
    until(lambda: not sessions)
    with Client(town.port, **PRICE) as client:
        client.send(
            pack(
                b"Q",
                text(
                    "SELECT a.oid, b.oid, c.oid FROM pg_type a, pg_type b, pg_class c LIMIT 500000"
                ),
            )
        )
        client.send(
            pack(
                b"Q",
                text(
                    "SELECT a.oid, b.oid, c.oid FROM pg_type a, pg_type b, pg_class c LIMIT 500000"
                ),
            )
        )
        until(lambda: bool(sessions))
        until(lambda: not sessions)


# --- what breaks inside ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineFailure(), "58X02"),
        (LedgerUnavailable("town.ledger is full."), "58X01"),
        (MemoryError(), "XX000"),
    ],
)
def test_failures_are_one_sentence_and_the_connection_lives_on(
    town: Running, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def fails(*_: object, **__: object) -> object:
        raise error

    with Client(town.port, **PRICE) as client:
        monkeypatch.setattr(town.server.curator, "ask", fails)
        reply = client.query(COUNT)
        assert (reply.code, reply.status) == (code, "I")
        monkeypatch.undo()
        assert client.query(COUNT).tags == ["SELECT 2"]


def test_a_ledger_that_is_gone_answers_nothing(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town, Client(town.port, **PRICE) as client:
        assert client.query(COUNT).tags == ["SELECT 2"]
        town.server.curator.policy.ledger.rename(tmp_path / "elsewhere")
        reply = client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 21")
        assert (reply.code, reply.rows, reply.status) == ("58X01", [], "I")


def test_a_stopping_server_answers_what_runs_and_says_goodbye(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(open_town(tmp_path)) as town:
        begun, go = held(town, monkeypatch)
        client, idle = Client(town.port, **PRICE), Client(town.port)
        client.send(pack(b"Q", text(COUNT)))
        assert begun.wait(60)
        threading.Thread(target=lambda: (town.run(town.server.close()), None)).start()
        go.set()
        answered, farewell = client.read(), idle.read()
        assert farewell.code == "57P01"
        assert answered.tags == ["SELECT 2"] or answered.code == "57P01"
        client.socket.close()
        idle.socket.close()


# --- at the same time -----------------------------------------------------------------------------


def in_threads(count: int, work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_many_connections_on_one_budget_are_admitted_exactly(tmp_path: Path) -> None:
    """bob has ε = 1: of 12 different questions at 0.1 by 6 connections, ten are answered."""
    outcomes: list[str] = []
    with running(open_town(tmp_path)) as town:

        def ask(index: int) -> None:
            with Client(town.port, "bob", options="-c discreet.epsilon=0.1") as client:
                for number in range(2):
                    reply = client.query(
                        f"SELECT COUNT(*) AS n FROM people WHERE age <> {index} AND age <> 6{number}"
                    )
                    again = client.query(
                        f"SELECT COUNT(*) AS again FROM people WHERE age <> {index} AND age <> 6{number}"
                    )
                    outcomes.extend((reply.code, again.code))

        in_threads(6, ask)
        left = town.server.curator.left(analyst="bob")
        entries = town.server.curator.ledger(analyst="bob")
        assert left.epsilon == 1 - sum((entry.cost.amount for entry in entries), Fraction(0))
        assert {entry.state for entry in entries} == {"posted"}
        assert (outcomes.count(""), outcomes.count("53X01")) == (20, 4)  # each was asked twice
        assert left.epsilon == 0


def test_the_same_question_by_many_at_once_is_one_charge(town: Running) -> None:
    before, rows = spent(town), []

    def ask(_: int) -> None:
        with Client(town.port, **PRICE) as client:
            rows.append(client.query("SELECT COUNT(*) AS n FROM people WHERE age <> 22").rows)

    in_threads(8, ask)
    assert all(each == rows[0] for each in rows)
    assert spent(town) - before == Fraction(1, 2)


def test_wrong_passwords_lock_the_name_and_not_the_house(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town:
        codes = []
        for _ in range(8):
            with Client(town.port, password="wrong password") as client:
                codes.append(client.reply.code)
        assert codes[:5] == ["28P01"] * 5
        assert "53300" in codes
        with Client(town.port, "bob", password=PASSWORD) as other:
            assert other.reply.status == "I"
