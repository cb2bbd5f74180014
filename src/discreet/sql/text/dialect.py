"""The dialects in which a question may be written, and the parser of each.

`duckdb` is the language of `docs/language.md`. `postgres` is what Postgres's clients write: the
same trees, and where a word means something else there (`7 / 2`, NULLs in ORDER BY, names of
columns) `postgres` writes what is meant.
"""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from sqlglot import Dialect as Reader
from sqlglot.dialects.duckdb import DuckDB

from discreet.errors import UsageError

Dialect = Literal["duckdb", "postgres"]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


class _DuckDB(DuckDB):  # type: ignore[misc]
    """DuckDB's, with names between ` and ` too, as BigQuery and MySQL have them."""

    class Tokenizer(DuckDB.Tokenizer):  # type: ignore[misc]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]


WRITER = DuckDB()  # writes trees as SQL; named by a text, a dialect would be made anew each time


def reader(dialect: Dialect) -> Reader:
    """Return the tokenizer and parser of a dialect."""
    if dialect == "duckdb":
        return _DuckDB()
    from sqlglot.dialects.postgres import Postgres  # where nobody writes it, it is not loaded

    return Postgres()


def find_dialect(name: object) -> Dialect:
    """Return the dialect of a name, or UsageError."""
    for each in DIALECTS:
        if name == each:
            return each
    raise UsageError(f"A dialect is one of: {', '.join(DIALECTS)}.")
