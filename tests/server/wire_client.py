"""A client of the Postgres protocol by hand: it sends what a test says, message by message, and
reads what comes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from server.running_server import PASSWORD

PATIENCE = 60.0


def pack(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def parse(sql: str, *, name: str = "", oids: Sequence[int] = ()) -> bytes:
    return pack(b"P", text(name) + text(sql) + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(
    values: Sequence[bytes | None] = (),
    *,
    portal: str = "",
    statement: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    packed = b"".join(
        struct.pack("!i", -1) if each is None else struct.pack("!i", len(each)) + each
        for each in values
    )
    return pack(
        b"B",
        text(portal)
        + text(statement)
        + struct.pack(f"!H{len(formats)}H", len(formats), *formats)
        + struct.pack("!H", len(values))
        + packed
        + struct.pack(f"!H{len(results)}H", len(results), *results),
    )


def describe(kind: str, name: str = "") -> bytes:
    return pack(b"D", kind.encode() + text(name))


def execute(portal: str = "", rows: int = 0) -> bytes:
    return pack(b"E", text(portal) + struct.pack("!i", rows))


def close(kind: str, name: str = "") -> bytes:
    return pack(b"C", kind.encode() + text(name))


SYNC, FLUSH, TERMINATE = pack(b"S"), pack(b"H"), pack(b"X")


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


@dataclass
class Reply:
    """Everything up to ReadyForQuery, or to the end of the connection."""

    kinds: str = ""
    columns: list[tuple[str, int, int]] = field(default_factory=list)  # name, OID, format
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    notices: list[dict[str, str]] = field(default_factory=list)
    parameters: list[int] = field(default_factory=list)
    copied: list[bytes] = field(default_factory=list)
    status: str = ""

    @property
    def code(self) -> str:
        return self.errors[0]["C"] if self.errors else ""

    def take(self, kind: bytes, body: bytes) -> None:
        self.kinds += kind.decode()
        match kind:
            case b"T":
                self.columns = _columns(body)
            case b"D":
                self.rows.append(_row(body))
            case b"C":
                self.tags.append(body[:-1].decode())
            case b"E":
                self.errors.append(fields(body))
            case b"N":
                self.notices.append(fields(body))
            case b"t":
                count = struct.unpack("!H", body[:2])[0]
                self.parameters = list(struct.unpack(f"!{count}I", body[2:]))
            case b"d":
                self.copied.append(body)
            case b"Z":
                self.status = body.decode()


def _columns(body: bytes) -> list[tuple[str, int, int]]:
    found, place = [], 2
    for _ in range(struct.unpack("!H", body[:2])[0]):
        end = body.index(b"\0", place)
        table, _, oid, _, _, format = struct.unpack("!IhIhih", body[end + 1 : end + 19])
        assert table == 0
        found.append((body[place:end].decode(), oid, format))
        place = end + 19
    return found


def _row(body: bytes) -> tuple[bytes | None, ...]:
    found: list[bytes | None] = []
    place = 2
    for _ in range(struct.unpack("!H", body[:2])[0]):
        size = struct.unpack("!i", body[place : place + 4])[0]
        place += 4
        found.append(None if size < 0 else body[place : place + size])
        place += max(0, size)
    assert place == len(body)
    return tuple(found)


@lru_cache
def _salted(password: str, salt: str, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(salt), iterations)


class Client:
    """A socket, logged in unless told otherwise."""

    def __init__(
        self,
        port: int,
        user: str = "alice",
        *,
        password: str = PASSWORD,
        login: bool = True,
        tls: ssl.SSLContext | None = None,
        **startup: str,
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.settings: dict[str, str] = {}
        self.key = (0, 0)
        if tls is not None:
            self.send(struct.pack("!II", 8, 80877103))
            assert self.socket.recv(1) == b"S"
            self.socket = tls.wrap_socket(self.socket)
        if login:
            self.reply = self.login(user, password, **startup)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def message(self) -> tuple[bytes, bytes]:
        kind = self.exactly(1)
        size = struct.unpack("!I", self.exactly(4))[0]
        return kind, self.exactly(size - 4)

    def startup(self, user: str, **parameters: str) -> None:
        given = {"user": user, "database": "town"} | parameters
        body = b"".join(text(name) + text(value) for name, value in given.items()) + b"\0"
        self.send(struct.pack("!II", len(body) + 8, 3 << 16) + body)

    def login(self, user: str, password: str, **parameters: str) -> Reply:
        """Log in; what comes back up to ReadyForQuery, or up to the end."""
        self.startup(user, **parameters)
        reply = Reply()
        try:
            kind, body = self.message()
            if kind == b"R":
                self._scram(password, reply)
            else:
                reply.take(kind, body)
            return self.read(reply)
        except EOFError:
            return reply

    def _scram(self, password: str, reply: Reply) -> None:
        bare = "n=,r=rOprNGfwEbeRWgbNEkqO"
        first = f"n,,{bare}".encode()
        self.send(pack(b"p", text("SCRAM-SHA-256") + struct.pack("!i", len(first)) + first))
        kind, body = self.message()
        if kind != b"R":
            reply.take(kind, body)
            return
        challenge = body[4:].decode()
        said = dict(part.split("=", 1) for part in challenge.split(","))
        salted = _salted(password, said["s"], int(said["i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={said['r']}"
        covered = f"{bare},{challenge},{without}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), covered, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        self.send(pack(b"p", f"{without},p={base64.b64encode(proof).decode()}".encode()))

    def read(self, reply: Reply | None = None) -> Reply:
        """Read up to ReadyForQuery, or to the end of the connection."""
        reply = Reply() if reply is None else reply
        while True:
            try:
                kind, body = self.message()
            except (EOFError, ConnectionError):
                return reply
            if kind == b"S":
                name, value = body[:-1].decode().split("\0")
                self.settings[name] = value
            elif kind == b"K":
                self.key = struct.unpack("!II", body)
            elif kind != b"R":
                reply.take(kind, body)
            if kind == b"Z":
                return reply

    def query(self, sql: str) -> Reply:
        self.send(pack(b"Q", text(sql)))
        return self.read()

    def extended(self, *parts: bytes) -> Reply:
        self.send(*parts, SYNC)
        return self.read()
