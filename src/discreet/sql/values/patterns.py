"""LIKE and ILIKE: on categories decided here, on texts by the engine."""

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
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise reject(node, "LIKE needs a constant pattern.", "Write name LIKE 'Ka%'.")
    text = pattern.this
    if isinstance(value.domain, Category):
        fold = (lambda part: change_letters(part, str.lower)) if ignore_case else str
        signs = _signs(fold(text), escape)
        if _ONE in signs:  # then each letter may have to be held against all of the pattern
            check_labels(sum(len(str(each)) for each in value.domain.values) * len(signs) // 20)
        found = [
            code
            for code, each in enumerate(value.domain.values)
            if _is_like(fold(str(each)), signs)
        ]
        return among(value, found)
    if isinstance(value.domain, Missing):
        return Value(expression=NO_FLAG, domain=Flag(), nullable=True)
    if isinstance(value.domain, Text):
        name, more = "ilike" if ignore_case else "like", (escape,) if escape else ()
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


_ANY, _ONE = "any", "one"


def _signs(pattern: str, escape: str) -> list[str]:
    """Return the letters of a pattern, % and _ by what they stand for; behind the escape they stand
    for themselves.
    """
    signs, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            signs.append(next(letters, ""))
        else:
            signs.append({"%": _ANY, "_": _ONE}.get(letter, letter))
    return signs


def _is_like(text: str, signs: Sequence[str]) -> bool:
    """Return True if a text is like a pattern; on a mismatch only the last % takes one letter
    more.
    """
    if _ONE not in signs:
        return _has_in_order(text, signs)
    at = place = mark = 0
    star = -1
    while at < len(text):
        if place < len(signs) and signs[place] == _ANY:
            star, mark, place = place, at, place + 1
        elif place < len(signs) and signs[place] in (_ONE, text[at]):
            at, place = at + 1, place + 1
        elif star >= 0:
            mark += 1
            at, place = mark, star + 1
        else:
            return False
    return all(sign == _ANY for sign in signs[place:])


def _has_in_order(text: str, signs: Sequence[str]) -> bool:
    """Return True if a text is like a pattern without _: the pieces between its % follow one
    another.
    """
    pieces = [""]
    for sign in signs:
        if sign == _ANY:
            pieces.append("")
        else:
            pieces[-1] += sign
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if end < at or not (text.startswith(first) and text.endswith(last)):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def change_letters(text: str, change: Callable[[str], str]) -> str:
    """Change a text letter by letter, one for one as the engine does, also where Python gives two,
    as for ß.
    """
    return "".join(
        new if len(new := change(old)) == 1 else _ONE_FOR_ONE.get(old, _title(old)) for old in text
    )


_ONE_FOR_ONE = {"ß": "ẞ", "İ": "i"}


def _title(letter: str) -> str:
    """Greek letters with a subscript become the capitals of titles."""
    return letter.title() if len(letter.title()) == 1 else letter
