"""One file with everything that goes wrong at once, from `init` to an answer, as a stranger would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from discreet.cli import run
from test_tutorial import edited

HEAD = "Patienten-Nr;Geburtsdatum;PLZ; Geschlecht ;Aufnahme;Kosten (EUR);Diagnose;Raucher;{}"
ROWS = 600
DIAGNOSES = ("Grippe", "Schnupfen ", "Müdigkeit", " Husten", "NA")
EDITS = (
    "unit: patient",
    "aufnahmen.Geburtsdatum: {date: [1900-01-01, 2024-12-31], format: '%d/%m/%Y'}",
    "aufnahmen.Aufnahme: {timestamp: [2024-01-01, 2025-01-01], step: 1min, format: '%d/%m/%Y %H:%M'}",
    "aufnahmen.Kosten (EUR): {decimal: [0, 50000], step: 0.01}",
    "aufnahmen.Diagnose: {values: [Grippe, Schnupfen, Müdigkeit, Husten]}",
    "aufnahmen.read: {encoding: latin-1, trim: true, fold: case, decimal: comma}",
    "budget.epsilon: 5",
    "analysts.alice: {epsilon: 5}",
)


def rows() -> list[str]:
    """Semicolons, commas and points in numbers, days before months, blanks, letters of Latin-1,
    leading zeros, spellings of no answer, and empty lines.
    """
    found = []
    for place in range(ROWS):
        sex = ("m", "w", "M ", "W", "d", "n/a")[place % 6]
        cost = "k.A." if place % 50 == 0 else f"{place % 24 + 1}.{place % 1000:03},{place % 100:02}"
        day = f"{place % 28 + 1:02}/{place % 12 + 1:02}"
        smoker = ("ja", "Nein", "JA", "nein")[place % 4]
        fields = (
            f"{place:06}",
            f"{day}/1960",
            f"0{place % 9000 + 1000}",
            sex,
            f"{day}/2024 08:{place % 60:02}",
        )
        found.append(";".join((*fields, cost, DIAGNOSES[place % 5], smoker, "B")))
    return [*found[:100], "", *found[100:], ""]


def test_a_file_with_everything_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("klinik").mkdir()
    file = Path("klinik/aufnahmen.csv")

    def write(last: str) -> None:
        file.write_bytes("\r\n".join([HEAD.format(last), *rows()]).encode("latin-1"))

    write("Diagnose")
    assert run(["init", "klinik", "--out", "klinik.yaml"]) == 2
    assert "aufnahmen.csv has two columns Diagnose. Rename one." in capfd.readouterr().err
    write("Station")
    assert run(["init", "klinik", "--out", "klinik.yaml"]) == 0
    text = Path("klinik.yaml").read_text()
    assert "    owner: Patienten-Nr  # from the name" in text
    assert run(["ledger", "klinik.yaml", "--create"]) == 0
    assert run(["snapshot", "klinik.yaml"]) == 0
    told = capfd.readouterr()
    assert told.err == ""
    for line in (
        "! Geburtsdatum: 600 (100 %) could not be read and became NULL",
        "would be read with  format: '%d/%m/%Y'",
        "! Kosten (EUR): 600 (100 %) could not be read",
        "would be read with  read: {trim: true, fold: case, decimal: comma}",
    ):
        assert line in told.out
    assert "000599" not in told.out
    for edit in EDITS:
        after = edited(text, edit)
        assert after != text, edit
        text = after
    Path("klinik.yaml").write_text(text)
    for path in Path().glob("klinik.ledger*"):
        path.unlink()
    assert run(["check", "klinik.yaml"]) == 0, capfd.readouterr().err
    assert run(["ledger", "klinik.yaml", "--create"]) == 0
    assert run(["snapshot", "klinik.yaml"]) == 0
    report = capfd.readouterr().out
    assert "aufnahmen: 600 of 600 rows kept" in report
    assert "would be read with" not in report
    for sql, exact in (
        ("SELECT COUNT(*) FROM aufnahmen WHERE Geburtsdatum < '1961-01-01'", 600),
        ("SELECT COUNT(*) FROM aufnahmen WHERE Diagnose = 'Müdigkeit'", 120),
        ("SELECT COUNT(*) FROM aufnahmen WHERE Raucher = 'ja'", 300),
        ('SELECT COUNT("Kosten (EUR)") FROM aufnahmen', 588),
        ("SELECT COUNT(*) FROM aufnahmen WHERE date_part('hour', Aufnahme) = 8", 600),
    ):
        words = ["--analyst", "alice", "--epsilon", "1", "--format", "json"]
        if run(["ask", "klinik.yaml", sql, *words]):
            raise AssertionError(capfd.readouterr().out)
        ((number,),) = json.loads(capfd.readouterr().out)["rows"]
        assert abs(number - exact) < 25, sql  # farther with a chance below e^-24
