"""The command line as people expect it: versions, help, completion, SQL from files, tables that are
never cut.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
import typer

import discreet
from discreet.binding import create_ledger
from discreet.budget import with_margin
from discreet.cli import HOMES, app, run
from discreet.cli.printing.tables import budget_bar
from discreet.cli.terminal.completion import _words
from discreet.display.show import cell, cells
from discreet.examples import town
from discreet.policy.policy import Policy

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = town.build(tmp_path_factory.mktemp("line") / "town", people=200)
    create_ledger(Policy.read(path))
    discreet.open(path)
    return str(path)


def test_version_and_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capfd.readouterr().out == f"discreet {discreet.__version__}\n"
    for words in (["-h"], ["ask", "-h"], ["release", "-h"], ["release", "start", "-h"]):
        assert run(words) == 0
        assert "Usage" in capfd.readouterr().out


def test_a_statement_from_a_file_and_from_standard_input(
    policy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_ANALYST", "alice")
    file = tmp_path / "question.sql"
    file.write_text(f"\ufeff-- by sex\n{COUNT}\n", encoding="utf-8")
    for words in (["--file", str(file)], ["-f", str(file)], ["-"], ["-f", "-"]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(file.read_bytes())))
        assert run(["quote", policy, *words, "--epsilon", "0.1"]) == 0
        assert "n: ± 30" in capfd.readouterr().out
    for words in (
        [],
        [COUNT, "--file", str(file)],
        ["-f", str(tmp_path / "none.sql")],
        ["-f", str(tmp_path)],
    ):
        assert run(["quote", policy, *words, "--epsilon", "0.1"]) == 2
        assert "statement" in capfd.readouterr().err
    file.write_bytes(b"SELECT '\xff'")
    assert run(["explain", policy, "-f", str(file), "--epsilon", "0.1"]) == 2
    assert "UTF-8" in capfd.readouterr().err


def test_an_analyst_who_is_typed_comes_before_the_environment(
    policy: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCREET_ANALYST", "nobody")
    assert run(["quote", policy, COUNT, "--epsilon", "0.1"]) == 2
    assert run(["quote", policy, COUNT, "--epsilon", "0.1", "--analyst", "alice"]) == 0
    capfd.readouterr()


def test_nothing_is_folded_or_cut_in_a_pipe(policy: str) -> None:
    wide = ", ".join(f"COUNT(*) AS a_rather_long_name_of_a_column_{place}" for place in range(8))
    sql = f"SELECT sex, {wide} FROM people GROUP BY sex"
    words = ["ask", policy, sql, "--analyst", "alice", "--epsilon", "0.1"]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "40", "PYTHONIOENCODING": "utf-8"},
        timeout=120,
    )
    head, _, *rows = done.stdout.splitlines()
    assert all(f"column_{place}" in head for place in range(8))
    assert len(rows) == 3 + 2
    assert all(row.count("±") == 8 for row in rows[:3])
    assert "…" not in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


def test_quiet_and_free(policy: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "ask",
        policy,
        "SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker",
        "--analyst",
        "bob",
    ]
    assert run([*words, "--epsilon", "0.3"]) == 0
    assert "(2 more like this)" in capfd.readouterr().out  # of 1
    assert run([*words, "--epsilon", "0.3"]) == 0
    out = capfd.readouterr().out
    assert "free: asked before" in out
    assert "cost" not in out
    assert "more like this" not in out
    assert run([*words, "--epsilon", "0.3", "--quiet"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 4
    assert (
        run(
            [
                "ask",
                policy,
                "SELECT COUNT(*) AS n FROM states",
                "--analyst",
                "bob",
                "--epsilon",
                "0.3",
            ]
        )
        == 0
    )
    assert "free: public" in capfd.readouterr().out


@pytest.mark.parametrize(("accountant", "more"), [("sum", 3), ("zcdp", 13)])
def test_how_many_more_like_the_last_one(tmp_path: Path, accountant: str, more: int) -> None:
    """As many as are told can be asked, and then no more."""
    path = tmp_path / "p.yaml"
    path.write_text(
        "unit: person\ntables: {t: {owner: id, columns: {x: {integer: [0, 99]}}}}\n"
        f"budget: {{epsilon: 2, delta: 1e-9, accountant: {accountant}}}\nanalysts: {{ann: {{epsilon: 2}}}}\n"
    )
    create_ledger(Policy.read(path))
    curator = discreet.open(path, tables={"t": pa.table({"id": [1], "x": [1]})})
    told = f"({more} more like this)"
    assert told in str(curator.ask("SELECT COUNT(*) FROM t", analyst="ann", epsilon=0.5))
    for limit in range(more):
        curator.ask(f"SELECT COUNT(*) FROM t WHERE x < {limit + 1}", analyst="ann", epsilon=0.5)
    with pytest.raises(discreet.BudgetExceeded):
        curator.ask("SELECT COUNT(*) FROM t WHERE x < 99", analyst="ann", epsilon=0.5)


def test_numbers_are_rounded_by_their_margin_and_aligned() -> None:
    assert with_margin(29.931234, 0.03612) == "29.931 ± 0.037"
    assert with_margin(-0.0004, 0.03) == "0.000 ± 0.031"
    assert cell(-0.0, None) == "0"
    assert cells([1204, 7, None], [12, 3, None]) == ["1,204 ± 12", "7 ± 3 ", "–"]
    assert cells(["a ± b", None], [None, None]) == ["a ± b", "–"]


@pytest.mark.parametrize(
    ("spent", "color"), [(0.0, None), (0.01, "green"), (0.7, "yellow"), (0.95, "red")]
)
def test_a_bar_tells_by_its_colour_how_much_is_gone(spent: float, color: str | None) -> None:
    bar = budget_bar(spent, 1.0)
    assert len(bar.plain) == 30
    assert ("█" in bar.plain) == (spent > 0)
    assert color is None or str(bar.spans[0].style) == color
    assert budget_bar(1.0, 1.0).plain == "█" * 30
    assert "░" in budget_bar(0.999, 2.0).plain


def scripts(capfd: pytest.CaptureFixture[str]) -> dict[str, str]:
    found = {}
    for shell in ("bash", "zsh", "fish"):
        assert run(["completion", shell]) == 0
        found[shell] = capfd.readouterr().out
    return found


def test_completion_knows_every_verb_option_and_choice(capfd: pytest.CaptureFixture[str]) -> None:
    listed = list(_words(typer.main.get_command(app())))
    assert {("ask",), ("release", "start"), ("attack", "link")} <= {each.verbs for each in listed}
    for text in scripts(capfd).values():
        for each in listed:
            for word in (*each.follow, *(option[2:] for option in each.options)):
                assert word in text
        assert "json" in text
    assert run(["completion", "tcsh"]) == 2


def test_completion_in_bash(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "completion.bash"
    script.write_text(scripts(capfd)["bash"])

    def completed(*words: str) -> set[str]:
        listed = " ".join(f"'{word}'" for word in words)
        text = f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _discreet; "
        done = subprocess.run(
            ["bash", "-c", text + "printf '%s\\n' \"${COMPREPLY[@]}\""],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            timeout=60,
        )
        return set(done.stdout.split())

    assert completed("discreet", "as") == {"ask"}
    assert completed("discreet", "release", "st") == {"start"}
    assert "--epsilon" in completed("discreet", "ask", "p.yaml", "--")
    assert "--epsilon" not in completed("discreet", "snapshot", "p.yaml", "--")
    assert completed("discreet", "ask", "p.yaml", "--format", "") >= {
        "table",
        "json",
        "csv",
        "arrow",
        "parquet",
    }
    assert "completion.bash" in completed("discreet", "ask", "comp")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(capfd: pytest.CaptureFixture[str], shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run(
        [shell, "-n"], input=scripts(capfd)[shell], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_errors_are_red_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.StringIO):
        terminal = True

        def isatty(self) -> bool:
            return self.terminal

    def told(terminal: bool, **environment: str) -> str:
        stream: Any = Stream()
        stream.terminal = terminal
        for name in ("NO_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "stderr", stream)
        assert run(["quote"]) == 2
        return str(stream.getvalue())

    assert told(True).startswith("\x1b[31m")
    assert "\x1b" not in told(False) + told(True, NO_COLOR="1") + told(True, TERM="dumb")


@pytest.mark.parametrize("verb", HOMES)
def test_a_verb_alone_is_the_verb_among_all(verb: str) -> None:
    """What is imported for one verb knows it as the whole command does, and knows no other."""
    alone, whole = (typer.main.get_command(each) for each in (app(verb), app()))
    assert list(getattr(alone, "commands", ())) == [verb]
    assert [each.opts for each in alone.commands[verb].params] == [
        each.opts for each in whole.commands[verb].params
    ]  # type: ignore[attr-defined]


def test_what_an_extra_brings(
    policy: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without it the sentence names it, before anything is charged."""
    spent = discreet.open(policy).left(analyst="curator")
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)
    for words in (
        ["describe", policy, "people", "--epsilon", "0.1", "--out", "x"],
        ["release", "start", policy, "visits_by_day"],
    ):
        assert run(words) == 2
        assert "needs scipy: pip install 'discreet[science]'." in capfd.readouterr().err
    assert discreet.open(policy).left(analyst="curator") == spent
