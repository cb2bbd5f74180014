"""Write UPPER, LOWER and TRIM for Spark, so that they change the same letters as in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from discreet.engines.duckdb.locked import connect
from discreet.engines.words import Word


def text_literal(text: str) -> str:
    """Return a text in quotes; Spark needs backslashes doubled."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\u0000") + "'"


_LETTERS = (  # all letters of Unicode, one in each row
    "(SELECT chr(range::INTEGER) AS letter FROM range(1, 55296) UNION ALL "
    "SELECT chr(range::INTEGER) FROM range(57344, 1114112))"
)


@cache
def letter_pairs(function: str) -> tuple[str, str]:
    """Return the letters that a function of DuckDB changes, and the letters that replace them."""
    with connect(threads=1) as database:
        changed = f"SELECT letter, {function}(letter) FROM {_LETTERS} WHERE {function}(letter) <> letter ORDER BY 1"
        rows = database.execute(changed).fetchall()
    return "".join(letter for letter, _ in rows), "".join(new for _, new in rows)


@cache
def _blanks() -> str:
    """Return the letters that DuckDB's trim removes."""
    with connect(threads=1) as database:
        rows = database.execute(
            f"SELECT letter FROM {_LETTERS} WHERE trim(letter) = '' ORDER BY 1"
        ).fetchall()
    return "".join(letter for (letter,) in rows)


def change_letters(function: str) -> Word:
    def spell(arguments: Sequence[str]) -> str:
        old, new = letter_pairs(function)
        return f"translate({arguments[0]}, {text_literal(old)}, {text_literal(new)})"

    return spell


def trim(side: str) -> Word:
    return lambda arguments: f"trim({side} {text_literal(_blanks())} FROM {arguments[0]})"
