"""Open the doors of one policy, and close them in order: refuse new questions, let running ones
end, then close all connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.curator import Curator
from discreet.errors import UsageError
from discreet.server import catalog
from discreet.server.auth import Gate
from discreet.server.doorway import Doorway
from discreet.server.limits import ServerLimits
from discreet.server.pgwire.listener import Listener
from discreet.server.pgwire.login import is_loopback
from discreet.server.tls import Tls
from discreet.server.users import UserFile

if TYPE_CHECKING:
    from discreet.server.http.listener import HttpListener

SWITCH = 0.0005  # seconds after which a busy thread lets others run; with Python's own 5 ms answers wait for floods
_log = logging.getLogger("discreet.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The address at which a door listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read host:port. Without a host, listen on this machine alone."""
        host, _, port = text.rpartition(":")
        if not port.isascii() or not port.isdigit() or int(port) > 65_535:
            raise UsageError(
                f"A door's address is written as :5433 or 0.0.0.0:5433, not as {text[:80]}."
            )
        return cls(host=host.strip("[]") or "127.0.0.1", port=int(port))

    def require_private(self, tls: Tls | None, *, proxied: bool = False) -> None:
        """Refuse to listen beyond this machine if there is no TLS, or if requests come from a
        proxy: others could claim to be the proxy.
        """
        if self.host == "localhost" or is_loopback(self.host):
            return
        if proxied:
            raise UsageError(
                f"Behind a proxy HTTP is open to this machine alone (--http :8080), not on {self.host}: "
                "anybody else could claim to be the proxy."
            )
        if tls is None:
            raise UsageError(
                f"Listening on {self.host} needs TLS, or passwords and answers pass in the open: give --certificate "
                "and --key, or --make-certificate. Without them the doors are open to this machine alone (:5433)."
            )

    @contextlib.contextmanager
    def opening(self, door: str) -> Iterator[None]:
        """Say in one sentence why nobody can listen here, and which option names another place."""
        try:
            yield
        except OSError as error:
            free = self.port + 1 if 1024 <= self.port < 65_535 else 8080
            another = f"Name another one, for example --{door} :{free}."
            if error.errno == errno.EADDRINUSE:
                why = f"Port {self.port} of {self.host} is taken by another program. {another}"
            elif error.errno == errno.EACCES:
                why = f"Your account may not listen on port {self.port}. {another}"
            else:
                why = f"Nobody can listen on {self.host}:{self.port}: {error.strerror or 'the name is unknown'}."
            raise UsageError(why) from None


@dataclass(slots=True, kw_only=True)
class Server:
    """The doors of one policy."""

    curator: Curator
    limits: ServerLimits = field(default_factory=ServerLimits)
    tls: Tls | None = None
    origins: Sequence[str] = ()  # hosts whose pages may send requests
    # True if a proxy on this machine does the TLS of HTTP, and says who sent a request
    proxied: bool = False
    door: Doorway = field(init=False)
    postgres: Listener | None = None
    http: HttpListener | None = None

    def __post_init__(self) -> None:
        gate = Gate(UserFile(self.curator.policy))
        self.door = Doorway(self.curator, gate, limits=self.limits)

    async def open_postgres(self, address: Address) -> tuple[str, int]:
        address.require_private(self.tls)
        nobody = catalog.CatalogSession(user="", database="")
        # the first statement fills the catalog's tables
        await asyncio.to_thread(self.door.catalog.describe, "SELECT 1", nobody)
        self.postgres = Listener(self.door, tls=self.tls)
        with address.opening("postgres"):
            found = await self.postgres.listen(address.host, address.port)
        _log.info(
            "listening", extra={"fields": {"door": "postgres", "host": found[0], "port": found[1]}}
        )
        return found

    async def open_http(self, address: Address) -> tuple[str, int]:
        address.require_private(self.tls, proxied=self.proxied)
        try:
            from discreet.server.http.application import application
            from discreet.server.http.listener import HttpListener
        except ModuleNotFoundError as error:
            raise UsageError(
                f"The HTTP door needs {error.name}: pip install 'discreet[server]'."
            ) from None
        app = application(
            self.door,
            secure=self.proxied or self.tls is not None,
            proxied=self.proxied,
            origins=self.origins,
        )
        self.http = HttpListener(
            self.door, app, tls=None if self.proxied else self.tls, proxied=self.proxied
        )
        with address.opening("http"):
            found = await self.http.listen(address.host, address.port)
        _log.info(
            "listening", extra={"fields": {"door": "http", "host": found[0], "port": found[1]}}
        )
        return found

    async def close(self) -> bool:
        """Close the doors; return True if all running questions were answered."""
        ended = await self.door.queue.stop(seconds=self.limits.stopping)
        if self.http is not None:
            await self.http.stop()
        if self.postgres is not None:
            await self.postgres.stop()
        _log.info("stopped", extra={"fields": {"in_time": ended}})
        return ended


async def serve(
    server: Server,
    opened: Callable[[str, str, int], None],
    *,
    postgres: Address | None,
    http: Address | None,
) -> bool:
    """Serve until SIGTERM or Ctrl-C. `opened` is called with the name and address of each door."""
    sys.setswitchinterval(SWITCH)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(
            NotImplementedError, ValueError, RuntimeError
        ):  # not the main thread
            loop.add_signal_handler(number, stop.set)
    found = []
    if http is not None:
        found.append(("http", *await server.open_http(http)))
    if postgres is not None:
        found.append(("postgres", *await server.open_postgres(postgres)))
    for each in found:  # only now, when all are open, so that every told address answers
        opened(*each)
    await stop.wait()
    return await server.close()
