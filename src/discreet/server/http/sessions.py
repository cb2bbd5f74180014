"""Sessions of the browser pages, by cookie: kept in memory, each with a CSRF token, and new at
every login.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from discreet.server.fresh import fresh_text
from discreet.server.users import User

LONGEST = 12 * 3600.0  # seconds that a session lasts, however busy it is
MOST = 20  # sessions of one user; the oldest ends when another begins


@dataclass(frozen=True, slots=True, kw_only=True)
class CookieSession:
    """A logged-in user, and the CSRF token that every request must have that changes something."""

    user: User
    csrf: str = field(repr=False)
    began: float
    seen: float


class Sessions:
    """All sessions of one server. Of a cookie's secret only the hash is kept."""

    def __init__(self, *, idle: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._idle = idle
        self._clock = clock
        self._sessions: OrderedDict[bytes, CookieSession] = OrderedDict()

    def begin(self, user: User) -> tuple[str, CookieSession]:
        """Begin a session. Its secret is always new, even if the browser sent a cookie."""
        own = [key for key, each in self._sessions.items() if each.user.name == user.name]
        for key in own[: max(0, len(own) + 1 - MOST)]:
            del self._sessions[key]
        now = self._clock()
        secret = fresh_text(32)
        session = CookieSession(user=user, csrf=fresh_text(24), began=now, seen=now)
        self._sessions[_key(secret)] = session
        return secret, session

    def find(self, secret: str) -> CookieSession | None:
        """Return the session of a cookie, if it has not ended."""
        key = _key(secret)
        now = self._clock()
        session = self._sessions.get(key)
        if session is None:
            return None
        if now - session.seen > self._idle or now - session.began > LONGEST:
            del self._sessions[key]
            return None
        self._sessions[key] = session = replace(session, seen=now)
        return session

    def end(self, secret: str) -> None:
        """Log out."""
        self._sessions.pop(_key(secret), None)


def _key(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
