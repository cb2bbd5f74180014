"""docs/ledger.md: its code runs, and its table of errors quotes what the ledger says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from small_ledger import ask, charge, recalled, released, some_terms

import discreet.ledger
from discreet.accounting import SumAccountant
from discreet.ledger import Ledger
from discreet.ledger.place import Place
from discreet.ledger.stores.rights import setup

DOCS = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text()
SOURCE = "".join(
    file.read_text() for file in sorted(Path(discreet.ledger.__file__).parent.rglob("*.py"))
)


@pytest.fixture
def place(path: Path) -> Place:
    """All here is about files."""
    return Place(path=path)


def section(title: str) -> str:
    return DOCS.split(f"\n## {title}\n")[1].split("\n## ")[0]


def code(title: str) -> str:
    [block] = re.findall(r"```python\n(.*?)```", section(title), re.DOTALL)
    return str(block)


def test_the_backup_is_a_ledger(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    Path("backup").mkdir()
    answer = released(ledger)
    waiting = ask(ledger, "waiting")
    exec(code("Backup"))
    Path("hospital.ledger.key").rename("backup/hospital.ledger.key")
    with Ledger.open("backup/hospital.ledger", some_terms()) as backup:
        assert backup.verify(ledger.head()) == 4
        assert recalled(backup) == [answer]
        assert ask(backup, "waiting").key == waiting.key


def test_what_was_spent_is_carried_over(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    ask(ledger)
    names = {
        "Ledger": Ledger,
        "accountant": SumAccountant(),
        "terms": some_terms(neighbors="change_one"),
    }
    exec(code("Changing what a ledger is bound to"), names)
    with Ledger.open("hospital-2.ledger") as new:
        assert new.spent("curator") == new.spent() == charge("1/5")


@pytest.mark.parametrize("said", re.findall(r"^\| ([^|]+) \|", section("Errors"), re.MULTILINE)[2:])
def test_errors_are_quoted_as_they_are_said(said: str) -> None:
    text = re.sub(r'"\s*\n\s*f?"', "", SOURCE)  # strings over several lines
    parts = [part.strip(" .,") for part in re.split(r"…| / |\bN\b", said)]
    for part in filter(None, parts):
        assert part in text, part
    assert any(parts)


def test_every_sentence_names_a_section_that_exists() -> None:
    for title in re.findall(r"docs/ledger\.md, ([^)]+)\)", re.sub(r'"\s*\n\s*f?"', "", SOURCE)):
        assert f"\n## {title}\n" in DOCS


def test_the_sql_to_paste_is_what_is_printed() -> None:
    [block] = re.findall(
        r"```sql\n(.*?)```", section("A ledger that several servers share"), re.DOTALL
    )
    assert block.split("\n", 1)[1] == setup("hospital_ledger", "hospital_spender")
