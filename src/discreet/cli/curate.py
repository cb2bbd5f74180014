"""The commands of a curator: `check`, `snapshot`, `ledger` and `bounds`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.printing.formats import Format, ReportFormat, print_json, print_report
from discreet.cli.question import Policy, Quiet
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.policy.policy import Policy as PolicyValue


def register(app: typer.Typer) -> None:
    app.command()(check)
    app.command()(snapshot)
    app.command()(ledger)
    app.command()(bounds)


def check(policy: Policy, format: ReportFormat = Format.table) -> None:
    """Compare a policy with its source; say what would be refused and why, and what to do next."""
    from discreet.cli.printing.tables import output, plainly
    from discreet.errors import PolicyError
    from discreet.policy.policy import Policy as PolicyValue
    from discreet.upkeep import check as look

    found = look(PolicyValue.read(policy))
    if found.problems:
        raise PolicyError(*found.problems)
    if format is Format.json:
        notes = [note for group in found.groups.values() for note in group]
        print_json({"problems": [], "notes": notes, "next": found.next})
        return
    console = output()
    for title, group in found.groups.items():
        if group:
            console.print(plainly(title), style="bold")
        for note in group:
            console.print(plainly(f"- {note}"), style="yellow" if "EACH ROW" in note else "")
    console.print("The policy and its source agree.", style="green")
    console.print(plainly(f"Next: {found.next}"), soft_wrap=True)


def snapshot(policy: Policy, quiet: Quiet = False) -> None:
    """Read the source again, and keep it as the next snapshot. After that, questions that were
    answered before are charged again.
    """
    from discreet.binding import take_snapshot
    from discreet.cli.printing.tables import output, plainly, progress_bar
    from discreet.engines.report import SHOUT, report
    from discreet.policy.policy import Policy as PolicyValue

    declared = PolicyValue.read(policy)
    with progress_bar() as progress:
        made = take_snapshot(declared, progress=progress)
    if quiet:
        return
    console = output()
    console.print(f"Snapshot {made.number}, for the curator's eyes only:")
    for line in report(made, declared):
        console.print(plainly(line), style="bold red" if line.lstrip().startswith(SHOUT) else "")


def ledger(
    policy: Policy,
    create: Annotated[
        bool, typer.Option("--create", help="Create the ledger and its key.")
    ] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check every row.")] = False,
    head: Annotated[
        Path | None,
        typer.Option(
            help="With --verify or --restore: an exported head, which the ledger must contain."
        ),
    ] = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Record the limits that the policy now states.")
    ] = False,
    export_head: Annotated[
        bool,
        typer.Option(
            "--export-head", help="Print the head (the ledger's last row), to keep elsewhere."
        ),
    ] = False,
    certificate: Annotated[
        str | None,
        typer.Option(help="Print the certificate of an answer, by which it can be audited."),
    ] = None,
    rotate_key: Annotated[
        bool, typer.Option("--rotate-key", help="Make a new key, and use it from now on.")
    ] = False,
    backup: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Copy the ledger, its key and its head to this folder."
        ),
    ] = None,
    restore: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Restore a backup from this folder; see --head."),
    ] = None,
    setup: Annotated[
        bool,
        typer.Option(
            "--setup",
            help="Print the SQL that prepares a database for a shared ledger: for the policy's ledger, "
            "or with --move-to for its new place.",
        ),
    ] = False,
    move_to: Annotated[
        str | None,
        typer.Option(metavar="PLACE", help="Move the ledger to postgresql://... or to a file."),
    ] = None,
    analyst: Annotated[str | None, typer.Option(help="Show only what this analyst spent.")] = None,
    format: ReportFormat = Format.table,
) -> None:
    """Show who spent how much on which question; create, verify, amend, back up or move the
    ledger.
    """
    from discreet.binding import accountant_of, create_ledger, ledger_of, terms_of
    from discreet.ledger import Ledger
    from discreet.policy.policy import Policy as PolicyValue
    from discreet.upkeep import limit_changes

    declared = PolicyValue.read(policy)
    if create:
        create_ledger(declared)
        where = "" if declared.ledger_address is None else " in PostgreSQL"
        print_report(
            format,
            f"Created {declared.ledger}{where} and its key {declared.ledger}.key. "
            "Keep the key; back both up.",
            {"created": str(declared.ledger), "key": f"{declared.ledger}.key"},
        )
        return
    if setup:
        _print_setup(declared, move_to or declared.ledger_address, format)
        return
    if move_to is not None:
        _move(declared, move_to, format)
        return
    if rotate_key:
        Ledger.rotate_key(ledger_of(declared))
        print_report(
            format,
            f"{declared.ledger} goes on under a new key. Back up {declared.ledger}.key: "
            "it holds all keys so far.",
            {"key": f"{declared.ledger}.key"},
        )
        return
    terms = terms_of(declared)
    known = None if head is None else _head(head)
    if backup is not None or restore is not None:
        _copy(declared, backup, restore, known, format)
        return
    with Ledger.open(ledger_of(declared), terms, words=accountant_of(declared).budget) as book:
        if verify:
            rows = book.verify(known)
            print_report(format, f"All {rows} rows hold.", {"rows": rows})
        elif amend:
            before = book.limits
            changed = book.amend(limit=terms.limit, analysts=terms.analysts)
            changes = [*limit_changes(before, book.limits, accountant_of(declared))]
            said = "recorded." if changed else "already those of the policy."
            text = "\n".join([f"The limits are {said}", *(f"- {change}" for change in changes)])
            print_report(format, text, {"changed": changed, "changes": changes})
        elif export_head:
            print_json(book.head())
        elif certificate is not None:
            found = book.certificate(certificate)
            print_report(format, json.dumps(found, indent=2, ensure_ascii=False), found)
        else:
            _print_listing(book, declared, analyst, format)


def _copy(
    declared: PolicyValue, backup: Path | None, restore: Path | None, head: Any, format: Format
) -> None:
    """Back up a ledger, or restore a backup; refuse both at once."""
    from discreet.binding import ledger_of
    from discreet.ledger.backup import backup as back_up
    from discreet.ledger.backup import restore as put_back

    if backup is not None and restore is not None:
        raise UsageError("--backup and --restore are two things: do one after the other.")
    if backup is not None:
        rows = back_up(ledger_of(declared), backup)
        print_report(
            format,
            f"Copied {rows} rows, the key and the head to {backup}. "
            "Anybody who reads the copy can spend: keep it safe.",
            {"rows": rows, "backup": str(backup)},
        )
    if restore is None:
        return
    whole = put_back(restore, ledger_of(declared), head=head)
    text = (
        f"Put {declared.ledger} back: the head is its last row, so nothing is missing."
        if whole
        else f"Put {declared.ledger} back, with NOTHING LEFT TO SPEND: it lacks the charges that came "
        "after the backup, and their answers are known.\n"
        "Take a new snapshot. In the policy, set each limit to the amount that is spent here, plus "
        "the amount that you can prove was not spent since; record the limits with --amend.\n"
        "A release that was running must not go on from this ledger: change its schedule, and start "
        "it again."
    )
    print_report(format, text, {"restored": str(declared.ledger), "whole": bool(whole)})


def _print_setup(declared: PolicyValue, address: str | None, format: Format) -> None:
    """Print the SQL that an administrator runs once in the database of a shared ledger."""
    from discreet.ledger.stores.postgres import role_in
    from discreet.ledger.stores.rights import quote
    from discreet.ledger.stores.rights import setup as statements

    role = role_in(address)
    first = f"CREATE ROLE {quote(role)} LOGIN;  -- unless there is one; give it a password"
    sql = f"{first}\n{statements(declared.path.stem + '_ledger', role)}"
    print_report(format, sql.removesuffix("\n"), {"sql": sql})


def _move(declared: PolicyValue, target: str, format: Format) -> None:
    """Move a ledger, and say what to write into the policy."""
    from discreet.binding import ledger_of
    from discreet.ledger.backup import move
    from discreet.ledger.place import Place
    from discreet.policy.policy import SHARED

    if target.startswith(SHARED):
        place = Place(
            path=declared.path.absolute().parent / f"{declared.path.stem}.ledger", address=target
        )
        name = "the address that you gave"
    else:
        place = Place(path=Path(target).expanduser().absolute())
        name = str(place.path)
    rows = move(ledger_of(declared), place)
    text = (
        f"Moved {rows} rows. The old ledger spends nothing any more. "
        f"Write {name} under ledger in {declared.path}.\n"
        f"The key is {place.path}.key: every server needs it, and {place.path.name}.head, "
        "beside its policy."
    )
    print_report(format, text, {"rows": rows, "key": f"{place.path}.key"})


def _head(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UsageError(
            f"{path} cannot be read as a head. Name a file that --export-head wrote."
        ) from None


def _print_listing(book: Ledger, policy: PolicyValue, analyst: str | None, format: Format) -> None:
    from rich.table import Table

    from discreet.binding import accountant_of
    from discreet.cli.printing.tables import budget_bar, output, plainly

    accountant = accountant_of(policy)
    entries = book.entries(analyst)
    limit, shares = book.limits
    if format is Format.json:
        listed = [
            {
                "id": str(entry.id),
                "when": entry.when,
                "analyst": entry.analyst,
                "question": entry.text,
                "cost": accountant.budget(entry.cost).as_json(),
                "snapshot": entry.snapshot,
                "state": entry.state,
            }
            for entry in entries
        ]
        left = {name: accountant.left(book.left(name)).as_json() for name in (*shares, "curator")}
        print_json({"entries": listed, "left": left})
        return
    console = output()
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    for name in ("id", "when", "who", "cost", "state", "question"):
        table.add_column(name, overflow="fold")
    for entry in entries:
        cost = str(accountant.budget(entry.cost))
        said = (plainly(entry.analyst), cost, entry.state, plainly(entry.text))
        table.add_row(str(entry.id), entry.when[:19].replace("T", " "), *said)
    console.print(table)
    spent = book.spent()
    bar = budget_bar(float(spent.amount), float(limit.amount))
    unspent = accountant.left(limit - spent)
    console.print(
        "\nall     ", bar, f" {accountant.budget(spent)} spent, {unspent} left", soft_wrap=True
    )
    for name, share in shares.items():
        own = book.spent(name)
        bar = budget_bar(float(own.amount), float(share.amount))
        console.print(
            plainly(f"{name:8}"), bar, f" {accountant.left(book.left(name))} left", soft_wrap=True
        )


def bounds(
    policy: Policy,
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    column: Annotated[str, typer.Argument(metavar="COLUMN")],
    epsilon: Annotated[str, typer.Option(help="The ε that the suggestion may cost.")],
    format: ReportFormat = Format.table,
) -> None:
    """Suggest a range for a column. This is a question, for which the curator pays."""
    from discreet.asking.bounds import BEYOND
    from discreet.cli.question import open_curator
    from discreet.vault.answer import plain

    found = open_curator(policy).bounds(table, column, epsilon=epsilon)
    if format is Format.json:
        # on either side, at most
        beyond = {"share": float(BEYOND), "rows": found.ranks, "confidence": 0.95}
        known = {
            "low": plain(found.low),
            "high": plain(found.high),
            "beyond": beyond,
            "cost": found.cost.as_json(),
        }
        print_json(known)
    else:
        print(found)
