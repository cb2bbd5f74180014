"""Check logins: who may enter, and how often one may try. A wrong password and an unknown user get
the same answer.

Everybody is denied unless the file of users says otherwise. Failures are counted for each name and
each address, alike for users who exist and for names that do not. After several failures every
further try is refused for a while, without looking at the password. This time doubles with each
further failure, up to a quarter of an hour.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from discreet.server.scram import Exchange, Verifier
from discreet.server.users import MOST_NAME, TokenRecord, User, UserFile, parse_token

# failures before one must wait; people behind one address are many
FREE_TRIES = {"name": 5, "address": 20}
FIRST_WAIT = 2.0  # seconds
LONGEST_WAIT = 900.0
FORGOTTEN = 3600.0  # seconds without a failure after which the count starts again
MOST_COUNTED = 10_000  # names and addresses that are remembered; the oldest are forgotten first

WRONG_PASSWORD = "The user name or the password is wrong."
WRONG_TOKEN = (
    "This token lets nobody in: it has ended, was taken back, or was never made. "
    "The curator makes a new one with discreet user token POLICY NAME."
)

_log = logging.getLogger("discreet.server.auth")


class Denied(Exception):
    """A login is denied. `wait` is the number of seconds before this name or address may try again,
    if it must wait. The sentence `why` does not depend on which users exist.
    """

    def __init__(self, wait: float | None = None, *, why: str = WRONG_PASSWORD) -> None:
        super().__init__(
            why
            if wait is None
            else f"Too many failed logins. Try again in {max(1, round(wait))} seconds."
        )
        self.wait = wait


@dataclass(slots=True)
class _Failures:
    free: int
    count: int = 0
    last: float = 0.0

    def wait(self, now: float) -> float:
        """Return the seconds that are left to wait."""
        if self.count < self.free:
            return 0.0
        wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** (self.count - self.free))
        return max(0.0, self.last + wait - now)


class Tries:
    """Failed logins, by name and by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], _Failures] = OrderedDict()

    def check(self, name: str, address: str) -> None:
        """Raise Denied if this name or this address must wait."""
        with self._lock:
            now = self._clock()
            known = (self._failures.get(key) for key in (("name", name), ("address", address)))
            wait = max((each.wait(now) for each in known if each is not None), default=0.0)
        if wait > 0:
            raise Denied(wait)

    def failed(self, name: str, address: str) -> None:
        with self._lock:
            now = self._clock()
            for key in (("name", name), ("address", address)):
                failures = self._failures.pop(key, _Failures(FREE_TRIES[key[0]]))
                if now - failures.last > FORGOTTEN:
                    failures.count = 0
                failures.count = failures.count + 1
                failures.last = now
                self._failures[key] = failures
            while len(self._failures) > MOST_COUNTED:
                self._failures.popitem(last=False)

    def succeeded(self, name: str) -> None:
        """Forget the failures of this name. Those of its address stay, because one user there may
        guess another's password.
        """
        with self._lock:
            self._failures.pop(("name", name), None)


class Gate:
    """Checks passwords and tokens against the file of users."""

    def __init__(self, file: UserFile, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._tries = Tries(clock)

    def begin(
        self, name: str, *, address: str, binding: bytes | None = None, offers_binding: bool = False
    ) -> Attempt:
        """Begin a SCRAM login. For an unknown or locked user it looks the same, and fails at its
        end.
        """
        self._tries.check(name, address)
        users = self._file.read()
        user = users.users.get(name)
        nobodys = Verifier.nobodys(name, users.secret)
        verifier = nobodys if user is None else user.verifier
        exchange = Exchange(verifier, binding=binding, offers_binding=offers_binding)
        return Attempt(gate=self, name=name, address=address, exchange=exchange)

    def password(self, name: str, password: str, *, address: str) -> User:
        """Log in by the password itself. This takes some milliseconds, the same for all users."""
        self._tries.check(name, address)
        users = self._file.read()
        user = users.users.get(name)
        verifier = Verifier.nobodys(name, users.secret) if user is None else user.verifier
        return self.finish(name, address, proved=verifier.matches(password))

    def token(self, token: str, *, address: str) -> User:
        """Log in by a token alone, without a name."""
        identity, secret = parse_token(token)
        name = f"token {identity}"
        self._tries.check(name, address)
        held = {
            each.id: (user, each)
            for user in self._file.read().users.values()
            for each in user.tokens
        }
        nobodys = TokenRecord(id="", digest=bytes(32), made=0, expires=None)
        user, stored = held.get(identity, (None, nobodys))
        if not stored.fits(secret, time.time()) or user is None or user.locked:
            self._tries.failed(name, address)
            _log.warning(
                "login refused", extra={"fields": {"token": identity[:12], "address": address}}
            )
            raise Denied(why=WRONG_TOKEN)
        self._tries.succeeded(name)
        return user

    def finish(self, name: str, address: str, *, proved: bool) -> User:
        """End a login: the user where the proof held, or Denied; counts it either way.

        Those that began together count one after the other: others may have failed since.
        """
        self._tries.check(name, address)
        user = self._file.read().users.get(name)
        if user is None or user.locked or not proved:
            if user is None:
                reason = "no such user"
            elif user.locked:
                reason = "locked"
            else:
                reason = "wrong password"
            self._tries.failed(name, address)
            _log.warning(
                "login refused",
                extra={"fields": {"user": name[:MOST_NAME], "address": address, "reason": reason}},
            )
            raise Denied
        self._tries.succeeded(name)
        _log.info("login", extra={"fields": {"user": name, "role": user.role, "address": address}})
        return user

    def still(self, user: User) -> User:
        """Return the user as the file has it now. Raise Denied if it was removed, locked or created
        anew since.
        """
        found = self._file.read().users.get(user.name)
        if (
            found is None
            or found.locked
            or (found.role, found.verifier) != (user.role, user.verifier)
        ):
            raise Denied
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A SCRAM login under way."""

    gate: Gate
    name: str
    address: str
    exchange: Exchange

    def first(self, message: bytes) -> bytes:
        return self.exchange.first(message)

    def final(self, message: bytes) -> tuple[User, bytes]:
        """Return the user and the server's signature; raises Denied."""
        signature = self.exchange.final(message)
        user = self.gate.finish(self.name, self.address, proved=signature is not None)
        assert signature is not None
        return user, signature
