"""The Postgres door against mutated sessions: a few in `make test`, a hundred thousand messages in
`make slow`.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from discreet.ledger import Ledger
from server.protocol_fuzz import play
from server.running_server import open_town, running
from server.wire_client import Client


def fuzz(folder: Path, messages: int) -> None:
    with running(open_town(folder)) as town:
        assert town.server.postgres is not None
        heard = play(town, messages, random.Random(random.getrandbits(64)))
        assert heard["Z"] > messages / 200
        assert heard["E"] > messages / 200
        for _ in range(60_000):
            if not town.server.postgres._tasks and not town.server.door.queue.running:
                break
            time.sleep(0.001)
        assert not town.server.postgres._tasks
        assert not town.server.postgres._sessions
        assert "discreet_failures_total" not in town.server.door.metrics.text()
        with Client(town.port, "carol", options="-c discreet.epsilon=0.5") as other:
            assert other.query("SELECT COUNT(*) AS n FROM people").tags == ["SELECT 1"]
        entries = town.server.curator.ledger()
        assert {entry.state for entry in entries} == {"posted"}
        with Ledger.open(str(town.server.curator.policy.ledger)) as ledger:
            ledger.verify(None)


def test_a_few_mutated_sessions(tmp_path: Path) -> None:
    fuzz(tmp_path, 400)


@pytest.mark.slow
def test_a_hundred_thousand_mutated_messages(tmp_path: Path) -> None:
    fuzz(tmp_path, 100_000)
