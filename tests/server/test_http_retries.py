"""Retries: a question whose reply is lost is charged once, and answered with the same bytes, also
after a kill.
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from server.http_client import Browser
from server.running_server import POLICY, Running, open_town, running, tables

COUNT = "SELECT COUNT(*) AS n FROM people WHERE age > {} AND income <> {}"


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town"))) as found:
        yield found


def drop(port: int, token: str, body: bytes, key: str) -> None:
    """Send a question and go away before its reply is read."""
    head = f"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: {key}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(head.encode() + body)


def dropped_replies(town: Running, questions: int, retries: int) -> None:
    """Ask each question several times with one key, the first times without reading; check what was
    charged.
    """
    token = town.users.add_token("alice")
    alice = Browser(town.http, token=token)
    before = len(alice.get("/history").json["charges"])
    for number in range(questions):
        body = {"sql": COUNT.format(number % 90, number), "epsilon": 0.001}
        for _ in range(retries - 2):
            drop(town.http, token, json.dumps(body).encode(), f"key-{questions}-{number}")
        first, again = (
            alice.post("/ask", body, Idempotency_Key=f"key-{questions}-{number}") for _ in range(2)
        )
        assert first.status == 200
        assert first.body == again.body
        assert first.json["cost"]["exact"]["epsilon"] == "1/1000"
    charges = town.server.curator.ledger(analyst="alice")
    assert len(charges) - before == questions
    assert all(float(entry.cost.amount) == 0.001 for entry in charges[before:])


def test_dropped_replies_are_charged_once_each(town: Running) -> None:
    dropped_replies(town, questions=20, retries=5)


@pytest.mark.slow
def test_a_thousand_retries_with_dropped_replies_are_charged_once_each(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town:
        dropped_replies(town, questions=200, retries=5)


def test_the_same_key_at_once_is_one_question(town: Running) -> None:
    alice = Browser(town.http, token=town.users.add_token("alice"))
    before = len(town.server.curator.ledger(analyst="alice"))
    body = {"sql": COUNT.format(1, "0.5"), "epsilon": 0.001}
    found: list[bytes] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(alice.post("/ask", body, Idempotency_Key="at-once").body)
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 12
    assert len(set(found)) == 1
    assert len(town.server.curator.ledger(analyst="alice")) == before + 1


def test_a_key_belongs_to_its_user_and_its_question(town: Running) -> None:
    alice, bob = (Browser(town.http, token=town.users.add_token(name)) for name in ("alice", "bob"))
    body = {"sql": COUNT.format(2, 2), "epsilon": 0.001}
    own = alice.post("/ask", body, Idempotency_Key="mine").json
    assert alice.post("/ask", {**body, "epsilon": 0.002}, Idempotency_Key="mine").status == 409
    other = bob.post("/ask", {"sql": COUNT.format(3, 3), "epsilon": 0.001}, Idempotency_Key="mine")
    assert other.status == 200
    assert other.json["link"] != own["link"]
    assert alice.post("/ask", body, Idempotency_Key="bad key").status == 422
    csv = alice.post("/ask?format=csv", body, Idempotency_Key="mine")
    assert str(own["rows"][0][0]) in csv.body.decode()


def test_a_refusal_is_not_kept(town: Running) -> None:
    alice = Browser(town.http, token=town.users.add_token("alice"))
    for _ in range(2):
        assert (
            alice.post(
                "/ask", {"sql": "SELECT age FROM people", "epsilon": 1}, Idempotency_Key="no"
            ).status
            == 422
        )


def test_what_cannot_be_kept_is_answered_still(tmp_path: Path) -> None:
    """The file of answers is no ledger: where it is broken, who paid gets the answer, and again is
    free.
    """
    curator = open_town(tmp_path)
    (tmp_path / "town.ledger.answers").mkdir()
    with running(curator) as town:
        alice = Browser(town.http, token=town.users.add_token("alice"))
        body = {"sql": COUNT.format(4, 4), "epsilon": 0.5}
        first = alice.post("/ask", body, Idempotency_Key="x").json
        again = alice.post("/ask", body, Idempotency_Key="x").json
        assert first["rows"] == again["rows"]
        assert (first["cost"]["epsilon"], again["cost"]["epsilon"]) == (0.5, 0)


def test_another_server_gives_the_same_bytes_again(tmp_path: Path) -> None:
    body, found = {"sql": COUNT.format(6, 6), "epsilon": 0.5}, []
    curators = (open_town(tmp_path), discreet.open(tmp_path / "town.yaml", tables=tables()))
    for curator in curators:
        with running(curator) as town:
            alice = Browser(town.http, token=town.users.add_token("alice"))
            found.append(alice.post("/ask", body, Idempotency_Key="k"))
            assert len(alice.get("/history").json["charges"]) == 1
    assert found[0].status == 200
    assert found[0].body == found[1].body
    assert (tmp_path / "town.ledger.answers").stat().st_mode & 0o777 == 0o600


class Process:
    """`discreet serve` as a process of its own."""

    def __init__(self, policy: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "discreet",
            "serve",
            str(policy),
            "--postgres",
            ":0",
            "--http",
            ":0",
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        said = [self.process.stdout.readline() for _ in range(2)]
        [http] = [
            found for line in said if (found := re.search(r"http://127\.0\.0\.1:(\d+)/", line))
        ]
        assert any("psql" in line for line in said)
        self.port = int(http[1])

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        assert self.process.stdout is not None
        code = self.process.wait(60)
        self.process.stdout.close()
        return code


@pytest.mark.slow
def test_a_killed_server_gives_the_same_bytes_again(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    data = tmp_path / "data"
    data.mkdir()
    for name, table in tables().items():
        pq.write_table(table, data / f"{name}.parquet")
    open_town(tmp_path, f"source: data\n{POLICY}")
    token = UserFile(Policy.read(tmp_path / "town.yaml")).add_token("alice")
    body = {"sql": COUNT.format(5, 5), "epsilon": 0.5}
    first = Process(tmp_path / "town.yaml")
    before = Browser(first.port, token=token).post("/ask", body, Idempotency_Key="k")
    assert before.status == 200
    first.end(signal.SIGKILL)
    second = Process(tmp_path / "town.yaml")
    alice = Browser(second.port, token=token)
    assert alice.post("/ask", body, Idempotency_Key="k").body == before.body
    assert len(alice.get("/history").json["charges"]) == 1
    assert second.end(signal.SIGTERM) == 0
