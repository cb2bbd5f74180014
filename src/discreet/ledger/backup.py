"""Back up a ledger as of one moment, restore a copy, and move a ledger to another store.

Privacy: a restored copy may lack charges made after the backup, although their answers are out. So
unless an exported head proves that the copy is the newest, it is restored with nothing left to
spend, and on a new snapshot, on which no open charge resumes. The curator says by `amend` how much
may be spent again.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger.book import Ledger
from discreet.ledger.head import Head
from discreet.ledger.place import Place, place_of
from discreet.ledger.stores import kind_of, require_room


def backup(ledger: str | Path | Place, folder: Path) -> int:
    """Copy a ledger, its key and its head into a new folder, and verify the copy.

    Return the number of rows.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(
            f"{folder} is there already. Name a new folder: a backup overwrites nothing."
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
    except FileNotFoundError:
        raise UsageError(f"There is no folder {folder.parent}. Make it first.") from None
    except OSError as error:
        raise UsageError(f"The backup cannot be written to {folder}: {error.strerror}.") from None
    place = place_of(ledger)
    copy = folder / place.path.name
    with Ledger.open(place) as book:
        book.copy(place_of(copy))
    with Ledger.open(copy, away=True) as book:
        return book.verify()


def restore(folder: Path, ledger: str | Path | Place, *, head: Head | None) -> bool:
    """Restore a backup to a place without a ledger.

    Return True if `head` proves that the backup is the newest copy.
    """
    place = place_of(ledger)
    source = folder / place.path.name
    if not source.is_file():
        raise UsageError(
            f"There is no {place.path.name} in {folder}. Name a folder that --backup wrote."
        )
    require_room(place)
    with Ledger.open(source, away=True) as book:
        newest = head is not None and _is_last(book, head)
        book.verify()
        book.copy(place)
    with Ledger.open(place, away=True) as book:
        if book.home != kind_of(place):
            book.move_to(kind_of(place))
        if not newest:
            _, shares = book.limits
            book.amend(limit=book.spent(), analysts={name: book.spent(name) for name in shares})
            book.new_snapshot()
        book.verify()
    return newest


def move(source: Place, target: Place) -> int:
    """Move a ledger from a file to PostgreSQL or back; return its number of rows.

    First append the row that ends spending at the source, then copy all rows: at no moment can both
    spend. If the move is interrupted, run it again.
    """
    kind = kind_of(target)
    if kind == kind_of(source):
        raise UsageError(
            "A ledger moves from a file to PostgreSQL or back. Name a file or postgresql://..."
        )
    with Ledger.open(source, away=True) as book:
        book.verify()
        moved = book.home == kind
        require_room(target, beside=not moved and source.path != target.path)
        if not moved:
            book.move_to(kind)
        book.copy(target)
    with Ledger.open(target) as book:
        return book.verify()


def _is_last(book: Ledger, head: Head) -> bool:
    """Return True if an exported head is the copy's last row: no later row is known."""
    try:
        book.verify(head)
    except LedgerUnavailable:
        return False
    return bool(int(head["number"]) == book.head()["number"])
