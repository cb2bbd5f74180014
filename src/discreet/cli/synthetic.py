"""`describe`, `generate` and `inspect`: synthetic data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.question import Format, FormatOption, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from discreet.curator import Curator

DescriptionFile = Annotated[Path, typer.Argument(metavar="DESCRIPTION", help="A file that describe wrote.")]

WorkloadOption = Annotated[
    str | None, typer.Option(metavar="FILE", help="Questions it should be good at: an SQL file, or `asked`.")
]


def register(app: typer.Typer) -> None:
    app.command()(describe)
    app.command()(generate)
    app.command()(inspect)


def describe(
    policy: Policy,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A private table of the policy.")],
    epsilon: Annotated[str, typer.Option(help="What the description may cost.")],
    out: Annotated[Path, typer.Option(help="Where to write the description.")],
    analyst: Annotated[str, typer.Option(help="Who pays.")] = "curator",
    synthesizer: Annotated[str | None, typer.Option(help="Which algorithm; see docs/synthetic.md.")] = None,
    columns: Annotated[str | None, typer.Option(help="Only these columns, separated by commas.")] = None,
    bins: Annotated[int | None, typer.Option(help="Intervals of numbers and dates with many values.")] = None,
    workload: WorkloadOption = None,
    format: FormatOption = Format.table,
) -> None:
    """Model a private table, at a price, in one file to read and to generate rows from."""
    from discreet.cli.question import opened
    from discreet.cli.tables import progress_bar
    from discreet.errors import UsageError

    if not out.absolute().parent.is_dir():
        raise UsageError(f"{out.parent} is not a folder. Name a file in one that is there with --out.")
    curator = opened(policy)
    with progress_bar() as progress:
        made = curator.describe(
            table,
            epsilon=epsilon,
            analyst=analyst,
            synthesizer=synthesizer,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            bins=bins,
            workload=_questions(curator, workload),
            progress=progress,
        )
    made.save(out)
    if format is Format.json:
        told = {"out": str(out), "cost": made.cost, "expected_rows": made.rows, "warnings": list(made.warnings)}
        print(json.dumps(told, ensure_ascii=False))
        return
    print(f"Wrote {out}: {table} by {made.synthesizer}, about {made.rows} rows, ε = {made.cost['epsilon']:.6g}.")
    for warning in made.warnings:
        typer.echo(warning, err=True)


def _questions(curator: Curator, workload: str | None) -> tuple[str, ...] | None:
    """The questions of a file, or those that were asked so far."""
    from discreet.errors import UsageError
    from discreet.synthetic.workload import statements

    if workload is None:
        return None
    if workload == "asked":
        return curator.asked()
    try:
        return statements(Path(workload).read_text(encoding="utf-8"), name=workload)
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{workload} cannot be read. Name an SQL file, or write `asked`.") from None


def generate(
    description: DescriptionFile,
    rows: Annotated[int, typer.Option(help="How many rows.", min=0)],
    out: Annotated[Path, typer.Option(help="A .parquet or .csv file.")],
    given: Annotated[list[str] | None, typer.Option(help="A condition such as sex=F; may be repeated.")] = None,
) -> None:
    """Draw synthetic rows from a description. Free, any number, any number of times."""
    from discreet.cli.tables import progress_bar
    from discreet.errors import UsageError
    from discreet.synthetic.description import Description

    pairs = [each.partition("=") for each in given or ()]
    for name, sign, _ in pairs:
        if not sign:
            raise UsageError(f"--given {name} is no condition. Write --given column=value.")
    described = Description.load(description)
    if out.suffix not in (".parquet", ".csv"):
        raise UsageError(f"{out} should end in .parquet or .csv.")
    batches = described.batches(rows=rows, given={name: value for name, _, value in pairs})
    with progress_bar() as progress:
        _write(out, described.schema, batches, rows, progress)
    print(f"Wrote {rows} rows to {out}.")


def _write(out: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int, progress: object) -> None:
    """Batch by batch, so that memory does not grow with the rows."""
    import pyarrow.csv
    import pyarrow.parquet

    open_writer = pyarrow.parquet.ParquetWriter if out.suffix == ".parquet" else pyarrow.csv.CSVWriter
    done = 0
    with open_writer(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            done += batch.num_rows
            if callable(progress):
                progress("rows", done / rows)


def inspect(
    description: DescriptionFile,
    html: Annotated[Path | None, typer.Option(help="Also write a report with pictures.")] = None,
    format: FormatOption = Format.table,
) -> None:
    """What to expect of a description: its columns, its pairs, and how wrong each may be. Touches no data."""
    from discreet.cli.tables import progress_bar
    from discreet.synthetic.description import Description
    from discreet.synthetic.inspect import as_json, document, text

    described = Description.load(description)
    with progress_bar() as progress:
        if html is not None:
            html.write_text(document(described, progress=progress), encoding="utf-8")
        if format is Format.json:
            print(json.dumps(as_json(described, progress=progress), ensure_ascii=False))
        else:
            print(text(described, progress=progress))
