"""Read tables from CSV and Parquet files, whole or in batches. Other files are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from discreet.errors import UsageError

Batches = Callable[[], Iterator[pa.RecordBatch]]
"""Returns a table's batches, from the first, each time it is called. So large files are read several
times instead of kept in memory.
"""


def table(path: str | Path) -> pa.Table:
    """Read a CSV or Parquet file as an Arrow table."""
    path = Path(path)
    _refuse_if_missing(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return _readable(path, lambda: parquet.read_table(path))
    from pyarrow import csv

    return _readable(path, lambda: csv.read_csv(path))


def batches(source: str | Path | pa.Table, columns: Sequence[str]) -> Batches:
    """Return a reader of some columns of a file or table. A batch has a few million rows."""
    if isinstance(source, pa.Table):
        chosen = source.select(list(columns))
        return lambda: iter(chosen.to_batches(max_chunksize=1 << 22))
    path = Path(source)
    _refuse_if_missing(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return lambda: parquet.ParquetFile(path).iter_batches(
            batch_size=1 << 22, columns=list(columns)
        )
    from pyarrow import csv

    convert = csv.ConvertOptions(include_columns=list(columns))
    blocks = csv.ReadOptions(block_size=1 << 26)
    return lambda: iter(csv.open_csv(path, read_options=blocks, convert_options=convert))


def names(source: str | Path | pa.Table) -> list[str]:
    """Return the names of the columns of a file or table."""
    if isinstance(source, pa.Table):
        return list(source.column_names)
    path = Path(source)
    _refuse_if_missing(path)
    if path.suffix == ".parquet":
        from pyarrow import parquet

        return list(parquet.read_schema(path).names)
    with path.open(encoding="utf-8-sig") as lines:
        return [name.strip().strip('"') for name in next(lines, "").strip().split(",")]


def column(source: pa.Table, name: str, what: str) -> pa.ChunkedArray:
    if name not in source.column_names:
        raise UsageError(f"{what} needs a column {name}; it has {', '.join(source.column_names)}.")
    return source.column(name)


def _refuse_if_missing(path: Path) -> None:
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")


def _readable(path: Path, read: Callable[[], pa.Table]) -> pa.Table:
    try:
        return read()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise UsageError(
            f"{path} cannot be read as {path.suffix.lstrip('.').upper() or 'CSV'}."
        ) from None
