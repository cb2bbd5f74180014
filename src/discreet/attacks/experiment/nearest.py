"""The nearest records of a release, in mixed columns: numbers by their share of the range, all else
equal or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.experiment.dice import Dice
from discreet.attacks.inputs.source import column
from discreet.errors import UsageError

BLOCK = 1 << 24  # distances held at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoding:
    """Several tables in one code: numbers scaled so that the whole range is 1, everything else as
    whole numbers.
    """

    names: tuple[str, ...]
    numeric: NDArray[np.bool_]
    rows: tuple[NDArray[np.float32], ...]

    def select(self, names: Sequence[str]) -> Encoding:
        missing = [name for name in names if name not in self.names]
        if missing or not names:
            raise UsageError(
                f"Choose among the columns {', '.join(self.names)}; {', '.join(missing) or 'none'} given."
            )
        at = [self.names.index(name) for name in names]
        return Encoding(
            names=tuple(names),
            numeric=self.numeric[at],
            rows=tuple(rows[:, at] for rows in self.rows),
        )


def encode(*tables: pa.Table) -> Encoding:
    """Encode tables, with the columns of the first."""
    names = tuple(tables[0].column_names)
    columns = [[column(table, name, "Each table") for table in tables] for name in names]
    kinds = np.array([all(_numeric(c.type) for c in same) for same in columns])
    coded = [
        _scale(same) if kind else _encode_categories(same)
        for same, kind in zip(columns, kinds, strict=True)
    ]
    rows = tuple(
        np.column_stack([c[i] for c in coded]).astype(np.float32) for i in range(len(tables))
    )
    return Encoding(names=names, numeric=kinds, rows=rows)


def _numeric(kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _scale(columns: list[pa.ChunkedArray]) -> list[NDArray[np.float64]]:
    """Scale numbers to a range of 1; NULL lies one whole range below, as far away as another
    category.
    """
    arrays = []
    for each in columns:
        plain = each.cast(pa.int32()) if pa.types.is_date32(each.type) else each
        plain = plain.cast(pa.int64()) if pa.types.is_timestamp(plain.type) else plain
        arrays.append(np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64))
    low = min(np.nanmin(a, initial=np.inf) for a in arrays)
    high = max(np.nanmax(a, initial=-np.inf) for a in arrays)
    span = high - low if high > low else 1.0
    return [np.nan_to_num((a - low) / span, nan=-1.0) for a in arrays]


def _encode_categories(columns: list[pa.ChunkedArray]) -> list[NDArray[np.float64]]:
    texts = [each.cast(pa.string()) for each in columns]
    both = pa.chunked_array(
        [chunk for each in texts for chunk in each.chunks], type=pa.string()
    ).combine_chunks()
    codes = both.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return list(np.split(codes.astype(np.float64), np.cumsum([len(each) for each in texts])[:-1]))


def nearest(
    targets: NDArray[np.float32],
    candidates: NDArray[np.float32],
    numeric: NDArray[np.bool_],
    *,
    k: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the k candidates nearest to each target, and their distances; the earlier candidate
    wins ties.
    """
    first = (
        np.arange(len(candidates))
        if k > 1
        else np.sort(np.unique(_alike(candidates), return_index=True)[1])
    )
    candidates = candidates[first]  # of equal ones, only the first can be the nearest
    found = np.empty((len(targets), min(k, len(candidates))), dtype=np.int64)
    distances = np.empty(found.shape, dtype=np.float32)
    board = _Board.of(targets, candidates, numeric)
    size = max(1, BLOCK // max(len(candidates), 1))
    for start in range(0, len(targets), size):
        block = slice(start, start + size)
        if k == 1:
            found[block, 0], distances[block, 0] = board.nearest(block)
        else:
            away = board.distances(block)
            found[block] = _smallest(away, k)
            distances[block] = np.take_along_axis(away, found[block], axis=1)
    return first[found], distances


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Board:
    """Candidates by their categories: those with the same ones lie together, `order[start[g] :
    start[g + 1]]`.

    Categories are one-hot, so that a product of matrices counts those that agree.
    """

    categories: int
    hot_targets: NDArray[np.float32]
    hot_groups: NDArray[np.float32]
    targets: NDArray[np.float32]
    candidates: NDArray[np.float32]
    order: NDArray[np.int64]
    start: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        targets: NDArray[np.float32],
        candidates: NDArray[np.float32],
        numeric: NDArray[np.bool_],
    ) -> _Board:
        group = _alike(candidates[:, ~numeric])
        order = np.argsort(group, kind="stable")
        start = np.searchsorted(group[order], np.arange(group.max(initial=-1) + 2))
        hot: list[list[NDArray[np.float32]]] = [[np.zeros((len(targets), 0), np.float32)], []]
        hot[1].append(np.zeros((len(start) - 1, 0), np.float32))
        for at in np.flatnonzero(~numeric):
            theirs = candidates[order[start[:-1]], at]
            values = np.intersect1d(targets[:, at], theirs)  # other values agree with nothing
            for side, column_of in enumerate((targets[:, at], theirs)):
                hot[side].append((column_of[:, None] == values).astype(np.float32))
        return cls(
            categories=int((~numeric).sum()),
            hot_targets=np.concatenate(hot[0], axis=1),
            hot_groups=np.concatenate(hot[1], axis=1),
            targets=targets[:, numeric],
            candidates=candidates[:, numeric],
            order=order,
            start=start,
        )

    def differing(self, block: slice) -> NDArray[np.float32]:
        """Return the number of categories in which each target differs from each group."""
        return np.asarray(
            self.categories - self.hot_targets[block] @ self.hot_groups.T, dtype=np.float32
        )

    def distances(self, block: slice) -> NDArray[np.float32]:
        """Return the distance of each target to each candidate."""
        group = np.empty(len(self.order), dtype=np.int64)
        group[self.order] = np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))
        away = self.differing(block)[:, group]
        for mine, theirs in zip(self.targets[block].T, self.candidates.T, strict=True):
            apart = np.subtract.outer(mine, theirs)
            away += np.abs(apart, out=apart)
        return away

    def nearest(self, block: slice) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Find the nearest; skip groups that differ in more categories than a good candidate's
        whole distance.
        """
        mine = self.targets[block]
        apart = self.differing(block)
        good = apart.argmin(axis=1)
        bound = apart[np.arange(len(mine)), good]
        bound = bound + np.abs(mine - self.candidates[self.order[self.start[good]]]).sum(axis=1)
        target, group = np.divmod(np.flatnonzero(apart <= bound[:, None]), apart.shape[1])
        sizes = (self.start[1:] - self.start[:-1])[group]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        row = np.repeat(target, sizes)
        candidate = self.order[np.repeat(self.start[group], sizes) + within]
        away = np.repeat(apart[target, group], sizes) + np.abs(
            mine[row] - self.candidates[candidate]
        ).sum(axis=1)
        least = np.minimum.reduceat(away, np.searchsorted(row, np.arange(len(mine))))
        ties = away == least[row]
        return np.minimum.reduceat(
            candidate[ties], np.searchsorted(row[ties], np.arange(len(mine)))
        ), least


def _alike(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return a number for each row, the same for equal rows."""
    if not rows.shape[1]:
        return np.zeros(len(rows), dtype=np.int64)
    whole = np.ascontiguousarray(rows)
    keys = whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).reshape(-1)
    return np.unique(keys, return_inverse=True)[1].reshape(-1)


def _smallest(away: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the k smallest of each row, one after the other."""
    away = away.copy()
    picked = np.empty((len(away), min(k, away.shape[1])), dtype=np.int64)
    for i in range(picked.shape[1]):
        picked[:, i] = away.argmin(axis=1)
        away[np.arange(len(away)), picked[:, i]] = np.inf
    return picked


def shuffle(rows: NDArray[np.float32], dice: Dice) -> NDArray[np.float32]:
    """Put rows into a random order, so that one lot breaks ties for everybody."""
    return rows[dice.order(len(rows))]
