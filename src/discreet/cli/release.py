"""The commands `release quote`, `start`, `run` and `show`: publish statistics every period for one
ε.
"""

from __future__ import annotations

from datetime import datetime
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
from discreet.cli.question import Policy
from discreet.files import require_writable

if TYPE_CHECKING:
    from discreet.continual.running import Release
    from discreet.continual.series import Series


Name = Annotated[str, typer.Argument(metavar="NAME", help="A release of the policy.")]
AsOf = Annotated[
    datetime | None,
    typer.Option(
        "--as-of",
        formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"],
        help="Publish the periods that were over at this time; by default now.",
    ),
]


def register(app: typer.Typer) -> None:
    family = typer.Typer(
        help="Publish statistics every day or week for one ε: start once, run every period, show.",
        no_args_is_help=True,
    )
    family.command()(quote)
    family.command()(start)
    family.command()(run)
    family.command()(show)
    app.add_typer(family, name="release")


def quote(policy: Policy, name: Name, format: ReportFormat = Format.table) -> None:
    """Show what a release would cost, and its margins in each period. Free; reads no data."""
    found = _release(policy, name).quote()
    print_report(format, str(found), found.as_json())


def start(policy: Policy, name: Name, format: ReportFormat = Format.table) -> None:
    """Pay once for a release over its whole horizon. Starting it again changes nothing."""
    series = _release(policy, name).start()
    if format is Format.json:
        print_json(series.as_json())
        return
    print(
        f"Started the release {name}: {series.budget} for the whole horizon, strategy: {series.design.strategy.name}."
    )
    print(f"Now, and after every {series.schedule.period}: discreet release run {policy} {name}")


def run(
    policy: Policy, name: Name, as_of: AsOf = None, format: ReportFormat = Format.table
) -> None:
    """Publish every period that is over and not yet published, from the source as it is now."""
    release = _release(policy, name)
    before = release.show().periods
    series = release.run(as_of)
    if format is Format.json:
        print_json(series.as_json())
        return
    new = series.periods - before
    print(
        f"Published {new} {'period' if new == 1 else 'periods'} of {name}; {series.periods} so far."
    )


def show(
    policy: Policy,
    name: Name,
    out: Annotated[
        Path | None, typer.Option(help="Also write it to a .html, .json, .csv or .parquet file.")
    ] = None,
    consistent: Annotated[
        bool,
        typer.Option(
            "--consistent", help="Show revised values: no count below zero, and all sums agree."
        ),
    ] = False,
    format: RowsFormat = Format.table,
) -> None:
    """Show what has been published so far, and what it cost. Free; reads no data."""
    require_writable(out)
    series: Series = _release(policy, name).show()
    if consistent:
        series = series.consistent()
    if out is not None:
        series.save(out)
    match format:
        case Format.json:
            print_json(series.as_json())
        case Format.table:
            from discreet.continual.chart import text

            print(text(series))
        case _:
            print_rows(series.table, format)


def _release(policy: str, name: str) -> Release:
    from discreet.cli.question import open_curator

    return open_curator(policy).release(name)
