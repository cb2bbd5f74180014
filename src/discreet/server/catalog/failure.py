"""Errors of the catalog: a SQLSTATE that clients know, a sentence, and what to do instead."""

from __future__ import annotations


class CatalogError(Exception):
    """The only exception that leaves the catalog."""

    def __init__(self, sqlstate: str, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.hint = hint


def unknown_function(name: str) -> CatalogError:
    """Return the error for a function that the catalog does not know."""
    return CatalogError(
        "42883",
        f"function {name} does not exist here",
        hint="The catalog has a fixed list of them.",
    )


def not_supported(what: str) -> CatalogError:
    """Return the error for syntax that the catalog does not answer."""
    return CatalogError("0A000", f"{what} cannot be used in a question to the catalog")
