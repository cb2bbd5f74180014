"""Copies of a ledger: whole, of one moment, for this account alone; and how one is put back.

Privacy: a ledger that is put back may lack charges that were made after it was copied, and what they bought is out. So
one that is not proved to be the newest, by an exported head that lies on it, is put back with nothing left to spend and
on a new snapshot, on which no open charge goes on. Its curator says by `amend` what may be spent again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger import chain, sqlite
from discreet.ledger.book import Ledger


def backup(path: Path, folder: Path) -> int:
    """Copy a ledger, its key and its head into a new folder, and check the copy. Returns its number of rows."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already. Name a new folder: a backup overwrites nothing.")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        copy = folder / path.name
        with Ledger.open(path) as book:
            head = book.copy(copy)
        chain.write_new(chain.key_path(copy), chain.key_path(path).read_bytes())
        chain.write_new(sqlite.head_path(copy), head.encode())
        chain.sync_folder(folder)
    except OSError as error:
        raise UsageError(f"The backup cannot be written to {folder}: {error.strerror}.") from None
    with Ledger.open(copy) as book:
        return book.verify()


def restore(folder: Path, path: Path, *, head: Mapping[str, Any] | None) -> bool:
    """Put a backup in a ledger's place, where there is none; says whether it is proved to be the newest."""
    source = folder / path.name
    if not source.is_file():
        raise UsageError(f"There is no {path.name} in {folder}. Name a folder that --backup wrote.")
    for taken in (path, chain.key_path(path), sqlite.head_path(path), *sqlite.companions(path)):
        if taken.exists():
            raise LedgerUnavailable(f"{taken.name} is there, and a ledger is never overwritten: move its files away.")
    with Ledger.open(source) as book:
        newest = head is not None and _lies_on(book, head)
        book.verify()
        text = book.copy(path)
    try:
        chain.write_new(chain.key_path(path), chain.key_path(source).read_bytes())
        chain.write_new(sqlite.head_path(path), text.encode())
        chain.sync_folder(path.parent)
    except OSError as error:
        raise LedgerUnavailable(f"{path.name} cannot be put back: {error.strerror}.") from None
    with Ledger.open(path) as book:
        if not newest:
            _, shares = book.limits
            book.amend(limit=book.spent(), analysts={name: book.spent(name) for name in shares})
            book.new_snapshot()
        book.verify()
    return newest


def _lies_on(book: Ledger, head: Mapping[str, Any]) -> bool:
    """Whether an exported head is the copy's last row: then nothing was written after it, as far as anybody knows."""
    try:
        book.verify(head)
    except LedgerUnavailable:
        return False
    return bool(int(head["number"]) == book.head()["number"])
