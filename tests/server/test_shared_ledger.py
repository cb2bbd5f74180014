"""Two servers on one ledger in PostgreSQL, one of them killed: never overdrawn, nothing lost,
nothing paid twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

import discreet
from discreet import cli
from discreet.binding import create_ledger, ledger_of
from discreet.budget import Charge
from discreet.ledger import Ledger
from discreet.policy.policy import Policy
from discreet.server.users import UserFile
from ledger.places import in_postgres
from real_postgres import Server, server
from server.running_server import PASSWORD, POLICY, tables
from server.served import Served
from server.wire_client import Client

EPSILON = Fraction(1, 100)
ANALYSTS = [f"analyst{number}" for number in range(16)]
A_ROUND = 40  # questions that fit into what the curator adds in each round


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server("-c max_connections=30") as made:
        yield made


def open_shared_town(folder: Path, database: Server) -> Policy:
    """A town of 16 analysts."""
    place = in_postgres(folder / "town.ledger", lambda: database)
    shares = "".join(f"  {name}: {{epsilon: 100}}\n" for name in ANALYSTS)
    head = POLICY.partition("analysts:")[0]
    path = folder / "town.yaml"
    path.write_text(f"ledger: {place.address}\n{head}analysts:\n{shares}")
    policy = Policy.read(path)
    create_ledger(policy)
    users = UserFile(policy)
    for name in ANALYSTS:
        users.add(name, password=PASSWORD)
    discreet.open(path, tables=tables())
    return policy


class Crowd:
    """Analysts who ask until nothing is left; whoever loses its server asks the same at the other
    one.
    """

    def __init__(self) -> None:
        self.heard: dict[tuple[str, str], object] = {}
        self.numbers = dict.fromkeys(ANALYSTS, 0)
        self.faults: list[str] = []

    def ask(self, name: str, ports: list[int]) -> None:
        """Ask one question after the other, each until it is answered or refused for want of
        budget.
        """
        turn = ANALYSTS.index(name)
        for _ in range(200):
            try:
                with Client(
                    ports[turn % len(ports)], name, options=f"-c discreet.epsilon={float(EPSILON)}"
                ) as client:
                    while True:
                        sql = f"SELECT COUNT(*) AS n FROM people WHERE age <> {turn} AND age < {self.numbers[name]}"
                        reply = client.query(sql)
                        if reply.code == "53X01":
                            return
                        if not reply.tags:
                            self.faults.append(reply.code)
                            break
                        self.heard[name, sql] = reply.rows
                        self.numbers[name] += 1
            except (OSError, EOFError):
                time.sleep(0.01)
        raise AssertionError("no server answered")


def kill_rounds(policy: Policy, rounds: int) -> None:
    dice, crowd = random.Random(), Crowd()
    servers = [Served(policy.path), Served(policy.path)]
    try:
        for number in range(rounds):
            _set_limit(policy, A_ROUND * EPSILON * (number + 1))
            alive = [one.port for one in servers]
            threads = [threading.Thread(target=crowd.ask, args=(name, alive)) for name in ANALYSTS]
            before, when = len(crowd.heard), dice.randint(1, A_ROUND // 2)
            for thread in threads:
                thread.start()
            for _ in range(120_000):
                if len(crowd.heard) - before >= when:
                    break
                time.sleep(0.001)
            victim = servers.pop(dice.randrange(2))
            alive.remove(victim.port)
            victim.kill()
            for thread in threads:
                thread.join(300)
                assert not thread.is_alive()
            _require_sound(policy, crowd, A_ROUND * (number + 1))
            if number + 1 < rounds:
                servers.append(Served(policy.path))
    finally:
        for one in servers:
            one.kill()
    said = f"{rounds} rounds: {len(crowd.heard)} answers of {A_ROUND * rounds} that fit"
    print(f"{said}; {len(crowd.faults)} connections ended")


def _set_limit(policy: Policy, epsilon: Fraction) -> None:
    with Ledger.open(ledger_of(policy)) as ledger:
        limit, shares = ledger.limits
        ledger.amend(limit=Charge(amount=epsilon, delta=limit.delta), analysts=shares)


def _require_sound(policy: Policy, crowd: Crowd, fit: int) -> None:
    with Ledger.open(ledger_of(policy)) as ledger:
        ledger.verify()
        entries = ledger.entries()
        assert ledger.spent().amount == fit * EPSILON, "all that fits is spent, and no more"
    asked = [(entry.analyst, entry.text) for entry in entries]
    assert len(asked) == len(set(asked)) == fit, "a question was charged twice"
    posted = {(entry.analyst, entry.text) for entry in entries if entry.state == "posted"}
    assert set(crowd.heard) <= posted, "an answer left that the ledger does not have"
    assert len(crowd.heard) == fit, "something that was paid for was not answered"
    for name, sql in [*crowd.heard][-3:]:
        answer = discreet.open(policy.path).ask(
            sql, analyst=name, epsilon=EPSILON, dialect="postgres"
        )
        assert [(str(answer.table.column(0)[0].as_py()).encode(),)] == crowd.heard[name, sql]


def test_a_server_of_two_is_killed_once(tmp_path: Path, database: Server) -> None:
    kill_rounds(open_shared_town(tmp_path, database), 1)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_server_of_two_is_killed_twenty_times(tmp_path: Path, database: Server) -> None:
    kill_rounds(open_shared_town(tmp_path, database), 20)


def test_the_verbs_of_a_curator(
    tmp_path: Path, database: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same commands as with a file; none of them shows the address."""
    policy = open_shared_town(tmp_path, database)
    path = str(policy.path)
    assert cli.run(["ledger", path, "--verify"]) == 0
    assert cli.run(["ledger", path, "--amend"]) == 0
    assert cli.run(["ledger", path, "--rotate-key"]) == 0
    question = "SELECT COUNT(*) AS n FROM people"
    assert cli.run(["ask", path, question, "--analyst", "analyst1", "--epsilon", "0.1"]) == 0
    assert cli.run(["ledger", path, "--format", "json"]) == 0
    assert cli.run(["ledger", path, "--export-head"]) == 0
    assert cli.run(["ledger", path, "--backup", str(tmp_path / "backup")]) == 0
    assert cli.run(["ledger", path, "--create"]) == 5
    assert cli.run(["ledger", path, "--setup"]) == 0
    assert cli.run(["ledger", path, "--move-to", str(tmp_path / "moved.ledger")]) == 0
    assert cli.run(["ask", path, question, "--analyst", "analyst1", "--epsilon", "0.1"]) == 5
    assert policy.ledger_address is not None
    policy.path.write_text(policy.path.read_text().replace(policy.ledger_address, "moved.ledger"))
    assert cli.run(["ask", path, question, "--analyst", "analyst1", "--epsilon", "0.1"]) == 0
    assert cli.run(["ledger", path, "--setup"]) == 2
    said = capfd.readouterr()
    for text in (said.out, said.err):
        assert "postgresql://spender" not in text
        assert str(database.folder) not in text
    assert "was moved to a file" in said.err
    assert 'CREATE SCHEMA "town_ledger";' in said.out


def test_a_ledger_moves_to_postgres_and_back_by_the_verbs(
    tmp_path: Path, database: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """As the docs say it: the SQL is pasted, the ledger moved, the policy changed; what was spent
    and answered is known in each place, and only there.
    """
    path, analyst = tmp_path / "town.yaml", ["--analyst", "analyst1", "--epsilon", "0.1"]
    shares = "analysts:\n  analyst1: {epsilon: 1}\n"
    in_a_file = POLICY.partition("analysts:")[0] + shares
    path.write_text(in_a_file)
    create_ledger(Policy.read(path))
    discreet.open(path, tables=tables())

    def ledger(*options: str) -> int:
        return cli.run(["ledger", str(path), *options])

    def ask(column: str) -> int:
        question = f"SELECT {column}, COUNT(*) AS n FROM people GROUP BY {column}"
        return cli.run(["ask", str(path), question, *analyst])

    assert ask("sex") == 0
    assert "cost ε = 0.1" in capfd.readouterr().out
    address = f"postgresql://mover@/postgres?host={database.folder}"
    assert ledger("--move-to", address) == 5  # there are no tables yet
    assert ask("sex") == 0
    capfd.readouterr()
    assert ledger("--setup", "--move-to", address) == 0
    with psycopg.connect(database.address, autocommit=True) as administrator:
        administrator.execute(capfd.readouterr().out.encode())
    assert ledger("--move-to", address) == 0
    assert ask("sex") == 5
    path.write_text(f"ledger: '{address}'\n{in_a_file}")
    assert ledger("--verify") == ask("sex") == ask("smoker") == 0
    said = capfd.readouterr().out
    assert said.count("free: asked before") == said.count("cost ε = 0.1") == 1
    assert ledger("--move-to", str(tmp_path / "back.ledger")) == 0
    assert ask("sex") == 5
    path.write_text(f"ledger: back.ledger\n{in_a_file}")
    assert ledger("--verify") == ask("sex") == ask("smoker") == 0
    assert capfd.readouterr().out.count("free: asked before") == 2
    with Ledger.open(ledger_of(Policy.read(path))) as moved:
        assert moved.spent().amount == Fraction(2, 10)
