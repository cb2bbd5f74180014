"""Log a user in on a new connection: TLS, the startup message, SCRAM; or handle a request to
cancel.

Before the login little is read: a startup message of at most 10 kB and login messages of at most 8
kB, within 20 seconds.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from discreet.server.auth import Attempt, Denied, Gate
from discreet.server.pgwire import messages
from discreet.server.pgwire.faults import Fatal
from discreet.server.pgwire.messages import Broken
from discreet.server.scram import PLAIN, PLUS, Malformed
from discreet.server.tls import Tls
from discreet.server.users import User

# seconds from the proof of a password to what is said of it, whether it was right or wrong
VERDICT = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """A user who logged in, with the parameters of the startup message."""

    user: User
    database: str
    settings: dict[str, str]


async def enter(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    gate: Gate,
    tls: Tls | None,
    address: str,
    cancel: Callable[[int, int], None],
    hold: Callable[[float], Awaitable[None]],
) -> Login | None:
    """Let somebody in, or carry out a request to cancel and return None. Raises Fatal, Broken or
    what streams raise.

    `hold` waits until an answer to what came at a moment may leave.
    """
    startup, encrypted = await _startup(reader, writer, tls, cancel)
    if startup is None:
        return None
    if tls is not None and not encrypted and not is_loopback(address):
        raise Fatal("28000", "This server speaks TLS only.", hint="Connect with sslmode=require.")
    unknown = [name for name in startup if name.startswith("_pq_.")]
    if startup.pop(" version") != "0" or unknown:
        writer.write(messages.negotiate(unknown))
    if startup.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise Fatal("0A000", "There is nothing to replicate here.")
    name = startup.pop("user", "")
    if not name:
        raise Fatal("28000", "The startup message names no user.")
    binding = tls.binding if tls is not None and encrypted else None
    user = await _scram(reader, writer, gate, name, address, binding, hold)
    database = startup.pop("database", name)
    settings = _options(startup.pop("options", ""))
    settings |= {
        key: value
        for key, value in startup.items()
        if not key.startswith("_pq_.") and key != "replication"
    }
    return Login(user=user, database=database, settings=settings)


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False


async def _startup(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    tls: Tls | None,
    cancel: Callable[[int, int], None],
) -> tuple[dict[str, str] | None, bool]:
    """Return the startup message, and whether the connection is encrypted by then."""
    encrypted = refused = False
    while True:
        code, data = await _first(reader)
        if code == messages.CANCEL_REQUEST:
            if len(data) != 8:
                raise Broken("a request to cancel of another length")
            cancel(*struct.unpack("!II", data))
            return None, encrypted
        if code in (messages.SSL_REQUEST, messages.GSS_REQUEST) and not data and not encrypted:
            if code == messages.SSL_REQUEST and tls is not None:
                await _encrypt(reader, writer, tls)
                encrypted = True
            elif refused and code == messages.SSL_REQUEST:
                raise Broken("TLS asked for again")
            else:
                refused = code == messages.SSL_REQUEST
                writer.write(b"N")
                await writer.drain()
            continue
        if code >> 16 != 3:
            raise Fatal("0A000", "This server speaks version 3 of the protocol.")
        return {" version": str(code & 0xFFFF), **messages.parse_startup(data)}, encrypted


async def _first(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    size, code = struct.unpack("!II", await reader.readexactly(8))
    if not 8 <= size <= messages.MOST_STARTUP:
        raise Broken("a startup message of a wrong length")
    return code, await reader.readexactly(size - 8)


async def _encrypt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tls: Tls) -> None:
    """Begin TLS. If bytes have come before it, an attacker in between may have sent them
    (CVE-2021-23214): end the connection.
    """
    transport = writer.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()  # from here on nothing can come in unencrypted
    early = b""
    try:
        async with asyncio.timeout(0):
            early = await reader.read(1)
    except TimeoutError:
        pass
    if early:
        raise Fatal("08P01", "Unencrypted bytes came before TLS began.")
    writer.write(b"S")
    await writer.start_tls(tls.context)


async def _scram(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    gate: Gate,
    name: str,
    address: str,
    binding: bytes | None,
    hold: Callable[[float], Awaitable[None]],
) -> User:
    writer.write(messages.sasl([PLUS, PLAIN] if binding is not None else [PLAIN]))
    mechanism, first = messages.parse_sasl_initial(await _response(reader))
    if mechanism != PLAIN and (mechanism != PLUS or binding is None):
        raise Fatal("28000", f"Log in by {PLAIN}.")
    chosen = binding if mechanism == PLUS else None
    try:
        attempt = gate.begin(
            name, address=address, binding=chosen, offers_binding=binding is not None
        )
        writer.write(messages.sasl_continue(attempt.first(first)))
        proof = await _response(reader)
        began = time.monotonic()
        try:
            verdict = _verdict(attempt, proof)
        finally:
            await _until(began + VERDICT)
            await hold(began)
    except Malformed as error:
        raise Broken(str(error)) from None
    except Denied as denied:
        raise _refuse(denied) from None
    said, outcome = verdict
    # here, whether it was right or wrong: on its way to the end a refusal would take longer
    writer.write(said)
    if isinstance(outcome, Fatal):
        outcome.told = True
        raise outcome
    return outcome


async def _until(moment: float) -> None:
    """Wait until a moment, to the microsecond. A sleep alone is not exact: it ends up to a
    millisecond late, which depends on when it began.
    """
    await asyncio.sleep(moment - 0.0015 - time.monotonic())
    while time.monotonic() < moment:
        await asyncio.sleep(0)


def _verdict(attempt: Attempt, proof: bytes) -> tuple[bytes, User | Fatal]:
    """Return the reply to a proof, and the user if the proof is right, or the refusal if it is
    wrong.
    """
    try:
        user, signature = attempt.final(proof)
    except Denied as denied:
        refused = _refuse(denied)
        return refused.pack(), refused
    return messages.sasl_final(signature) + messages.LOGGED_IN, user


def _refuse(denied: Denied) -> Fatal:
    return Fatal("28P01" if denied.wait is None else "53300", str(denied))


async def _response(reader: asyncio.StreamReader) -> bytes:
    kind, size = messages.HEADER.unpack(await reader.readexactly(5))
    if kind != b"p" or not 4 <= size <= messages.MOST_LOGIN:
        raise Broken("no answer to the login")
    return await reader.readexactly(size - 4)


def _options(text: str) -> dict[str, str]:
    """Read -c name=value and --name=value; a backslash keeps a space in a value."""
    words = list[str]()
    word = ""
    index = 0
    while index < len(text):
        letter = text[index]
        if letter == "\\" and index + 1 < len(text):
            index += 1
            word += text[index]
        elif letter.isspace():
            words = [*words, word] if word else words
            word = ""
        else:
            word += letter
        index += 1
    words = [*words, word] if word else words
    found: dict[str, str] = {}
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        else:
            word = word.removeprefix("--") if word.startswith("--") else word.removeprefix("-c")
        name, equals, value = word.partition("=")
        if not equals:
            raise Fatal("42601", "Startup options are written as -c name=value.")
        found[name.replace("-", "_")] = value
    return found
