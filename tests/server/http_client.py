"""A client of the HTTP door for tests: one connection a request, whatever bytes are wanted."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from dataclasses import dataclass, field
from typing import Any

from server.running_server import PASSWORD


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


@dataclass
class Browser:
    """Keeps a cookie and a CSRF token, or sends a bearer token."""

    port: int
    token: str | None = None
    cookie: str | None = None
    csrf: str | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request; names of headers are written with _ for -."""
        sent = {
            **self.headers,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        if self.cookie is not None:
            sent.setdefault("Cookie", self.cookie)
        if self.csrf is not None:
            sent.setdefault("X-CSRF-Token", self.csrf)
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, data, sent)
            reply = connection.getresponse()
            return Reply(
                reply.status,
                {name.lower(): value for name, value in reply.getheaders()},
                reply.read(),
            )
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", f"/api/v1{path}", **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        return self.send("POST", f"/api/v1{path}", body, **headers)

    def log_in(self, user: str, password: str = PASSWORD) -> Reply:
        reply = self.post("/login", {"user": user, "password": password})
        if reply.status == 200:
            self.cookie = reply.headers["set-cookie"].partition(";")[0]
            self.csrf = reply.json["csrf"]
        return reply


def raw(port: int, data: bytes, *, seconds: float = 60) -> bytes:
    """Send bytes as they are and return all that comes back until the other end closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        connection.sendall(data)
        found = b""
        with contextlib.suppress(ConnectionResetError):  # closed while there was more to read
            while part := connection.recv(1 << 16):
                found += part
        return found
