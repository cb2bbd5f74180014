"""The columns of a publication and its tables: cells, sums over columns, and the parts that tables
share.

A table over columns t is the sum of parts, one for each subset A of t: the counts by A, centered
along every column of A. Parts of different subsets are orthogonal, and a table's noise is
independent in each of them. So the estimate of a part is the weighted mean of what each table says
about it, whichever columns the tables share (`solve.least_squares`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Numbers = NDArray[Any]  # counts, whole or not, in any number of bits
Flags = NDArray[np.bool_]
UNKNOWN = 1e15  # the variance of a part that no table measures
Columns = tuple[int, ...]  # the numbers of columns, in rising order


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The sizes of all columns, and the tables that are published."""

    sizes: tuple[int, ...]
    tables: tuple[Columns, ...]

    def shape(self, columns: Columns) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)

    def cells(self, columns: Columns) -> int:
        return math.prod(self.shape(columns))

    @property
    def together(self) -> int:
        """Return the number of cells of all tables together."""
        return sum(self.cells(table) for table in self.tables)

    @property
    def every(self) -> Columns:
        return tuple(range(len(self.sizes)))

    @property
    def parts(self) -> tuple[Columns, ...]:
        """Return every subset of the columns of some table, each once, small ones first."""
        found = {part for table in self.tables for part in subsets(table)}
        return tuple(sorted(found, key=lambda part: (len(part), part)))

    @property
    def largest(self) -> tuple[Columns, ...]:
        """Return the tables whose columns are not all in another table."""
        sets = [set(table) for table in self.tables]
        return tuple(
            table for table in self.tables if not any(set(table) < other for other in sets)
        )

    @property
    def chain(self) -> tuple[Columns, ...]:
        """Return tables from the total to all columns, each with the columns of the one before it.

        Each table of the chain is rounded by itself; the others are sums of rounded numbers.
        Rounding harms tables of many cells most, so larger tables are chosen first.
        """
        chain: list[Columns] = [self.every]
        for table in sorted(self.tables, key=lambda table: (-self.cells(table), table)):
            if set(table) < set(chain[-1]):
                chain.append(table)
        if chain[-1] != ():
            chain.append(())
        return tuple(reversed(chain))

    def variance(self, table: Columns, precisions: dict[Columns, Floats]) -> Floats:
        """Return, for each place, the variance of a cell of a table, from the precisions of its
        parts.
        """
        total = np.zeros(())
        for part in subsets(table):
            precision = precisions[part]
            centered = math.prod(1 - 1 / size for size in self.shape(part))
            spread = self.cells(table) / self.cells(part)
            variance = np.divide(
                1.0, precision, out=np.full(len(precision), UNKNOWN), where=precision > 1 / UNKNOWN
            )
            total = total + centered / spread**2 * variance
        return np.asarray(total)


def subsets(columns: Columns) -> Iterable[Columns]:
    """Return every subset, small ones first."""
    return (part for size in range(len(columns) + 1) for part in combinations(columns, size))


def margin(counts: Floats, table: Columns, part: Columns) -> Floats:
    """Return the sums of counts over the columns that `part` lacks. The first axis are places, the
    others are the table's columns.
    """
    gone = tuple(axis + 1 for axis, column in enumerate(table) if column not in part)
    return np.asarray(counts.sum(axis=gone)) if gone else counts


def center(counts: Floats) -> Floats:
    """Subtract from the counts their mean along every column."""
    for axis in range(1, counts.ndim):
        counts = counts - counts.mean(axis=axis, keepdims=True)
    return counts


def spread(values: Floats, part: Columns, table: Columns, sizes: Sequence[int]) -> Floats:
    """Divide a part's numbers evenly among the cells of a larger table. The result has a shape that
    can be added to that table.
    """
    shape = [len(values), *(sizes[column] if column in part else 1 for column in table)]
    times = math.prod(sizes[column] for column in table if column not in part)
    return values.reshape(shape) / times
