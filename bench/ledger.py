"""How many durable spends a second, beside a bare append with fdatasync in the same run on the same
disk; and on a ledger in PostgreSQL, beside a bare INSERT and COMMIT on the same server.

    python bench/ledger.py [FOLDER] [ROUNDS]

The rounds of each are interleaved, because a shared disk's speed changes from one second to the
next.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import psycopg

from discreet.budget import Charge
from discreet.ledger import Bill, Ledger, Reservation, Terms

# how a server is started, and tables are made in it
TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "ledger")]

from places import in_postgres  # noqa: E402

from real_postgres import server  # noqa: E402

BATCH = 100
ANALYSTS = 16  # who ask at the same time, of one server
MECHANISMS = [{"mechanism": "DiscreteLaplace", "scale": "2", "l1": "1"}]
TERMS = Terms(
    unit="person",
    neighbors="add_remove",
    owners={"people": "person_id"},
    accountant={"name": "sum"},
    limit=Charge(amount=Fraction(10**6)),
    analysts={"alice": Charge(amount=Fraction(10**6))},
)


def reserve(ledger: Ledger, name: str) -> Reservation:
    bill = Bill(
        analyst="alice",
        question=name,
        policy="0" * 64,
        snapshot=0,
        mechanisms=MECHANISMS,
        cost=Charge(amount=Fraction(1, 10)),
        text="SELECT city, COUNT(*) FROM people WHERE age BETWEEN 18 AND 65 GROUP BY city",
    )
    reservation = ledger.reserve(bill)
    assert isinstance(reservation, Reservation)
    return reservation


def seconds(work: Callable[[str], None], name: str) -> float:
    start = time.perf_counter()
    for i in range(BATCH):
        work(f"{name} {i}")
    return time.perf_counter() - start


def main(folder: Path, rounds: int) -> None:
    ledger = Ledger.create(folder / "bench.ledger", TERMS)
    bare = os.open(folder / "bare", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    record = bytes(800)  # about a charge's row

    def append(_: str) -> None:
        os.write(bare, record)
        os.fdatasync(bare)

    def spend(name: str) -> None:
        reserve(ledger, name)

    def spend_and_post(name: str) -> None:
        ledger.post(reserve(ledger, name), b"an answer of some size" * 20, meta={"margins": [3]})

    works = {"bare append": append, "spend": spend, "spend and post": spend_and_post}
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, f"{name} {number}"))
    for name, taken in times.items():
        each = [BATCH / one for one in taken]
        mean = BATCH * rounds / sum(taken)
        print(
            f"{name:15} {mean:7.0f} a second (median {statistics.median(each):.0f}, best {max(each):.0f})"
        )
    for name in ("spend", "spend and post"):
        print(f"{name} / bare append: {sum(times['bare append']) / sum(times[name]):.2f}")
    rows = ledger.head()["number"]
    ledger.close()
    start = time.perf_counter()
    ledger = Ledger.open(folder / "bench.ledger")
    opened = time.perf_counter() - start
    ledger.verify()
    print(
        f"open, checking all {rows} rows: {opened:.2f} s; verify: {time.perf_counter() - start - opened:.2f} s"
    )


def shared(folder: Path, rounds: int) -> None:
    """The same on a ledger that servers share: one who asks alone, and sixteen of one server at a
    time.
    """
    with (
        server("-c max_connections=30") as database,
        psycopg.connect(database.address, autocommit=True) as bare,
    ):
        bare.execute("CREATE TABLE bare (name text, body bytea)")
        ledger = Ledger.create(in_postgres(folder / "shared.ledger", lambda: database), TERMS)
        pool = ThreadPoolExecutor(ANALYSTS)
        times: dict[str, list[float]] = {
            "bare INSERT and COMMIT": [],
            "spend": [],
            "spend, sixteen at a time": [],
        }

        def insert(name: str) -> None:
            bare.execute("INSERT INTO bare VALUES (%s, %s)", (name, bytes(800)))

        def together(number: int) -> float:
            start = time.perf_counter()
            names = [f"together {number} {each}" for each in range(BATCH)]
            list(pool.map(lambda name: reserve(ledger, name), names))
            return time.perf_counter() - start

        for number in range(rounds):
            times["bare INSERT and COMMIT"].append(seconds(insert, f"bare {number}"))
            times["spend"].append(
                seconds(lambda name: reserve(ledger, name) and None, f"alone {number}")
            )
            times["spend, sixteen at a time"].append(together(number))
        plain = sum(times["bare INSERT and COMMIT"])
        for name, taken in times.items():
            mean = BATCH * rounds / sum(taken)
            print(f"PostgreSQL, {name}: {mean:.0f} a second, {plain / sum(taken):.2f} of bare")
        ledger.verify()
        ledger.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as made:
        rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
        main(Path(made), rounds)
        shared(Path(made), rounds)
