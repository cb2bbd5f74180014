"""Documentation that cannot rot: its commands run, its links lead somewhere, every verb and error
is written up.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet
from discreet import cli
from discreet.binding import create_ledger
from discreet.examples import town
from discreet.policy.policy import Policy

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> Iterator[str]:
    yield from re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def in_a_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a small town, as `discreet demo` leaves one."""
    folder = tmp_path_factory.mktemp("docs")
    create_ledger(Policy.read(town.build(folder / "town", people=400)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def test_readme_shell_commands_run(in_a_town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [
        line.split("  #")[0]
        for block in blocks(ROOT / "README.md", "sh")
        for line in block.splitlines()
    ]
    ours = [shlex.split(line) for line in commands if line.startswith("discreet ")]
    assert len(ours) >= 4
    for words in ours:
        assert cli.run(words[1:]) == 0, words
    assert "±" in capsys.readouterr().out


def test_the_quote_in_how_to_ask_is_what_is_printed(
    in_a_town: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A quote reads no data, so only what is left to bob may differ."""
    text = (ROOT / "docs" / "asking.md").read_text()
    found = re.search(
        r"^(discreet quote .*)\n```\n\n```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None
    assert cli.run(shlex.split(found[1])[1:]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == found[2].splitlines()[1:]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_python_blocks_run(in_a_town: Path, page: str) -> None:
    names: dict[str, object] = {}
    for block in blocks(ROOT / page, "python"):
        exec(compile(block, page, "exec"), names)  # our own documentation
    assert isinstance(names["answer"], discreet.Answer)


def test_every_verb_is_written_up() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    app = cli.app()
    verbs = [
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    ]
    verbs += [group.name for group in app.registered_groups if group.name]
    assert len(verbs) >= 9
    for verb in verbs:
        assert re.search(rf"discreet {verb}\b|`{verb}`", text), (
            f"`discreet {verb}` is written up nowhere"
        )


def test_every_error_is_written_up() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    for name in discreet.__all__:
        if isinstance(getattr(discreet, name), type) and issubclass(
            getattr(discreet, name), Exception
        ):
            assert f"`{name}`" in text or f"`discreet.{name}`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_layer_is_in_the_picture() -> None:
    """CONTRIBUTING's picture of the layers names every family that the architecture test knows."""
    from test_architecture import LAYERS

    picture = (ROOT / "CONTRIBUTING.md").read_text()
    for names in LAYERS:
        for name in names:
            assert re.search(rf"\b{name}\b", picture), f"{name} is not in CONTRIBUTING.md's picture"


def test_the_odds_of_every_epsilon_are_upper_bounds_rounded_up() -> None:
    """docs/epsilon.md: "at most" is at least what ε allows, and no more than the next figure of its
    last digit.
    """
    lines = (ROOT / "docs" / "epsilon.md").read_text().splitlines()
    rows = [
        [cell.strip() for cell in line.split("|")[1:4]]
        for line in lines
        if re.match(r"\| [0-9.]+ \|", line)
    ]
    assert len(rows) == 6
    for written, odds, right in rows:
        allowed = math.exp(float(written))
        for told, true in (
            (odds.removesuffix(" : 1"), allowed),
            (right.removesuffix(" %"), 100 * allowed / (1 + allowed)),
        ):
            number = float(told.replace(",", ""))
            digits = len(told.partition(".")[2])
            assert true <= number < true + 10.0**-digits, (written, told)


def test_the_format_of_a_ledger_names_every_table_and_kind_of_row() -> None:
    """docs/ledger.md, Format."""
    from discreet.ledger.balance import _KINDS
    from discreet.ledger.stores.sqlite import _SCHEMA

    text = (ROOT / "docs" / "ledger.md").read_text()
    listed = set(
        re.findall(
            r"^\| `([a-z]+)`",
            text.split("## Format")[1].split("## What is noticed")[0],
            re.MULTILINE,
        )
    )
    assert listed == set(_KINDS) | {name for kind, name, _ in _SCHEMA if kind == "table"}


def test_the_promise_counts_planted_bugs_and_wrong_claims() -> None:
    from mutations.bugs import BUGS
    from sql.test_check_alone import PLANTS

    text = " ".join((ROOT / "docs" / "promise.md").read_text().split())
    assert f"**Planted bugs**: {len(BUGS)} (" in text
    assert f"`tests/sql/test_check_alone.py` plants {len(PLANTS)} wrong claims" in text


def test_the_glossary_has_every_public_name_and_at_most_forty_words() -> None:
    words = [word for word in _glossary() if word != "word"]
    assert 20 < len(words) <= 40
    assert sorted(words, key=_spoken) == words, "in the order of the alphabet"
    for name in discreet.__all__:
        assert f"`{name}`" in words, f"{name} is not in docs/glossary.md"


def _glossary() -> list[str]:
    lines = (ROOT / "docs" / "glossary.md").read_text().splitlines()
    return [line.split("|")[1].strip() for line in lines if line.startswith("| ")]


def _spoken(word: str) -> str:
    return {"δ": "delta", "ε": "epsilon", "ρ": "rho"}.get(word, word.strip("`").lower())


def test_every_step_of_the_four_walks_is_in_the_code() -> None:
    """docs/walks.md names classes, functions and methods that there are."""
    page = (ROOT / "docs" / "walks.md").read_text()
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    steps = re.findall(r"^\| \d+ \| `([^`]+)` \|", page, re.MULTILINE)
    assert len(steps) >= 25
    for step in steps:
        last = re.escape(step.split(".")[-1]) if not step.endswith(".json") else None
        found = (
            step in source
            if last is None
            else re.search(rf"\b(?:class|def) {last}\b|^{last}\b", source, re.MULTILINE)
        )
        assert found, f"{step} is not in the code"


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "CONTRIBUTING.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_lines_are_short(page: Path) -> None:
    """A table's row is one line, and so is a message that is quoted as it is said."""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if not line.startswith(("|", "> `")):
            assert len(line) <= 120, f"{page.name}:{number} has {len(line)} letters"
