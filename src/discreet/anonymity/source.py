"""The table to measure or to anonymize: an Arrow table, or a CSV or Parquet file that DuckDB reads
out of core.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from discreet.engines.duckdb.locked import connect
from discreet.engines.files import delimiter_of, first_line, guess_csv, parquet
from discreet.engines.quoting import literal
from discreet.engines.quoting import name as quoted
from discreet.errors import UsageError
from discreet.policy.document import nearest

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table inside DuckDB, by the name `data`. Whatever is too large for memory is grouped on
    disk.
    """

    connection: duckdb.DuckDBPyConnection
    types: Mapping[str, str]
    rows: int

    def require(self, columns: Sequence[str], *, what: str) -> None:
        for name in columns:
            if name not in self.types:
                raise UsageError(
                    f"{what} names {name}, which the table does not have. {nearest(name, self.types)}"
                )
        twice = {name for name in columns if list(columns).count(name) > 1}
        if twice:
            raise UsageError(f"{what} names {', '.join(sorted(twice))} twice.")

    def groups(self, columns: Sequence[str]) -> Groups:
        """Return the distinct combinations of some columns, with the number of rows that have
        each.
        """
        for name in columns:
            if self.types[name].startswith(("STRUCT", "MAP", "UNION")) or self.types[name].endswith(
                "]"
            ):
                raise UsageError(
                    f"{name} holds lists or structures, which cannot be grouped. Leave it out, or drop it."
                )
        chosen = ", ".join(quoted(name) for name in columns)
        return group_rows(self.arrow(f"SELECT {chosen}, COUNT(*) AS rows FROM data GROUP BY ALL"))

    def arrow(self, query: str) -> pa.Table:
        return self.connection.sql(query).to_arrow_table()


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """Distinct combinations: of each column its values in order (null last), of each combination
    where they stand.
    """

    columns: tuple[str, ...]
    values: tuple[pa.Array, ...]
    codes: tuple[Integers, ...]
    counts: Integers

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    def position(self, column: str) -> int:
        return self.columns.index(column)


def group_rows(found: pa.Table) -> Groups:
    """Return the distinct combinations of a query's result, sorted; its last column is their
    number.
    """
    encoded = [encode(column) for column in found.columns[:-1]]
    order = np.lexsort([codes for _, codes in reversed(encoded)])
    return Groups(
        columns=tuple(found.column_names[:-1]),
        values=tuple(values for values, _ in encoded),
        codes=tuple(codes[order] for _, codes in encoded),
        counts=found.column(found.num_columns - 1).to_numpy().astype(np.int64)[order],
    )


@contextmanager
def open_table(
    data: pa.Table | str | Path,
    *,
    types: Mapping[str, str] | None = None,
    beside: SourceTable | None = None,
) -> Iterator[SourceTable]:
    """Open a table to query; `types` are for columns of a CSV file that was written here. `beside`
    lends its engine.
    """
    with _connect() if beside is None else beside.connection.cursor() as connection:
        if isinstance(data, (str, Path)):
            rows = view(connection, "data", Path(data), types or {})
        elif isinstance(data, pa.Table):
            if len(set(data.column_names)) < data.num_columns:
                raise UsageError("Two columns of the table have the same name.")
            connection.register("data", data)
            rows = data.num_rows
        else:
            raise UsageError(
                f"An Arrow table, or the name of a CSV or Parquet file, not {type(data).__name__}."
            )
        described = connection.execute("DESCRIBE data").fetchall()
        yield SourceTable(
            connection=connection, types={name: kind for name, kind, *_ in described}, rows=rows
        )


@contextmanager
def _connect() -> Iterator[duckdb.DuckDBPyConnection]:
    """Start an engine of its own, which spills to a folder of its own and loads nothing from
    elsewhere.
    """
    with (
        tempfile.TemporaryDirectory(prefix="discreet-") as spill,
        connect(files=True, spill=spill) as connection,
    ):
        yield connection


def view(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, types: Mapping[str, str]
) -> int:
    """Give a file a name, and return its rows; counting them finds a row that cannot be read."""
    try:
        connection.execute(
            f"CREATE TEMP VIEW {name} AS SELECT * FROM {_file(connection, path, types)}"
        )
        ((rows,),) = connection.execute(f"SELECT COUNT(*) FROM {name}").fetchall()
    except (duckdb.Error, OSError):
        shape = "Its first line must name the columns, and every other must have a value for each, all in UTF-8."
        said = f"{path} cannot be read as {path.suffix.lstrip('.').upper()}."
        raise UsageError(f"{said} {shape}" if path.suffix == ".csv" else said) from None
    return int(rows)


def _file(connection: duckdb.DuckDBPyConnection, path: Path, types: Mapping[str, str]) -> str:
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    if path.suffix == ".parquet":
        return parquet([path])
    if path.suffix != ".csv":
        raise UsageError(f"{path} should be a .csv or .parquet file.")
    if not first_line(path).strip():
        raise UsageError(f"{path} has no header. Its first line must name the columns.")
    # The header alone decides how lines become fields: an engine that guesses skips lines that do
    # not fit.
    cut = partial(guess_csv, [path], delimiter="," if types else delimiter_of(path))
    kept = dict(types) or _leading_zeros(connection, cut)
    listed = ", ".join(f"{literal(column)}: {literal(kind)}" for column, kind in kept.items())
    return cut(options=f", types = {{{listed}}}" if kept else "")


def _leading_zeros(
    connection: duckdb.DuckDBPyConnection, cut: Callable[..., str]
) -> dict[str, str]:
    """Return columns that look like numbers and are not: 02139 is a ZIP code, not 2139."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {cut()}").fetchall()
    numeric = [name for name, kind, *_ in described if kind in ("BIGINT", "HUGEINT", "DOUBLE")]
    if not numeric:
        return {}
    tests = ", ".join(
        f"coalesce(bool_or(regexp_matches({quoted(name)}, '^0[0-9]')), false)" for name in numeric
    )
    (zeros,) = connection.execute(
        f"SELECT {tests} FROM {cut(options=', all_varchar = true')}"
    ).fetchall()
    return {name: "VARCHAR" for name, zero in zip(numeric, zeros, strict=True) if zero}


def encode(column: pa.ChunkedArray | pa.Array) -> tuple[pa.Array, Integers]:
    """Return a column's distinct values in order, null last, and the place of each entry among
    them.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # no chunks at all
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
    if pa.types.is_dictionary(whole.type):
        whole = whole.cast(whole.type.value_type)
    found = pc.dictionary_encode(whole, null_encoding="encode")
    order = pc.array_sort_indices(found.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return found.dictionary.take(pa.array(order)), rank[
        found.indices.to_numpy(zero_copy_only=False)
    ]


def plain(value: Any) -> str | None:
    """Write a value as in a hierarchy file or a published table."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"{value:.0f}"
    return str(value)
