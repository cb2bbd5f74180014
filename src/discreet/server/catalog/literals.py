"""Constants: values of parameters, array literals such as '{a,b}', and E'...' texts."""

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

from discreet.server.catalog import types
from discreet.server.catalog.failure import CatalogError

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


def literal(value: object, kind: str) -> exp.Expression:
    """Write a parameter's value as a constant of its type."""
    if value is None:
        return exp.cast(exp.Null(), types.storage_type(kind), dialect="duckdb")
    if isinstance(value, list | tuple):
        element = types.element(kind) or "text"
        return list_of([literal(each, element) for each in value], element)
    if isinstance(value, str) and types.element(kind):
        return array_of(value, kind)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, bool | int | float | Decimal | str | date | datetime):
        raise CatalogError(
            "0A000", f"a parameter of type {type(value).__name__} cannot be used here"
        )
    made: exp.Expression = exp.Literal.string(str(value))
    if kind in ("text", "unknown"):
        return made
    return exp.cast(made, types.storage_type(kind), dialect="duckdb")


def list_of(items: list[exp.Expression], element: str) -> exp.Expression:
    """Write a list of constants, typed also where it is empty."""
    return exp.cast(
        exp.Array(expressions=items), f"{types.storage_type(element)}[]", dialect="duckdb"
    )


def array_of(text: str, kind: str) -> exp.Expression:
    """Return the array that a literal such as '{a,"b c",NULL}' writes; a vector's has no braces."""
    element = types.element(kind) or "text"
    if kind in types.VECTORS:
        parts: list[str | None] = list(text.split())
    else:
        parts = _parts(text)
    return list_of([literal(part, element) for part in parts], element)


def _parts(text: str) -> list[str | None]:
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")) or "{" in body[1:-1].replace('"{', ""):
        raise CatalogError("22P02", f'malformed array literal: "{text[:50]}"')
    found: list[str | None] = []
    for quoted, plain in re.findall(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,|$)', body[1:-1]):
        if quoted or not plain:
            found.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            found.append(None if plain.strip().upper() == "NULL" else plain.strip())
    if body[1:-1].strip() == "":
        return []
    # The pattern also matches the empty end of the text, unless a comma stands there.
    if len(found) > 1 and found[-1] == "" and not body[1:-1].rstrip().endswith((",", '""')):
        return found[:-1]
    return found


def unescape(text: str) -> str:
    """Return the text that E'...' means."""
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), text, flags=re.DOTALL)


def number(value: int) -> exp.Expression:
    """Write out a number."""
    return exp.Literal.number(value)


def text(value: str) -> exp.Expression:
    """Write out a text."""
    return exp.Literal.string(value)
