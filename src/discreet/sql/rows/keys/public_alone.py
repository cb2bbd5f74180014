"""List groups by columns of a public table alone: days of a calendar that rows meet by their moment.

The moments that a policy allows may be too many to try. But each group is then a row of the public
table, and that is written out.
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
from discreet.sql.rows.public import write_out_table

_ONE = "one"


def public_alone(
    source: Source,
    where: Sequence[Expression],
    places: Sequence[Expression],
    public: Mapping[str, pa.Table],
    most: int,
) -> Aggregate | None:
    """Return the query of all groups of a public table, beside the table `one` of one row; None
    where keys are of more than that.
    """
    if not isinstance(source, PublicJoin) or source.outer:
        return None
    stage = source.right.stage
    if any(_stages(place) != {stage} for place in places):
        return None
    right = source.right
    if isinstance(right, PublicScan):
        table = public[right.table]
        if table.num_rows > most:
            return None
        right = write_out_table(table, stage)
    if not 0 < len(right.rows) <= most:
        return None
    held = tuple(each for each in conjuncts(where) if _stages(each) == {stage})
    alone = PublicJoin(left=Scan(_ONE, _ONE), right=right, meets=len(right.rows))
    return Aggregate(alone, tuple(places), (Sum(),), held)


def with_one_row(sql: str) -> str:
    """Return the statement beside the table of one row."""
    return f'WITH "{_ONE}" AS (SELECT 1 AS row) {sql}'


def _stages(node: Expression) -> set[str]:
    return {part.stage for part in walk(node) if isinstance(part, Column)}
