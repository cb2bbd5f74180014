"""A policy with a deadline: through the wire nothing is a clock, whether answered, refused, free or
a login.
"""

from __future__ import annotations

import time
from pathlib import Path

from server.running_server import POLICY, open_town, running
from server.wire_client import Client, describe, parse

DEADLINE = 0.3
HARDENED = POLICY.replace(
    "limits: {epsilon: 100}", f"limits: {{epsilon: 100, deadline: {DEADLINE}s}}"
)


def test_every_answer_leaves_at_the_deadline_or_later(tmp_path: Path) -> None:
    with running(open_town(tmp_path, HARDENED)) as town:
        began = time.monotonic()
        with Client(town.port, options="-c discreet.epsilon=0.5") as client:
            assert client.reply.status == "I"
            assert time.monotonic() - began >= DEADLINE
            for sql in (
                "SELECT COUNT(*) AS n FROM people",
                "SELECT COUNT(*) AS n FROM people",
                "SELECT zip FROM people",
                "SELECT relname FROM pg_catalog.pg_class LIMIT 1",
                "SELECT name FROM places",
                "SHOW discreet.budget",
                "SHOW server_version",
                "BEGIN",
                "nonsense",
                "",
            ):
                began = time.monotonic()
                client.query(sql)
                assert time.monotonic() - began >= DEADLINE, sql
            began = time.monotonic()
            assert client.extended(parse("SELECT 1"), describe("S")).errors
            assert time.monotonic() - began >= DEADLINE
        began = time.monotonic()
        with Client(town.port, password="wrong password") as client:
            assert client.reply.code == "28P01"
        assert time.monotonic() - began >= DEADLINE
