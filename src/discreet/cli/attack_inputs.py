"""Read the arguments of `attack`: files of tables, lists of columns, and ranges."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def read_range(text: str) -> tuple[str, tuple[float, float]]:
    """Return the column and the ends of `income=0:200000`."""
    column, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        interval = float(low), float(high)
    except ValueError:
        interval = 0.0, 0.0
    if not column or not interval[0] < interval[1]:
        raise UsageError(f"--range {text} is not a range. Write it as income=0:200000.")
    return column.strip(), interval


def table_file(table: str, data: Path | None, log: Path) -> tuple[str, Path]:
    """Return the table's name in the questions, and its file."""
    if data is not None:
        return Path(table).stem, data
    given = Path(table)
    ends = (".parquet", ".csv")
    places = [given]
    for folder in (log.parent, Path()):
        places += [folder / f"{table}{end}" for end in ends]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise UsageError(f"There is no table {table}: name its file, or give it with --data.")
    return given.stem if given.suffix in ends else table, file


def require_file(file: Path | None, what: str) -> Path:
    """Return the file; refuse if none was named, or if it does not exist."""
    if file is None:
        raise UsageError(f"Give {what}, or --demo.")
    if not file.is_file():
        raise UsageError(f"There is no file {file}. Give {what}, or --demo.")
    return file


def split_commas(values: list[str] | None) -> list[str]:
    """Return the values of an option that may be repeated, or have commas."""
    parts = [part.strip() for value in values or () for part in value.split(",")]
    return [part for part in parts if part]


def require_files(*paths: Path | None) -> list[Path]:
    """Return the files; refuse if fewer were named."""
    given = [path for path in paths if path is not None]
    if len(given) < len(paths):
        raise UsageError(f"Give {len(paths)} files (--help says which), or --demo.")
    return given


def read_tables(*paths: Path | None) -> list[pa.Table]:
    """Return the tables of files, all of which must be named."""
    from discreet.attacks.inputs.source import table

    return [table(path) for path in require_files(*paths)]


def read_if_given(path: Path | None) -> pa.Table | None:
    """Return the table of a file that need not be named."""
    return None if path is None else read_tables(path)[0]
