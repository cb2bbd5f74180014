"""Find declarations that would read values which became NULL, for the curator's report of a
snapshot.

What is found here is told to the curator and decides nothing: no value is read in another way than
the policy says.
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
    """Return the SQL of a text `source` that is not read as the policy has it."""
    now = encode.form_of(
        column.domain, source, "VARCHAR", lookup=lookup, read=read, format=column.format
    )
    return f"({now.value}) IS NULL"


def mendings(column: Column, source: str, read: Reading, *, lookup: str) -> dict[str, str]:
    """Return by declaration the SQL of a text `source`, unread so far, that would be read
    with it.
    """
    text = f"CAST({source} AS VARCHAR)"
    found = {UNREADABLE: f"{source} IS NULL"}
    for way, reads in _ways(column, read).items():
        cleaned = encode.trim(text) if reads.trim else text
        # A long list is in a table, folded as the policy says; without it a list is written out,
        # whatever its length.
        mended = encode.form_of(
            _short(column), cleaned, "VARCHAR", lookup=lookup, read=reads, format=column.format
        )
        found[way] = f"({mended.value}) IS NOT NULL"
    if isinstance(column.domain, Dates | Timestamps):
        cleaned = encode.trim(text)
        times = ("",) if isinstance(column.domain, Dates) else _TIMES
        for format in (day + time for time in times for day in _DAYS):
            found[f"format: '{format}'"] = f"try_strptime({cleaned}, '{format}') IS NOT NULL"
    return found


def _short(column: Column) -> Categories | Integers | Decimals | Dates | Timestamps:
    """Return the domain; of a long list its first values, which are enough to see how it is
    written.
    """
    domain = column.domain
    assert isinstance(domain, Categories | Integers | Decimals | Dates | Timestamps)
    if isinstance(domain, Categories) and encode.is_long(domain):
        return Categories(values=domain.values[:16])
    return domain


def _ways(column: Column, read: Reading) -> dict[str, Reading]:
    """List what could be declared beside what is declared."""
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
    """Return the declarations that read the most, at most two: where there are two, days and months
    may be in either order.
    """
    most = max(mended.values(), default=0)
    best = [way for way, count in mended.items() if count == most > 0]
    # {fold: case} alone, where {trim: true, fold: case} reads no more
    enough = [way for way in best if not any(_keys(other) < _keys(way) for other in best)]
    return tuple((way, most) for way in enough)[:2]


def _keys(way: str) -> frozenset[str]:
    """Return the keys and values of a `read:`; a format whole."""
    written = way.partition("{")[2]
    return frozenset(written.rstrip("}").split(", ") if written else (way,))
