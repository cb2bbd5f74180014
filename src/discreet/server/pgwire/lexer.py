"""Cut SQL into tokens by Postgres's rules, as far as needed to split a message into statements and
to find parameters.

A semicolon inside a text, a quoted name, a comment or a dollar quote does not end a statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from discreet.server.pgwire.faults import Fault

MOST_STATEMENTS = 1_000

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n\r]*)
  | (?P<comment>/\*)
  | (?P<escapes>[eE]'(?:[^'\\]|\\.|'')*')
  | (?P<string>(?:[uU]&|[bBxXnN])?'(?:[^']|'')*')
  | (?P<quoted>(?:[uU]&)?"(?:[^"]|"")+")
  | (?P<dollar>\$(?P<tag>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff]*)?\$)
  | (?P<parameter>\$[0-9]{1,9})
  | (?P<number>(?:[0-9]+(?:\.(?!\.)[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
  | (?P<word>[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*)
  | (?P<symbol>::|:=|\.\.|[-+*/<>=~!@\#%^&|`?.,;:()\[\]{}\\])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # word, quoted, string, number, parameter or symbol
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A keyword in capitals; what is quoted is none."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""

    @property
    def name(self) -> str:
        """An identifier as Postgres folds it; of a text what stands in it."""
        if self.kind == "quoted":
            return self.text[1:-1].replace('""', '"')
        if self.kind == "string":
            return self.text[1:-1].replace("''", "'") if self.text[0] == "'" else self.text
        return self.text.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a message. `offset` is the number of letters before it."""

    text: str
    tokens: tuple[Token, ...]
    offset: int

    @property
    def verb(self) -> str:
        return self.tokens[0].upper

    def rest(self, index: int) -> Statement:
        """Return the rest of the statement from a token on, as a statement."""
        tokens = self.tokens[index:]
        if not tokens:
            raise Fault(
                "42601", "The statement ends too early.", place=self.offset + len(self.text) + 1
            )
        start = tokens[0].start
        moved = tuple(
            Token(each.kind, each.text, each.start - start, each.end - start) for each in tokens
        )
        return Statement(
            text=self.text[start : tokens[-1].end], tokens=moved, offset=self.offset + start
        )


def tokens(sql: str) -> Iterator[Token]:
    place = 0
    while place < len(sql):
        found = _TOKEN.match(sql, place)
        if found is None:
            raise Fault("42601", _unreadable(sql[place]), place=place + 1)
        kind = found.lastgroup or ""
        end = found.end()
        if kind == "comment":
            end = _comment_end(sql, place)
        elif found.group("dollar") is not None:
            kind = "string"
            end = _dollar_end(sql, place, found.group("dollar"))
        if kind not in ("space", "comment"):
            yield Token("string" if kind == "escapes" else kind, sql[place:end], place, end)
        place = end


def _unreadable(letter: str) -> str:
    if letter in "'\"":
        return "A quote is opened here and never closed."
    return "This letter cannot stand here."


def _comment_end(sql: str, start: int) -> int:
    """Return where a comment ends; comments nest."""
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(sql, start):
        depth += 1 if found.group() == "/*" else -1
        if depth == 0:
            return found.end()
    raise Fault("42601", "A comment is opened here and never closed.", place=start + 1)


def _dollar_end(sql: str, start: int, quote: str) -> int:
    end = sql.find(quote, start + len(quote))
    if end < 0:
        raise Fault("42601", "A dollar quote is opened here and never closed.", place=start + 1)
    return end + len(quote)


def split(sql: str) -> list[Statement]:
    """Return the statements of a message; empty ones are left out."""
    found: list[Statement] = []
    waiting: list[Token] = []
    for token in (*tokens(sql), Token("symbol", ";", len(sql), len(sql))):
        if token.text != ";" or token.kind != "symbol":
            waiting.append(token)
        elif waiting:
            start = waiting[0].start
            moved = tuple(
                Token(each.kind, each.text, each.start - start, each.end - start)
                for each in waiting
            )
            found.append(Statement(text=sql[start : waiting[-1].end], tokens=moved, offset=start))
            waiting = []
            if len(found) > MOST_STATEMENTS:
                raise Fault("54000", f"A message has at most {MOST_STATEMENTS} statements.")
    return found
