"""`discreet respond` and `discreet collect`, as people type them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_survey import WEEKEND, line, serving, weekend
from typer.testing import CliRunner

from discreet import cli

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with a survey, and an empty home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "weekend.yaml").write_text(WEEKEND)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.run(list(words)) == code
    shown = capsys.readouterr()
    return shown.out if code == 0 or "json" in words else shown.err


def test_responding_in_a_terminal_shows_the_coins() -> None:
    """Answers are typed; one that is not an answer is asked for again; an empty one leaves the
    question out.
    """
    done = CliRunner().invoke(cli.app(), ["respond", "weekend.yaml"], input="maybe\nyes\n\n7.5\n")
    assert done.exit_code == 0
    assert "'maybe' is not an answer to this question: answer one of no, yes." in done.output
    assert re.search(
        r"first coin: (heads|tails)\n  second coin: (heads|tails)\n  sent: (0, which says no|1, which says yes)",
        done.output,
    )
    assert "how well each answer explains it: no " in done.output
    assert "counts as" in done.output
    sent = json.loads(done.output.strip().splitlines()[-1])
    assert set(sent["answers"]) == {"drank", "hours"}
    assert sent["survey"] == weekend().fingerprint


def test_from_respondents_to_an_estimate(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for i in range(5):
        answers = [
            "--answer",
            "drank=no",
            "--answer",
            "hours=8",
            "--state",
            f"{i}.json",
            "--out",
            "r.jsonl",
        ]
        told(capsys, "respond", "weekend.yaml", *answers)
    (folder / "r.jsonl").open("ab").write(b"not a report\n")
    assert json.loads(told(capsys, "collect", "add", "weekend.yaml", "r.jsonl", "--format", "json")) == {
        "accepted": 10, "repeated": 0, "refused": {"malformed": 1},
    }  # fmt: skip
    assert "0 reports added, 10 known already; dropped: 1 malformed." in told(
        capsys, "collect", "add", "r.jsonl"
    )
    found = json.loads(told(capsys, "collect", "estimate", "weekend.yaml", "--format", "json"))
    assert list(found) == ["drank", "browser", "hours"]
    for question in found.values():
        assert {"values", "estimates", "margins", "n", "epsilon"} <= set(question)
        assert len(question["values"]) == len(question["estimates"]) == len(question["margins"])
    assert (found["drank"]["values"], found["drank"]["n"]) == (["no", "yes"], 5)
    assert found["drank"]["epsilon"] == pytest.approx(1.0986, abs=1e-4)
    assert (found["hours"]["values"], found["hours"]["n"]) == (["mean"], 5)
    shown = told(capsys, "collect", "estimate", "weekend.yaml", "--chart", "chart.html")
    assert "±" in shown
    assert "reports dropped so far: 2 malformed" in shown
    assert "<svg" in (folder / "chart.html").read_text()
    status = json.loads(told(capsys, "collect", "status", "weekend.yaml", "--format", "json"))
    assert status["reports"] == {"drank": 5, "browser": 0, "hours": 5}
    assert "drank: 5 reports" in told(capsys, "collect", "status", "weekend.yaml")


def test_two_collectors_add_up(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    lines = [line(weekend(), {"drank": "yes"}) for _ in range(10)]
    for name, part in (("a", lines[:4]), ("b", lines[4:]), ("all", lines)):
        (folder / f"{name}.jsonl").write_bytes(b"".join(part))
        told(
            capsys, "collect", "add", "weekend.yaml", f"{name}.jsonl", "--store", f"{name}.reports"
        )
    (folder / "b.json").write_text(
        told(capsys, "collect", "sums", "weekend.yaml", "--store", "b.reports")
    )
    estimate = ["collect", "estimate", "weekend.yaml", "--format", "json", "--store"]
    assert told(capsys, *estimate, "a.reports", "--sums", "b.json") == told(
        capsys, *estimate, "all.reports"
    )


def test_sending_to_a_collector(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    with serving(weekend(), folder / "served.reports") as address:
        words = [
            "respond",
            "weekend.yaml",
            "--answer",
            "browser=other",
            "--to",
            address,
            "--format",
            "json",
        ]
        first = json.loads(told(capsys, *words))
        assert first["receipt"] == {"accepted": 1, "repeated": 0, "refused": {}}
        again = json.loads(told(capsys, *words))
        assert again["sent"] == first["sent"]  # the same report, from the device's memory
        assert again["receipt"] == {"accepted": 0, "repeated": 1, "refused": {}}
    assert "did not take the reports" in told(capsys, *words[:-2], code=2)


def test_a_compiled_survey_serves_a_respondent(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "weekend.json").write_text(told(capsys, "collect", "compile", "weekend.yaml"))
    sent = json.loads(
        told(capsys, "respond", "weekend.json", "--answer", "drank=no", "--format", "json")
    )
    assert sent["sent"]["survey"] == weekend().fingerprint


def test_a_compiled_survey_that_is_none_is_refused_before_anything_is_drawn(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    compiled = told(capsys, "collect", "compile", "weekend.yaml")
    for wrong in (
        compiled.replace("Which browser?", "\\u001b[2JWhich browser?"),
        "[" * 100_000,
        "[]",
    ):
        (folder / "other.json").write_text(wrong)
        shown = told(
            capsys, "respond", "other.json", "--answer", "drank=no", "--state", "mine.json", code=2
        )
        assert "control character" in shown or "compiled survey" in shown
        assert "\x1b" not in shown
    assert not (folder / "mine.json").exists()


def test_the_page_can_be_written_and_its_hash_published(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    import hashlib

    shown = told(
        capsys,
        "collect",
        "page",
        "weekend.yaml",
        "--url",
        "https://example.org",
        "--out",
        "page.html",
    )
    assert shown.split()[0] == hashlib.sha256((folder / "page.html").read_bytes()).hexdigest()
    assert "connect-src https://example.org/reports;" in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["respond", "weekend.yaml", "--answer", "drank=maybe"], 2, "answer one of no, yes"),
        (["respond", "weekend.yaml", "--answer", "hours=7.3"], 2, "in steps of 0.5"),
        (["respond", "weekend.yaml", "--answer", "age=7"], 2, "does not ask 'age'"),
        (["respond", "weekend.yaml", "--answer", "drank"], 2, "name=value"),
        (["respond", "none.yaml"], 2, "cannot be read"),
        (["collect", "estimate", "none.yaml"], 2, "cannot be read"),
        (["collect", "add", "weekend.yaml", "none.jsonl"], 2, "none.jsonl cannot be read"),
        (
            ["collect", "estimate", "weekend.yaml", "--sums", "weekend.yaml"],
            2,
            "cannot be read as sums",
        ),
        (
            ["respond", "weekend.yaml", "--answer", "drank=no", "--to", "ftp://x"],
            2,
            "begins with http",
        ),
    ],
)
def test_mistakes_get_a_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, sentence: str
) -> None:
    assert sentence in told(capsys, *words, code=code)
    error: dict[str, Any] = json.loads(told(capsys, *words, "--format", "json", code=code))["error"]
    assert error["kind"] == "usage"
    assert sentence in error["message"]


def test_a_lifetime_that_is_used_up_is_over_budget(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    for i in range(4):
        (folder / "weekend.yaml").write_text(WEEKEND.replace("Which", f"{i}: which"))
        told(capsys, "respond", "weekend.yaml", "--answer", "browser=other")
    (folder / "weekend.yaml").write_text(WEEKEND)
    assert "Nothing is sent" in told(
        capsys, "respond", "weekend.yaml", "--answer", "browser=other", code=3
    )


def test_a_limit_over_all_surveys_is_the_respondents(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    told(capsys, "respond", "weekend.yaml", "--answer", "browser=other", "--limit", "0.6")
    (folder / "other.yaml").write_text(WEEKEND.replace("weekend-2026", "other"))
    shown = told(capsys, "respond", "other.yaml", "--answer", "browser=other", code=3)
    assert "all surveys together have had 0.5 of the 0.6 that you allow" in shown
    assert "of the 2 that you allow" in told(
        capsys, "respond", "other.yaml", "--answer", "browser=other", "--limit", "2"
    )


def test_rounds_from_respondents_to_estimates(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "daily.yaml").write_text(
        "survey: daily\nepsilon: 8\nquestions:\n"
        "  mood: {ask: Mood?, values: [low, high], epsilon: 8, repeats: {rounds: 12, changes: 1}}\n"
    )
    for person in range(5):
        for round, answer in (("1", "low"), ("3", "high")):
            words = [
                "--answer",
                f"mood={answer}",
                "--round",
                round,
                "--state",
                f"{person}.json",
                "--out",
                "r.jsonl",
            ]
            shown = told(capsys, "respond", "daily.yaml", *words, "--format", "json")
    assert list(json.loads(shown)["sent"]["answers"]) == ["mood@2", "mood@3"]
    told(capsys, "collect", "add", "daily.yaml", "r.jsonl")
    found = json.loads(told(capsys, "collect", "estimate", "daily.yaml", "--format", "json"))
    assert list(found) == ["mood@1", "mood@2", "mood@3"]
    assert all(each["n"] in (0, 5) for each in found.values())  # 0 if nobody speaks in that round
    assert "has rounds 1 to 12" in told(
        capsys, "respond", "daily.yaml", "--answer", "mood=low", code=2
    )
    shown = told(
        capsys,
        "respond",
        "daily.yaml",
        "--answer",
        "mood=low",
        "--round",
        "1",
        "--state",
        "new.json",
    )
    assert (
        "mood is asked in 12 rounds. All your reports together cost ε = 8, whether and whenever"
        in shown
    )


def test_a_survey_with_mistakes_is_told_with_their_places(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "weekend.yaml").write_text(WEEKEND.replace("epsilon: 2", "epsilon: 1"))
    assert told(capsys, "collect", "estimate", "weekend.yaml", code=2).startswith(
        "weekend.yaml:2:10: The questions cost"
    )


def test_the_survey_in_the_documentation_is_the_one_tested() -> None:
    from discreet.local.survey import from_text

    text = (ROOT / "docs" / "local.md").read_text()
    written = re.search(r"```yaml\n(survey: .*?)```", text, re.DOTALL)
    assert written
    assert from_text(written[1], file="docs").fingerprint == weekend().fingerprint
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "docs/local.md", "exec"), names)  # our own documentation
    assert names["report"] in range(4)
