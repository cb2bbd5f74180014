"""The collector over HTTP: a page to respond, a place to send reports, the estimate so far.

Written on asyncio and not on a framework: there are five fixed requests, and what matters is that
the reports of all connections that wait for the disk share one commit. Parsing goes on while a
commit is under way, so the slower the disk, the larger the commits. It listens on the loopback
interface unless told otherwise, and keeps no addresses.

    GET /                the respondent's page
    GET /survey.json     the compiled survey
    POST /reports        submissions, one JSON object a line
    GET /estimate.json   the estimates; GET /estimate, a chart
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from discreet.errors import DiscreetError, EngineFailure, UsageError
from discreet.local.collector.collector import Receipt, ReportStore, Row
from discreet.local.respondent.page import page

MOST_BODY = 1 << 20
MOST_HEAD = 1 << 14
MOST_WAITING = 1 << 16
"""Reports that may wait for the disk; beyond that a sender is told to come back."""
IDLE = 60.0
FRESH = 2.0
_STATUS = {
    200: "OK", 204: "No Content", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed",
    411: "Length Required", 413: "Content Too Large", 500: "Internal Server Error", 503: "Service Unavailable",
}  # fmt: skip

Pending = tuple[list[Row], Counter[str], "asyncio.Future[Receipt]"]


class Collector:
    """One store behind one port."""

    def __init__(
        self, store: ReportStore, *, address: str, estimate: Callable[[], dict[str, Any]]
    ) -> None:
        self._store = store
        self._survey = store.survey
        self._estimate = estimate
        self._page = page(store.survey, collector=address)
        self._compiled = json.dumps(store.survey.as_json(), ensure_ascii=False).encode()
        self._pending: list[Pending] = []
        self._waiting = 0
        self._wake = asyncio.Event()
        self._disk = ThreadPoolExecutor(max_workers=1)
        self._estimating = asyncio.Lock()
        self._found: tuple[float, dict[str, Any]] | None = None

    async def commit_forever(self) -> None:
        """Write all that waits to the disk as one transaction; then tell those who sent it."""
        loop = asyncio.get_running_loop()
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch = self._pending
            self._pending = []
            self._waiting = 0
            try:
                receipts = await loop.run_in_executor(
                    self._disk, self._store.add, [(rows, wrong) for rows, wrong, _ in batch]
                )
                for (_, _, done), receipt in zip(batch, receipts, strict=True):
                    if not done.done():
                        done.set_result(receipt)
            except DiscreetError as error:
                for _, _, done in batch:
                    if not done.done():
                        done.set_exception(error)

    async def reports(self, body: bytes) -> tuple[int, bytes]:
        rows, refused = self._store.desk.rows(line for line in body.split(b"\n") if line.strip())
        if self._waiting + len(rows) > MOST_WAITING:
            return 503, _error("The collector is busy; send this again in a moment.")
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self._pending.append((rows, refused, done))
        self._waiting += len(rows)
        self._wake.set()
        receipt = await done
        return 200, json.dumps(receipt.as_json()).encode()

    async def answer(self, method: str, path: str, body: bytes) -> tuple[int, str, bytes]:
        """Return status, type and content for one request."""
        if method == "OPTIONS":
            return 204, "text/plain", b""
        if path == "/reports":
            if method != "POST":
                return 405, "application/json", _error("Send reports with POST.")
            status, content = await self.reports(body)
            return status, "application/json", content
        if method not in ("GET", "HEAD"):
            return (
                405,
                "application/json",
                _error("Only /reports takes POST; everything else takes GET."),
            )
        if path == "/":
            return 200, "text/html; charset=utf-8", self._page
        if path == "/survey.json":
            return 200, "application/json", self._compiled
        if path in ("/estimate", "/estimate.json"):
            found = await self._estimate_all()
            if path.endswith(".json"):
                from discreet.display.show import json_text

                return 200, "application/json", json_text(found).encode()
            from discreet.local.collector.chart import document

            return 200, "text/html; charset=utf-8", document(self._survey.name, found).encode()
        return (
            404,
            "application/json",
            _error("There is /, /reports, /survey.json, /estimate and /estimate.json."),
        )

    async def _estimate_all(self) -> dict[str, Any]:
        """Estimate, at most once at a time and once in FRESH seconds, however many ask."""
        async with self._estimating:
            if self._found is None or time.monotonic() - self._found[0] > FRESH:
                found = await asyncio.to_thread(self._estimate)
                self._found = (time.monotonic(), found)
            return self._found[1]

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one connection in turn, until it closes, idles or sends what is not
        HTTP.
        """
        try:
            while await self._request(reader, writer):
                pass
        except (
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
            ConnectionError,
            TimeoutError,
        ):
            pass
        except asyncio.CancelledError:  # the collector stops; what was acknowledged is on the disk
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        async with asyncio.timeout(IDLE):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            parts = head[0].split(" ")
            fields = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:-2])
            }
            length = fields.get("content-length", "0")
            wrong = _wrong(parts, fields, length)
            body = b"" if wrong else await reader.readexactly(int(length))
        if wrong:
            status = wrong[0]
            kind = "application/json"
            content = _error(wrong[1])
        else:
            try:
                status, kind, content = await self.answer(
                    parts[0], parts[1].partition("?")[0], body
                )
            except DiscreetError as error:
                busy = isinstance(error, EngineFailure)
                status = 500 if busy else 400
                kind = "application/json"
                content = _error(str(error))
        stay = (
            not wrong and fields.get("connection", "").lower() != "close" and parts[2] == "HTTP/1.1"
        )
        writer.write(
            _reply(status, kind, b"" if parts[0] == "HEAD" else content, len(content), stay)
        )
        await writer.drain()
        return stay


def _wrong(parts: list[str], fields: dict[str, str], length: str) -> tuple[int, str] | None:
    """Return what is wrong with the head of a request: status and sentence."""
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return 400, "This is not HTTP/1.1."
    if "transfer-encoding" in fields:
        return 411, "Send a Content-Length."
    if not length.isdecimal():
        return 400, "The Content-Length is not a number."
    if len(length) > 9 or int(length) > MOST_BODY:
        return 413, f"A request may have {MOST_BODY} bytes; send the reports in several."
    return None


def _error(message: str) -> bytes:
    error = UsageError(message).as_json()
    return json.dumps({"error": error}, ensure_ascii=False).encode()


def _reply(status: int, kind: str, content: bytes, length: int, stay: bool) -> bytes:
    head = [
        f"HTTP/1.1 {status} {_STATUS[status]}",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
        f"Connection: {'keep-alive' if stay else 'close'}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        # A page saved to a file has no origin, and must be able to send; there is nothing here to
        # steal with a cookie.
        "Access-Control-Allow-Origin: *",
        "Access-Control-Allow-Methods: GET, POST",
        "Access-Control-Allow-Headers: Content-Type",
    ]
    return ("\r\n".join(head) + "\r\n\r\n").encode() + content


async def listen(
    store: ReportStore,
    *,
    host: str,
    port: int,
    address: str | None,
    estimate: Callable[[], dict[str, Any]],
) -> tuple[asyncio.Server, asyncio.Task[None], str]:
    """Start serving; return the server, the task that commits, and the address that the page sends
    to.
    """
    bound = socket.create_server(
        (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024
    )
    name = f"[{host}]" if ":" in host else host
    shown = address or f"http://{name}:{bound.getsockname()[1]}"
    collector = Collector(store, address=shown, estimate=estimate)
    server = await asyncio.start_server(collector.connection, sock=bound, limit=MOST_HEAD)
    return server, asyncio.create_task(collector.commit_forever()), shown
