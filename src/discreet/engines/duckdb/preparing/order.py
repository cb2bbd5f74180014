"""Order the rows of a person, to keep the first: at random for each person, and the same on every
engine and every time (S4).

The order is that of md5(key, owner, content, copy number). Because of the store's secret key, each
of a person's rows is equally likely to be first, also among equal rows. Because of the owner, the
choice of one person's rows says nothing about that of another's, so that means over people are
right: if only the content were hashed, all people would keep the same *values*. Nothing depends on
other people, on positions or on threads.

The hashed text is injective: digits between commas, texts after their lengths, '-' for NULL. It is
made of values that all SQL engines write alike: whole numbers, days and microseconds since 1970,
and the letters of texts.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.engines.layout import OWNER
from discreet.engines.quoting import literal, name
from discreet.policy.domain import Booleans, Dates, Domain, Identifier, Texts, Timestamps

ROW = name("#row")
_COPY = name("#copy")


def first_rows(rows: str, columns: Mapping[str, Domain], key: int, most: int) -> str:
    """Return a query of the numbers `ROW` of the rows to keep: the first so many of each owner."""
    owner = name(OWNER)
    equal = ", ".join([name(OWNER), *(name(column) for column in columns)])
    copies = f"SELECT *, row_number() OVER (PARTITION BY {equal}) AS {_COPY} FROM ({rows})"
    # What is sorted is narrow. Different rows of equal hash do not occur (2^-128); copies have
    # different hashes.
    hashed = f"SELECT {ROW}, {owner}, {shuffle_key(columns, f'{key:016x}', copy=_COPY)} AS place FROM ({copies})"
    return f"SELECT {ROW} FROM ({hashed}) QUALIFY row_number() OVER (PARTITION BY {owner} ORDER BY place) <= {most}"


def row_owner(columns: Mapping[str, Domain], key: int, *, copy: str) -> str:
    """Return the SQL of an owner for a row that has none: its content and its number among equal
    rows, hashed.

    Privacy: S4. A table with one row more has one owner more, and no other owner changes, for every
    order of the input.
    """
    values = [_text(name(column), domain) for column, domain in columns.items()]
    return f"CAST(md5(concat_ws(',', {', '.join([literal(f'row {key:016x}'), copy, *values])})) AS UUID)"


def shuffle_key(columns: Mapping[str, Domain], key: str, *, copy: str, table: str = "") -> str:
    """Return the SQL of a row's hash; `copy` is the SQL of its number among equal rows of one
    owner.
    """
    values = [_text(f"{table}{name(column)}", domain) for column, domain in columns.items()]
    return f"md5(concat_ws(',', {', '.join([literal(key), _measured(f'{table}{name(OWNER)}'), copy, *values])}))"


def _text(column: str, domain: Domain) -> str:
    """Return a stored value as digits, or as a text after its length. Commas separate the pieces,
    and '-' is NULL.
    """
    match domain:
        case Booleans():
            text = f"CASE WHEN {column} THEN '1' WHEN NOT {column} THEN '0' END"
        case Dates():
            text = f"CAST({column} - DATE '1970-01-01' AS VARCHAR)"
        case Timestamps():
            text = f"CAST(epoch_us({column}) AS VARCHAR)"
        case Texts() | Identifier():
            text = _measured(column)
        case _:
            text = f"CAST({column} AS VARCHAR)"
    return f"coalesce({text}, '-')"


def _measured(column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    return f"CAST(length({text}) AS VARCHAR) || ':' || {text}"
