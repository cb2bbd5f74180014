"""Arrow values in Postgres's types: OIDs, and each value as text and as binary.

A field of an Arrow schema may name its OID itself (metadata `oid`); the catalog does so for types
that Arrow has not.
"""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from discreet.server.pgwire.messages import ResultField

BOOL = 16
BYTEA = 17
CHAR = 18
NAME = 19
INT8 = 20
INT2 = 21
INT4 = 23
TEXT = 25
OID = 26
JSON = 114
FLOAT4 = 700
FLOAT8 = 701
UNKNOWN = 705
BPCHAR = 1042
VARCHAR = 1043
DATE = 1082
TIME = 1083
TIMESTAMP = 1114
TIMESTAMPTZ = 1184
INTERVAL = 1186
NUMERIC = 1700
UUID = 2950
ARRAYS = {
    BOOL: 1000, BYTEA: 1001, CHAR: 1002, NAME: 1003, INT2: 1005, INT4: 1007, TEXT: 1009, BPCHAR: 1014, VARCHAR: 1015,
    INT8: 1016, FLOAT4: 1021, FLOAT8: 1022, OID: 1028, TIMESTAMP: 1115, DATE: 1182, TIME: 1183, TIMESTAMPTZ: 1185,
    INTERVAL: 1187, NUMERIC: 1231, JSON: 199, UUID: 2951,
}  # fmt: skip
ELEMENTS = {array: element for element, array in ARRAYS.items()}
# int2vector and oidvector, of the catalog alone: lists that count from 0
VECTORS = {22: INT2, 30: OID}
SIZES = {
    BOOL: 1, CHAR: 1, NAME: 64, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIME: 8,
    TIMESTAMP: 8, TIMESTAMPTZ: 8, INTERVAL: 16, UUID: 16,
}  # fmt: skip
EPOCH = datetime.date(2000, 1, 1)
EPOCH_TIME = datetime.datetime(2000, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)

Encode = Callable[[Any], bytes]


# --- which type -----------------------------------------------------------------------------------


def oid_of(kind: pa.DataType) -> int:
    """Return the OID of an Arrow type; what has no counterpart is shown as JSON."""
    for fits, oid in _OIDS:
        if fits(kind):
            return oid
    if pa.types.is_dictionary(kind):
        return oid_of(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return ARRAYS.get(oid_of(kind.value_type), JSON)
    return JSON


_OIDS: tuple[tuple[Callable[[pa.DataType], bool], int], ...] = (
    (pa.types.is_boolean, BOOL),
    (pa.types.is_int64, INT8),
    (
        lambda kind: pa.types.is_int8(kind) or pa.types.is_int16(kind) or pa.types.is_uint8(kind),
        INT2,
    ),
    (lambda kind: pa.types.is_int32(kind) or pa.types.is_uint16(kind), INT4),
    (pa.types.is_uint32, INT8),
    (pa.types.is_uint64, NUMERIC),
    (pa.types.is_decimal, NUMERIC),
    (pa.types.is_float64, FLOAT8),
    (lambda kind: pa.types.is_float32(kind) or pa.types.is_float16(kind), FLOAT4),
    (
        lambda kind: (
            pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)
        ),
        TEXT,
    ),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is None, TIMESTAMP),
    (pa.types.is_timestamp, TIMESTAMPTZ),
    (lambda kind: pa.types.is_interval(kind) or pa.types.is_duration(kind), INTERVAL),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), BYTEA),
)


def field_of(field: pa.Field) -> ResultField:
    """Return an Arrow field as a column of a result."""
    declared = (field.metadata or {}).get(b"oid")
    oid = oid_of(field.type) if declared is None else int(declared)
    modifier = int((field.metadata or {}).get(b"typmod", -1))
    if (
        declared is None
        and pa.types.is_decimal(field.type)
        and 0 <= field.type.scale <= field.type.precision < 38
    ):
        modifier = (field.type.precision << 16 | field.type.scale) + 4
    return ResultField(name=field.name, oid=oid, size=SIZES.get(oid, -1), modifier=modifier)


def fields_of(schema: pa.Schema) -> tuple[ResultField, ...]:
    return tuple(map(field_of, schema))


# --- values ---------------------------------------------------------------------------------------


def encoder(oid: int, *, binary: bool) -> Encode:
    """Return the function that writes one value, which is never None, of a type."""
    if oid in ELEMENTS:
        return _array(ELEMENTS[oid], binary=binary, first=1)
    if oid in VECTORS:
        return _array(VECTORS[oid], binary=True, first=0) if binary else _vector
    if binary:
        return _BINARY.get(oid, lambda value: _text(value).encode())
    return _TEXTS.get(oid, lambda value: _text(value).encode())


def rows(
    table: pa.Table, fields: Sequence[ResultField], formats: Sequence[int]
) -> list[tuple[bytes | None, ...]]:
    """Return the rows of a table, each value as bytes in its column's format."""
    columns = [
        _column(table.column(index), field.oid, binary=bool(format))
        for index, (field, format) in enumerate(zip(fields, formats, strict=True))
    ]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _column(column: pa.ChunkedArray, oid: int, *, binary: bool) -> list[bytes | None]:
    encode = encoder(oid, binary=binary)
    return [None if value is None else encode(value) for value in column.to_pylist()]


def _text(value: Any) -> str:
    """Write a value whose type needs nothing special; lists and structs as JSON."""
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def _float(value: float) -> bytes:
    if value != value:
        return b"NaN"
    if value in (float("inf"), float("-inf")):
        return b"Infinity" if value > 0 else b"-Infinity"
    return repr(float(value)).removesuffix(".0").encode()


def _numeric(value: Any) -> bytes:
    return format(value, "f").encode() if isinstance(value, Decimal) else str(value).encode()


def _in_utc(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.UTC)


def _timestamp(value: datetime.datetime) -> bytes:
    written = _in_utc(value).replace(tzinfo=None).isoformat(sep=" ")
    if value.microsecond:
        written = written.rstrip("0")
    return (written + ("+00" if value.tzinfo is not None else "")).encode()


def _time(value: datetime.time) -> bytes:
    written = value.isoformat()
    return (written.rstrip("0") if value.microsecond else written).encode()


def _parts(value: Any) -> tuple[int, int, int]:
    """Return months, days and microseconds of an interval."""
    if isinstance(value, datetime.timedelta):
        return 0, value.days, value.seconds * 10**6 + value.microseconds
    return value.months, value.days, value.nanoseconds // 1000


def _interval(value: Any) -> bytes:
    """Write an interval as Postgres does: 1 year 3 mons -2 days +00:00:01.5."""
    months, days, microseconds = _parts(value)
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    words: list[str] = []
    negative = False
    for count, one, many in (
        (sign * years, "year", "years"),
        (sign * months, "mon", "mons"),
        (days, "day", "days"),
    ):
        if count:
            plus = "+" if negative and count > 0 else ""
            words.append(f"{plus}{count} {one if count == 1 else many}")
            negative = count < 0
    if microseconds or not words:
        seconds, fraction = divmod(abs(microseconds), 10**6)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        if microseconds < 0:
            mark = "-"
        elif negative:
            mark = "+"
        else:
            mark = ""
        words.append(mark + clock + (f".{fraction:06}".rstrip("0") if fraction else ""))
    return " ".join(words).encode()


_TEXTS: dict[int, Encode] = {
    BOOL: lambda value: b"t" if value else b"f",
    FLOAT4: _float,
    FLOAT8: _float,
    NUMERIC: _numeric,
    TIMESTAMP: _timestamp,
    TIMESTAMPTZ: _timestamp,
    TIME: _time,
    INTERVAL: _interval,
    BYTEA: lambda value: b"\\x" + bytes(value).hex().encode(),
}


def _binary_numeric(value: Any) -> bytes:
    """Write digits in base 10,000, with the place of the first and how many decimals are shown."""
    number = value if isinstance(value, Decimal) else Decimal(value)
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!HhHH", 0, 0, 0xC000, 0)  # NaN; infinities are shown so too
    scale = max(0, -exponent)
    shifted = int("".join(map(str, digits)) or "0") * 10 ** max(0, exponent)
    padding = -scale % 4
    whole = shifted * 10**padding
    groups: list[int] = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.append(group)
    weight = len(groups) - 1 - (scale + padding) // 4
    groups.reverse()
    while groups and groups[-1] == 0:
        groups.pop()
    head = struct.pack(
        "!HhHH", len(groups), weight if groups else 0, 0x4000 if sign and groups else 0, scale
    )
    return head + struct.pack(f"!{len(groups)}H", *groups)


def _microseconds(value: datetime.datetime) -> bytes:
    return struct.pack("!q", (_in_utc(value).replace(tzinfo=None) - EPOCH_TIME) // _MICROSECOND)


def _time_of_day(value: datetime.time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return struct.pack("!q", seconds * 10**6 + value.microsecond)


def _binary_interval(value: Any) -> bytes:
    months, days, microseconds = _parts(value)
    return struct.pack("!qii", microseconds, days, months)


_BINARY: dict[int, Encode] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    INT2: struct.Struct("!h").pack,
    INT4: struct.Struct("!i").pack,
    INT8: struct.Struct("!q").pack,
    OID: struct.Struct("!I").pack,
    FLOAT4: struct.Struct("!f").pack,
    FLOAT8: struct.Struct("!d").pack,
    NUMERIC: _binary_numeric,
    DATE: lambda value: struct.pack("!i", (value - EPOCH).days),
    TIME: _time_of_day,
    TIMESTAMP: _microseconds,
    TIMESTAMPTZ: _microseconds,
    INTERVAL: _binary_interval,
    BYTEA: bytes,
    UUID: lambda value: bytes.fromhex(str(value).replace("-", "")),
}


def _vector(value: Any) -> bytes:
    return " ".join(map(str, value)).encode() if isinstance(value, list) else str(value).encode()


def _array(element: int, *, binary: bool, first: int) -> Encode:
    encode = encoder(element, binary=binary)

    def as_binary(value: Any) -> bytes:
        items = [None if each is None else encode(each) for each in value]
        head = struct.pack("!iii", 1 if items else 0, int(None in items), element)
        if not items:
            return head
        parts = [
            b"\xff\xff\xff\xff" if each is None else len(each).to_bytes(4, "big") + each
            for each in items
        ]
        return head + struct.pack("!ii", len(items), first) + b"".join(parts)

    def as_text(value: Any) -> bytes:
        if isinstance(value, str):  # written already, by the catalog
            return value.encode()
        items = [b"NULL" if each is None else _quote(encode(each)) for each in value]
        return b"{" + b",".join(items) + b"}"

    return as_binary if binary else as_text


def _quote(item: bytes) -> bytes:
    plain = (
        item and item.upper() != b"NULL" and not any(mark in item for mark in b'{},"\\ \t\n\r\v\f')
    )
    return item if plain else b'"' + item.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
