"""Risks and reports in a terminal."""

from __future__ import annotations

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from discreet.anonymity.measure import Risk
from discreet.anonymity.publish import Anonymized
from discreet.anonymity.report import words
from discreet.anonymity.source import plain
from discreet.display.show import printable

_BAR = 24


def print_risk(found: Risk, *, reveal: bool = False, console: Console | None = None) -> None:
    """Print a table's risk: the numbers, the columns that make people unique, and with `reveal` the
    most exposed rows.
    """
    console = console or Console()
    classes = words.count(found.classes, "class", "classes")
    part = words.share(found.unique, found.rows)
    unique = f"{found.unique:,} of {words.count(found.rows, 'row')} ({part}) are unique"
    console.print(Text(f"k = {found.k}", style="bold"), Text(f"  {classes}; {unique}"), sep="")
    _print_sensitive(found, console)
    table = Table(show_edge=False, header_style="bold", pad_edge=False, title_justify="left")
    for name, side in (("class size", "left"), ("rows", "right"), ("", "left")):
        table.add_column(name, justify="right" if side == "right" else "left")
    for size, rows in found.sizes.items():
        table.add_row(size, f"{rows:,}", _bar(rows / max(1, found.rows)))
    console.print(table)
    _print_subsets(found, console)
    _print_scenarios(found, console)
    if reveal:
        console.print(Text("\nThe most exposed:", style="bold"))
        for values, rows in found.exposed:
            told = ", ".join(f"{name} {plain(value)}" for name, value in values.items())
            console.print(_escape(f"  {rows} row{'s' * (rows > 1)}: {told}"))


def _escape(text: str, style: str = "") -> Text:
    """Return a text from a file in a form in which brackets are no markup."""
    return Text(printable(text), style=style)


def _bar(part: float) -> Text:
    return Text("█" * round(_BAR * part), style="blue")


def _print_sensitive(found: Risk, console: Console) -> None:
    told = found.sensitive
    if told is None:
        return
    dominance = "unbounded" if told.dominance is None else f"{told.dominance:.3g}"
    console.print(
        Text(f"l = {told.l}", style="bold"),
        _escape(
            f"  values of {told.column} in the poorest class; entropy {told.entropy_l:.2f}, recursive c {dominance}"
        ),
        sep="",
    )
    kinds = ", ".join(f"{ground} {distance:.3f}" for ground, distance in told.t_by.items())
    console.print(Text(f"t = {told.t:.3f}", style="bold"), Text(f"  {kinds}"), sep="")
    agree = words.share(told.homogeneous_rows, found.rows)
    console.print(
        _escape(
            f"{told.homogeneous_rows:,} rows ({agree}) are in classes that agree on {told.column}.\n"
        )
    )


def _print_subsets(found: Risk, console: Console) -> None:
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    table.add_column("\nunique by")
    table.add_column("\nrows", justify="right")
    table.add_column("")
    for size in sorted({len(each.columns) for each in found.unique_by_columns}):
        same = [each for each in found.unique_by_columns if len(each.columns) == size]
        for each in same[:2]:
            table.add_row(
                _escape(", ".join(each.columns)),
                f"{each.unique:,}",
                _bar(each.unique / max(1, found.rows)),
            )
    console.print(table)
    if any(found.exposed_by.values()):
        told = ", ".join(f"{rows:,} by {size}" for size, rows in found.exposed_by.items() if rows)
        console.print(
            Text(
                f"Of the unique rows, the fewest columns that single each out: {told}.", style="dim"
            )
        )
    if not found.every_subset:
        console.print(
            Text(
                "There are too many columns to try every subset: small ones, and all but one.",
                style="dim",
            )
        )


def _print_scenarios(found: Risk, console: Console) -> None:
    who = found.prosecutor
    console.print(
        f"\nProsecutor (knows the target is here): highest risk {who.highest:.3g}, average {who.average:.3g}, "
        f"{who.above:.0%} of rows above 0.2."
    )
    if found.journalist is not None:
        who = found.journalist
        console.print(
            f"Journalist (knows the target is in the population): highest {who.highest:.3g}, average {who.average:.3g}."
        )
    console.print(
        f"Marketer (wants as many as possible): {found.marketer:.1%} of guesses are right."
    )
    if found.population is not None:
        console.print(
            f"In a population of {found.population.population:,} about {found.population.chosen:,.0f} people are "
            "unique (estimated)."
        )


def print_anonymized(made: Anonymized, *, where: str, console: Console | None = None) -> None:
    """Print what was written, how much information was lost, and what it does not protect from."""
    console = console or Console()
    console.print(_escape(f"Wrote {where}. ", style="bold"), _escape(words.promise(made)), sep="")
    console.print(_escape(f"Checked on the finished table: {made.guarantee}.\n", style="dim"))
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    table.add_column("column")
    table.add_column("lost", justify="right")
    table.add_column("")
    table.add_column("how its rows are shown")
    for column, levels in made.transformation.items():
        lost = made.loss.columns[column]
        told = _escape(words.levels(levels), style="dim")
        table.add_row(_escape(column), f"{lost:.1%}", _bar(lost), told)
    table.add_row(
        Text("all", style="bold"),
        Text(f"{made.loss.ncp:.1%}", style="bold"),
        "",
        Text("ncp", style="dim"),
    )
    console.print(table)
    for warning in made.warnings:
        console.print(_escape(f"\nWarning: {warning}", style="red"))
    _print_limits(made, console)


def _print_limits(made: Anonymized, console: Console) -> None:
    told: list[Text] = [Text(words.NOT_ENOUGH)]
    failed = None if made.report is None else made.report.failures
    if failed is not None:
        for name, sentences in (
            ("Everybody agrees. ", words.homogeneity(failed)),
            ("The attacker knows somebody. ", words.side_information(failed)),
        ):
            told += [Text(""), Text.assemble((name, "bold"), printable(" ".join(sentences)))]
    for index, sentence in enumerate(words.instead(made)):
        told += [
            Text(""),
            Text.assemble(("Noise instead. " if not index else "", "bold"), printable(sentence)),
        ]
    console.print("")
    console.print(
        Panel(Group(*told), title="What it does not give", title_align="left", border_style="red")
    )
