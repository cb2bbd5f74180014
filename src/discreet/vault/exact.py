"""Exact values that an engine read. They do not print or pickle, and only the vault opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy.typing as npt
import pyarrow as pa

IntegerArray = npt.NDArray[Any]  # int64, or Python integers where sums pass 64 bits


class TableOfPart(Protocol):
    """A picklable function from any part of the rows to a table with the given columns."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def __call__(self, table: pa.Table) -> pa.Table: ...


# Return the values, or, with a function, its result on each part of them.
Read = Callable[[TableOfPart | None], Iterable[pa.Table]]


class Exact:
    """Exact values. Any module may hold them; only the vault, which adds noise, may open them.

    They are one table, or several tables with the same columns, which can be read only once.
    """

    __slots__ = ("_read",)

    def __init__(self, values: pa.Table | Iterable[pa.Table]) -> None:
        tables = [values] if isinstance(values, pa.Table) else values
        self._read: Read = partial(_read_tables, tables)

    @classmethod
    def elsewhere(cls, read: Read) -> Exact:
        """Return values that stay on a cluster, where a `TableOfPart` can run on each part of them."""
        exact = cls(())
        exact._read = read
        return exact

    @classmethod
    def chain(cls, several: Iterable[Exact]) -> Exact:
        """Return the values of several, one after another."""

        def read(part: TableOfPart | None) -> Iterable[pa.Table]:
            for exact in several:
                yield from exact._read(part)

        return cls.elsewhere(read)

    def unwrap(self) -> pa.Table:
        """Return the values as one table.

        Privacy: a test holds the list of callers of this and the next two methods.
        """
        return pa.concat_tables(self._read(None))

    def unwrap_parts(self) -> Iterable[pa.Table]:
        """Return the values table by table."""
        return self._read(None)

    def unwrap_each(self, part: TableOfPart) -> Iterable[pa.Table]:
        """Apply a function to each part of the values, where they are, and return its tables."""
        return self._read(part)

    def __repr__(self) -> str:
        return "<Exact>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact values do not leave the process.")


def _read_tables(tables: Iterable[pa.Table], part: TableOfPart | None) -> Iterable[pa.Table]:
    return tables if part is None else map(part, tables)
