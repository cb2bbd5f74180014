"""Find columns that must not stand beside coarsened ones: names, numbers of people, and columns
that repeat a quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.anonymity.source import SourceTable, encode
from discreet.engines.quoting import name as quoted

_ALMOST_ALL = 0.8  # of the rows: a column with so many different values names people
_LOOKED_AT = 20_000  # rows, for a first look at which columns determine each other


def telling_columns(
    source: SourceTable, *, quasi: Sequence[str], sensitive: str | None, drop: Sequence[str]
) -> tuple[str, ...]:
    """Warn about published columns that undo the work, each with the column and what to write."""
    others = [
        name
        for name in source.types
        if name not in (*quasi, *drop) and _comparable(source.types[name])
    ]
    if not others or source.rows < 2:
        return ()
    named = _identifiers(source, [name for name in others if name != sensitive])
    warnings = [
        f"{name} is different for nearly everyone: it names people as surely as a number does. Drop it, or make it a "
        "quasi-identifier."
        for name in named
    ]
    for name, hidden in _repetitions(source, [each for each in others if each not in named], quasi):
        warnings.append(
            f"{name} says what {hidden} was: coarsening {hidden} hides nothing beside it. Drop it, or make it a "
            "quasi-identifier."
        )
    return tuple(warnings)


def _comparable(kind: str) -> bool:
    return not (kind.startswith(("STRUCT", "MAP", "UNION")) or kind.endswith("]"))


def _identifiers(source: SourceTable, columns: Sequence[str]) -> list[str]:
    """Return columns with almost as many values as rows; in a handful of rows, only text
    columns.
    """
    if not columns:
        return []
    listed = ", ".join(f"approx_count_distinct({quoted(name)})" for name in columns)
    (counts,) = source.connection.execute(f"SELECT {listed} FROM data").fetchall()
    return [
        name
        for name, count in zip(columns, counts, strict=True)
        if count >= _ALMOST_ALL * source.rows
    ]


def _repetitions(
    source: SourceTable, columns: Sequence[str], quasi: Sequence[str]
) -> list[tuple[str, str]]:
    """Return pairs (column, quasi-identifier) where the column's value decides the
    quasi-identifier's.
    """
    if not columns:
        return []
    chosen = ", ".join(quoted(name) for name in (*columns, *quasi))
    first = source.arrow(f"SELECT {chosen} FROM data LIMIT {_LOOKED_AT}")
    codes = [encode(column)[1] for column in first.columns]
    found = []
    for i, name in enumerate(columns):
        for j, hidden in enumerate(quasi):
            own = codes[i]
            other = codes[len(columns) + j]
            if other.max() == 0 or own.max() < other.max():
                continue
            # a value seen beside each; if others are, it differs
            beside = np.empty(int(own.max()) + 1, dtype=np.int64)
            beside[own] = other
            if (beside[own] == other).all() and (
                source.rows <= _LOOKED_AT or _decides(source, name, hidden)
            ):
                found.append((name, hidden))
    return found


def _decides(source: SourceTable, name: str, hidden: str) -> bool:
    a = quoted(name)
    b = quoted(hidden)
    ((many,),) = source.connection.execute(
        f"SELECT COUNT(*) FROM (SELECT {a} FROM (SELECT DISTINCT {a}, {b} FROM data) GROUP BY 1 HAVING COUNT(*) > 1)"
    ).fetchall()
    return bool(many == 0)
