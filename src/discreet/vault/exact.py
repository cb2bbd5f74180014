"""Exact values, as an engine read them. They do not print or pickle, and only the vault opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn, Protocol

import numpy.typing as npt
import pyarrow as pa

IntegerArray = npt.NDArray[Any]  # int64, or Python integers where sums pass 64 bits


class TableOfPart(Protocol):
    """A picklable function from one part of the rows, whichever they are, to a table of these
    columns.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...

    def __call__(self, table: pa.Table) -> pa.Table: ...


# the values; or what is made of each part of them
Read = Callable[[TableOfPart | None], Iterable[pa.Table]]


class Exact:
    """Exact values. Anybody may hold them; only what adds noise may look.

    Given as a table; or as several of the same columns, one after another, which are then read
    once.
    """

    __slots__ = ("_read",)

    def __init__(self, values: pa.Table | Iterable[pa.Table]) -> None:
        self._read: Read = partial(_here, [values] if isinstance(values, pa.Table) else values)

    @classmethod
    def elsewhere(cls, read: Read) -> Exact:
        """Return values that stay on a cluster, where a `TableOfPart` can be made of each piece of them."""
        made = cls(())
        made._read = read
        return made

    @classmethod
    def chain(cls, several: Iterable[Exact]) -> Exact:
        """Return what several hold, one after another."""
        return cls.elsewhere(lambda part: (table for each in several for table in each._read(part)))

    def unwrap(self) -> pa.Table:
        """Return the values. A test holds the list of who may call this: `Allowance`, and nobody
        else.
        """
        return pa.concat_tables(self._read(None))

    def unwrap_parts(self) -> Iterable[pa.Table]:
        """Return the values, table by table; for the same callers."""
        return self._read(None)

    def unwrap_each(self, part: TableOfPart) -> Iterable[pa.Table]:
        """Return what is made of the values, part by part, where they are; for the same callers."""
        return self._read(part)

    def __repr__(self) -> str:
        return "<Exact>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact values do not leave the process.")


def _here(tables: Iterable[pa.Table], part: TableOfPart | None) -> Iterable[pa.Table]:
    return tables if part is None else map(part, tables)
