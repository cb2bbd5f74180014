"""What an engine read. It does not print, does not pickle, and only the vault opens it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import numpy.typing as npt
import pyarrow as pa

IntegerArray = npt.NDArray[Any]  # int64, or Python integers where sums pass 64 bits


class Exact:
    """Exact values. They can be held and handed on, and be seen only by what adds noise to them.

    Given as a table; or as several of the same columns, one after another, which are then read once.
    """

    __slots__ = ("_tables",)

    def __init__(self, values: pa.Table | Iterable[pa.Table]) -> None:
        self._tables = [values] if isinstance(values, pa.Table) else values

    @classmethod
    def chained(cls, several: Iterable[Exact]) -> Exact:
        """What several hold, one after another."""
        return cls(table for each in several for table in each.unwrap_parts())

    def unwrap(self) -> pa.Table:
        """The values. A test holds the list of who may call this: `Allowance`, and nobody else."""
        return pa.concat_tables(self._tables)

    def unwrap_parts(self) -> Iterable[pa.Table]:
        """The values, table by table; for the same callers."""
        return self._tables

    def __repr__(self) -> str:
        return "<Exact>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Exact values do not leave the process.")
