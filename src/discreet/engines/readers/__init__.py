"""Databases, workbooks and labelled files that somebody else's reader reads: SQLite, Excel,
PostgreSQL, SPSS.
"""

from __future__ import annotations

from pathlib import Path

from discreet.engines.readers.excel import Excel
from discreet.engines.readers.labelled import LABELLED, Labelled
from discreet.engines.readers.postgres import Postgres
from discreet.engines.readers.reader import Reader
from discreet.engines.readers.sqlite import SQLite

_SQLITE = (".sqlite", ".sqlite3", ".db3")
_SQLITE_MARK = b"SQLite format 3\x00"
_EXCEL = (".xlsx", ".xlsm")
_POSTGRES = ("postgresql://", "postgres://")


def reader_at(location: str | Path) -> Reader | None:
    """The reader of what is there; None where it is none of ours."""
    text = str(location)
    if text.startswith(_POSTGRES):
        return Postgres(address=text)
    path = Path(text)
    if path.is_file() and (path.suffix.lower() in _SQLITE or _begins(path, _SQLITE_MARK)):
        return SQLite(file=path)
    if path.suffix.lower() in _EXCEL and path.is_file():
        return Excel(file=path)
    if path.suffix.lower() in LABELLED and path.is_file():
        return Labelled(file=path)
    return None


def _begins(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as content:
            return content.read(len(mark)) == mark
    except OSError:
        return False
