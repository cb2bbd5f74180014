"""Read and write the chain: a store, its keys, and the balance of all rows checked so far.

`book` does everything in a `session`: one transaction that begins by checking and adding up the
rows that other processes appended. A journal never goes back: the last row that it has seen must
still be there.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hmac import compare_digest
from time import sleep
from typing import Any

from discreet.errors import LedgerUnavailable, UsageError
from discreet.ledger import chain
from discreet.ledger.balance import Balance
from discreet.ledger.chain import Row, canonical, digest
from discreet.ledger.head import Head, head_of, head_parts, head_text, read_head
from discreet.ledger.place import Place
from discreet.ledger.stores import establish, kind_of, require_room, store_of
from discreet.ledger.stores.store import Records

FORMAT = 1
_HOMES = {"file": "a file", "postgresql": "PostgreSQL"}


def begin(place: Place, body: Mapping[str, Any]) -> None:
    """Create a key, a head and a ledger whose first row is `body`; refuse if one of them exists."""
    require_room(place)
    key = chain.Key(secret=chain.fresh_secret())
    ledger = chain.fresh_secret()[:16].hex()
    home = {} if place.address is None else {"home": kind_of(place)}
    text = canonical({**body, **home, "format": FORMAT, "ledger": ledger, "when": now()})
    mac = key.mac(1, chain.FIRST, text)
    establish(
        place, Records(rows=[(1, text, mac)]), keys=key.secret, head=head_text(ledger, 1, mac)
    )


class Journal:
    """The rows of an open ledger; opening checks all of them.

    A ledger that was moved away is refused, unless `away` is set: then it can be read, to copy or
    verify it.
    """

    def __init__(self, place: Place, *, timeout: float, away: bool = False) -> None:
        self._away = away
        self.file = store_of(place, timeout=timeout)
        self.file.require_present()
        self.path = place.path
        self.keys = chain.read_keys(self.path)
        self._balance = Balance(self.path.name)
        self._adding = False
        self._undone = 0
        self._known = (0, b"")  # the last row seen in a finished transaction
        self.require_own_head()

    @contextmanager
    def session(self, *, write: bool) -> Iterator[Balance]:
        """Open one transaction and yield the balance of all rows before it."""
        with self.file.transaction(write=write):
            self._catch_up()
            self._require_home()
            seen = self._balance.number, self._balance.mac
            yield self._balance
        self._known = max(self._known, seen)

    def _catch_up(self) -> None:
        known = max(self._known, self.file.written)
        if self._undone == self.file.undone:
            known = max(known, (self._balance.number, self._balance.mac))
        else:  # the balance may hold rows that never reached the disk
            self._adding = True
            self._undone = self.file.undone
        if self._adding:  # interrupted: half of a row may be in the sums, so begin again
            self._balance = Balance(self.path.name)
        balance = self._balance
        rows = self._chain(
            self.file.rows(balance.number + 1), balance.number, balance.mac, balance.key
        )
        self._adding = True
        for row in rows:
            balance.add(row)
        self._adding = False
        balance.require(balance.number > 0, 1, "is missing")
        if known[0] and not self._has(*known):
            raise self._set_back(known[0])

    def _require_home(self) -> None:
        # Privacy: one budget is spent in one place. A row of the chain says where, so every copy
        # knows it.
        if self._balance.home != self.file.kind and not self._away:
            home = _HOMES.get(self._balance.home, self._balance.home)
            raise LedgerUnavailable(
                f"{self.path.name} was moved to {home}: name it there in the policy. Nothing is answered here."
            )

    def append(self, body: Mapping[str, Any]) -> int:
        """Append one row; a session appends at most one."""
        balance = self._balance
        row = balance.number + 1
        text = canonical({**body, "when": now()})
        key = body["key"] if body["kind"] == "key" else balance.key
        mac = self.keys[key].mac(row, balance.mac, text)
        self.file.append(row, text, mac, head=head_text(balance.ledger, row, mac))
        return row

    def rows(self) -> Iterator[Row]:
        """Check and yield every row from the first on."""
        return self._chain(self.file.rows(1), 0, chain.FIRST, 0)

    def row(self, number: int) -> Row:
        """Return one row, after checking its MAC against the row before it."""
        found = list(self.file.rows_between(number - 1, number))
        if not found or found[-1][0] != number:
            raise self._balance.broken(number, "is missing")
        before = found[0][2] if len(found) == 2 else chain.FIRST
        key = bisect_right(self._balance.keys_from, number) - 1
        return next(self._chain(iter(found[-1:]), number - 1, before, key))

    def _chain(
        self, rows: Iterator[tuple[int, str, bytes]], number: int, mac: bytes, key: int
    ) -> Iterator[Row]:
        """Check and yield the rows that follow row `number`, whose MAC is `mac`."""
        for found, text, own in rows:
            number += 1
            body = self._parse(number, text)
            key = body["key"] if body.get("kind") == "key" else key
            mac = self._key(key, number).mac(number, mac, text)
            if found != number or not compare_digest(own, mac):
                raise self._forgery(number)
            yield Row(number=number, body=body, mac=mac)

    def _parse(self, number: int, text: str) -> dict[str, Any]:
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise self._forgery(number)
        return body

    def _key(self, index: object, number: int) -> chain.Key:
        if index == len(self.keys):  # another process may have rotated
            self.keys = chain.read_keys(self.path)
        if index == len(self.keys) and self.file.kind == "postgresql":
            raise LedgerUnavailable(
                f"The key of {self.path.name} was rotated on another server: copy {self.path.name}.key from there."
            )
        if not isinstance(index, int) or not 0 <= index < len(self.keys):
            raise self._forgery(number)
        return self.keys[index]

    def records(self) -> Records:
        """Return all records, as they are stored."""
        file = self.file
        return Records(
            rows=file.rows(1),
            keys=file.sealed_keys(),
            answers=file.answers(),
            contents=file.contents(),
        )

    def seal(self, charge: int, secret: bytes, *, key: int) -> None:
        self.file.keep_key(
            charge, self.keys[key].seal(secret, ledger=self._balance.ledger, charge=charge)
        )

    def unsealed(self, charge: int) -> bytes:
        sealed = self.file.key(charge)
        key = self.keys[self._balance.key]
        secret = (
            None
            if sealed is None
            else key.unseal(sealed, ledger=self._balance.ledger, charge=charge)
        )
        if secret is None:
            raise self._balance.broken(charge, "has lost its sealed key")
        return secret

    def add_key(self) -> int:
        """Return the index of the next key; create it, unless an interrupted rotation left one."""
        index = self._balance.key + 1
        if index == len(self.keys):
            self.keys += (chain.add_key(self.path),)
        return index

    def require_own_head(self) -> None:
        """Refuse a ledger that is behind its `.head` file.

        Another process may be writing that file, so try three times.
        """
        for pause in (0.005, 0.005, 0):
            # Read the head before the rows: other processes only move it forward.
            head = self._own_head()
            with self.session(write=False) as balance:
                if head is not None and head[0] == balance.ledger and self._has(*head[1:]):
                    return
            sleep(pause)
        if head is None or head[0] != balance.ledger:
            raise LedgerUnavailable(
                f"{self.path.name}.head is damaged: copy the newest exported head there."
            )
        raise self._set_back(head[1])

    def _own_head(self) -> tuple[str, int, bytes] | None:
        """Return the head in the file beside the key; None if the file cannot be read as one."""
        try:
            return head_parts(json.loads(read_head(self.path)))
        except (ValueError, TypeError, KeyError):
            return None

    def require_head(self, head: Head) -> None:
        """Refuse unless this ledger has the head's row, with the head's MAC."""
        try:
            ledger, row, mac = head_parts(head)
        except (ValueError, TypeError, KeyError):
            raise UsageError(
                "A head is what --export-head writes: JSON with ledger, number and mac."
            ) from None
        if ledger != self._balance.ledger:
            raise LedgerUnavailable(
                f"That head is of another ledger than {self.path.name}: look for the right files."
            )
        if not self._has(row, mac):
            raise self._set_back(row)

    def _has(self, row: int, mac: bytes) -> bool:
        known = 0 < row <= self._balance.number
        return known and [found[2] for found in self.file.rows_between(row, row)] == [mac]

    def rotated(self) -> bool:
        """Return True if the newest key is in use; wait for a process that is rotating keys."""
        with self.session(write=False) as balance:
            if balance.key == len(self.keys) - 1:
                return True
        with self.session(write=True) as balance:
            return balance.key == len(self.keys) - 1

    def verify(self) -> None:
        """Check the whole ledger again, in a session: pages, rows, sums, answers and sealed keys,
        and that nothing else is stored.
        """
        damage = self.file.damage()
        if damage is not None:
            raise LedgerUnavailable(
                f"{self.path.name} is damaged ({damage}): restore it from a backup."
            )
        again = Balance(self.path.name)
        posts = dict[int, tuple[Row, bytes]]()
        for row in self.rows():
            if row.body["kind"] == "post" and row.body["charge"] in again.open:
                posts[row.body["charge"]] = row, again.open[row.body["charge"]].question
            again.add(row)
        same = (again.number, again.mac) == (self._balance.number, self._balance.mac)
        again.require(same, again.number, "is not the last")
        again.require(self.file.count() == again.number, again.number, "is not alone in its place")
        self._verify_answers(again, posts)
        self._verify_contents(again)
        for charge in again.open:
            self.unsealed(charge)
        sealed = [charge for charge, _ in self.file.sealed_keys()]
        again.require(
            sealed == sorted(again.open), again.number, "is followed by keys of no open charge"
        )

    def _verify_answers(self, balance: Balance, posts: dict[int, tuple[Row, bytes]]) -> None:
        for charge, post, question, answer in self.file.answers():
            row, asked = posts.pop(charge, (None, b""))
            posted = row is not None and (post, question) == (row.number, asked)
            fits = posted and row is not None and row.body["answer"] == digest(answer)
            balance.require(fits, charge, "has an answer that was not posted")
        for charge in posts:
            raise balance.broken(charge, "has lost its answer")

    def _verify_contents(self, balance: Balance) -> None:
        """Check that every row of a stream has its stored content, and no other row has one."""
        rows = set[int]()
        for steps in balance.streams.values():
            rows.update(steps.frozen, steps.published)
        for row, content in self.file.contents():
            fits = row in rows and self.row(row).body["content"] == digest(content)
            balance.require(fits, row, "does not belong to what is stored with it")
            rows.discard(row)
        for row in rows:
            raise balance.broken(row, "has lost what was stored with it")

    def _forgery(self, number: int) -> LedgerUnavailable:
        if number > 1:
            return self._balance.broken(number, "was not written with this ledger's key")
        return LedgerUnavailable(
            f"{self.path.name}.key is not the key of {self.path.name}, or the ledger's first row was changed: put the "
            "right files back from a backup. Nothing is answered."
        )

    def _set_back(self, number: int) -> LedgerUnavailable:
        return LedgerUnavailable(
            f"{self.path.name} once had row {number} and no longer has it: it was set back to an older copy, or its "
            "log was lost. Put the newest copy back, with its -wal file (docs/ledger.md, Restore)."
        )


def exported(balance: Balance) -> dict[str, Any]:
    return head_of(balance.ledger, balance.number, balance.mac)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
