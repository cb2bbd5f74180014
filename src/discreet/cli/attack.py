"""The command `attack`, for auditors and teachers. Each attack takes files, or tells a story
(`--demo`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli.attack_inputs import (
    read_if_given,
    read_range,
    read_tables,
    require_file,
    require_files,
    split_commas,
    table_file,
)
from discreet.cli.printing.findings import (
    MOST_SHOWN,
    print_finding,
    print_links,
    print_risk,
    tell,
    tell_exposed,
)
from discreet.cli.printing.formats import Format, ReportFormat
from discreet.errors import UsageError

Demo = Annotated[
    bool,
    typer.Option("--demo", help="Show the attack on invented people, with and without noise."),
]
Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="With --demo: write it as an HTML page."),
]
Reveal = Annotated[
    bool, typer.Option("--reveal", help="Name the people who were found, with their secrets.")
]
Truth = Annotated[
    str | None,
    typer.Option("--truth", help="For experiments: the column that says who a row really is."),
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
    float,
    typer.Option("--width", help="Try so many targets that the 95 % interval is this narrow."),
]
Trials = Annotated[
    int | None, typer.Option("--trials", help="Instead of --width: the number of attempts.")
]


def register(app: typer.Typer) -> None:
    attacks = typer.Typer(
        no_args_is_help=True,
        help="Attack a release, to see what it gives away and whether noise helps.",
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
        list[str] | None,
        typer.Option(
            help="The columns to match: zip; birth=born if they differ in name; born~3 for "
            "numbers at most 3 apart; name~0.9 for similar texts."
        ),
    ] = None,
    truth: Truth = None,
    coverage: Annotated[
        float, typer.Option(help="The share of the population that is in IDENTIFIED.")
    ] = 1.0,
    reveal: Reveal = False,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Find names for the rows of a release by matching it with a table that has names."""
    if tell("link", demo, html, format):
        return
    from discreet.attacks import link as attack

    left, right = read_tables(release, identified)
    found = attack(left, right, on=split_commas(on), truth=truth, coverage=coverage)
    rows = []
    for unique in found.uniqueness:
        columns = "+".join(unique.columns)
        rows.append([columns, f"{unique.release:.1%}", f"{unique.identified:.1%}"])
    print_finding(
        found,
        found.as_json(reveal=reveal),
        format,
        ("unique by", "in the release", "on the list"),
        rows,
    )
    if format is Format.table:
        print_links(found, reveal)


def scoreboard(
    release: Release = None,
    aux: Annotated[
        Path | None,
        typer.Argument(
            metavar="AUX", help="What the attacker knows: columns target, item, value, day."
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="rh scores by all known items, rare ones more; plain by the worst match."
        ),
    ] = "rh",
    eccentricity: Annotated[
        float,
        typer.Option(
            help="Name a match only if its score is so many standard deviations above the next."
        ),
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
    """Find a person's record (ratings, purchases, visits) by a few vague facts about it."""
    if tell("scoreboard", demo, html, format):
        return
    from discreet.attacks import scoreboard as attack

    source, known = require_files(release, aux)
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
        list[str] | None, typer.Option(help="The secret columns; by default each in turn.")
    ] = None,
    range: Annotated[
        list[str] | None, typer.Option(help="The range of a number: income=0:200000.")
    ] = None,
    reveal: Reveal = False,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Find people whose secret follows from exact answers, by one answer or by several together."""
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
    name, path = table_file(table, data, log)
    ranges = dict(read_range(each) for each in split_commas(range))
    secrets = split_commas(secret) or None
    found = attack(
        log.read_text(encoding="utf-8"), read(path), name=name, secrets=secrets, ranges=ranges
    )
    rows = []
    for exposed in found.exposed[:MOST_SHOWN]:
        questions = ", ".join(str(number) for number, _ in exposed.chain) or "several"
        value = _value(exposed.value, reveal)
        rows.append([exposed.row, exposed.quantity, questions, exposed.by, value])
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


def _value(value: float | None, reveal: bool) -> str:
    if not reveal:
        return "(--reveal)"
    return "?" if value is None else f"{value:g}"


def reconstruct(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help=".npz of queries and answers, or a CSV.")
    ] = None,
    method: Annotated[str, typer.Option(help="lp, least-squares or exhaustive.")] = "least-squares",
    people: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="If FILE is a CSV of tables: the file of the people."),
    ] = None,
    count: Annotated[
        str, typer.Option(help="If FILE is a CSV of tables: the column of counts.")
    ] = "count",
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Compute a secret yes or no of each person from counts over groups of people."""
    if tell("reconstruct", demo, html, format):
        return
    from discreet.attacks import reconstruct as attack
    from discreet.attacks.reconstruct import published, reconstruct_file

    file = require_file(file, "an .npz of queries and answers")
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
            "--publication",
            metavar="FOLDER",
            help="Instead of STATS: the folder that `publish run --out` wrote.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="FILE:PLACE",
            help="With --publication: the file of its people, and the column of their place.",
        ),
    ] = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """List the sets of people that fit published statistics; or compare a publication with the
    people it is about.
    """
    if tell("census", demo, html, format):
        return
    if publication is not None or against is not None:
        _give_away(publication, against, format)
        return
    from discreet.attacks import census as attack

    file = require_file(file, "the statistics as JSON")
    found = attack(file, cap=cap, seconds=seconds)
    if format is Format.table:
        least = "at least " if found.capped else ""
        print(f"{found.sentence}\n{least}{found.worlds:,} worlds in {found.seconds:.2f} s")
    certain = found.certainty[:MOST_SHOWN]
    rows = [[f"{share:.1%}", *record.values()] for record, share in certain]
    columns = ("certainty", *(certain[0][0] if certain else ()))
    print_finding(found, found.as_json(), format, columns, rows)


def _give_away(publication: Path | None, against: str | None, format: Format) -> None:
    """Show what exact, swapped and published tables give away about the people they describe."""
    from discreet.attacks.given_away import given_away

    original, _, place = (against or "").rpartition(":")
    if publication is None or not original or not place:
        raise UsageError(
            "Give both: --publication FOLDER, and --against people.parquet:block with the place's column."
        )
    listed, people = read_tables(publication / "microdata.parquet", Path(original))
    found = given_away(people, listed, place=place)
    counted = ("people", "same record", "but for one column", "alone of a kind", "found", "claimed")
    columns = ("tables", *counted, "right")
    rows = []
    for way in found.ways:
        counts = (way.people, way.exact, way.partial, way.alone, way.found, way.claims)
        right = way.right / max(way.claims, 1)
        rows.append([way.name, *(f"{count:,}" for count in counts), f"{right:.0%}"])
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
    """Tell from the released records which people were in the data and which were not."""
    if tell("membership", demo, html, format):
        return
    from discreet.attacks import membership as attack

    found = attack(*read_tables(release, members, others), width=width, trials=trials)
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
    """Derive conditions from the release that exactly one person fulfils."""
    if tell("single-out", demo, html, format):
        return
    from discreet.attacks import single_out as attack

    left, right = read_tables(release, original)
    print_risk(
        attack(left, right, read_if_given(control), columns=columns, width=width, trials=trials),
        format,
    )


def linkability(
    release: Release = None,
    original: Original = None,
    control: Control = None,
    half: Annotated[
        list[str] | None,
        typer.Option(help="The columns of one half, separated by commas; give it twice."),
    ] = None,
    neighbors: Annotated[int, typer.Option(help="How many nearest records to compare.")] = 1,
    width: Width = 0.05,
    trials: Trials = None,
    demo: Demo = False,
    html: Html = None,
    format: ReportFormat = Format.table,
) -> None:
    """Use the release to find which two halves of records belong to the same person."""
    if tell("linkability", demo, html, format):
        return
    from discreet.attacks import linkability as attack

    if half is None or len(half) != 2:
        raise UsageError("Give the two halves: --half age,sex --half income,job.")
    halves = split_commas(half[:1]), split_commas(half[1:])
    left, right = read_tables(release, original)
    found = attack(
        left,
        right,
        read_if_given(control),
        halves=halves,
        neighbors=neighbors,
        width=width,
        trials=trials,
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
    left, right = read_tables(release, original)
    found = attack(
        left,
        right,
        read_if_given(control),
        secret=secret,
        known=split_commas(known) or None,
        width=width,
        trials=trials,
    )
    print_risk(found, format)
