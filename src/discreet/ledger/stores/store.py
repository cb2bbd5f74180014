"""The protocol of a ledger's store. It keeps bytes and never looks into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["file", "postgresql"]
RowText = tuple[int, str, bytes]  # number, body, MAC


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Everything that a store keeps, to be written into another store."""

    rows: Iterable[RowText]
    keys: Iterable[tuple[int, bytes]] = ()
    answers: Iterable[tuple[int, int, bytes, bytes]] = ()
    contents: Iterable[tuple[int, bytes]] = ()


class LedgerStore(Protocol):
    """Rows, sealed keys, answers and contents; all but `require_present` and `close` inside a
    transaction.

    Whatever goes wrong is one LedgerUnavailable that says what to do.
    """

    kind: Kind
    appended: tuple[int, bytes]  # the last row of this transaction
    written: tuple[int, bytes]  # the last row that this process has brought to the disk
    # how often rows that a later transaction of this process saw did not come to the disk after all
    undone: int

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """All of the block or nothing; when a write returns, it is on the disk."""

    def require_present(self) -> None: ...
    def close(self) -> None: ...

    def rows(self, start: int) -> Iterator[RowText]: ...
    def rows_between(self, first: int, last: int) -> Iterator[RowText]: ...
    def count(self) -> int: ...
    def append(self, number: int, body: str, mac: bytes, *, head: str) -> None: ...

    def keep_key(self, charge: int, sealed: bytes) -> None: ...
    def erase_key(self, charge: int) -> None: ...
    def key(self, charge: int) -> bytes | None: ...
    def sealed_keys(self) -> Iterator[tuple[int, bytes]]:
        """Yield the charges that have a sealed key, and it."""

    def keep_answer(self, charge: int, post: int, question: bytes, answer: bytes) -> None: ...
    def post_of(self, charge: int) -> int | None:
        """Return the number of the row that posted this charge's answer."""

    def answer(self, charge: int) -> bytes: ...
    def answers_to(self, question: bytes) -> list[tuple[int, int]]:
        """Return the charges that have answered this question, and the rows that posted them."""

    def answers(self) -> Iterator[tuple[int, int, bytes, bytes]]: ...

    def keep_content(self, row: int, content: bytes) -> None:
        """Keep what belongs to a row of a stream and is too long to stand in it."""

    def content(self, row: int) -> bytes: ...
    def contents(self) -> Iterator[tuple[int, bytes]]: ...

    def damage(self) -> str | None:
        """Say what the store itself finds wrong with its pages, indexes or tables."""

    def sync_log(self) -> None:
        """Bring what others wrote to the disk: one of them may have been killed before it did."""
