"""The stores of ledgers: choose one, and write a whole ledger into it."""

from __future__ import annotations

from pathlib import Path

from discreet.errors import LedgerUnavailable
from discreet.ledger import chain
from discreet.ledger.head import head_path
from discreet.ledger.place import Place
from discreet.ledger.stores import postgres, sqlite
from discreet.ledger.stores.store import Kind, LedgerStore, Records


def store_of(place: Place, *, timeout: float) -> LedgerStore:
    """Return the store at a place, without opening it."""
    if place.address is not None:
        return postgres.LedgerTables(place, timeout=timeout)
    return sqlite.File(place.path, timeout=timeout)


def kind_of(place: Place) -> Kind:
    """Return the kind of store at a place."""
    return sqlite.File.kind if place.address is None else postgres.LedgerTables.kind


def is_there(place: Place) -> bool:
    """Return True if there is a ledger at the place."""
    return place.path.exists() if place.address is None else postgres.is_there(place)


def require_room(place: Place, *, beside: bool = True) -> None:
    """Refuse a place that has a ledger, or with `beside`, a key or head file."""
    files = [chain.key_path(place.path), head_path(place.path)] if beside else []
    if place.address is None:
        files += [place.path, *sqlite.companions(place.path)]
    else:
        postgres.require_room(place)
    for taken in files:
        if taken.exists():
            raise LedgerUnavailable(
                f"{taken.name} is already there, and a ledger is never overwritten: open it, or move its files away."
            )


def establish(place: Place, records: Records, *, keys: bytes, head: str) -> None:
    """Write a whole ledger to an empty place, or nothing.

    Write the key and head files first, unless they are there; then all records.
    """
    made: list[Path] = []
    try:
        for file, content in (
            (chain.key_path(place.path), keys),
            (head_path(place.path), head.encode()),
        ):
            if not file.exists():
                chain.write_new(file, content)
                made.append(file)
            elif file == chain.key_path(place.path) and file.read_bytes() != content:
                raise LedgerUnavailable(f"{file.name} is the key of another ledger: move it away.")
        if place.address is None:
            sqlite.build(place.path, records)
        else:
            postgres.build(place, records)
        chain.sync_folder(place.path.parent)
    except BaseException as error:
        for file in made:
            file.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise LedgerUnavailable(
                f"{place.path.name} cannot be made here: {error.strerror}."
            ) from error
        raise
