"""Find out who makes a request, by a bearer token or by a cookie session, and check what the role
may do.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request

from discreet.server.auth import Denied
from discreet.server.doorway import Doorway
from discreet.server.http.faults import Refusal, log_in_first, not_yours
from discreet.server.http.sessions import CookieSession, Sessions
from discreet.server.users import Role, User

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
CSRF = "X-CSRF-Token"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A user, and the session of the request, which is None if the request has a token."""

    user: User
    session: CookieSession | None

    @property
    def analyst(self) -> str:
        """The name under which questions are charged."""
        if self.user.analyst is None:
            raise not_yours(self.user.role)
        return self.user.analyst


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """Finds out who makes a request."""

    door: Doorway
    sessions: Sessions
    secure: bool

    @property
    def cookie(self) -> str:
        """The cookie's name; `__Host-` binds it to this host and to TLS."""
        return "__Host-discreet" if self.secure else "discreet_session"

    def visitor(self, request: Request) -> Visitor:
        """Return who makes a request, or refuse it."""
        given = request.headers.get("authorization")
        if given is not None:
            scheme, _, token = given.partition(" ")
            if scheme.lower() != "bearer":
                raise log_in_first()
            return Visitor(
                user=self.door.gate.token(token.strip(), address=address_of(request)), session=None
            )
        session = self.session(request)
        if session is None:
            raise log_in_first()
        if request.method not in SAFE:
            require_same_origin(request)
            if not hmac.compare_digest(
                request.headers.get(CSRF, "").encode(), session.csrf.encode()
            ):
                hint = f"Send the header {CSRF} with what GET /api/v1/session told."
                raise Refusal(
                    403, "denied", "The request does not come from the page.", hint, code="42501"
                )
        return Visitor(user=self._still(session.user), session=session)

    def session(self, request: Request) -> CookieSession | None:
        """Return the session of a request's cookie, for every kind of request."""
        secret = request.cookies.get(self.cookie)
        return None if secret is None else self.sessions.find(secret)

    def _still(self, user: User) -> User:
        try:
            return self.door.gate.still(user)
        except Denied:
            raise log_in_first() from None


def address_of(request: Request) -> str:
    return "" if request.client is None else request.client.host


def require_same_origin(request: Request) -> None:
    """Refuse what a page of another host sent."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host", "")
    if foreign or site not in (None, "same-origin", "none"):
        raise Refusal(403, "denied", "The request comes from another page.", code="42501")


def reception_of(request: Request) -> Reception:
    found: Reception = request.app.state.reception
    return found


def _only(*roles: Role) -> Callable[[Request], Awaitable[Visitor]]:
    async def visitor(request: Request) -> Visitor:
        found = reception_of(request).visitor(request)
        if found.user.role not in roles:
            raise not_yours(found.user.role)
        return found

    return visitor


Anyone = Annotated[Visitor, Depends(_only("analyst", "curator", "auditor"))]
Asker = Annotated[Visitor, Depends(_only("analyst", "curator"))]
Overseer = Annotated[Visitor, Depends(_only("curator", "auditor"))]
CuratorOnly = Annotated[Visitor, Depends(_only("curator"))]
