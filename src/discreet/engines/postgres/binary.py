"""Rows in the binary form of COPY ... FROM STDIN: made of Arrow's columns, many rows at a time.

The server takes it in about half the time of CSV. A row is its number of fields, and each field
its length, -1 for NULL, before its bytes.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.engines.postgres.server import Link

Field = Callable[["pa.Array"], "list[pa.Array]"]  # a column's fields, in pieces that follow
_BEGIN = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_END = b"\xff\xff"
_PIECE = 1 << 20  # bytes that are handed over at a time
_WAKE = 1.0  # seconds after which whoever waits for the server looks whether it was interrupted
_DAYS, _MICROS = 10_957, 946_684_800_000_000  # from 1970 to 2000, where Postgres begins to count
_DIGITS = 44  # of a numeric: the 39 of DuckDB's largest, and up to three zeros behind its point
_NEGATIVE = 0x4000
_PLACES = np.array([1_000, 100, 10, 1], np.uint16)


def send(connection: Link, statement: str, batches: Iterable[bytes | memoryview]) -> int:
    """Copy rows to the server; return how many arrived."""
    from psycopg import Error
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    wire = connection.pgconn
    begun = wire.exec_(statement.encode())
    if begun.status != ExecStatus.COPY_IN:
        raise error_from_result(begun)
    try:
        for batch in chain((_BEGIN,), batches, (_END,)):
            _put(wire, memoryview(batch))
    except BaseException:
        with suppress(Error):  # the server may be gone, too
            _ended(wire, b"what is copied ended before its end")
        raise
    ended = _ended(wire, None)
    if ended.status != ExecStatus.COMMAND_OK:
        raise error_from_result(ended)
    return int(ended.command_tuples or 0)


def _ended(wire: Any, error: bytes | None) -> Any:
    """End a copy, with an error or without; return what the server says of it."""
    while not wire.put_copy_end(error):
        _wait(wire)
    while wire.flush():
        _wait(wire)
    said = None
    while True:
        while wire.is_busy():
            select.select([wire.socket], [], [], _WAKE)
            wire.consume_input()
        result = wire.get_result()
        if result is None:
            return said
        said = result


def _put(wire: Any, data: memoryview) -> None:
    """Hand over bytes, and wait until the server has taken them.

    Psycopg's own way of sending takes four times as long as all else that we do for a row.
    """
    for first in range(0, len(data), _PIECE):
        while not wire.put_copy_data(data[first : first + _PIECE]):
            _wait(wire)
        while wire.flush():
            _wait(wire)


def _wait(wire: Any) -> None:
    readable, _, _ = select.select([wire.socket], [wire.socket], [], _WAKE)
    if readable:
        wire.consume_input()


def encode(batch: pa.RecordBatch, fields: Sequence[Field]) -> memoryview:
    """Return a batch's rows as the server reads them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = pa.scalar(len(fields).to_bytes(2, "big"), pa.large_binary())
    columns = zip(fields, batch.columns, strict=True)
    pieces = [piece for field, column in columns for piece in field(column)]
    nothing = pa.scalar(b"", pa.large_binary())
    whole = pc.binary_join_element_wise(pa.repeat(first, batch.num_rows), *pieces, nothing)
    _, offsets, data = whole.buffers()
    return memoryview(data)[: np.frombuffer(offsets, np.int64)[len(whole)]]


# --- fields ---------------------------------------------------------------------------------------


def text(column: pa.Array) -> list[pa.Array]:
    """Texts, and other bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    written = column.cast(pa.large_binary())
    lengths = pc.fill_null(pc.binary_length(written), -1).to_numpy().astype(">i4")
    return [_cut(lengths, 4 * np.arange(len(column) + 1)), written.fill_null(b"")]


def number(kind: str) -> Field:
    """Numbers of so many bytes, the most significant first."""

    def field(column: pa.Array) -> list[pa.Array]:
        import pyarrow as pa

        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        elif pa.types.is_time(column.type):
            column = column.cast(pa.int64())
        return [_behind_length(column.fill_null(0).to_numpy().astype(kind), column)]

    return field


def day(column: pa.Array) -> list[pa.Array]:
    """Days since 1970."""
    import pyarrow as pa

    days = column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
    return [_behind_length(_since_2000(days, _DAYS, np.iinfo(np.int32)).astype(">i4"), column)]


def moment(column: pa.Array) -> list[pa.Array]:
    """Microseconds since 1970, of moments with a zone or without."""
    import pyarrow as pa

    micros = column.cast(pa.int64()).fill_null(0).to_numpy()
    return [_behind_length(_since_2000(micros, _MICROS, np.iinfo(np.int64)).astype(">i8"), column)]


def numeric(scale: int) -> Field:
    """Numbers that are written with so many digits behind the point."""
    zeros = "0" * (-scale % 4)  # a numeric is made of groups of four digits
    groups = _DIGITS // 4
    parts = ("groups", "weight", "sign", "scale")
    kind = np.dtype([*((part, ">u2") for part in parts), ("digits", ">u2", groups)])
    weight = groups - 1 - (scale + len(zeros)) // 4

    def field(column: pa.Array) -> list[pa.Array]:
        import pyarrow.compute as pc

        written = column.fill_null("0")
        digits = pc.replace_substring(pc.utf8_ltrim(written, "-"), ".", "")
        padded = pc.utf8_lpad(pc.binary_join_element_wise(digits, zeros, ""), _DIGITS, "0")
        letters = np.frombuffer(padded.buffers()[2], np.uint8)[: _DIGITS * len(column)]
        values = np.empty(len(column), kind)
        values["groups"], values["weight"], values["scale"] = groups, weight % 2**16, scale
        values["sign"] = np.where(pc.starts_with(written, "-"), _NEGATIVE, 0)
        values["digits"] = (letters - ord("0")).reshape(-1, groups, 4) @ _PLACES
        return [_behind_length(values, column)]

    return field


def _since_2000(values: Any, epoch: int, limits: np.iinfo[Any]) -> Any:
    """Count from where Postgres begins. Its infinities are its first number and its last, those of
    DuckDB the last with either sign; what is too early for its type it refuses.
    """
    first = int(limits.min)
    last = int(limits.max)
    moved = np.where(values > first + epoch, values, first + 1 + epoch) - epoch
    return np.where(values == last, last, np.where(values == -last, first, moved))


def _behind_length(values: Any, column: pa.Array) -> pa.Array:
    """Each value behind the length of its bytes, and -1 alone for NULL."""
    size = values.dtype.itemsize
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    fields = np.empty(len(values), np.dtype([("size", ">i4"), ("value", values.dtype)]))
    fields["size"], fields["value"] = np.where(valid, size, -1), values
    if not column.null_count:
        return _cut(fields, (4 + size) * np.arange(len(values) + 1))
    ends = np.cumsum(np.where(valid, 4 + size, 4))
    kept = np.ones((len(values), 4 + size), bool)
    kept[:, 4:] = valid[:, np.newaxis]
    return _cut(fields.view(np.uint8).reshape(kept.shape)[kept], np.concatenate(([0], ends)))


def _cut(data: Any, offsets: Any) -> pa.Array:
    """Bytes, cut at these places."""
    import pyarrow as pa

    buffers = [
        None,
        pa.py_buffer(offsets.astype(np.int64)),
        pa.py_buffer(np.ascontiguousarray(data)),
    ]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
