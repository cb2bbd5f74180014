"""Readers of sources that DuckDB does not read itself: SQLite, Excel, PostgreSQL, labelled files of
SPSS, Stata and SAS, and the tables of Spark.
"""

from __future__ import annotations

from pathlib import Path

from discreet.engines.readers.excel import Excel
from discreet.engines.readers.labelled import LABELLED, Labelled
from discreet.engines.readers.lake import Lake
from discreet.engines.readers.postgres import Postgres
from discreet.engines.readers.reader import Reader
from discreet.engines.readers.sqlite import SQLite
from discreet.errors import UsageError
from discreet.policy.engine import LAKES
from discreet.policy.policy import Policy

_SQLITE = (".sqlite", ".sqlite3", ".db3")
_SQLITE_MARK = b"SQLite format 3\x00"
_EXCEL = (".xlsx", ".xlsm")
_POSTGRES = ("postgresql://", "postgres://")


def reader_at(location: str | Path) -> Reader | None:
    """Return the reader of a source; None if no reader here reads it."""
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


def lake_at(location: str, policy: Policy | None) -> Lake | None:
    """Return the tables at a location that the policy's Spark reads; None if it is no such
    location.

    Raise UsageError if the policy's engine is not Spark.
    """
    kind, colon, place = location.partition(":")
    if kind not in LAKES or not colon:
        return None
    if policy is None or policy.engine.name != "spark":
        raise UsageError(
            f"A {kind} source is read by Spark: add `engine: {{name: spark, at: sc://host:15002}}` to the policy."
        )
    return Lake(kind=kind, place=place, at=policy.engine.at, names=tuple(policy.tables))


def _begins(path: Path, mark: bytes) -> bool:
    try:
        with path.open("rb") as content:
            return content.read(len(mark)) == mark
    except OSError:
        return False
