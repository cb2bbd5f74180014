"""The protocol of a ledger's store: it keeps bytes and does not interpret them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["file", "postgresql"]
RowText = tuple[int, str, bytes]  # number, body, MAC


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """All records of a store, to write into another store."""

    rows: Iterable[RowText]
    keys: Iterable[tuple[int, bytes]] = ()
    answers: Iterable[tuple[int, int, bytes, bytes]] = ()
    contents: Iterable[tuple[int, bytes]] = ()


class LedgerStore(Protocol):
    """Keeps rows, sealed keys, answers and contents of streams.

    Call all methods but `require_present` and `close` inside a transaction. Every failure is a
    LedgerUnavailable that says what to do.
    """

    kind: Kind
    appended: tuple[int, bytes]  # the last row of this transaction
    written: tuple[int, bytes]  # the last row that this process has committed
    # how often a commit failed after later transactions of this process had seen its rows
    undone: int

    def transaction(self, *, write: bool) -> AbstractContextManager[None]:
        """Run the block as one transaction; after a write returns, it is on disk."""

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
        """Yield each charge that has a sealed key, with the key."""

    def keep_answer(self, charge: int, post: int, question: bytes, answer: bytes) -> None: ...
    def post_of(self, charge: int) -> int | None:
        """Return the number of the row that posted this charge's answer, or None."""

    def answer(self, charge: int) -> bytes: ...
    def answers_to(self, question: bytes) -> list[tuple[int, int]]:
        """Return the charges that answered this question, each with the row that posted it."""

    def answers(self) -> Iterator[tuple[int, int, bytes, bytes]]: ...

    def keep_content(self, row: int, content: bytes) -> None:
        """Keep the content of a stream's row, which is too long for the row itself."""

    def content(self, row: int) -> bytes: ...
    def contents(self) -> Iterator[tuple[int, bytes]]: ...

    def damage(self) -> str | None:
        """Return what the store finds wrong with its pages, indexes or tables, or None."""

    def sync_log(self) -> None:
        """Fsync what other processes wrote: one of them may have been killed before its fsync."""
