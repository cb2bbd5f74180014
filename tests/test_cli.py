"""The command line: exit codes, the exact shapes of JSON, csv and arrow, one sentence for every
error, no traceback.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.cli import run
from sql import bounded, policies

_REST = """
source: data
neighbors: add_remove
budget: {{epsilon: 4, delta: 1e-9, accountant: {accountant}}}
limits: {{epsilon: 1}}
analysts:
  alice: {{epsilon: 2}}
  bob: {{epsilon: 0.3}}
"""
COUNT = "SELECT grade, COUNT(*) AS n FROM pupils GROUP BY grade"
BUDGET = {"epsilon", "delta", "rho", "exact"}


class Printed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Printed]


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A school on disk, with its policy and ledger."""
    accountant = getattr(request, "param", "sum")
    data = tmp_path / "data"
    data.mkdir()
    tables = bounded.tidy(
        policies.policy("school"), people=30, dice=random.Random()
    ) | policies.public("school")
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, data / f"{name}.parquet")
    (tmp_path / "school.yaml").write_text(
        policies.SCHOOL + _REST.format(accountant=accountant), encoding="utf-8"
    )
    assert run(["ledger", str(tmp_path / "school.yaml"), "--create"]) == 0
    return tmp_path


@pytest.fixture
def command(folder: Path, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a verb on the school's policy."""
    capfd.readouterr()

    def do(verb: str, *arguments: str) -> Printed:
        code = run([verb, str(folder / "school.yaml"), *arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        return Printed(code, out, err)

    return do


def one_sentence(printed: Printed) -> bool:
    return printed.out == "" and len(printed.err.strip().splitlines()) == 1


ALICE = ("--analyst", "alice", "--epsilon", "0.5")


# --- shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["sum", "zcdp"], indirect=True)
def test_json_of_an_answer(command: Command) -> None:
    found = command("ask", COUNT, *ALICE, "--format", "json")
    assert found.code == 0
    answer = found.json
    assert set(answer) == {"columns", "rows", "margins", "selected", "cost", "left", "answer_id"}
    assert answer["columns"] == ["grade", "n"]
    assert [row[0] for row in answer["rows"]] == [5, 6, 7]
    assert all(isinstance(row[1], int) for row in answer["rows"])
    assert all(margin[0] is None and margin[1] > 0 for margin in answer["margins"])
    assert answer["selected"] == [False] * 3
    assert set(answer["cost"]) == set(answer["left"]) == BUDGET
    assert set(answer["cost"]["exact"]) == BUDGET - {"exact"}
    assert isinstance(answer["answer_id"], str)
    again = command("ask", COUNT, *ALICE, "--format=json").json
    assert again["rows"] == answer["rows"]
    assert again["cost"]["epsilon"] == 0
    assert again["left"] == answer["left"]


def test_json_holds_every_kind_of_value_without_loss(command: Command) -> None:
    sql = "SELECT MIN(day) AS day, SUM(points) AS points, AVG(mark) AS mean, SUM(mark * 1e15) AS large FROM marks"
    row = command("ask", sql, *ALICE, "--format", "json").json["rows"][0]
    assert isinstance(row[0], str)
    assert len(row[0]) == 10
    assert isinstance(row[1], str)  # a decimal
    assert row[2] is None or isinstance(row[2], float)  # a mean of nobody, after noise, is none
    assert row[3] is None or isinstance(row[3], str) or abs(row[3]) <= 2**53


def test_json_of_a_quote(command: Command) -> None:
    quote = command(
        "quote", "SELECT COUNT(*) AS n, AVG(height) AS h FROM pupils", *ALICE, "--format", "json"
    ).json
    assert set(quote) == {
        "statistics", "columns", "margins", "max_rows", "savings", "cost", "left"
    }  # fmt: skip
    assert quote["savings"][0].startswith("Without AVG(height), n would be ± ")
    assert {"name", "l0", "l1", "l2", "linf", "step", "mechanism", "scale"} == set(
        quote["statistics"][0]
    )
    assert quote["columns"] == ["n", "h"]
    assert isinstance(quote["margins"]["n"], float | int)
    assert quote["margins"]["h"]["at_rows"] == [100, 1000, 10000]
    assert len(quote["margins"]["h"]["margin"]) == 3
    assumed = command(
        "quote",
        "SELECT AVG(height) AS h FROM pupils",
        *ALICE,
        "--assuming",
        "500",
        "--format",
        "json",
    )
    assert isinstance(assumed.json["margins"]["h"], float)


def test_csv(command: Command) -> None:
    rows = list(csv.reader(io.StringIO(command("ask", COUNT, *ALICE, "--format", "csv").out)))
    assert rows[0] == ["grade", "n", "n ±"]
    assert [row[0] for row in rows[1:]] == ["5", "6", "7"]


def test_arrow(folder: Path) -> None:
    arguments = ["ask", str(folder / "school.yaml"), COUNT, *ALICE, "--format", "arrow"]
    done = subprocess.run(
        [sys.executable, "-m", "discreet", *arguments],
        capture_output=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
    )
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.column_names == ["grade", "n", "n ±"]
    assert table.num_rows == 3
    assert done.stderr == b""


QUARTILES = (
    "SELECT QUANTILE_CONT(points, [0.25, 0.5]) AS q,"
    " INTERVAL '14 months 1 second' AS i, COUNT(*) AS n FROM marks"
)


def test_lists_and_intervals_are_no_python(command: Command) -> None:
    answer = command("ask", QUARTILES, *ALICE, "--format", "json").json
    quartiles, interval, _ = answer["rows"][0]
    assert all(isinstance(each, str) for each in quartiles)  # decimals
    assert interval == "1 year 2 months 00:00:01"
    assert answer["margins"][0][:2] == [None, None]
    shown = f"[{', '.join(quartiles)}]"
    printed = command("ask", QUARTILES, *ALICE, "--format", "csv").out
    rows = list(csv.reader(io.StringIO(printed)))
    assert rows[0] == ["q", "q ± ranks", "i", "n", "n ±"]
    assert [rows[1][0], rows[1][2]] == [shown, interval]
    table = command("ask", QUARTILES, *ALICE).out
    assert shown in table
    assert interval in table


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_a_terminal_without_unicode_gets_its_answer(folder: Path, form: str) -> None:
    """It was charged, and told that the engine had failed."""
    sql = """SELECT 'ε😀' AS "größe", COUNT(*) AS n FROM pupils"""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "discreet",
            "ask",
            str(folder / "school.yaml"),
            sql,
            *ALICE,
            "--format",
            form,
        ],
        capture_output=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert b"\\u03b5" in done.stdout
    if form == "json":
        answer = json.loads(done.stdout)
        assert answer["columns"][0] == "größe"
        assert answer["rows"][0][0] == "ε😀"


def test_tables_for_people(command: Command) -> None:
    answer = command("ask", COUNT, *ALICE)
    assert "±" in answer.out
    assert "left" in answer.out
    quote = command("quote", COUNT, *ALICE)
    assert quote.code == 0
    assert quote.out.strip()
    explained = command("explain", COUNT, *ALICE)
    assert explained.out.startswith("1. ")
    listing = command("ledger")
    assert "alice" in listing.out
    assert "COUNT(*)" in listing.out


def test_margin_instead_of_epsilon(command: Command) -> None:
    answer = command(
        "ask",
        "SELECT COUNT(*) AS n FROM pupils",
        "--analyst",
        "alice",
        "--margin",
        "20",
        "--format",
        "json",
    )
    assert answer.json["margins"][0][0] <= 20
    assert answer.json["cost"]["epsilon"] < 0.5


# --- exit codes -----------------------------------------------------------------------------------

ERRORS: dict[str, tuple[tuple[str, ...], int, str]] = {
    "rejected": (("SELECT * FROM pupils", *ALICE), 4, "rejected"),
    "not SQL": (("How many?", *ALICE), 4, "rejected"),
    "over budget": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "bob", "--epsilon", "0.9"),
        3,
        "budget",
    ),
    "unknown analyst": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "eve", "--epsilon", "0.1"),
        2,
        "usage",
    ),
    "no epsilon": (("SELECT COUNT(*) FROM marks", "--analyst", "alice"), 2, "usage"),
    "no analyst": (("SELECT COUNT(*) FROM marks", "--epsilon", "1"), 2, "usage"),
    "epsilon nan": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "alice", "--epsilon", "nan"),
        2,
        "usage",
    ),
    "epsilon -1": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "alice", "--epsilon=-1"),
        2,
        "usage",
    ),
    "epsilon inf": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "alice", "--epsilon", "inf"),
        2,
        "usage",
    ),
    "epsilon 1e308": (
        ("SELECT COUNT(*) FROM marks", "--analyst", "alice", "--epsilon", "1e308"),
        2,
        "usage",
    ),
    "both": (("SELECT COUNT(*) FROM marks", *ALICE, "--margin", "3"), 2, "usage"),
    "unknown option": (("SELECT COUNT(*) FROM marks", *ALICE, "--seed", "1"), 2, "usage"),
    "assuming many": (("SELECT COUNT(*) FROM marks", *ALICE, "--assuming", "many"), 2, "usage"),
}


@pytest.mark.parametrize("verb", ["ask", "quote", "explain"])
def test_a_mistyped_analyst_is_told_who_may_be_meant(command: Command, verb: str) -> None:
    question = ("SELECT COUNT(*) FROM marks", "--epsilon", "0.1")
    assert command(verb, *question, "--analyst", "allice").err.endswith(" Did you mean alice?\n")
    assert command(verb, *question, "--analyst", "zzzz").err.endswith(" Known here: alice, bob.\n")


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_one_sentence_and_a_code(command: Command, name: str) -> None:
    arguments, code, kind = ERRORS[name]
    told = command("ask", *arguments)
    assert told.code == code
    assert one_sentence(told), told
    found = command("ask", *arguments, "--format", "json")
    assert found.code == code
    assert found.err == ""
    error = found.json["error"]
    assert set(error) == {"kind", "message", "line", "column", "hint"}
    assert error["kind"] == kind
    assert (error["line"] is not None) == (kind == "rejected")
    assert command("ledger", "--format", "json").json["entries"] == []


def test_a_refusal_has_its_place(command: Command) -> None:
    error = command(
        "ask", "SELECT COUNT(*)\nFROM pupils\nWHERE nonsense > 3", *ALICE, "--format", "json"
    ).json["error"]
    assert (error["line"], error["column"]) == (3, 7)
    assert "height" in error["hint"]


def test_a_policy_with_mistakes(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = folder / "broken.yaml"
    file.write_text(
        "unit: pupil\ntables: {pupils: {owner: id, colums: {}}}\nbudget: {epsilon: -1}\n",
        encoding="utf-8",
    )
    capfd.readouterr()
    assert run(["ask", str(file), COUNT, *ALICE]) == 2
    told = capfd.readouterr().err
    assert "broken.yaml:2:" in told
    assert "broken.yaml:3:" in told
    assert run(["ask", str(file), COUNT, *ALICE, "--format", "json"]) == 2
    assert json.loads(capfd.readouterr().out)["error"]["kind"] == "policy"


def test_no_policy_at_all(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert run(["ask", str(folder / "none.yaml"), COUNT, *ALICE]) == 2
    assert one_sentence(Printed(2, *capfd.readouterr()))


def test_no_ledger(folder: Path, command: Command) -> None:
    """A copied policy does not get a fresh budget."""
    for file in folder.glob("school.ledger*"):
        file.unlink()
    assert command("ask", COUNT, *ALICE).code == 5
    found = command("ask", COUNT, *ALICE, "--format", "json")
    assert found.code == 5
    assert found.json["error"]["kind"] == "ledger"
    assert not list(folder.glob("school.ledger*"))


def test_a_ledger_without_its_key(folder: Path, command: Command) -> None:
    command("ask", COUNT, *ALICE)
    (folder / "school.ledger.key").unlink()
    assert command("ask", COUNT, *ALICE).code == 5


def test_the_source_is_gone(folder: Path, command: Command) -> None:
    for file in (folder / "data").iterdir():
        file.unlink()
    told = command("ask", COUNT, *ALICE)
    assert told.code == 2
    assert told.out == ""


# --- other verbs ----------------------------------------------------------------------------------


def test_check_snapshot_and_verify(command: Command) -> None:
    assert command("check").code == 0
    first = command("ask", COUNT, *ALICE, "--format", "json").json
    assert command("snapshot").code == 0
    second = command("ask", COUNT, *ALICE, "--format", "json").json
    assert second["answer_id"] != first["answer_id"]
    assert second["cost"]["epsilon"] == 0.5
    assert command("ledger", "--verify").code == 0
    certificate = command("ledger", "--certificate", first["answer_id"]).json
    assert certificate["text"] == COUNT
    assert command("ledger", "--certificate", "999").code == 2


def test_the_head_of_the_ledger(folder: Path, command: Command) -> None:
    command("ask", COUNT, *ALICE)
    head = folder / "head.json"
    head.write_text(command("ledger", "--export-head").out, encoding="utf-8")
    assert command("ledger", "--verify", "--head", str(head)).code == 0


def test_damaged_notes_need_a_new_snapshot_and_no_more(folder: Path, command: Command) -> None:
    command("ask", COUNT, *ALICE)
    (folder / "school.store" / "1.json").write_text("torn", encoding="utf-8")
    told = command("ask", COUNT, *ALICE)
    assert told.code == 2
    assert one_sentence(told)
    assert str(folder) not in told.err
    assert command("snapshot").code == 0
    assert command("ask", COUNT, *ALICE).code == 0


@pytest.mark.parametrize(
    "content",
    [None, b"no JSON", b"\xff\xfe", b"[" * 100_000, b"{}", b"3"],
    ids=lambda each: repr(each)[:12],
)
def test_a_head_that_is_none(folder: Path, command: Command, content: bytes | None) -> None:
    file = folder / "head.json"
    if content is not None:
        file.write_bytes(content)
    for path in (file, folder):
        told = command("ledger", "--verify", "--head", str(path))
        assert told.code == 2, told
        assert one_sentence(told), told


SURVEY = (
    "survey: weekend\nquestions:\n  drank: {ask: Did you drink?, values: [no, yes], epsilon: 1}\n"
)
WRITERS: dict[str, tuple[str, ...]] = {
    "init": ("init", "data", "--out"),
    "describe": ("describe", "school.yaml", "pupils", "--epsilon", "1", "--out"),
    "generate": ("generate", "d.json", "--rows", "1", "--out"),
    "inspect": ("inspect", "d.json", "--html"),
    "compare": ("compare", "school.yaml", "d.json", "--epsilon", "1", "--html"),
    "release show": ("release", "show", "school.yaml", "daily", "--out"),
    "audit mechanism": ("audit", "mechanism", "--out"),
    "audit question": ("audit", "question", "school.yaml", COUNT, "--out"),
    "audit ledger": ("audit", "ledger", "school.yaml", "--out"),
    "collect page": ("collect", "page", "survey.yaml", "--url", "https://example.org", "--out"),
    "collect estimate": ("collect", "estimate", "survey.yaml", "--chart"),
    "respond": ("respond", "survey.yaml", "--answer", "drank=no", "--state", "state.json", "--out"),
    "attack": ("attack", "link", "--demo", "--html"),
    "anonymize": ("anonymize", "data/pupils.parquet", "--quasi", "grade", "--k", "2", "--out"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_cannot_be_written_is_told_before_the_work(
    folder: Path, name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("survey.yaml").write_text(SURVEY, encoding="utf-8")
    Path("folder.csv").mkdir()
    before = set(folder.rglob("*"))
    for place, sentence in (
        ("nowhere/x.csv", "nowhere is not a folder."),
        ("folder.csv", "folder.csv is"),
    ):
        capfd.readouterr()
        assert run([*WRITERS[name], place]) == 2
        told = Printed(2, *capfd.readouterr())
        assert one_sentence(told), told
        assert sentence in told.err
    assert set(folder.rglob("*")) <= before  # not even a snapshot


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("page", "survey.yaml", "--url", "javascript:alert(1)", "--out", "page.html"),
            "begins with http",
        ),
        (("serve", "survey.yaml", "--url", "javascript:alert(1)"), "begins with http"),
        (("serve", "survey.yaml", "--port", "99999999"), "65535"),
        (("serve", "survey.yaml", "--port=-1"), "--port"),
    ],
)
def test_addresses_that_are_none(
    folder: Path,
    words: tuple[str, ...],
    sentence: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    Path("survey.yaml").write_text(SURVEY, encoding="utf-8")
    capfd.readouterr()
    assert run(["collect", *words]) == 2
    told = Printed(2, *capfd.readouterr())
    assert one_sentence(told), told
    assert sentence in told.err
    assert not Path("page.html").exists()


def test_an_address_that_is_none_is_told_before_anything_is_drawn(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    Path("survey.yaml").write_text(SURVEY, encoding="utf-8")
    words = ["--answer", "drank=no", "--state", "state.json", "--out", "reports", "--to", "ftp://x"]
    assert run(["respond", "survey.yaml", *words]) == 2
    assert "begins with http" in capfd.readouterr().err
    assert not Path("state.json").exists()
    assert not Path("reports").exists()


def test_help_for_every_verb(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        [],
        ["--help"],
        *([verb, "--help"] for verb in ("ask", "quote", "explain", "ledger", "check")),
    ):
        run(arguments)
        out, err = capfd.readouterr()
        assert "Usage" in out + err
        assert "Traceback" not in out + err


def test_an_unknown_verb(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["askk", "x"]) == 2
    assert "Traceback" not in "".join(capfd.readouterr())
