"""The notes about a snapshot, on whichever engine: the policy it was made for, and what was found
on the way.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from discreet.engines.source import Fingerprint

MUCH = 0.02  # of a column's values, or of a table's rows: more of them stand out in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """Counts of a column's values (in rows with an owner) that were NULL, became NULL, were
    clamped, or were changed by more than a tenth when rounded to the step.

    `mended` are declarations that would read values which became NULL, and of how many; the best
    first.
    """

    name: str
    missing: int
    nulled: int
    clamped: int
    rounded: int = 0
    mended: tuple[tuple[str, int], ...] = ()

    def stands_out(self, rows: int) -> bool:
        """Return True if more of the values than a few were not what the policy says."""
        return self.nulled + self.clamped + self.rounded > MUCH * rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """Counts of what became of a table's rows. Counts about people: for the curator, never for an
    analyst.
    """

    name: str
    rows: int
    kept: int
    ownerless: int
    truncated: int
    columns: tuple[ColumnReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A prepared snapshot: its number, the policy it was made for, the source it was made from,
    what was found.
    """

    number: int
    digest: str
    taken: str
    source: Fingerprint | None
    tables: tuple[TableReport, ...]
    rules: int = 1  # notes of before there was a number have none


def write_notes(snapshot: Snapshot) -> str:
    """Write a snapshot's notes as JSON."""
    return json.dumps(asdict(snapshot))


def read_notes(text: str) -> Snapshot:
    """Read the notes that `write_notes` wrote; raise ValueError, KeyError or TypeError where they
    are damaged.
    """
    found = json.loads(text)
    tables = tuple(
        TableReport(**{**table, "columns": tuple(map(_column_report, table["columns"]))})
        for table in found["tables"]
    )
    return Snapshot(**{**found, "tables": tables})


def _column_report(noted: dict[str, Any]) -> ColumnReport:
    mended = tuple((str(way), int(count)) for way, count in noted.get("mended", ()))
    return ColumnReport(**{**noted, "mended": mended})
