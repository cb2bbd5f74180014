"""The nearest records of a release, in mixed columns: numbers by their share of the range, all else equal or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.attacks.dice import Dice
from discreet.attacks.source import column
from discreet.errors import UsageError

BLOCK = 1 << 24  # distances held at once


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Encoded:
    """Several tables in one code: numbers scaled so that the whole range is 1, everything else as whole numbers."""

    names: tuple[str, ...]
    numeric: NDArray[np.bool_]
    rows: tuple[NDArray[np.float32], ...]

    def select(self, names: Sequence[str]) -> Encoded:
        missing = [name for name in names if name not in self.names]
        if missing or not names:
            raise UsageError(f"Choose among the columns {', '.join(self.names)}; {', '.join(missing) or 'none'} given.")
        at = [self.names.index(name) for name in names]
        return Encoded(names=tuple(names), numeric=self.numeric[at], rows=tuple(rows[:, at] for rows in self.rows))


def encode(*tables: pa.Table) -> Encoded:
    """Tables with the columns of the first."""
    names = tuple(tables[0].column_names)
    columns = [[column(table, name, "Each table") for table in tables] for name in names]
    kinds = np.array([all(_numeric(c.type) for c in same) for same in columns])
    coded = [_scaled(same) if kind else _coded(same) for same, kind in zip(columns, kinds, strict=True)]
    rows = tuple(np.column_stack([c[i] for c in coded]).astype(np.float32) for i in range(len(tables)))
    return Encoded(names=names, numeric=kinds, rows=rows)


def _numeric(kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _scaled(columns: list[pa.ChunkedArray]) -> list[NDArray[np.float64]]:
    """NULL lies one whole range below the lowest, so as far from everything as a different category."""
    arrays = []
    for each in columns:
        plain = each.cast(pa.int32()) if pa.types.is_date32(each.type) else each
        plain = plain.cast(pa.int64()) if pa.types.is_timestamp(plain.type) else plain
        arrays.append(np.asarray(plain.cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64))
    low = min(np.nanmin(a, initial=np.inf) for a in arrays)
    high = max(np.nanmax(a, initial=-np.inf) for a in arrays)
    span = high - low if high > low else 1.0
    return [np.nan_to_num((a - low) / span, nan=-1.0) for a in arrays]


def _coded(columns: list[pa.ChunkedArray]) -> list[NDArray[np.float64]]:
    texts = [each.cast(pa.string()) for each in columns]
    both = pa.chunked_array([chunk for each in texts for chunk in each.chunks], type=pa.string()).combine_chunks()
    codes = both.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    return list(np.split(codes.astype(np.float64), np.cumsum([len(each) for each in texts])[:-1]))


def nearest(
    targets: NDArray[np.float32], candidates: NDArray[np.float32], numeric: NDArray[np.bool_], *, k: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions of, and distances to, the k candidates nearest to each target; ties go to the earlier candidate."""
    distinct, first = np.unique(candidates, axis=0, return_index=True) if k == 1 else (candidates, None)
    if first is not None:  # equal candidates count once; keep them in the order of their first appearance
        order = np.argsort(first)
        distinct, first = distinct[order], first[order]
    columns = [np.ascontiguousarray(column) for column in distinct.T]
    found = np.empty((len(targets), min(k, len(distinct))), dtype=np.int64)
    distances = np.empty(found.shape, dtype=np.float32)
    size = max(1, BLOCK // max(len(distinct), 1))
    for start in range(0, len(targets), size):
        block = targets[start : start + size]
        away = _distances(block, columns, numeric)
        if k == 1:
            near = away.argmin(axis=1)[:, None]
        else:
            near = np.argsort(away, axis=1, kind="stable")[:, :k] if k > 8 else _smallest(away, k)
        found[start : start + size] = near
        distances[start : start + size] = np.take_along_axis(away, near, axis=1)
    return (found if first is None else first[found]), distances


def _smallest(away: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """The k smallest of each row, one after the other."""
    away = away.copy()
    picked = np.empty((len(away), min(k, away.shape[1])), dtype=np.int64)
    for i in range(picked.shape[1]):
        picked[:, i] = away.argmin(axis=1)
        away[np.arange(len(away)), picked[:, i]] = np.inf
    return picked


def _distances(
    block: NDArray[np.float32], columns: list[NDArray[np.float32]], numeric: NDArray[np.bool_]
) -> NDArray[np.float32]:
    away = np.zeros((len(block), len(columns[0])), dtype=np.float32)
    for i, values in enumerate(columns):
        if numeric[i]:
            apart = np.subtract.outer(block[:, i], values)
            away += np.abs(apart, out=apart)
        else:
            away += np.not_equal.outer(block[:, i], values)
    return away


def shuffled(rows: NDArray[np.float32], dice: Dice) -> NDArray[np.float32]:
    """In a random order, so that ties are broken by lot, and for everybody by the same lot."""
    return rows[dice.order(len(rows))]
