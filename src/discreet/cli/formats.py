"""`--format`: what each format means, for every command alike. A command that cannot print one refuses it at once."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    arrow = "arrow"
    parquet = "parquet"


def _report(value: Format) -> Format:
    if value not in (Format.table, Format.json):
        raise UsageError(f"--format {value} is for rows, and this prints none. Write --format table or --format json.")
    return value


RowsFormat = Annotated[Format, typer.Option("--format", help="How to print the rows.")]
"""Of commands whose result is a table."""
ReportFormat = Annotated[
    Format, typer.Option("--format", callback=_report, metavar="[table|json]", help="How to print it.")
]
"""Of commands that report."""


def print_rows(table: pa.Table, format: Format) -> None:
    """Print a table for programs: CSV as text; an Arrow IPC stream or a Parquet file as bytes."""
    match format:
        case Format.csv:
            _print_csv(table)
        case Format.arrow:
            import pyarrow as pa

            with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:
                writer.write_table(table)
        case Format.parquet:
            import pyarrow.parquet

            pyarrow.parquet.write_table(_without_intervals(table), sys.stdout.buffer)
        case _:
            raise UsageError(f"--format {format} is not for rows.")


def _print_csv(table: pa.Table) -> None:
    import csv

    writer = csv.writer(sys.stdout)
    writer.writerow(table.column_names)
    writer.writerows(zip(*([_flat(value) for value in column.to_pylist()] for column in table.columns), strict=True))


def _without_intervals(table: pa.Table) -> pa.Table:
    """The table with intervals as text, because Parquet has no type for them."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_interval(field.type):
            texts = [_flat(value) for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _flat(value: Any) -> Any:
    """A value as CSV holds it: a list or a struct is its text."""
    from discreet.show import readable
    from discreet.vault.answer import plain

    simple = plain(value)
    return readable(simple) if isinstance(simple, list | dict) else simple
