"""Read and write the file of users beside the ledger, mode 0600, with verifiers of passwords and
hashes of tokens.

A user is an analyst with a name of the policy, or has one of two other roles: the questions of a
`curator` are charged as the curator's own, and an `auditor` reads and never asks. Every change
replaces the whole file, and running servers notice it at their next look.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from discreet.errors import NO_TEXT, UsageError
from discreet.policy.policy import CURATOR, Policy
from discreet.server.fresh import fresh_bytes, fresh_text
from discreet.server.scram import Verifier

Role = Literal["analyst", "curator", "auditor"]
ROLES: tuple[Role, ...] = get_args(Role)
SHORTEST_PASSWORD = 12
MOST_NAME = 63  # bytes, as in Postgres
_FORMAT = 1
_TOKEN = "dsc"
_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """The stored form of a token: its number, and a hash of its 256 random bits (which needs no
    salt).
    """

    id: str
    digest: bytes = field(repr=False)
    made: int  # seconds since 1970
    expires: int | None

    def fits(self, secret: str, now: float) -> bool:
        same = hmac.compare_digest(
            self.digest, hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
        )
        return same and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user who may log in."""

    name: str
    role: Role
    locked: bool = False
    verifier: Verifier = field(repr=False)
    tokens: tuple[TokenRecord, ...] = ()

    @property
    def analyst(self) -> str | None:
        """The name under which questions are charged; None for who may not ask."""
        return {"analyst": self.name, "curator": CURATOR, "auditor": None}[self.role]


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Everything in the file. The salts of unknown names are derived from `secret`."""

    secret: bytes = field(repr=False)
    users: Mapping[str, User]


class UserFile:
    """The file of one policy's users. Reading is cheap: the file is parsed only if it was
    replaced.
    """

    def __init__(self, policy: Policy) -> None:
        self.path = policy.ledger.with_name(f"{policy.ledger.name}.users")
        self._policy = policy
        self._seen: tuple[int, int, int] | None = None
        self._users = Users(secret=fresh_bytes(32), users={})

    def read(self) -> Users:
        """Return the users as they are now; none if there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._users = Users(secret=self._users.secret, users={})
            self._seen = None
            return self._users
        except OSError as error:
            raise UsageError(f"{self.path.name} cannot be read: {error.strerror}.") from None
        seen = (status.st_ino, status.st_mtime_ns, status.st_size)
        if seen != self._seen:
            if status.st_mode & 0o077:
                raise UsageError(
                    f"{self.path.name} must be its owner's alone: chmod 600 {self.path.name}."
                )
            self._users = self._parse()
            self._seen = seen
        return self._users

    def _parse(self) -> Users:
        try:
            return _from_json(json.loads(self.path.read_text(encoding="utf-8")))
        except OSError as error:
            raise UsageError(f"{self.path.name} cannot be read: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError(
                f"{self.path.name} is damaged: restore it, or remove it and add users again."
            ) from None

    # --- changes ----------------------------------------------------------------------------------

    def add(self, name: str, *, role: Role = "analyst", password: str | None = None) -> str | None:
        """Add a user. If no password is given, make one and return it."""
        self._check_name(name, role)
        made = fresh_text(18) if password is None else None
        chosen = made or _check(password or "")
        with self._changing() as users:
            if name in users:
                raise UsageError(
                    f"There is a user {name} already. Remove it first: discreet user remove POLICY {name}."
                )
            users[name] = User(name=name, role=role, verifier=Verifier.of(chosen))
        return made

    def _check_name(self, name: str, role: Role) -> None:
        if (
            not name
            or len(name.encode("utf-8", "surrogatepass")) > MOST_NAME
            or NO_TEXT.search(name)
        ):
            raise UsageError(f"A user's name is 1 to {MOST_NAME} bytes of text.")
        if role == "analyst" and name not in self._policy.analysts:
            raise UsageError(
                f"{name} is no analyst of the policy. Add `{name}: {{epsilon: ...}}` under `analysts:`, then "
                "discreet ledger POLICY --amend; or give another --role."
            )
        if role != "analyst" and name in self._policy.analysts:
            raise UsageError(
                f"{name} is an analyst of the policy, so the role is analyst. Choose another name."
            )

    def lock(self, name: str, *, locked: bool = True) -> None:
        with self._changing() as users:
            users[name] = replace(_find(users, name), locked=locked)

    def remove(self, name: str) -> None:
        with self._changing() as users:
            del users[_find(users, name).name]

    def add_token(self, name: str, *, days: int | None = None) -> str:
        """Add a token and return it; it cannot be shown again."""
        if days is not None and not 1 <= days <= 36_500:
            raise UsageError("A token lasts from 1 to 36500 days.")
        identity = fresh_bytes(6).hex()
        secret = fresh_bytes(32).hex()
        now = int(time.time())
        token = TokenRecord(
            id=identity,
            digest=hashlib.sha256(secret.encode()).digest(),
            made=now,
            expires=None if days is None else now + days * _DAY,
        )
        with self._changing() as users:
            user = _find(users, name)
            users[name] = replace(user, tokens=(*user.tokens, token))
        return f"{_TOKEN}_{identity}_{secret}"

    def remove_token(self, name: str, identity: str) -> None:
        with self._changing() as users:
            user = _find(users, name)
            kept = tuple(token for token in user.tokens if token.id != identity)
            if len(kept) == len(user.tokens):
                raise UsageError(
                    f"{name} has no token {identity}. discreet user list POLICY shows them."
                )
            users[name] = replace(user, tokens=kept)

    @contextlib.contextmanager
    def _changing(self) -> Iterator[dict[str, User]]:
        """Yield the users to change them, then replace the file. Only one process changes it at a
        time.
        """
        lock = os.open(self.path.with_name(f"{self.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = self.read()
            users = dict(before.users)
            yield users
            self._replace(Users(secret=before.secret, users=users))
        except OSError as error:
            raise UsageError(f"{self.path.name} cannot be written: {error.strerror}.") from None
        finally:
            os.close(lock)

    def _replace(self, users: Users) -> None:
        new = self.path.with_name(f"{self.path.name}.new")
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(_as_json(users), file, indent=1, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def parse_token(text: str) -> tuple[str, str]:
    """Return a token's number and its secret; for a text that is no token, a pair that fits
    nobody.
    """
    parts = text.split("_")
    return (parts[1], parts[2]) if len(parts) == 3 and parts[0] == _TOKEN else ("", text)


def _check(password: str) -> str:
    if len(password) < SHORTEST_PASSWORD or "\x00" in password:
        raise UsageError(
            f"A password has at least {SHORTEST_PASSWORD} characters. Without one, a strong one is made."
        )
    return password


def _find(users: Mapping[str, User], name: str) -> User:
    if name not in users:
        raise UsageError(
            f"There is no user {name}. discreet user add POLICY NAME adds one, and "
            "discreet user list POLICY shows who there is."
        )
    return users[name]


def _as_json(users: Users) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "secret": users.secret.hex(),
        "users": {
            user.name: {
                "role": user.role,
                "locked": user.locked,
                "scram": str(user.verifier),
                "tokens": [
                    {
                        "id": each.id,
                        "sha256": each.digest.hex(),
                        "made": each.made,
                        "expires": each.expires,
                    }
                    for each in user.tokens
                ],
            }
            for user in users.users.values()
        },
    }


def _from_json(content: dict[str, Any]) -> Users:
    if content["format"] != _FORMAT:
        raise ValueError
    return Users(
        secret=bytes.fromhex(content["secret"]),
        users={name: _user(name, each) for name, each in content["users"].items()},
    )


def _user(name: str, content: dict[str, Any]) -> User:
    if content["role"] not in ROLES or not isinstance(content["locked"], bool):
        raise ValueError
    return User(
        name=name,
        role=content["role"],
        locked=content["locked"],
        verifier=Verifier.parse(content["scram"]),
        tokens=tuple(
            TokenRecord(
                id=each["id"],
                digest=bytes.fromhex(each["sha256"]),
                made=each["made"],
                expires=each["expires"],
            )
            for each in content["tokens"]
        ),
    )
