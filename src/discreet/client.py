"""Ask a curator over HTTP: `discreet.connect("https://...", token=...)` has the methods of `Curator`.

The client needs only the standard library and pyarrow. Each question carries an idempotency key: if
the reply is lost, the client sends it again, the server charges once and returns the same bytes.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as quoted
from urllib.parse import urlsplit

from discreet.budget import Budget
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    LedgerUnavailable,
    Rejected,
    UsageError,
)

if TYPE_CHECKING:
    from discreet.vault.answer import Answer

ARROW = "application/vnd.apache.arrow.stream"
TRIES = 3  # of a request whose reply is lost


class Unreachable(DiscreetError):
    """The server cannot be reached, or does not answer as a discreet server does."""


class ServerFailure(DiscreetError):
    """The server failed on a request; its log has the details."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteQuote:
    """The server's quote: the cost of a question, and how wrong its answer would be."""

    columns: tuple[str, ...]
    statistics: tuple[Mapping[str, Any], ...]
    margins: Mapping[str, Any]
    cost: Budget
    left: Budget
    max_rows: Mapping[str, int]
    instead: Mapping[str, tuple[float, float]]
    shared_by: tuple[int, ...]
    savings: tuple[str, ...]
    unlisted: tuple[str, ...]
    told: Mapping[str, Any]

    def __str__(self) -> str:
        from discreet.display.show import quote_text

        return quote_text(self)

    def as_json(self) -> dict[str, Any]:
        return dict(self.told)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """Show the quote in a notebook as the command line prints it."""
        printer.text(str(self))


class Client:
    """A client of one server. Threads may share it; each thread has its own connection."""

    def __init__(
        self, url: str, *, token: str, timeout: float = 300.0, context: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                "A server is named as https://host:8080, or as http://127.0.0.1:8080 on this machine."
            )
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise UsageError(
                "A token must not pass in the open: write https:// for a server on another machine."
            )
        self._host = parts.hostname
        self._port = parts.port
        self._secure = parts.scheme == "https"
        self._root = f"{parts.path.rstrip('/')}/api/v1"
        self._token = token
        self._timeout = timeout
        self._context = context
        self._own = threading.local()

    def __repr__(self) -> str:
        return f"<discreet.Client of {self._host}>"

    # --- questions --------------------------------------------------------------------------------

    def ask(
        self,
        sql: str,
        *,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
        analyst: str | None = None,
    ) -> Answer:
        """Answer a question. The token says who asks; if `analyst` is given, it must be the same."""
        from discreet.display.formats import from_arrow

        self._require(analyst)
        body = _question(sql, epsilon, margin, assuming, dialect)
        headers = {"Accept": ARROW, "Idempotency-Key": uuid.uuid4().hex}
        return from_arrow(self._send("POST", "/ask", body, headers))

    def quote(
        self,
        sql: str,
        *,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
        analyst: str | None = None,
    ) -> RemoteQuote:
        """Return what a question would cost and how wrong the answer would be. Free."""
        self._require(analyst)
        told = self._json("POST", "/quote", _question(sql, epsilon, margin, assuming, dialect))
        return RemoteQuote(
            columns=tuple(told["columns"]),
            statistics=tuple(told["statistics"]),
            margins=told["margins"],
            cost=Budget.from_json(told["cost"]),
            left=Budget.from_json(told["left"]),
            max_rows=told["max_rows"],
            instead=told.get("instead", {}),
            shared_by=tuple(told.get("shared_by", ())),
            savings=tuple(told.get("savings", ())),
            unlisted=tuple(told.get("unlisted", ())),
            told=told,
        )

    def explain(
        self,
        sql: str,
        *,
        epsilon: object = None,
        margin: object = None,
        assuming: int | None = None,
        dialect: str = "duckdb",
        analyst: str | None = None,
    ) -> str:
        """Explain what would happen, in numbered sentences, each with its cost. Free."""
        self._require(analyst)
        told = self._json("POST", "/explain", _question(sql, epsilon, margin, assuming, dialect))
        return "\n".join(told["explanation"])

    def ask_all(self, questions: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Answer several questions; each gets its answer as JSON, or an error."""
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        told = json.loads(
            self._send(
                "POST", "/ask_all", {"questions": [dict(each) for each in questions]}, headers
            )
        )
        found: list[dict[str, Any]] = told["answers"]
        return found

    @cached_property
    def analyst(self) -> str:
        """The name in which the token asks."""
        known = self._json("GET", "/session")["analyst"]
        if not isinstance(known, str):
            raise UsageError("The token is an auditor's, who reads and never asks.")
        return known

    # --- budget, tables, history ------------------------------------------------------------------

    def left(self, *, analyst: str | None = None) -> Budget:
        """Return the budget that the token's analyst has left."""
        self._require(analyst)
        return Budget.from_json(self._json("GET", "/budget")["left"])

    def tables(self) -> dict[str, Any]:
        """Return the tables and columns that the policy declares."""
        return self._json("GET", "/tables")

    def history(self) -> dict[str, Any]:
        """Return the analyst's questions, newest first."""
        return self._json("GET", "/history")

    def answer(self, link: str) -> Answer:
        """Return an earlier answer by its link."""
        from discreet.display.formats import from_arrow

        return from_arrow(
            self._send("GET", f"/answers/{quoted(link, safe='')}", None, {"Accept": ARROW})
        )

    def _require(self, analyst: str | None) -> None:
        """Refuse an analyst other than the token's."""
        if analyst is not None and analyst != self.analyst:
            raise UsageError(f"The token asks as {self.analyst}, not as {analyst}.")

    # --- the wire ---------------------------------------------------------------------------------

    def _json(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(
            self._send(method, path, body, {"Accept": "application/json"})
        )
        return told

    def _send(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> bytes:
        """Send a request, and repeat it if the reply is lost.

        Every request may be repeated: a question has its idempotency key.
        """
        data = None if body is None else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self._token}", **headers}
        if data is not None:
            sent["Content-Type"] = "application/json"
        for left in reversed(range(TRIES)):
            connection = self._connection()
            try:
                connection.request(method, f"{self._root}{path}", data, sent)
                reply = connection.getresponse()
                status = reply.status
                content = reply.read()
            except (OSError, http.client.HTTPException) as error:
                self._own.connection = None
                connection.close()
                if isinstance(error, ssl.SSLError) or not left:
                    raise Unreachable(
                        f"{self._host} cannot be reached: {_reason(error)}."
                    ) from None
                continue
            if status >= 400:
                raise _error(status, content)
            return content
        raise AssertionError

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if found is None:
            if self._secure:
                context = self._context or ssl.create_default_context()
                found = http.client.HTTPSConnection(
                    self._host, self._port, timeout=self._timeout, context=context
                )
            else:
                found = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
            self._own.connection = found
        return found


def _question(
    sql: str, epsilon: object, margin: object, assuming: int | None, dialect: str
) -> dict[str, Any]:
    if not isinstance(sql, str):
        raise UsageError(f"A question is a text, not {type(sql).__name__}.")
    amounts = {"epsilon": _amount(epsilon), "margin": _amount(margin)}
    return {"sql": sql, **amounts, "assuming": assuming, "dialect": dialect}


def _amount(value: object) -> str | None:
    """Return an amount as exact text; the server refuses a text that is no amount."""
    return None if value is None else str(value)


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")


def _error(status: int, content: bytes) -> DiscreetError:
    """Return the exception that `Curator` would have raised."""
    try:
        told = json.loads(content)["error"]
        kind = told["kind"]
        sentence = told["sentence"]
        hint = told["hint"] or ""
        place = (told["line"] or 1, told["column"] or 1)
    except (ValueError, KeyError, TypeError):
        return Unreachable(f"The server answered {status}, and not as a discreet server does.")
    match kind:
        case "rejected":
            return Rejected(sentence, hint=hint, line=place[0], column=place[1])
        case "budget":
            return BudgetExceeded(sentence)
        case "ledger":
            return LedgerUnavailable(sentence)
        case "engine" | "internal" | "stopping" | "crowded":
            return ServerFailure(sentence)
    return UsageError(f"{sentence} {hint}".rstrip())
