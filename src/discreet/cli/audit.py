"""The command `audit`: prove lower bounds on ε from runs, try a question on neighbors, and
recompute a ledger from its noise.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.audit.question import QuestionAudit


Out = Annotated[Path | None, typer.Option(help="Write the report here, as one HTML page.")]
Runs = Annotated[int, typer.Option(help="How many runs on each of two neighboring inputs.")]
Confidence = Annotated[float, typer.Option(help="The confidence of the lower bounds.")]
PolicyFile = Annotated[str, typer.Argument(metavar="POLICY", help="The policy file.")]


def register(app: typer.Typer) -> None:
    audit = typer.Typer(
        no_args_is_help=True, help="Audit mechanisms, questions and ledgers.", rich_markup_mode=None
    )
    audit.command()(mechanism)
    audit.command()(question)
    audit.command()(ledger)
    app.add_typer(audit, name="audit")


def mechanism(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The name of a mechanism or a local protocol, or all."),
    ] = "all",
    runs: Runs = 1_000_000,
    confidence: Confidence = 0.999999,
    out: Out = None,
    format: ReportFormat = Format.table,
) -> None:
    """Prove a lower bound on a mechanism's ε from runs alone, and compare it with the claimed ε."""
    from discreet.audit.cases import audit_case, cases
    from discreet.audit.report import mechanisms_page
    from discreet.cli.printing.tables import progress_bar

    require_writable(out)
    with progress_bar("running") as progress:
        names = tuple(cases()) if name == "all" else (name,)
        findings = [
            audit_case(each, runs=runs, confidence=confidence, progress=progress) for each in names
        ]
    write_file(out, mechanisms_page(findings), secret=True)
    if format is Format.json:
        print_json({"findings": [each.as_json() for each in findings]})
    else:
        _show(findings)
    _end(all(each.sound for each in findings))


def question(
    policy: PolicyFile,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="The question.")],
    epsilon: Annotated[str, typer.Option(help="The ε of the question.")] = "1",
    runs: Runs = 100_000,
    confidence: Confidence = 0.999999,
    people: Annotated[int, typer.Option(help="How many people to remove, one at a time.")] = 8,
    person: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Remove this person; may be repeated.")
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(help="Remove people with such a row, one at a time: \"name = 'Ames'\"."),
    ] = None,
    out: Out = None,
    format: ReportFormat = Format.table,
) -> None:
    """Audit a question on the data and on neighbors of the data. Not charged; the report is for the
    curator alone, not for release.
    """
    from discreet.audit.question import Leavers, audit_question
    from discreet.audit.report import question_page
    from discreet.cli.printing.tables import progress_bar
    from discreet.policy.policy import Policy

    require_writable(out)
    read = Policy.read(policy)
    with progress_bar("auditing") as progress:
        found = audit_question(
            read,
            sql,
            epsilon=epsilon,
            runs=runs,
            confidence=confidence,
            leavers=Leavers(most=people, persons=tuple(person or ()), where=where),
            progress=progress,
        )
    write_file(out, question_page(found), secret=True)
    if format is Format.json:
        print_json(_question_json(found))
    else:
        _show_question(found)
    _end(found.sound)


def ledger(policy: PolicyFile, out: Out = None, format: ReportFormat = Format.table) -> None:
    """Verify a ledger's chain, and recompute every charge from its mechanisms."""
    from discreet.audit.ledger import audit_ledger
    from discreet.audit.report import ledger_page
    from discreet.budget import SYMBOLS, number
    from discreet.policy.policy import Policy

    require_writable(out)
    read = Policy.read(policy)
    found = audit_ledger(read)
    currency = SYMBOLS[read.budget.accountant]
    write_file(out, ledger_page(found, currency=currency), secret=True)
    broken = [each.id for each in found.charges if not each.covered]
    if format is Format.json:
        told = {
            "rows": found.rows,
            "charges": len(found.charges),
            "not_covered": broken,
            "sound": found.sound,
        }
        print_json(told | {"spent": str(found.spent.amount), "limit": str(found.limit.amount)})
    else:
        spent = f"{currency} = {number(found.spent.amount)} spent of {number(found.limit.amount)}"
        verdict = "Sound." if found.sound else "BROKEN."
        print(
            f"{found.rows} rows verified, {len(found.charges)} charges recomputed: {spent}. {verdict}"
        )
        for id in broken:
            print(f"Charge {id} costs more than was charged.")
    _end(found.sound)


def _question_json(found: QuestionAudit) -> dict[str, Any]:
    from discreet.audit.report import NOT_FOR_RELEASE

    worst: dict[str, float] = {}
    for each in found.changes:
        worst[each.statistic] = max(worst.get(each.statistic, 0.0), each.share)
    return {
        "warning": NOT_FOR_RELEASE,
        "charged": False,
        "sound": found.sound,
        "neighbors": found.neighbors,
        "tried": [list(pair) for pair in found.tried],
        "pair": list(found.pair),
        "moved_of_claimed": worst,
        "replay": [
            {"pair": list(each.pair), "draws": each.draws, "differences": list(each.differences)}
            for each in found.replayed
        ],
        "impossible": [
            {"statistic": each.statistic, "seen": each.seen, "runs": each.runs, "sound": each.sound}
            for each in found.support
        ],
        "findings": [each.as_json() for each in found.findings],
    }


def _show_question(found: QuestionAudit) -> None:
    from discreet.audit.neighbors import HERE
    from discreet.audit.report import NOT_FOR_RELEASE

    print(f"{NOT_FOR_RELEASE}\nNothing was charged.\n")
    print("Neighbors that were tried, each compared with the data:")
    for first, second in found.tried:
        far = max(
            (each.share for each in found.changes if each.pair == (first, second)), default=0.0
        )
        beside = second if first == HERE else f"{first} / {second}"
        print(f"  {beside}: moves the statistics by {far:.4g} of the claimed sensitivity")
    farthest = max(found.changes, key=lambda each: each.share)
    moved = "holds" if all(each.within for each in found.changes) else "BROKEN"
    print(
        f"One person moves {farthest.statistic} by at most {farthest.share:.4g} of the claimed sensitivity: {moved}"
    )
    draws = sum(each.draws for each in found.replayed)
    pairs = len(found.replayed)
    differ = [text for each in found.replayed for text in each.differences]
    print(
        f"{draws} draws replayed on {pairs} pairs of neighbors: {'; '.join(differ) + ': BROKEN' if differ else 'holds'}"
    )
    for each in found.support:
        verdict = "holds" if each.sound else "BROKEN"
        print(
            f"{each.statistic}: {each.seen} of {each.runs:,} runs impossible on the neighbor: {verdict}"
        )
    print(f"Runs on {found.pair[0]} and {found.pair[1]}:")
    _show(found.findings)


def _show(findings: Any) -> None:
    from rich.table import Table

    from discreet.cli.printing.tables import output, plainly

    table = Table("", "claimed ε", "at δ", "proved ε", "runs", "")
    for column in table.columns[1:5]:
        column.justify = "right"
    for each in findings:
        numbers = (
            f"{each.claimed:.4g}",
            f"{each.delta:.2g}",
            f"{each.proved:.4g}",
            f"{each.runs:,}",
        )
        table.add_row(plainly(each.name), *numbers, "holds" if each.sound else "BROKEN")
    output().print(table)


def _end(sound: bool) -> None:
    if not sound:
        raise typer.Exit(1)
