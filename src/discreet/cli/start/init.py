"""The command `init`: begin a policy from a schema, never from values.

With `--ask` or `--page` it asks the curator about each column, in the terminal or in a browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.question import Quiet
from discreet.errors import UsageError
from discreet.files import require_writable, write_file

if TYPE_CHECKING:
    from discreet.engines.drafts.dialogue import Question
    from discreet.engines.drafts.draft import Draft


def register(app: typer.Typer) -> None:
    app.command()(init)


def init(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A folder of Parquet or CSV files, a .duckdb, .sqlite, .xlsx, .sav, .dta or .sas7bdat file, "
            "or postgresql://...",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write the policy.")] = Path("policy.yaml"),
    codebook: Annotated[
        Path | None,
        typer.Option(
            help="A file that says what columns may contain: CSV or JSON of column, type, range, values; DDI; or "
            "a .sav or .dta file, for its value labels."
        ),
    ] = None,
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE",
            help="A table that everybody may know; columns that refer to it get its keys.",
        ),
    ] = None,
    ask: Annotated[
        bool,
        typer.Option("--ask", help="Ask you, here, whose the rows are, and about each column."),
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Ask the same on a page in a browser of this machine.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Begin a policy from the schema of your data. Values are never read, except the keys of
    --public tables.
    """
    from discreet.engines.drafts.codebook import Codebook
    from discreet.engines.drafts.draft import draft

    if ask and page:
        raise UsageError("--ask asks here and --page in a browser: choose one.")
    if out.exists():
        raise UsageError(f"{out} is there already. Name another file with --out.")
    require_writable(out)
    known = None if codebook is None else Codebook.read(codebook)
    made = draft(data, beside=out.parent, codebook=known, public=public or ())
    if ask:
        made = _ask_all(made)
    if page:
        from discreet.cli.start.interview import ask_on_a_page

        made = ask_on_a_page(made, out=out)
    else:
        write_file(out, made.text())
    if quiet:
        return
    _tell(made, out)


def _tell(made: Draft, out: Path) -> None:
    """Print what was written, and what the curator must do next."""
    columns = [column for table in made.tables for column in table.columns]
    suggestions = [column.suggestion for column in columns if column.suggestion is not None]
    known = [each for each in suggestions if each.declaration is not None]
    print(
        f"Wrote {out}: {len(known)} of {len(columns)} columns are declared, the others are left out."
    )
    unknown = [table.name for table in made.tables if table.owner == "???"]
    if unknown:
        listed = ", ".join(unknown)
        print(
            f"Say whose the rows are (owner: ???) in {listed}, or {{public: true}} where they are nobody's."
        )
    print(f'Look at every line that says "check". Then: discreet check {out}')


def _ask_all(made: Draft) -> Draft:
    """Ask all questions. An answer may remove later questions: a public table has no columns to ask
    about.
    """
    from discreet.engines.drafts.dialogue import apply_answer, questions

    place = 0
    while place < len(waiting := questions(made)):
        made = apply_answer(made, waiting[place], _ask(waiting[place]))
        place += 1
    return made


def _ask(question: Question) -> str | None:
    """Ask until there is an answer: a declaration, nothing for the suggestion, or - to leave the
    column out.
    """
    from discreet.engines.drafts.dialogue import reply_to

    print(f"\n{question.title}")
    for line in question.told:
        print(f"  {line}")
    while True:
        typed = typer.prompt(f"  {question.prompt}", default="", show_default=False)
        reply = reply_to(question, str(typed))
        if reply.told:
            print(f"  {reply.told}")
        if reply.settled:
            return reply.declaration
