"""A server of a small town in this process, on a port of its own, with users and their
passwords.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import discreet
from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.policy.policy import Policy
from discreet.server.limits import ServerLimits
from discreet.server.serve import Address, Server
from discreet.server.tls import Tls
from discreet.server.users import UserFile

PASSWORD = "correct horse battery"
POLICY = """\
unit: person
tables:
  people:
    owner: person_id
    columns:
      person_id: {identifier: true}
      age: {integer: [0, 120]}
      income: {decimal: [0, 200000], step: 0.01}
      sex: {values: [F, M]}
      zip: text
      smoker: {boolean: true}
  visits:
    owner: person_id
    max_rows: 3
    columns:
      person_id: {identifier: true}
      day: {date: [2024-01-01, 2024-12-31]}
      seen: {timestamp: [2024-01-01, 2025-01-01], step: 1s}
      cost: {decimal: [0, 1000], step: 0.01}
  places: {public: true}
budget: {epsilon: 1000, delta: 1e-6}
limits: {epsilon: 100}
analysts:
  alice: {epsilon: 1000}
  bob: {epsilon: 1, per_question: 0.25}
"""


def tables(people: int = 60) -> dict[str, pa.Table]:
    ids = list(range(people))
    return {
        "people": pa.table(
            {
                "person_id": ids,
                "age": [20 + i % 60 for i in ids],
                "income": [1000.0 * (i % 100) for i in ids],
                "sex": ["FM"[i % 2] for i in ids],
                "zip": [str(i % 7) for i in ids],
                "smoker": [i % 3 == 0 for i in ids],
            }
        ),
        "visits": pa.table(
            {
                "person_id": ids,
                "day": ["2024-03-01"] * people,
                "seen": ["2024-03-01 10:00:00"] * people,
                "cost": [5.0] * people,
            }
        ),
        "places": pa.table({"name": ["Hill", "Harbor"], "beds": [10, 20]}),
    }


def open_town(folder: Path, policy: str = POLICY) -> Curator:
    """A curator of the town, its ledger, and its users: alice and bob ask, dave reads, carol is the
    curator.
    """
    path = folder / "town.yaml"
    path.write_text(policy, encoding="utf-8")
    create_ledger(Policy.read(path))
    users = UserFile(Policy.read(path))
    for name in ("alice", "bob"):
        users.add(name, password=PASSWORD)
    users.add("dave", role="auditor", password=PASSWORD)
    users.add("carol", role="curator", password=PASSWORD)
    return discreet.open(path, tables=tables())


@dataclass(frozen=True, kw_only=True)
class Running:
    server: Server
    host: str
    port: int
    http: int
    loop: asyncio.AbstractEventLoop

    @property
    def users(self) -> UserFile:
        return UserFile(self.server.curator.policy)

    def run(self, coroutine: Any) -> Any:
        """Run something on the server's own loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)


@contextmanager
def running(
    curator: Curator,
    *,
    limits: ServerLimits | None = None,
    tls: Tls | None = None,
    proxied: bool = False,
) -> Iterator[Running]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def begin() -> tuple[Server, tuple[str, int], tuple[str, int]]:
        server = Server(curator=curator, limits=limits or ServerLimits(), tls=tls, proxied=proxied)
        anywhere = Address(host="127.0.0.1", port=0)
        return server, await server.open_postgres(anywhere), await server.open_http(anywhere)

    try:
        server, (host, port), (_, http) = asyncio.run_coroutine_threadsafe(begin(), loop).result(60)
        yield Running(server=server, host=host, port=port, http=http, loop=loop)
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
