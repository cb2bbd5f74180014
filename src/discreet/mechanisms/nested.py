"""Arrange several quantiles of one column as a tree of halves, and cut the rows at each node."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.shapes import Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileRun:
    """The quantiles from `first` up to, but not including, `last`, and the rows between the cuts at
    their neighbors.
    """

    first: int
    last: int
    q: Fraction
    """The wanted quantile among these rows."""
    alone: bool
    """Whether no other part is as deep."""
    below: QuantileRun | None
    above: QuantileRun | None

    @property
    def place(self) -> int:
        return (self.first + self.last) // 2

    @property
    def parted(self) -> bool:
        return self.below is not None or self.above is not None


@lru_cache(maxsize=256)
def root(quantiles: tuple[Fraction, ...]) -> QuantileRun:
    cuts = (Fraction(0), *quantiles, Fraction(1))
    widths: dict[int, int] = {}

    def measured(first: int, last: int, depth: int) -> None:
        if first < last:
            widths[depth] = widths.get(depth, 0) + 1
            middle = (first + last) // 2
            measured(first, middle, depth + 1)
            measured(middle + 1, last, depth + 1)

    def made(first: int, last: int, depth: int) -> QuantileRun | None:
        if first >= last:
            return None
        middle = (first + last) // 2
        low = cuts[first]
        high = cuts[last + 1]
        return QuantileRun(
            first=first,
            last=last,
            q=(cuts[middle + 1] - low) / (high - low),
            alone=widths[depth] == 1,
            below=made(first, middle, depth + 1),
            above=made(middle + 1, last, depth + 1),
        )

    measured(0, len(quantiles), 0)
    root = made(0, len(quantiles), 0)
    assert root is not None
    return root


def tree(quantiles: tuple[Fraction, ...]) -> tuple[tuple[QuantileRun, ...], ...]:
    """Return the parts of each depth."""
    depths, parts = [], [root(quantiles)]
    while parts:
        depths.append(tuple(parts))
        parts = [child for part in parts for child in (part.below, part.above) if child is not None]
    return tuple(depths)


def cut(pieces: Integers, place: int) -> tuple[Integers, Integers]:
    """Return the pieces before a place and those after it; half of the pieces at the place go to
    each side.
    """
    below = pieces[..., : place + 1].copy()
    above = pieces[..., place:].copy()
    half = pieces[..., place] // 2
    below[..., -1], above[..., 0] = half, half
    return below, above


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slices:
    """Groups whose part is between the same cuts: the pieces in each of its slices, with a row for
    each group.
    """

    start: int
    rows: NDArray[np.int64]
    pieces: Integers

    @property
    def width(self) -> int:
        return int(self.pieces.shape[1])


def join(blocks: list[Slices], ends: NDArray[np.int64], start: int, stop: int) -> Integers:
    """Join the rows from start to stop of all blocks, in order of width; fill up shorter rows with
    zeros.
    """
    first, last = np.searchsorted(ends, [start, stop - 1], side="right").tolist()
    before = int(ends[first]) - len(blocks[first].rows)
    if first == last:
        return np.asarray(blocks[first].pieces[start - before : stop - before])
    table = np.zeros((stop - start, blocks[last].width), dtype=blocks[first].pieces.dtype)
    for block in blocks[first : last + 1]:
        some = block.pieces[max(0, start - before) : stop - before]
        at = max(before, start) - start
        table[at : at + len(some), : block.width] = some
        before += len(block.rows)
    return table
