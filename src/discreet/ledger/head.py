"""The head of a ledger: the number and MAC of its last row.

A file beside the key holds it, so that an older copy of the ledger is noticed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discreet.errors import LedgerUnavailable

Head = Mapping[str, Any]


def head_path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + ".head")


def head_of(ledger: str, number: int, mac: bytes) -> dict[str, Any]:
    return {"ledger": ledger, "number": number, "mac": mac.hex()}


def head_parts(head: Head) -> tuple[str, int, bytes]:
    return str(head["ledger"]), int(head["number"]), bytes.fromhex(head["mac"])


def head_text(ledger: str, number: int, mac: bytes) -> str:
    """Return a head as JSON text of fixed length, so that the file can be overwritten in place."""
    return f'{{"ledger": "{ledger}", "number": {number:12}, "mac": "{mac.hex()}"}}\n'


def write_head(ledger: Path, text: str) -> None:
    """Write the head file, without fsync: after a power cut it may be older than the ledger, never
    newer.
    """
    try:
        descriptor = os.open(head_path(ledger), os.O_WRONLY)
        try:
            os.pwrite(descriptor, text.encode(), 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LedgerUnavailable(
            f"{head_path(ledger).name} cannot be written ({error.strerror}): make it writable."
        ) from error


def read_head(ledger: Path) -> str:
    try:
        return head_path(ledger).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise LedgerUnavailable(
            f"{head_path(ledger).name} is missing or unreadable: put it back from where the ledger was, or copy "
            "the newest exported head there. Without it nobody can tell whether this ledger is up to date."
        ) from error
