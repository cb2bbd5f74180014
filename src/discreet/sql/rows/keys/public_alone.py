"""List groups by columns of a public table alone: days of a calendar that rows meet by their moment.

The moments that a policy allows may be too many to try. But each group is then a row of the public
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from discreet.algebra import (
    Aggregate,
    Column,
    Expression,
    PublicJoin,
    PublicScan,
    Scan,
    Source,
    Sum,
    conjuncts,
    walk,
)
from discreet.sql.text.parse import quote


def public_alone(
    source: Source,
    where: Sequence[Expression],
    places: Sequence[Expression],
    public: Mapping[str, pa.Table],
    most: int,
) -> Aggregate | None:
    """Return the query of all groups of a public table, beside a table of one row; None
    where keys are of more than that.
    """
    if not isinstance(source, PublicJoin) or source.outer:
        return None
    stage = source.right.stage
    if any(_stages(place) != {stage} for place in places):
        return None
    right = source.right
    rows = public[right.table].num_rows if isinstance(right, PublicScan) else len(right.rows)
    if not 0 < rows <= most:
        return None
    held = tuple(each for each in conjuncts(where) if _stages(each) == {stage})
    alone = PublicJoin(left=Scan(_one(public), "one"), right=right, meets=rows)
    return Aggregate(alone, tuple(places), (Sum(),), held)


def with_one_row(sql: str, public: Mapping[str, pa.Table]) -> str:
    """Return the statement beside the table of one row."""
    return f"WITH {quote(_one(public))} AS (SELECT 1 AS row) {sql}"


def _one(public: Mapping[str, pa.Table]) -> str:
    """Return a name that is longer than those of all public tables, so it is none of them."""
    return f"{max(public, key=len, default='')}_one"


def _stages(node: Expression) -> set[str]:
    return {part.stage for part in walk(node) if isinstance(part, Column)}
