"""What the doors (Postgres, HTTP) add to a question, how many it answers, and what a flood does to
others.

    python bench/serve.py [--questions 2000] [--connections 64] [--logins 0]

Overhead: the same kinds of questions, each new, are asked of a curator in this process and through
a server in this process, in turn; medians are told. Load and fairness: a server of its own, clients
here. --logins tries so many logins of known and unknown users, and tells how well the time of the
refusal tells them apart (0.5: not at all). Exits with 1 if a target is missed; the figures go to
bench/results/serve.json too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import logging
import random
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from server.running_server import PASSWORD, POLICY, open_town, running  # noqa: E402
from server.served import Served  # noqa: E402
from server.wire_client import Client, Reply, bind, describe, execute, parse  # noqa: E402

RESULTS = Path(__file__).parent / "results"
OVERHEAD = 2.0  # milliseconds, of the median
HTTP_OVERHEAD = 3.0
TURNS = 5
RATE, P99, FAIR = 120.0, 3.0, 2.0  # questions a second, seconds, times


Clock = Callable[[], float]
COUNT = "SELECT COUNT(*) AS n FROM people WHERE age <> {} AND income > {}"


def timed(work: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    began = clock()
    work()
    return 1000 * (clock() - began)


def overhead(folder: Path, repeats: int) -> dict[str, float]:
    """Medians in milliseconds: a bare ask, and the same through the simple and the extended
    protocol and by HTTP.

    Also of processor time, the client's included: on a busy machine the other is mostly waiting for
    a turn.
    """
    curator = open_town(folder)
    took: dict[str, list[float]] = {}
    with running(curator) as town, Client(town.port, options="-c discreet.epsilon=0.01") as client:

        def by_messages(sql: str) -> None:
            reply = client.extended(parse(sql), describe("S"), bind(results=[1]), execute())
            assert len(reply.rows) == 1, reply

        def by_query(sql: str) -> None:
            assert len(client.query(sql).rows) == 1

        def bare(sql: str) -> None:
            curator.ask(sql, analyst="alice", epsilon="0.01")

        connection = http.client.HTTPConnection("127.0.0.1", town.http, timeout=60)
        headers = {
            "Authorization": f"Bearer {town.users.add_token('alice')}",
            "Content-Type": "application/json",
        }

        def by_http(sql: str) -> None:
            connection.request(
                "POST", "/api/v1/ask", json.dumps({"sql": sql, "epsilon": "0.01"}), headers
            )
            assert len(json.loads(connection.getresponse().read())["rows"]) == 1

        ways: dict[str, Callable[[str], None]] = {
            "bare": bare,
            "simple": by_query,
            "extended": by_messages,
        }
        ways["http"] = by_http
        for index in range(repeats):
            clocks: dict[str, Clock] = {"": time.perf_counter, "_cpu": time.process_time}
            for place, (name, way) in enumerate(
                (f"{name}{end}", way) for end in clocks for name, way in ways.items()
            ):
                clock = time.process_time if name.endswith("_cpu") else time.perf_counter
                took.setdefault(name, []).append(
                    timed(partial(way, COUNT.format(place, index)), clock)
                )
    return {name: median(found) for name, found in took.items()}


def in_threads(count: int, work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def load(folder: Path, connections: int, questions: int) -> dict[str, Any]:
    """All connections ask new questions of one budget, of which all but a tenth fit."""
    fits = questions * 9 // 10
    open_town(folder, POLICY.replace("alice: {epsilon: 1000}", f"alice: {{epsilon: {fits}/1000}}"))
    server = Served(folder / "town.yaml")
    took, codes = list[float](), list[str]()
    share = questions // connections

    def ask(index: int) -> None:
        with Client(server.port, options="-c discreet.epsilon=0.001") as client:
            for number in range(share):
                began = time.perf_counter()
                reply = client.query(
                    f"SELECT COUNT(*) AS n FROM people WHERE age <> {index} AND income > {number}"
                )
                took.append(time.perf_counter() - began)
                codes.append(reply.code or "answered")

    began, processor = time.perf_counter(), server.processor_seconds()
    in_threads(connections, ask)
    seconds, processor = time.perf_counter() - began, server.processor_seconds() - processor
    server.stop()
    took.sort()
    return {
        "connections": connections,
        "questions": len(codes),
        "fit": fits,
        "answered": codes.count("answered"),
        "over_budget": codes.count("53X01"),
        "per_second": len(codes) / seconds,
        "processor_ms": 1000 * processor / len(codes),
        "p50": took[len(took) // 2],
        "p99": took[len(took) * 99 // 100],
    }


def fairness(folder: Path, connections: int, repeats: int) -> dict[str, float]:
    """The calm one's median in milliseconds, alone and while another floods from so many
    connections, in turns.
    """
    open_town(folder, POLICY.replace("bob: {epsilon: 1,", "bob: {epsilon: 1000,"))
    server = Served(folder / "town.yaml")
    stop, flooding = threading.Event(), threading.Event()

    def flood(index: int) -> None:
        with Client(server.port, options="-c discreet.epsilon=0.0001") as client:
            number = 0
            while flooding.wait() and not stop.is_set():
                number += 1
                client.query(COUNT.format(index, number))

    threads = [threading.Thread(target=flood, args=(index,)) for index in range(connections)]
    for thread in threads:
        thread.start()
    alone, beside = list[float](), list[float]()
    with Client(server.port, "bob", options="-c discreet.epsilon=0.01") as client:
        for turn in range(TURNS):
            for found in (alone, beside):
                flooding.set() if found is beside else flooding.clear()
                time.sleep(1.0)  # until what was begun before has ended
                for index in range(repeats // TURNS):
                    sql = (
                        f"SELECT COUNT(*) AS n FROM people WHERE age < {index} AND income > {turn}"
                    )
                    sql += " AND smoker" if found is beside else ""
                    found.append(timed(partial(client.query, sql)))
    stop.set()
    flooding.set()
    for thread in threads:
        thread.join()
    server.stop()
    return {
        "alone": median(alone),
        "beside_a_flood": median(beside),
        "times": median(beside) / median(alone),
    }


class Verdict(Client):
    """A client that notes how long the server took from the proof of a password to the first byte
    of its verdict.
    """

    seconds = 0.0

    def _scram(self, password: str, reply: Reply) -> None:
        super()._scram(password, reply)
        began = time.perf_counter()
        self.socket.recv(1, socket.MSG_PEEK)
        self.seconds = time.perf_counter() - began


TRIES = {  # who tries to log in, and with what
    "right": ("alice", PASSWORD),
    "wrong": ("alice", "wrong password"),
    "unknown": ("mallory", "wrong password"),
}


def logins(folder: Path, tries: int) -> dict[str, float]:
    """How well the time of the verdict tells right passwords from wrong ones, and known users from
    unknown ones.
    """
    from discreet.server import auth

    # each refusal is a line otherwise
    logging.getLogger("discreet").addHandler(logging.NullHandler())
    auth.FREE_TRIES = dict.fromkeys(auth.FREE_TRIES, 10**9)
    took: dict[str, list[float]] = {kind: [] for kind in TRIES}
    with running(open_town(folder)) as town:
        for _ in range(tries // len(TRIES)):
            # else one would always meet the end of the same other
            for kind in random.sample(list(TRIES), len(TRIES)):
                name, password = TRIES[kind]
                with Verdict(town.port, name, password=password) as client:
                    assert client.reply.code == ("" if kind == "right" else "28P01")
                    took[kind].append(1000 * client.seconds)
    return {
        "tries": tries,
        **{kind: median(found) for kind, found in took.items()},
        "right_from_wrong": _area(took["right"], took["wrong"]),
        "known_from_unknown": _area(took["wrong"], took["unknown"]),
    }


def _area(some: list[float], others: list[float]) -> float:
    """The area under the curve: how often one of some took longer than one of the others; 0.5 tells
    nothing.
    """
    ranked = sorted([(each, 1) for each in some] + [(each, 0) for each in others])
    ranks = sum(place for place, (_, is_one) in enumerate(ranked, 1) if is_one)
    return (ranks - len(some) * (len(some) + 1) / 2) / (len(some) * len(others))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--logins", type=int, default=0)
    given = parser.parse_args()
    assert PASSWORD
    with tempfile.TemporaryDirectory() as made:
        folders = [Path(made) / name for name in ("overhead", "load", "fairness", "logins")]
        for folder in folders:
            folder.mkdir()
        found: dict[str, Any] = {"overhead": overhead(folders[0], given.repeats)}
        print("milliseconds:", {name: round(value, 2) for name, value in found["overhead"].items()})
        found["load"] = load(folders[1], given.connections, given.questions)
        print("load:", {name: round(value, 3) for name, value in found["load"].items()})
        found["fairness"] = fairness(folders[2], given.connections // 2, given.repeats // 2)
        print("fairness:", {name: round(value, 2) for name, value in found["fairness"].items()})
        if given.logins:
            found["logins"] = logins(folders[3], given.logins)
            print("logins:", {name: round(value, 3) for name, value in found["logins"].items()})
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "serve.json").write_text(json.dumps(found, indent=1) + "\n")
    missed = [name for name, held in _targets(found).items() if not held]
    print("missed: " + ", ".join(missed) if missed else "every target is met")
    return 1 if missed else 0


def _targets(found: dict[str, Any]) -> dict[str, bool]:
    spent, busy = found["overhead"], found["load"]
    return {
        "simple overhead": spent["simple"] - spent["bare"] <= OVERHEAD,
        "extended overhead": spent["extended"] - spent["bare"] <= OVERHEAD,
        "http overhead": spent["http"] - spent["bare"] <= HTTP_OVERHEAD,
        "admitted exactly": busy["answered"] == min(busy["fit"], busy["questions"]),
        "rate": busy["per_second"] >= RATE,
        "p99": busy["p99"] <= P99,
        "fair": found["fairness"]["times"] <= FAIR,
        "logins": all(
            abs(found.get("logins", {}).get(told, 0.5) - 0.5) <= 0.03
            for told in ("right_from_wrong", "known_from_unknown")
        ),
    }


if __name__ == "__main__":
    sys.exit(main())
