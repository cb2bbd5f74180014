"""Tell in how small a group the ranks of a quantile say nothing, and which column of the answer
counts its rows (S11).

A chosen value covers a rank within R of q N, with 95 % confidence. Where R >= q N, so does the low
end of the range, and where R >= (1 - q) N the high end: such a value is not told apart from them.
That is so with N <= R / min(q, 1 - q) rows. An extreme aims so far inside that it is found from
either end in R rows or fewer.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import sqlglot
from sqlglot import exp

from discreet.algebra import Reading, Sum
from discreet.sql.after.estimates import Linear
from discreet.sql.plan.block import Statistic
from discreet.sql.plan.keys import key_position
from discreet.sql.plan.picks import Pick
from discreet.sql.plan.plan import Plan


def most_rows(pick: Pick, ranks: int) -> int:
    """Return in how many rows, and in any fewer, a margin of so many ranks tells nothing."""
    return max(math.floor(ranks / (min(q, 1 - q) or Fraction(1))) for q in pick.quantiles)


def ends(pick: Pick) -> list[Any]:
    """Return the least and the greatest value that a pick may choose."""
    found: list[Any] = pick.decode([0, pick.domain.size - 1]).to_pylist()
    return found


def counting_column(plan: Plan, column: int) -> str | None:
    """Return the column that counts, in the same row, the rows of which a column is a quantile.

    None where there is none. Without joins, unions and subqueries on noisy tables, a row of the
    answer has numbers of one noisy row only.
    """
    shown = plan.columns[column]
    names = [each.name for each in plan.columns]
    if shown.estimate is None or shown.also or not _one_row(plan.after):
        return None
    block = plan.blocks[shown.estimate[0]]
    pick = block.aggregates[shown.estimate[1]]
    assert isinstance(pick, Pick)
    found = dict[bool, str]()
    for each in plan.columns:
        if each.estimate is None or each.also or each.estimate[0] != shown.estimate[0]:
            continue
        aggregate = block.aggregates[each.estimate[1]]
        if isinstance(aggregate, Pick):
            continue
        statistic, estimate = aggregate
        counted = _counts(statistic, estimate, pick) if isinstance(estimate, Linear) else None
        if counted is not None and names.count(each.name) == 1:
            found.setdefault(counted, each.name)
    return found.get(True, found.get(False))  # the rows that have a value, rather than all


def _one_row(after: str) -> bool:
    tree = sqlglot.parse_one(after, read="duckdb")
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tree.find(exp.Join, exp.SetOperation, exp.Lateral) is None


def _counts(statistic: Statistic, estimate: Linear, pick: Pick) -> bool | None:
    """Return True for a count of the rows that a pick sees, False for one of those with NULL, too,
    None for any other number.
    """
    numbers = [Fraction(0)] * len(statistic.reads)
    for factor, form in zip(estimate.factors, statistic.forms, strict=True):
        numbers = [each + factor * times for each, times in zip(numbers, form, strict=True)]
    if sorted(numbers) != [0] * (len(numbers) - 1) + [1] or estimate.step != 1 or estimate.rounds:
        return None
    reading: Reading = statistic.reads[numbers.index(Fraction(1))]
    if not isinstance(reading, Sum) or reading.where != pick.condition:
        return None
    if not reading.factors:
        return False
    if len(reading.factors) > 1 or reading.factors[0].power:
        return None
    position = key_position(reading.factors[0].value, pick.domain, nullable=False)
    return True if position == pick.position else None
