"""One connection of a logged-in user: read messages, run statements one by one, send results.

If a statement fails, the client gets an error, and the connection goes on. Bytes that are no
message end it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from discreet.server import queue
from discreet.server.auth import Denied
from discreet.server.doorway import Doorway, NoRoom
from discreet.server.pgwire import copying, messages, types
from discreet.server.pgwire.commands import Portal, State
from discreet.server.pgwire.faults import CROWDED, INTERNAL, Fatal, Fault, Notice
from discreet.server.pgwire.lexer import Statement, split
from discreet.server.pgwire.login import Login
from discreet.server.pgwire.messages import Broken, ResultField
from discreet.server.pgwire.parameters import decode
from discreet.server.pgwire.question import Asker, Result
from discreet.server.pgwire.running import CopyResult, Look, Runner, bind, only_one
from discreet.server.settings import SETTINGS, Settings

_CELLS = 2_000  # that are written at once
_SHORT = 4_096  # bytes that are read at once; longer texts and values are read on a worker
_FLUSH = 64 << 10  # bytes
_LOOK = 1.0  # seconds between looks whether the client is still there
_log = logging.getLogger("discreet.server.postgres")
_SECONDS = {"": 1e-3, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


class Session:
    """Speaks with one client."""

    def __init__(
        self,
        door: Doorway,
        login: Login,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        number: int,
        settings: Settings,
        look: Look,
    ) -> None:
        self.number = number
        self._door = door
        self._user = login.user
        self._reader = reader
        self._writer = writer
        self._out = bytearray()
        self._began: float | None = None  # when the first message came whose answer has not left
        self._stop: asyncio.Future[None] | None = None  # done when what runs is cancelled
        self._state = State(settings=settings)
        self._told = {key: settings[key] for key, setting in SETTINGS.items() if setting.reported}
        self._runner = Runner(
            state=self._state,
            asker=Asker(curator=door.curator, user=login.user, settings=settings),
            policy=door.curator.policy,
            look=look,
            most_held=door.limits.result,
            metrics=self._metrics,
            work=self._work,
        )

    @property
    def user(self) -> str:
        return self._user.name

    def cancel(self) -> None:
        """Stop waiting for the running statement. A charge stays, and its answer can be asked for
        again for free.
        """
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(None)

    # --- the conversation -------------------------------------------------------------------------

    async def greet(self, secret: int) -> None:
        for key, value in self._told.items():
            self._send(messages.parameter_status(SETTINGS[key].name, value))
        self._send(messages.key_data(self.number, secret) + messages.ready("I"))
        await self._flush()

    async def converse(self) -> None:
        """Answer messages until the client goes. Raises Fatal or Broken where the connection must
        end.
        """
        while True:
            kind, data = await self._message()
            if kind == b"X":
                return
            if kind == b"Q":
                await self._query(messages.parse_query(data))
            elif kind in _EXTENDED:
                if not await self._answer_extended(kind, data):
                    await self._skip()
            elif kind == b"S":
                await self._sync()
            elif kind == b"H":
                await self._flush()
            elif kind == b"F":
                self._report(
                    Fault("0A000", "Functions are not called directly here.", hint="Ask by SELECT.")
                )
                await self._sync()
            elif kind not in (b"d", b"c", b"f"):  # those are late words of a COPY
                raise Broken("an unknown message")

    async def _message(self) -> tuple[bytes, bytes]:
        limits = self._door.limits
        half = False
        try:
            async with asyncio.timeout(limits.idle) as until:
                kind, size = messages.HEADER.unpack(await self._reader.readexactly(5))
                half = True
                self._began = time.monotonic() if self._began is None else self._began
                if not 4 <= size <= limits.message:
                    raise Broken("a message that is too long, or too short")
                until.reschedule(asyncio.get_running_loop().time() + limits.sending)
                return kind, await self._reader.readexactly(size - 4)
        except TimeoutError:
            if half:
                raise Broken("a message that does not end") from None
            raise Fatal("57P05", "The connection was idle for too long.") from None

    async def _query(self, sql: str) -> None:
        """Run every statement of a text by the simple protocol, until one fails."""
        began = time.monotonic()
        try:
            self._require_user()
            statements = await self._split(sql)
            if not statements:
                self._send(messages.EMPTY)
            for statement in statements:
                made = await self._runner.run(statement)
                await self._send_all(made)
                await asyncio.sleep(0)  # others' messages come between
        except Fault as fault:
            self._fail(fault)
        self._is_done("simple", began)
        if self._state.status == "I":
            self._state.drop_portals()
        self._send(messages.ready(self._state.status))
        await self._flush()

    async def _split(self, sql: str) -> list[Statement]:
        """Read the statements of a text; a long one on a worker, so that nobody waits for it."""
        most = self._door.curator.policy.limits.statement
        if len(sql) > most:
            hint = "Ask less at once, or one statement a message."
            raise Fault(
                "54000",
                f"The text is longer than the {most} bytes that the policy allows.",
                hint=hint,
            )
        found: list[Statement] = (
            await self._work(partial(split, sql)) if len(sql) > _SHORT else split(sql)
        )
        return found

    async def _answer_extended(self, kind: bytes, data: bytes) -> bool:
        """Carry out one message of the extended protocol; False where it failed."""
        began = time.monotonic()
        try:
            self._require_user()
            await _EXTENDED[kind](self, data)
        except Fault as fault:
            self._fail(fault)
            return False
        finally:
            if kind == b"E":
                self._is_done("extended", began)
        if len(self._out) > _FLUSH:
            await self._flush()
        return True

    async def _skip(self) -> None:
        """Read on to the next Sync after an error."""
        while True:
            kind, data = await self._message()
            if kind == b"S":
                await self._sync()
                return
            if kind == b"X":
                raise ConnectionResetError
            if kind == b"H":
                await self._flush()
            del data

    async def _sync(self) -> None:
        if self._state.status == "I":
            self._state.drop_portals()
        self._send(messages.ready(self._state.status))
        await self._flush()

    async def _parse(self, data: bytes) -> None:
        parse = messages.parse_parse(data)
        if parse.name and parse.name in self._state.statements:
            raise Fault("42P05", f"There is a prepared statement {parse.name[:63]} already.")
        self._state.statements.pop(parse.name, None)
        prepared = await self._runner.prepare(only_one(await self._split(parse.sql)), parse.oids)
        self._state.keep_statement(parse.name, prepared)
        self._send(messages.PARSED)

    async def _bind(self, data: bytes) -> None:
        message = messages.parse_bind(data)
        prepared = self._state.statements.get(message.statement)
        if prepared is None:
            raise Fault("26000", "There is no such prepared statement.")
        if message.portal and message.portal in self._state.portals:
            raise Fault("42P03", f"There is a cursor {message.portal[:63]} already.")
        if len(message.values) != len(prepared.parameters):
            given = len(message.values)
            declared = len(prepared.parameters)
            told = f"{given} values are bound, and the statement has {declared} parameters."
            raise Fault("08P01", told)
        formats = _each(message.formats, len(message.values))

        def bound() -> Portal:
            values = [
                None if value is None else decode(value, parameter.oid, binary=bool(format))
                for value, parameter, format in zip(
                    message.values, prepared.parameters, formats, strict=True
                )
            ]
            return bind(prepared, values, message.results)

        self._state.keep_portal(
            message.portal, await self._work(bound) if len(data) > _SHORT else bound()
        )
        self._send(messages.BOUND)

    async def _describe(self, data: bytes) -> None:
        named = messages.parse_named(data)
        if named.kind == "S":
            prepared = self._state.statements.get(named.name)
            if prepared is None:
                raise Fault("26000", "There is no such prepared statement.")
            schema = await self._runner.describe(prepared)
            self._send(messages.parameter_description([each.oid for each in prepared.parameters]))
            formats: Sequence[int] = ()
        else:
            portal = self._portal(named.name)
            schema = await self._runner.describe_portal(portal)
            formats = portal.formats
        if schema is None:
            self._send(messages.NO_DATA)
        else:
            fields = types.fields_of(schema)
            self._send(messages.row_description(fields, _each(formats, len(fields))))

    async def _execute(self, data: bytes) -> None:
        message = messages.parse_execute(data)
        portal = self._portal(message.portal)
        if portal.prepared.statement is None:
            self._send(messages.EMPTY)
            return
        first = portal.result is None
        made = await self._runner.execute(portal)
        if isinstance(made, CopyResult):
            await self._send_copy(made)
            return
        self._notify(made.notices if first else ())
        if made.table is None:
            self._send(messages.complete(made.tag))
            return
        rows = message.rows or made.table.num_rows
        table = made.table.slice(portal.position, rows)
        fields = types.fields_of(made.table.schema)
        await self._send_rows(table, fields, _each(portal.formats, len(fields)))
        portal.position = min(made.table.num_rows, portal.position + table.num_rows)
        if message.rows and table.num_rows == message.rows:
            self._send(messages.SUSPENDED)
        else:
            paged = made.tag.startswith("SELECT") and message.rows
            self._send(messages.complete(f"SELECT {table.num_rows}" if paged else made.tag))

    async def _close(self, data: bytes) -> None:
        named = messages.parse_named(data)
        if named.kind == "S":
            self._state.statements.pop(named.name, None)
        else:
            self._state.portals.pop(named.name, None)
        self._send(messages.CLOSED)

    def _portal(self, name: str) -> Portal:
        if name not in self._state.portals:
            raise Fault("34000", "There is no such portal.")
        return self._state.portals[name]

    # --- work -------------------------------------------------------------------------------------

    def _require_user(self) -> None:
        """Refuse a user who was removed or locked since the login."""
        try:
            self._door.gate.still(self._user)
        except Denied:
            raise Fatal("28000", f"{self._user.name} may not log in any more.") from None

    def _metrics(self) -> str:
        if self._user.role == "analyst":
            raise Fault("42501", "Only curators and auditors may read the server's counts.")
        return self._door.metrics.text()

    async def _work(self, call: Callable[[], Any]) -> Any:
        """Run a call on a worker by turns; stop waiting when it is cancelled or takes too long."""
        try:
            job = self._door.queue.submit(self._user.name, call)
        except queue.Crowded:
            hint = "Wait for answers before you ask more."
            raise Fault(CROWDED, "Too many of your questions wait already.", hint=hint) from None
        except queue.Stopping:
            raise Fatal("57P01", "The server stops.") from None
        stop = self._stop = asyncio.get_running_loop().create_future()
        deadline = self._deadline()
        try:
            while not job.done():
                left = (
                    _LOOK if deadline is None else max(0.0, min(_LOOK, deadline - time.monotonic()))
                )
                await asyncio.wait({job, stop}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                if not job.done():
                    self._check_waiting(stopped=stop.done(), deadline=deadline)
            return job.result()
        except (Fault, ConnectionError):
            raise
        except queue.Stopping:
            raise Fatal("57P01", "The server stops.") from None
        except Exception as error:
            self._door.broke(error)
            raise Fault(
                INTERNAL, "Something went wrong in the server. The curator's log has the details."
            ) from None
        finally:
            self._stop = None
            job.cancel()

    def _check_waiting(self, *, stopped: bool, deadline: float | None) -> None:
        stays = "What was charged stays charged; asking the same again costs nothing more."
        if stopped:
            raise Fault("57014", "The statement was cancelled.", hint=stays)
        if deadline is not None and time.monotonic() >= deadline:
            raise Fault("57014", "The statement took longer than statement_timeout.", hint=stays)
        if self._reader.at_eof() or self._writer.transport.is_closing():
            raise ConnectionResetError

    def _deadline(self) -> float | None:
        found = re.fullmatch(
            r"\s*([0-9]{1,9})\s*(us|ms|s|min|h|d|)\s*", self._state.settings["statement_timeout"]
        )
        seconds = int(found[1]) * _SECONDS[found[2]] if found else 0.0
        return time.monotonic() + seconds if seconds else None

    def _is_done(self, kind: str, began: float) -> None:
        took = time.monotonic() - began
        self._door.metrics.count("statements", kind)
        self._door.metrics.seconds(took)
        _log.debug(
            "statement",
            extra={"fields": {"user": self._user.name, "session": self.number, "seconds": took}},
        )

    def _fail(self, fault: Fault) -> None:
        if isinstance(fault, Fatal):
            raise fault
        self._state.fail()
        self._report(fault)

    def _report(self, fault: Fault) -> None:
        self._door.metrics.count("errors", fault.code)
        _log.info(
            "refused",
            extra={
                "fields": {"user": self._user.name, "session": self.number, "sqlstate": fault.code}
            },
        )
        self._send(fault.pack())

    # --- sending ----------------------------------------------------------------------------------

    async def _send_all(self, made: Result | CopyResult) -> None:
        if isinstance(made, CopyResult):
            await self._send_copy(made)
            return
        self._notify(made.notices)
        if made.table is not None:
            fields = types.fields_of(made.table.schema)
            formats = [0] * len(fields)
            self._send(messages.row_description(fields, formats))
            await self._send_rows(made.table, fields, formats)
        self._send(messages.complete(made.tag))

    async def _send_rows(
        self, table: Any, fields: Sequence[ResultField], formats: Sequence[int]
    ) -> None:
        with self._room(table.nbytes):
            step = max(1, _CELLS // max(1, len(fields)))
            for start in range(0, table.num_rows, step):
                rows = types.rows(table.slice(start, step), fields, formats)
                self._out += b"".join(map(messages.row, rows))
                if len(self._out) > _FLUSH:
                    await self._flush()
                await asyncio.sleep(0)  # others' messages come between

    async def _send_copy(self, made: CopyResult) -> None:
        self._notify(made.result.notices)
        table = made.result.table
        assert table is not None
        fields = types.fields_of(table.schema)
        self._send(messages.copy_begin(len(fields), binary=made.copy.format == "binary"))
        with self._room(table.nbytes):
            for rows in copying.lines(table, fields, made.copy):
                self._out += b"".join(map(messages.copy_data, rows))
                if len(self._out) > _FLUSH:
                    await self._flush()
                await asyncio.sleep(0)
        self._send(messages.COPIED + messages.complete(f"COPY {table.num_rows}"))

    @contextmanager
    def _room(self, size: int) -> Iterator[None]:
        try:
            with self._door.room(size):
                yield
        except NoRoom as error:
            raise Fault(
                "53200" if error.passing else "54000", str(error), hint=error.hint
            ) from None

    def _notify(self, notices: Sequence[Notice]) -> None:
        self._tell_settings()
        level = self._state.settings["client_min_messages"]
        for notice in notices:
            if level not in ("warning", "error") or (
                level == "warning" and notice.severity == "WARNING"
            ):
                self._send(notice.pack())

    def _tell_settings(self) -> None:
        """Send the client the settings that have changed, of those that the protocol reports."""
        for key, told in self._told.items():
            now = self._state.settings[key]
            if now != told:
                self._told[key] = now
                self._send(messages.parameter_status(SETTINGS[key].name, now))

    def _send(self, data: bytes) -> None:
        self._out += data

    async def _flush(self) -> None:
        """Send what is waiting; give up on a client that reads nothing for long."""
        if self._began is not None and self._out:
            await self._door.hold(self._began)
            self._began = None
        if self._out:
            self._writer.write(bytes(self._out))
            self._out.clear()
        try:
            async with asyncio.timeout(self._door.limits.sending):
                await self._writer.drain()
        except TimeoutError:
            self._writer.transport.abort()
            raise ConnectionResetError from None


def _each(formats: Sequence[int], count: int) -> Sequence[int]:
    """Return one format for each of so many columns."""
    if len(formats) <= 1:
        return list(formats or [0]) * count
    if len(formats) != count:
        raise Fault("08P01", f"{len(formats)} formats were given for {count} columns.")
    return formats


_EXTENDED: dict[bytes, Callable[[Session, bytes], Any]] = {
    b"P": Session._parse,
    b"B": Session._bind,
    b"D": Session._describe,
    b"E": Session._execute,
    b"C": Session._close,
}
