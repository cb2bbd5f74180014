"""Print to the terminal: tables with margins beside values, a bar of the budget, progress of long
work.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.budget import Budget
from discreet.display.show import cells, notes, printable, with_ranks

if TYPE_CHECKING:
    from discreet.policy.dictionary import Listing
    from discreet.vault.answer import Answer


ENDLESS = 1_000_000  # columns: nothing is wrapped or cut where no terminal has an edge


def output() -> Console:
    """Return where a command prints: as wide as the terminal, or as wide as needed where there is
    none.
    """
    return Console(highlight=False, width=None if sys.stdout.isatty() else ENDLESS)


def print_answer(answer: Answer, console: Console | None = None, *, quiet: bool = False) -> None:
    """Print a table with margins beside values, and unless `quiet` what it cost."""
    console = console or output()
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    columns = []
    for name, values, margins in zip(
        answer.table.column_names, answer.table.columns, answer.margins.columns, strict=True
    ):
        listed = values.to_pylist()
        numeric = any(isinstance(each, int | float | Decimal) for each in listed)
        table.add_column(plainly(name), justify="right" if numeric else "left", overflow="fold")
        unknown = name in answer.certificate.get("without_margin", {})
        shown = cells(listed, margins.to_pylist(), unknown=unknown)
        columns.append(with_ranks(answer, name, shown))
    for row in zip(*columns, strict=True):
        table.add_row(*map(plainly, row))
    console.print(table)
    for note in () if quiet else notes(answer):
        console.print(plainly(note), style="dim", soft_wrap=True)


def print_listing(listing: Listing, console: Console) -> None:
    """Print a table's columns with what they may contain."""
    console.print(plainly(f"{listing.name}: {listing.comment}"), style="bold", soft_wrap=True)
    table = Table(show_edge=False, show_header=False, pad_edge=False, box=None)
    for column in listing.columns:
        key = "" if listing.public else column.key or f"{column.groups} groups"
        table.add_row(*map(plainly, (f"  {column.name}", column.type, key, column.contains)))
    console.print(table)
    console.print()


def plainly(text: str) -> Text:
    """Show somebody else's text as it is: brackets are no markup, and control characters become
    marks.
    """
    return Text(printable(text))


def budget_bar(spent: float, limit: float, width: int = 30) -> Text:
    """Draw how much of a budget is gone: green up to half of it, yellow up to nine tenths, then
    red.
    """
    share = 1.0 if limit <= 0 else min(spent / limit, 1)
    full = math.ceil(width * share) if share < 1 else width  # what is spent is seen, however little
    if share <= 0.5:
        color = "green"
    elif share <= 0.9:
        color = "yellow"
    else:
        color = "red"
    return Text.assemble(("█" * full, color), ("░" * (width - full), "dim"))


def describe(budget: Budget) -> str:
    return str(budget)


@contextmanager
def progress_bar(doing: str = "reading") -> Iterator[Callable[[str, float], None] | None]:
    """Show a bar on stderr for long work; nothing where nobody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, int] = {}

        def update(table: str, share: float) -> None:
            if table not in tasks:
                tasks[table] = progress.add_task(printable(f"{doing} {table}"), total=1.0)
            progress.update(tasks[table], completed=share)  # type: ignore[arg-type]

        yield update
