"""The protocol of a reader, which reads a database, a workbook or a labelled file, and what it
declares about its tables.

The columns of SQLite and of a sheet have no types. Each value is converted to text by itself (S23),
as in a CSV file, and the policy's domain reads that text. PostgreSQL declares the types of its
columns. `declared` never reads a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from discreet.engines.frames import text_of

if TYPE_CHECKING:
    import pyarrow as pa


# The tables whose rows are wanted, each with its wanted columns, or None for all columns. All names
# are in lower case.
Wanted = Mapping[str, frozenset[str] | None]
NO_ROWS: Wanted = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """What a database declares about a table. Nothing of it comes from rows."""

    types: dict[str, str]
    primary: tuple[str, ...] = ()
    # for each foreign key of one column: the table and column to which it refers
    foreign: dict[str, tuple[str, str]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()  # the SQL of its CHECK constraints
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the values of ENUM columns
    # for each labelled column: its codes and their meanings
    labels: dict[str, dict[str, str]] = field(default_factory=dict)


class ArrowRows(Protocol):
    """A table that Arrow can read: in memory, or a stream that begins anew each time."""

    @property
    def schema(self) -> pa.Schema:
        """Return the names and types of its columns."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return its rows, from the first to the last."""


class Reader(Protocol):
    """One database or workbook."""

    @property
    def file(self) -> Path | None:
        """Return its file, if it has one."""

    def tables(self) -> tuple[str, ...]:
        """Return the names of its tables."""

    def declared(self, table: str) -> Declarations:
        """Return what it declares about a table."""

    def unheld(self, table: str) -> Mapping[str, str]:
        """Return the columns whose types fit no domain, with those types."""

    def read(self, rows: Wanted) -> AbstractContextManager[Mapping[str, ArrowRows]]:
        """Return all tables as of one moment, which can be read, one at a time, until the context
        ends.

        Wanted tables have their rows, with at least the wanted columns; the others have no rows.
        """


def texts(names: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows as a table of texts."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array([text_of(value) for value in column], pa.string()) for column in columns]
    return pa.table(arrays, names=names)
