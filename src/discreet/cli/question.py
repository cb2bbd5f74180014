"""`ask`, `quote` and `explain`: an analyst's verbs."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from discreet.curator import Curator
    from discreet.release import Answer


class Format(StrEnum):
    table = "table"
    json = "json"
    csv = "csv"
    arrow = "arrow"


Policy = Annotated[str, typer.Argument(metavar="POLICY", help="The policy file.")]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")]
Analyst = Annotated[str, typer.Option(help="Who asks.")]
Epsilon = Annotated[str | None, typer.Option(help="What the answer may cost.")]
Margin = Annotated[str | None, typer.Option(help="Instead: how wrong it may be, at 95 %.")]
Assuming = Annotated[int | None, typer.Option(help="How many rows to assume, for margins of means and quantiles.")]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print it.")]


def register(app: typer.Typer) -> None:
    app.command()(ask)
    app.command()(quote)
    app.command()(explain)


def ask(
    policy: Policy,
    sql: Sql,
    analyst: Analyst,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    format: FormatOption = Format.table,
) -> None:
    """Answer a question, at its price. The same question again is free."""
    answer = opened(policy).ask(sql, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming)
    match format:
        case Format.json:
            print(json.dumps(answer.as_json(), ensure_ascii=False))
        case Format.csv:
            _print_csv(answer)
        case Format.arrow:
            _print_arrow(answer)
        case Format.table:
            from discreet.cli.tables import print_answer

            print_answer(answer)


def quote(
    policy: Policy,
    sql: Sql,
    analyst: Analyst,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    format: FormatOption = Format.table,
) -> None:
    """What a question would cost and how wrong the answer would be. Free."""
    quoted = opened(policy).quote(sql, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming)
    print(json.dumps(quoted.as_json(), ensure_ascii=False) if format is Format.json else quoted)


def explain(
    policy: Policy,
    sql: Sql,
    analyst: Analyst,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    format: FormatOption = Format.table,
) -> None:
    """What would be read, noised and computed, in numbered sentences. Free."""
    text = opened(policy).explain(sql, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming)
    print(json.dumps({"explanation": text.split("\n")}, ensure_ascii=False) if format is Format.json else text)


def opened(policy: str) -> Curator:
    """The curator of a policy file; its first opening takes the first snapshot, with a progress bar."""
    import discreet
    from discreet.cli.tables import progress_bar

    with progress_bar() as progress:
        return discreet.open(policy, progress=progress)


def _print_csv(answer: Answer) -> None:
    """The values, and behind each column that has margins a column of them."""
    import csv

    from discreet.cli.tables import flat

    writer = csv.writer(sys.stdout)
    columns: list[tuple[str, list[Any]]] = []
    for name, values, margins in zip(
        answer.table.column_names, answer.table.columns, answer.margins.columns, strict=True
    ):
        columns.append((name, [flat(value) for value in values.to_pylist()]))
        if margins.null_count < len(margins):
            columns.append((f"{name} ±", margins.to_pylist()))
    writer.writerow([name for name, _ in columns])
    writer.writerows(zip(*(values for _, values in columns), strict=True))


def _print_arrow(answer: Answer) -> None:
    """An Arrow IPC stream: the values, then the margins as columns named `name ±`."""
    import pyarrow as pa

    table = answer.table
    for name, margins in zip(answer.margins.column_names, answer.margins.columns, strict=True):
        if margins.null_count < len(margins):
            table = table.append_column(f"{name} ±", margins)
    with pa.ipc.new_stream(sys.stdout.buffer, table.schema) as writer:
        writer.write_table(table)
