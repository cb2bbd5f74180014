"""Hide passwords in addresses that people see."""

from __future__ import annotations

import re

HIDDEN = "***"
# postgresql://user:password@host; a path has one slash of it
_IN_USER = re.compile(r"(:/{1,2}[^\s:/@]*):(?:\S*|[^\n@]*)@")
_BY_NAME = re.compile(r"\b((?:ssl)?password|token)(\s*=\s*)('[^']*'|[^\s&;,'\"]+)", re.IGNORECASE)
_AROUND = "'\"{}[],#"  # what may stand around an address in a policy


def hide_passwords(text: str) -> str:
    """Return a text with *** for the passwords and tokens of its addresses."""
    text = _IN_USER.sub(rf"\1:{HIDDEN}@", text)
    return _BY_NAME.sub(rf"\1\2{HIDDEN}", text)


def restore_passwords(text: str, before: str) -> str:
    """Return an edited text with the passwords that were hidden in `before`.

    An address that was changed has no password to restore.
    """
    addresses = [word.strip(_AROUND) for word in before.split()]
    # the longest first: one may be the beginning of another
    for address in sorted(addresses, key=len, reverse=True):
        hidden = hide_passwords(address)
        if hidden != address:
            text = text.replace(hidden, address, 1)
    return text


def without_password(address: str) -> str:
    """Return an address that names its user alone."""
    return _IN_USER.sub(r"\1@", address)
