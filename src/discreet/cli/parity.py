"""`parity`: would the findings of a study still be true of synthetic data?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json
from discreet.errors import UsageError
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.evaluate.findings import Study
    from discreet.evaluate.parity import Parity

REPEATS, RESAMPLES = 10, 200
_OF_PUBLIC = "belongs to a public table"
_OF_PRIVATE = "belongs to a private table: name a POLICY and a DESCRIPTION"


def register(app: typer.Typer) -> None:
    app.command()(parity)


def parity(
    findings: Annotated[
        str,
        typer.Argument(metavar="FINDINGS", help="A .yaml file, or the name of a shipped study."),
    ],
    policy: Annotated[
        str | None, typer.Argument(metavar="[POLICY]", help="The policy of a private table.")
    ] = None,
    description: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DESCRIPTION]", help="The description of that table, which `describe` wrote."
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The public table; by default the study's own."),
    ] = None,
    synthesizers: Annotated[
        str | None, typer.Option(help="The synthesizers to try, separated by commas, or `all`.")
    ] = None,
    epsilons: Annotated[str | None, typer.Option(help="The ε to try, separated by commas.")] = None,
    informed: Annotated[
        bool, typer.Option(help="Tell synthesizers which columns the findings need.")
    ] = False,
    jobs: Annotated[
        int, typer.Option(help="How many processes describe public tables.", min=1, max=64)
    ] = 1,
    epsilon: Annotated[
        str | None,
        typer.Option(help="Test the findings on the private rows too, by questions at this ε."),
    ] = None,
    raw: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Test them on the true rows of the private table: NOT FOR RELEASE."
        ),
    ] = None,
    analyst: Annotated[str, typer.Option(help="Who pays.")] = "curator",
    repeats: Annotated[
        int, typer.Option(help="How many synthetic tables to draw each time.", min=1, max=10_000)
    ] = REPEATS,
    bootstrap: Annotated[
        int, typer.Option(help="How often the real rows are drawn again.", min=0, max=100_000)
    ] = RESAMPLES,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the map.")] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Try a study's findings on synthetic tables and on the real one: would the paper still be
    true?

    On a public table nothing is charged: every synthesizer describes it anew, `--repeats` times at
    each ε. On a private one the findings are tried on tables drawn from one description, and, with
    --epsilon, on the private rows by paid questions. With --raw, on the rows themselves: NOT FOR
    RELEASE.
    """
    from discreet.cli.printing.tables import progress_bar
    from discreet.evaluate.data import study
    from discreet.extras import require

    require("scipy", what="Parity")
    require_writable(html)
    given = study(findings)
    private = policy is not None
    _refuse_wrong_options(
        private,
        of_public={
            "--public": public,
            "--synthesizers": synthesizers,
            "--epsilons": epsilons,
            "--informed": informed,
        },
        of_private={"--epsilon": epsilon, "--raw": raw},
    )
    if private and description is None:
        raise UsageError(
            "Name the description of the policy's table too: discreet parity FINDINGS POLICY DESCRIPTION."
        )
    with progress_bar("trying") as progress:
        if policy is not None and description is not None:
            found = _private(
                given, policy, description, epsilon, raw, analyst, repeats, bootstrap, progress
            )
        else:
            found = _public(
                given, public, synthesizers, epsilons, informed, jobs, repeats, bootstrap, progress
            )
    _show(found, html, format)


def _refuse_wrong_options(
    private: bool, *, of_public: dict[str, object], of_private: dict[str, object]
) -> None:
    wrong, why = (of_public, _OF_PUBLIC) if private else (of_private, _OF_PRIVATE)
    for name, value in wrong.items():
        if value:
            raise UsageError(f"{name} {why}.")
    if of_private["--epsilon"] is not None and of_private["--raw"] is not None:
        raise UsageError(
            "--epsilon makes a report that may be published, --raw one for the curator alone. Write one of them."
        )


def _public(
    study: Study,
    public: Path | None,
    synthesizers: str | None,
    epsilons: str | None,
    informed: bool,
    jobs: int,
    repeats: int,
    bootstrap: int,
    progress: object,
) -> Parity:
    from discreet.attacks.inputs.source import table as read
    from discreet.budget import amount
    from discreet.evaluate.data import select_columns, study_table
    from discreet.evaluate.parity import Trials, public_parity
    from discreet.synthetic.synthesizers.family import DEFAULT, SYNTHESIZERS

    chosen = _names(synthesizers or DEFAULT)
    if chosen == ["all"]:
        chosen = list(SYNTHESIZERS)
    for name in chosen:
        if name not in SYNTHESIZERS:
            raise UsageError(
                f"There is no synthesizer {name}; there are {', '.join(SYNTHESIZERS)}, or write `all`."
            )
    at = _names(epsilons or "1")
    for each in at:
        amount(each, name="epsilon")
    table = study_table(study) if public is None else select_columns(study, read(public))
    if not table.num_rows:
        raise UsageError("The public table has no rows.")
    return public_parity(
        study,
        table,
        Trials(synthesizers=chosen, epsilons=at, repeats=repeats, informed=informed),
        resamples=bootstrap,
        jobs=jobs,
        progress=progress,  # type: ignore[arg-type]
    )


def _private(
    study: Study,
    policy: str,
    description: Path,
    epsilon: str | None,
    raw: Path | None,
    analyst: str,
    repeats: int,
    bootstrap: int,
    progress: object,
) -> Parity:
    from discreet.attacks.inputs.source import table as read
    from discreet.cli.question import open_curator
    from discreet.cli.synthetic import rows_as_described
    from discreet.evaluate.judge import Judge
    from discreet.evaluate.paid import ask_findings
    from discreet.evaluate.parity import private_parity, repeat_of, require_same_table
    from discreet.synthetic.description import Description

    described = Description.load(description)
    require_same_table(study, described)
    curator = open_curator(policy)
    rows = None if raw is None else rows_as_described(described, read(raw))
    # before anything is paid: a finding that cannot be judged ends the command
    repeat_of(study, described, Judge())
    paid = (
        ()
        if epsilon is None
        else ask_findings(study, curator, epsilon=epsilon, analyst=analyst, progress=progress)  # type: ignore[arg-type]
    )
    return private_parity(
        study,
        described,
        repeats=repeats,
        raw=rows,
        paid=paid,
        resamples=bootstrap,
        progress=progress,  # type: ignore[arg-type]
    )


def _names(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise UsageError("Write names or numbers, separated by commas.")
    return list(dict.fromkeys(found))


def _show(found: Parity, html: Path | None, format: Format) -> None:
    from discreet.evaluate import report
    from discreet.synthetic.report.raw import BANNER

    if html is not None:
        write_file(html, report.page(found), secret=found.secret)
    if format is Format.json:
        print_json(report.as_json(found))
        return
    from rich.table import Table

    from discreet.cli.printing.tables import output, plainly

    console = output()
    if found.secret:
        console.print(plainly(BANNER), style="bold red")
    console.print(plainly(f"{found.study.title}. {found.study.citation}"), soft_wrap=True)
    counts = Table(show_edge=False, header_style="bold", pad_edge=False)
    for name in report.header(found):
        counts.add_column(plainly(name), overflow="fold")
    for row in report.lines(found):
        counts.add_row(*map(plainly, row))
    console.print(counts)
    console.print(plainly(report.intervals_text(found)), style="dim", soft_wrap=True)
    for number, side, count, why in report.failures(found):
        console.print(
            plainly(f"Finding {number} held {count} by {side}: {why}."), style="dim", soft_wrap=True
        )
