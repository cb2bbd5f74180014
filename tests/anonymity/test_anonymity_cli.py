"""`discreet risk` and `discreet anonymize`: what is printed, what is written, and how they fail."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from tables import patients

from discreet import cli
from discreet.anonymity import risk

QUASI = "race,born,sex"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    csv.write_csv(patients(), path)
    return path


def ran(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = cli.run([str(word) for word in words])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_risk(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("risk", data, "--quasi", QUASI, "--sensitive", "health issue")
    code, out, _ = ran(capsys, *asked, "--format", "json")
    assert code == 0
    told = json.loads(out)
    assert (told["k"], told["classes"], told["unique"]) == (1, 11, 11)
    assert len(told["unique_by_columns"]) == 7
    code, out, _ = ran(capsys, *asked)
    assert (code, "k = 1" in out) == (0, True)


def test_anonymize(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, page = tmp_path / "out.csv", tmp_path / "report.html"
    asked = ("anonymize", data, "--quasi", QUASI, "--k", 2, "--out", out)
    code, told, _ = ran(capsys, *asked, "--report", page, "--format", "json")
    assert code == 0
    found = json.loads(told)
    assert (found["k"], found["suppressed"]) == (2, 0)
    assert found["loss"]["ncp"] == pytest.approx(0.1236, abs=1e-4)
    assert set(found["transformation"]) == set(QUASI.split(","))
    assert risk(out, quasi=QUASI.split(",")).k == 2
    assert "What it does not give" in page.read_text()
    code, told, _ = ran(
        capsys, *asked, "--recoding", "global", "--suppress", 0.1, "--weights", "race=2"
    )
    assert (code, "What it does not give" in told) == (0, True)


def test_hierarchies_are_written_to_be_edited(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "h.yaml", tmp_path / "out.csv"
    assert ran(capsys, "anonymize", data, "--quasi", QUASI, "--write-hierarchies", path)[0] == 0
    assert "born: {dates: [month, year, decade]}" in path.read_text()
    path.write_text(path.read_text().replace("race: flat", "race: {tree: {some: [asian, black]}}"))
    asked = ("anonymize", data, "--quasi", QUASI, "--hierarchies", path)
    code, _, err = ran(capsys, *asked, "--k", 2, "--out", out)
    assert (code, "race has 1 different value" in err, "white" in err) == (2, True, False)
    assert not out.exists()
    mended = tmp_path / "mended.yaml"
    assert ran(capsys, *asked, "--write-hierarchies", mended)[0] == 0
    assert "unlisted: [white]" in mended.read_text()
    asked = ("anonymize", data, "--quasi", QUASI, "--hierarchies", mended, "--k", 2, "--out", out)
    assert ran(capsys, *asked)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--k", "20", "--out", "o.csv"), "larger than the table"),
        (("--out", "o.csv"), "--k 5"),
        (("--k", "2"), "--k 5"),
        (("--k", "2", "--out", "o.csv", "--weights", "race"), "is no weight"),
        (("--k", "2", "--out", "o.csv", "--weights", "race=x"), "is no weight"),
        (("--k", "2", "--out", "o.csv", "--recoding", "sideways"), "sideways"),
        (("--k", "2", "--out", "o.csv", "--hierarchies", "none.yaml"), "cannot be read"),
        (("--k", "2", "--out", "o.csv", "--report", "none/r.html"), "not a folder"),
        (("--k", "2", "--out", "none/o.csv"), "not a folder"),
        (("--write-hierarchies", "none/h.yaml"), "not a folder"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    data: Path,
    words: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(data.parent)
    code, out, err = ran(capsys, "anonymize", data, "--quasi", QUASI, *words)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert [path.name for path in data.parent.iterdir()] == ["patients.csv"]
    code, out, _ = ran(capsys, "anonymize", data, "--quasi", QUASI, *words, "--format", "json")
    assert (code, json.loads(out)["error"]["kind"] in ("usage", "policy")) == (2, True)


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where something was written before."""
    out = tmp_path / "out.csv"
    out.write_text("a\n1\n")
    asked = ("anonymize", tmp_path / "none.csv", "--quasi", "a", "--k", 2, "--out", out)
    code, _, err = ran(capsys, *asked)
    assert (code, err) == (2, f"There is no file {tmp_path / 'none.csv'}.\n")
    assert out.read_text() == "a\n1\n"


def test_an_identifier_left_in_the_output_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "t.csv", tmp_path / "o.csv"
    csv.write_csv(pa.table({"name": [f"n{i}" for i in range(30)], "age": [20, 30, 40] * 10}), data)
    code, told, _ = ran(
        capsys, "anonymize", data, "--quasi", "age", "--k", 5, "--out", out, "--format", "json"
    )
    assert code == 0
    assert json.loads(told)["warnings"][0].startswith("name is different for nearly everyone")
