"""The place of a ledger: a file, or a PostgreSQL that several servers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file; or, with an `address`, tables in PostgreSQL. Key and head files lie beside `path`.

    An address may hold a password, so no message shows it: messages name `path`.
    """

    path: Path
    address: str | None = field(default=None, repr=False)


def place_of(where: str | Path | Place) -> Place:
    """Return a place; a path stands for a file."""
    return where if isinstance(where, Place) else Place(path=Path(where).resolve())
