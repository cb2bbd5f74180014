"""The row groups that local recoding has found no class for, laid out so that one look takes few
array operations.

A box's key is the sum of a hash of each column's node. Sums over neighboring columns are kept, so
that most looks add two or three arrays. Two boxes share a key once in 2^64 pairs; they would become
one class, coarser than it need be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from discreet.anonymity.recoding.lattice import RowGroups
from discreet.anonymity.source import Flags, Floats, Integers

Keys = npt.NDArray[np.uint64]

_COMBINATIONS = 64  # of levels of neighboring columns whose sums are kept
_KEPT_BYTES = 2**28
# below this share of row groups without a class, the others are left out of further looks
_FULL = 0.85


@dataclass(slots=True, kw_only=True)
class Remaining:
    """`rows`: where these row groups stand in the table. Those with a class count 0 until they are
    tidied away.

    Level vectors are called by their index among `vectors`.
    """

    table: RowGroups
    rows: Integers
    counts: Floats
    vectors: Integers
    hashes: Sequence[Sequence[Keys]]  # [column][level][value]
    parts: Sequence[slice]
    names: Sequence[Sequence[int]]  # [vector][part]: equal if their levels in that part are
    left: int
    sums: dict[tuple[int, int], tuple[Keys, Floats]] = field(default_factory=dict)

    @staticmethod
    def of(table: RowGroups, rows: Integers, vectors: Integers) -> Remaining:
        part = table.select(rows)
        levels = [height + 1 for height in table.heights]
        parts = _parts(levels)
        names = np.zeros((len(vectors), len(parts)), dtype=np.int64)
        for number, columns in enumerate(parts):
            for column in range(columns.start, columns.stop):
                names[:, number] = names[:, number] * levels[column] + vectors[:, column]
        return Remaining(
            table=part,
            rows=rows,
            counts=part.counts.astype(np.float64),
            vectors=vectors,
            hashes=[
                [_hash(column, nodes) for nodes in every]
                for column, every in enumerate(table.nodes)
            ],
            parts=parts,
            names=names.tolist(),
            left=len(rows),
        )

    def near(self, index: int, k: int) -> tuple[Integers, Keys]:
        """Return all row groups in boxes of at least k rows and a few more, and the key of each
        one's box.
        """
        keys = self._sum(index, 0)[0]
        for part in range(1, len(self.parts)):
            keys = keys + self._sum(index, part)[0]
        bits = max(10, (8 * len(keys)).bit_length())
        buckets = (keys >> np.uint64(64 - bits)).view(np.int64)
        # A bucket holds whole boxes, so one with fewer than k rows needs no closer look.
        enough = np.bincount(buckets, self.counts, 1 << bits) >= k
        (near,) = enough[buckets].nonzero()
        near = near[self.counts[near] > 0]
        return near, keys[near]

    def cost(self, index: int, which: Integers) -> Floats:
        """Return the cost of each of some row groups."""
        total = self._sum(index, 0)[1][which]
        for part in range(1, len(self.parts)):
            total += self._sum(index, part)[1][which]
        return total

    def crowded(self, near: Integers, keys: Keys, k: int) -> tuple[Integers, Integers]:
        """Return the near row groups in boxes of at least k rows, box by box, and the number of
        each one's box.
        """
        order = keys.argsort()
        near = near[order]
        keys = keys[order]
        boxes = np.zeros(len(near), dtype=np.int64)
        np.cumsum(keys[1:] != keys[:-1], out=boxes[1:])
        return choose_boxes(near, boxes, np.bincount(boxes, self.counts[near]) >= k)

    def _sum(self, index: int, part: int) -> tuple[Keys, Floats]:
        """Sum, for each row group, its nodes' hashes and its costs over some columns."""
        name = (part, self.names[index][part])
        found = self.sums.get(name)
        if found is None:
            keys = np.zeros(len(self.counts), dtype=np.uint64)
            costs = np.zeros(len(self.counts))
            for column in range(self.parts[part].start, self.parts[part].stop):
                codes = self.table.codes[column]
                level = self.vectors[index, column]
                keys += self.hashes[column][level][codes]
                costs += self.table.costs[column][level][codes]
            found = keys, costs
            if (len(self.sums) + 1) * 2 * keys.nbytes <= _KEPT_BYTES:
                self.sums[name] = found
        return found

    def take(self, which: Integers) -> None:
        """Mark row groups that found a class."""
        self.counts[which] = 0
        self.left -= len(which)
        if self.left < _FULL * len(self.counts):
            keep = np.flatnonzero(self.counts)
            self.table = self.table.select(keep)
            self.rows = self.rows[keep]
            self.counts = self.counts[keep]
            self.sums.clear()


def choose_boxes(live: Integers, boxes: Integers, chosen: Flags) -> tuple[Integers, Integers]:
    """Return the row groups in some of the boxes, and their boxes numbered anew."""
    if chosen.all():
        return live, boxes
    inside = chosen[boxes]
    return live[inside], (np.cumsum(chosen) - 1)[boxes[inside]]


def _hash(column: int, nodes: Integers) -> Keys:
    multiplier = (
        int.from_bytes(blake2b(bytes([column % 256, column // 256]), digest_size=8).digest(), "big")
        | 1
    )
    return (nodes + 1).astype(np.uint64) * np.uint64(multiplier)


def _parts(levels: Sequence[int]) -> list[slice]:
    """Return runs of neighboring columns that have few combinations of levels together."""
    parts = []
    start = 0
    combinations = 1
    for column, number in enumerate(levels):
        if combinations * number > _COMBINATIONS and column > start:
            parts.append(slice(start, column))
            start, combinations = column, 1
        combinations *= number
    return [*parts, slice(start, len(levels))]
