"""Why the catalog cannot answer: a SQLSTATE that clients know, a sentence, and what to do instead."""

from __future__ import annotations


class CatalogError(Exception):
    """The only exception that leaves the catalog."""

    def __init__(self, sqlstate: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.sqlstate, self.message, self.hint = sqlstate, message, hint
