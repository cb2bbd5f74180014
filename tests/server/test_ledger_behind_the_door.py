"""A ledger that another process locks, and a disk that is full, behind the Postgres door: nothing
leaves unrecorded.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from discreet.ledger import Ledger
from server.running_server import Running, open_town, running
from server.wire_client import Client
from small_disk import small_disk

PRICE = {"options": "-c discreet.epsilon=0.5"}
KNOWN = "SELECT COUNT(*) AS n FROM people"
HOLD = """
import sqlite3, sys
ledger = sqlite3.connect(sys.argv[1], isolation_level=None)
ledger.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
ledger.execute("ROLLBACK")
"""


def fresh(number: int) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age <> {number}"


def spent(town: Running) -> Fraction:
    return sum(
        (entry.cost.amount for entry in town.server.curator.ledger(analyst="alice")), Fraction(0)
    )


def verify(town: Running) -> None:
    with Ledger.open(str(town.server.curator.policy.ledger)) as ledger:
        ledger.verify(None)


def test_a_ledger_that_another_process_locks(tmp_path: Path) -> None:
    """What is stored is still told; what is new is refused uncharged, and answered when the lock is
    gone.
    """
    with running(open_town(tmp_path)) as town, Client(town.port, **PRICE) as client:
        known = client.query(KNOWN).rows
        file = town.server.curator._ledger._journal.file
        file._timeout = 0.2  # seconds, not ten
        file.close()  # the next connection waits no longer than that
        path = str(town.server.curator.policy.ledger)
        with subprocess.Popen(
            [sys.executable, "-c", HOLD, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "held\n"
            assert client.query(KNOWN).rows == known
            reply = client.query(fresh(21))
            assert (reply.code, reply.rows, reply.status) == ("58X01", [], "I")
            assert spent(town) == Fraction(1, 2)
            other.communicate("", timeout=60)
        file._timeout = 10
        file.close()
        assert client.query(fresh(21)).tags == ["SELECT 1"]
        assert spent(town) == 1
        verify(town)


def test_a_full_disk_behind_the_door(tmp_path: Path) -> None:
    """No answer leaves that is not on the disk; with room again the same questions are answered,
    and paid once.
    """
    with (
        small_disk(tmp_path / "disk", "64m") as disk,
        running(open_town(disk)) as town,
        Client(town.port, **PRICE) as client,
    ):
        assert client.query(KNOWN).tags == ["SELECT 1"]
        (disk / "ballast").write_bytes(bytes(shutil.disk_usage(disk).free))
        asked, reply = 0, client.query(fresh(0))
        while not reply.code and asked < 100:
            asked += 1
            reply = client.query(fresh(asked))
        assert reply.code in ("58X01", "58X02")
        assert (reply.rows, reply.status) == ([], "I")
        (disk / "ballast").unlink()
        for number in range(asked + 2):
            assert client.query(fresh(number)).tags == ["SELECT 1"]
        entries = town.server.curator.ledger(analyst="alice")
        posted = [entry for entry in entries if entry.state == "posted"]
        assert len(posted) == asked + 3
        assert len(entries) <= asked + 4  # what failed may be charged, once, and is never answered
        verify(town)
