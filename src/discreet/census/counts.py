"""Counts of people by place and cell, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.census.grid import Columns, Flags, Grid, Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """The number of people in each cell of each place, sorted by place, then cell. A cell is a
    combination of values of all columns; cells with nobody are left out.
    """

    place: Integers
    cell: Integers
    count: Integers

    @classmethod
    def joined(cls, parts: Sequence[Counts]) -> Counts:
        """Return the counts of several parts together."""
        place = np.concatenate([part.place for part in parts])
        cell = np.concatenate([part.cell for part in parts])
        count = np.concatenate([part.count for part in parts])
        order = np.lexsort((cell, place))
        return cls(place=place[order], cell=cell[order], count=count[order])

    def kept(self, which: Flags) -> Counts:
        return Counts(place=self.place[which], cell=self.cell[which], count=self.count[which])

    def between(self, first: int, last: int) -> Counts:
        """Return the counts of the places from `first` up to, but not including, `last`. Their
        places are numbered from 0.
        """
        inside = slice(*np.searchsorted(self.place, [first, last]))
        return Counts(
            place=self.place[inside] - first, cell=self.cell[inside], count=self.count[inside]
        )

    def table(self, grid: Grid, columns: Columns, places: int) -> Integers:
        """Return one table of counts, with all its cells, for each place."""
        cells = project(self.cell, grid, columns)
        size = grid.cells(columns)
        counts = np.bincount(self.place * size + cells, weights=self.count, minlength=places * size)
        return np.rint(counts).astype(np.int64).reshape(places, *grid.shape(columns))


def project(cell: Integers, grid: Grid, columns: Columns) -> Integers:
    """Return, for each cell of all columns, the cell of a table that contains it."""
    found = np.zeros_like(cell)
    strides = np.cumprod([1, *grid.sizes[:0:-1]])[::-1]
    for column in columns:
        found = found * grid.sizes[column] + cell // strides[column] % grid.sizes[column]
    return found
