"""A ledger that something else has written to: noticed, or the change is one that changes nothing
that is ever read.

Detected means: `open` or `verify` raises. A bit of the file may also lie in space that SQLite does
not use; turning it changes no row, key, answer or table, which is what these tests then check. None
may change what the ledger says unseen.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from small_ledger import ask, charge, noisy, recalled, some_terms

from discreet.errors import DiscreetError, LedgerUnavailable
from discreet.ledger import Ledger
from discreet.ledger.place import Place
from discreet.ledger.stores import sqlite

RANDOM = random.SystemRandom()
FALSE_ALARM = 1e-9


@pytest.fixture
def place(path: Path) -> Place:
    """All here is about files."""
    return Place(path=path)


def copied(path: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(path.parent, folder)
    return folder / path.name


def meaning(path: Path) -> list[Any]:
    """Everything that can be read from the file, without the ledger's own code."""
    connection = sqlite3.connect(path)
    try:
        tables = [
            connection.execute(f"SELECT * FROM {name}").fetchall()
            for name in ("rows", "keys", "answers")
        ]
        marks = [
            connection.execute(f"PRAGMA {name}").fetchall()
            for name in ("application_id", "user_version")
        ]
        return [*tables, *marks, connection.execute("SELECT * FROM sqlite_master").fetchall()]
    finally:
        connection.close()


def unnoticed(path: Path, head: dict[str, Any] | None) -> bool:
    try:
        with Ledger.open(path) as ledger:
            ledger.verify(head)
    except DiscreetError as error:
        assert isinstance(error, LedgerUnavailable), error  # noqa: PT017 (any other error is a defect)
        return False
    return True


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def left_by_a_killed_process(path: Path, charges: int) -> None:
    """Charges that are still in the log, because nobody closed the ledger."""
    child = os.fork()
    if child == 0:
        ledger = Ledger.open(path)
        for i in range(charges):
            reservation = ask(ledger, f"later{i}", analyst="bob")
            if i % 2:
                ledger.post(reservation, noisy(reservation))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def flips(
    path: Path, file: Path, places: list[int] | range, count: int, folder: Path
) -> tuple[int, int]:
    """Turn one bit at a time; how many were noticed, and how many lay where nobody reads."""
    with Ledger.open(copied(path, folder)) as ledger:
        head = ledger.head()
    before, noticed = meaning(copied(path, folder)), 0
    for _ in range(count):
        copy = copied(path, folder)
        place = RANDOM.choice(places)
        flip(copy.with_name(file.name), 8 * place + RANDOM.randrange(8))
        if unnoticed(copy, head):
            assert meaning(copy) == before, f"turning a bit of byte {place} went unnoticed"
        else:
            noticed += 1
    return noticed, count - noticed


def content_places(path: Path) -> list[int]:
    """Where in the file the bytes of rows, MACs, sealed keys and answers lie, other than by
    chance.
    """
    content, places = path.read_bytes(), set[int]()
    for table in meaning(path)[:3]:
        for value in (value for row in table for value in row if isinstance(value, (str, bytes))):
            text = value.encode() if isinstance(value, str) else value
            start = content.find(text)
            if start >= 0:  # longer ones are split over pages
                places.update(range(start, start + len(text)))
    return sorted(places)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_flipped_bit_changes_what_a_ledger_says(
    filled: Callable[[int], Path], tmp_path: Path, count: int
) -> None:
    path = filled(60)
    noticed, unread = flips(path, path, range(path.stat().st_size), count, tmp_path / "copy")
    print(f"{count} flips anywhere in the file: {noticed} noticed, {unread} in unused space")
    # of which every one is noticed, as the next test has it
    content = len(content_places(path)) / path.stat().st_size
    assert noticed >= stats.binom.ppf(FALSE_ALARM, count, content)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_every_flipped_bit_of_the_content_is_noticed(
    filled: Callable[[int], Path], tmp_path: Path, count: int
) -> None:
    path = filled(60)
    places = content_places(path)
    assert len(places) > path.stat().st_size / 2
    assert flips(path, path, places, count, tmp_path / "copy") == (count, 0)


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_flipped_bit_of_the_log_changes_what_a_ledger_says(
    filled: Callable[[int], Path], tmp_path: Path, count: int
) -> None:
    path = filled(6)
    left_by_a_killed_process(path, 20)
    log = path.with_name(path.name + "-wal")
    noticed, unread = flips(path, log, range(log.stat().st_size), count, tmp_path / "copy")
    print(f"{count} flips anywhere in the log: {noticed} noticed, {unread} in unused space")
    assert noticed > count / 2


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", ["", "-wal", ".key", ".head"])
def test_a_truncated_file_is_noticed(
    filled: Callable[[int], Path], tmp_path: Path, suffix: str, count: int
) -> None:
    path = filled(6)
    left_by_a_killed_process(path, 12)
    size, before = (
        path.with_name(path.name + suffix).stat().st_size,
        meaning(copied(path, tmp_path / "copy")),
    )
    noticed = 0
    for _ in range(count):
        copy = copied(path, tmp_path / "copy")
        os.truncate(copy.with_name(copy.name + suffix), RANDOM.randrange(size - 1))
        if unnoticed(copy, None):
            assert suffix == ""  # the pages cut off are all in the log as well
            assert meaning(copy) == before
        else:
            noticed += 1
    # 88 of 100 cuts of the file itself, all of the others
    assert noticed >= stats.binom.ppf(FALSE_ALARM, count, 0.85)


SWAPS = {  # in a ledger of: terms 1, charge 2, charge 3, post 4, charge 5, post 6, charge 7
    "two bodies": "UPDATE rows SET body = (SELECT body FROM rows r WHERE r.number = 9 - rows.number) "
    "WHERE number IN (4, 5)",
    "two rows": "UPDATE rows SET number = -number WHERE number IN (4, 5);"
    "UPDATE rows SET number = 9 + number WHERE number < 0",
    "a row gone": "DELETE FROM rows WHERE number = 5",
    "the last row gone": "DELETE FROM rows WHERE number = 7",
    "a row gone and closed up": "DELETE FROM rows WHERE number = 5;"
    "UPDATE rows SET number = number - 1 WHERE number > 5",
    "a row twice": "INSERT INTO rows SELECT 8, body, mac FROM rows WHERE number = 5",
    "a row before the first": "INSERT INTO rows SELECT -3, body, mac FROM rows WHERE number = 4",
    "a row of nothing": "INSERT INTO rows SELECT 8, '{}', mac FROM rows WHERE number = 7",
    "a row that is no object": "INSERT INTO rows SELECT 8, '[]', mac FROM rows WHERE number = 7",
    "a row that names a key": """INSERT INTO rows VALUES (8, '{"kind":"key","key":"x"}', x'00')""",
    "a cheaper charge": "UPDATE rows SET body = replace(body, '1/10', '1/99') WHERE number = 5",
    "a body of bytes": "UPDATE rows SET body = CAST(body AS BLOB) WHERE number = 5",
    "a MAC of text": "UPDATE rows SET mac = 'mac' WHERE number = 5",
    "two sealed keys": "UPDATE keys SET charge = -charge; UPDATE keys SET charge = 9 + charge",
    "a sealed key gone": "DELETE FROM keys WHERE charge = 2",
    "a sealed key more": "INSERT INTO keys SELECT 3, sealed FROM keys WHERE charge = 2",
    "a sealed key of text": "UPDATE keys SET sealed = 'key' WHERE charge = 2",
    "two answers": "UPDATE answers SET answer = (SELECT answer FROM answers a WHERE a.charge != answers.charge)",
    "an answer to another question": "UPDATE answers SET question = (SELECT max(question) FROM answers)",
    "an answer by nobody": "UPDATE answers SET post = 2",
    "an answer gone": "DELETE FROM answers WHERE charge = 3",
    "an answer more": "INSERT INTO answers SELECT 2, post, question, answer FROM answers WHERE charge = 3",
    "a trigger": "CREATE TRIGGER t BEFORE INSERT ON rows BEGIN SELECT RAISE(IGNORE); END",
    "a table": "CREATE TABLE more (x)",
    "a view for a table": "ALTER TABLE keys RENAME TO k; CREATE VIEW keys AS SELECT * FROM k",
    "another version": "PRAGMA user_version = 2",
    "another application": "PRAGMA application_id = 1",
}


@pytest.mark.parametrize("change", SWAPS)
def test_rows_swapped_removed_or_added_are_noticed(
    filled: Callable[[int], Path], change: str
) -> None:
    path = filled(4)
    before = meaning(path)
    _write(path, SWAPS[change])
    assert meaning(path) != before
    assert not unnoticed(path, None)


def _write(path: Path, statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    kept = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    for name, _ in kept:
        connection.execute(f"DROP TRIGGER {name}")
    connection.executescript(statements)
    for _, definition in kept:
        connection.execute(definition)
    connection.close()


def test_the_file_itself_refuses_to_change_rows(filled: Callable[[int], Path]) -> None:
    connection = sqlite3.connect(filled(2))
    for statement in ("DELETE FROM rows", "UPDATE rows SET body = ''"):
        with pytest.raises(sqlite3.IntegrityError, match="rows"):
            connection.execute(statement)
    connection.close()


def test_tampering_while_in_use_is_noticed_by_the_next_question(ledger: Ledger, path: Path) -> None:
    ask(ledger)
    _write(path, "INSERT INTO rows SELECT 3, body, mac FROM rows WHERE number = 2")
    for _ in range(2):
        with pytest.raises(
            LedgerUnavailable,
            match=r"Row 3 of hospital\.ledger was not written with this ledger's key",
        ):
            ask(ledger, "other")
    _write(path, "DELETE FROM rows WHERE number > 1")
    with pytest.raises(LedgerUnavailable, match=r"once had row 2"):
        ask(ledger, "other")


def test_a_trigger_that_swallows_charges_is_noticed_by_the_next_question(
    ledger: Ledger, path: Path
) -> None:
    ask(ledger)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER t BEFORE INSERT ON rows BEGIN SELECT RAISE(IGNORE); END")
    connection.close()
    with pytest.raises(LedgerUnavailable, match="other tables than a ledger has"):
        ask(ledger, "other")


def test_a_changed_answer_is_not_recalled(ledger: Ledger, path: Path) -> None:
    ledger.post(ask(ledger), b"answer")
    _write(path, "UPDATE answers SET answer = x'00'")
    with pytest.raises(LedgerUnavailable, match="does not belong to the answer"):
        recalled(ledger)


def test_an_older_copy_is_noticed_here(filled: Callable[[int], Path], tmp_path: Path) -> None:
    path = filled(3)
    older = copied(path, tmp_path / "older").read_bytes()
    with Ledger.open(path) as ledger:
        ask(ledger, "later", analyst="bob")
    path.write_bytes(older)
    with pytest.raises(
        LedgerUnavailable, match=r"once had row 7 and no longer has it.*Put the newest copy back"
    ):
        Ledger.open(path)


def test_an_older_copy_of_everything_is_noticed_by_an_exported_head(
    filled: Callable[[int], Path], tmp_path: Path
) -> None:
    path = filled(3)
    older = copied(path, tmp_path / "older")
    with Ledger.open(path) as ledger:
        ask(ledger, "later", analyst="bob")
        head = ledger.head()
    with Ledger.open(older) as ledger:
        ledger.verify()
        with pytest.raises(LedgerUnavailable, match="once had row 7"):
            ledger.verify(head)
        ask(ledger, "something else", analyst="bob")  # a second history of the same length
        with pytest.raises(LedgerUnavailable, match="once had row 7"):
            ledger.verify(head)


def test_a_lost_log_is_noticed(filled: Callable[[int], Path]) -> None:
    path = filled(3)
    left_by_a_killed_process(path, 2)
    path.with_name(path.name + "-wal").unlink()
    with pytest.raises(LedgerUnavailable, match="its log was lost"):
        Ledger.open(path)


def test_a_head_of_another_ledger_or_of_nothing(ledger: Ledger, tmp_path: Path) -> None:
    with (
        Ledger.create(tmp_path / "other.ledger", some_terms()) as other,
        pytest.raises(LedgerUnavailable, match="another"),
    ):
        ledger.verify(other.head())
    for wrong in (
        {},
        {"ledger": "x"},
        {**ledger.head(), "mac": "zz"},
        {**ledger.head(), "number": None},
        {**ledger.head(), "mac": 7},
    ):
        with pytest.raises(DiscreetError, match="what --export-head writes"):
            ledger.verify(wrong)


@pytest.mark.parametrize("number", [0, -1, 2, 10**30])
def test_a_head_of_a_row_that_is_not_there(ledger: Ledger, number: int) -> None:
    with pytest.raises(LedgerUnavailable, match=f"once had row {number}"):
        ledger.verify({**ledger.head(), "number": number})


def test_a_key_of_another_ledger(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    Ledger.create(tmp_path / "other.ledger", some_terms()).close()
    ledger.close()
    shutil.copy(tmp_path / "other.ledger.key", path.with_name("hospital.ledger.key"))
    with pytest.raises(
        LedgerUnavailable, match=r"hospital\.ledger\.key is not the key of hospital\.ledger"
    ):
        Ledger.open(path)


def test_who_holds_the_key_still_cannot_overdraw(ledger: Ledger, path: Path) -> None:
    """Sums are recomputed, so a row with a good MAC and a wrong sum (a bug, say) is refused as
    well.
    """
    cases = {
        "spends more than there was": {"cost": {"amount": "2", "delta": "0"}},
        "does not add up": {"spent": {}},
        "is about another snapshot": {"snapshot": 9},
        "is paid by nobody": {"analyst": "mallory"},
        "has a cost that no question has": {"cost": {"amount": "0", "delta": "0"}},
        r"cannot be read \(KeyError\)": {"kind": "gift"},
    }
    ask(ledger)
    body = ledger.rows()[-1]
    ledger.close()
    for said, change in cases.items():
        copy = copied(path, path.parent / "copy")
        with Ledger.open(copy) as other:
            with other._journal.session(write=True):
                other._journal.append({**body, **change})
            with pytest.raises(LedgerUnavailable, match=said):
                other.spent()
    assert charge("1/10") == Ledger.open(path).spent()


def test_a_row_that_vanishes_while_the_ledger_is_open(ledger: Ledger, path: Path) -> None:
    """What was read before is not read again, except where an answer hangs on it."""
    for question in ("first", "second"):
        reservation = ask(ledger, question)
        ledger.post(reservation, noisy(reservation))
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER rows_are_kept")
        other.execute("DELETE FROM rows WHERE number = 2")
        other.execute(sqlite._SCHEMA["trigger", "rows_are_kept", "rows"])
    other.close()
    with pytest.raises(LedgerUnavailable, match=r"Row 2 of hospital\.ledger is missing"):
        recalled(ledger, "first", at_least=1)
    assert not unnoticed(path, None)
