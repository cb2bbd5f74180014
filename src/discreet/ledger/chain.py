"""Rows and the keys that chain them. Without the key file nobody can write a row or unseal a key.

A row's MAC is HMAC-SHA256 over the canonical JSON of its number, the MAC before it and its body. So
a row that was changed, moved, removed or inserted is noticed, and the last MAC (the head) stands
for all rows before it.
"""

from __future__ import annotations

import hmac
import json
import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from discreet.errors import LedgerUnavailable
from discreet.noise.bits import SYSTEM

KEY_BYTES = 32
FIRST = bytes(32)  # the MAC "before" the first row
_NONCE_BYTES = 12
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return _CANONICAL.encode(value)


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the ledger whose MAC has been checked."""

    number: int
    body: dict[str, Any]
    mac: bytes


@dataclass(frozen=True, kw_only=True)
class Key:
    """32 secret bytes, and two keys derived from them: one for MACs, one to seal noise keys."""

    secret: bytes = field(repr=False)

    @cached_property
    def _mac_key(self) -> bytes:
        return hmac.digest(self.secret, b"discreet ledger rows", "sha256")

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(hmac.digest(self.secret, b"discreet ledger seal", "sha256"))

    def mac(self, number: int, previous: bytes, text: str) -> bytes:
        covered = f'{{"number":{number},"previous":"{previous.hex()}","row":{text}}}'
        return hmac.digest(self._mac_key, covered.encode(), "sha256")

    def seal(self, secret: bytes, *, ledger: str, charge: int) -> bytes:
        """Seal a noise key with AES-256-GCM.

        The charge's number is authenticated, so the sealed key opens for its own charge only.
        """
        nonce = fresh_secret()[:_NONCE_BYTES]
        return nonce + self._cipher.encrypt(nonce, secret, _label(ledger, charge))

    def unseal(self, sealed: bytes, *, ledger: str, charge: int) -> bytes | None:
        """Return the sealed bytes; None if they were not sealed for this charge."""
        try:
            return self._cipher.decrypt(
                sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], _label(ledger, charge)
            )
        except (InvalidTag, ValueError):
            return None


def _label(ledger: str, charge: int) -> bytes:
    return f"{ledger} {charge}".encode()


def fresh_secret() -> bytes:
    return SYSTEM.bits(8 * KEY_BYTES).to_bytes(KEY_BYTES, "little")


def key_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ".key")


def read_keys(ledger: Path) -> tuple[Key, ...]:
    """Return the keys of a ledger, oldest first; each rotation has added one."""
    path = key_path(ledger)
    try:
        mode = path.stat().st_mode
        secret = path.read_bytes()
    except FileNotFoundError:
        raise LedgerUnavailable(
            f"The key of {ledger.name} is missing: put {path.name} back beside it. Without it nothing can be answered."
        ) from None
    except OSError as error:
        raise LedgerUnavailable(
            f"The key file {path.name} cannot be read ({error.strerror}): let its owner run this."
        ) from None
    if stat.S_IMODE(mode) & 0o077:
        raise LedgerUnavailable(
            f"Others may read the key file {path.name}: run chmod 600 on it first."
        )
    if not secret or len(secret) % KEY_BYTES:
        raise LedgerUnavailable(
            f"The key file {path.name} is damaged ({len(secret)} bytes, not {KEY_BYTES}): restore it from a backup."
        )
    return tuple(
        Key(secret=secret[start : start + KEY_BYTES]) for start in range(0, len(secret), KEY_BYTES)
    )


def add_key(ledger: Path) -> Key:
    """Append a key to the key file; a crash leaves either the old file or the new one."""
    path = key_path(ledger)
    new = ledger.with_name(ledger.name + ".key.new")
    secret = fresh_secret()
    new.unlink(missing_ok=True)
    write_new(new, path.read_bytes() + secret)
    new.replace(path)
    sync_folder(path.parent)
    return Key(secret=secret)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet, readable by its owner only, and fsync it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
