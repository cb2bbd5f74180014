"""The place of a ledger: a file, or a PostgreSQL that several servers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file; or, with an `address`, tables in PostgreSQL, whose key and head files lie beside
    `path`.

    An address may hold a password. No message shows it: people read the name of `path`.
    """

    path: Path
    address: str | None = field(default=None, repr=False)


def place_of(where: str | Path | Place) -> Place:
    """Return a place; a path is a file."""
    return where if isinstance(where, Place) else Place(path=Path(where).resolve())
