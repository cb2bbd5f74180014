"""Messages of the protocol: frontend messages from bytes, backend messages to bytes. Exact, and
nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PROTOCOL = 3 << 16
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102

MOST_STARTUP = 10_000  # bytes, as in Postgres
MOST_LOGIN = 8_192
HEADER = struct.Struct("!cI")


class Broken(Exception):
    """Bytes that are no message of the protocol: the connection ends."""


# --- what clients send ----------------------------------------------------------------------------


class Body:
    """Reads the fields of one message; what is missing or left over is Broken."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def take(self, size: int) -> bytes:
        start = self._place
        self._place = self._place + size
        if size < 0 or self._place > len(self._data):
            raise Broken("a message ends too early")
        return self._data[start : self._place]

    def byte(self) -> bytes:
        return self.take(1)

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def string(self) -> str:
        end = self._data.find(b"\0", self._place)
        if end < 0:
            raise Broken("a text without an end")
        try:
            text = self._data[self._place : end].decode()
        except UnicodeDecodeError:
            raise Broken("a text that is not UTF-8") from None
        self._place = end + 1
        return text

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._place)

    def end(self) -> None:
        if self._place != len(self._data):
            raise Broken("a message goes on after its end")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parse:
    name: str
    sql: str
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectName:
    """Describe or Close: of a statement (S) or a portal (P)."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute:
    portal: str
    rows: int  # 0: all


def parse_startup(data: bytes) -> dict[str, str]:
    """Return the parameters of a startup message, after the version."""
    body = Body(data)
    found = dict[str, str]()
    while True:
        name = body.string()
        if not name:
            body.end()
            return found
        found[name] = body.string()


def parse_parse(data: bytes) -> Parse:
    body = Body(data)
    name = body.string()
    sql = body.string()
    oids = tuple(body.int32() & 0xFFFFFFFF for _ in range(body.int16()))
    body.end()
    return Parse(name=name, sql=sql, oids=oids)


def parse_bind(data: bytes) -> Bind:
    body = Body(data)
    portal = body.string()
    statement = body.string()
    formats = _formats(body)
    values = tuple(_value(body) for _ in range(body.int16()))
    results = _formats(body)
    body.end()
    if len(formats) > 1 and len(formats) != len(values):
        raise Broken("another number of formats than of parameters")
    return Bind(portal=portal, statement=statement, formats=formats, values=values, results=results)


def _formats(body: Body) -> tuple[int, ...]:
    found = tuple(body.int16() for _ in range(body.int16()))
    if any(each not in (0, 1) for each in found):
        raise Broken("a format that is neither text nor binary")
    return found


def _value(body: Body) -> bytes | None:
    size = body.int32()
    return None if size == -1 else body.take(size)


def parse_named(data: bytes) -> ObjectName:
    body = Body(data)
    kind = body.byte().decode("latin-1")
    if kind not in ("S", "P"):
        raise Broken("neither a statement nor a portal")
    name = body.string()
    body.end()
    return ObjectName(kind=kind, name=name)


def parse_execute(data: bytes) -> Execute:
    body = Body(data)
    portal = body.string()
    rows = body.int32()
    body.end()
    return Execute(portal=portal, rows=max(0, rows))


def parse_query(data: bytes) -> str:
    body = Body(data)
    sql = body.string()
    body.end()
    return sql


def parse_sasl_initial(data: bytes) -> tuple[str, bytes]:
    """Return the mechanism and the first message of SASL."""
    body = Body(data)
    mechanism = body.string()
    size = body.int32()
    first = b"" if size == -1 else body.take(size)
    body.end()
    return mechanism, first


# --- what the server sends ------------------------------------------------------------------------


def message(kind: bytes, body: bytes = b"") -> bytes:
    return HEADER.pack(kind, len(body) + 4) + body


def text(value: str) -> bytes:
    """Return a text with its end; a NUL, which would end it too early, is left out."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


PARSED = message(b"1")
BOUND = message(b"2")
CLOSED = message(b"3")
NO_DATA = message(b"n")
SUSPENDED = message(b"s")
EMPTY = message(b"I")
COPIED = message(b"c")
LOGGED_IN = message(b"R", struct.pack("!I", 0))


def sasl(mechanisms: Sequence[str]) -> bytes:
    return message(b"R", struct.pack("!I", 10) + b"".join(map(text, mechanisms)) + b"\0")


def sasl_continue(data: bytes) -> bytes:
    return message(b"R", struct.pack("!I", 11) + data)


def sasl_final(data: bytes) -> bytes:
    return message(b"R", struct.pack("!I", 12) + data)


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", text(name) + text(value))


def key_data(process: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!II", process, secret))


def negotiate(options: Iterable[str]) -> bytes:
    """Say that 3.0 is the newest version here, and which options of the protocol are unknown."""
    unknown = tuple(options)
    return message(b"v", struct.pack("!II", PROTOCOL, len(unknown)) + b"".join(map(text, unknown)))


def ready(state: str) -> bytes:
    return message(b"Z", state.encode())


def complete(tag: str) -> bytes:
    return message(b"C", text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def report(kind: bytes, fields: Iterable[tuple[str, str]]) -> bytes:
    """Return an ErrorResponse (E) or a NoticeResponse (N)."""
    return message(kind, b"".join(name.encode() + text(value) for name, value in fields) + b"\0")


def row(values: Sequence[bytes | None]) -> bytes:
    parts = [
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
        for value in values
    ]
    return message(b"D", len(values).to_bytes(2, "big") + b"".join(parts))


def copy_begin(columns: int, *, binary: bool) -> bytes:
    return message(b"H", struct.pack(f"!bH{columns}H", binary, columns, *[int(binary)] * columns))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultField:
    """One column of a result. Its table's OID is 0: with a real one, tools ask the catalog after
    every answer.
    """

    name: str
    oid: int
    size: int
    modifier: int = -1

    def pack(self, format: int) -> bytes:
        return text(self.name) + struct.pack(
            "!IhIhih", 0, 0, self.oid, self.size, self.modifier, format
        )


def row_description(fields: Sequence[ResultField], formats: Sequence[int]) -> bytes:
    packed = (field.pack(format) for field, format in zip(fields, formats, strict=True))
    return message(b"T", struct.pack("!H", len(fields)) + b"".join(packed))
