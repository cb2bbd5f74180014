"""`attack`: the auditor's and the teacher's verbs. Each takes files, or tells a story (`--demo`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing.formats import Format, ReportFormat
from discreet.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

from discreet.cli.printing.findings import (
    MOST_SHOWN,
    print_finding,
    print_links,
    print_risk,
    tell,
    tell_exposed,
)

Demo = Annotated[
    bool, typer.Option("--demo", help="Tell the story, with and without noise; no files needed.")
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="With --demo: write the story as a page."),
]
Reveal = Annotated[
    bool, typer.Option("--reveal", help="Show who it is. By default nobody is named.")
]
Truth = Annotated[
    str | None,
    typer.Option("--truth", help="A column that says who it really is, for experiments."),
]
Release = Annotated[
    Path | None, typer.Argument(metavar="RELEASE", help="The released table, CSV or Parquet.")
]
Original = Annotated[
    Path | None, typer.Argument(metavar="ORIGINAL", help="The people it was made from.")
]
Control = Annotated[
    Path | None, typer.Option("--control", metavar="FILE", help="People who are not in the data.")
]
Width = Annotated[
    float, typer.Option("--width", help="Try as many targets as make the interval this narrow.")
]
Trials = Annotated[int | None, typer.Option("--trials", help="Instead: how many attempts.")]


def register(app: typer.Typer) -> None:
    attacks = typer.Typer(
        no_args_is_help=True, help="Attack a release: what does it give away, and would noise help?"
    )
    for command in (
        link,
        scoreboard,
        difference,
        reconstruct,
        census,
        membership,
        linkability,
        inference,
    ):
        attacks.command()(command)
    attacks.command("single-out")(single_out)
    app.add_typer(attacks, name="attack")


def link(
    release: Release = None,
    identified: Annotated[
        Path | None, typer.Argument(metavar="IDENTIFIED", help="A table with names.")
    ] = None,
    on: Annotated[
        list[str] | None, typer.Option(help="Columns: zip, birth=born, born~3, name~0.9.")
    ] = None,
    truth: Truth = None,
    coverage: Annotated[
        float, typer.Option(help="The share of the population that the list has.")
    ] = 1.0,
    reveal: Reveal = False,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Join a release without names to a list with names."""
    if tell("link", demo, html, format):
        return
    from discreet.attacks import link as attack

    left, right = _tables(release, identified)
    found = attack(left, right, on=_split(on), truth=truth, coverage=coverage)
    shown = [
        ["+".join(u.columns), f"{u.release:.1%}", f"{u.identified:.1%}"] for u in found.uniqueness
    ]
    print_finding(
        found,
        found.as_json(reveal=reveal),
        format,
        ("unique by", "in the release", "on the list"),
        shown,
    )
    if format is Format.table:
        print_links(found, reveal)


def scoreboard(
    release: Release = None,
    aux: Annotated[
        Path | None,
        typer.Argument(metavar="AUX", help="What is known: columns target, item, value, day."),
    ] = None,
    method: Annotated[str, typer.Option(help="rh, or plain.")] = "rh",
    eccentricity: Annotated[
        float, typer.Option(help="How far the best match must stand out to be named.")
    ] = 1.5,
    truth: Truth = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Keep the index in this folder, or read it from there."
        ),
    ] = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Find sparse records (ratings, purchases, visits) by a few vague facts."""
    if tell("scoreboard", demo, html, format):
        return
    from discreet.attacks import scoreboard as attack

    source, known = _need(release, aux)
    way: Any = method
    found = attack(_index(source, index), known, method=way, eccentricity=eccentricity, truth=truth)
    matches: Any = found.as_json()["matches"]
    rows = [
        [m["target"], m["user"], f"{m['score']:.2f}", f"{m['eccentricity']:.2f}"] for m in matches
    ]
    print_finding(
        found, found.as_json(), format, ("target", "is user", "score", "eccentricity"), rows
    )


def _index(release: Path, folder: Path | None) -> Any:
    from discreet.attacks.inputs.ratings import Index, index

    if folder is not None and (folder / "index.json").is_file():
        return Index.open(folder)
    made = index(release)
    if folder is not None:
        made.save(folder)
    return made


def difference(
    log: Annotated[
        Path | None, typer.Argument(metavar="LOG", help="SQL questions, separated by semicolons.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="The table they are about: its file, or its name.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The table's file, if --table is a name.")
    ] = None,
    secret: Annotated[
        list[str] | None, typer.Option(help="Columns to protect; by default each in turn.")
    ] = None,
    range: Annotated[
        list[str] | None, typer.Option(help="The range of a number: income=0:200000.")
    ] = None,
    reveal: Reveal = False,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Find people whose secret follows from exact answers, alone or combined."""
    if tell("difference", demo, html, format):
        return
    from discreet.attacks import difference as attack
    from discreet.attacks.inputs.source import table as read

    if log is None or table is None:
        raise UsageError(
            "Name the log and the table: discreet attack difference LOG.sql --table people.parquet."
        )
    if not log.is_file():
        raise UsageError(f"There is no file {log}.")
    name, path = _data_of(table, data, log)
    ranges = dict(_range(each) for each in _split(range))
    secrets = _split(secret) or None
    found = attack(
        log.read_text(encoding="utf-8"), read(path), name=name, secrets=secrets, ranges=ranges
    )
    rows = [
        [
            e.row,
            e.quantity,
            ", ".join(str(number) for number, _ in e.chain) or "several",
            e.by,
            _value(e.value, reveal),
        ]
        for e in found.exposed[:MOST_SHOWN]
    ]
    if format is Format.table:
        print(tell_exposed(found))
    print_finding(
        found,
        found.as_json(reveal=reveal),
        format,
        ("row", "secret", "by questions", "how", "value"),
        rows,
    )
    if format is Format.table and len(found.exposed) > len(rows):
        print(f"and {len(found.exposed) - len(rows):,} more; --format json has all.")


def _range(text: str) -> tuple[str, tuple[float, float]]:
    column, _, ends = text.partition("=")
    low, _, high = ends.partition(":")
    try:
        found = float(low), float(high)
    except ValueError:
        found = 0.0, 0.0
    if not column or not found[0] < found[1]:
        raise UsageError(f"--range {text} is not a range. Write it as income=0:200000.")
    return column.strip(), found


def _value(value: float | None, reveal: bool) -> str:
    return "(--reveal)" if not reveal else "?" if value is None else f"{value:g}"


def _data_of(table: str, data: Path | None, log: Path) -> tuple[str, Path]:
    """Return the name that the questions use, and the file."""
    if data is not None:
        return Path(table).stem, data
    given = Path(table)
    places = [
        given,
        *(
            folder / f"{table}{end}"
            for folder in (log.parent, Path())
            for end in (".parquet", ".csv")
        ),
    ]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise UsageError(f"There is no table {table}: name its file, or give it with --data.")
    return given.stem if given.suffix in (".parquet", ".csv") else table, found


def reconstruct(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help=".npz of queries and answers, or a CSV.")
    ] = None,
    method: Annotated[str, typer.Option(help="lp, least-squares or exhaustive.")] = "least-squares",
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="For a CSV of tables: the people."),
    ] = None,
    count: Annotated[
        str, typer.Option(help="For a CSV of tables: the column of counts.")
    ] = "count",
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Work out one bit of each person from counts over groups of them."""
    if tell("reconstruct", demo, html, format):
        return
    from discreet.attacks import reconstruct as attack
    from discreet.attacks.reconstruct import published, reconstruct_file

    file = _present(file, "an .npz of queries and answers")
    if people is None:
        found = reconstruct_file(file, method=method)  # type: ignore[arg-type]
    else:
        queries, answers = published(file, people, count=count)
        found = attack(queries, answers, method=method)  # type: ignore[arg-type]
    note = (
        "measured"
        if found.measured
        else "estimated by attacking invented bits behind the same queries"
    )
    rows = [["method", found.method], ["success is", note], ["residual", f"{found.residual:.3g}"]]
    print_finding(found, found.as_json(), format, ("", ""), rows)


def census(
    file: Annotated[
        Path | None, typer.Argument(metavar="STATS", help="Published statistics, as JSON.")
    ] = None,
    cap: Annotated[int, typer.Option(help="Stop after this many solutions.")] = 5000,
    seconds: Annotated[float, typer.Option(help="Stop after this time.")] = 60.0,
    publication: Annotated[
        Path | None,
        typer.Option(
            "--publication", metavar="FOLDER", help="Instead: what `publish --out` wrote."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="FILE:PLACE",
            help="The file of its people, and the column of their place.",
        ),
    ] = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """List the sets of people that fit a page of statistics; or hold a publication against its
    people.
    """
    if tell("census", demo, html, format):
        return
    if publication is not None or against is not None:
        _give_away(publication, against, format)
        return
    from discreet.attacks import census as attack

    file = _present(file, "the statistics as JSON")
    found = attack(file, cap=cap, seconds=seconds)
    if format is Format.table:
        print(
            f"{found.sentence}\n{'at least ' if found.capped else ''}{found.worlds:,} worlds in {found.seconds:.2f} s"
        )
    certain = found.certainty[:MOST_SHOWN]
    rows = [[f"{share:.1%}", *record.values()] for record, share in certain]
    columns = ("certainty", *(certain[0][0] if certain else ()))
    print_finding(found, found.as_json(), format, columns, rows)


def _present(file: Path | None, what: str) -> Path:
    """Return the file that was named; refuse none, and one that is not there."""
    if file is None:
        raise UsageError(f"Give {what}, or --demo.")
    if not file.is_file():
        raise UsageError(f"There is no file {file}. Give {what}, or --demo.")
    return file


def _give_away(publication: Path | None, against: str | None, format: Format) -> None:
    """Hold exact, swapped and published tables beside the people they are about."""
    from discreet.attacks.given_away import given_away

    original, _, place = (against or "").rpartition(":")
    if publication is None or not original or not place:
        raise UsageError(
            "Give both: --publication FOLDER, and --against people.parquet:block with the place's column."
        )
    listed, people = _tables(publication / "microdata.parquet", Path(original))
    found = given_away(people, listed, place=place)
    counted = ("people", "same record", "but for one column", "alone of a kind", "found", "claimed")
    columns = ("tables", *counted, "right")
    rows = []
    for way in found.ways:
        counts = (way.people, way.exact, way.partial, way.alone, way.found, way.claims)
        rows.append(
            [way.name, *(f"{each:,}" for each in counts), f"{way.right / max(way.claims, 1):.0%}"]
        )
    print_finding(found, found.as_json(), format, columns, rows)


def membership(
    release: Release = None,
    members: Annotated[
        Path | None, typer.Argument(metavar="MEMBERS", help="People who were in the data.")
    ] = None,
    others: Annotated[
        Path | None, typer.Argument(metavar="OTHERS", help="People who were not.")
    ] = None,
    width: Width = 0.05,
    trials: Trials = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Tell people who were in the data from people who were not, by the released records."""
    if tell("membership", demo, html, format):
        return
    from discreet.attacks import membership as attack

    found = attack(*_tables(release, members, others), width=width, trials=trials)
    print_finding(
        found, found.as_json(), format, ("", ""), [["area under the curve", f"{found.auc:.3f}"]]
    )


def single_out(
    release: Release = None,
    original: Original = None,
    control: Control = None,
    columns: Annotated[int, typer.Option(help="How many columns a predicate uses.")] = 3,
    width: Width = 0.05,
    trials: Trials = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Make predicates from the release that are true of exactly one person."""
    if tell("single-out", demo, html, format):
        return
    from discreet.attacks import single_out as attack

    left, right = _tables(release, original)
    print_risk(
        attack(left, right, _maybe(control), columns=columns, width=width, trials=trials), format
    )


def linkability(
    release: Release = None,
    original: Original = None,
    control: Control = None,
    half: Annotated[
        list[str] | None, typer.Option(help="Columns of one half, comma-separated; give it twice.")
    ] = None,
    neighbors: Annotated[int, typer.Option(help="How many nearest records to compare.")] = 1,
    width: Width = 0.05,
    trials: Trials = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Connect two halves of people's records through the release."""
    if tell("linkability", demo, html, format):
        return
    from discreet.attacks import linkability as attack

    if half is None or len(half) != 2:
        raise UsageError("Give the two halves: --half age,sex --half income,job.")
    halves = _split(half[:1]), _split(half[1:])
    left, right = _tables(release, original)
    found = attack(
        left, right, _maybe(control), halves=halves, neighbors=neighbors, width=width, trials=trials
    )
    print_risk(found, format)


def inference(
    release: Release = None,
    original: Original = None,
    control: Control = None,
    secret: Annotated[str | None, typer.Option(help="The column to guess.")] = None,
    known: Annotated[
        list[str] | None, typer.Option(help="The columns that are known; by default all others.")
    ] = None,
    width: Width = 0.05,
    trials: Trials = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Guess a secret column of people from the nearest released record."""
    if tell("inference", demo, html, format):
        return
    from discreet.attacks import inference as attack

    if secret is None:
        raise UsageError("Name the column to guess: --secret income.")
    left, right = _tables(release, original)
    found = attack(
        left,
        right,
        _maybe(control),
        secret=secret,
        known=_split(known) or None,
        width=width,
        trials=trials,
    )
    print_risk(found, format)


def _split(values: list[str] | None) -> list[str]:
    """Split options, which may be repeated or separated by commas."""
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]


def _need(*paths: Path | None) -> list[Path]:
    given = [path for path in paths if path is not None]
    if len(given) < len(paths):
        raise UsageError(f"Give {len(paths)} files (--help says which), or --demo.")
    return given


def _tables(*paths: Path | None) -> list[pa.Table]:
    from discreet.attacks.inputs.source import table

    return [table(path) for path in _need(*paths)]


def _maybe(path: Path | None) -> pa.Table | None:
    return None if path is None else _tables(path)[0]
