"""What respondents write reaches a collector's terminal and pages as plain text, whatever they
write.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from small_survey import WEEKEND, person, serving, weekend

from discreet import cli
from discreet.display.show import json_text, label
from discreet.errors import UsageError
from discreet.local.collector.chart import document, text
from discreet.local.collector.collector import ReportStore, sums_from_json
from discreet.local.question import submission
from discreet.local.survey import from_text

HOSTILE = {
    "clear screen": "\x1b[2J",
    "colour": "\x1b[31mred",
    "window title": "\x1b]0;mine\x07",
    "hyperlink": "\x1b]8;;http://x\x1b\\",
    "device control": "\x1bPq\x1b\\",
    "C1 control sequence": "\x9b2J",
    "C1 string": "\x9d0;mine\x9c",
    "bell and backspace": "\x07\x08\x08",
    "new lines": "a\nb\rc\x0bd\x0ce\x85f",
    "line separators": "a\u2028b\u2029c",
    "right to left override": "\u202egpj.exe",
    "isolates": "\u2066a\u2069\u2068",
    "marks of direction": "\u200e\u200f\u061c",
    "zero width": "pass\u200bword\u200c\u200d\u2060\ufeff",
    "tags": "a\U000e0041\U000e007f",
    "interlinear": "\ufff9\ufffb",
    "soft hyphen": "a\u00adb",
    "private use": "\ue000",
    "delete": "\x7f",
    "tab": "a\tb",
}
HARMFUL = {each for written in HOSTILE.values() for each in written if not each.isprintable()}
MARKUP = "<img src=x onerror=alert(1)>\"'&"

NAMES = """\
survey: names
epsilon: 60
questions:
  name: {ask: "Name?", text: 8, epsilon: 50}
"""


def estimate(values: list[str]) -> dict[str, Any]:
    n = len(values)
    numbers = {"estimates": [0.1] * n, "margins": [0.1] * n, "consistent": [0.1] * n}
    found = {
        "ask": "?",
        "n": 10,
        "epsilon": 1.0,
        "statistic": "frequency",
        "values": values,
        **numbers,
    }
    return {"name": {**found, "poisoned_by_1_percent": 0.1}}


@pytest.mark.parametrize("written", HOSTILE.values(), ids=HOSTILE.keys())
def test_nothing_that_a_terminal_obeys_is_shown(written: str) -> None:
    found = estimate([written, "plain", MARKUP])
    lines = list(text(found))
    assert len(lines) == len(list(text(estimate(["x", "plain", MARKUP]))))
    for shown in (*lines, label(written)):
        assert not HARMFUL & set(shown)
    assert not HARMFUL - {"\n"} & set(document("names", found))
    assert "<img" not in document("names", found)
    as_json = json_text(found)
    assert not HARMFUL & set(as_json)
    assert json.loads(as_json) == found  # and nothing is lost


def test_letters_of_all_languages_are_shown_as_they_are() -> None:
    for written in ("Zoë Müller", "東京", "שלום", "سلام", "हिन्दी", "🙂", "a\u00a0b"):
        assert json.loads(json_text(written)) == written
    assert label("Zoë 東京 שלום हिन्दी 🙂") == "Zoë 東京 שלום हिन्दी 🙂"


def test_a_frequent_escape_does_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Through the whole way: reports, the walk down the tree, and every form of the estimate."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.yaml").write_text(NAMES)
    survey = from_text(NAMES, file="n")
    written = ["\x1b[2J", "\x9b31m", "\u202ex"]
    reports = [survey.question("name").protocol.respond(written[i % 3]) for i in range(3000)]
    ReportStore(tmp_path / "names.reports", survey).accept(
        submission(survey, person(), {"name": each}) for each in reports
    )
    assert cli.run(["collect", "estimate", "names.yaml", "--chart", "c.html"]) == 0
    shown = capsys.readouterr().out
    assert cli.run(["collect", "estimate", "names.yaml", "--format", "json"]) == 0
    as_json = capsys.readouterr().out
    assert set(json.loads(as_json)["name"]["values"]) == set(written)
    assert "\ufffd[2J" in shown
    for each in (shown, as_json, (tmp_path / "c.html").read_text()):
        assert not HARMFUL - {"\n"} & set(each)
    with serving(survey, tmp_path / "names.reports") as address:
        from urllib.request import urlopen

        for path in ("/estimate", "/estimate.json"):
            with urlopen(address + path) as reply:
                assert not HARMFUL - {"\n"} & set(reply.read().decode())


@pytest.mark.parametrize(
    "change",
    [
        {"tallies": {"mood@\x1b[2J": {"n": 1, "counts": [1, 0]}}},
        {"tallies": {"mood@": {"n": 1, "counts": [1, 0]}}},
        {"tallies": {"mood": {"n": 1, "counts": [1, 0]}}},
        {"tallies": {"mood@1": {"n": 1, "counts": [-1, 0]}}},
        {"tallies": {"mood@1": {"n": 1, "counts": [2**70, 0]}}},
        {"refused": {"\x1b[2J": 1}},
        {"refused": {"malformed": "\x1b[2J"}},
        {"refused": {"malformed": -1}},
        {"refused": ["malformed"]},
    ],
)
def test_sums_of_another_collector_are_read_as_sums_only(change: dict[str, Any]) -> None:
    survey = from_text(
        "survey: d\nepsilon: 30\nquestions:\n"
        "  mood: {ask: x, values: [a, b], epsilon: 1, repeats: {instant: 2, changes: 1}}",
        file="d",
    )
    with pytest.raises(UsageError, match=r"sums|round"):
        sums_from_json(
            survey, {"survey": survey.fingerprint, "tallies": {}, "refused": {}} | change
        )


@contextmanager
def collector_that_says(body: bytes) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "body",
    [
        b'{"accepted": "\\u001b[2J", "repeated": 0, "refused": {}}',
        b'{"accepted": 1, "repeated": 0, "refused": {"malformed": "\\u001b[2J"}}',
        b'{"accepted": 1, "repeated": 0, "refused": {"\xc2\x9b2J": 1}}',
        b'{"accepted": 1}',
        b"[]",
        b"7",
        b"[" * 60_000,
    ],
)
@pytest.mark.parametrize("format", ["table", "json"])
def test_a_receipt_is_numbers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: bytes,
    format: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weekend.yaml").write_text(WEEKEND)
    with collector_that_says(body) as address:
        words = [
            "respond",
            "weekend.yaml",
            "--answer",
            "drank=no",
            "--to",
            address,
            "--state",
            "me.json",
        ]
        cli.run([*words, "--format", format])
    shown = capsys.readouterr()
    assert not HARMFUL - {"\n"} & set(shown.out + shown.err)
    assert (
        weekend().fingerprint in shown.out
        or "did not take" in shown.out + shown.err
        or "accepted 1" in shown.out
    )
