"""The command `demo`: build a generated town with a policy, and ask a few questions about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.curator import Curator

QUESTIONS = (
    (
        "How many people smoke, by sex?",
        "SELECT sex, COUNT(*) AS smokers FROM people WHERE smoker GROUP BY sex",
        "0.2",
    ),
    (
        "What do people earn, by age?",
        "SELECT age // 20 * 20 AS from_age, COUNT(*) AS people, AVG(income) AS mean_income\n"
        "FROM people GROUP BY from_age ORDER BY from_age",
        "0.5",
    ),
    (
        "What does a visit cost at each clinic?",
        "SELECT clinic, AVG(cost) AS mean_cost FROM visits GROUP BY clinic",
        "0.5",
    ),
)
MALICIOUS = "SELECT COUNT(*) AS karrie FROM people WHERE name = 'Karrie Ames' AND income > 50000"
REFUSED = "SELECT name, income FROM people WHERE name LIKE 'Karrie%'"


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="[FOLDER]", help="Where to build the town.")
    ] = Path("town"),
    people: Annotated[int, typer.Option(help="How many people live there.")] = 10_000,
) -> None:
    """Build a generated town, ask about it, attack it, and leave it on disk for you to try."""
    import discreet
    from discreet.binding import create_ledger
    from discreet.cli.printing.tables import output, plainly
    from discreet.errors import UsageError
    from discreet.examples import town
    from discreet.policy.policy import Policy

    console = output()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(
            f"{folder} is there already. Remove it, or name another folder: discreet demo FOLDER."
        )
    policy = town.build(folder, people=people)
    create_ledger(Policy.read(policy))
    curator = discreet.open(policy)
    console.print(
        f"[bold]A town of {people:,} people[/], their visits and lab results, is in",
        plainly(f"{folder}/data."),
    )
    console.print(
        plainly(f"{policy} says what is public, and that all analysts together may learn ε = 4.\n")
    )
    for title, sql, epsilon in QUESTIONS:
        _ask(console, curator, title, sql, epsilon)
    _attack(console, curator)
    _repeat_and_refuse(console, curator)
    ask = f'discreet ask {policy} "SELECT COUNT(*) FROM visits" --analyst bob --epsilon 0.1'
    console.print(plainly(f"\nGo on:  {ask}"))
    console.print(plainly(f"        discreet ledger {policy}"))
    console.print(plainly(f"        discreet tables {policy}"))


def _ask(console: Console, curator: Curator, title: str, sql: str, epsilon: str) -> None:
    from discreet.cli.printing.tables import budget_bar, print_answer

    console.print(f"[bold cyan]{title}[/]  (alice, ε = {epsilon})")
    console.print(f"[dim]{sql}[/]")
    answer = curator.ask(sql, analyst="alice", epsilon=epsilon)
    print_answer(answer, console)
    left = float(answer.left.epsilon)
    console.print("alice's budget", budget_bar(2 - left, 2), "\n")


def _attack(console: Console, curator: Curator) -> None:
    """Ask for one person's secret, as directly as SQL allows."""
    console.print("[bold red]Is Karrie's income over 50K?[/]  (alice, ε = 0.1)")
    console.print(f"[dim]{MALICIOUS}[/]")
    answer = curator.ask(MALICIOUS, analyst="alice", epsilon="0.1")
    value = answer.table.column(0)[0].as_py()
    margin = answer.margins.column(0)[0].as_py()
    console.print(
        f"karrie = {value} ± {margin:.0f}. The true answer is 0 or 1, and either fits: "
        "the noise is far larger than one person.\n"
    )


def _repeat_and_refuse(console: Console, curator: Curator) -> None:
    from discreet.errors import DiscreetError

    again = curator.ask(MALICIOUS, analyst="alice", epsilon="0.1")
    console.print(
        f"[bold]Asked again[/], to average the noise away: karrie = {again.table.column(0)[0].as_py()}. "
        "The same question gives the same answer, free of charge.\n"
    )
    for title, sql, epsilon in (
        ("Then the row itself", REFUSED, "0.1"),
        ("And everything at once", "SELECT COUNT(*) FROM people WHERE age > 17", "1"),
    ):
        console.print(f"[bold red]{title}[/]  (alice, ε = {epsilon})")
        console.print(f"[dim]{sql}[/]")
        try:
            curator.ask(sql, analyst="alice", epsilon=epsilon)
        except DiscreetError as error:
            console.print(f"{error}\n", markup=False)
