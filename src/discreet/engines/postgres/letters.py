"""UPPER and LOWER letter by letter as DuckDB has them, as functions of a snapshot's schema.

Postgres's own depend on the collation: "C" knows the letters of ASCII alone, ICU makes SS of ß and
ς of a last Σ. So other letters are looked up in a table that DuckDB itself wrote when the snapshot
was made.
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


_END = 0x20000  # no letter beyond has a case
ALL = 0x110000


@cache
def pairs(function: str, end: int = _END) -> tuple[tuple[str, str], ...]:
    """Return the letters that a function changes, and what it makes of them."""
    with connect() as connection:
        found = connection.execute(_LETTERS.format(function=function, end=end)).fetchall()
    # translate() puts one letter in the place of one
    assert all(len(other) == 1 for _, other in found)
    return tuple((letter, other) for letter, other in found)


def define(function: str, schema: str) -> str:
    """Return the statement that makes upper_letters or lower_letters in a schema."""
    letters, others = ("".join(each) for each in zip(*pairs(function), strict=True))
    body = (
        f'SELECT CASE WHEN octet_length($1) = length($1) THEN {function}($1 COLLATE "C") '
        f"ELSE translate($1, {literal(letters)}, {literal(others)}) END"
    )
    options = "LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE"
    return f"CREATE FUNCTION {schema}.{function}_letters(text) RETURNS text {options} AS {literal(body)}"
