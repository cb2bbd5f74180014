"""The site of `make docs`: it builds without a warning, loads nothing from elsewhere, and its
commands are real.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import discreet
from discreet import cli
from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        # Without --quiet, under which mkdocs counts no warning and --strict fails at nothing.
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr  # also for a link that leads nowhere
    return folder


def test_every_page_is_built_and_can_be_reached(site: Path) -> None:
    home = (site / "index.html").read_text()
    for page in PAGES:
        built = page.relative_to(DOCS).with_suffix(".html")
        assert (site / built).is_file(), page
        assert f'href="{built}"' in home or str(built) == "index.html", (
            f"{page.name} is not in the navigation"
        )


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", page.read_text()):
            assert not re.search(r'(?:src|href)="?(?:https?:)?//', tag), (page.name, tag)
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//", sheet.read_text()), sheet.name


def test_the_reference_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text()
    for name in discreet.__all__:
        assert re.search(rf'id="discreet\.(?:[a-z_.]+\.)?{name}"', page), name


def options() -> Iterator[tuple[tuple[str, ...], set[str]]]:
    def walk(command: Any, verbs: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        yield (
            verbs,
            {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
            | {"--help", "-h"},
        )
        for name, child in getattr(command, "commands", {}).items():
            yield from walk(child, (*verbs, name))

    yield from walk(typer.main.get_command(cli.app()), ())


COMMANDS = dict(options())


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES], ids=lambda page: str(page.relative_to(ROOT))
)
def test_commands_in_the_docs_exist(page: Path) -> None:
    """Every `discreet ...` in a block has verbs and options that there are."""
    for block in blocks(page, "sh"):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            if not line.startswith("discreet ") or "..." in line:
                continue
            words = shlex.split(line, comments=True)[1:]
            verbs: tuple[str, ...] = ()
            while words and (*verbs, words[0]) in COMMANDS:
                verbs = (*verbs, words.pop(0))
            assert verbs or words[0].startswith("-"), f"{page.name}: {line}"
            for word in words:
                if word.startswith("-") and word != "-":
                    assert word.split("=")[0] in COMMANDS[verbs], (
                        f"{page.name}: {line} has no {word}"
                    )


def test_the_first_answer_from_ones_own_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/start.md, step by step: its files are written where it says, its commands run."""
    monkeypatch.chdir(tmp_path)
    text, ran = (DOCS / "start.md").read_text(), []
    for kind, title, block in re.findall(
        r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', text, re.MULTILINE | re.DOTALL
    ):
        if kind == "text" and title:
            continue  # what other data may give
        if title:
            Path(title).parent.mkdir(exist_ok=True)
            Path(title).write_text(block)
        elif kind == "sh":
            for line in block.splitlines():
                assert cli.run(shlex.split(line)[1:]) == 0, line
                ran.append((line, capsys.readouterr().out))
        elif kind == "text" and "scale" in block:
            assert ran[-1][1].strip() == block.strip()
    assert [line.split()[1] for line, _ in ran] == [
        "init",
        "check",
        "ledger",
        "snapshot",
        "quote",
        "ask",
        "explain",
        "ledger",
    ]


@pytest.fixture(scope="module")
def curator(tmp_path_factory: pytest.TempPathFactory) -> discreet.Curator:
    policy = town.build(tmp_path_factory.mktemp("site_town") / "town", people=300)
    create_ledger(Policy.read(policy))
    return discreet.open(policy)


@pytest.mark.parametrize("page", ["asking.md", "ranges.md", "faq.md"])
def test_sql_in_the_docs_is_answered(curator: discreet.Curator, page: str) -> None:
    """Whole statements as they are; aggregates in a sentence as a question of their own."""
    text = (DOCS / page).read_text()
    pieces = re.findall(r"`(SUM\([^`]*|COUNT\((?:DISTINCT )?[^`*]+\))`", text)
    table = "visits" if page == "ranges.md" else "people"
    asked = [*blocks(DOCS / page, "sql")]
    for piece in pieces:
        owner = piece.replace("patient", "person_id")
        asked.append(f"SELECT {owner} AS n FROM {'visits' if 'cost' in owner else table}")
    assert asked or page == "faq.md"
    for sql in asked:
        assert curator.quote(sql, analyst="bob", epsilon=0.1).cost.epsilon > 0, sql
