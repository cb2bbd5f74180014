"""The Postgres door: takes connections, lets users in, and ends every connection properly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from collections import Counter

from discreet.errors import UsageError
from discreet.server import catalog
from discreet.server.doorway import Doorway
from discreet.server.fresh import fresh_bytes
from discreet.server.pgwire import login
from discreet.server.pgwire.faults import Fatal
from discreet.server.pgwire.login import Login
from discreet.server.pgwire.messages import Broken
from discreet.server.pgwire.running import Look
from discreet.server.pgwire.session import Session
from discreet.server.settings import Settings
from discreet.server.tls import Tls

_log = logging.getLogger("discreet.server.postgres")
_GONE = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, BrokenPipeError, TimeoutError)


class Listener:
    """All connections of the Postgres door."""

    def __init__(self, door: Doorway, *, tls: Tls | None) -> None:
        self._door = door
        self._tls = tls
        self._sessions: dict[int, tuple[int, Session]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._entering: Counter[str] = Counter()
        self._users: Counter[str] = Counter()
        self._last = 0
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begin to listen; return the address, with the port that was chosen where 0 was asked
        for.
        """
        self._server = await asyncio.start_server(self._accept, host, port)
        found = self._server.sockets[0].getsockname()
        return found[0], found[1]

    async def stop(self) -> None:
        """Take no more connections, and end those that are left."""
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._door.metrics.gauge("connections", len(self._tasks))
        peer = writer.get_extra_info("peername")
        address = str(peer[0]) if peer else ""
        try:
            await self._serve(reader, writer, address)
        except Fatal as fatal:
            self._door.metrics.count("fatal", fatal.code)
            await _farewell(writer, fatal)
        except Broken as broken:
            self._door.metrics.count("broken")
            _log.warning(
                "protocol broken", extra={"fields": {"address": address, "reason": str(broken)}}
            )
            await _farewell(writer, Fatal("08P01", f"The protocol was broken: {broken}."))
        except _GONE:
            self._door.metrics.count("lost")
        except asyncio.CancelledError:
            await _farewell(writer, Fatal("57P01", "The server stops."))
        except Exception as error:
            self._door.broke(error)
            await _farewell(writer, Fatal("XX000", "Something went wrong in the server."))
        finally:
            self._tasks.discard(task)
            self._door.metrics.gauge("connections", len(self._tasks))
            writer.close()

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        limits = self._door.limits
        if (
            len(self._tasks) > limits.connections
            or self._entering.total() >= limits.connections_before_login
            or self._entering[address] >= limits.connections_before_login_per_address
        ):
            raise Fatal("53300", "There are too many connections.", hint="Try again in a moment.")
        self._entering[address] += 1
        try:
            async with asyncio.timeout(limits.login):
                entered = await login.enter(
                    reader,
                    writer,
                    gate=self._door.gate,
                    tls=self._tls,
                    address=address,
                    cancel=self._cancel,
                    hold=self._door.hold,
                )
        finally:
            self._entering[address] -= 1
            self._entering += Counter()  # forgets who has none
        if entered is not None:
            await self._converse(entered, reader, writer)

    async def _converse(
        self, entered: Login, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        name = entered.user.name
        if self._users[name] >= self._door.limits.connections_per_user:
            raise Fatal("53300", "You have too many connections.", hint="Close some.")
        self._require_database(entered)
        self._last = self._last % 0x7FFFFFFF + 1
        number = self._last
        secret = int.from_bytes(fresh_bytes(4), "big")
        settings = self._settings(entered)
        session = Session(
            self._door,
            entered,
            reader,
            writer,
            number=number,
            settings=settings,
            look=self._look(entered, settings, number),
        )
        self._users[name] += 1
        self._sessions[number] = (secret, session)
        try:
            await session.greet(secret)
            await session.converse()
        finally:
            del self._sessions[number]
            self._users[name] -= 1

    def _look(self, entered: Login, settings: Settings, number: int) -> Look:
        name = entered.user.name
        database = self._door.curator.policy.path.stem
        loop = asyncio.get_running_loop()

        def cancel(other: int) -> bool:
            """Cancel what another session of the same user runs: pg_cancel_backend, called by a
            worker.
            """
            known = self._sessions.get(other)
            if known is None or known[1].user != name:
                return False
            loop.call_soon_threadsafe(known[1].cancel)
            return True

        seen = catalog.CatalogSession(
            user=name, database=database, settings=settings, pid=number, cancel=cancel
        )
        return Look(catalog=self._door.catalog, session=seen)

    def _require_database(self, entered: Login) -> None:
        own = self._door.curator.policy.path.stem
        if entered.database not in (own, entered.user.name, "postgres"):
            raise Fatal(
                "3D000", f"There is no database {entered.database[:63]}.", hint=f"Connect to {own}."
            )

    def _settings(self, entered: Login) -> Settings:
        """Return the session's settings: the policy's defaults for this user, then those of the
        startup message.
        """
        share = self._door.curator.policy.analysts.get(entered.user.analyst or "")
        own = {
            "session_authorization": entered.user.name,
            "ssl": "off" if self._tls is None else "on",
        }
        if share is not None and share.per_question is not None:
            own["discreet.epsilon"] = str(share.per_question)
        settings = Settings(own)
        try:
            for key, value in entered.settings.items():
                settings.begin(key, value)
        except UsageError as error:
            raise Fatal("22023", str(error)) from None
        return settings

    def _cancel(self, number: int, secret: int) -> None:
        """Cancel what a session runs, for who knows its secret."""
        known = self._sessions.get(number)
        if known is not None and known[0] == secret:
            self._door.metrics.count("cancelled")
            known[1].cancel()


async def _farewell(writer: asyncio.StreamWriter, fatal: Fatal) -> None:
    """Say why the connection ends, to whoever still listens."""
    with contextlib.suppress(*_GONE, RuntimeError):
        if not fatal.told:
            writer.write(fatal.pack())
        async with asyncio.timeout(1.0):
            await writer.drain()
