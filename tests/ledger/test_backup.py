"""Copies of a ledger: whole and of one moment, for this account alone; and that none gives budget
back.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import discreet
from discreet import cli
from discreet.binding import create_ledger
from discreet.errors import BudgetExceeded, LedgerUnavailable, UsageError
from discreet.ledger import Ledger
from discreet.ledger.backup import backup, restore
from discreet.policy.policy import Policy

TABLE = {"t": pa.table({"id": [1, 2], "x": [1, 2]})}


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "p.yaml"
    path.write_text(
        "source: data\nunit: person\ntables: {t: {owner: id, columns: {x: {integer: [0, 9]}}}}\nbudget: {epsilon: 3}\n"
        "limits: {epsilon: 3}\nanalysts: {ann: {epsilon: 2}}\n"
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "t.csv").write_text("id,x\n1,1\n2,2\n")
    create_ledger(Policy.read(path))
    ask(path, 0)
    return path


def ask(path: Path, place: int, epsilon: str = "0.5") -> None:
    discreet.open(path).ask(
        f"SELECT COUNT(*) FROM t WHERE x > {place}", analyst="ann", epsilon=epsilon
    )


def moved_away(path: Path) -> Path:
    """As if the disk were lost."""
    for file in path.parent.glob("p.ledger*"):
        file.rename(file.with_name(f"lost-{file.name}"))
    return path.parent / "p.ledger"


def head_of(path: Path) -> dict[str, object]:
    with Ledger.open(path.parent / "p.ledger") as book:
        return book.head()


def test_a_backup_is_whole_and_for_one_account(policy: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    rows = backup(tmp_path / "p.ledger", folder)
    assert sorted(file.name for file in folder.iterdir()) == [
        "p.ledger",
        "p.ledger.head",
        "p.ledger.key",
    ]
    assert {oct(file.stat().st_mode)[-3:] for file in folder.iterdir()} == {"600"}
    assert oct(folder.stat().st_mode)[-3:] == "700"
    assert rows == head_of(policy)["number"]
    with Ledger.open(folder / "p.ledger") as copy, Ledger.open(tmp_path / "p.ledger") as book:
        assert list(copy.rows()) == list(book.rows())
    with pytest.raises(UsageError, match="overwrites nothing"):
        backup(tmp_path / "p.ledger", folder)
    with pytest.raises(UsageError, match=r"no folder .*nowhere\. Make it first"):
        backup(tmp_path / "p.ledger", tmp_path / "nowhere" / "monday")


def test_put_back_with_its_head_nothing_is_missing(policy: Path, tmp_path: Path) -> None:
    backup(tmp_path / "p.ledger", tmp_path / "backup")
    head = head_of(policy)
    with pytest.raises(LedgerUnavailable, match="never overwritten"):
        restore(tmp_path / "backup", tmp_path / "p.ledger", head=head)
    moved_away(policy)
    assert restore(tmp_path / "backup", tmp_path / "p.ledger", head=head)
    ask(policy, 0)  # stored
    assert head_of(policy) == head
    ask(policy, 1)


@pytest.mark.parametrize("later", [0, 2])
def test_an_older_copy_gives_no_budget_back(policy: Path, tmp_path: Path, later: int) -> None:
    """Whatever was spent after the backup, at most what is left then can be spent: nothing, until
    an amendment.
    """
    backup(tmp_path / "p.ledger", tmp_path / "backup")
    for place in range(later):
        ask(policy, 5 + place)
    head = head_of(policy)
    moved_away(policy)
    assert not restore(tmp_path / "backup", tmp_path / "p.ledger", head=head if later else None)
    assert cli.run(["snapshot", str(policy), "--quiet"]) == 0
    with pytest.raises(BudgetExceeded):
        ask(policy, 1, "0.01")
    assert cli.run(["ledger", str(policy), "--amend"]) == 0
    ask(policy, 1)


def test_an_open_charge_does_not_go_on(policy: Path, tmp_path: Path) -> None:
    backup(tmp_path / "p.ledger", tmp_path / "backup")
    number = Ledger.open(tmp_path / "p.ledger").snapshot
    moved_away(policy)
    restore(tmp_path / "backup", tmp_path / "p.ledger", head=None)
    assert Ledger.open(tmp_path / "p.ledger").snapshot == number + 1
    with pytest.raises(UsageError, match="Take a new one"):
        discreet.open(policy)


def test_a_backup_while_others_ask(policy: Path, tmp_path: Path) -> None:
    done = threading.Event()

    def asking() -> None:
        for place in range(3):
            ask(policy, 5 + place, "0.1")
        done.set()

    thread = threading.Thread(target=asking)
    thread.start()
    copies = 0
    while copies < 2 or (not done.is_set() and copies < 20):
        backup(tmp_path / "p.ledger", tmp_path / f"backup{copies}")  # verifies the copy
        copies += 1
    thread.join()
    heads = [
        json.loads((tmp_path / f"backup{each}" / "p.ledger.head").read_text())["number"]
        for each in range(copies)
    ]
    assert heads == sorted(heads)


def test_a_damaged_backup_is_not_put_back(policy: Path, tmp_path: Path) -> None:
    backup(tmp_path / "p.ledger", tmp_path / "backup")
    moved_away(policy)
    (tmp_path / "backup" / "p.ledger.key").write_bytes(b"x" * 32)
    with pytest.raises(LedgerUnavailable):
        restore(tmp_path / "backup", tmp_path / "p.ledger", head=None)
    assert not (tmp_path / "p.ledger").exists()
    with pytest.raises(UsageError, match=r"There is no p\.ledger"):
        restore(tmp_path / "data", tmp_path / "p.ledger", head=None)


def test_the_commands(policy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["ledger", str(policy), "--export-head"]) == 0
    (tmp_path / "head.json").write_text(capfd.readouterr().out)
    assert cli.run(["ledger", str(policy), "--backup", str(tmp_path / "b")]) == 0
    assert "Copied" in capfd.readouterr().out
    moved_away(policy)
    words = ["ledger", str(policy), "--restore", str(tmp_path / "b")]
    assert cli.run([*words, "--head", str(tmp_path / "head.json")]) == 0
    assert "nothing is missing" in capfd.readouterr().out
    for file in tmp_path.glob("p.ledger*"):
        file.unlink()
    assert cli.run(words) == 0
    assert "NOTHING LEFT TO SPEND" in capfd.readouterr().out
    assert cli.run(["ledger", str(policy), "--backup", "x", "--restore", "y"]) == 2


def test_an_amendment_shows_before_and_after(
    policy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = policy.read_text().replace(
        "{ann: {epsilon: 2}}", "{ann: {epsilon: 1}, bob: {epsilon: 1}}"
    )
    policy.write_text(text.replace("budget: {epsilon: 3}", "budget: {epsilon: 4}"))
    assert cli.run(["check", str(policy)]) == 0
    assert (
        "all: ε = 3 before, ε = 4 now; ann: ε = 2 before, ε = 1 now; bob: nothing before"
        in capfd.readouterr().out
    )
    assert cli.run(["ledger", str(policy), "--amend"]) == 0
    assert capfd.readouterr().out.splitlines() == [
        "The limits are recorded.",
        "- all: ε = 3 before, ε = 4 now",
        "- ann: ε = 2 before, ε = 1 now",
        "- bob: nothing before, ε = 1 now",
    ]
    assert cli.run(["ledger", str(policy), "--amend"]) == 0
    assert capfd.readouterr().out == "The limits are already those of the policy.\n"
