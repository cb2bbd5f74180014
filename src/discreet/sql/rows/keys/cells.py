"""The places of groups in a grid of keys: those that a query found, and those of several keys
together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from discreet import arrow
from discreet.algebra import key_column

MOST_CELLS = 4_096  # groups that are listed one by one, where they do not follow one another
MOST_TOGETHER = 300_000  # groups that keys of several parts may make


def crossed(
    parts: Sequence[Sequence[int]], found: Sequence[tuple[int, ...] | None], sizes: Sequence[int]
) -> tuple[int, ...] | None:
    """The places in the grid of all keys, of those in each part; None where they are too many."""
    many = [
        math.prod(sizes[each] for each in part) if cells is None else len(cells)
        for part, cells in zip(parts, found, strict=True)
    ]
    if math.prod(many) > MOST_TOGETHER or math.prod(sizes) >= 2**62:
        return None
    total = np.zeros(1, dtype=np.int64)
    for part, cells, count in zip(parts, found, many, strict=True):
        rest = np.arange(count, dtype=np.int64) if cells is None else np.array(cells)
        flat = np.zeros(count, dtype=np.int64)
        for index in reversed(part):
            flat += rest % sizes[index] * math.prod(sizes[index + 1 :])
            rest = rest // sizes[index]
        total = np.add.outer(total, flat).ravel()
    return _few(np.sort(total))


def _few(cells: np.ndarray[Any, np.dtype[np.int64]]) -> tuple[int, ...] | None:
    """The places, unless they are too many to list and do not follow one another."""
    follow = int(cells[-1] - cells[0]) + 1 == len(cells)
    return tuple(cells.tolist()) if follow or len(cells) <= MOST_CELLS else None


def in_grid(found: pa.Table, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The places that came back, of those in the grid; None where that is all of them, or none, or
    too many to list.
    """
    known = found.select([key_column(index) for index in range(len(sizes))]).drop_null()
    flat, inside = np.zeros(known.num_rows, dtype=np.int64), np.ones(known.num_rows, dtype=bool)
    for column, size in zip(known.columns, sizes, strict=True):
        places = arrow.numbers(column.cast(pa.int64())).astype(np.int64)
        flat, inside = flat * size + places, inside & (places >= 0) & (places < size)
    cells = np.unique(flat[inside])
    if not 0 < len(cells) < math.prod(sizes):
        return None
    return _few(cells)
