"""LIKE and ILIKE: computed here for the values of a category, and by the engine for texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from discreet.algebra import call
from discreet.sql.text.parse import check_labels, reject, show
from discreet.sql.values.categories import among
from discreet.sql.values.value import (
    NO_FLAG,
    Category,
    Flag,
    Missing,
    Text,
    Value,
)


def like(value: Value, node: exp.Expression, *, ignore_case: bool, escape: str = "") -> Value:
    """Return the condition that a value is like the constant pattern of a node."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise reject(node, "LIKE needs a constant pattern.", "Write name LIKE 'Ka%'.")
    text = pattern.this
    if isinstance(value.domain, Category):
        fold = (lambda part: change_letters(part, str.lower)) if ignore_case else str
        labels = [str(label) for label in value.domain.values]
        signs = _signs(fold(text), escape)
        if _ONE in signs:  # then the time may grow as letters times signs
            check_labels(sum(map(len, labels)) * len(signs) // 20)
        codes = [code for code, label in enumerate(labels) if _is_like(fold(label), signs)]
        return among(value, codes)
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    if isinstance(value.domain, Text):
        name = "ilike" if ignore_case else "like"
        more = (escape,) if escape else ()
        return Value(
            expression=call(name, value.expression, text, *more),
            domain=Flag(),
            nullable=value.nullable,
        )
    raise reject(
        node,
        f"LIKE is for text, and {show(node.this)} is not text.",
        "Compare it with =, < or BETWEEN.",
    )


_ANY = "any"
_ONE = "one"
_WILD = {"%": _ANY, "_": _ONE}


def _signs(pattern: str, escape: str) -> list[str]:
    """Return the letters of a pattern with _ANY for % and _ONE for _, unless they are escaped."""
    signs = []
    letters = iter(pattern)
    for letter in letters:
        if letter == escape:
            signs.append(next(letters, ""))
        else:
            signs.append(_WILD.get(letter, letter))
    return signs


def _is_like(text: str, signs: Sequence[str]) -> bool:
    """Return True if a text is like a pattern.

    On a mismatch go back to the last % only and let it take one letter more.
    """
    if _ONE not in signs:
        return _has_in_order(text, signs)
    at = place = mark = 0
    star = -1
    while at < len(text):
        if place < len(signs) and signs[place] == _ANY:
            star = place
            mark = at
            place = place + 1
        elif place < len(signs) and signs[place] in (_ONE, text[at]):
            at = at + 1
            place = place + 1
        elif star >= 0:
            mark += 1
            at = mark
            place = star + 1
        else:
            return False
    return all(sign == _ANY for sign in signs[place:])


def _has_in_order(text: str, signs: Sequence[str]) -> bool:
    """Return True if a text is like a pattern without _: the pieces between % come in order."""
    pieces = [""]
    for sign in signs:
        if sign == _ANY:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    at = len(first)
    end = len(text) - len(last)
    if end < at or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in middle:
        place = text.find(piece, at, end)
        if place < 0:
            return False
        at = place + len(piece)
    return True


def change_letters(text: str, change: Callable[[str], str]) -> str:
    """Change a text letter by letter.

    The engine gives one letter for each, also where Python gives two, as for ß.
    """
    return "".join(_change_letter(letter, change) for letter in text)


def _change_letter(letter: str, change: Callable[[str], str]) -> str:
    new = change(letter)
    return new if len(new) == 1 else _ONE_FOR_ONE.get(letter, _title(letter))


_ONE_FOR_ONE = {"ß": "ẞ", "İ": "i"}


def _title(letter: str) -> str:
    """Return the title form of a letter if it is one letter, as for Greek ones with a subscript."""
    title = letter.title()
    return title if len(title) == 1 else letter
