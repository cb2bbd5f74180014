"""What the terminal shows: tables with margins beside values, a bar of the budget, progress of long work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from discreet.budget import Budget
from discreet.release import plain
from discreet.show import cell, notes, printable, readable

if TYPE_CHECKING:
    from discreet.release import Answer


def print_answer(answer: Answer, console: Console | None = None) -> None:
    console = console or Console()
    table = Table(show_edge=False, header_style="bold", pad_edge=False)
    rows = zip(*(column.to_pylist() for column in answer.table.columns), strict=True)
    margins = list(zip(*(column.to_pylist() for column in answer.margins.columns), strict=True))
    for index, name in enumerate(answer.table.column_names):
        numeric = any(isinstance(each, int | float | Decimal) for each in answer.table.column(index).to_pylist())
        table.add_column(plainly(name), justify="right" if numeric else "left")
    for row, half in zip(rows, margins, strict=True):
        table.add_row(*(plainly(cell(value, margin)) for value, margin in zip(row, half, strict=True)))
    console.print(table)
    for note in notes(answer):
        console.print(Text(note, style="dim"))


def flat(value: Any) -> Any:
    """A value as CSV holds it: a list or a struct is its text."""
    simple = plain(value)
    return readable(simple) if isinstance(simple, list | dict) else simple


def plainly(text: str) -> Text:
    """Somebody else's text as it is: its brackets are no markup, and what a terminal would obey is shown as a mark."""
    return Text(printable(text))


def budget_bar(spent: float, limit: float, width: int = 30) -> str:
    """How much of a budget is gone."""
    full = 0 if limit <= 0 else round(width * min(spent / limit, 1))
    return "█" * full + "░" * (width - full)


def describe(budget: Budget) -> str:
    return str(budget)


@contextmanager
def progress_bar(doing: str = "reading") -> Iterator[Callable[[str, float], None] | None]:
    """A bar on stderr for long work; nothing where nobody watches."""
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
