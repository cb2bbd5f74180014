"""Report what became of a source's rows and values in a snapshot, for the curator alone.

What stands out says so, with what may be the cause and what to declare. A range that is chosen by
looking at it was read from the data: every report that shows clamped values says that, and what to
do instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from discreet.engines.duckdb.preparing.mending import UNREADABLE
from discreet.engines.snapshot import MUCH, ColumnReport, Snapshot, TableReport
from discreet.policy.domain import Booleans, Column, Dates, Decimals, Integers, Timestamps
from discreet.policy.owners import EachRow
from discreet.policy.policy import Policy, Table
from discreet.policy.reading import Reading

SHOUT = "! "
_READ = "read: {"
_FORMAT = "format: "
_INSTEAD = "  (and those that are read now would not: a column has one format)"
_REMINDER = (
    "What you read here comes from the data. A range or a list that you choose by looking at it is not covered by the "
    "promise: choose from what everybody knows, or pay for it (discreet bounds POLICY TABLE COLUMN --epsilon E)."
)


def report(snapshot: Snapshot, policy: Policy) -> list[str]:
    """Return the lines of a snapshot's report; those that must not be overlooked begin
    with SHOUT.
    """
    lines: list[str] = []
    for table in snapshot.tables:
        declared = policy.tables.get(table.name)
        if declared is not None:
            lines += _table(table, declared)
    changed = any(
        column.nulled or column.clamped or column.rounded
        for table in snapshot.tables
        for column in table.columns
    )
    return [*lines, *([_REMINDER] if changed else [])]


def _table(found: TableReport, declared: Table) -> Iterator[str]:
    if declared.public:
        yield f"{found.name}: {found.rows:,} rows, public"
        return
    lost = [f"{count:,} {why}" for count, why in _losses(found, declared) if count]
    beside = f" ({', '.join(lost)})" if lost else ""
    yield f"{SHOUT if few_kept(found) else ''}{found.name}: {found.kept:,} of {found.rows:,} rows kept{beside}"
    if few_kept(found):
        yield f"  {doubt(found, declared)}"
    owned = found.rows - found.ownerless
    for column in found.columns:
        yield from _column(column, declared, owned)
    whole = _whole_reading(found, declared, owned)
    if whole is not None:
        yield f"  for all of {found.name} together:  {whole}"


def _losses(found: TableReport, declared: Table) -> tuple[tuple[int, str], ...]:
    whose = " or ".join(declared.owner_columns)
    return (found.ownerless, f"without an owner in {whose}"), (
        found.truncated,
        f"beyond max_rows: {declared.max_rows}",
    )


def few_kept(found: TableReport) -> bool:
    """Return True if so many rows were dropped that the policy may not mean it."""
    return found.rows - found.kept > max(0.1 * found.rows, 0)


def doubt(found: TableReport, declared: Table) -> str:
    """Return why rows may have been dropped, and what to do about it."""
    share = 100 * found.kept / max(1, found.rows)
    kept = f"Only {share:.3g} % of the rows of {found.name} are in the snapshot."
    if found.ownerless > found.truncated or isinstance(declared.owner, EachRow):
        return f"{kept} Is the owner written otherwise in some rows, or missing? Rows without one are left out."
    owner = ", ".join(declared.owner_columns)
    return (
        f"{kept} Does {owner} tell people apart? If not, name what does, or `owner: row` where every row is somebody "
        f"else's. If it does, people have more rows than max_rows: {declared.max_rows} allows."
    )


def standing_out(found: TableReport) -> Iterator[str]:
    """Yield the columns of which much was not what the policy says, with how much."""
    rows = found.rows - found.ownerless
    for column in found.columns:
        if column.stands_out(rows):
            yield f"{found.name}.{column.name}: {'; '.join(_became(column, rows))}"


def _became(found: ColumnReport, rows: int) -> list[str]:
    parts = []
    if found.clamped:
        parts.append(
            f"{found.clamped:,} ({_share(found.clamped, rows)}) were outside the range and moved to its end"
        )
    if found.nulled:
        parts.append(
            f"{found.nulled:,} ({_share(found.nulled, rows)}) could not be read and became NULL"
        )
    if found.rounded:
        parts.append(
            f"{found.rounded:,} ({_share(found.rounded, rows)}) were changed by more than a tenth "
            "when they were rounded to the step"
        )
    return parts


def _column(found: ColumnReport, table: Table, rows: int) -> Iterator[str]:
    parts = _became(found, rows)
    declared = table.columns.get(found.name)
    if not parts:
        return
    yield f"  {SHOUT if found.stands_out(rows) else ''}{found.name}: {'; '.join(parts)}"
    for way, count in found.mended:
        instead = way.startswith(_FORMAT) and found.nulled < rows
        yield (
            f"      {count:,} would be read with  {_beside(table.read, way)}"
            f"{_INSTEAD if instead else ''}"
        )
    if declared is None:
        return
    if found.nulled > MUCH * rows and not found.mended:
        yield f"      {_hint(declared)}"
    if found.rounded > MUCH * rows:
        yield (
            "      Are they in another unit than the policy says? "
            "A finer step keeps them:  {decimal: [lo, hi], step: 0.01}"
        )


def _hint(column: Column) -> str:
    if isinstance(column.domain, Integers | Decimals):
        return "Words such as NA are NULL, as they should be. So are numbers with a unit: 5 kg."
    if isinstance(column.domain, Dates | Timestamps):
        if column.format is not None:
            return (
                f"Are all written as the policy says, in {column.format}? A column has one format."
            )
        return "Say how they are written:  format: '%d.%m.%Y'"
    if isinstance(column.domain, Booleans):
        return (
            "The words that are read are true, t, yes, y, 1 and false, f, no, n, 0. "
            "List others:  {values: [ja, nein]}"
        )
    return "Are all values listed, and written as in the source?"


def _whole_reading(found: TableReport, declared: Table, rows: int) -> str | None:
    """Return one `read:` with all that mends the columns; None where a column's own says it all."""
    ways = [
        column.mended[0][0]
        for column in found.columns
        if column.mended and column.stands_out(rows) and column.mended[0][0].startswith(_READ)
    ]
    if len(set(ways)) < 2 or UNREADABLE in ways:
        return None
    whole: Mapping[str, str] = {}
    for way in ways:
        whole = {**whole, **_keys(way)}
    return _beside(declared.read, _write(whole))


def _beside(read: Reading, way: str) -> str:
    """Return a `read:` with what the policy says already."""
    if not way.startswith(_READ) or way == UNREADABLE:
        return way
    said = {key: _spell(value) for key, value in read.meaning.items()}
    return _write({**said, **_keys(way)})


def _keys(way: str) -> dict[str, str]:
    pairs = way.removeprefix(_READ).rstrip("}").split(", ")
    return dict(pair.split(": ", maxsplit=1) for pair in pairs)


def _write(keys: Mapping[str, str]) -> str:
    return f"{_READ}{', '.join(f'{key}: {value}' for key, value in keys.items())}}}"


def _spell(value: object) -> str:
    return "true" if value is True else str(value)


def _share(count: int, rows: int) -> str:
    share = 100 * count / max(1, rows)
    return f"{share:.3g} %" if share >= 0.1 else "under 0.1 %"
