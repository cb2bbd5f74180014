"""Every exit code of docs/output.md, from real processes: in pipes, on a terminal, and with nobody
there any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import discreet
from discreet.binding import create_ledger
from discreet.errors import DiscreetError
from discreet.policy.policy import Policy
from small_town import POLICY, town

COUNT = "SELECT COUNT(*) FROM people"
ASK = ("--analyst", "alice", "--epsilon", "1")
PATIENCE = 180  # seconds, on a busy machine
OUTPUT = Path(__file__).parent.parent / "docs" / "output.md"


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("codes"))


def built(folder: Path, limits: str = "epsilon: 2000") -> Path:
    path = folder / "policy.yaml"
    text = POLICY.replace("NEIGHBORS", "add_remove").replace("ACCOUNTANT", "sum")
    path.write_text(
        text.replace("limits: {epsilon: 100}", f"limits: {{{limits}}}"), encoding="utf-8"
    )
    create_ledger(Policy.read(path))
    discreet.open(path, tables=town(victim=True))
    return path


def words(*arguments: object, prepared: str = "") -> list[str]:
    """The command line of a real process; `prepared` is Python to run in it before."""
    given = [str(each) for each in arguments]
    if not prepared:
        return [sys.executable, "-m", "discreet", *given]
    return [sys.executable, "-c", f"{prepared}\nfrom discreet.cli import main\nmain({given!r})"]


@pytest.mark.parametrize("door", ["http", "postgres"])
def test_a_port_that_is_taken_is_named_with_the_option_for_another(policy: Path, door: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        doors = {"postgres": ":0"} | {door: f":{port}"}
        options = [word for name, where in doors.items() for word in (f"--{name}", where)]
        refused = done(words("serve", policy, *options))
    assert refused.returncode == 2
    assert refused.stdout == ""
    sentence = refused.stderr.splitlines()[-1]
    assert sentence.startswith(f"Port {port} of 127.0.0.1 is taken by another program.")
    assert f"--{door} :" in sentence


def test_a_wrong_call_names_the_help_of_its_command(policy: Path) -> None:
    for arguments, help_of in (
        (("ask",), "discreet ask --help."),
        (("aks",), "discreet --help."),
        (("ask", policy, COUNT, *ASK, "--eps", "1"), "discreet ask --help."),
        (("release", policy), "discreet release --help."),
    ):
        refused = done(words(*arguments))
        assert refused.returncode == 2
        assert refused.stderr.endswith(f"See {help_of}\n")


def test_ctrl_c_before_the_command_is_imported_leaves_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text(
        "print('importing', flush=True)\nimport time\ntime.sleep(60)"
    )
    started = subprocess.Popen(
        words("ask"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "importing\n"
    started.send_signal(signal.SIGINT)
    assert started.communicate(timeout=PATIENCE) == ("", "")
    assert started.returncode == -signal.SIGINT  # a shell makes 130 of it


def test_a_command_leaves_one_file_that_is_all_of_the_ledger(tmp_path: Path) -> None:
    policy = built(tmp_path)
    answered = done(words("ask", policy, COUNT, *ASK))
    assert (answered.returncode, answered.stderr) == (0, "")
    assert "±" in answered.stdout
    assert sorted(path.name for path in tmp_path.glob("*.ledger*")) == [
        *("policy.ledger", "policy.ledger.head", "policy.ledger.key")
    ]
    assert len(discreet.open(policy).ledger(analyst="alice")) == 1


def done(command: Sequence[str], **how: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, **how
    )  # type: ignore[call-overload,no-any-return]


class Terminal:
    """A process on a terminal of its own, as in a window that can be typed into and closed."""

    def __init__(self, command: Sequence[str]) -> None:
        self.read = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            # whatever these tests were started under, such as nohup
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.execv(command[0], list(command))

    @property
    def text(self) -> str:
        return self.read.decode(errors="replace")

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while text not in self.text:
            assert time.monotonic() < end, self.text
            assert self._read(), self.text

    def _read(self) -> bool:
        if not select.select([self.master], [], [], 0.2)[0]:
            return True
        try:
            read = os.read(self.master, 65536)
        except OSError:  # Linux's end of a terminal
            return False
        self.read += read
        return bool(read)

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def close(self) -> None:
        os.close(self.master)
        self.master = -1

    def code(self) -> int:
        """What a shell would say: 128 more than the signal that ended it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.master >= 0:
                self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                with contextlib.suppress(AssertionError):
                    while (
                        self.master >= 0
                        and self._read()
                        and select.select([self.master], [], [], 0)[0]
                    ):
                        pass
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            time.sleep(0.02)
        os.kill(self.pid, 9)
        raise AssertionError(f"it went on: {self.text}")


CODES: dict[str, tuple[tuple[str, ...], int, str]] = {
    "usage": ((COUNT, "--analyst", "alice", "--epsilon", "-1"), 2, "usage"),
    "an option that is none": ((COUNT, *ASK, "--seed", "1"), 2, "usage"),
    "rejected": (("SELECT * FROM people", *ASK), 4, "rejected"),
    "over budget": ((COUNT, "--analyst", "alice", "--epsilon", "1001"), 3, "budget"),
}


def test_an_answer(policy: Path) -> None:
    found = done(words("ask", policy, COUNT, *ASK, "--format", "json"))
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["columns"]


@pytest.mark.parametrize("name", CODES)
def test_refusals_are_one_sentence_or_one_object(policy: Path, name: str) -> None:
    arguments, code, kind = CODES[name]
    plain = done(words("ask", policy, *arguments))
    assert (plain.returncode, plain.stdout) == (code, "")
    assert len(plain.stderr.splitlines()) == 1
    as_json = done(words("ask", policy, *arguments, "--format", "json"))
    assert (as_json.returncode, as_json.stderr) == (code, "")
    assert json.loads(as_json.stdout)["error"]["kind"] == kind


def test_no_ledger_and_no_policy(tmp_path: Path) -> None:
    path = built(tmp_path)
    path.with_suffix(".ledger.key").unlink()
    found = done(words("ask", path, COUNT, *ASK, "--format", "json"))
    assert (found.returncode, json.loads(found.stdout)["error"]["kind"]) == (5, "ledger")
    assert done(words("audit", "ledger", path)).returncode == 5
    found = done(words("ask", tmp_path / "none.yaml", COUNT, *ASK))
    assert (found.returncode, found.stdout) == (2, "")


FAILS = "from discreet.engines.duckdb.engine import DuckDB{also}\ndef fetch(*_): raise {what}\nDuckDB.fetch = fetch"


@pytest.mark.parametrize("what", ["EngineFailure", "Overrun", "ZeroDivisionError"])
def test_an_engine_that_fails(tmp_path: Path, what: str) -> None:
    """Also where it took too long: the same sentence, so that the code tells no more than the
    text.
    """
    also = ", Overrun, EngineFailure"
    found = done(
        words("ask", built(tmp_path), COUNT, *ASK, prepared=FAILS.format(also=also, what=what))
    )
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.splitlines()[-1].startswith("The engine could not answer")
    assert "Traceback" not in found.stderr


LYING = """
from fractions import Fraction
from discreet.budget import Loss
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
DiscreteLaplace.loss = lambda self: Loss(epsilon=Fraction(1, 100), rho=None, delta=Fraction(0))
"""
AUDIT = ("audit", "mechanism", "DiscreteLaplace", "--runs", "20000", "--confidence", "0.999999999")


def test_an_audit_that_does_not_hold() -> None:
    assert done(words(*AUDIT)).returncode == 0
    found = done(words(*AUDIT, "--format", "json", prepared=LYING))
    assert found.returncode == 1
    assert json.loads(found.stdout)["findings"][0]["sound"] is False


# --- on a terminal --------------------------------------------------------------------------------


def test_on_a_terminal(policy: Path) -> None:
    """An answer is 0 and a table; a refusal is its code."""
    terminal = Terminal(words("ask", policy, COUNT, *ASK))
    assert terminal.code() == 0
    assert "±" in terminal.text
    assert Terminal(words("ask", policy, "SELECT * FROM people", *ASK)).code() == 4
    terminal = Terminal(words(*AUDIT, prepared=LYING))
    assert terminal.code() == 1
    assert "BROKEN" in terminal.text


def test_interrupted_with_a_progress_bar() -> None:
    terminal = Terminal(words("audit", "mechanism", "--runs", "1000000"))
    terminal.wait_for("running")
    terminal.press(b"\x03")
    assert terminal.code() == 130
    assert "Traceback" not in terminal.text
    assert terminal.text.rfind("\x1b[?25h") > terminal.text.rfind("\x1b[?25l")  # the cursor is back


SLOW = """
from discreet.engines.duckdb.engine import DuckDB
def fetch(self, sql, seconds):
    print("reading", flush=True)
    many = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"
    return self.read(many, seconds)
DuckDB.fetch = fetch
"""


@pytest.mark.parametrize("again", range(3))
def test_interrupted_while_the_engine_reads(tmp_path: Path, again: int) -> None:
    """Whichever threads work for the statement, and long before its own limit."""
    policy = built(tmp_path, limits="epsilon: 2000, seconds: 3600")
    terminal = Terminal(words("ask", policy, COUNT, *ASK, prepared=SLOW))
    terminal.wait_for("reading")
    time.sleep(0.5)
    terminal.press(b"\x03")
    assert terminal.code() == 130
    assert terminal.text.count("reading") == 1
    assert "engine" not in terminal.text


def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    """It ends as every program does; where it was told not to, it ends when it cannot print, and
    says nothing.
    """
    path = built(tmp_path)
    terminal = Terminal(words("ask", path, COUNT, *ASK, prepared=SLOW))
    terminal.wait_for("reading")
    terminal.close()
    assert terminal.code() == 129
    stays = (
        "import signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "print('here', flush=True)\ntime.sleep(1)"
    )
    terminal = Terminal(words("ask", path, COUNT, *ASK, prepared=stays))
    terminal.wait_for("here")
    terminal.close()
    assert terminal.code() == 1


# --- where output goes ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "csv", "arrow"])
def test_a_reader_that_goes_away(policy: Path, form: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = words(
        "ask", policy, "SELECT sex, COUNT(*) FROM people GROUP BY sex", *ASK, "--format", form
    )
    found = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )
    os.close(writing)
    assert (found.returncode, found.stderr) == (141, "")


def test_a_long_output_cut_short() -> None:
    """`discreet ... | head -1`, with more than a pipe holds."""
    verb = "def many():\n    for i in range(10**6): print(i)\n"
    many = f"{verb}from discreet.cli.terminal import completion\ncompletion.register = lambda app: app.command()(many)"
    command = words("many", prepared=many)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == ""


def test_a_refusal_that_nobody_reads_keeps_its_code(policy: Path) -> None:
    for form in ("table", "json"):
        reading, writing = os.pipe()
        os.close(reading)
        command = words("ask", policy, "SELECT * FROM people", *ASK, "--format", form)
        found = subprocess.run(
            command, stdout=writing, stderr=writing, timeout=PATIENCE, check=False
        )
        os.close(writing)
        assert found.returncode == 4


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_said(policy: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = words("ask", policy, COUNT, *ASK)
        found = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )
    assert found.returncode == 1
    assert found.stderr == "The output could not be written: No space left on device.\n"


@pytest.mark.parametrize("form", ["table", "arrow"])
def test_output_that_was_closed_before(policy: Path, form: str) -> None:
    command = " ".join(f"'{each}'" for each in words("ask", policy, COUNT, *ASK, "--format", form))
    found = done(["sh", "-c", f"{command} >&-"])
    assert (found.returncode, found.stderr) == (0, "")


# --- what is written about them -------------------------------------------------------------------


def test_help_is_help_and_a_success() -> None:
    for arguments in ((), ("--help",), ("attack",), ("audit",), ("ask", "--help")):
        found = done(words(*arguments))
        assert (found.returncode, found.stderr) == (0, "")
        assert len(found.stdout.splitlines()) > 5


def test_every_code_is_documented() -> None:
    section = OUTPUT.read_text(encoding="utf-8").split("## Exit codes")[1].split("\n## ")[0]
    written = {int(code) for code in re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE)}
    raised = {error.exit_code for error in DiscreetError.__subclasses__()}
    assert written == {0, 129, 130, 141, 143, *raised}
