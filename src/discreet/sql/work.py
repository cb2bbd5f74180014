"""What one person's rows can cost the engine, read off the SQL that will run (S21).

Every SELECT that we write says how many rows of one person it reads, in a comment: `SELECT /*rows 12*/ ...`. Texts that
a function makes longer say how long they get: `/*letters 300*/`. `seconds` walks the text of a query once: each
function, operator, join, group and window costs so many nanoseconds for each of those rows, and functions of texts for
each letter too. A SELECT that says nothing is refused, so that no way of writing rows can be forgotten.

Privacy
    One person costs at most `SHARE` of the time limits. So a question that took less than half of a limit would have
    kept it with any one person more or less. The costs are measured ones, of the dearest text there is
    (`bench/work.py` compares them with the engine), rounded up: this hardens (S13), and is no part of ε.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

SHARE = Fraction(1, 1_000)  # of `limits.seconds` and of `limits.deadline`

_QUOTED = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_MARKS = re.compile(rf"({_QUOTED})|/\*(?:rows|letters) \d+\*/ ?")
_TOKENS = re.compile(
    rf"""(?P<quoted>{_QUOTED})
    |/\*rows\ (?P<rows>\d+)\*/|/\*letters\ (?P<letters>\d+)\*/|/\*try\*/
    |(?P<call>[a-z_]\w*)(?=\()|(?P<word>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>\|\||[<>=!]+|[-+*/%]|[]()[{{}}])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cost:
    """Nanoseconds for a row; for each letter of it; for each letter of it and of the constant it is compared with; and
    for each letter of all texts of the row, where rows are held.
    """

    row: float = 15.0
    letter: float = 0.0
    pair: float = 0.0
    held: float = 0.0


_PLAIN = _Cost()  # of whatever is computed and not listed here
_COSTS = {
    "lower": _Cost(letter=12.0),
    "upper": _Cost(letter=12.0),
    "trim": _Cost(letter=8.0),
    "ltrim": _Cost(letter=8.0),
    "rtrim": _Cost(letter=8.0),
    "substr": _Cost(letter=4.0),
    "left": _Cost(letter=4.0),
    "right": _Cost(letter=5.0),
    "length": _Cost(letter=1.0),
    "concat": _Cost(letter=2.0),
    "concat_ws": _Cost(letter=2.0),
    "||": _Cost(letter=2.0),
    "replace": _Cost(letter=12.0),
    "split_part": _Cost(letter=8.0),
    "strpos": _Cost(letter=8.0),
    "contains": _Cost(letter=8.0, pair=0.2),
    "lpad": _Cost(letter=8.0),
    "rpad": _Cost(letter=8.0),
    "md5": _Cost(row=200.0, letter=5.0),
    "row": _Cost(row=100.0, letter=5.0),
    "strftime": _Cost(row=200.0),
    "list_extract": _Cost(row=150.0),
    "VARCHAR": _Cost(row=50.0, letter=1.0),
    "LIKE": _Cost(letter=8.0, pair=0.2),
    "ILIKE": _Cost(letter=30.0, pair=4.0),
    "SELECT": _Cost(row=40.0),
    "EXISTS": _Cost(row=500.0),
    "JOIN": _Cost(row=100.0, held=4.0),
    "GROUP": _Cost(row=300.0, held=4.0),
    "DISTINCT": _Cost(row=200.0, held=4.0),
    "OVER": _Cost(row=700.0, held=14.0),
    "ROWS": _Cost(row=2_500.0),  # a window's frame
    "RANGE": _Cost(row=2_500.0),
    "{": _Cost(row=500.0, letter=3.0),  # two values that are compared as one
} | dict.fromkeys(("AND", "OR", "NOT", "CASE", "WHEN", "IN", "IS", "BETWEEN"), _PLAIN)
_COMPARED = _Cost(letter=0.1)
_FRAMED = _Cost(row=6_500.0, letter=3.0)  # { in a query that has frames
_WILD = 8.0  # a pair of LIKE with _, which tries the pattern at every letter
_IN_LIST, _SOUGHT = 0.1, 3.0  # for each constant of a list, and of one that is looked through


def select(rows: int) -> str:
    """SELECT, with how many rows of one person it reads."""
    return f"SELECT /*rows {rows}*/"


def longer(sql: str, letters: int) -> str:
    """Engine SQL of a text that is made of others, with how many letters it gets on the way."""
    return f"/*letters {letters}*/{sql}"


def bare(sql: str) -> str:
    """The same SQL without these marks; what is quoted stays as it is."""
    return _MARKS.sub(lambda found: found[1] or "", sql)


def seconds(sql: str, letters: Mapping[str, int]) -> float:
    """How long the engine works on one person's rows at most.

    `letters` are how many texts have at most, by the name of their column, in quotes. Raises ValueError where a SELECT
    does not say how many rows it reads.
    """
    tokens = list(_TOKENS.finditer(sql))
    texts = [_letters(token, letters) for token in tokens]
    sized = list(zip(tokens, [None, *tokens[:-1]], texts, strict=True))
    kept = {(before[0] if before else "", token[0]): size for token, before, size in sized if token[0][0] != "'"}
    held = sum(kept.values())  # each column once: an alias stands before its name
    constant = max((size for token, _, size in sized if token[0][0] == "'"), default=0)
    longest, framed = max(texts, default=0), " ROWS BETWEEN " in sql
    total, rows, listed = 0.0, [0], [_IN_LIST]
    for place, token in enumerate(tokens):
        word = token[0]
        if word == "SELECT":
            said = tokens[place + 1]["rows"] if place + 1 < len(tokens) else None
            if said is None:
                raise ValueError("a SELECT does not say how many rows it reads")
            rows[-1] = int(said)
        elif word == "VALUES":  # a public table that is written out: read once, whoever is there
            rows[-1] = 0
        elif word in ("(", "["):
            rows.append(rows[-1])
            looked = word == "[" and place > 1 and tokens[place - 2][0] == "list_position"
            listed.append(_SOUGHT if looked else listed[-1] if word == "(" else _IN_LIST)
        elif word in (")", "]"):
            rows.pop()
            listed.pop()
        if token["number"] or word[0] == "'":
            total += rows[-1] * listed[-1]
            continue
        cost = _FRAMED if framed and word == "{" else _cost(token)
        pair = cost.pair
        if word in ("LIKE", "ILIKE") and "_" in tokens[place + 1][0]:
            pair = _WILD
        total += rows[-1] * (cost.row + cost.letter * longest + pair * longest * constant + cost.held * held)
    return total / 1e9


_NOTHING = _Cost(row=0.0)


def _letters(token: re.Match[str], letters: Mapping[str, int]) -> int:
    """How long a text is that stands in the SQL: a column, a constant, or one that is made longer."""
    if token["letters"]:
        return int(token["letters"])
    if token["quoted"] is None:
        return 0
    return letters.get(token[0], 0) if token[0][0] == '"' else len(token[0]) - 2


def _cost(token: re.Match[str]) -> _Cost:
    word = token[0]
    if word in _COSTS:
        return _COSTS[word]
    if word[0] in "<>=!":
        return _COMPARED
    return _PLAIN if token["call"] or word in "+-*/%" else _NOTHING
