"""Random secrets for the server: salts, nonces, passwords, tokens, and keys for cancelling. None of
them is noise.
"""

from __future__ import annotations

import base64
import os


def fresh_bytes(size: int) -> bytes:
    """Return random bytes of the operating system. Use them for secrets of logins, not for data."""
    return os.urandom(size)


def fresh_text(size: int) -> str:
    """Return `size` random bytes as a text of letters, digits, - and _."""
    return base64.urlsafe_b64encode(fresh_bytes(size)).rstrip(b"=").decode()
