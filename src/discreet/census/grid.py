"""The columns of a publication and its tables: cells, margins, and the parts that tables have in
common.

A table over columns t splits into parts, one for each subset A of t: the counts by A, centered
along every column of A. Parts of different subsets are orthogonal, and a table's noise is
independent in each of them. So what all tables say about one part is combined by a weighted mean,
whatever the tables have in common (`least_squares`).
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
UNKNOWN = 1e15  # the variance of what nothing was measured of
Columns = tuple[int, ...]  # places of columns, in rising order


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The sizes of all columns and the tables that are published of them."""

    sizes: tuple[int, ...]
    tables: tuple[Columns, ...]

    def shape(self, columns: Columns) -> tuple[int, ...]:
        return tuple(self.sizes[column] for column in columns)

    def cells(self, columns: Columns) -> int:
        return math.prod(self.shape(columns))

    @property
    def together(self) -> int:
        """The cells of all tables."""
        return sum(self.cells(table) for table in self.tables)

    @property
    def every(self) -> Columns:
        return tuple(range(len(self.sizes)))

    @property
    def parts(self) -> tuple[Columns, ...]:
        """Every subset of a table's columns, each once, small ones first."""
        found = {part for table in self.tables for part in subsets(table)}
        return tuple(sorted(found, key=lambda part: (len(part), part)))

    @property
    def largest(self) -> tuple[Columns, ...]:
        """The tables that lie in no other."""
        return tuple(
            one for one in self.tables if not any(set(one) < set(other) for other in self.tables)
        )

    @property
    def chain(self) -> tuple[Columns, ...]:
        """Return tables from the total to all columns, each of which holds the one before it.

        They are chosen from the largest down: tables of the chain are rounded by themselves, others
        as sums of rounded numbers, and rounding harms tables of many cells most.
        """
        found: list[Columns] = [self.every]
        for table in sorted(self.tables, key=lambda table: (-self.cells(table), table)):
            if set(table) < set(found[-1]):
                found.append(table)
        return tuple(found[::-1]) if found[-1] == () else ((), *found[::-1])

    def variance(self, table: Columns, precisions: dict[Columns, Floats]) -> Floats:
        """Return the variance of a table's cell at each place, given the precision of each of its
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
    """Sum counts to fewer columns. The first axis is that of places, the others are the table's
    columns.
    """
    gone = tuple(axis + 1 for axis, column in enumerate(table) if column not in part)
    return np.asarray(counts.sum(axis=gone)) if gone else counts


def center(counts: Floats) -> Floats:
    """Take the mean along every column off the counts."""
    for axis in range(1, counts.ndim):
        counts = counts - counts.mean(axis=axis, keepdims=True)
    return counts


def spread(values: Floats, part: Columns, table: Columns, sizes: Sequence[int]) -> Floats:
    """Share a part's numbers evenly among the cells of a table that holds it; shaped to be added to
    it.
    """
    shape = [len(values), *(sizes[column] if column in part else 1 for column in table)]
    return values.reshape(shape) / math.prod(
        sizes[column] for column in table if column not in part
    )
