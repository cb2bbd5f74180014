"""The commands `publish quote`, `run`, `show` and `demo`: publish tables of a hierarchy that add
up, for one charge.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_report
from discreet.cli.question import Policy
from discreet.display.show import printable
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.census.publication import Publication
    from discreet.census.running import PublicationRun


class Files(StrEnum):
    parquet = "parquet"
    csv = "csv"


Name = Annotated[str, typer.Argument(metavar="NAME", help="A publication of the policy.")]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Also write it as one HTML page.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FOLDER", help="Also write every table and the microdata as files."
    ),
]
FilesOption = Annotated[Files, typer.Option("--files", help="The format of the files of --out.")]


def register(app: typer.Typer) -> None:
    family = typer.Typer(
        help="Publish tables of a hierarchy that add up, for one charge: quote, run, show.",
        no_args_is_help=True,
    )
    family.command()(quote)
    family.command()(run)
    family.command()(show)
    family.command()(demo)
    app.add_typer(family, name="publish")


def quote(policy: Policy, name: Name, format: ReportFormat = Format.table) -> None:
    """Show what a publication would cost, and its margins by level and table. Free; reads no
    data.
    """
    found = _publication(policy, name).quote()
    print_report(format, str(found), found.as_json())


def run(
    policy: Policy,
    name: Name,
    html: Html = None,
    out: Out = None,
    files: FilesOption = Files.parquet,
    jobs: Annotated[
        int,
        typer.Option(help="How many processes share the work; the numbers do not depend on it."),
    ] = 1,
    format: ReportFormat = Format.table,
) -> None:
    """Pay for a publication and make it. Running it again is free and changes nothing."""
    require_writable(html)
    _require_folder(out)
    _tell(_publication(policy, name).run(jobs=jobs), html, out, files, format)


def show(
    policy: Policy,
    name: Name,
    html: Html = None,
    out: Out = None,
    files: FilesOption = Files.parquet,
    format: ReportFormat = Format.table,
) -> None:
    """Show what was published, with its margins. Free; reads no data."""
    require_writable(html)
    _require_folder(out)
    _tell(_publication(policy, name).show(), html, out, files, format)


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Where to build the country.")
    ] = Path("country"),
    people: Annotated[int, typer.Option(help="How many people live there.")] = 20_000,
) -> None:
    """Build an invented country of large and small places, with a policy and a ledger, to try
    `publish` on.
    """
    from discreet.binding import create_ledger
    from discreet.errors import UsageError
    from discreet.examples import country
    from discreet.policy.policy import Policy as PolicyFile

    if not 100 <= people <= 10_000_000:
        raise UsageError(f"--people must be from 100 to 10,000,000, not {people}.")
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is there already. Remove it, or name another folder: discreet publish demo FOLDER."
        )
    policy = country.build(folder, people=people)
    create_ledger(PolicyFile.read(policy))
    print(f"A country of {people:,} people is in {folder}/data; {policy} says what is public.")
    print(f"Go on:  discreet publish quote {policy} census_2030")
    print(f"        discreet publish run {policy} census_2030 --html census.html")


def _tell(
    found: Publication, html: Path | None, out: Path | None, files: Files, format: Format
) -> None:
    """Print a publication, and write the files that were asked for."""
    from discreet.census.page import page, text

    if html is not None:
        write_file(html, page(found))
    if out is not None:
        found.save(out, csv=files is Files.csv)
    print_report(format, printable(text(found)), found.as_json())


def _require_folder(out: Path | None) -> None:
    """Refuse a folder that cannot be written, before anything is paid."""
    from discreet.errors import UsageError

    if out is None:
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"The folder {out} cannot be written: {error.strerror}.") from None
    require_writable(out / "certificate.json")


def _publication(policy: str, name: str) -> PublicationRun:
    from discreet.cli.question import open_curator

    return open_curator(policy).publication(name)
