"""How one file is read: by its own header and types, whatever its name and its folders' names
are.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.anonymity.source import open_table
from discreet.engines.files import csv_header, delimiter_of
from discreet.errors import UsageError


@pytest.mark.parametrize(
    ("header", "delimiter", "names"),
    [
        ("a,b", ",", ["a", "b"]),
        ("a;b,c;d", ";", ["a", "b,c", "d"]),
        ('"Last, first";id', ";", ["Last, first", "id"]),
        ("\ufeffa\tb", "\t", ["a", "b"]),
        ("only", ",", ["only"]),
    ],
)
def test_the_header_says_how_a_file_is_cut(
    tmp_path: Path, header: str, delimiter: str, names: list[str]
) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"{header}\n1{delimiter}2\n", encoding="utf-8")
    assert delimiter_of(file) == delimiter
    assert csv_header(file) == names


def test_no_file_no_header(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        delimiter_of(tmp_path / "x.csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_of_folders_and_files_are_names(tmp_path: Path, suffix: str) -> None:
    """No column is made of a folder's name, and a file called [1]* is that file."""
    folder = tmp_path / "year=2024"
    folder.mkdir()
    file = folder / f"people[1]*{suffix}"
    if suffix == ".csv":
        file.write_text("age\n7\n", encoding="utf-8")
    else:
        pq.write_table(pa.table({"age": [7]}), file)
    (folder / f"people1x{suffix}").write_bytes(file.read_bytes())
    with open_table(file) as source:
        assert (list(source.types), source.rows) == (["age"], 1)
