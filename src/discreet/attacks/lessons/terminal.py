"""A lesson on a terminal page."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from discreet.attacks.experiment.finding import percent
from discreet.attacks.lessons.lesson import Exhibit, Lesson
from discreet.attacks.lessons.plot import Scale, characters

_STYLES = {"point": "bold cyan", "ceiling": "yellow", "chance": "dim", "exact": "red", "": ""}


def show(lesson: Lesson, console: Console) -> None:
    """Print story, table, plot and moral, in the width of the terminal up to 100 characters."""
    width = min(console.width, 100)
    console.print()
    console.print(f"[bold]{escape(lesson.title)}[/]", width=width)
    for number, step in enumerate(lesson.steps, start=1):
        console.print(f"\n[bold cyan]{number}. {escape(step.heading)}[/]")
        console.print(escape(" ".join(step.text.split())), width=width)
        if step.table is not None:
            console.print(Padding(_table(step.table), (1, 0, 0, 2)), width=width)
    _plot(lesson, console, width)
    console.print(f"\n[bold]{escape(lesson.moral)}[/]\n", width=width)


def _table(table: Exhibit) -> RichTable:
    shown = RichTable(show_edge=False, pad_edge=False, header_style="bold")
    for i, name in enumerate(table.columns):
        shown.add_column(name, justify="left" if i == 0 or name == "question" else "right")
    for row in table.rows:
        shown.add_row(*map(escape, row))
    return shown


def _plot(lesson: Lesson, console: Console, width: int) -> None:
    console.print(f"\n[bold]Success against ε[/]  [dim]{escape(lesson.measure)}[/]", width=width)
    scale = Scale.of(lesson)
    rows = characters(lesson, width=min(width - 10, 64))
    for number, row in enumerate(rows):
        share = 1 - number / (len(rows) - 1) * (1 - scale.bottom)
        label = f"{percent(share):>7} │" if number % 2 == 0 else "        │"
        line = Text(label, style="dim")
        for character, kind in row:
            line.append(character, style=_STYLES[kind])
        console.print(line)
    ticks = [" "] * (len(rows[0]) + 6)
    for point in lesson.points:
        for i, character in enumerate(f"{float(point.epsilon):g}"):
            ticks[round(scale.across(float(point.epsilon)) * (len(rows[0]) - 1)) + i] = character
    console.print(Text("         " + "".join(ticks).rstrip() + "  ε", style="dim"))
    legend = [
        ("●", "point", "with noise"),
        ("╌", "exact", f"without noise {percent(lesson.exact.success)}"),
    ]
    legend.append(("─", "chance", f"chance {percent(lesson.exact.chance)}"))
    if lesson.bounded:
        legend.append(("·", "ceiling", "ceiling e^ε/(1+e^ε)"))
    line = Text("         ")
    for character, kind, name in legend:
        line.append(f"{character} ", style=_STYLES[kind])
        line.append(f"{name}   ", style="dim")
    console.print(line, width=width + 20)
    console.print(Padding(_table(lesson.numbers()), (1, 0, 0, 2)), width=width)
