"""COPY (question) TO STDOUT: options, and rows as text, csv or binary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import pyarrow as pa

from discreet.server.pgwire import types
from discreet.server.pgwire.faults import Fault
from discreet.server.pgwire.lexer import Statement, Token
from discreet.server.pgwire.messages import ResultField

Format = Literal["text", "csv", "binary"]
_BEGIN = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_ESCAPES = {
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_ROWS = 1_000  # that are written at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A COPY statement: the question, and the format of its rows."""

    source: Statement = field(repr=False)
    format: Format = "text"
    header: bool = False
    delimiter: str = ""
    null: str | None = None
    quote: str = '"'
    escape: str = '"'

    @property
    def mark(self) -> str:
        return self.delimiter or ("," if self.format == "csv" else "\t")

    @property
    def missing(self) -> str:
        """The text that stands for NULL."""
        if self.null is not None:
            return self.null
        return "" if self.format == "csv" else "\\N"


def parse(statement: Statement) -> Copy:
    """Read COPY (question) TO STDOUT with options, in the newer and the older spelling."""
    tokens = statement.tokens
    if len(tokens) < 2 or tokens[1].text != "(":
        raise Fault(
            "0A000",
            "A table's rows cannot be copied: they are people's.",
            hint="Write COPY (SELECT ... aggregates ...) TO STDOUT.",
        )
    end = _closing(tokens, 1)
    after = [token.upper for token in tokens[end + 1 : end + 3]]
    if after != ["TO", "STDOUT"]:
        raise Fault("42501", "Answers are copied TO STDOUT and nowhere else.")
    source = Statement(text=statement.text, tokens=tokens[:end], offset=statement.offset).rest(2)
    options = [token for token in tokens[end + 3 :] if token.upper != "WITH"]
    return _with_options(Copy(source=source), options)


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if depth == 0:
            return place
    raise Fault("42601", "A bracket is opened and never closed.", place=tokens[opening].start + 1)


def _with_options(copy: Copy, options: Sequence[Token]) -> Copy:
    words = [
        token
        for token in options
        if token.text not in ("(", ")", ",") and token.upper not in ("AS", "FORMAT")
    ]
    place = 0
    while place < len(words):
        word = words[place].upper
        value = words[place + 1] if place + 1 < len(words) else None
        name = words[place].name
        place += 1
        if name in ("binary", "csv", "text"):
            copy = replace(copy, format=cast(Format, name))
        elif word == "HEADER":
            given = value is not None and value.name in ("true", "false", "on", "off", "1", "0")
            place += given
            copy = replace(
                copy, header=not given or (value is not None and value.name in ("true", "on", "1"))
            )
        elif word in ("DELIMITER", "NULL", "QUOTE", "ESCAPE") and value is not None:
            place += 1
            changed: dict[str, Any] = {word.lower(): _letter(word, value.name)}
            copy = replace(copy, **changed)
        elif word == "ENCODING" and value is not None and value.name.lower() in ("utf8", "utf-8"):
            place += 1
        else:
            raise Fault(
                "0A000",
                f"COPY has no option {words[place - 1].text[:40]} here.",
                hint="See docs/server.md.",
            )
    if copy.format == "binary" and (copy.header or copy.delimiter or copy.null is not None):
        raise Fault("42601", "COPY in binary has no header, delimiter or NULL.")
    return copy


def _letter(word: str, value: str) -> str:
    unescaped = {"\\t": "\t"}.get(value, value)
    if word != "NULL" and (len(unescaped.encode()) != 1 or unescaped in "\r\n"):
        raise Fault("0A000", f"COPY's {word} is one letter.")
    return unescaped


def lines(table: pa.Table, fields: Sequence[ResultField], copy: Copy) -> Iterator[list[bytes]]:
    """Return the content of the copy, some rows at a time; clients expect each row in a message of
    its own.

    The signature of the binary form comes with the first row, as Postgres sends it.
    """
    binary = copy.format == "binary"
    formats = [int(binary)] * len(fields)
    head = _BEGIN if binary else b""
    if copy.header:
        yield [_line([field.name for field in fields], copy)]
    for start in range(0, table.num_rows, _ROWS):
        found = types.rows(table.slice(start, _ROWS), fields, formats)
        written = [
            _binary_row(row) if binary else _line([_decode(each) for each in row], copy)
            for row in found
        ]
        yield [head + written[0], *written[1:]]
        head = b""
    if binary:
        yield [head + _END]


def _decode(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _binary_row(row: Sequence[bytes | None]) -> bytes:
    parts = [
        b"\xff\xff\xff\xff" if each is None else len(each).to_bytes(4, "big") + each for each in row
    ]
    return len(row).to_bytes(2, "big") + b"".join(parts)


def _line(row: Sequence[str | None], copy: Copy) -> bytes:
    write = _csv if copy.format == "csv" else _escape
    return (
        copy.mark.join(copy.missing if each is None else write(each, copy) for each in row) + "\n"
    ).encode()


def _csv(value: str, copy: Copy) -> str:
    plain = value != copy.missing and not any(
        mark in value for mark in (copy.mark, copy.quote, "\n", "\r")
    )
    if plain and value != "\\.":
        return value
    inner = "".join(
        copy.escape + letter if letter in (copy.quote, copy.escape) else letter for letter in value
    )
    return f"{copy.quote}{inner}{copy.quote}"


def _escape(value: str, copy: Copy) -> str:
    table = _ESCAPES | {copy.mark: "\\" + copy.mark} if copy.mark != "\t" else _ESCAPES
    return "".join(table.get(letter, letter) for letter in value)
