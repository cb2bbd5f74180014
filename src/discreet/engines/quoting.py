"""Quote names and texts in SQL, as all dialects write them."""

from __future__ import annotations


def name(identifier: str) -> str:
    """Return a name in double quotes."""
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "''") + "'"
