"""The commands of an analyst: `ask`, `quote`, `explain` and `tables`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.printing.formats import (
    Format,
    ReportFormat,
    RowsFormat,
    print_json,
    print_report,
    print_rows,
)
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.curator import Curator


Policy = Annotated[str, typer.Argument(metavar="POLICY", help="The policy file.")]
Sql = Annotated[
    str | None,
    typer.Argument(metavar="[SQL]", help="One SELECT statement; `-` reads it from standard input."),
]
File = Annotated[
    Path | None, typer.Option("--file", "-f", help="Read the statement from a file instead.")
]
Analyst = Annotated[
    str,
    typer.Option(envvar="DISCREET_ANALYST", help="Who asks: the name of an analyst in the policy."),
]
Epsilon = Annotated[str | None, typer.Option(help="The ε that the answer may cost, such as 0.1.")]
Margin = Annotated[
    str | None,
    typer.Option(help="Instead of --epsilon: the 95 % margin that you accept, such as 5."),
]
Assuming = Annotated[
    int | None,
    typer.Option(help="How many rows to assume: the margins of means and quantiles depend on it."),
]
Dialect = Annotated[str, typer.Option(help="The dialect of the SQL: duckdb or postgres.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the result alone, without notes.")
]


def register(app: typer.Typer) -> None:
    app.command()(ask)
    app.command()(quote)
    app.command()(explain)
    app.command()(tables)


def ask(
    policy: Policy,
    analyst: Analyst,
    sql: Sql = None,
    file: File = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    dialect: Dialect = "duckdb",
    format: RowsFormat = Format.table,
    quiet: Quiet = False,
) -> None:
    """Answer a question, and pay for it. The same question again is free."""
    text = statement(sql, file)
    answer = open_curator(policy).ask(
        text, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
    )
    match format:
        case Format.json:
            print_json(answer.as_json())
        case Format.table:
            from discreet.cli.printing.tables import print_answer

            print_answer(answer, quiet=quiet)
        case _:
            from discreet.display.formats import with_margins

            print_rows(with_margins(answer), format)


def quote(
    policy: Policy,
    analyst: Analyst,
    sql: Sql = None,
    file: File = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    dialect: Dialect = "duckdb",
    format: ReportFormat = Format.table,
) -> None:
    """Show what a question would cost and how wrong the answer would be. Free."""
    text = statement(sql, file)
    found = open_curator(policy).quote(
        text, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
    )
    print_report(format, str(found), found.as_json())


def explain(
    policy: Policy,
    analyst: Analyst,
    sql: Sql = None,
    file: File = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
    assuming: Assuming = None,
    dialect: Dialect = "duckdb",
    format: ReportFormat = Format.table,
) -> None:
    """Explain in numbered sentences what would be read, which noise would be added, and what would
    be computed. Free.
    """
    text = statement(sql, file)
    explanation = open_curator(policy).explain(
        text, analyst=analyst, epsilon=epsilon, margin=margin, assuming=assuming, dialect=dialect
    )
    print_report(format, explanation, {"explanation": explanation.split("\n")})


def tables(policy: Policy, format: ReportFormat = Format.table) -> None:
    """Show the tables, columns, types, ranges, values and keys. Free: the policy makes all of this
    public.
    """
    curator = open_curator(policy)
    if format is Format.json:
        listing = {
            "database": curator.policy.path.stem,
            "unit": curator.policy.unit,
            "tables": [table.as_json() for table in curator.tables()],
        }
        print_json(listing)
        return
    from discreet.cli.printing.tables import output, print_listing

    console = output()
    for table in curator.tables():
        print_listing(table, console)


def statement(sql: str | None, file: Path | None) -> str:
    """Return the statement: as it was typed, or read from a file or from standard input."""
    if (sql is None) == (file is None):
        raise UsageError(
            "Write one statement, as SQL, with --file FILE, or with - from standard input."
        )
    try:
        if sql == "-" or file == Path("-"):
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return str(sql) if file is None else file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"The statement in {file} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError("The statement is not UTF-8 text.") from None


def open_curator(policy: str) -> Curator:
    """Return the curator of a policy file.

    The first call for a policy takes the first snapshot, and shows a progress bar.
    """
    import discreet
    from discreet.cli.printing.tables import progress_bar

    with progress_bar() as progress:
        return discreet.open(policy, progress=progress)
