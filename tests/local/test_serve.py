"""The collector over HTTP: what it takes, what it refuses, and that an acknowledged report survives
kill -9.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from small_survey import WEEKEND, line, person, serving, weekend

from discreet.local.collector.collector import ReportStore
from discreet.local.collector.serve import MOST_BODY
from discreet.local.question import submission

COMMAND = "from discreet.cli.local import collect; collect()"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(weekend(), tmp_path / "r") as found:
        yield found


def ask(
    address: str, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)) as connection:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        content = reply.read()
        return reply.status, json.loads(content) if "json" in reply.headers[
            "Content-Type"
        ] else content


def test_reports_are_taken_and_estimated(address: str) -> None:
    survey = weekend()
    body = b"".join(line(survey, {"drank": "yes", "browser": "chrome"}) for _ in range(50))
    assert ask(address, "POST", "/reports", body) == (
        200,
        {"accepted": 100, "repeated": 0, "refused": {}},
    )
    assert ask(address, "POST", "/reports", body) == (
        200,
        {"accepted": 0, "repeated": 100, "refused": {}},
    )
    assert ask(address, "POST", "/reports", b"nonsense\n\n") == (
        200,
        {"accepted": 0, "repeated": 0, "refused": {"malformed": 1}},
    )
    status, found = ask(address, "GET", "/estimate.json")
    assert (status, found["drank"]["n"], found["browser"]["n"], found["hours"]["n"]) == (
        200,
        50,
        50,
        0,
    )
    assert ask(address, "GET", "/survey.json") == (200, survey.as_json())
    assert b"<svg" in ask(address, "GET", "/estimate")[1]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/none", 404),
        ("GET", "/reports", 405),
        ("DELETE", "/reports", 405),
        ("POST", "/", 405),
        ("GET", "/../etc", 404),
    ],
)
def test_other_requests_are_refused(address: str, method: str, path: str, status: int) -> None:
    found, reply = ask(address, method, path)
    assert found == status
    assert reply["error"]["kind"] == "usage"


def raw(address: str, request: bytes) -> bytes:
    parts, found = urlsplit(address), b""
    place = (str(parts.hostname), parts.port or 0)
    with (
        socket.create_connection(place, timeout=30) as connection,
        suppress(OSError),
    ):  # it may be closed early
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65536):
            found += part
    return found


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (b"GET / HTTP/2\r\n\r\n", b"400"),
        (b"POST /reports HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"400"),
        (b"POST /reports HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /reports HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MOST_BODY + 1), b"413"),
        (b"POST /reports HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", b"413"),
        (b"POST /reports HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"411"),
    ],
)
def test_what_is_not_a_request_gets_a_sentence_and_no_more(
    address: str, request_bytes: bytes, status: bytes
) -> None:
    assert raw(address, request_bytes).startswith(b"HTTP/1.1 " + status)
    assert ask(address, "GET", "/survey.json")[0] == 200  # and the collector goes on


def test_a_head_without_end_and_a_body_cut_short_are_dropped(address: str) -> None:
    assert raw(address, b"GET / HTTP/1.1\r\nA: " + b"a" * (1 << 17)) == b""
    assert raw(address, b"POST /reports HTTP/1.1\r\nContent-Length: 100\r\n\r\nshort") == b""
    assert ask(address, "GET", "/estimate.json")[1]["drank"]["n"] == 0


def test_one_connection_many_requests_and_a_page_without_origin(address: str) -> None:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)) as connection:
        for _ in range(5):
            connection.request(
                "POST", "/reports", line(weekend(), {"drank": "no"}), {"Origin": "null"}
            )
            reply = connection.getresponse()
            assert json.loads(reply.read())["accepted"] == 1
            assert reply.headers["Access-Control-Allow-Origin"] == "*"
        connection.request("OPTIONS", "/reports", headers={"Access-Control-Request-Method": "POST"})
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (204, b"")
        connection.request("HEAD", "/")
        reply = connection.getresponse()
        assert (reply.status, reply.read()) == (200, b"")


# kill -9
# -----------------------------------------------------------------------------------------------------------


class Serving:
    """The collector as a process of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "weekend.yaml").write_text(WEEKEND)
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "serve", "weekend.yaml", "--port", "0"],
            cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split(" is open at ")[1].split("/ ")[0]

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_kill_9_loses_no_acknowledged_report_and_counts_none_twice(tmp_path: Path) -> None:
    """Senders post without pause while the collector is killed again and again; each sends again
    what was not heard of.

    In the end every report that anybody was told is kept is there, and every one exactly once.
    """
    survey = weekend()
    batches = [
        [submission(survey, person(), {"drank": i % 2}) for i in range(10)] for _ in range(1200)
    ]
    current: list[Serving] = [Serving(tmp_path)]
    acknowledged: set[int] = set()
    stop, up = threading.Event(), threading.Event()
    up.set()

    def send(mine: list[int]) -> None:
        for number in mine:
            while number not in acknowledged and not stop.is_set():
                if not up.wait(1):  # a free port may be given to another test's collector
                    continue
                try:
                    status, receipt = ask(
                        current[0].address, "POST", "/reports", b"".join(batches[number])
                    )
                    if status == 200:
                        assert receipt["accepted"] + receipt["repeated"] == 10
                        assert receipt["refused"] == {}
                        acknowledged.add(number)
                except (OSError, http.client.HTTPException):
                    time.sleep(0.01)

    senders = [
        threading.Thread(target=send, args=(list(range(k, len(batches), 4)),)) for k in range(4)
    ]
    for sender in senders:
        sender.start()
    kills = 0
    while kills < 3 and len(acknowledged) < len(batches) - 100:
        before = len(acknowledged)
        deadline = time.monotonic() + 60
        while len(acknowledged) < before + 60 and time.monotonic() < deadline:
            time.sleep(0.002)
        up.clear()  # what is on its way is cut off
        current[0].kill()
        held = kept(tmp_path)
        assert all(
            name in held for number in list(acknowledged) for name in respondents(batches[number])
        )
        current[0] = Serving(tmp_path)
        up.set()
        kills += 1
    for sender in senders:
        sender.join(120)
    stop.set()
    current[0].kill()
    assert kills == 3
    assert len(acknowledged) == len(batches)
    held = kept(tmp_path)
    # none lost, none twice
    assert sorted(held) == sorted(name for batch in batches for name in respondents(batch))


def respondents(batch: list[bytes]) -> list[str]:
    return [json.loads(each)["respondent"] for each in batch]


def kept(folder: Path) -> list[str]:
    """The names in the store, as another process reads it after the crash."""
    with closing(ReportStore(folder / "weekend.reports", weekend())) as store:
        return [
            bytes(name).hex() for (name,) in store._db.execute("SELECT respondent FROM reports")
        ]


def test_batches_over_many_connections_are_taken_durably(tmp_path: Path) -> None:
    """Batches over connections that stay open; killed after the last receipt, the collector has
    each report once.

    How many it takes a second is measured by bench/local.py: a machine that is busy is no mistake
    of ours.
    """
    survey, total, size, connections = weekend(), 6_000, 100, 16
    lines = [submission(survey, person(), {"drank": i % 2}) for i in range(total)]
    batches = [lines[start : start + size] for start in range(0, total, size)]
    collector = Serving(tmp_path)
    parts = urlsplit(collector.address)

    async def send(mine: list[list[bytes]]) -> list[dict[str, Any]]:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        receipts = []
        for batch in mine:
            body = b"".join(batch)
            writer.write(
                b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
                + body
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
            receipts.append(json.loads(await reader.readexactly(length)))
        writer.close()
        return receipts

    async def everyone() -> list[list[dict[str, Any]]]:
        return await asyncio.gather(*(send(batches[k::connections]) for k in range(connections)))

    # In a thread of its own: a browser's tests may have left a loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(asyncio.run, everyone()).result()
    receipts = [receipt for mine in sent for receipt in mine]
    collector.kill()
    assert receipts == [{"accepted": size, "repeated": 0, "refused": {}}] * len(batches)
    assert sorted(kept(tmp_path)) == sorted(
        name for batch in batches for name in respondents(batch)
    )
    with closing(ReportStore(tmp_path / "weekend.reports", survey)) as store:
        assert store.sums().tallies["drank"].n == total
