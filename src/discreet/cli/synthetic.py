"""The commands for synthetic data: `describe`, `generate`, `inspect`, `compare` and `query`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from discreet.files import replacing, require_writable, write_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from discreet.curator import Curator
    from discreet.synthetic.description import Description

TRIALS = 1000  # attempts of each attack on raw rows

DescriptionFile = Annotated[
    Path, typer.Argument(metavar="DESCRIPTION", help="A file that `describe` wrote.")
]

WorkloadOption = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Questions that it should answer well: an SQL file, or `asked`."
    ),
]

TargetOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN=VALUE", help="Also try a classifier of a column: income=high, or smoker."
    ),
]


def register(app: typer.Typer) -> None:
    app.command()(describe)
    app.command()(generate)
    app.command()(inspect)
    app.command()(compare)
    app.command()(query)


def describe(
    policy: Policy,
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="A private table; or several about the same people, their own table first.",
        ),
    ],
    epsilon: Annotated[str, typer.Option(help="The ε that the description may cost.")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    analyst: Annotated[str, typer.Option(help="Who pays.")] = "curator",
    synthesizer: Annotated[
        str | None, typer.Option(help="The algorithm; see docs/synthetic.md.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Only these columns, separated by commas.")
    ] = None,
    bins: Annotated[
        int | None,
        typer.Option(help="Into how many intervals to cut a column of many numbers or dates."),
    ] = None,
    quantiles: Annotated[
        str | None, typer.Option(help="Columns to cut at their quantiles, which costs a part of ε.")
    ] = None,
    workload: WorkloadOption = None,
    findings: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="FINDINGS", help="Findings that should hold on its rows; see `parity`."
        ),
    ] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Pay for a model of private tables. It is one file, to read and to draw synthetic rows
    from.
    """
    from discreet.cli.printing.tables import progress_bar
    from discreet.cli.question import open_curator
    from discreet.errors import UsageError
    from discreet.synthetic.columns.axis import BINS, Intervals

    if len(tables) > 1 and (columns, quantiles, findings) != (None, None, None):
        raise UsageError(
            "--columns, --quantiles and --for are for one table; describe several without."
        )
    require_writable(out)
    curator = open_curator(policy)
    intervals = Intervals(
        bins=BINS if bins is None else bins,
        quantiles=() if quantiles is None else _names(quantiles),
    )
    with progress_bar("describing:") as progress:
        if len(tables) > 1:
            linked = curator.describe_together(
                tables,
                epsilon=epsilon,
                analyst=analyst,
                synthesizer=synthesizer,
                intervals=intervals,
                workload=_questions(curator, workload),
                progress=progress,
            )
            linked.save(out)
            made = linked.people
        else:
            made = curator.describe(
                tables[0],
                epsilon=epsilon,
                analyst=analyst,
                synthesizer=synthesizer,
                columns=None if columns is None else _names(columns),
                intervals=intervals,
                workload=_needs(curator, tables[0], workload, findings),
                progress=progress,
            )
            made.save(out)
    if format is Format.json:
        told = {
            "out": str(out),
            "cost": made.cost,
            "expected_rows": made.rows,
            "warnings": list(made.warnings),
        }
        print_json(told)
        return
    named = ", ".join(tables)
    print(
        f"Wrote {out}: {named} by {made.synthesizer}, about {made.rows} rows, ε = {made.cost['epsilon']:.6g}."
    )
    for warning in made.warnings:
        typer.echo(warning, err=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _questions(curator: Curator, workload: str | None) -> tuple[str, ...] | None:
    """Return the questions of a file, or those that were asked so far."""
    from discreet.errors import UsageError
    from discreet.synthetic.workload import statements

    if workload is None:
        return None
    if workload == "asked":
        return curator.asked()
    try:
        return statements(Path(workload).read_text(encoding="utf-8"), name=workload)
    except (OSError, UnicodeDecodeError):
        raise UsageError(
            f"{workload} cannot be read. Name an SQL file, or write `asked`."
        ) from None


def _needs(
    curator: Curator, table: str, workload: str | None, findings: str | None
) -> tuple[str, ...] | None:
    """Return the questions of a workload, and one more for each finding, which names the columns
    that the finding needs.
    """
    asked = _questions(curator, workload)
    if findings is None:
        return asked
    from discreet.errors import UsageError
    from discreet.evaluate.data import study

    given = study(findings)
    declared = curator.policy.tables.get(table)
    if declared is None or given.table.lower() != table.lower():
        raise UsageError(f"The findings of {findings} are about {given.table}, not {table}.")
    return (*(asked or ()), *given.workload(tuple(declared.columns)))


def generate(
    description: DescriptionFile,
    rows: Annotated[
        int, typer.Option(help="How many rows to draw; for several tables, how many people.", min=0)
    ],
    out: Annotated[
        Path, typer.Option(help="A .parquet or .csv file; for several tables, a folder.")
    ],
    given: Annotated[
        list[str] | None,
        typer.Option(help="Draw only rows with this value, such as sex=F; may be repeated."),
    ] = None,
) -> None:
    """Draw any number of synthetic rows from a description. Free."""
    from discreet.cli.printing.tables import progress_bar
    from discreet.errors import UsageError
    from discreet.synthetic.description import Description
    from discreet.synthetic.linked.description import is_linked

    pairs = [each.partition("=") for each in given or ()]
    for name, sign, _ in pairs:
        if not sign:
            raise UsageError(f"--given {name} is no condition. Write --given column=value.")
    if is_linked(description):
        _generate_linked(description, rows, out, given=bool(pairs))
        return
    if out.suffix not in (".parquet", ".csv"):
        raise UsageError(f"{out} should end in .parquet or .csv.")
    require_writable(out)
    described = Description.load(description)
    batches = described.batches(rows=rows, given={name: value for name, _, value in pairs})
    with progress_bar("writing") as progress:
        _write(out, described.schema, batches, rows, progress)
    print(f"Wrote {rows} rows to {out}.")


def _generate_linked(description: Path, people: int, out: Path, *, given: bool) -> None:
    """Write one Parquet file for each of several tables, into a folder."""
    import pyarrow.parquet

    from discreet.errors import UsageError
    from discreet.synthetic.linked.description import LinkedDescription

    if given:
        raise UsageError("--given is for a description of one table.")
    if out.suffix:
        raise UsageError(f"{out} should be a folder: there are several tables.")
    linked = LinkedDescription.load(description)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{out} cannot be made: {error.strerror}.") from None
    for name, table in linked.generate(people=people).items():
        require_writable(out / f"{name}.parquet")
        with replacing(out / f"{name}.parquet") as file:
            pyarrow.parquet.write_table(table, file)
        print(f"Wrote {table.num_rows} rows to {out / name}.parquet.")


def _write(
    out: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int, progress: object
) -> None:
    """Write batch by batch, so that memory does not grow with the rows."""
    import pyarrow.csv
    import pyarrow.parquet

    open_writer = (
        pyarrow.parquet.ParquetWriter if out.suffix == ".parquet" else pyarrow.csv.CSVWriter
    )
    done = 0
    with replacing(out) as file, open_writer(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            done += batch.num_rows
            if callable(progress):
                progress("rows", done / rows)


def inspect(
    description: DescriptionFile,
    html: Annotated[Path | None, typer.Option(help="Also write a report with pictures.")] = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Compare with the true rows, in a second report that is secret."
        ),
    ] = None,
    control: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --raw: people not in the data.")
    ] = None,
    target: TargetOption = None,
    format: ReportFormat = Format.table,
) -> None:
    """Show what to expect of a description: its columns, its pairs, and how wrong each may be.
    Touches no data.

    With --raw, a second report beside the description, NOT FOR RELEASE: exact scores, and the risks
    of attacks.
    """
    from discreet.cli.printing.tables import progress_bar
    from discreet.display.show import printable
    from discreet.errors import UsageError
    from discreet.synthetic.description import Description
    from discreet.synthetic.linked.description import is_linked
    from discreet.synthetic.report.inspect import as_json, text
    from discreet.synthetic.report.reports import description_page

    if raw is None and (control is not None or target is not None):
        raise UsageError("--control and --target are for the report on true rows. Add --raw FILE.")
    require_writable(html)
    if is_linked(description):
        if raw is not None:
            raise UsageError("--raw is for a description of one table.")
        _inspect_linked(description, html, format)
        return
    described = Description.load(description)
    with progress_bar("inspecting:") as progress:
        if html is not None:
            write_file(html, description_page(described, progress=progress))
        if format is Format.json:
            print_json(as_json(described, progress=progress))
        else:
            print(printable(text(described, progress=progress)))
    if raw is not None:
        out = description.with_suffix(".NOT-FOR-RELEASE.html")
        write_file(out, _raw_page(described, raw, control, target), secret=True)
        typer.echo(f"Wrote {out}: NOT FOR RELEASE.", err=True)


def _inspect_linked(description: Path, html: Path | None, format: Format) -> None:
    """Show the report of every part: people with their numbers of rows, then the rows of each
    table.
    """
    from discreet.display.show import printable
    from discreet.synthetic.linked.description import LinkedDescription
    from discreet.synthetic.report.inspect import as_json, text
    from discreet.synthetic.report.reports import description_page

    parts = LinkedDescription.load(description).parts
    for part in parts if html is not None else ():
        assert html is not None
        write_file(html.with_name(f"{html.stem}.{part.table}{html.suffix}"), description_page(part))
    if format is Format.json:
        print_json({"parts": [as_json(part) for part in parts]})
    else:
        print(printable("\n\n".join(text(part) for part in parts)))


def _raw_page(described: Description, raw: Path, control: Path | None, target: str | None) -> str:
    """Write exact scores, and what attacks make of as many synthetic rows as there are true
    ones.
    """
    from discreet.attacks import inference, linkability, membership, single_out
    from discreet.attacks.experiment.finding import percent
    from discreet.attacks.inputs.source import table
    from discreet.synthetic.classify import target_of
    from discreet.synthetic.report.raw import raw_report
    from discreet.synthetic.report.reports import raw_page

    if target is not None:
        target_of(described, target)  # a wrong name is told before the work
    true = rows_as_described(described, table(raw))
    others = None if control is None else rows_as_described(described, table(control))
    made = described.generate(rows=true.num_rows)
    names = [axis.name for axis in described.axes]
    found: list[tuple[str, Any]] = [
        ("single out", single_out(made, true, others, columns=min(3, len(names)), trials=TRIALS))
    ]
    if len(names) > 1:
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        secret = names[-1] if target is None else target.partition("=")[0].strip()
        found.append(
            ("link two halves", linkability(made, true, others, halves=halves, trials=TRIALS))
        )
        found.append(
            (f"infer {secret}", inference(made, true, others, secret=secret, trials=TRIALS))
        )
    if others is not None:
        found.append(("tell members", membership(made, true, others, trials=TRIALS)))
    risks = []
    for name, each in found:
        beyond = getattr(each, "risk", None)
        on_control = getattr(each, "control", None)
        told = (
            "–"
            if beyond is None
            else f"{percent(beyond.value)} (up to {percent(beyond.interval[1])})"
        )
        outside = "–" if on_control is None else percent(on_control.value)
        risks.append(
            (name, percent(each.finding.success), percent(each.finding.chance), outside, told)
        )
    return raw_page(raw_report(described, true, target=target, risks=risks))


def rows_as_described(described: Description, table: pa.Table) -> pa.Table:
    """Return raw rows with the description's columns and types."""
    import pyarrow as pa

    from discreet.errors import UsageError

    names = described.schema.names
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise UsageError(f"The raw rows have no column {missing[0]}, which the description has.")
    try:
        return table.select(names).cast(described.schema, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        raise UsageError(
            "The columns of the raw rows have other types than those of the description."
        ) from None


def compare(
    policy: Policy,
    description: DescriptionFile,
    epsilon: Annotated[str, typer.Option(help="The ε that the comparison may cost.")],
    analyst: Annotated[str, typer.Option(help="Who pays.")] = "curator",
    workload: WorkloadOption = None,
    target: TargetOption = None,
    html: Annotated[Path | None, typer.Option(help="Also write a report with pictures.")] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Pay for a comparison of real and synthetic rows: distances, correlations, questions, a
    classifier. The result may be published.
    """
    from discreet.cli.printing.tables import progress_bar
    from discreet.cli.question import open_curator
    from discreet.display.show import printable
    from discreet.errors import UsageError
    from discreet.synthetic.description import Description
    from discreet.synthetic.linked.description import LinkedDescription, is_linked

    require_writable(html)
    if is_linked(description):
        if workload is not None or target is not None or html is not None:
            raise UsageError("--workload, --target and --html are for a description of one table.")
        linked = LinkedDescription.load(description)
        several = open_curator(policy).compare_together(linked, epsilon=epsilon, analyst=analyst)
        if format is Format.json:
            print_json({"parts": [each.as_json() for each in several]})
        else:
            print(printable("\n\n".join(f"{each.table}\n{each}" for each in several)))
        return
    described = Description.load(description)
    curator = open_curator(policy)
    with progress_bar("comparing:") as progress:
        found = curator.compare(
            described,
            epsilon=epsilon,
            analyst=analyst,
            workload=_questions(curator, workload),
            target=target,
            progress=progress,
        )
    if html is not None:
        from discreet.synthetic.report.reports import comparison_page

        write_file(html, comparison_page(found))
    print_report(format, printable(str(found)), found.as_json())


def query(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Released rows, .parquet or .csv.")],
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT statement.")],
    table: Annotated[
        str | None, typer.Option(help="The table's name in the SQL; by default the file's name.")
    ] = None,
    format: RowsFormat = Format.table,
) -> None:
    """Ask a released table in the same SQL. The answers are exact and free, because it is
    public.
    """
    from rich.table import Table

    from discreet.attacks.inputs.source import table as read
    from discreet.cli.printing.tables import output, plainly
    from discreet.display.show import readable
    from discreet.synthetic.released import ask
    from discreet.vault.answer import plain

    found = ask(sql, {table or file.stem: read(file)})
    rows = [
        [plain(value) for value in row]
        for row in zip(*(c.to_pylist() for c in found.columns), strict=True)
    ]
    match format:
        case Format.json:
            print_json({"columns": found.column_names, "rows": rows})
        case Format.table:
            shown = Table(show_edge=False, header_style="bold", pad_edge=False)
            for name in found.column_names:
                shown.add_column(plainly(name))
            for row in rows:
                shown.add_row(
                    *(plainly("–" if value is None else readable(value)) for value in row)
                )
            output().print(shown)
        case _:
            print_rows(found, format)
