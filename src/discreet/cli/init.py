"""`init`: begin a policy, from a schema and never from values; with `--ask`, column by column in the terminal."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.files import require_writable, write_file
from discreet.cli.question import Quiet
from discreet.errors import PolicyError, UsageError

if TYPE_CHECKING:
    from discreet.engines.draft import ColumnDraft
    from discreet.policy.domain import Column

_EPSILON = 0.1  # of the example by which a choice is explained


def register(app: typer.Typer) -> None:
    app.command()(init)


def init(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A folder of Parquet or CSV files, a .duckdb, .sqlite or .xlsx file, or postgresql://...",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the policy.")] = Path("policy.yaml"),
    codebook: Annotated[
        Path | None, typer.Option(help="What columns may contain: CSV or JSON of column, type, range, values; or DDI.")
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Go through the columns one by one.")] = False,
    quiet: Quiet = False,
) -> None:
    """Begin a policy from the schema of some data. Its values are never looked at."""
    from discreet.engines.codebook import Codebook
    from discreet.engines.draft import draft

    if out.exists():
        raise UsageError(f"{out} is there already. Name another file with --out.")
    require_writable(out)
    known = None if codebook is None else Codebook.read(codebook)
    made = draft(data, beside=out.parent, codebook=known)
    if ask:
        made = made.asked(_ask)
    text = made.text()
    write_file(out, text)
    if quiet:
        return
    columns = [column for table in made.tables for column in table.columns]
    said = sum(column.suggestion is not None and column.suggestion.declaration is not None for column in columns)
    print(f"Wrote {out}: {said} of {len(columns)} columns are declared, the others are left out.")
    unknown = [table.name for table in made.tables if table.owner == "???"]
    if unknown:
        listed = ", ".join(unknown)
        print(f"Say whose the rows are (owner: ???) in {listed}, or {{public: true}} where they are nobody's.")
    print(f"Check every line that says so. Then: discreet check {out}")


def _ask(table: str, column: ColumnDraft) -> str | None:
    """Ask for one column's declaration until it is one; an empty answer takes the suggestion, - leaves it out."""
    from discreet.engines.suggest import HINTS

    suggestion = None if column.suggestion is None else column.suggestion.declaration
    print(f"\n{table}.{column.name}  ({column.type or 'text in a CSV file'})")
    if suggestion is not None and column.suggestion is not None:
        print(f"  suggested {column.suggestion.why.removesuffix(': check')}: {suggestion}")
        _explain(column.name, suggestion)
    elif column.family in HINTS:
        print(f"  could be {HINTS[column.family]}")
    while True:
        takes = (
            "Enter takes it, - leaves it out, or write another" if suggestion else "write one, or Enter to leave it out"
        )
        answer = str(typer.prompt(f"  {takes}", default="", show_default=False)).strip()
        if answer == "-" or (not answer and suggestion is None):
            return None
        if not answer:
            return suggestion
        if _explain(column.name, answer):
            return answer


def _explain(name: str, declaration: str) -> bool:
    """Say what a declaration costs; whether it is one."""
    try:
        column = _read(name, declaration)
    except PolicyError as error:
        print("  " + "; ".join(problem.message for problem in error.problems))
        return False
    print(f"  {cost_of(column)}")
    return True


def _read(name: str, declaration: str) -> Column:
    from discreet.policy.policy import Policy

    quoted = "'" + name.replace("'", "''") + "'"
    columns = f"    columns:\n      {quoted}: {declaration}\n"
    text = f"unit: person\nbudget: {{epsilon: 1}}\ntables:\n  t:\n    owner: o\n{columns}"
    return Policy.parse(text, path="policy.yaml").tables["t"].columns[name]


def cost_of(column: Column) -> str:
    """What the choice of a domain costs, in one sentence."""
    from discreet.policy.domain import Categories, Decimals, Identifier, Integers, Text

    domain = column.domain
    match domain:
        case Integers() | Decimals():
            largest = float(max(abs(domain.first), abs(domain.last)) * domain.step)
            margin = math.log(20) * largest / _EPSILON
            return f"A sum at ε = {_EPSILON} is right to ± {margin:,.0f}: half the range is half the noise."
        case Categories():
            margin = math.log(20) / _EPSILON
            return f"{domain.size:,} public groups; a count of each at ε = {_EPSILON} is right to ± {margin:,.0f}."
        case Text():
            return "Not public: only values that enough people share are shown, and that costs some δ."
        case Identifier():
            return "Can be joined on and counted by person; never shown, summed or grouped by."
        case _:
            return f"{domain.size:,} possible values, all public: coarser groups are more precise."
