"""Connections of the HTTP door: uvicorn's protocol in our own event loop, with the limits of the
doors.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from discreet.server.doorway import Doorway
from discreet.server.limits import ServerLimits
from discreet.server.tls import Tls

MOST_HEADERS = 16 << 10  # bytes
KEPT = 75  # seconds that a connection stays open after an answer
LEAVING = 1.0  # seconds for connections to close by themselves when the server stops


class Connection(H11Protocol):
    """One connection. It ends if its first request does not come in time, or if too many are
    open.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        limits: ServerLimits,
        addresses: Counter[str] | None,
    ) -> None:
        """`addresses` counts the connections from each; None where all come from one proxy."""
        super().__init__(config=config, server_state=state, app_state={})
        self._limits = limits
        self._addresses = addresses
        self._waiting: asyncio.TimerHandle | None = None
        self._address = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state["abort"] = transport.abort
        self._address = "" if self.client is None else self.client[0]
        crowd = False
        if self._addresses is not None:
            self._addresses[self._address] += 1
            crowd = (
                self._addresses[self._address] > self._limits.connections_before_login_per_address
            )
        if crowd or len(self.connections) > self._limits.connections:
            transport.abort()
        self._wait()

    def _wait(self) -> None:
        """Wait for the head of a request, for a limited time."""
        self._waiting = self.loop.call_later(self._limits.login, self._give_up)

    def _give_up(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.cycle is not None and self.cycle.response_complete and self._waiting is None:
            self._wait()
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before and self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # where what was sent is not read
        self.loop.call_later(self._limits.sending, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        if self._addresses is not None:
            self._addresses[self._address] -= 1
            self._addresses += Counter()  # forgets who has none
        super().connection_lost(exc)


class HttpListener:
    """Listens for HTTP, and stops in order."""

    def __init__(
        self, door: Doorway, app: Callable[..., Any], *, tls: Tls | None, proxied: bool = False
    ) -> None:
        self._door = door
        self._tls = tls
        self._config = Config(
            app,
            loop="none",
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEPT,
            h11_max_incomplete_event_size=MOST_HEADERS,
        )
        self._state = ServerState()
        self._addresses = None if proxied else Counter[str]()
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        self._config.load()

        def connection() -> Connection:
            return Connection(self._config, self._state, self._door.limits, self._addresses)

        context = None if self._tls is None else self._tls.context
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(connection, host, port, ssl=context)
        found = self._server.sockets[0].getsockname()
        return str(found[0]), int(found[1])

    async def stop(self) -> None:
        """Accept no new connections, let answers that are being sent end, then close."""
        if self._server is None:
            return
        self._server.close()
        for each in list(self._state.connections):
            each.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING):
                while self._state.tasks:
                    await asyncio.wait(set(self._state.tasks))
        for each in list(self._state.connections):
            each.transport.abort()
