"""Arrow columns from numpy arrays and Python values, and back, without pandas.

pyarrow's own conversions (`pa.array`, `pa.scalar`, `to_numpy`) import pandas at the first call,
where it is installed: a second and 60 MB in the middle of a question, between its charge and its
answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Context
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_EXACT = Context(prec=100)  # digits, of which an Arrow decimal has 38
_FLOATS = {"double": "float64", "float": "float32"}
_KINDS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


def array(values: Iterable[Any], kind: pa.DataType | None = None, *, mask: Any = None) -> pa.Array:
    """Return a column of numbers, texts, flags, decimals, dates or timestamps; NULL for None, and
    where `mask` is true.
    """
    if isinstance(values, np.ndarray) and values.dtype != object:
        return _pack(values, kind or _KINDS[type(values.dtype.type(0).item())], mask)
    items = list(values)
    missing = np.fromiter((each is None for each in items), dtype=bool, count=len(items))
    kind = kind or next((_KINDS.get(type(each)) for each in items if each is not None), pa.null())
    if kind is None or pa.types.is_null(kind):
        return pa.array(items)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(items, kind, missing)
    if pa.types.is_decimal(kind):
        return _decimals(items, kind, missing)
    numbers = np.array(
        [0 if each is None else _number(each, kind) for each in items], dtype=_dtype(kind)
    )
    return _pack(numbers, kind, missing)


def _decimals(items: list[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_]) -> pa.Array:
    wide = (0 if each is None else int(_EXACT.scaleb(each, kind.scale)) for each in items)
    content = b"".join(each.to_bytes(16, "little", signed=True) for each in wide)
    return pa.Array.from_buffers(kind, len(items), [_bits(~missing), pa.py_buffer(content)])


def _number(value: Any, kind: pa.DataType) -> Any:
    """Return a value as Arrow stores it: dates in days, timestamps in their unit since 1970,
    numbers and flags as they are.
    """
    if pa.types.is_date(kind):
        return (value - date(1970, 1, 1)).days
    if pa.types.is_timestamp(kind):
        unit = timedelta(microseconds=1) if kind.unit == "us" else timedelta(seconds=1)
        return (value - datetime(1970, 1, 1)) // unit
    return value


def scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """Return one value; NULL for None."""
    return pa.nulls(1, kind)[0] if value is None else array([value], kind)[0]


def numbers(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of integers, floats or flags as numpy holds it; a NULL among integers or
    flags is 0, among floats NaN.
    """
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(whole, pa.ChunkedArray):  # of no chunks
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.nulls(0, column.type)
    _, content = whole.buffers()
    first, last = whole.offset, whole.offset + len(whole)
    if pa.types.is_boolean(whole.type):
        bits = np.frombuffer(content or b"", dtype=np.uint8)
        found = np.unpackbits(bits, count=last, bitorder="little")[first:].astype(bool)
    else:
        found = np.frombuffer(content or b"", dtype=_dtype(whole.type))[first:last]
    if whole.null_count:
        found = np.where(
            numbers(whole.is_valid()),
            found,
            np.nan if found.dtype.kind == "f" else found.dtype.type(0),
        )
    return found


def _pack(values: npt.NDArray[Any], kind: pa.DataType, mask: Any) -> pa.Array:
    valid = None if mask is None else _bits(~np.asarray(mask))
    if pa.types.is_boolean(kind):
        return pa.Array.from_buffers(kind, len(values), [valid, _bits(values, always=True)])
    content = np.ascontiguousarray(values, dtype=_dtype(kind))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(content)])


def _texts(items: list[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_]) -> pa.Array:
    parts = [b"" if each is None else each.encode() for each in items]
    ends = np.cumsum([0, *map(len, parts)])
    wide = pa.types.is_large_string(kind)
    offsets = ends.astype(np.int64 if wide else np.int32)
    buffers = [_bits(~missing), pa.py_buffer(offsets), pa.py_buffer(b"".join(parts))]
    return pa.Array.from_buffers(kind, len(items), buffers)


def _bits(flags: npt.NDArray[Any], *, always: bool = False) -> pa.Buffer | None:
    """Return flags as Arrow holds them; None for validity where all is there."""
    if not always and flags.all():
        return None
    return pa.py_buffer(np.packbits(flags.astype(bool), bitorder="little"))


def _dtype(kind: pa.DataType) -> Any:
    """Return numpy's type for the numbers of a column."""
    if pa.types.is_date32(kind):
        return np.int32
    if pa.types.is_timestamp(kind):
        return np.int64
    return np.dtype(_FLOATS.get(str(kind), str(kind)))
