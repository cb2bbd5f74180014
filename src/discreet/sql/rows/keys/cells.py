"""Compute the places of groups in the grid of all keys: from a table of groups, and from the places of
several keys.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrow
from discreet.algebra import key_column

MOST_CELLS = 4_096  # the most groups that are listed one by one, if their places have gaps
MOST_TOGETHER = 300_000  # the most groups that several parts of the keys may make together


def crossed(
    parts: Sequence[Sequence[int]],
    cells_of_parts: Sequence[tuple[int, ...] | None],
    sizes: Sequence[int],
) -> tuple[int, ...] | None:
    """Return the places in the grid of all keys of all combinations of cells of the parts; None if
    they are too many.

    A part is some keys, by their indexes; None for its cells means all of its grid.
    """
    counts = []
    for part, cells in zip(parts, cells_of_parts, strict=True):
        grid = math.prod(sizes[each] for each in part)
        counts.append(grid if cells is None else len(cells))
    if math.prod(counts) > MOST_TOGETHER or math.prod(sizes) >= 2**62:
        return None
    total = np.zeros(1, dtype=np.int64)
    for part, cells, count in zip(parts, cells_of_parts, counts, strict=True):
        rest = np.arange(count, dtype=np.int64) if cells is None else np.array(cells)
        flat = np.zeros(count, dtype=np.int64)
        for index in reversed(part):
            flat += rest % sizes[index] * math.prod(sizes[index + 1 :])
            rest = rest // sizes[index]
        total = np.add.outer(total, flat).ravel()
    return _few(np.sort(total))


def _few(cells: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[int, ...] | None:
    """Return the places; None if they are too many to list and have gaps."""
    without_gaps = int(cells[-1] - cells[0]) + 1 == len(cells)
    if without_gaps or len(cells) <= MOST_CELLS:
        return tuple(cells.tolist())
    return None


def in_grid(groups: pa.Table, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """Return the places in the grid of a table of groups; None if it is all of them, none, or too
    many to list.
    """
    names = [key_column(index) for index in range(len(sizes))]
    keys = groups.select(names).drop_null()
    flat = np.zeros(keys.num_rows, dtype=np.int64)
    inside = np.ones(keys.num_rows, dtype=bool)
    for column, size in zip(keys.columns, sizes, strict=True):
        places = arrow.numbers(column.cast(pa.int64())).astype(np.int64)
        flat = flat * size + places
        inside &= (places >= 0) & (places < size)
    cells = np.unique(flat[inside])
    if not 0 < len(cells) < math.prod(sizes):
        return None
    return _few(cells)
