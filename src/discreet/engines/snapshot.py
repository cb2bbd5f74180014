"""The notes about a snapshot, alike on all engines: the policy for which it was made, and counts of
what happened to rows and values.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from discreet.engines.source import Fingerprint

MUCH = 0.02  # a larger part of a column's values, or of a table's rows, stands out in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """Counts of a column's values, in rows with an owner: how many were NULL, became NULL, were
    clamped, or changed by more than a tenth when they were rounded to the step.

    `mended` lists declarations that would read values which became NULL, with their number; the
    best first.
    """

    name: str
    missing: int
    nulled: int
    clamped: int
    rounded: int = 0
    mended: tuple[tuple[str, int], ...] = ()

    def stands_out(self, rows: int) -> bool:
        """Return True if more than a few of the values were changed to fit the policy."""
        return self.nulled + self.clamped + self.rounded > MUCH * rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """Counts of what happened to a table's rows. They are exact counts of people: for the curator,
    never for an analyst.
    """

    name: str
    rows: int
    kept: int
    ownerless: int
    truncated: int
    columns: tuple[ColumnReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The notes about a prepared snapshot: its number, the digest of its policy, its source, and
    the counts of each table.
    """

    number: int
    digest: str
    taken: str
    source: Fingerprint | None
    tables: tuple[TableReport, ...]
    rules: int = 1  # the version of layout.py's rules; notes of the first version have none


def write_notes(snapshot: Snapshot) -> str:
    """Write a snapshot's notes as JSON."""
    return json.dumps(asdict(snapshot))


def read_notes(text: str) -> Snapshot:
    """Read the notes that `write_notes` wrote; raise ValueError, KeyError or TypeError if they are
    damaged.
    """
    notes = json.loads(text)
    tables = []
    for table in notes["tables"]:
        columns = tuple(map(_column_report, table["columns"]))
        tables.append(TableReport(**{**table, "columns": columns}))
    return Snapshot(**{**notes, "tables": tuple(tables)})


def _column_report(noted: dict[str, Any]) -> ColumnReport:
    mended = tuple((str(way), int(count)) for way, count in noted.get("mended", ()))
    return ColumnReport(**{**noted, "mended": mended})
