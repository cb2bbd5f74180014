"""Read one file of data: Parquet by its own schema, and CSV by its header. Nothing is guessed from
rows.

The functions return SQL to write after FROM. Every file that we read is read by this module.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, cast

from discreet.engines.frames import first_twice
from discreet.engines.quoting import literal
from discreet.errors import UsageError

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_DELIMITERS = ",;\t|"
# Privacy: names of folders (year=2024/) are no columns. Their type would be guessed from all of
# them together: one person's file in a folder of its own could change what everybody else's are
# read as.
_NO_FOLDERS = "hive_partitioning = false"
# Not `parallel = false`: it leaves out, without a word, all rows from a quote on that is never
# closed. Several threads compare where one of them ended with where the next began, and refuse the
# file.
_CUT = f"header = true, quote = '\"', escape = '\"', comment = '', skip = 0, {_NO_FOLDERS}"


def parquet(files: Iterable[Path], *, options: str = "") -> str:
    """Return the SQL that reads Parquet files, by their own types."""
    return f"read_parquet({list_of(files)}, {_NO_FOLDERS}{options})"


def guess_csv(files: Iterable[Path], *, delimiter: str, options: str = "") -> str:
    """Return the SQL that reads CSV files and guesses their types from the rows. Use it only for
    public files.
    """
    return f"read_csv({list_of(files)}, {_CUT}, delim = {literal(delimiter)}{options})"


def texts(file: Path, *, copy: Path | None = None, encoding: str | None = None) -> str:
    """Return the SQL that reads a CSV file, or a copy of it in UTF-8, with all columns as texts. It
    is cut into fields like its header.
    """
    columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in csv_header(file, encoding))
    cut = f"{_CUT}, delim = {literal(delimiter_of(file, encoding))}, auto_detect = false"
    return f"read_csv({list_of([copy or file])}, {cut}, columns = {{{columns}}})"


def csv_header(file: Path, encoding: str | None = None) -> list[str]:
    """Return the names of a CSV file's columns."""
    # Privacy: the header alone decides how a file is cut into fields. Were anything guessed from
    # the rows, one of them could change what the others are: that lines which begin with # are
    # comments, or where the header stands.
    delimiter = delimiter_of(file, encoding)
    line = first_line(file, encoding).rstrip("\r\n")
    try:
        header = next(csv.reader([line], delimiter=delimiter, strict=True), None)
    except csv.Error:
        header = None
    if not header or "\r" in line:  # the engine takes the first line for the header, whatever it is
        raise UsageError(
            f"The file {file.name} has no header. Its first line must name the columns."
        )
    names = [column.strip() or f"column{place}" for place, column in enumerate(header)]
    twice = first_twice(names)
    if twice is not None:
        raise UsageError(f"The file {file.name} has two columns {twice}. Rename one.")
    return names


def delimiter_of(file: Path, encoding: str | None = None) -> str:
    """Return the delimiter of a CSV file: of the usual ones, the one that is most frequent in its
    header.
    """
    header = re.sub('"[^"]*"', "", first_line(file, encoding))  # "Last, first" is one name
    return max(_DELIMITERS, key=header.count)


def fault_of(file: Path, encoding: str | None = None) -> str | None:
    """Return the number of the line that has not the fields of its header, and what was expected;
    never a value.
    """
    expected = len(csv_header(file, encoding))
    delimiter = delimiter_of(file, encoding)
    line = 1
    with open_file(file) as content:
        text = io.TextIOWrapper(
            content, encoding=encoding or "utf-8-sig", errors="replace", newline=""
        )
        rows = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for row in rows:
                if row and len(row) != expected:
                    there = f"{len(row)} fields, and the header has {expected}"
                    return f"The file {file.name}, line {line}: there are {there}. Mend it, or quote the field."
                line = rows.line_num + 1
        except csv.Error:
            return f"The file {file.name}, line {line}: a quote begins here that does not end as quotes do. Mend it."
    return None


def list_of(files: Iterable[Path]) -> str:
    """Return files as a list in SQL."""
    return f"[{', '.join(literal(_no_glob(str(file))) for file in files)}]"


def open_file(file: Path) -> IO[bytes]:
    """Open the content of a file, which may be compressed."""
    return cast(IO[bytes], gzip.open(file, "rb")) if file.suffix == ".gz" else file.open("rb")


def first_line(file: Path, encoding: str | None = None) -> str:
    """Return a file's first line as text, with its end."""
    try:
        with open_file(file) as content:
            if encoding is None:
                return content.readline(10**6).decode("utf-8-sig", "replace")
            text = io.TextIOWrapper(content, encoding=encoding, errors="replace", newline="\n")
            return text.readline(10**6).removeprefix("\ufeff")
    except (OSError, EOFError, zlib.error):
        raise UsageError(
            f"The file {file.name} cannot be read, or is not compressed as its name says."
        ) from None


def _no_glob(path: str) -> str:
    return "".join(f"[{mark}]" if mark in "*?[" else mark for mark in path)
