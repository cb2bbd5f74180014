"""What `discreet attack` says to somebody who gave too little."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.cli import run


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["census"], "Give the statistics as JSON, or --demo."),
        (["reconstruct"], "Give an .npz of queries and answers, or --demo."),
        (["census", "none.json"], "There is no file none.json. Give the statistics as JSON"),
        (["link"], "Give 2 files (--help says which), or --demo."),
    ],
)
def test_what_is_missing_is_named(
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["attack", *words]) == 2
    assert sentence in capsys.readouterr().err
