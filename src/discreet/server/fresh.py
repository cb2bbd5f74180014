"""Fresh secrets of the doors: salts, nonces, passwords, tokens, keys to cancel with. None of them
is noise.
"""

from __future__ import annotations

import base64
import os


def fresh_bytes(size: int) -> bytes:
    """Return random bytes of the operating system, for a secret that protects a login and no
    data.
    """
    return os.urandom(size)


def fresh_text(size: int) -> str:
    """Return a random text of letters, digits, - and _ that holds `size` bytes of chance."""
    return base64.urlsafe_b64encode(fresh_bytes(size)).rstrip(b"=").decode()
