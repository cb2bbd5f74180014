"""The protocol of a reader, which reads a database, a workbook or a labelled file, and tells
what each declares about its tables.

A SQLite column and a sheet have no types: each value becomes text by itself (S23), as in a CSV
file, and the policy's domain reads that text. PostgreSQL's columns have types, which its catalog
declares. `declared` never reads a value.
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


# Tables (in lower case) whose rows are wanted, and which of their columns (in lower case); None:
# all of them.
Wanted = Mapping[str, frozenset[str] | None]
NO_ROWS: Wanted = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """The declarations of a database about a table: never what its rows hold."""

    types: dict[str, str]
    primary: tuple[str, ...] = ()
    # column: the table and column that it names
    foreign: dict[str, tuple[str, str]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()  # SQL of its CHECK constraints
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of its ENUM columns
    # of its labelled columns: a code, what it means
    labels: dict[str, dict[str, str]] = field(default_factory=dict)


class ArrowRows(Protocol):
    """A table as Arrow reads it: one in memory, or a stream that begins anew each time."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of its columns."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return its rows, from the first to the last."""


class Reader(Protocol):
    """One database or workbook."""

    @property
    def file(self) -> Path | None:
        """The file that holds it, if one does."""

    def tables(self) -> tuple[str, ...]:
        """Return the names of its tables."""

    def declared(self, table: str) -> Declarations:
        """Return what it declares about a table."""

    def unheld(self, table: str) -> Mapping[str, str]:
        """Return the columns whose types no domain can hold, and those types."""

    def read(self, rows: Wanted) -> AbstractContextManager[Mapping[str, ArrowRows]]:
        """Return all tables as of one moment: those that are wanted with their rows and, at least,
        the columns that are wanted; others without rows. They can be read, one at a time, until
        the context ends.
        """


def texts(names: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows as a table of texts."""
    import pyarrow as pa

    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array([text_of(value) for value in column], pa.string()) for column in columns]
    return pa.table(arrays, names=names)
