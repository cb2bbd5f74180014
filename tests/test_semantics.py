"""docs/semantics.md: every rule that the code names has its heading, and what the page names
exists.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "semantics.md").read_text()
RULES = dict(re.findall(r"^## (S\d+)\. [^\n]+\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
SOURCES = {path: path.read_text() for path in sorted((ROOT / "src").rglob("*.py"))}
TESTS = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("*.py"))}


def named(rule: str, line: str) -> list[str]:
    """What stands in backquotes behind `Kept in:` or `Held by:`."""
    return re.findall(
        r"`([^`]+)`", RULES[rule].split(line)[1].split("\n\n")[0].split("Held by:")[0]
    )


def test_the_rules_are_numbered_from_1_to_24() -> None:
    assert list(RULES) == [f"S{number}" for number in range(1, 25)]


def test_every_rule_that_the_code_names_has_its_heading() -> None:
    for path, text in SOURCES.items():
        for rule in re.findall(r"\bS\d{1,2}\b", text):
            assert rule in RULES, (
                f"{path.relative_to(ROOT)} names {rule}, which docs/semantics.md does not have"
            )


@pytest.mark.parametrize("rule", RULES)
def test_where_a_rule_is_kept_exists(rule: str) -> None:
    names = named(rule, "Kept in:")
    assert names
    for name in names:
        if name.endswith(".py"):
            assert any(path.as_posix().endswith(f"/{name}") for path in SOURCES), (
                f"{rule}: there is no {name}"
            )
        else:
            last = re.escape(name.split(".")[-1])
            assert any(
                re.search(rf"\b(?:class|def) {last}\b", text) for text in SOURCES.values()
            ), f"{rule}: {name}"


@pytest.mark.parametrize("rule", RULES)
def test_what_holds_a_rule_exists(rule: str) -> None:
    names = named(rule, "Held by:")
    assert names
    for name in names:
        file, test = name.split("::")
        texts = [text for path, text in TESTS.items() if path.name == file]
        assert any(f"def {test}(" in text for text in texts), f"{rule}: there is no {name}"


def test_most_rules_are_named_where_they_are_kept() -> None:
    named_in_code = {
        rule for text in SOURCES.values() for rule in re.findall(r"\bS\d{1,2}\b", text)
    }
    assert len(named_in_code) >= 20
