"""Say how small a group is in which a quantile means nothing, and which column of the answer counts
the rows of the group (S11).

A chosen value has, with 95 % confidence, a rank within R of q N. If R >= q N, the low end of the
range has such a rank too, and if R >= (1 - q) N, the high end: then the chosen value says no more
than an end. This is so in groups of N <= R / min(q, 1 - q) rows. An extreme (q = 0 or 1) aims at a
rank inside, so in a group of R rows or fewer either end has such a rank.
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
    """Return the largest number of rows in which a margin of this many ranks says nothing."""
    return max(math.floor(ranks / (min(q, 1 - q) or Fraction(1))) for q in pick.quantiles)


def ends(pick: Pick) -> list[Any]:
    """Return the least and the greatest value that a pick may choose."""
    values: list[Any] = pick.decode([0, pick.domain.size - 1]).to_pylist()
    return values


def counting_column(plan: Plan, column: int) -> str | None:
    """Return the name of the column that counts the rows of a quantile's group; None without one.

    Without joins, unions and subqueries over noisy tables, all numbers of a row of the answer are
    from one noisy row.
    """
    quantile = plan.columns[column]
    names = [other.name for other in plan.columns]
    if quantile.estimate is None or quantile.also or not _reads_one_table(plan.after):
        return None
    index, place = quantile.estimate
    block = plan.blocks[index]
    pick = block.aggregates[place]
    assert isinstance(pick, Pick)
    counts = dict[bool, str]()
    for other in plan.columns:
        if other.estimate is None or other.also or other.estimate[0] != index:
            continue
        aggregate = block.aggregates[other.estimate[1]]
        if isinstance(aggregate, Pick):
            continue
        statistic, estimate = aggregate
        if not isinstance(estimate, Linear) or names.count(other.name) != 1:
            continue
        only_values = _counts(statistic, estimate, pick)
        if only_values is not None:
            counts.setdefault(only_values, other.name)
    return counts.get(True, counts.get(False))


def _reads_one_table(after: str) -> bool:
    tree = sqlglot.parse_one(after, read="duckdb")
    tables = list(tree.find_all(exp.Table))
    return len(tables) == 1 and tree.find(exp.Join, exp.SetOperation, exp.Lateral) is None


def _counts(statistic: Statistic, estimate: Linear, pick: Pick) -> bool | None:
    """Return True if a number counts the rows with a value of the pick, False if it also counts
    those with NULL, and None for any other number.
    """
    # the factor of each reading in the number
    factors = [Fraction(0)] * len(statistic.reads)
    for factor, form in zip(estimate.factors, statistic.forms, strict=True):
        factors = [own + factor * times for own, times in zip(factors, form, strict=True)]
    one_reading = sorted(factors) == [0] * (len(factors) - 1) + [1]
    if not one_reading or estimate.step != 1 or estimate.rounds:
        return None
    reading: Reading = statistic.reads[factors.index(Fraction(1))]
    if not isinstance(reading, Sum) or reading.where != pick.condition:
        return None
    if not reading.factors:
        return False
    if len(reading.factors) > 1 or reading.factors[0].power:
        return None
    position = key_position(reading.factors[0].value, pick.domain, nullable=False)
    return True if position == pick.position else None
