"""Suggest declarations that would read values which became NULL, for the curator's report of a
snapshot.

The suggestions change nothing: values are read only as the policy says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from discreet.engines.duckdb.preparing import encode
from discreet.policy.domain import Categories, Column, Dates, Decimals, Integers, Timestamps
from discreet.policy.reading import Reading

UNREADABLE = "read: {encoding: latin-1}, or whatever its files are written in"
_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *(
        "%d.%m.%y",
        "%d/%m/%y",
        "%m/%d/%y",
        "%d %b %Y",
        "%b %d, %Y",
        "%d %B %Y",
        "%B %d, %Y",
        "%d-%b-%Y",
        "%d%b%Y",
    ),
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")


def unread(column: Column, source: str, read: Reading, *, lookup: str) -> str:
    """Return the SQL condition that the policy's way of reading makes NULL of a text `source`."""
    form = encode.form_of(
        column.domain, source, "VARCHAR", lookup=lookup, read=read, format=column.format
    )
    return f"({form.value}) IS NULL"


def mendings(column: Column, source: str, read: Reading, *, lookup: str) -> dict[str, str]:
    """Return for each possible declaration the SQL condition that it would read a text `source`,
    which became NULL.
    """
    text = f"CAST({source} AS VARCHAR)"
    conditions = {UNREADABLE: f"{source} IS NULL"}
    for way, reads in _ways(column, read).items():
        cleaned = encode.trim(text) if reads.trim else text
        # A long list would be looked up in a table, which is folded as the policy says now. A short
        # one is written into the SQL.
        form = encode.form_of(
            _short(column), cleaned, "VARCHAR", lookup=lookup, read=reads, format=column.format
        )
        conditions[way] = f"({form.value}) IS NOT NULL"
    if isinstance(column.domain, Dates | Timestamps):
        cleaned = encode.trim(text)
        times = ("",) if isinstance(column.domain, Dates) else _TIMES
        for format in (day + time for time in times for day in _DAYS):
            condition = f"try_strptime({cleaned}, '{format}') IS NOT NULL"
            conditions[f"format: '{format}'"] = condition
    return conditions


def _short(column: Column) -> Categories | Integers | Decimals | Dates | Timestamps:
    """Return the domain; of a long list only the first values, which are enough to see how values
    are written.
    """
    domain = column.domain
    assert isinstance(domain, Categories | Integers | Decimals | Dates | Timestamps)
    if isinstance(domain, Categories) and encode.is_long(domain):
        return Categories(values=domain.values[:16])
    return domain


def _ways(column: Column, read: Reading) -> dict[str, Reading]:
    """Return other ways of reading a column, by the declaration that the policy would need."""
    if not isinstance(column.domain, Categories | Integers | Decimals | Dates | Timestamps):
        return {}
    changes: list[dict[str, object]] = []
    if isinstance(column.domain, Categories) and read.fold is None:
        changes.append({"fold": "case"})
    if isinstance(column.domain, Integers | Decimals):
        changes += [{"decimal": each} for each in ("comma", "point") if each != read.decimal]
    if not read.trim:
        changes = [{"trim": True}, *changes, *({"trim": True, **change} for change in changes)]
    return {_write(change): replace(read, **change) for change in changes}  # type: ignore[arg-type]


def _write(change: dict[str, object]) -> str:
    listed = ", ".join(
        f"{key}: {'true' if value is True else value}" for key, value in change.items()
    )
    return f"read: {{{listed}}}"


def best_of(mended: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the declarations that read the most values, with their number: at most two. Two are
    equally good if days and months may be in either order.
    """
    most = max(mended.values(), default=0)
    best = [way for way, count in mended.items() if count == most > 0]
    # leave out {trim: true, fold: case} if {fold: case} alone reads as many
    enough = [way for way in best if not any(_keys(other) < _keys(way) for other in best)]
    return tuple((way, most) for way in enough)[:2]


def _keys(way: str) -> frozenset[str]:
    """Return the keys and values that a `read:` declares, or a `format:` as a whole."""
    written = way.partition("{")[2]
    return frozenset(written.rstrip("}").split(", ") if written else (way,))
