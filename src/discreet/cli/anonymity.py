"""The commands `risk` and `anonymize`: k-anonymity and its family, with their warning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json
from discreet.errors import UsageError
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.anonymity.hierarchies import Spec


class RecodingName(StrEnum):
    local = "local"
    global_ = "global"


class LossName(StrEnum):
    ncp = "ncp"
    lm = "lm"
    precision = "precision"
    entropy = "entropy"
    discernibility = "discernibility"


class DiversityName(StrEnum):
    distinct = "distinct"
    entropy = "entropy"
    recursive = "recursive"


class ClosenessName(StrEnum):
    equal = "equal"
    ordered = "ordered"
    hierarchical = "hierarchical"


Data = Annotated[Path, typer.Argument(metavar="DATA", help="The table, CSV or Parquet.")]
Quasi = Annotated[
    str, typer.Option(help="Columns that others may know about people, separated by commas.")
]
Sensitive = Annotated[
    str | None, typer.Option(help="The column that must not be learned about anybody.")
]
Hierarchies = Annotated[
    Path | None, typer.Option(metavar="FILE", help="How columns may be coarsened, in YAML.")
]


def register(app: typer.Typer) -> None:
    app.command()(risk)
    app.command()(anonymize)


def risk(
    data: Data,
    quasi: Quasi,
    sensitive: Sensitive = None,
    population: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A table of the whole population, with the same columns."
        ),
    ] = None,
    fraction: Annotated[
        float | None,
        typer.Option(help="Instead of --population: the share of the population in DATA."),
    ] = None,
    hierarchies: Hierarchies = None,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Also show the most exposed rows.")
    ] = False,
    format: ReportFormat = Format.table,
) -> None:
    """Measure how exposed the people of a table are: k, l, t, and which columns make them
    unique.
    """
    from discreet.anonymity import risk as measure_risk

    report = measure_risk(
        data,
        quasi=_names(quasi),
        sensitive=sensitive,
        population=population,
        fraction=fraction,
        hierarchies=_read(hierarchies),
    )
    if format is Format.json:
        print_json(report.as_json(reveal=reveal))
        return
    from discreet.anonymity.report.terminal import print_risk

    print_risk(report, reveal=reveal)


def anonymize(
    data: Data,
    quasi: Quasi,
    k: Annotated[
        int | None,
        typer.Option("--k", help="Make classes of at least so many rows that look alike."),
    ] = None,
    l: Annotated[  # noqa: E741
        float | None,
        typer.Option("--l", help="The least diversity of the sensitive column in each class."),
    ] = None,
    t: Annotated[
        float | None,
        typer.Option(
            "--t", help="How far the sensitive column of a class may be from the whole table's."
        ),
    ] = None,
    sensitive: Sensitive = None,
    suppress: Annotated[
        float, typer.Option(metavar="SHARE", help="The share of rows that may be left out.")
    ] = 0.0,
    recoding: Annotated[
        RecodingName,
        typer.Option(
            help="local: coarsen each class as little as it needs; global: all rows alike."
        ),
    ] = RecodingName.local,
    hierarchies: Hierarchies = None,
    write_hierarchies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Only write the hierarchies that would be used, to edit them."
        ),
    ] = None,
    loss: Annotated[LossName, typer.Option(help="The kind of loss to keep small.")] = LossName.ncp,
    weights: Annotated[
        str | None, typer.Option(help="Weights of columns: age=2,zip=0.5; the others weigh 1.")
    ] = None,
    diversity: Annotated[
        DiversityName, typer.Option(help="The kind of diversity that l demands.")
    ] = DiversityName.distinct,
    c: Annotated[float | None, typer.Option("--c", help="The c of recursive diversity.")] = None,
    closeness: Annotated[
        ClosenessName | None,
        typer.Option(help="The distance that t limits; by default the column's type decides."),
    ] = None,
    drop: Annotated[str | None, typer.Option(help="Columns not to publish, such as names.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A .csv or .parquet file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a report, as an HTML page.")
    ] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Coarsen columns until people look alike, losing as little as possible; say what this does not
    protect from.
    """
    from discreet.anonymity import Demand
    from discreet.anonymity import anonymize as make_anonymous

    if write_hierarchies is not None:
        _write_hierarchies(data, _names(quasi), _read(hierarchies), write_hierarchies, format)
        return
    if k is None or out is None:
        raise UsageError(
            "Say how many people must look alike, and name a file for the table: --k 5 --out FILE."
        )
    require_writable(out, report)
    from discreet.cli.printing.tables import progress_bar

    demand = Demand(
        quasi=_names(quasi),
        k=k,
        l=l,
        t=t,
        sensitive=sensitive,
        diversity=diversity.value,
        c=c,
        closeness=None if closeness is None else closeness.value,
        suppress=suppress,
        recoding=recoding.value,
        loss=loss.value,
    )
    with progress_bar() as progress:
        release = make_anonymous(
            data,
            demand,
            hierarchies=_read(hierarchies),
            weights=_weights(weights),
            drop=_names(drop) if drop else (),
            out=out,
            report=report is not None or format is Format.table,
            progress=progress,
        )
    if report is not None:
        from discreet.anonymity.report.page import page

        write_file(report, page(release, title=f"{data.name}, {release.guarantee}"))
    if format is Format.json:
        print_json({"out": str(out), **release.as_json()})
        return
    from discreet.anonymity.report.terminal import print_anonymized

    print_anonymized(release, where=str(out))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _read(path: Path | None) -> dict[str, Spec] | None:
    from discreet.anonymity import read

    return None if path is None else read(path)


def _weights(text: str | None) -> dict[str, float] | None:
    if text is None:
        return None
    weights = {}
    for part in _names(text):
        name, _, value = part.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            raise UsageError(f"--weights {part} is no weight. Write column=2.") from None
    return weights


def _write_hierarchies(
    data: Path, quasi: Sequence[str], given: dict[str, Spec] | None, path: Path, format: Format
) -> None:
    """Write the hierarchies that would be used. Values that a given tree lacks are listed under
    `unlisted`.
    """
    from discreet.anonymity.hierarchy_file import suggest, text_of

    if path.exists():
        raise UsageError(f"{path} is there already. Name another file.")
    require_writable(path)
    specs = suggest(data, quasi, given)
    write_file(path, text_of(specs))
    if format is Format.json:
        print_json({"hierarchies": str(path), "columns": list(specs)})
        return
    print(f"Wrote {path}. Edit it, then: discreet anonymize {data} --hierarchies {path} ...")
