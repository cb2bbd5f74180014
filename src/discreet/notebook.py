"""The notebook's magic: load it by `%load_ext discreet`, then write SQL in cells that begin with
`%%discreet`.

%load_ext discreet
%discreet town/town.yaml

%%discreet --analyst bob --epsilon 0.1 --into answer
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
"""

from __future__ import annotations

import argparse
import os
import shlex
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import discreet
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from discreet.asking.quotes import Quote
    from discreet.vault.answer import Answer


class Answerer(Protocol):
    """Answers questions: a curator, or a client of a server."""

    def ask(
        self, sql: str, *, analyst: str, epsilon: object, margin: object, assuming: int | None
    ) -> Answer: ...

    def quote(
        self, sql: str, *, analyst: str, epsilon: object, margin: object, assuming: int | None
    ) -> Quote: ...

    def explain(
        self, sql: str, *, analyst: str, epsilon: object, margin: object, assuming: int | None
    ) -> str: ...


class _Options(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. {self.format_usage().strip()}")


def _options() -> _Options:
    options = _Options(prog="%%discreet", add_help=False)
    options.add_argument(
        "source", nargs="?", help="a policy file, or a variable that holds a curator"
    )
    options.add_argument("--analyst", default=os.environ.get("DISCREET_ANALYST"))
    options.add_argument("--epsilon")
    options.add_argument("--margin")
    options.add_argument("--assuming", type=int)
    options.add_argument("--into", metavar="NAME", help="the variable for the answer")
    what = options.add_mutually_exclusive_group()
    what.add_argument("--quote", action="store_true", help="price and margins, without paying")
    what.add_argument("--explain", action="store_true", help="what would happen, in sentences")
    return options


class Magic:
    """Asks the curator that `%discreet` opened, or else the only one in the notebook."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self._variables = variables
        self._current: Answerer | None = None

    def discreet(self, line: str, cell: str | None = None) -> Answer | Quote | None:
        """Choose whom to ask by `%discreet POLICY`; ask SQL by `%%discreet --analyst bob --epsilon
        0.1`.
        """
        # IPython prints the sentence of its own UsageError without a traceback
        from IPython.core.error import UsageError as Told

        try:
            given = _options().parse_args(shlex.split(line))
            if given.source is not None:
                self._current = self._open(given.source)
            return None if cell is None else self._answer(cell.strip(), given)
        except (DiscreetError, ValueError) as error:
            raise Told(str(error)) from None

    def _answer(self, sql: str, given: argparse.Namespace) -> Answer | Quote | None:
        if given.analyst is None:
            raise UsageError("Who asks? Write %%discreet --analyst NAME, or set DISCREET_ANALYST.")
        answerer = self._current if self._current is not None else self._only_one()
        terms = {
            "analyst": given.analyst,
            "epsilon": given.epsilon,
            "margin": given.margin,
            "assuming": given.assuming,
        }
        if given.explain:
            print(answerer.explain(sql, **terms))
            return None
        answer = answerer.quote(sql, **terms) if given.quote else answerer.ask(sql, **terms)
        if given.into is not None:
            if not given.into.isidentifier():
                raise UsageError(f"--into names a variable, and {given.into[:80]} cannot be one.")
            self._variables[given.into] = answer
        return answer

    def _open(self, source: str) -> Answerer:
        variable = self._variables.get(source)
        if hasattr(variable, "ask"):
            return cast("Answerer", variable)
        return discreet.open(source)

    def _only_one(self) -> Answerer:
        answerers = {}
        for name, value in self._variables.items():
            if name.startswith("_") or isinstance(value, type):
                continue
            if hasattr(value, "ask"):
                answerers[id(value)] = value
        if len(answerers) != 1:
            raise UsageError(
                "Whom do you ask? Write %discreet POLICY once, or the name of a variable that holds one."
            )
        return cast("Answerer", next(iter(answerers.values())))


def load(shell: InteractiveShell) -> None:
    """Register the magic in a notebook."""
    shell.register_magic_function(Magic(shell.user_ns).discreet, "line_cell", "discreet")
