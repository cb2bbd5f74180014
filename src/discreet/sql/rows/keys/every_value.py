"""Tables of all values that the policy allows columns, as SQL."""

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
    names = ["'all' AS \"#owner\"", *(f"{quote(name)}" for name in columns)]
    together = () if known is None else known.columns
    sources = [
        f"({sql}) AS v{index}({quote(name)})"
        for index, (name, sql) in enumerate(columns.items())
        if name not in together
    ]
    sources += [f"({known.sql}) AS known({', '.join(map(quote, together))})"] if known else []
    return f"SELECT {', '.join(names)}{' FROM ' if sources else ''}{', '.join(sources)}"


def values(domain: Domain) -> str | None:
    """A SELECT of everything that a stored column may hold, and NULL; None of texts."""
    match domain:
        case Integers() | Decimals():
            listed = (
                f"SELECT CAST(x AS BIGINT) FROM range({domain.first}, {domain.last + 1}) AS r(x)"
            )
        case Categories(values=values):
            listed = f"SELECT CAST(x AS BIGINT) FROM range({len(values)}) AS r(x)"
        case Booleans():
            listed = "SELECT TRUE UNION ALL SELECT FALSE"
        case Dates(lo=lo, hi=hi):
            listed = (
                f"SELECT DATE '{lo}' + CAST(x AS INTEGER) FROM range({(hi - lo).days + 1}) AS r(x)"
            )
        case Timestamps(lo=start, hi=end, step=step):
            passed, each = int((end - start) / timedelta(microseconds=1)), int(step * 1_000_000)
            listed = (
                f"SELECT TIMESTAMP '{start}' + to_microseconds(CAST(x AS BIGINT))"
                f" FROM range(0, {passed + 1}, {each}) AS r(x)"
            )
        case _:
            return None
    return f"{listed} UNION ALL SELECT NULL"
