"""Guard every request: its size and speed, headers, the deadline, counts; and report failures."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from discreet.server.doorway import Doorway
from discreet.server.http.faults import Refusal, refusal_of
from discreet.server.pgwire.faults import INTERNAL

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# times the limit that is read of a request that is too large: who is cut off earlier reads no reply
DRAINED = 8
PART = 1 << 18  # bytes of a body that are sent at a time
HEALTH = "/api/v1/health"  # may be asked for by whoever looks after the server's machine
MOST_ADDRESS = 64  # letters
FAILED = "The server could not do this. The curator's log has the details."


class Guard:
    """An ASGI app around another one. It reads each request, and hands over what it has read."""

    def __init__(self, app: App, door: Doorway, *, secure: bool, proxied: bool = False) -> None:
        """With `proxied`, a proxy on this machine sends all requests, and is trusted to say who
        sent them, and over TLS.
        """
        self._app = app
        self._door = door
        self._proxied = proxied
        own = HEADERS | ({"Strict-Transport-Security": "max-age=31536000"} if secure else {})
        self._headers = [(name.lower().encode(), value.encode()) for name, value in own.items()]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        began = time.monotonic()
        started = False

        async def leave(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                await self._door.hold(began)  # Privacy: S13, see `hold`
                message["headers"] = [*self._with_own(message["headers"])]
                self._door.metrics.count("http_requests", f"{message['status'] // 100}xx")
            await self._send_in_parts(scope, message, send)

        try:
            if self._proxied:
                _believe_proxy(scope)
            body = await self._body(scope, receive)
            await self._app(scope, _replay(body, receive), leave)
        except Exception as error:
            if isinstance(error, ConnectionResetError) or scope.get("state", {}).get("told"):
                return
            refusal = self.refusal(error)
            if not started:
                await _tell(refusal, leave)

    def refusal(self, error: Exception) -> Refusal:
        """Return the reply to an error. Failures of our own are logged, with their type and
        place.
        """
        found = refusal_of(error)
        if found is None:
            self._door.broke(error)
            found = Refusal(500, "internal", FAILED, code=INTERNAL)
        self._door.metrics.count("http_errors", found.kind)
        return found

    def _with_own(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        known = {name for name, _ in headers}
        cache = [] if b"cache-control" in known else [(b"cache-control", b"no-store")]
        return [
            *headers,
            *((name, value) for name, value in self._headers if name not in known),
            *cache,
        ]

    async def _body(self, scope: MutableMapping[str, Any], receive: Receive) -> bytes:
        """Read the request's body, within the limits of size and time for a client's message."""
        limits = self._door.limits
        found = bytearray()
        size = 0
        large = Refusal(
            413, "large", f"A request has at most {limits.message:,} bytes.", code="54000"
        )
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > DRAINED * limits.message:
            raise large
        try:
            async with asyncio.timeout(limits.login):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ConnectionResetError
                    size += len(message.get("body", b""))
                    if size <= limits.message:
                        found += message.get("body", b"")
                    elif size > DRAINED * limits.message:
                        raise large
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            headers = {"Connection": "close"}
            raise Refusal(
                408, "slow", "The request came too slowly.", code="57P05", headers=headers
            ) from None
        if size > limits.message:
            raise large
        return bytes(found)

    async def _send_in_parts(
        self, scope: MutableMapping[str, Any], message: Message, send: Send
    ) -> None:
        """Send a message. Send a large body in parts, so that it does not fill buffers while the
        client does not read.
        """
        body = message.get("body", b"")
        if len(body) <= PART:
            await self._send(scope, message, send)
            return
        with self._door.room(len(body)):
            for start in range(0, len(body), PART):
                more = start + PART < len(body) or message.get("more_body", False)
                part = {
                    "type": message["type"],
                    "body": body[start : start + PART],
                    "more_body": more,
                }
                await self._send(scope, part, send)

    async def _send(self, scope: MutableMapping[str, Any], message: Message, send: Send) -> None:
        """Send a part; give up on a client that reads nothing for long."""
        try:
            async with asyncio.timeout(self._door.limits.sending):
                await send(message)
        except TimeoutError:
            abort = scope.get("state", {}).get("abort")
            if abort is not None:
                abort()
            raise ConnectionResetError from None


def _believe_proxy(scope: MutableMapping[str, Any]) -> None:
    """Take the sender's address from the proxy's headers; refuse a request that came to the proxy
    without TLS.
    """
    said = {
        name: [
            part.strip()
            for key, value in scope["headers"]
            if key == name
            for part in value.decode("latin-1").split(",")
        ]
        for name in (b"x-forwarded-proto", b"x-forwarded-for")
    }
    ways, senders = said.values()
    if scope["path"] != HEALTH and (not ways or any(way.lower() != "https" for way in ways)):
        hint = "Open its https address. The proxy must send X-Forwarded-Proto: https."
        raise Refusal(403, "denied", "This server is reached over https alone.", hint, code="42501")
    if senders:
        scope["client"] = (senders[-1][:MOST_ADDRESS], 0)  # the last one is the proxy's own word


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand over the body that was read, and after it the next message: that the client is gone."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _tell(refusal: Refusal, send: Send) -> None:
    body = json.dumps(refusal.as_json(), ensure_ascii=False).encode()
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **refusal.headers,
    }
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})
