"""Convert numpy arrays and Python values to Arrow columns and back, without pandas.

pyarrow's own conversions (`pa.array`, `pa.scalar`, `to_numpy`) import pandas at their first call if
it is installed. That costs a second and 60 MB, between a question's charge and its answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Context
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_EXACT = Context(prec=100)  # more digits than the 38 of an Arrow decimal
_FLOATS = {"double": "float64", "float": "float32"}
_KINDS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


def array(values: Iterable[Any], kind: pa.DataType | None = None, *, mask: Any = None) -> pa.Array:
    """Return a column of numbers, texts, flags, decimals, dates or timestamps.

    A cell is NULL if its value is None or `mask` is true there.
    """
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _pack(values, kind or _KINDS[type(values.dtype.type(0).item())], mask)
    items = list(values)
    missing = np.fromiter((item is None for item in items), dtype=bool, count=len(items))
    if kind is None:
        first = next((item for item in items if item is not None), None)
        kind = _KINDS.get(type(first))
    if kind is None or pa.types.is_null(kind):
        return pa.array(items)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(items, kind, missing)
    if pa.types.is_decimal(kind):
        return _decimals(items, kind, missing)
    numbers = [0 if item is None else _number(item, kind) for item in items]
    return _pack(np.array(numbers, dtype=_dtype(kind)), kind, missing)


def _decimals(items: list[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_]) -> pa.Array:
    units = [0 if item is None else int(_EXACT.scaleb(item, kind.scale)) for item in items]
    content = b"".join(number.to_bytes(16, "little", signed=True) for number in units)
    return pa.Array.from_buffers(kind, len(items), [_bits(~missing), pa.py_buffer(content)])


def _number(value: Any, kind: pa.DataType) -> Any:
    """Return a value as Arrow stores it: a date as days, a timestamp as units since 1970."""
    if pa.types.is_date(kind):
        return (value - date(1970, 1, 1)).days
    if pa.types.is_timestamp(kind):
        unit = timedelta(microseconds=1) if kind.unit == "us" else timedelta(seconds=1)
        return (value - datetime(1970, 1, 1)) // unit
    return value


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return a value as an Arrow scalar; None becomes NULL."""
    return pa.nulls(1, kind)[0] if value is None else array([value], kind)[0]


def numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of integers, floats or flags as a numpy array.

    NULL becomes 0 or False, or NaN in a column of floats.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # it has no chunks
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, column.type)
    _, content = whole.buffers()
    first = whole.offset
    last = whole.offset + len(whole)
    if pa.types.is_boolean(whole.type):
        bits = np.frombuffer(content or b"", dtype=np.uint8)
        values = np.unpackbits(bits, count=last, bitorder="little")[first:].astype(bool)
    else:
        values = np.frombuffer(content or b"", dtype=_dtype(whole.type))[first:last]
    if whole.null_count:
        missing = np.nan if values.dtype.kind == "f" else values.dtype.type(0)
        values = np.where(numbers(whole.is_valid()), values, missing)
    return values


def _pack(values: npt.NDArray[Any], kind: pa.DataType, mask: Any) -> pa.Array:
    valid = None if mask is None else _bits(~np.asarray(mask))
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(values), [valid, _bits(values, always=True)])
    content = np.ascontiguousarray(values, dtype=_dtype(kind))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(content)])


def _texts(items: list[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_]) -> pa.Array:
    parts = [b"" if item is None else item.encode() for item in items]
    ends = np.cumsum([0, *map(len, parts)])
    wide = pa.types.is_large_string(kind)
    offsets = ends.astype(np.int64 if wide else np.int32)
    buffers = [_bits(~missing), pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(items), buffers)


def _bits(flags: npt.NDArray[Any], *, always: bool = False) -> pa.Buffer | None:
    """Return flags as an Arrow bitmap; None if all are true, unless `always` is set."""
    if not always and flags.all():
        return None
    return pa.py_buffer(np.packbits(flags.astype(bool), bitorder="little"))


def _dtype(kind: pa.DataType) -> Any:
    """Return the numpy type that holds a column's values."""
    if pa.types.is_date32(kind):
        return np.int32
    if pa.types.is_timestamp(kind):
        return np.int64
    return np.dtype(_FLOATS.get(str(kind), str(kind)))
