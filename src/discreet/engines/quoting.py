"""Names and texts as SQL writes them, in every dialect alike."""

from __future__ import annotations


def name(identifier: str) -> str:
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
