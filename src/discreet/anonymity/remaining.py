"""The row groups that local recoding has found no class for, laid out so that one look takes few array operations.

A box's key is the sum of a hash of each column's node. Sums over neighboring columns are kept, so that most looks add
two or three arrays. Two boxes share a key once in 2^64 pairs; they would become one class, coarser than it need be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from discreet.anonymity.lattice import Coded, Vector
from discreet.anonymity.source import Flags, Floats, Integers

Keys = npt.NDArray[np.uint64]

_COMBINATIONS = 64  # of levels of neighboring columns whose sums are kept
_KEPT_BYTES = 2**28
_FULL = 0.85  # below this share of row groups without a class, the others are left out of further looks


@dataclass(slots=True, kw_only=True)
class Remaining:
    """`rows`: where these row groups stand in the table. Those with a class count 0 until they are tidied away."""

    table: Coded
    rows: Integers
    counts: Floats
    hashes: Sequence[Sequence[Keys]]  # [column][level][value]
    parts: Sequence[slice]
    left: int
    sums: dict[tuple[int, bytes], tuple[Keys, Floats]] = field(default_factory=dict)

    @staticmethod
    def of(table: Coded, rows: Integers) -> Remaining:
        part = table.select(rows)
        hashes = [[_hashed(column, nodes) for nodes in levels] for column, levels in enumerate(table.nodes)]
        counts = part.counts.astype(np.float64)
        parts = _parts([height + 1 for height in table.heights])
        return Remaining(table=part, rows=rows, counts=counts, hashes=hashes, parts=parts, left=len(rows))

    def crowded(self, vector: Integers, k: int) -> tuple[Integers, Integers, Floats]:
        """The row groups in boxes of at least k rows, box by box; the number of each one's box from 0; its cost."""
        keys, costs = self._sums(vector)
        bits = max(10, (4 * len(keys)).bit_length())
        buckets = (keys >> np.uint64(64 - bits)).view(np.int64)
        # A bucket holds whole boxes, so one with fewer than k rows needs no closer look.
        enough = np.bincount(buckets, self.counts, 1 << bits) >= k
        (near,) = enough[buckets].nonzero()
        near = near[self.counts[near] > 0]
        if not len(near):
            return near, near, costs[near]
        near = near[keys[near].argsort()]
        ordered = keys[near]
        boxes = np.zeros(len(near), dtype=np.int64)
        np.cumsum(ordered[1:] != ordered[:-1], out=boxes[1:])
        live, boxes = chosen_boxes(near, boxes, np.bincount(boxes, self.counts[near]) >= k)
        return live, boxes, costs[live]

    def _sums(self, vector: Integers) -> tuple[Keys, Floats]:
        """Of each row group the key of its box, and its cost."""
        total: tuple[Keys, Floats] | None = None
        for number, part in enumerate(self.parts):
            name = (number, vector[part].tobytes())
            found = self.sums.get(name)
            if found is None:
                found = self._sum(part, vector)
                if (len(self.sums) + 1) * 2 * found[0].nbytes <= _KEPT_BYTES:
                    self.sums[name] = found
            total = found if total is None else (total[0] + found[0], total[1] + found[1])
        return self._sum(slice(0, 0), vector) if total is None else total

    def _sum(self, part: slice, vector: Vector) -> tuple[Keys, Floats]:
        keys, costs = np.zeros(len(self.counts), dtype=np.uint64), np.zeros(len(self.counts))
        for column in range(part.start, part.stop):
            codes, level = self.table.codes[column], vector[column]
            keys += self.hashes[column][level][codes]
            costs += self.table.costs[column][level][codes]
        return keys, costs

    def take(self, which: Integers) -> None:
        """These have found a class."""
        self.counts[which] = 0
        self.left -= len(which)
        if self.left < _FULL * len(self.counts):
            keep = np.flatnonzero(self.counts)
            self.table, self.rows, self.counts = self.table.select(keep), self.rows[keep], self.counts[keep]
            self.sums.clear()


def chosen_boxes(live: Integers, boxes: Integers, chosen: Flags) -> tuple[Integers, Integers]:
    """The row groups in some of the boxes, and their boxes numbered anew."""
    if chosen.all():
        return live, boxes
    inside = chosen[boxes]
    return live[inside], (np.cumsum(chosen) - 1)[boxes[inside]]


def _hashed(column: int, nodes: Integers) -> Keys:
    multiplier = int.from_bytes(blake2b(bytes([column % 256, column // 256]), digest_size=8).digest(), "big") | 1
    return (nodes + 1).astype(np.uint64) * np.uint64(multiplier)


def _parts(levels: Sequence[int]) -> list[slice]:
    """Runs of neighboring columns that have few combinations of levels together."""
    parts, start, combinations = [], 0, 1
    for column, number in enumerate(levels):
        if combinations * number > _COMBINATIONS and column > start:
            parts.append(slice(start, column))
            start, combinations = column, 1
        combinations *= number
    return [*parts, slice(start, len(levels))]
