"""Hide the passwords in addresses before people see them."""

from __future__ import annotations

import re

HIDDEN = "***"
# postgresql://user:password@host; in a path the two slashes have become one
_IN_USER = re.compile(r"(:/{1,2}[^\s:/@]*):(?:\S*|[^\n@]*)@")
_BY_NAME = re.compile(r"\b((?:ssl)?password|token)(\s*=\s*)('[^']*'|[^\s&;,'\"]+)", re.IGNORECASE)
_AROUND = "'\"{}[],#"  # characters that may stand around an address in a policy


def hide_passwords(text: str) -> str:
    """Return a text with *** for the passwords and tokens of its addresses."""
    text = _IN_USER.sub(rf"\1:{HIDDEN}@", text)
    return _BY_NAME.sub(rf"\1\2{HIDDEN}", text)


def restore_passwords(text: str, before: str) -> str:
    """Put the passwords of `before` back into a text that was shown without them and edited.

    An address that was changed gets no password.
    """
    addresses = [word.strip(_AROUND) for word in before.split()]
    # the longest first: an address may be the beginning of another
    for address in sorted(addresses, key=len, reverse=True):
        hidden = hide_passwords(address)
        if hidden != address:
            text = text.replace(hidden, address, 1)
    return text


def without_password(address: str) -> str:
    """Return an address with its user and without the password."""
    return _IN_USER.sub(r"\1@", address)
