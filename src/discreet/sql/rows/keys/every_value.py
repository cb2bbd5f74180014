"""Write tables of all values that the policy allows for columns, as SQL."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from discreet.policy.domain import (
    Booleans,
    Categories,
    Dates,
    Decimals,
    Domain,
    Integers,
    Timestamps,
)
from discreet.sql.rows.keys.lying_in import Combinations
from discreet.sql.text.parse import quote


def product(columns: Mapping[str, str], known: Combinations | None) -> str:
    """Return a SELECT of all combinations of values; `columns` has a SELECT for each column.

    Columns in `known` have only the combinations there.
    """
    names = ["'all' AS \"#owner\"", *map(quote, columns)]
    together = () if known is None else known.columns
    sources = []
    for index, (name, sql) in enumerate(columns.items()):
        if name not in together:
            sources.append(f"({sql}) AS v{index}({quote(name)})")
    if known is not None:
        sources.append(f"({known.sql}) AS known({', '.join(map(quote, together))})")
    if not sources:
        return f"SELECT {', '.join(names)}"
    return f"SELECT {', '.join(names)} FROM {', '.join(sources)}"


def values(domain: Domain) -> str | None:
    """Return a SELECT of all values that a stored column may have, and NULL; None for texts."""
    match domain:
        case Integers() | Decimals():
            values_range = f"range({domain.first}, {domain.last + 1})"
            select = f"SELECT CAST(x AS BIGINT) FROM {values_range} AS r(x)"
        case Categories(values=values):
            select = f"SELECT CAST(x AS BIGINT) FROM range({len(values)}) AS r(x)"
        case Booleans():
            select = "SELECT TRUE UNION ALL SELECT FALSE"
        case Dates(lo=lo, hi=hi):
            days = (hi - lo).days
            select = f"SELECT DATE '{lo}' + CAST(x AS INTEGER) FROM range({days + 1}) AS r(x)"
        case Timestamps(lo=start, hi=end, step=step):
            length = int((end - start) / timedelta(microseconds=1))
            microseconds = int(step * 1_000_000)
            select = (
                f"SELECT TIMESTAMP '{start}' + to_microseconds(CAST(x AS BIGINT))"
                f" FROM range(0, {length + 1}, {microseconds}) AS r(x)"
            )
        case _:
            return None
    return f"{select} UNION ALL SELECT NULL"
