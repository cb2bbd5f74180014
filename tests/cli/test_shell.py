r"""`discreet shell`: statements, commands, files and stdin; and at a keyboard through a pty."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from discreet import cli
from discreet.binding import create_ledger
from discreet.budget import Budget
from discreet.cli.terminal import line_editing, shell
from discreet.cli.terminal.line_editing import CtrlC, completer
from discreet.cli.terminal.shell import is_complete, pieces
from discreet.examples import town
from discreet.policy.policy import Policy
from discreet.vault.answer import Answer
from server.running_server import Running, open_town, running

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex;"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = town.build(tmp_path_factory.mktemp("shell") / "town", people=400)
    create_ledger(Policy.read(path))
    return Path(path)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT ';' -- ;", False),
        ("SELECT ';'; -- done", True),
        ('SELECT ";', False),
        ("SELECT /* ; */ 1", False),
        ("SELECT /* ;", False),
        ("SELECT € ;", True),
        ("", False),
    ],
)
def test_a_statement_ends_at_its_own_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) == complete


def test_a_text_has_statements_and_commands() -> None:
    text = "SELECT 1;\n\\budget\nSELECT\n  ';'\n; SELECT 2;\n\\quote SELECT\n 3;\nSELECT 4"
    assert [*pieces(text)] == [
        "SELECT 1",
        "\\budget",
        "SELECT\n  ';'",
        "SELECT 2",
        "\\quote SELECT 3;",
        "SELECT 4",
    ]


class Hostile:
    """A server that speaks to the terminal wherever it may say a word."""

    name = "\x1b]0;eve\x07"

    def tables(self) -> list[dict[str, Any]]:
        return [{"name": "\x1b[2J", "columns": [{"name": "age"}, {"name": "\x9b2J"}]}]

    def ask(self, sql: str, price: Mapping[str, Any]) -> Answer:
        nothing, name = Budget(epsilon=Fraction(0), delta=Fraction(0)), "\x1b[31mn"
        told = {
            "ranks": {name: 3},
            "without_margin": {name: "\x1b[2J"},
            "today": "\x1b[5m",
            "each_row": True,
            "unit": "\x1b[6n",
            "max_rows": {"\x1b[7m": 2},
        }
        return Answer(
            table=pa.table({name: [1]}),
            margins=pa.table({name: pa.array([None], pa.float64())}),
            selected=(False,),
            cost=nothing,
            left=nothing,
            certificate=told,
            id="1",
        )


def test_a_server_does_not_speak_to_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name for who asks is the prompt, and its certificates stand under answers."""
    typed, prompts = iter(["SELECT 1;", "\\q"]), list[str]()

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    source = cast(shell.Source, Hostile())
    monkeypatch.setattr(line_editing, "_history_file", lambda: Path(os.devnull) / "none")
    shell._converse(shell.Session(source=source))
    said = capsys.readouterr()
    assert prompts == ["\ufffd]0;eve\ufffd> "] * 2
    assert "within 3 ranks" in said.out
    assert "\x1b" not in said.out + said.err
    assert list(shell._names(source)) == ["age"]


def test_completion_is_by_the_beginning_of_a_word() -> None:
    complete = completer(["people", "person_id", "PERCENT"])
    assert [complete("PE", number) for number in range(4)] == [
        "people",
        "person_id",
        "PERCENT",
        None,
    ]


def test_files_are_asked(policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "questions.sql"
    file.write_text(
        f"-- by sex\n{COUNT}\n\\budget\n\\tables\n\\tables people\n\\quote SELECT COUNT(*) FROM visits\n"
    )
    assert cli.run(["shell", str(policy), str(file), "--analyst", "bob", "--epsilon", "0.1"]) == 0
    said = capsys.readouterr().out
    assert said.count("±") >= 4
    assert "left ε" in said
    assert "people  private: one row of each person" in said
    assert "sex  text  one of F, M, X" in said


def test_a_mistyped_analyst_is_told_who_may_be_meant(
    policy: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    session = shell.Session(source=shell._source(str(policy), "bobb", None))
    assert not shell._try(session, "\\epsilon 0.1\nSELECT COUNT(*) FROM people;")
    assert capfd.readouterr().err.endswith(" Did you mean bob?\n")


def test_without_a_price_the_shell_says_how_to_set_one(
    policy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "questions.sql"
    file.write_text(COUNT)
    assert cli.run(["shell", str(policy), str(file), "--analyst", "bob"]) == 2
    assert r"\epsilon 0.1 in the shell" in capsys.readouterr().err


def test_the_first_error_ends_a_file_with_its_code(
    policy: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DISCREET_ANALYST", "bob")
    file = tmp_path / "questions.sql"
    for text, code in (
        ("SELECT age FROM people;", 4),
        ("\\nonsense", 2),
        ("\\tables nowhere", 2),
        ("\\quote", 2),
    ):
        file.write_text(f"{text}\n\\budget\n")
        assert cli.run(["shell", str(policy), str(file), "--epsilon", "0.1"]) == code
        assert "left" not in capsys.readouterr().out
    monkeypatch.delenv("DISCREET_ANALYST")
    assert cli.run(["shell", str(policy), str(file)]) == 2
    assert "--analyst" in capsys.readouterr().err


def test_stdin_is_asked(policy: Path) -> None:
    command = [sys.executable, "-m", "discreet", "shell", str(policy), "-"]
    text = f"\\epsilon 0.1\n{COUNT}\n\\explain SELECT COUNT(*) FROM visits\n"
    environment = {**os.environ, "DISCREET_ANALYST": "bob"}
    found = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=240, env=environment
    )
    assert found.returncode == 0, found.stderr
    assert "±" in found.stdout
    assert "1. " in found.stdout or "1  " in found.stdout


class Terminal:
    """A shell at a pty: what is typed, and what is seen. Whoever starts it has Ctrl-C ignored, as
    scripts have.

    No Ctrl-C is sent: readline overlooks one between its prompt and its first look, and one that is
    sent again may meet the next line.
    """

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._own, other = pty.openpty()
        deaf = ["env", "--ignore-signal=INT", *command]
        self.process = subprocess.Popen(
            deaf, stdin=other, stdout=other, stderr=other, env=environment
        )
        os.close(other)
        self.seen = ""

    def wait_for(self, pattern: str) -> str:
        """Read until a pattern is seen; return what was read before it ends."""
        until = time.monotonic() + 200
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < until, self.seen
            if select.select([self._own], [], [], 1.0)[0]:
                try:
                    self.seen += os.read(self._own, 1 << 16).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(self.seen) from None
        read, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return read

    def type(self, text: str) -> None:
        os.write(self._own, text.encode())

    def close(self) -> int:
        try:
            return self.process.wait(60)
        finally:
            os.close(self._own)


@pytest.fixture
def state(tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "XDG_STATE_HOME": str(tmp_path),
        "TERM": "dumb",
        "PYTHONIOENCODING": "utf-8",
    }


def test_at_a_keyboard(policy: Path, tmp_path: Path, state: dict[str, str]) -> None:
    command = [sys.executable, "-m", "discreet", "shell", str(policy), "--analyst", "bob"]
    first = Terminal(command, state)
    first.wait_for("bob> ")
    first.type("\\epsilon 0.1\n")
    first.wait_for("epsilon 0.1\r\nbob> ")
    first.type("SELECT sex, COUNT(*) AS n\n")
    first.wait_for(r"\.\.\.> ")
    first.type("FROM peo\t GROUP BY sex;\n")  # Tab completes the table's name
    assert "people" in first.wait_for("left ε")
    first.wait_for("bob> ")
    first.type("SELECT age FROM people;\n")  # refused: the session goes on
    first.wait_for("Rejected")
    first.wait_for("bob> ")
    first.type("\\budget\n")
    first.wait_for("left ε")
    first.wait_for("bob> ")
    first.type("\\q\n")
    assert first.close() == 0
    history = tmp_path / "discreet" / "history"
    assert "\\budget" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_forgets_what_was_begun(
    policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines that somebody types, the second of which is Ctrl-C; whoever started the shell has
    it ignored.
    """
    typed = iter(["SELECT 'never closed", None, "\\budget", "\\q"])
    prompts = []

    def line(prompt: str) -> str:
        prompts.append(prompt)
        found = next(typed)
        if found is None:
            signal.raise_signal(signal.SIGINT)
        assert found is not None
        return found

    monkeypatch.setattr("builtins.input", line)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        "discreet.cli.terminal.shell.line_editing", lambda source: contextlib.nullcontext()
    )
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert cli.run(["shell", str(policy), "--analyst", "bob"]) == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert prompts == ["bob> ", "...> ", "bob> ", "bob> "]
    assert "left ε" in capsys.readouterr().out


def test_ctrl_c_stops_what_runs_and_never_the_shell() -> None:
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with CtrlC() as ctrl_c:
            signal.raise_signal(signal.SIGINT)  # nothing runs
            assert (
                ctrl_c.may_stop(lambda: signal.raise_signal(signal.SIGINT) or "not reached") is None
            )
            signal.raise_signal(signal.SIGINT)  # nothing runs any more
            assert ctrl_c.may_stop(lambda: "done") == "done"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, ignored)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(open_town(tmp_path)) as found:
        yield found


def test_a_server_is_asked(
    server: Running,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, file = f"http://127.0.0.1:{server.http}", tmp_path / "questions.sql"
    file.write_text(
        f"{COUNT}\n\\budget\n\\tables\n\\tables people\n\\quote {COUNT}\n\\explain {COUNT}\n"
    )
    monkeypatch.setenv("DISCREET_TOKEN", server.users.add_token("bob"))
    assert cli.run(["shell", url, str(file), "--epsilon", "0.5"]) == 0
    said = capsys.readouterr().out
    assert said.count("±") >= 4
    assert "left ε = 0.5" in said
    assert "places  public" in said
    assert "age  bigint  whole numbers from 0 to 120" in said
    assert len(server.server.curator.ledger(analyst="bob")) == 1
    file.write_text("SELECT age FROM people;\n")
    assert cli.run(["shell", url, str(file), "--epsilon", "0.5"]) == 4
    assert cli.run(["shell", url, str(file), "--analyst", "alice"]) == 2
    assert "asks as bob, not as alice" in capsys.readouterr().err
    assert cli.run(["shell", url, str(file), "--token", "dsc_wrong"]) == 2
    monkeypatch.delenv("DISCREET_TOKEN")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert cli.run(["shell", url, str(file)]) == 2
    assert "DISCREET_TOKEN" in capsys.readouterr().err
    assert cli.run(["shell", "http://127.0.0.1:1", str(file), "--token", "x"]) == 1
