"""Integers that do not wrap: in 64 bits where nothing can overflow, and as Python's own integers
elsewhere.
"""

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
    """Return a matrix product of integers; in 64 bits only where that cannot overflow."""
    reach = int(np.abs(factors).sum(axis=1).max(initial=0)) * largest(values)
    kind = np.int64 if reach < 2**63 and values.dtype != object else object
    return np.asarray(factors.astype(kind) @ values.astype(kind, copy=False))


def exact_sum(one: IntegerArray, other: IntegerArray) -> IntegerArray:
    """Return the sum of two arrays of integers; in 64 bits only where that cannot overflow."""
    return np.asarray(exact_product(np.ones((1, 2), dtype=np.int64), np.stack([one, other]))[0])


def largest(values: IntegerArray) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def narrow(values: IntegerArray) -> IntegerArray:
    """Return Python's integers as 64-bit ones, where all of them fit with room to spare."""
    return values.astype(np.int64) if all(abs(value) < 2**62 for value in values) else values


def compact(values: IntegerArray) -> IntegerArray:
    """Return the same integers in 16 or 32 bits, where all of them fit: there may be very many."""
    most = largest(values)
    return values.astype(np.int16 if most < 2**15 else np.int32) if most < 2**31 else values


def integers(column: pa.ChunkedArray) -> IntegerArray:
    """Return a column of exact integers; NULL, the sum of no rows, is 0."""
    if column.type == pa.int64():
        return arrow.numbers(column)
    try:
        return arrow.numbers(column.cast(pa.int64()))
    except pa.ArrowInvalid:
        return np.array(
            [0 if value is None else int(value) for value in column.to_pylist()], dtype=object
        )


def combination(form: Sequence[int], sums: Mapping[int, IntegerArray]) -> IntegerArray:
    """Return an integer combination of sums; in 64 bits only where that cannot overflow."""
    used = [(factor, sums[index]) for index, factor in enumerate(form) if factor]
    # Privacy: a factor that does not fit counts even where all sums are zero, or only the data of
    # nobody would fail.
    bound = sum(abs(factor) * max(1, largest(values)) for factor, values in used)
    total: Any = 0
    for factor, values in used:
        total = (
            total
            + (values if bound < 2**62 and values.dtype != object else values.astype(object))
            * factor
        )
    return np.asarray(total)


def cells_of(
    table: pa.Table, sizes: Sequence[int], forms: Sequence[Sequence[int]]
) -> list[IntegerArray]:
    """Return the forms' values on the whole grid of keys, exact."""
    cells = int(np.prod(sizes, dtype=np.int64)) if sizes else 1
    position = np.zeros(table.num_rows, dtype=np.int64)
    for index, size in enumerate(sizes):
        position = position * size + integers(table.column(key_column(index))).astype(np.int64)
    used = {index for form in forms for index, factor in enumerate(form) if factor}
    sums = {index: integers(table.column(number_column(index))) for index in used}
    result = []
    for form in forms:
        values = np.zeros(cells, dtype=np.int64)
        total = combination(form, sums)
        if total.dtype == object:
            values = values.astype(object)
        # a second wall: a key that stood twice would leave one of its rows out
        np.add.at(values, position, total)
        result.append(values)
    return result
