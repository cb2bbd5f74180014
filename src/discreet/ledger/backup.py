"""Back up a ledger whole and as of one moment, put a copy back, and move a ledger to another place.

Privacy: a ledger that is put back may lack charges that were made after it was copied, and what
they bought is out. So one that is not proved to be the newest, by an exported head that lies on it,
is put back with nothing left to spend and on a new snapshot, on which no open charge goes on. Its
curator says by `amend` what may be spent again.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger.book import Ledger
from discreet.ledger.head import Head
from discreet.ledger.place import Place, place_of
from discreet.ledger.stores import kind_of, require_room


def backup(ledger: str | Path | Place, folder: Path) -> int:
    """Copy a ledger, its key and its head into files in a new folder, and check them. Returns the
    number of rows.
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
    """Put a backup in a ledger's place, where there is none; says whether it is proved to be the
    newest.
    """
    place = place_of(ledger)
    source = folder / place.path.name
    if not source.is_file():
        raise UsageError(
            f"There is no {place.path.name} in {folder}. Name a folder that --backup wrote."
        )
    require_room(place)
    with Ledger.open(source, away=True) as book:
        newest = head is not None and _lies_on(book, head)
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
    """Move a ledger from a file to PostgreSQL or back; returns its number of rows. Interrupted, it
    is run again.

    The row that ends spending at the source comes first, and is copied with the others: at no
    moment do both spend.
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


def _lies_on(book: Ledger, head: Head) -> bool:
    """Say whether an exported head is the copy's last row: then nothing is known to have been
    written after it.
    """
    try:
        book.verify(head)
    except LedgerUnavailable:
        return False
    return bool(int(head["number"]) == book.head()["number"])
