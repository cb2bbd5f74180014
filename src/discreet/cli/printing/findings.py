"""Print the findings of `attack`: as a story, a page, a table or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.cli.printing.formats import Format, print_json
from discreet.display.show import printable, readable
from discreet.errors import UsageError
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.attacks.difference import Differences
    from discreet.attacks.experiment.finding import Finding
    from discreet.attacks.link import Linkage


MOST_SHOWN = 40  # rows of a table in the terminal


class HasFinding(Protocol):
    @property
    def finding(self) -> Finding: ...

    def as_json(self) -> dict[str, object]: ...


def print_links(found: Linkage, reveal: bool) -> None:
    """Print the people who were found, with their released rows: the surest first."""
    if not found.links:
        return
    if not reveal:
        print(f"\n{len(found.links):,} rows have a name now. --reveal shows whose they are.")
        return
    surest = sorted(found.links, key=lambda link: -link.confidence)[:MOST_SHOWN]
    names = found.identity.take([link.identified_row for link in surest]).to_pylist()
    secrets = found.released.take([link.release_row for link in surest]).to_pylist()
    columns = (
        "row",
        "on the list",
        "confidence",
        "by",
        *found.identity.column_names,
        *found.released.column_names,
    )
    rows = []
    for link, name, secret in zip(surest, names, secrets, strict=True):
        match = [link.release_row, link.identified_row, f"{link.confidence:.0%}"]
        values = [readable(value) for value in (*name.values(), *secret.values())]
        rows.append([*match, "+".join(link.columns), *values])
    print()
    print_table(columns, rows)
    if len(found.links) > len(surest):
        print(f"and {len(found.links) - len(surest):,} more; --format json has all.")


def tell_exposed(found: Differences) -> str:
    """Return the verdict as text. It says that nobody is exposed only if that is proved."""
    people = len({secret.row for secret in found.exposed})
    verdicts = {
        "exposed": f"{people:,} {'person is' if people == 1 else 'people are'} exposed:",
        "safe": "nobody is exposed.",
        "not found": "this attack found nobody who is exposed. That is not proved:",
    }
    questions = "1 question" if found.questions == 1 else f"{found.questions} questions"
    lines = [f"{questions}; {verdicts[found.verdict]}"]
    if found.verdict == "not found":
        lines += [printable(f"  {reason}.") for reason in found.unproved[:MOST_SHOWN]]
    return "\n".join(lines)


def tell(name: str, demo: bool, html: Path | None, format: Format) -> bool:
    """Tell the story of an attack if `demo` is true; return whether it was told."""
    if not demo:
        if html is not None:
            raise UsageError("--html writes the story of --demo; give both.")
        return False
    require_writable(html)
    from discreet.attacks.lessons import LESSONS

    lesson = LESSONS[name]()
    if html is not None:
        from discreet.attacks.lessons.page import html as page

        write_file(html, page(lesson))
    if format is Format.json:
        print_json(lesson.as_json())
    elif html is None:
        from rich.console import Console

        from discreet.attacks.lessons.terminal import show

        show(lesson, Console(highlight=False))
    else:
        print(f"{lesson.title}: {html}")
    return True


def print_finding(
    found: HasFinding,
    as_json: dict[str, object],
    format: Format,
    columns: tuple[str, ...],
    rows: list[list[Any]],
) -> None:
    """Print a finding with a table, or as JSON."""
    if format is Format.json:
        print_json(as_json, default=str)
        return
    from rich.console import Console

    from discreet.cli.printing.tables import plainly

    Console(highlight=False).print(plainly(str(found.finding)))
    if rows:
        print_table(columns, rows)


def print_table(columns: tuple[str, ...], rows: list[list[Any]]) -> None:
    from rich.table import Table

    from discreet.cli.printing.tables import output, plainly

    table = Table(show_edge=False, pad_edge=False, header_style="bold", show_header=any(columns))
    for name in columns:
        table.add_column(plainly(str(name)))
    for row in rows:
        table.add_row(*(plainly("nobody" if value is None else str(value)) for value in row))
    output().print(table)


def print_risk(found: Any, format: Format) -> None:
    """Print the success of an attack beside that of the same attack on people not in the data."""
    rows = []
    if found.risk is not None:
        low, high = found.risk.interval
        rows = [["control", f"{found.control.value:.1%} of {found.control.n:,}"]]
        rows += [["risk beyond it", f"{found.risk.value:.1%} ({low:.1%} to {high:.1%})"]]
    elif format is Format.table:
        print(
            "Without --control nobody can tell how much of this is a leak, and how much holds of everybody anyway."
        )
    print_finding(found, found.as_json(), format, ("", ""), rows)
