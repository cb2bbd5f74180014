"""UPPER and LOWER for Postgres that change every letter as DuckDB does: functions in a snapshot's
schema.

Postgres's own functions depend on the collation: "C" changes only ASCII letters, and ICU turns ß
into SS and a final Σ into ς. So the functions here change other letters by a table that DuckDB
wrote when the snapshot was made.
"""

from __future__ import annotations

from functools import cache

from discreet.engines.duckdb.locked import connect
from discreet.engines.quoting import literal

FUNCTIONS = ("upper", "lower")
_LETTERS = """
SELECT chr(i) AS letter, {function}(chr(i)) AS other
FROM (SELECT CAST(range AS INTEGER) AS i FROM range(1, {end}))
WHERE i NOT BETWEEN 55296 AND 57343 AND letter <> other
"""


_END = 0x20000  # no letter from here on has a case
ALL = 0x110000  # the end of Unicode


@cache
def pairs(function: str, end: int = _END) -> tuple[tuple[str, str], ...]:
    """Return the letters that a function changes, each with the letter that replaces it."""
    with connect() as connection:
        rows = connection.execute(_LETTERS.format(function=function, end=end)).fetchall()
    # translate() can only replace one letter by one
    assert all(len(other) == 1 for _, other in rows)
    return tuple((letter, other) for letter, other in rows)


def define(function: str, schema: str) -> str:
    """Return the statement that creates upper_letters or lower_letters in a schema."""
    letters, others = ("".join(each) for each in zip(*pairs(function), strict=True))
    body = (
        f'SELECT CASE WHEN octet_length($1) = length($1) THEN {function}($1 COLLATE "C") '
        f"ELSE translate($1, {literal(letters)}, {literal(others)}) END"
    )
    options = "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"
    return f"CREATE FUNCTION {schema}.{function}_letters(text) RETURNS text {options} AS {literal(body)}"
