r"""The command `shell`: a terminal for analysts, on a policy of this machine or on a server.

A statement may have many lines and ends with a semicolon. A line that begins with a backslash is a
command: \help lists them.
"""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from discreet.cli.question import Epsilon, Margin
from discreet.cli.terminal.line_editing import CtrlC, line_editing
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from discreet.budget import Budget
    from discreet.client import Client
    from discreet.curator import Curator
    from discreet.vault.answer import Answer

HELP = r"""SELECT ...;          ask; a statement ends with ;
\quote SELECT ...;   show what it would cost and how wrong it would be; free
\explain SELECT ...; explain in sentences what would happen; free
\tables [NAME]       list the tables, or the columns of one
\budget              show what is left
\epsilon 0.1         set the ε that each answer may cost
\margin 100          instead: set the 95 % margin that you accept
\i FILE.sql          run the statements of a file
\help                show this
\q                   leave"""
KEYWORDS = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "ORDER BY",
        "HAVING",
        "LIMIT",
        "JOIN",
        "USING",
        "WITH",
        "CASE",
        "WHEN",
    ),
    *(
        "THEN",
        "ELSE",
        "END",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "IS",
        "NULL",
        "AS",
        "DESC",
        "DISTINCT",
    ),
    *(
        "COUNT(*)",
        "COUNT(",
        "SUM(",
        "AVG(",
        "MIN(",
        "MAX(",
        "MEDIAN(",
        "VARIANCE(",
        "STDDEV(",
        "QUANTILE_CONT(",
    ),
)
COMMANDS = (
    "\\quote",
    "\\explain",
    "\\tables",
    "\\budget",
    "\\epsilon",
    "\\margin",
    "\\i",
    "\\help",
    "\\q",
)
UNCLOSED = "never closed"


class Source(Protocol):
    """The place where the shell asks: a policy on this machine, or a server."""

    @property
    def name(self) -> str: ...

    def ask(self, sql: str, price: Mapping[str, Any]) -> Answer: ...

    def quote(self, sql: str, price: Mapping[str, Any]) -> object: ...

    def explain(self, sql: str, price: Mapping[str, Any]) -> str: ...

    def left(self) -> Budget: ...

    def tables(self) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """A policy on this machine."""

    curator: Curator
    name: str

    def ask(self, sql: str, price: Mapping[str, Any]) -> Answer:
        return self.curator.ask(sql, analyst=self.name, **self._price(price))

    def quote(self, sql: str, price: Mapping[str, Any]) -> object:
        return self.curator.quote(sql, analyst=self.name, **self._price(price))

    def explain(self, sql: str, price: Mapping[str, Any]) -> str:
        return self.curator.explain(sql, analyst=self.name, **self._price(price))

    def left(self) -> Budget:
        return self.curator.left(analyst=self.name)

    def tables(self) -> list[dict[str, Any]]:
        return [table.as_json() for table in self.curator.tables()]

    def _price(self, price: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the price that was set, or else the policy's default for this analyst."""
        share = self.curator.policy.analysts.get(self.name)
        if price or share is None or share.per_question is None:
            return price
        return {"epsilon": share.per_question}


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """A server on this or another machine."""

    client: Client
    name: str

    def ask(self, sql: str, price: Mapping[str, Any]) -> Answer:
        return self.client.ask(sql, **price)

    def quote(self, sql: str, price: Mapping[str, Any]) -> object:
        return self.client.quote(sql, **price)

    def explain(self, sql: str, price: Mapping[str, Any]) -> str:
        return self.client.explain(sql, **price)

    def left(self) -> Budget:
        return self.client.left()

    def tables(self) -> list[dict[str, Any]]:
        tables: list[dict[str, Any]] = self.client.tables()["tables"]
        return tables


def register(app: typer.Typer) -> None:
    app.command()(shell)


def shell(
    target: Annotated[
        str,
        typer.Argument(metavar="POLICY|URL", help="A policy file, or a server: https://host:8080."),
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE.sql]...",
            help="Run the statements of these files, then leave; - is standard input.",
        ),
    ] = None,
    analyst: Annotated[
        str | None, typer.Option(envvar="DISCREET_ANALYST", help="Who asks.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="DISCREET_TOKEN", help="The token for a server.")
    ] = None,
    epsilon: Epsilon = None,
    margin: Margin = None,
) -> None:
    """Open a terminal for analysts: SQL and commands such as \\tables, \\budget, \\quote; \\help
    lists all.
    """
    session = Session(source=_source(target, analyst, token))
    if epsilon is not None:
        session.price["epsilon"] = epsilon
    if margin is not None:
        session.price["margin"] = margin
    if files or not sys.stdin.isatty():
        for file in files or ["-"]:
            session.run_all(_text(file))
        return
    _converse(session)


def _source(target: str, analyst: str | None, token: str | None) -> Source:
    if not re.match(r"https?://", target):
        from discreet.cli.question import open_curator

        if analyst is None:
            raise UsageError("Who asks? Give --analyst NAME, or set DISCREET_ANALYST.")
        return Here(curator=open_curator(target), name=analyst)
    import discreet

    if token is None:
        if not sys.stdin.isatty():
            raise UsageError(
                "A server needs a token: set DISCREET_TOKEN (discreet user token makes one)."
            )
        token = getpass.getpass("Token: ")
    client = discreet.connect(target, token=token)
    known = client.analyst
    if analyst is not None and analyst != known:
        raise UsageError(f"The token asks as {known}, not as {analyst}.")
    return Elsewhere(client=client, name=known)


def _text(file: str) -> str:
    from discreet.cli.question import statement

    return statement("-", None) if file == "-" else statement(None, Path(file))


# --- one session ----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Session:
    """Run statements and commands, and remember the price that was set."""

    source: Source
    price: dict[str, str] = field(default_factory=dict)
    ended: bool = False

    def run_all(self, text: str) -> None:
        """Run every statement and command of a text, up to the first error."""
        for piece in pieces(text):
            self.run(piece)

    def run(self, text: str) -> None:
        """Run one statement, or one command."""
        if not text.startswith("\\"):
            from discreet.cli.printing.tables import print_answer

            print_answer(self.source.ask(text, self.price))
            return
        name, _, rest = text[1:].partition(" ")
        command = _RUN.get(name)
        if command is None:
            raise UsageError(f"There is no command \\{name}. \\help lists them.")
        command(self, rest.strip().rstrip(";").strip())

    def quote(self, rest: str) -> None:
        _say(str(self.source.quote(_need(rest), self.price)))

    def explain(self, rest: str) -> None:
        _say(self.source.explain(_need(rest), self.price))

    def budget(self, rest: str) -> None:
        _say(f"left {self.source.left()}")

    def epsilon(self, rest: str) -> None:
        self._set("epsilon", rest)

    def margin(self, rest: str) -> None:
        self._set("margin", rest)

    def _set(self, name: str, value: str) -> None:
        if value:
            self.price.clear()
            self.price[name] = value
        price = ", ".join(f"{name} {value}" for name, value in self.price.items())
        _say(price or "nothing is set: \\epsilon 0.1")

    def tables(self, rest: str) -> None:
        tables = self.source.tables()
        if not rest:
            for table in tables:
                _say(f"{table['name']}  {table['comment']}")
            return
        columns = {table["name"]: table["columns"] for table in tables}
        if rest not in columns:
            raise UsageError(f"There is no table {rest}. \\tables lists them.")
        for column in columns[rest]:
            _say(f"{column['name']}  {column['type']}  {column['contains']}")

    def include(self, rest: str) -> None:
        if not rest:
            raise UsageError("Name a file: \\i questions.sql")
        self.run_all(_text(rest))

    def help(self, rest: str) -> None:
        _say(HELP)

    def leave(self, rest: str) -> None:
        self.ended = True


_RUN: Mapping[str, Callable[[Session, str], None]] = {
    "quote": Session.quote,
    "explain": Session.explain,
    "budget": Session.budget,
    "epsilon": Session.epsilon,
    "margin": Session.margin,
    "tables": Session.tables,
    "i": Session.include,
    "help": Session.help,
    "?": Session.help,
    "q": Session.leave,
    "quit": Session.leave,
}


def _need(sql: str) -> str:
    if not sql:
        raise UsageError("Write the question behind it: \\quote SELECT COUNT(*) FROM people")
    return sql


def _say(text: str) -> None:
    """Print a text with its control characters as marks."""
    from discreet.display.show import printable

    print(printable(text))


# --- cut a text into statements -------------------------------------------------------------------


def is_complete(text: str) -> bool:
    """Return True if a text ends with a semicolon that is not part of a string, name or comment."""
    from discreet.server.pgwire.faults import Fault
    from discreet.server.pgwire.lexer import tokens

    try:
        words = [*tokens(text)]
    except Fault as fault:
        return UNCLOSED not in fault.message and text.rstrip().endswith(";")
    return bool(words) and words[-1].kind == "symbol" and words[-1].text == ";"


def pieces(text: str) -> Iterator[str]:
    """Yield the statements and commands of a text. The last one may lack its semicolon."""
    waiting: list[str] = []
    for line in text.splitlines():
        if not waiting and line.strip().startswith("\\") and not _is_question(line):
            yield line.strip()
            continue
        waiting.append(line)
        if is_complete("\n".join(waiting)):
            yield from _split("\n".join(waiting))
            waiting = []
    if "".join(waiting).strip():
        yield from _split("\n".join(waiting))


def _is_question(line: str) -> bool:
    """Return True if a command takes a question, which may have several lines."""
    return line.strip().startswith(("\\quote ", "\\explain "))


def _split(text: str) -> list[str]:
    """Return the statements of a text. If it cannot be split, return it whole: then parsing it will
    say what is wrong.
    """
    from discreet.server.pgwire.faults import Fault
    from discreet.server.pgwire.lexer import split

    if text.lstrip().startswith("\\"):
        return [" ".join(text.split())]
    try:
        return [each.text for each in split(text)]
    except Fault:
        return [text]


# --- somebody types -------------------------------------------------------------------------------


def _converse(session: Session) -> None:
    """Read and answer line by line, and go on after errors, until \\q or the end of the input."""
    from discreet.display.show import label

    _say(f"discreet: {session.source.name} asks. \\help lists commands, \\q leaves.")
    with line_editing({*KEYWORDS, *COMMANDS, *_names(session.source)}), CtrlC() as ctrl_c:
        waiting: list[str] = []
        while not session.ended:
            prompt = "...> " if waiting else f"{label(session.source.name)}> "
            try:
                line = ctrl_c.may_stop(partial(input, prompt))
            except EOFError:
                print()
                return
            if line is None:
                print()
                waiting = []
                continue
            waiting.append(line)
            text = "\n".join(waiting)
            if not text.strip():
                waiting = []
            elif is_complete(text) or (text.startswith("\\") and not _is_question(text)):
                waiting = []
                if ctrl_c.may_stop(partial(_try, session, text)) is None:
                    _say("Stopped. What was charged stays charged; asking the same again is free.")


def _try(session: Session, text: str) -> bool:
    """Run the statements of a text, or print why not; return True if they ran."""
    from discreet.cli import with_names
    from discreet.display.show import printable

    try:
        session.run_all(text)
    except DiscreetError as error:
        print(printable(str(with_names(error))), file=sys.stderr)
        return False
    return True


def _names(source: Source) -> Iterator[str]:
    """Yield the names of tables and columns that can be typed.

    Leave out names with control characters: a server could send them to control the terminal.
    """
    from discreet.display.show import label

    for table in source.tables():
        names = (table["name"], *(column["name"] for column in table["columns"]))
        yield from (name for name in names if label(name) == name)
