"""Print in the format that `--format` names. It means the same for every command, and a command
refuses a format that it cannot print before it does any work.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    arrow = "arrow"
    parquet = "parquet"


def _report(value: Format) -> Format:
    if value not in (Format.table, Format.json):
        raise UsageError(
            f"--format {value} is for commands that print rows, and this one prints none. "
            "Write --format table or --format json."
        )
    return value


RowsFormat = Annotated[Format, typer.Option("--format", help="How to print the rows.")]
"""The option of commands whose result is a table."""
ReportFormat = Annotated[
    Format,
    typer.Option(
        "--format", callback=_report, metavar="[table|json]", help="How to print the report."
    ),
]
"""The option of commands whose result is a report."""


def print_json(value: Mapping[str, Any], default: Callable[[Any], Any] | None = None) -> None:
    """Print one JSON object on one line, with control characters escaped, so that no value can
    control the terminal.
    """
    from discreet.display.show import json_text

    print(json_text(value, default))


def print_report(format: Format, text: str, facts: Mapping[str, Any]) -> None:
    """Print a report: its text for people, or its facts as JSON."""
    if format is Format.json:
        print_json(facts)
    else:
        print(text)


def print_rows(table: pa.Table, format: Format) -> None:
    """Print a table for programs: CSV as text; an Arrow IPC stream or a Parquet file as bytes."""
    from discreet.display import formats

    match format:
        case Format.csv:
            sys.stdout.write(formats.as_csv(table))
        case Format.arrow:
            sys.stdout.buffer.write(formats.as_arrow(table))
        case Format.parquet:
            sys.stdout.buffer.write(formats.as_parquet(table))
        case _:
            raise UsageError(f"--format {format} cannot hold rows.")
