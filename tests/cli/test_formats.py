"""`--format` means the same for every command, or is refused before any work; files are written
whole or not at all.
"""

from __future__ import annotations

import csv
import io
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest
import typer

from discreet import cli
from discreet.cli.printing.formats import Format, print_rows
from discreet.errors import UsageError
from discreet.files import replacing, write_file

ROWS = {("ask",), ("query",), ("release", "show")}
LISTS = pa.table({"name": ["a", None], "list": [[1, 2], None], "n": [1.5, 2.0]})


def commands(
    group: Any = None, verbs: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    group = group or typer.main.get_command(cli.app())
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, (*verbs, name))
        else:
            yield (*verbs, name), each


WITH_FORMAT = {
    verbs: command
    for verbs, command in commands()
    if any("--format" in each.opts for each in command.params)
}


def test_every_command_takes_the_same_formats() -> None:
    assert len(WITH_FORMAT) >= 20
    for verbs, command in WITH_FORMAT.items():
        option = next(each for each in command.params if "--format" in each.opts)
        assert type(option.default) is Format, verbs
        assert option.default is Format.table, verbs


@pytest.mark.parametrize("verbs", WITH_FORMAT, ids=" ".join)
@pytest.mark.parametrize("format", ["csv", "arrow", "parquet"])
def test_a_command_that_prints_no_rows_refuses_formats_of_rows(
    verbs: tuple[str, ...], format: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything is opened: none of these files exists."""
    needed = [
        each
        for each in WITH_FORMAT[verbs].params
        if each.required or each.param_type_name == "argument"
    ]
    given = [
        ["nowhere"] if each.param_type_name == "argument" else [each.opts[0], "1"]
        for each in needed
    ]
    code = cli.run([*verbs, *(word for words in given for word in words), "--format", format])
    said = capsys.readouterr().err
    assert code != 0
    assert ("prints none" in said) == (verbs not in ROWS), said


def test_csv_arrow_and_parquet_hold_the_same_rows(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    found = {}
    for format in (Format.csv, Format.arrow, Format.parquet):
        print_rows(LISTS, format)
        sys.stdout.flush()
        found[format] = capfdbinary.readouterr().out
    assert pa.ipc.open_stream(found[Format.arrow]).read_all().equals(LISTS)
    assert pyarrow.parquet.read_table(io.BytesIO(found[Format.parquet])).equals(LISTS)
    rows = list(csv.reader(io.StringIO(found[Format.csv].decode())))
    assert rows == [["name", "list", "n"], ["a", "[1, 2]", "1.5"], ["", "", "2.0"]]


def test_files_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    page, link = tmp_path / "page.html", tmp_path / "link.html"
    write_file(page, "± one")
    link.symlink_to(page)
    write_file(link, b"two", secret=True)
    assert page.read_text(encoding="utf-8") == "two"
    assert link.is_symlink()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    write_file(None, "nothing")
    with pytest.raises(UsageError, match="could not be written"):
        write_file(tmp_path / "nowhere" / "page.html", "three")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link.html", "page.html"]


def test_one_place_writes_the_files_of_commands() -> None:
    saving = ("census/publication.py", "continual/series.py", "synthetic/description.py")
    package = Path(cli.__file__).parent.parent
    for path in (*(package / "cli").rglob("*.py"), *(package / each for each in saving)):
        assert ".write_text(" not in path.read_text(), path.name
        assert ".write_bytes(" not in path.read_text(), path.name


def test_a_file_that_is_not_finished_is_not_there(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    write_file(table, "before")

    def stop_halfway() -> None:
        with replacing(table) as file:
            file.write_bytes(b"half")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        stop_halfway()
    assert table.read_text(encoding="utf-8") == "before"
    with pytest.raises(UsageError, match="could not be written: No space"), replacing(table):
        raise OSError(28, "No space left on device")
    with replacing(table) as file:
        file.write_bytes(b"after")
    assert table.read_text(encoding="utf-8") == "after"
    assert [each.name for each in tmp_path.iterdir()] == ["table.parquet"]
