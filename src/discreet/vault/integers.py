"""Integer arrays that never overflow: 64 bits if the result certainly fits, else Python's integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from discreet import arrow
from discreet.algebra import key_column, number_column
from discreet.vault.exact import IntegerArray


def exact_product(factors: npt.NDArray[np.int64], values: IntegerArray) -> IntegerArray:
    """Return a matrix product of integers, in 64 bits if it cannot overflow."""
    reach = int(np.abs(factors).sum(axis=1).max(initial=0)) * largest(values)
    kind = np.int64 if reach < 2**63 and values.dtype != object else object
    return np.asarray(factors.astype(kind) @ values.astype(kind, copy=False))


def exact_sum(one: IntegerArray, other: IntegerArray) -> IntegerArray:
    """Return the sum of two arrays of integers, in 64 bits if it cannot overflow."""
    return np.asarray(exact_product(np.ones((1, 2), dtype=np.int64), np.stack([one, other]))[0])


def largest(values: IntegerArray) -> int:
    """Return the largest absolute value; 0 if there are no values."""
    if not values.size:
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def narrow(values: IntegerArray) -> IntegerArray:
    """Return the same integers in 64 bits, if all are below 2^62; else as they are."""
    if all(abs(value) < 2**62 for value in values):
        return values.astype(np.int64)
    return values


def compact(values: IntegerArray) -> IntegerArray:
    """Return the same integers in 16 or 32 bits, if all fit: there may be very many."""
    most = largest(values)
    if most < 2**15:
        return values.astype(np.int16)
    if most < 2**31:
        return values.astype(np.int32)
    return values


def integers(column: pa.ChunkedArray) -> IntegerArray:
    """Return a column as exact integers; NULL, which is the sum of no rows, becomes 0."""
    if column.type == pa.int64():
        return arrow.numbers(column)
    try:
        return arrow.numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        return np.array(
            [0 if value is None else int(value) for value in column.to_pylist()], dtype=object
        )


def combination(form: Sequence[int], sums: Mapping[int, IntegerArray]) -> IntegerArray:
    """Return an integer combination of sums, in 64 bits if it cannot overflow."""
    used = [(factor, sums[index]) for index, factor in enumerate(form) if factor]
    # Privacy: max(1, ...) counts a factor that passes 64 bits also if all sums are zero. Otherwise
    # such a factor would fail on empty data alone.
    bound = sum(abs(factor) * max(1, largest(values)) for factor, values in used)
    total: Any = 0
    for factor, values in used:
        wide = bound >= 2**62 or values.dtype == object
        total = total + (values.astype(object) if wide else values) * factor
    return np.asarray(total)


def cells_of(
    table: pa.Table, sizes: Sequence[int], forms: Sequence[Sequence[int]]
) -> list[IntegerArray]:
    """Return the exact values of the forms in every cell of the grid of keys."""
    cells = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    position = np.zeros(table.num_rows, dtype=np.int64)
    for index, size in enumerate(sizes):
        position = position * size + integers(table.column(key_column(index))).astype(np.int64)
    used = {index for form in forms for index, factor in enumerate(form) if factor}
    sums = {index: integers(table.column(number_column(index))) for index in used}
    result = []
    for form in forms:
        total = combination(form, sums)
        values = np.zeros(cells, dtype=object if total.dtype == object else np.int64)
        # Second defence: `add.at` also counts a key that stands twice; an assignment would not.
        np.add.at(values, position, total)
        result.append(values)
    return result
