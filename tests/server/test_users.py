"""Users on disk, tokens, the gate: everything is denied unless the file says otherwise."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from discreet.cli import run
from discreet.errors import UsageError
from discreet.policy.policy import Policy
from discreet.server.auth import FREE_TRIES, LONGEST_WAIT, Denied, Gate
from discreet.server.users import UserFile

POLICY = """\
unit: person
tables: {people: {owner: id, columns: {id: {identifier: true}, age: {integer: [0, 9]}}}}
budget: {epsilon: 1}
analysts: {alice: {epsilon: 1}, bob: {epsilon: 1}}
"""
PASSWORD = "correct horse battery"
HERE = "127.0.0.1"


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "town.yaml"
    path.write_text(POLICY)
    return Policy.read(path)


@pytest.fixture
def users(policy: Policy) -> UserFile:
    file = UserFile(policy)
    file.add("alice", password=PASSWORD)
    return file


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_file_is_its_owners_and_holds_no_password(users: UserFile) -> None:
    assert users.path.name == "town.ledger.users"
    assert stat.S_IMODE(users.path.stat().st_mode) == 0o600
    token = users.add_token("alice")
    text = users.path.read_text()
    assert PASSWORD not in text
    assert token.split("_")[2] not in text
    users.path.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        UserFile(users._policy).read()


def test_a_user_is_an_analyst_of_the_policy(users: UserFile) -> None:
    with pytest.raises(UsageError, match="no analyst of the policy"):
        users.add("mallory")
    with pytest.raises(UsageError, match="already"):
        users.add("alice")
    with pytest.raises(UsageError, match="the role is analyst"):
        users.add("bob", role="curator")
    users.add("carol", role="curator")
    users.add("dave", role="auditor")
    found = users.read().users
    assert [found[name].analyst for name in ("alice", "carol", "dave")] == [
        "alice",
        "curator",
        None,
    ]


def test_passwords_are_long_or_made(users: UserFile) -> None:
    with pytest.raises(UsageError, match="at least 12"):
        users.add("bob", password="short")
    made = users.add("bob")
    assert made is not None
    assert Gate(users).password("bob", made, address=HERE).name == "bob"


def test_wrong_unknown_and_locked_are_one_answer(users: UserFile) -> None:
    gate, said = Gate(users), set()
    users.add("bob", password=PASSWORD)
    users.lock("bob")
    for name, password in (
        ("alice", "wrong"),
        ("mallory", "wrong"),
        ("mallory", PASSWORD),
        ("bob", PASSWORD),
    ):
        with pytest.raises(Denied) as refused:
            gate.password(name, password, address=HERE)
        said.add((str(refused.value), refused.value.wait))
    assert said == {("The user name or the password is wrong.", None)}
    assert gate.password("alice", PASSWORD, address=HERE).name == "alice"
    users.lock("bob", locked=False)
    assert gate.password("bob", PASSWORD, address=HERE).name == "bob"


def test_scram_of_an_unknown_user_goes_the_same_way(users: UserFile) -> None:
    gate = Gate(users)
    replies = [
        gate.begin(name, address=HERE).first(b"n,,n=,r=abc")
        for name in ("alice", "mallory", "mallory")
    ]
    shapes = [[(part[:2], len(part)) for part in reply.split(b",")] for reply in replies]
    assert shapes[0] == shapes[1] == shapes[2]
    assert replies[1].split(b",")[1] == replies[2].split(b",")[1]


@pytest.mark.parametrize("name", ["alice", "mallory"])
def test_whoever_fails_often_waits_longer_and_longer(users: UserFile, name: str) -> None:
    clock = Clock()
    gate = Gate(users, clock=clock)
    for _ in range(FREE_TRIES["name"]):
        with pytest.raises(Denied) as refused:
            gate.password(name, "wrong", address=HERE)
        assert refused.value.wait is None
    waits = []
    for _ in range(12):
        with pytest.raises(Denied) as refused:
            gate.password(name, PASSWORD, address=HERE)
        assert refused.value.wait is not None
        waits.append(refused.value.wait)
        clock.now += refused.value.wait
        with pytest.raises(Denied):
            gate.password(name, "wrong", address=HERE)
    assert waits == sorted(waits)
    assert waits[0] == 2
    assert waits[-1] == LONGEST_WAIT
    clock.now += LONGEST_WAIT
    if name == "alice":
        assert gate.password(name, PASSWORD, address=HERE).name == "alice"


def test_logins_that_began_together_wait_too(users: UserFile) -> None:
    """A hundred connections began before the first of them failed: each would have been a guess."""
    clock = Clock()
    gate = Gate(users, clock=clock)
    begun = [gate.begin("alice", address=HERE) for _ in range(100)]
    for attempt in begun[: FREE_TRIES["name"]]:
        with pytest.raises(Denied) as refused:
            gate.finish(attempt.name, attempt.address, proved=False)
        assert refused.value.wait is None
    for attempt in begun[FREE_TRIES["name"] :]:
        with pytest.raises(Denied) as refused:
            gate.finish(attempt.name, attempt.address, proved=True)
        assert refused.value.wait == 2
    clock.now += 2
    assert gate.finish("alice", HERE, proved=True).name == "alice"


def test_an_address_that_tries_many_names_waits_too(users: UserFile) -> None:
    gate = Gate(users, clock=Clock())
    for index in range(FREE_TRIES["address"]):
        with pytest.raises(Denied):
            gate.password(f"user{index}", "wrong", address="192.0.2.1")
    with pytest.raises(Denied) as refused:
        gate.password("alice", PASSWORD, address="192.0.2.1")
    assert refused.value.wait is not None
    assert gate.password("alice", PASSWORD, address=HERE).name == "alice"


def test_tokens(users: UserFile, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, token, short = Gate(users), users.add_token("alice"), users.add_token("alice", days=1)
    assert gate.token(token, address=HERE).name == "alice"
    assert gate.token(short, address=HERE).name == "alice"
    for wrong in (
        "",
        "dsc__",
        token[:-1] + ("0" if token[-1] != "0" else "1"),
        token.split("_")[2],
    ):
        with pytest.raises(Denied):
            Gate(users).token(wrong, address=HERE)
    made = users.read().users["alice"].tokens[1].made
    monkeypatch.setattr("time.time", lambda: made + 86_400)
    with pytest.raises(Denied) as ended:
        gate.token(short, address=HERE)
    with pytest.raises(Denied) as unknown:
        gate.token("dsc_0123_4567", address=HERE)
    assert "discreet user token POLICY NAME" in str(ended.value)
    assert str(ended.value) == str(unknown.value)
    assert gate.token(token, address=HERE).name == "alice"
    users.remove_token("alice", token.split("_")[1])
    with pytest.raises(Denied):
        gate.token(token, address=HERE)
    with pytest.raises(UsageError, match="no token"):
        users.remove_token("alice", "nonsense")


@pytest.mark.parametrize("change", ["remove", "lock", "anew"])
def test_who_is_gone_is_refused_at_once(users: UserFile, policy: Policy, change: str) -> None:
    gate = Gate(UserFile(policy))
    user = gate.password("alice", PASSWORD, address=HERE)
    assert gate.still(user) == user
    users.lock("alice") if change == "lock" else users.remove("alice")
    if change == "anew":
        users.add("alice", password=PASSWORD)
    with pytest.raises(Denied):
        gate.still(user)


def test_a_damaged_file_lets_nobody_in(users: UserFile) -> None:
    whole = json.loads(users.path.read_text())
    for wrong in (
        "",
        "[]",
        "{}",
        json.dumps(whole | {"format": 2}),
        json.dumps(whole | {"users": {"alice": {}}}),
    ):
        users.path.write_text(wrong)
        with pytest.raises(UsageError, match="damaged"):
            Gate(users).password("alice", PASSWORD, address=HERE)


def test_changes_at_the_same_time_are_all_kept(policy: Policy) -> None:
    names = [f"auditor{index}" for index in range(8)]
    threads = [
        threading.Thread(target=UserFile(policy).add, args=(name,), kwargs={"role": "auditor"})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(UserFile(policy).read().users) == names


def test_the_command(policy: Policy, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(policy.path)
    assert run(["user", "list", path]) == 0
    assert "Nobody may log in" in capsys.readouterr().out
    assert run(["user", "add", path, "alice"]) == 0
    password = capsys.readouterr().out.split()[-1]
    assert Gate(UserFile(policy)).password("alice", password, address=HERE).role == "analyst"
    assert run(["user", "token", path, "alice", "--days", "30"]) == 0
    token = capsys.readouterr().out.strip()
    assert Gate(UserFile(policy)).token(token, address=HERE).name == "alice"
    assert run(["user", "list", path, "--format", "json"]) == 0
    [listed] = json.loads(capsys.readouterr().out)["users"]
    assert (listed["name"], listed["role"], listed["locked"]) == ("alice", "analyst", False)
    assert run(["user", "list", path]) == 0
    assert f"token {token.split('_')[1]}" in capsys.readouterr().out
    assert run(["user", "token", path, "alice", "--revoke", token.split("_")[1]]) == 0
    assert run(["user", "lock", path, "alice"]) == 0
    assert run(["user", "unlock", path, "alice"]) == 0
    assert run(["user", "remove", path, "alice"]) == 0
    assert UserFile(policy).read().users == {}
    capsys.readouterr()
    assert run(["user", "remove", path, "alice"]) == 2
    assert run(["user", "add", path, "alice", "--role", "king"]) == 2
    assert run(["user", "list", path, "--format", "csv"]) == 2
